"""Results of a comparison, and its table."""

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any

from axs6.golden.formats import block_format
from axs6.studies.comparison.columns import ColumnGroup
from axs6.synth.pages.document import Page, Section
from axs6.tables import Column, Table, Tabular, Written, table_of, text_table, words

Cell = float | str
"""A figure, or the reason why it is missing."""

_RAISED = str.maketrans("0123456789", "⁰¹²³⁴⁵⁶⁷⁸⁹")


def reasons_of(cells: Iterable[Cell]) -> list[str]:
    """Why figures are missing: each reason once, in the order of the cells."""
    return list(dict.fromkeys(cell for cell in cells if isinstance(cell, str)))


def marked(cell: Cell, reasons: Sequence[str]) -> float | Written:
    """A cell of a table: the figure, or the footnote mark of its reason."""
    if isinstance(cell, str):
        return Written(None, f"-{_raised(reasons.index(cell) + 1)}")
    return cell


def numbered(reasons: Sequence[str]) -> list[str]:
    """Footnotes, each with its mark."""
    return [f"{_raised(number)} {reason}" for number, reason in enumerate(reasons, 1)]


def _raised(number: int) -> str:
    return str(number).translate(_RAISED)


@dataclass(frozen=True)
class FormatComparison(Tabular):
    """The figures of formats.

    Args:
        groups: the groups of columns by their names.
        rows: the cells of each format by the names of their columns.
        conditions: conditions of the figures, such as the number of vectors and the accuracy in
        FP32, by their descriptions.
    """

    groups: Mapping[str, ColumnGroup]
    rows: Mapping[str, Mapping[str, Cell]]
    conditions: Mapping[str, Any] = field(default_factory=dict)

    @property
    def columns(self) -> list[Column]:
        """The columns in order."""
        return [column for group in self.groups.values() for column in group.columns]

    @property
    def reasons(self) -> list[str]:
        """Why figures are missing, each reason once, in the order of the table."""
        return reasons_of(row[column.name] for row in self.rows.values() for column in self.columns)

    def to_dict(self) -> dict[str, Any]:
        """The comparison for JSON; a figure that is missing is None, its reason in `missing`."""
        formats = []
        for name, row in self.rows.items():
            figures = {key: None if isinstance(x, str) else x for key, x in row.items()}
            missing = {key: x for key, x in row.items() if isinstance(x, str)}
            known = {"format": name, "string": str(block_format(name))}
            formats.append({**known, **figures, "missing": missing})
        conditions = {key.replace(" ", "_").lower(): x for key, x in self.conditions.items()}
        return {"columns": list(self.groups), **conditions, "formats": formats}

    def table(self) -> Table:
        """A row for each format; marks refer to the footnotes of `notes`."""
        reasons = self.reasons
        rows = [
            {
                **found,
                **{name: marked(cell, reasons) for name, cell in row.items()},
                "missing": found["missing"] or None,
            }
            for found, row in zip(self.to_dict()["formats"], self.rows.values(), strict=True)
        ]
        more = [Column("string", None), *self.columns, Column("missing", None)]
        return table_of([words("format"), *more], rows, self.notes())

    def legend(self) -> list[str]:
        """Descriptions of the columns and the conditions, one per line."""
        said = [f"{name}: {_said(x)}" for name, x in self.conditions.items()]
        return [group.what for group in self.groups.values()] + said

    def notes(self) -> list[str]:
        """The reasons, as footnotes with marks."""
        return numbered(self.reasons)

    def page(self, command: str) -> Page:
        """A report page, with the command that made it."""
        sections = [Section("Figures", 1, [self.table(), *self.notes()])]
        sections.append(Section("Columns", 1, self.legend()))
        return Page(
            "Block formats compared", text_table(["", ""], [["made by", command]], 2), sections
        )


def _said(value: Any) -> str:
    if isinstance(value, Mapping):
        return ", ".join(f"{name.replace('_', ' ')} {_said(x)}" for name, x in value.items())
    if isinstance(value, float):
        return f"{value:.4f}"
    return f"{value:,}" if isinstance(value, int) else str(value)
