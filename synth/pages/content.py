"""Sections of a report page about a sweep."""

import shlex
from collections.abc import Iterator, Mapping, Sequence
from importlib.metadata import version
from itertools import groupby

from axs6.synth.energy_report import EnergyReport
from axs6.synth.pages import pictures
from axs6.synth.pages.conditions import (
    area_unit,
    conditions,
    mapped_for,
    reports,
    telling,
    telling_growth,
)
from axs6.synth.pages.document import Block, Page, Picture, Section
from axs6.synth.pages.energy import LEFT_OUT, energy_table, energy_title
from axs6.synth.pages.icicle import icicle
from axs6.synth.pages.labels import label
from axs6.synth.pages.tables import (
    cells_table,
    growth_table,
    missing_table,
    parts_table,
    point_tables,
)
from axs6.synth.report import AreaReport
from axs6.synth.sweep.growth import Growth, numeric, series
from axs6.synth.sweep.points import Measured, Point, Result, Sweep
from axs6.tables import text_table

Pair = tuple[Point, Measured]

_LEAST_SHARE = 0.01
_FEWEST_PARTS = 2


def page(
    sweep: Sweep,
    command: Sequence[str] = (),
    energies: Mapping[str, EnergyReport] | None = None,
) -> Page:
    """Put together the report page of a sweep.

    Args:
        sweep: the results; one without axes gives the totals and submodules of each unit.
        command: the words of the command that made it, for the page to show.
        energies: those of units of a sweep without axes, by `Point.subject`.

    Raises:
        ModuleNotFoundError: matplotlib is not installed.
    """
    sections = [Section("Missing", 1, [missing_table(sweep)])] if sweep.missing else []
    grown = telling_growth(sweep)
    for name, results in sweep.subjects.items():
        own = [each for each in grown if each.subject == name]
        sections += _subject(name, results, sweep, own)
        if used := (energies or {}).get(name):
            sections.append(_energy(name, results[0].point.unit, used))
    rows = [["made by", shlex.join(command)]] if command else []
    rows += [["axs6", version("axs6")], *([name, tool] for name, tool in sweep.tools.items())]
    title = f"What {_listed(sweep.units)} takes"
    return Page(title, text_table(["", ""], rows, left=2), sections)


def _listed(words: Sequence[str]) -> str:
    return f"{', '.join(words[:-1])} or {words[-1]}" if len(words) > 1 else words[0]


def _subject(
    name: str, results: Sequence[Result], sweep: Sweep, grown: Sequence[Growth]
) -> Iterator[Section]:
    found = [(result.point, result.measured) for result in results if result.measured]
    if not found:
        return
    constant = {k: v for k, v in found[0][0].parameters.items() if k not in sweep.axes}
    fixed = ", ".join(f"{key} = {value}" for key, value in constant.items())
    known = reports(results)
    intro = f"Figures of the flattened designs{mapped_for(known)}; the latency is in cycles."
    texts = [*([f"All points have {fixed}."] if fixed else []), intro]
    yield Section(name, 1, [*texts, point_tables(sweep)[name], *conditions(known)])
    figures = telling(results)
    axes = numeric(sweep.axes)
    if figures and not axes:
        yield Section(f"{name}, compared", 2, [*_comparison(name, found, sweep, figures)])
    for axis in axes if figures else []:
        lines = series(results, sweep.axes, axis)
        title = f"{name} over {axis}"
        caption = "A line breaks where a point is missing." if sweep.missing else ""
        picture = Picture(title, pictures.curves(axis, lines, figures), caption)
        yield Section(title, 2, [picture])
    for axis, group in groupby(grown, lambda each: each.axis):
        yield _growth(name, axis, list(group))
    yield from _breakdown(name, found, sweep)


def _comparison(
    name: str, found: Sequence[Pair], sweep: Sweep, figures: Sequence[str]
) -> Iterator[Picture]:
    swept = [axis for axis in sweep.axes if axis != "target"]
    for figure in figures:
        values = {
            point.settings(swept): measured.figures[figure]
            for point, measured in found
            if figure in measured.figures
        }
        unit = area_unit(sweep.subjects[name])
        svg = pictures.bars(list(values), list(values.values()), figure, unit=unit)
        yield Picture(f"{label(figure, unit).long} of {name}", svg)


def _growth(name: str, axis: str, grown: Sequence[Growth]) -> Section:
    """How figures grow along an axis; the picture is of the first of them."""
    title = f"Growth of {name} with {axis}"
    main = [each for each in grown if each.figure == grown[0].figure]
    caption = "Straight lines that fit best, their equations, and how far the points are off them."
    explained = (
        f"The exponent k is that of the power law c·xᵏ that fits best: 1 for what is proportional "
        f"to {axis}. The straight line that fits best has the value “at 0” and the “slope”; “off” "
        "is the largest distance of a point from it, as a share of the point's value."
    )
    picture = Picture(title, pictures.growth(main), caption)
    return Section(title, 2, [picture, explained, growth_table(grown)])


def _energy(name: str, unit: str, used: EnergyReport) -> Section:
    blocks: list[Block] = [f"{energy_title(used)}.", energy_table(unit, used), LEFT_OUT]
    return Section(f"Energy of {name}", 2, blocks)


def _breakdown(name: str, found: Sequence[Pair], sweep: Sweep) -> Iterator[Section]:
    """The submodules and cells of the largest design."""
    point, measured = max(found, key=lambda pair: next(iter(pair[1].figures.values())))
    report = measured.report
    at = point.label(list(sweep.axes))
    which = [f"Those of {at}, the largest of the points."] if len(found) > 1 else []
    if report.parts:
        title = f"Submodules of {name}"
        yield Section(title, 2, [*which, *_submodules(title, report)])
    yield Section(f"Cells of {name}", 2, [*which, cells_table(report)])


def _submodules(title: str, report: AreaReport) -> Iterator[Block]:
    main, whole = next(iter(report.unflattened.figures.items()))
    sizes = {part.path: part.instances * part.each.figures[main] for part in report.parts}
    shown = {path: size for path, size in sizes.items() if size >= _LEAST_SHARE * whole}
    if len(shown) >= _FEWEST_PARTS:
        named = label(main, report.area_unit).long
        caption = (
            f"Heights are the {named}. Parts stand to the right of what they belong to, all "
            f"instances alike together, from {_LEAST_SHARE:.0%} of the whole on; the table has "
            "those without room for a name."
        )
        yield Picture(title, icicle(report.top, whole, shown, main), caption)
    yield (
        "The hierarchy is kept, so the sum differs from the flattened total. A row of the table is "
        "one instance; its share is that of all alike."
    )
    yield parts_table(report)
