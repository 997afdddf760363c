"""C++ models as shared libraries, compiled once for each source, compiler and processor."""

import logging
import os
import shutil
import subprocess
from collections.abc import Mapping, Sequence
from functools import cache
from pathlib import Path

from axs6.sim.cache import cached
from axs6.sim.process import child_process, first_error, wait
from axs6.sim.tools import ToolError

COMPILER = "g++"
OPTIONS = ("-std=c++17", "-march=native", "-shared", "-fPIC", "-w")

BUILD_SECONDS = 600

SOURCE, LIBRARY, HEADERS = "model.cpp", "model.so", "headers.hpp"

_log = logging.getLogger("axs6")


def check_compiler(needed_by: str) -> str:
    """Path of g++.

    Raises:
        ToolError: it is not on PATH; the message says what needed it.
    """
    compiler = shutil.which(COMPILER)
    if compiler is None:
        raise ToolError(f"{needed_by} needs {COMPILER} on PATH")
    return compiler


def compiled(
    kind: str,
    needed_by: str,
    files: Mapping[str, str],
    options: Sequence[str],
    *,
    headers_first: bool = False,
) -> Path:
    """The shared library that `model.cpp` among `files` becomes, from the cache if it is there.

    Args:
        kind: first part of the cache folder's name.
        needed_by: what a message says needs the compiler.
        files: texts of the source and of the headers it includes, by path.
        options: of the compiler, besides `OPTIONS`.
        headers_first: whether the system's headers that they include are compiled once, for all
            sources with the same ones; of a small model they take a fifth of the time.

    Raises:
        ToolError: g++ is missing, fails, or takes longer than `BUILD_SECONDS`.
        OSError: the cache cannot be written.
    """
    compiler = check_compiler(needed_by)
    shared = [*options, *OPTIONS, _toolchain(compiler)]

    def build(folder: Path) -> None:
        _log.info("compiling a model for %s", needed_by)
        for name, text in files.items():
            (folder / name).parent.mkdir(parents=True, exist_ok=True)
            (folder / name).write_text(text)
        first = ["-include", str(headers())] if headers_first else []
        _run([compiler, *OPTIONS, *options, *first, "-o", LIBRARY, SOURCE], folder)

    def headers() -> Path:
        lines = (line for text in files.values() for line in text.splitlines())
        text = "\n".join(sorted({line for line in lines if line.startswith("#include <")}))

        def build(folder: Path) -> None:
            (folder / HEADERS).write_text(f"{text}\n")
            _run([compiler, *OPTIONS, *options, "-x", "c++-header", HEADERS], folder)

        return cached("headers", [text, *shared], build) / HEADERS

    return cached(kind, [*files, *files.values(), *shared], build) / LIBRARY


def _run(command: Sequence[str], folder: Path) -> None:
    """Run g++ in a folder. Raises ToolError as `compiled`."""
    log = folder / "build.log"
    with child_process(command, log, os.environ, folder) as child:
        try:
            status = wait(child, BUILD_SECONDS)
        except subprocess.TimeoutExpired:
            raise ToolError(f"{COMPILER} took longer than {BUILD_SECONDS} s") from None
    if status:
        raise ToolError(f"{COMPILER} failed: {first_error(log)}")


@cache
def _toolchain(compiler: str) -> str:
    """The compiler's version and the processor it compiles for."""
    command = [compiler, "-march=native", "-Q", "--help=target", "--version"]
    done = subprocess.run(command, check=False, capture_output=True, text=True, timeout=60)
    return f"{os.path.realpath(compiler)} {done.stdout}"
