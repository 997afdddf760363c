"""Runs tests of the folder in which it is started, each time in a fork of this process.

It has imported what the tests need of other packages, and nothing of the project, so that a run
takes the project's sources as they are then. `Server` starts it and talks to it in lines of JSON.
"""

import contextlib
import importlib
import json
import os
import resource
import select
import signal
import subprocess
import sys
import tempfile
import traceback
from collections.abc import Sequence
from dataclasses import asdict, dataclass
from pathlib import Path
from typing import Any

MEMORY = 4 << 30
"""Bytes of a run: a wrong shift may ask for many."""

OWN = ("axs6", "tests", "test_", "conftest", "__main__", "__mp_main__")
"""How names of modules begin that are the project's."""


@dataclass(frozen=True)
class Request:
    """Arguments of pytest, and limits in seconds."""

    arguments: Sequence[str]
    processor_seconds: int
    seconds: float


@dataclass(frozen=True)
class Answer:
    """The exit status of pytest, or why there is none, and seconds of the processor."""

    status: str
    processor_seconds: float
    modules: Sequence[str]
    """Modules of other packages that the tests imported."""
    printed: str


class Server:
    """A process of this file that runs tests in a copy of the project."""

    def __init__(self, copy: Path) -> None:
        environment = {
            **{name: text for name, text in os.environ.items() if not name.startswith("PYTHON")},
            "PYTHONPATH": str(copy),
            "OMP_NUM_THREADS": "1",
            "AXS6_CACHE": str(copy / "build"),
        }
        self._process = subprocess.Popen(
            [sys.executable, "-P", str(copy / "benchmarks" / "forks.py")],
            cwd=copy,
            env=environment,
            stdin=subprocess.PIPE,
            stdout=subprocess.PIPE,
            text=True,
        )

    def run(self, request: Request) -> Answer:
        """Run tests.

        Raises:
            ValueError: the process has ended.
        """
        assert self._process.stdin is not None
        assert self._process.stdout is not None
        print(json.dumps(asdict(request)), file=self._process.stdin, flush=True)
        line = self._process.stdout.readline()
        if not line:
            raise ValueError("the process that runs the tests must not end before its input")
        return Answer(**json.loads(line))

    def close(self) -> None:
        """End the process."""
        self._process.communicate()


def _run(request: Request, printed: int, file: Any) -> None:
    """The fork: run the tests and write the status and the modules."""
    os.setsid()
    limit = request.processor_seconds
    resource.setrlimit(resource.RLIMIT_CPU, (limit, limit))
    resource.setrlimit(resource.RLIMIT_DATA, (MEMORY, MEMORY))
    os.dup2(os.open(os.devnull, os.O_RDONLY), 0)
    os.dup2(printed, 1)
    os.dup2(printed, 2)
    import pytest

    status = int(pytest.main([*request.arguments]))
    names = [name for name in sys.modules if not name.startswith(OWN)]
    file.write(json.dumps([str(status), names]))
    file.flush()
    os._exit(0)


def _answer(request: Request) -> Answer:
    with tempfile.TemporaryFile("w+") as file, tempfile.TemporaryFile("w+") as printed:
        process = os.fork()
        if not process:
            try:
                _run(request, printed.fileno(), file)
            except BaseException:
                traceback.print_exc()
            os._exit(1)
        handle = os.pidfd_open(process)
        try:
            in_time = select.select([handle], [], [], request.seconds)[0]
        finally:
            os.close(handle)
            try:
                os.killpg(process, signal.SIGKILL)
            except ProcessLookupError:
                os.kill(process, signal.SIGKILL)
            _, end, usage = os.wait4(process, 0)
        file.seek(0)
        printed.seek(0)
        text = file.read()
        spent = usage.ru_utime + usage.ru_stime
        if text:
            status, modules = json.loads(text)
        else:
            late = not in_time or spent >= request.processor_seconds - 1
            status, modules = "time" if late else f"ended with {end}", []
        return Answer(status, spent, modules, printed.read()[-4000:])


def _import(names: Sequence[str]) -> None:
    """Import modules of other packages; some of them are made by others and cannot be imported."""
    for name in names:
        with contextlib.suppress(Exception):
            importlib.import_module(name)


def main() -> None:
    """Answer requests until the input ends.

    Modules of other packages that a run has imported are imported here, for the forks that follow.
    """
    from hypothesis import settings

    settings.register_profile("same", database=None, derandomize=True, deadline=None)
    settings.load_profile("same")
    for line in sys.stdin:
        answer = _answer(Request(**json.loads(line)))
        _import([name for name in answer.modules if name not in sys.modules])
        print(json.dumps(asdict(answer)), flush=True)


if __name__ == "__main__":
    main()
