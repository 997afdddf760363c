"""A report page before it is HTML or Markdown."""

from collections.abc import Sequence
from dataclasses import dataclass

from axs6.tables import Table


@dataclass(frozen=True)
class Picture:
    """An SVG whose ink has the colour `pictures.INK`, on no ground.

    `title` says what is shown, differently for each picture of a page, and `caption` says how.
    """

    title: str
    svg: str
    caption: str = ""


Block = str | Table | Picture
"""A paragraph, a table or a picture."""


@dataclass(frozen=True)
class Section:
    """A heading with what stands below it, in order."""

    title: str
    level: int
    blocks: Sequence[Block]


@dataclass(frozen=True)
class Page:
    """A title, a table of what made the page, and its sections in order."""

    title: str
    origin: Table
    sections: Sequence[Section]
