"""The tables of a report: points of a sweep, growth, submodules."""

from collections.abc import Iterable, Sequence

from axs6.synth.pages.conditions import area_unit
from axs6.synth.pages.document import Table
from axs6.synth.pages.labels import label, text
from axs6.synth.report import AreaReport, Part
from axs6.synth.sweep.growth import Growth
from axs6.synth.sweep.points import Sweep, all_figures


def point_tables(sweep: Sweep) -> dict[str, Table]:
    """The points that were measured of each design, by `Point.subject`."""
    axes = [axis for axis in sweep.axes if axis != "target"]
    tables: dict[str, Table] = {}
    for subject, results in sweep.subjects.items():
        found = [(result.point, result.measured) for result in results if result.measured]
        names = dict.fromkeys(name for _, measured in found for name in measured.figures)
        rows = [
            [
                *(str(point.value(axis)) for axis in axes),
                str(measured.latency),
                *(text(name, measured.figures.get(name)) for name in names),
            ]
            for point, measured in found
        ]
        columns = [*axes, "latency", *_columns(names, area_unit(results))]
        if rows:
            tables[subject] = Table(columns, rows, left=len(axes))
    return tables


def missing_table(sweep: Sweep) -> Table:
    """The points that were not measured, and why."""
    axes = list(sweep.axes)
    rows = [[result.point.label(axes), result.reason or ""] for result in sweep.missing]
    return Table(["point", "reason"], rows, left=2)


def growth_table(found: Sequence[Growth]) -> Table:
    """The fits of several figures and series: exponent, straight line and distance from it."""
    rows = [
        [label(each.figure, area_unit(each.line.results)).long, each.line.name, *_fit(each)]
        for each in found
    ]
    return Table(["figure", "at", "points", "exponent", "at 0", "slope", "off"], rows, left=2)


def _fit(found: Growth) -> list[str]:
    fit = found.fit
    return [
        str(fit.points),
        "-" if fit.exponent is None else f"{fit.exponent:.3f}",
        f"{fit.intercept:,.4g}",
        f"{fit.slope:,.4g}",
        "-" if fit.deviation is None else f"{fit.deviation:.2%}",
    ]


def totals_table(report: AreaReport) -> Table:
    """The figures of a flattened design, in one row."""
    figures = all_figures(report)
    return Table(_columns(figures, report.area_unit), [_texts(figures)], left=0)


def cells_table(report: AreaReport) -> Table:
    """The cells of a flattened design by type."""
    rows = [[cell, f"{count:,d}"] for cell, count in report.total.cells.items()]
    return Table(["cell", "count"], rows)


def parts_table(report: AreaReport) -> Table:
    """The submodules of a design, one instance in each row, and the share of all alike."""
    figures = report.unflattened.figures
    main, whole = next(iter(figures.items()))
    rows = [[report.top, "1", *_texts(figures), "100.0%"]]
    for part in report.parts:
        share = part.instances * part.each.figures[main] / whole if whole else 0.0
        name = "  " + indented(part)
        rows.append([name, f"{part.instances:,d}", *_texts(part.each.figures), f"{share:.1%}"])
    return Table(["part", "count", *_columns(figures, report.area_unit), "share"], rows)


def indented(part: Part) -> str:
    """The last name of a part's path, two spaces in for each level above."""
    *above, name = part.path.split("/")
    return "  " * len(above) + name


def _columns(figures: Iterable[str], unit: str | None) -> list[str]:
    return [label(name, unit).short for name in figures]


def _texts(figures: dict[str, float]) -> list[str]:
    return [text(name, value) for name, value in figures.items()]
