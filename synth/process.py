"""Running Yosys jobs as child processes with a time limit."""

import contextlib
import json
import os
import signal
import subprocess
import sys
import time
from collections.abc import Sequence
from importlib.util import find_spec
from pathlib import Path
from typing import Any

from axs6.install import install_command
from axs6.sim.process import check_folder, child_process, wait
from axs6.synth.errors import SynthesisError, from_log

_LOG, _RESULT = "log.txt", "result.json"


class Limit:
    """A limit in seconds from now on, for runs one after the other; `left` is what remains."""

    def __init__(self, seconds: float) -> None:
        self.seconds = seconds
        self._deadline = time.monotonic() + seconds

    @property
    def left(self) -> float:
        """Seconds that remain, not below 0."""
        return max(0.0, self._deadline - time.monotonic())


def check_pyosys() -> None:
    """Raise SynthesisError where pyosys is missing."""
    if find_spec("pyosys") is None:
        raise SynthesisError(f"area reports need pyosys: {install_command('synth')}")


def run_jobs(folders: Sequence[Path], *, limit: Limit, source: str) -> list[Any]:
    """Run the job in each folder at the same time and return their results in order.

    A job that has its result already is not run again.

    Args:
        folders: a folder for each job, with the files that `axs6.synth.worker` reads.
        limit, source: as of `run_workers`.

    Raises:
        SynthesisError, ToolError: as `run_workers`.
    """
    results = [folder / _RESULT for folder in folders]
    left = [folder for folder, result in zip(folders, results, strict=True) if not result.exists()]
    run_workers("axs6.synth.worker", left, limit=limit, source=source)
    return [json.loads(result.read_text()) for result in results]


def run_workers(module: str, folders: Sequence[Path], *, limit: Limit, source: str) -> None:
    """Run a module that uses Yosys in each folder at the same time.

    No process is left when this returns or raises.

    Args:
        module: as `python -m` takes it.
        folders: temporary ones, each the working folder of a process.
        limit: when all of them must have ended.
        source: what they work on, for messages: a target or library.

    Raises:
        SynthesisError: pyosys is missing, a process failed or the time ran out.
        ToolError: the path of a folder is not as `check_folder` wants it.
    """
    check_pyosys()
    for folder in folders:
        check_folder(folder)
    with contextlib.ExitStack() as stack:
        children = [_start(module, folder, stack) for folder in folders]
        for folder, child in zip(folders, children, strict=True):
            try:
                wait(child, limit.left)
            except subprocess.TimeoutExpired:
                raise SynthesisError(
                    f"{source}: Yosys did not finish within {limit.seconds:g} s"
                ) from None
            if child.returncode < 0:
                name = signal.Signals(-child.returncode).name
                raise SynthesisError(f"{source}: Yosys was ended by {name}, perhaps out of memory")
            if child.returncode:
                raise from_log((folder / _LOG).read_text(errors="replace"), source)


def _start(module: str, folder: Path, stack: contextlib.ExitStack) -> subprocess.Popen[bytes]:
    """Start a worker; it and the yosys-abc that it starts are killed when the stack closes."""
    command = [sys.executable, "-P", "-m", module]
    environment = os.environ | {"TMPDIR": str(folder)}
    return stack.enter_context(child_process(command, folder / _LOG, environment, folder))
