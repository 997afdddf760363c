"""Tables of figures, described once: printed, as CSV, as LaTeX, and as HTML in notebooks."""

import csv
import html
import io
import json
import re
from abc import ABC, abstractmethod
from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any, Final, NamedTuple

from axs6.terminal import shown

if TYPE_CHECKING:
    from rich.table import Table as RichTable

MOST_ROWS: Final = 60
"""Rows of a table that a notebook shows; of a longer one the first."""


@dataclass(frozen=True)
class Column:
    """A figure of every row.

    Args:
        name: its key in JSON and CSV, with the unit; empty for a column that CSV leaves out.
        title: its heading in printed tables, LaTeX and HTML; None for one that only CSV has.
        form: how its values are written: a format specification, or a function.
        left: whether it holds words, which stand on the left; numbers stand on the right.
        none: text of a figure that is missing.
    """

    name: str
    title: str | None
    form: str | Callable[[Any], str] = ""
    left: bool = False
    none: str = "-"

    def text(self, value: Any) -> str:
        """A value as printed tables show it."""
        if isinstance(value, Written):
            return value.text
        if value is None:
            return self.none
        return self.form(value) if callable(self.form) else format(value, self.form)


class Written(NamedTuple):
    """A value, and its text where the form of its column does not give it."""

    value: Any
    text: str


@dataclass(frozen=True)
class Table:
    """Rows of values in columns; None stands for a figure that is missing.

    `notes` say what marks in the cells mean.
    """

    columns: Sequence[Column]
    rows: Sequence[Sequence[Any]]
    notes: Sequence[str] = ()

    @property
    def printed(self) -> list[Column]:
        """The columns of printed tables."""
        return [column for column in self.columns if column.title is not None]

    @property
    def headings(self) -> list[str]:
        """The titles of the printed columns."""
        return [column.title or "" for column in self.printed]

    @property
    def texts(self) -> list[list[str]]:
        """The cells of the printed columns."""
        return [
            [
                column.text(value)
                for column, value in zip(self.columns, row, strict=True)
                if column.title is not None
            ]
            for row in self.rows
        ]


class Tabular(ABC):
    """Something that is a table, which notebooks show."""

    @abstractmethod
    def table(self) -> Table:
        """Its table."""

    def _repr_html_(self) -> str:
        return html_text(self.table())


def words(name: str, title: str | None = None, form: str | Callable[[Any], str] = "") -> Column:
    """A column of words, whose heading is its name unless it has another."""
    return Column(name, name if title is None else title, form, left=True)


def text_table(titles: Sequence[str], rows: Sequence[Sequence[str]], left: int = 1) -> Table:
    """A table of texts, of which the first columns stand on the left."""
    return Table([Column(x, x, left=place < left) for place, x in enumerate(titles)], rows)


def table_of(
    columns: Sequence[Column], rows: Iterable[Mapping[str, Any]], notes: Sequence[str] = ()
) -> Table:
    """A table of rows by the names of columns; a figure that a row lacks is missing."""
    return Table(columns, [[row.get(x.name) for x in columns] for row in rows], notes)


def facts_table(facts: Mapping[str, Any]) -> Table:
    """A table of two columns: what something is, in a notebook."""
    return Table([words("", ""), Column("", "", str)], [*facts.items()])


def rich_table(table: Table, ruled: bool = True) -> "RichTable":
    """The table for a terminal, with or without lines below the headings and at its end."""
    from rich.box import SIMPLE_HEAD
    from rich.table import Table as RichTable
    from rich.text import Text

    look: dict[str, Any] = {"box": None, "pad_edge": False}
    found = RichTable(**({"box": SIMPLE_HEAD, "padding": (0, 1, 0, 0)} if ruled else look))
    for column in table.printed:
        title = Text(column.title or "")
        found.add_column(title, justify="left" if column.left else "right", no_wrap=column.left)
    for row in table.texts:
        found.add_row(*(Text(shown(cell)) for cell in row))
    return found


