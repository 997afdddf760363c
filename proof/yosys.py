"""Commands of Yosys in a child process with a time limit."""

from collections.abc import Sequence
from pathlib import Path

from axs6.proof import COMMANDS
from axs6.synth.process import Limit, run_workers


def run_yosys(folder: Path, commands: Sequence[str], what: str, seconds: float) -> None:
    """Run commands in a folder, in which they read and write files.

    Args:
        folder: a temporary one.
        commands: of Yosys.
        what: what they work on, for errors.
        seconds: limit.

    Raises:
        SynthesisError, ToolError: as `axs6.synth.process.run_workers`.
    """
    (folder / COMMANDS).write_text("\n".join(commands) + "\n")
    run_workers("axs6.proof.worker", [folder], limit=Limit(seconds), source=what)
