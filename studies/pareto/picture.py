"""The picture of the Pareto study."""

from collections.abc import Sequence
from itertools import cycle
from typing import Any, Final

from axs6.studies.pareto.results import ParetoStudy
from axs6.studies.pareto.space import ParetoFormat
from axs6.studies.placing import place_names
from axs6.synth.pages.pictures import INK, in_shades, svg

MARKERS: Final = ("o", "s", "^", "D", "v", "P", "X", "*", "h", "p")
COLOURS: Final = (
    *("#56B4E9", "#009E73", "#D55E00", "#0072B2", "#E69F00", "#CC79A7", "#8C6BB1", "#B39B00"),
    *("#7F4F24", "#999999"),
)
"""Colours of Okabe and Ito's palette, distinct for any colour vision, and four more."""


LOOKS: Final[dict[bool, dict[str, Any]]] = {
    False: {"s": 11, "linewidths": 0, "alpha": 0.5},
    True: {"s": 36, "linewidths": 0.9, "edgecolors": INK, "zorder": 4},
}
"""The marks of formats without names, a cloud, and of those with names."""


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

    known = study.measurements

    def draw(figure: Any) -> None:
        figure.set_size_inches(9, 7)
        axes = figure.subplots()
        _families(axes, study, configurations)
        _frontier(axes, study)
        axes.set_xscale("log", base=2)
        axes.xaxis.set_major_formatter(lambda value, _: f"{value:g}")
        axes.set_xlabel("area of a dot product x memory of a tile (FP8 = 1)")
        axes.set_ylabel("QSNR (dB)")
        axes.grid(visible=True, color="#808080", alpha=0.25, linewidth=0.6)
        legend = figure.legend(loc="outside lower center", ncols=6, fontsize=8)
        for handle in legend.legend_handles:
            handle.set_alpha(1)
        measured = [(x, known[x.name]) for x in configurations if x.name in known]
        place_names(
            axes,
            [(y.format, y.cost, y.qsnr_db) for x, y in measured if x.named],
            [(y.cost, y.qsnr_db) for x, y in measured if not x.named],
            [(x.cost, x.qsnr_db) for x in (known[name] for name in study.frontier)],
        )

    return in_shades(svg(draw))


def family_looks(configurations: Sequence[ParetoFormat]) -> dict[str, tuple[str, str]]:
    """The colour and the marker of each family, in their order."""
    families = dict.fromkeys(x.family for x in configurations)
    return dict(zip(families, cycle(zip(COLOURS, MARKERS, strict=True)), strict=False))


def _families(axes: Any, study: ParetoStudy, configurations: Sequence[ParetoFormat]) -> None:
    for family, (colour, marker) in family_looks(configurations).items():
        own = [x for x in configurations if x.family == family and x.name in study.measurements]
        for named, look in LOOKS.items():
            points = [study.measurements[x.name] for x in own if x.named == named]
            axes.scatter(
                [x.cost for x in points],
                [x.qsnr_db for x in points],
                color=colour,
                marker=marker,
                label=family if own and not named else None,
                **look,
            )


def _frontier(axes: Any, study: ParetoStudy) -> None:
    frontier = [study.measurements[name] for name in study.frontier]
    line = {"color": INK, "linewidth": 1, "label": "frontier"}
    axes.step([x.cost for x in frontier], [x.qsnr_db for x in frontier], where="post", **line)
    knees = [study.measurements[name] for name in study.knees]
    ring = {"s": 100, "facecolors": "none", "edgecolors": INK, "label": "knee"}
    axes.scatter([x.cost for x in knees], [x.qsnr_db for x in knees], **ring)