def csv_text(table: Table) -> str:
    """The table as CSV: a header of names, and the values unrounded.

    A figure that is missing is empty, truth is `true` or `false`, and a list is JSON.
    """
    text = io.StringIO()
    writer = csv.writer(text, lineterminator="\n")
    kept = [place for place, column in enumerate(table.columns) if column.name]
    writer.writerow([table.columns[place].name for place in kept])
    writer.writerows([_raw(row[place]) for place in kept] for row in table.rows)
    return text.getvalue()


def _raw(value: Any) -> Any:
    if isinstance(value, Written):
        return _raw(value.value)
    if isinstance(value, (bool, list, tuple, dict)):
        return json.dumps(value)
    return value


def latex_text(table: Table) -> str:
    """The table as a LaTeX `tabular` with the rules of the package booktabs.

    Characters with a meaning in LaTeX are escaped, and notes are comments below it.
    """
    places = "".join("l" if column.left else "r" for column in table.printed)
    rows = [[latex_escaped(cell) for cell in row] for row in table.texts]
    lines = [
        rf"\begin{{tabular}}{{{places}}}",
        r"\toprule",
        _latex_row(latex_escaped(x).replace("+-", r"$\pm$") for x in table.headings),
        r"\midrule",
        *(
            _latex_row(
                cell if column.left else _signed(cell)
                for column, cell in zip(table.printed, row, strict=True)
            )
            for row in rows
        ),
        r"\bottomrule",
        r"\end{tabular}",
        *(f"% {' '.join(note.split())}" for note in table.notes),
    ]
    return "\n".join(lines) + "\n"


def _latex_row(cells: Iterable[str]) -> str:
    return rf"{' & '.join(cells)} \\"


_LATEX: Final = {
    **{x: rf"\{x}" for x in "&%$#_{}"},
    "\\": r"\textbackslash{}",
    "~": r"\textasciitilde{}",
    "^": r"\textasciicircum{}",
    "<": r"\textless{}",
    ">": r"\textgreater{}",
    "|": r"\textbar{}",
    '"': r"\textquotedbl{}",
    "`": r"\textasciigrave{}",
    "'": r"\textquotesingle{}",
    "[": "{[}",
    "]": "{]}",
    "\n": " ",
    "µ": r"\textmu{}",
    "±": r"$\pm$",
    "\N{MULTIPLICATION SIGN}": r"$\times$",
    "\N{MINUS SIGN}": "$-$",
}

_RAISED: Final = str.maketrans("⁰¹²³⁴⁵⁶⁷⁸⁹", "0123456789")


def latex_escaped(text: str) -> str:
    """A text whose every character LaTeX prints as it is; raised digits are superscripts."""
    plain = "".join(_LATEX.get(x, x) for x in shown(text))
    return re.sub(
        "[⁰¹²³⁴⁵⁶⁷⁸⁹]+", lambda x: rf"\textsuperscript{{{x[0].translate(_RAISED)}}}", plain
    )


def _signed(cell: str) -> str:
    """A number whose minus is as wide as a plus; a missing figure is a dash."""
    return re.sub(r"^-(?=[\d.])", "$-$", re.sub(r"^-(?![\d.])", "--", cell))


def html_text(table: Table, most: int = MOST_ROWS) -> str:
    """The table as HTML without scripts, all text escaped; of a long one the first `most` rows."""
    sides = ["left" if column.left else "right" for column in table.printed]
    rows = [_html_row("th", table.headings, sides)]
    rows += [_html_row("td", row, sides) for row in table.texts[:most]]
    if (more := len(table.rows) - most) > 0:
        rows.append(f'<tr><td colspan="{len(sides)}">and {more:,} more rows</td></tr>')
    notes = "".join(f"<div>{html.escape(note)}</div>" for note in table.notes)
    return f"<table>{''.join(rows)}</table>{notes}"


def _html_row(tag: str, cells: Sequence[str], sides: Sequence[str]) -> str:
    row = (
        f'<{tag} style="text-align: {side}">{html.escape(cell)}</{tag}>'
        for cell, side in zip(cells, sides, strict=True)
    )
    return f"<tr>{''.join(row)}</tr>"
