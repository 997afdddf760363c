"""Yosys in a child process with a time limit."""

import os
import subprocess
import sys
from collections.abc import Sequence
from pathlib import Path

from axs6.sim.process import check_folder, child_process, first_error, wait
from axs6.synth.errors import SynthesisError
from axs6.synth.process import check_pyosys

_LOG = "yosys.log"
_COMMANDS = "commands.txt"


def run_yosys(folder: Path, commands: Sequence[str], what: str, seconds: float) -> None:
    """Run commands in a folder, in which they read and write files.

    Args:
        folder: a temporary one.
        commands: of Yosys.
        what: what they work on, for errors.
        seconds: limit.

    Raises:
        SynthesisError: pyosys is missing, a command failed, or the time ran out.
        ToolError: the path of the folder has blanks or quotes.
    """
    check_pyosys()
    check_folder(folder)
    (folder / _COMMANDS).write_text("\n".join(commands) + "\n")
    command = [sys.executable, "-P", "-m", "axs6.proof.worker"]
    with child_process(
        command, folder / _LOG, os.environ | {"TMPDIR": str(folder)}, folder
    ) as child:
        try:
            wait(child, seconds)
        except subprocess.TimeoutExpired:
            raise SynthesisError(f"{what}: Yosys must finish within {seconds:g} s") from None
        if child.returncode:
            raise SynthesisError(f"{what}: {first_error(folder / _LOG)}")
