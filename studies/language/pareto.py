"""Perplexity of formats against the area and memory of their hardware."""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any, Final

from axs6.studies.language.perplexity import Study
from axs6.studies.language.request import Setting
from axs6.studies.pareto.data import Measurement, measurements_of, read_rows
from axs6.studies.pareto.picture import LOOKS, family_looks
from axs6.studies.pareto.space import BASELINE, ParetoFormat
from axs6.studies.placing import place_names
from axs6.synth.pages.pictures import INK, in_shades, svg

SURE: Final = 2
"""Standard errors above FP32 from which a perplexity counts as worse."""


@dataclass(frozen=True)
class CostPoint:
    """A format with its perplexity and its cost.

    Args:
        format: its name.
        cost: area of a dot product times memory of a tile, over FP8's.
        above: perplexity over FP32's, minus 1; where that is less than two standard errors, the sum
            of both, which it hardly exceeds.
        bounded: whether it is that sum.
    """

    format: str
    cost: float
    above: float
    bounded: bool


def read_costs(path: Path) -> dict[str, Measurement]:
    """The points of a file of `axs6 study pareto`, of the conditions of its baseline.

    Raises:
        OSError: it cannot be read.
        ValueError: a line is invalid, or the baseline is missing.
    """
    rows = read_rows(path)
    first = rows.get(BASELINE[0])
    return measurements_of(
        {name: row for name, row in rows.items() if first and row.conditions == first.conditions}
    )


def cost_points(study: Study, costs: Mapping[str, Measurement]) -> list[CostPoint]:
    """The formats of weights and activations in a study that have a cost, by this.

    Settings with anything else than one format and the head in FP32 are left out.

    Raises:
        ValueError: there is none.
    """
    found = []
    for row in study.rows:
        name = row.setting.weights
        if name is None or name not in costs or row.setting != Setting(name, name):
            continue
        above, error = row.ratio - 1, row.ratio_error or 0.0
        bounded = above < SURE * error
        most = max(above, 0.0) + SURE * error if bounded else above
        if most > 0:
            found.append(CostPoint(name, costs[name].cost, most, bounded))
    if not found:
        raise ValueError("the picture needs a format of weights and activations that has a cost")
    return sorted(found, key=lambda point: point.cost)


def frontier_of(points: Sequence[CostPoint]) -> list[CostPoint]:
    """The formats that no other beats at equal or lower cost, by cost."""
    kept: list[CostPoint] = []
    for each in sorted(points, key=lambda point: (point.cost, point.above)):
        if not kept or each.above < kept[-1].above:
            kept.append(each)
    return kept


def picture(study: Study, points: Sequence[CostPoint], formats: Sequence[ParetoFormat]) -> str:
    """Draw perplexity above FP32's against area times memory, with the names of the formats.

    The same points give the same text.

    Args:
        study: names the model and FP32's perplexity.
        points: at least one.
        formats: formats with their families, which have colours and markers.

    Returns:
        An SVG file, light or dark as its viewer asks for.

    Raises:
        ImportError: matplotlib is not installed.
    """

    def draw(figure: Any) -> None:
        figure.set_size_inches(8, 5.6)
        _draw(figure, study, points, formats)

    return in_shades(svg(draw))


def _draw(
    figure: Any, study: Study, points: Sequence[CostPoint], formats: Sequence[ParetoFormat]
) -> list[Any]:
    """Draw the picture, and return the names in it."""
    axes = figure.subplots()
    families = {each.name: each.family for each in formats}
    for family, (colour, marker) in family_looks(formats).items():
        own = [x for x in points if families.get(x.format) == family]
        if own:
            look = {"color": colour, "marker": marker, "label": family, **LOOKS[True]}
            axes.scatter([x.cost for x in own], [x.above for x in own], **look)
    bounded = [x for x in points if x.bounded]
    if bounded:
        look = {"s": 100, "facecolors": "none", "edgecolors": INK, "linewidths": 0.8}
        label = "at most; no different from FP32"
        axes.scatter([x.cost for x in bounded], [x.above for x in bounded], label=label, **look)
    best = frontier_of(points)
    line = {"color": INK, "linewidth": 1, "label": "frontier", "where": "post"}
    axes.step([x.cost for x in best], [x.above for x in best], **line)
    axes.set_xscale("log", base=2)
    axes.set_yscale("log")
    axes.xaxis.set_major_formatter(lambda value, _: f"{value:g}")
    axes.yaxis.set_major_formatter(lambda value, _: f"{value:,.12g}")
    axes.set_xlabel("area of a dot product x memory of a tile (FP8 = 1)")
    axes.set_ylabel(f"perplexity over FP32's {study.rows[0].perplexity:.4g}, minus 1")
    axes.grid(visible=True, color="#808080", alpha=0.25, linewidth=0.6)
    axes.margins(0.14, 0.06)
    figure.legend(loc="outside lower center", ncols=6, fontsize=8)
    names = [(x.format, x.cost, x.above) for x in points]
    return place_names(axes, names, steps=[(x.cost, x.above) for x in best])
