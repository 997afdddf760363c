"""Files for the figures of a command: JSON, CSV and LaTeX."""

from collections.abc import Iterable
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from rich.console import Console

from axs6.commands.output import check_writable, console, write_json, write_text
from axs6.tables import Table, csv_text, latex_text

STDOUT = "-"
"""Stands for stdout in place of a file."""


@dataclass(frozen=True)
class ResultFiles:
    """Where the figures of a command go beside the terminal: None for nowhere, "-" for stdout."""

    json: str | None = None
    csv: str | None = None
    latex: str | None = None

    @property
    def _targets(self) -> dict[str, str]:
        named = {"--json": self.json, "--csv": self.csv, "--latex": self.latex}
        return {option: target for option, target in named.items() if target is not None}

    @property
    def paths(self) -> list[Path]:
        """The files."""
        return [Path(target) for target in self._targets.values() if target != STDOUT]

    def check(self, *others: Path | None, inputs: Iterable[Path] = ()) -> None:
        """Raise an error for a file that is not to be written.

        Args:
            others: more files that the command writes.
            inputs: files that it reads.

        Raises:
            OSError, ValueError: as `axs6.commands.output.check_writable`, or two options name
            stdout.
        """
        named = [option for option, target in self._targets.items() if target == STDOUT]
        if len(named) > 1:
            raise ValueError(f"one option may name stdout, not both {named[0]} and {named[1]}")
        check_writable(*others, *self.paths, inputs=inputs)

    def check_no_table(self, what: str) -> None:
        """Raise ValueError if a table is asked for; `what` says what there is in place of one."""
        for option in ("--csv", "--latex"):
            if option in self._targets:
                raise ValueError(f"{what}: do not give {option} with it")

    def console(self) -> Console:
        """The console for tables and messages: stdout, unless figures go there."""
        return console(STDOUT in self._targets.values())

    def write(self, figures: Any, table: Table) -> None:
        """Write what is asked for.

        Args:
            figures: for JSON.
            table: for CSV and LaTeX.
        """
        write_json(self.json, figures)
        if self.csv is not None:
            write_text(self.csv, csv_text(table))
        if self.latex is not None:
            write_text(self.latex, latex_text(table))
