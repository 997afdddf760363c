"""Report pages as Markdown, with the pictures as files beside it."""

import re
from collections.abc import Iterator
from pathlib import PurePath
from urllib.parse import quote

from axs6.synth.pages.document import Page, Picture
from axs6.synth.pages.pictures import standalone
from axs6.tables import Table


def markdown(page: Page, name: str) -> dict[str, str | bytes]:
    """The files of a page by name: the Markdown, and an SVG for each picture that it shows.

    Args:
        page: what to write.
        name: that of the Markdown file; those of the pictures begin with it, without its ending.
    """
    stem = PurePath(name).stem
    files: dict[str, str | bytes] = {}
    lines = [f"# {_text(page.title)}", "", *_table(page.origin)]
    for section in page.sections:
        lines += [f"{'#' * (section.level + 1)} {_text(section.title)}", ""]
        for block in section.blocks:
            if isinstance(block, Table):
                lines += _table(block)
            elif isinstance(block, Picture):
                picture = f"{stem}-{slug(block.title)}.svg"
                files[picture] = standalone(block.svg)
                lines += [f"![{_text(block.title)}]({quote(picture)})", ""]
                lines += [_text(block.caption), ""] if block.caption else []
            else:
                lines += [_text(block), ""]
    return {name: "\n".join(lines).rstrip() + "\n", **files}


def slug(name: str) -> str:
    """A name in small letters, digits and hyphens."""
    return re.sub("[^a-z0-9]+", "-", name.lower()).strip("-")


def _table(table: Table) -> Iterator[str]:
    rules = ["---" if column.left else "---:" for column in table.printed]
    rows = [[_cell(cell) for cell in row] for row in (table.headings, *table.texts)]
    for row in (rows[0], rules, *rows[1:]):
        yield f"| {' | '.join(row)} |"
    yield ""


def _cell(text: str) -> str:
    indent = len(text) - len(text.lstrip(" "))
    return "&nbsp;" * 2 * indent + _text(text.strip())


def _text(text: str) -> str:
    """Text with Markdown's markup escaped."""
    return re.sub(r"([\\`*_\[\]<>|#&])", r"\\\1", text)
