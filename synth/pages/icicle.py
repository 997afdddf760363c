"""A breakdown as an icicle: parts as boxes to the right of the whole that they are parts of."""

from collections import Counter
from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any, Final

from axs6.synth.pages.labels import text
from axs6.synth.pages.pictures import COLOURS, INK, WIDTH, svg

HEIGHT: Final = 6.0
"""Height of the picture, in inches."""

LINE: Final = 0.12
"""Height that a line of text takes, in inches."""


@dataclass(frozen=True)
class Box:
    """A part at its place: its name, size and top, the level, a colour and whether it has parts."""

    name: str
    size: float
    top: float
    level: int
    colour: str
    whole: bool


def boxes(name: str, size: float, parts: Mapping[str, float]) -> list[Box]:
    """The whole and its parts, each beside the part that it belongs to, from the top.

    Parts have the colour of the first level of which there are several.

    Args:
        name, size: of the whole.
        parts: sizes by their paths, such as `dot/adder`, each after the one that it belongs to.
    """
    tops = {"": 0.0}
    colours: dict[str, str] = {}
    above = {path.rpartition("/")[0] for path in parts}
    counts = Counter(path.count("/") + 1 for path in parts)
    split = min((level for level, count in counts.items() if count > 1), default=1)
    found = [Box(name, size, 0.0, 0, COLOURS[0], bool(parts))]
    for path, part in parts.items():
        parent, _, own = path.rpartition("/")
        level = path.count("/") + 1
        colour = COLOURS[0]
        if level >= split:
            branch = "/".join(path.split("/")[:split])
            colour = colours.setdefault(branch, COLOURS[(len(colours) + 1) % len(COLOURS)])
        top = tops[path] = tops[parent]
        tops[parent] += part
        found.append(Box(own, part, top, level, colour, path in above))
    return found


def icicle(name: str, size: float, parts: Mapping[str, float], figure_name: str) -> str:
    """Draw the whole as a box as high as the picture, and each part beside what it belongs to.

    Heights are in proportion to sizes; the height that no part takes is the logic of the whole
    itself. Each part has its name, its size and its share, where there is room for a line.

    Args:
        name, size, parts: as `boxes` takes them.
        figure_name: what the sizes are.
    """
    found = boxes(name, size, parts)
    levels = 1 + max(box.level for box in found)

    def draw(figure: Any) -> None:
        figure.set_size_inches(WIDTH, HEIGHT)
        axes = figure.subplots()
        axes.set(xlim=(0, levels), ylim=(size, 0))
        axes.axis("off")
        for box in found:
            _draw(axes, box, box.size / size, text(figure_name, box.size))

    return svg(draw)


def _draw(axes: Any, box: Box, share: float, value: str) -> None:
    """Draw a box, tinted so that its text stands out on white and on black."""
    from matplotlib.patches import Rectangle

    tint = 0.5 if box.whole else 0.3
    looks: tuple[dict[str, Any], ...] = (
        {"facecolor": box.colour, "alpha": tint},
        {"fill": False, "edgecolor": INK},
    )
    for look in looks:
        axes.add_patch(Rectangle((box.level, box.top), 0.97, box.size, linewidth=0.5, **look))
    room = share * HEIGHT / LINE
    if room >= 1:
        between = "\n" if room >= 2 else "  "
        words = f"{box.name}{between}{value} ({share:.1%})"
        middle = box.top + box.size / 2
        axes.text(box.level + 0.03, middle, words, va="center", fontsize=7, linespacing=1.1)
