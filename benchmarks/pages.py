"""The figures in README and docs, between marks that GitHub does not show.

A mark names a figure of the catalogue, one of its values, or a row and a column of its table:

    <!-- figure: NAME -->
    what the commands printed, or a table, with the machine and the date where they count
    <!-- /figure -->

    some 390 <!-- figure: NAME.VALUE -->388<!-- /figure --> µm²
    896 µm², as <!-- figure: NAME.ROW.COLUMN -->896<!-- /figure --> in the table
"""

import re
from collections.abc import Collection, Iterable, Mapping, Sequence
from typing import Any

from digests import ROOT
from figure import Figure

PAGES = (ROOT / "README.md", *sorted((ROOT / "docs").rglob("*.md")))
MARK = re.compile(
    r"(<!-- figure: (?P<name>[\w-]+)(?:\.(?P<value>[\w-]+(?:\.[^>]+?)?))? -->)"
    r"(?P<shown>.*?)(<!-- /figure -->)",
    re.S,
)


def fill(text: str, figures: Mapping[str, Figure]) -> str:
    """The text of a page with its figures as their files keep them.

    Raises:
        ValueError: a mark names no figure or no value of it, or a value stands at the beginning of
            a line, where Markdown would take the line for HTML.
    """

    def shown(mark: re.Match[str]) -> str:
        name, value = mark["name"], mark["value"]
        if name not in figures:
            raise ValueError(f"the mark of a figure must name one of the catalogue, not {name}")
        kept = figures[name].stored()
        if value is None:
            content = f"\n{block(figures[name], kept)}\n"
        elif text[: mark.start()].endswith("\n"):
            raise ValueError(f"a line must not begin with the value {name}.{value}")
        else:
            content = number(_value(kept, name, value)) if kept else "(not measured yet)"
        return f"{mark[1]}{content}{mark[5]}"

    return MARK.sub(shown, text)


def _value(kept: Mapping[str, Any], name: str, value: str) -> float | str:
    """A value of the figure `name`, or what stands in a row and a column of its table."""
    row, _, column = value.partition(".")
    if not column:
        return kept["values"][value]
    columns = kept["table"]["columns"]
    found = [cells for cells in kept["table"]["rows"] if cells[0] == row]
    if not found or column not in columns:
        raise ValueError(f"the mark must name a row and a column of {name}, not {value}")
    return found[0][columns.index(column)]


def block(figure: Figure, kept: Mapping[str, Any]) -> str:
    """The output of the commands or a table, and below it where and when it was measured."""
    if not kept:
        return f"Not measured yet: `make figures ONLY={figure.name}` does it.\n"
    if "output" in kept:
        parts = [
            "\n".join([f"$ {command}", *lines])
            for command, lines in zip(kept["commands"], kept["output"], strict=True)
        ]
        shown = "\n".join(["```", *parts, "```"])
    else:
        shown = "\n" + table(kept["table"])
    if figure.varies is None:
        return shown if "output" in kept else shown + "\n"
    return f"{shown}\n\nMeasured on {kept['machine']}, {kept['date']}.\n"


def table(content: Mapping[str, Any]) -> str:
    """A table in Markdown, columns of numbers to the right."""
    rows = content["rows"]
    columns = zip(*rows, strict=True)
    right = [not any(isinstance(cell, str) and cell != "-" for cell in each) for each in columns]
    numbers = [k for k, each in enumerate(right) if each]
    return "\n".join(cells(content["columns"], [map(number, row) for row in rows], numbers))


def cells(
    columns: Sequence[str], rows: Iterable[Iterable[str]], right: Collection[int] = ()
) -> list[str]:
    """The lines of a table in Markdown, the columns with the numbers `right` to the right."""
    rule = ["---:" if k in right else "---" for k in range(len(columns))]
    return [f"| {' | '.join(line)} |" for line in (columns, rule, *rows)]


def number(value: float | str) -> str:
    """A number with commas between thousands; texts stay as they are."""
    return value if isinstance(value, str) else f"{value:,}"
