"""Child processes that leave nothing behind."""

import atexit
import contextlib
import os
import re
import signal
import subprocess
import sys
import tempfile
import threading
import time
from collections.abc import Iterator, Mapping, Sequence
from concurrent.futures import ThreadPoolExecutor
from functools import cache
from pathlib import Path

from axs6.sim.control import check_stopped
from axs6.sim.tools import ToolError

_LOOK_SECONDS = 0.2
_PLAIN_PATH = re.compile(r"[\w/.,:=@%^~+-]+")


def check_folder(folder: Path) -> None:
    """Check a temporary folder in which programs run that do not quote its path.

    Raises:
        ToolError: it has characters such as blanks, quotes or `;`, which make, the shell and ABC
            would take for more than a name.
    """
    if not _PLAIN_PATH.fullmatch(str(folder)):
        raise ToolError(
            "the folder of temporary files (TMPDIR) must have a path without blanks, quotes and "
            f"marks such as ; or #, not {str(folder.parent)!r}"
        )


_GUARD = """
import os, shutil, signal, sys, time

begun = {"group": set(), "folder": set()}
for line in sys.stdin:
    what, kind, name = line.split()
    if what == "end":
        break
    (begun[kind].add if what == "begin" else begun[kind].discard)(name)
for group in begun["group"]:
    try:
        os.killpg(int(group), signal.SIGKILL)
    except OSError:
        pass
folders = [bytes.fromhex(name) for name in begun["folder"]]
for _ in range(500):
    folders = [folder for folder in folders if os.path.exists(folder)]
    for folder in folders:
        shutil.rmtree(folder, ignore_errors=True)
    if not folders:
        break
    time.sleep(0.01)  # what was killed may still write
"""
"""A program that reads which groups of processes and which folders begin and end.

It ends those that are left when its input does.
"""


@contextlib.contextmanager
def child_process(
    command: Sequence[str],
    log: Path,
    environment: Mapping[str, str],
    folder: Path | None = None,
) -> Iterator[subprocess.Popen[bytes]]:
    """A process with a group of its own, which is killed whole when the context ends.

    It is killed too when this process ends otherwise, by SIGKILL for one.

    Args:
        command: program and arguments.
        log: file for everything that it prints.
        environment: its environment variables.
        folder: its working directory.
    """

    def begin() -> subprocess.Popen[bytes]:
        child = subprocess.Popen(
            command,
            cwd=folder,
            env=environment,
            stdin=subprocess.DEVNULL,
            stdout=output,
            stderr=subprocess.STDOUT,
            start_new_session=True,
        )
        _tell_guard("begin", "group", str(child.pid))
        return child

    with log.open("wb") as output:
        # Handlers of signals run in the main thread alone: none leaves a child that no one knows.
        with ThreadPoolExecutor(1) as thread:
            child = thread.submit(begin).result()
        try:
            yield child
        finally:
            with contextlib.suppress(ProcessLookupError):
                os.killpg(child.pid, signal.SIGKILL)
            child.wait()
            _tell_guard("done", "group", str(child.pid))


@contextlib.contextmanager
def temporary_folder(prefix: str) -> Iterator[Path]:
    """A folder that is removed when the context or this process ends, however it does."""
    with contextlib.ExitStack() as stack:
        folder = stack.enter_context(tempfile.TemporaryDirectory(prefix=prefix))
        name = os.fsencode(Path(folder).absolute()).hex()
        _tell_guard("begin", "folder", name)
        yield Path(folder)
    _tell_guard("done", "folder", name)


_starting = threading.Lock()


def _tell_guard(what: str, kind: str, name: str) -> None:
    with _starting:
        guard = _guard(os.getpid())
    # Somebody may have ended it.
    with contextlib.suppress(OSError):
        os.write(guard.stdin.fileno(), f"{what} {kind} {name}\n".encode())  # type: ignore[union-attr]


@cache
def _guard(process: int) -> "subprocess.Popen[bytes]":
    """The guard of what this process begins; a forked process has one of its own."""
    guard = subprocess.Popen(
        [sys.executable, "-I", "-S", "-c", _GUARD],
        stdin=subprocess.PIPE,
        stdout=subprocess.DEVNULL,
        stderr=subprocess.DEVNULL,
        start_new_session=True,
    )

    def end() -> None:
        if os.getpid() == process:
            _tell_guard("end", "-", "-")
            guard.communicate()

    atexit.register(end)
    return guard


def wait(child: "subprocess.Popen[bytes]", seconds: float) -> int:
    """Exit status of a process.

    Raises:
        subprocess.TimeoutExpired: it has not ended within `seconds`.
        StoppedError: the work of this thread was stopped.
    """
    deadline = time.monotonic() + seconds
    while True:
        check_stopped()
        left = deadline - time.monotonic()
        try:
            return child.wait(max(0.0, min(left, _LOOK_SECONDS)))
        except subprocess.TimeoutExpired:
            if left <= _LOOK_SECONDS:
                raise


def first_error(log: Path) -> str:
    """The first line of a log that speaks of an error, or else its last line."""
    lines = [line.strip() for line in log.read_text(errors="replace").splitlines() if line.strip()]
    # A traceback shows the statement that raised before it says what.
    spoken = (line for line in lines if not line.startswith("raise "))
    errors = [line for line in spoken if "error" in line.lower()]
    return (errors or lines[-1:] or ["it printed nothing"])[0]
