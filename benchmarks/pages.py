"""The figures in README and docs, between marks that GitHub does not show.

A mark names a figure of the catalogue, or one of its values:

    <!-- figure: NAME -->
    what the commands printed, or a table, with the machine and the date where they count
    <!-- /figure -->

    some 390 <!-- figure: NAME.VALUE -->388<!-- /figure --> µm²
"""

import re
from collections.abc import Mapping
from typing import Any

from digests import ROOT
from figure import Figure

PAGES = (ROOT / "README.md", *sorted((ROOT / "docs").glob("*.md")))
MARK = re.compile(
    r"(<!-- figure: (?P<name>[\w-]+)(?:\.(?P<value>\w+))? -->)(?P<shown>.*?)(<!-- /figure -->)",
    re.S,
)


def fill(text: str, figures: Mapping[str, Figure]) -> str:
    """The text of a page with its figures as their files keep them.

    Raises:
        ValueError: a mark names no figure, or a value stands at the beginning of a line, where
            Markdown would take the line for HTML.
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
            content = number(kept["values"][value]) if kept else "(not measured yet)"
        return f"{mark[1]}{content}{mark[5]}"

    return MARK.sub(shown, text)


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
    lines = [content["columns"], ["---:" if each else "---" for each in right]]
    lines += [[number(cell) for cell in row] for row in rows]
    return "\n".join(f"| {' | '.join(line)} |" for line in lines)


def number(value: float | str) -> str:
    """A number with commas between thousands; texts stay as they are."""
    return value if isinstance(value, str) else f"{value:,}"
