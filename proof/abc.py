"""ABC, which comes with pyosys, in a child process with a time limit."""

import os
import subprocess
from collections.abc import Sequence
from importlib.util import find_spec
from pathlib import Path

from axs6.sim.process import check_folder, child_process, wait
from axs6.synth.process import check_pyosys


def run_abc(folder: Path, commands: Sequence[str], seconds: float) -> str | None:
    """Run commands in a folder and return what ABC prints; None if the time is over.

    Args:
        folder: a temporary one, in which the commands read and write files. commands: of ABC.
        seconds: limit.

    Raises:
        SynthesisError: pyosys is missing.
        ToolError: as `axs6.sim.process.check_folder`.
    """
    check_pyosys()
    check_folder(folder)
    spec = find_spec("pyosys")
    assert spec is not None
    assert spec.origin is not None
    program, log = Path(spec.origin).with_name("yosys-abc"), folder / "abc.txt"
    command = [str(program), "-c", "; ".join(commands)]
    with child_process(command, log, os.environ | {"TMPDIR": str(folder)}, folder) as child:
        try:
            wait(child, seconds)
        except subprocess.TimeoutExpired:
            return None
    return log.read_text(errors="replace")
