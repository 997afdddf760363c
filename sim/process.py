"""Child processes that leave nothing behind."""

import contextlib
import os
import re
import signal
import subprocess
import time
from collections.abc import Iterator, Mapping, Sequence
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


@contextlib.contextmanager
def child_process(
    command: Sequence[str],
    log: Path,
    environment: Mapping[str, str],
    folder: Path | None = None,
) -> Iterator[subprocess.Popen[bytes]]:
    """A process with a group of its own, which is killed whole when the context ends.

    Args:
        command: program and arguments.
        log: file for everything that it prints.
        environment: its environment variables.
        folder: its working directory.
    """
    with log.open("wb") as output:
        child = subprocess.Popen(
            command,
            cwd=folder,
            env=environment,
            stdin=subprocess.DEVNULL,
            stdout=output,
            stderr=subprocess.STDOUT,
            start_new_session=True,
        )
        try:
            yield child
        finally:
            with contextlib.suppress(ProcessLookupError):
                os.killpg(child.pid, signal.SIGKILL)
            child.wait()


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
    errors = [line for line in lines if "error" in line.lower()]
    return (errors or lines[-1:] or ["it printed nothing"])[0]
