"""The picture of the Pareto study."""

from collections.abc import Sequence
from typing import Any, Final

from axs6.studies.pareto.results import ParetoStudy
from axs6.studies.pareto.space import ParetoFormat
from axs6.synth.pages.pictures import INK, in_shades, svg

MARKERS: Final = ("o", "s", "^", "D", "v", "P", "X", "*", "p")
COLOURS: Final = (
    *("#56B4E9", "#009E73", "#D55E00", "#0072B2", "#E69F00", "#CC79A7", "#8C6BB1", "#B39B00"),
    "#999999",
)
"""Colours of Okabe and Ito's palette, distinct for any colour vision, and three more."""


PLACES: Final = tuple(
    (right * x, up, side)
    for up in (3, -8, 10, -15, 17, -22, 24, -29)
    for right, x, side in ((1, 4, "left"), (-1, 4, "right"))
)
"""Positions of a name: points to the right and up, and the alignment."""

RADIUS: Final = 2.5
"""Radius of a mark, in points."""


def picture(study: ParetoStudy, configurations: Sequence[ParetoFormat]) -> str:
    """Draw QSNR against area times memory: a point for each format, the frontier, the names.

    Knees of the frontier are ringed. The same study gives the same text.

    Args:
        study: with at least one measurement.
        configurations: the formats with their families; others are not drawn.

    Returns:
        An SVG file, light or dark as its viewer asks for.

    Raises:
        ImportError: matplotlib is not installed.
    """

    def draw(figure: Any) -> None:
        figure.set_size_inches(8, 5.6)
        axes = figure.subplots()
        _families(axes, study, configurations)
        _frontier(axes, study)
        axes.set_xscale("log", base=2)
        axes.xaxis.set_major_formatter(lambda value, _: f"{value:g}")
        axes.set_xlabel("area of a dot product x memory of a tile (FP8 = 1)")
        axes.set_ylabel("QSNR (dB)")
        axes.grid(visible=True, color="#808080", alpha=0.25, linewidth=0.6)
        figure.legend(loc="outside lower center", ncols=6, fontsize=8)
        named = [study.measurements.get(x.name) for x in configurations if x.named]
        write_names(axes, [(x.format, x.cost, x.qsnr_db) for x in named if x is not None])

    return in_shades(svg(draw))


def _families(axes: Any, study: ParetoStudy, configurations: Sequence[ParetoFormat]) -> None:
    families = list(dict.fromkeys(x.family for x in configurations))
    for family, colour, marker in zip(families, COLOURS, MARKERS, strict=True):
        points = [
            study.measurements[x.name]
            for x in configurations
            if x.family == family and x.name in study.measurements
        ]
        if points:
            look = {"s": 16, "color": colour, "marker": marker, "linewidths": 0, "alpha": 0.8}
            axes.scatter(
                [x.cost for x in points], [x.qsnr_db for x in points], label=family, **look
            )


def _frontier(axes: Any, study: ParetoStudy) -> None:
    frontier = [study.measurements[name] for name in study.frontier]
    line = {"color": INK, "linewidth": 1, "label": "frontier"}
    axes.step([x.cost for x in frontier], [x.qsnr_db for x in frontier], where="post", **line)
    knees = [study.measurements[name] for name in study.knees]
    ring = {"s": 60, "facecolors": "none", "edgecolors": INK, "label": "knee"}
    axes.scatter([x.cost for x in knees], [x.qsnr_db for x in knees], **ring)


def write_names(axes: Any, points: Sequence[tuple[str, float, float]]) -> list[Any]:
    """Write each name beside its point, in the first position within the axes that covers no other
    name and no point; where there is none, the one that covers the fewest points.

    Args:
        points: names with x and y.

    Returns:
        The texts.
    """
    from matplotlib.transforms import Bbox

    axes.figure.draw_without_rendering()
    inside = axes.get_window_extent()
    radius = RADIUS * axes.figure.dpi / 72
    marks = [
        Bbox.from_extents(x - radius, y - radius, x + radius, y + radius)
        for x, y in axes.transData.transform([(x, y) for _, x, y in points])
    ]
    placed: list[Any] = []
    texts: list[Any] = []
    for index, (name, *point) in enumerate(points):
        at = {"xy": point, "xytext": (0, 0), "textcoords": "offset points", "fontsize": 7}
        text = axes.annotate(name, **at)
        found: list[tuple[int, int]] = []
        for number, (right, up, side) in enumerate(PLACES):
            text.set(position=(right, up), horizontalalignment=side)
            extent = text.get_window_extent()
            if not extent.padded(1).count_overlaps(placed):
                others = [*marks[:index], *marks[index + 1 :]]
                outside = not (inside.x0 < extent.x0 and extent.x1 < inside.x1)
                found.append((extent.count_overlaps(others) + len(marks) * outside, number))
                if found[-1][0] == 0:
                    break
        right, up, side = PLACES[min(found)[1] if found else -1]
        text.set(position=(right, up), horizontalalignment=side)
        placed.append(text.get_window_extent())
        texts.append(text)
    return texts
