"""The child process that runs Yosys: `python -m axs6.proof.worker`, started in the folder of
`commands.txt`, which has a command in each line. Yosys ends the process at the first that fails."""

from pathlib import Path

from pyosys import libyosys

from axs6.proof import COMMANDS


def main() -> None:
    """Run the commands."""
    design = libyosys.Design()
    for command in Path(COMMANDS).read_text().splitlines():
        libyosys.run_pass(command, design)


if __name__ == "__main__":
    main()
