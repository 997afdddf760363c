"""The tables of a report: points of a sweep, growth, submodules."""

from collections.abc import Sequence

from axs6.synth.pages.document import Table
from axs6.synth.pages.labels import label, text
from axs6.synth.report import AreaReport, Part
from axs6.synth.sweep.growth import Growth
from axs6.synth.sweep.points import Sweep


def point_tables(sweep: Sweep) -> list[Table]:
    """The points that were measured, a table for each set of figures."""
    tables: dict[tuple[str, ...], list[list[str]]] = {}
    for result in sweep.results:
        if found := result.measured:
            row = [
                result.point.subject,
                *(str(result.point.value(axis)) for axis in sweep.axes),
                str(found.latency),
                *_texts(found.figures),
            ]
            tables.setdefault(tuple(found.figures), []).append(row)
    left = 1 + len(sweep.axes)
    return [
        Table(
            ["design", *sweep.axes, "latency", *(label(name).short for name in names)], rows, left
        )
        for names, rows in tables.items()
    ]


def missing_table(sweep: Sweep) -> Table:
    """The points that were not measured, and why."""
    axes = list(sweep.axes)
    rows = [[result.point.label(axes), result.reason or ""] for result in sweep.missing]
    return Table(["point", "reason"], rows, left=2)


def growth_table(found: Sequence[Growth]) -> Table:
    """The fits of several figures and series: exponent, straight line and distance from it."""
    rows = [[label(each.figure).long, each.line.name, *_fit(each)] for each in found]
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


def parts_table(report: AreaReport) -> Table:
    """The submodules of a design, one instance in each row, and the share of all alike."""
    figures = report.unflattened.figures
    main, whole = next(iter(figures.items()))
    rows = [[report.top, "1", *_texts(figures), "100.0%"]]
    for part in report.parts:
        share = part.instances * part.each.figures[main] / whole if whole else 0.0
        name = "  " + indented(part)
        rows.append([name, f"{part.instances:,d}", *_texts(part.each.figures), f"{share:.1%}"])
    return Table(["part", "count", *(label(name).short for name in figures), "share"], rows)


def indented(part: Part) -> str:
    """The last name of a part's path, two spaces in for each level above."""
    *above, name = part.path.split("/")
    return "  " * len(above) + name


def _texts(figures: dict[str, float]) -> list[str]:
    return [text(name, value) for name, value in figures.items()]
