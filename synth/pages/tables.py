"""The tables of a report: points of a sweep, growth, submodules."""

from collections.abc import Iterable, Mapping, Sequence
from functools import partial
from typing import Any

from axs6.synth.pages.conditions import area_unit
from axs6.synth.pages.labels import label, text
from axs6.synth.report import AreaReport, Part
from axs6.synth.sweep.growth import Growth
from axs6.synth.sweep.points import Measured, Result, Sweep, all_figures
from axs6.tables import Column, Table, table_of, text_table, words


def point_tables(sweep: Sweep) -> dict[str, Table]:
    """The points that were measured of each design, by `Point.subject`."""
    axes = [axis for axis in sweep.axes if axis != "target"]
    tables: dict[str, Table] = {}
    for subject, results in sweep.subjects.items():
        rows = [_row(result, axes) for result in results if result.measured]
        columns = [*map(words, axes), _LATENCY, *_figure_columns(results)]
        if rows:
            tables[subject] = table_of(columns, rows)
    return tables


def results_table(sweep: Sweep) -> Table:
    """All points in one table, for CSV and LaTeX: a row for each, also for those missing.

    The energies of units whose energy was measured are those of an item and of an operation, a MAC
    or a value.
    """
    columns = [
        words("unit"),
        *map(words, sweep.axes),
        Column("parameters", None),
        _LATENCY,
        *_figure_columns(sweep.results),
        *_energy_columns(sweep.results),
        Column("missing", None),
    ]
    return table_of(columns, [_row(result, [*sweep.axes]) for result in sweep.results])


_LATENCY = Column("latency", "latency")


def _row(result: Result, axes: Sequence[str]) -> dict[str, Any]:
    """A point and its figures by the names of their columns."""
    point, measured = result.point, result.measured
    found = {axis: point.value(axis) for axis in axes}
    found |= {"unit": point.unit, "parameters": point.parameters, "missing": result.reason}
    return found | (_figures(measured) if measured else {})


def _figures(measured: Measured) -> dict[str, Any]:
    found: dict[str, Any] = {"latency": measured.latency, **measured.figures}
    if used := measured.energy:
        found |= {
            "energy_per_item": used.measured.per_item,
            "energy_error": used.measured.standard_error,
            "energy_per_operation": used.measured.per_operation,
        }
    return found


def _figure_columns(results: Iterable[Result]) -> list[Column]:
    """A column for each figure that one of the results has."""
    known = [result for result in results if result.measured]
    names = dict.fromkeys(x for each in known if each.measured for x in each.measured.figures)
    return _columns(names, area_unit(known))


def _energy_columns(results: Iterable[Result]) -> list[Column]:
    energies = [x.measured.energy for x in results if x.measured and x.measured.energy]
    if not energies:
        return []
    units = " or ".join(dict.fromkeys(each.unit for each in energies))
    operations = " or ".join(dict.fromkeys(each.operation for each in energies))
    return [
        Column("energy_per_item", f"{units} an item", ",.0f"),
        Column("energy_error", "+-", ",.0f"),
        Column("energy_per_operation", f"{units} a {operations}", ",.1f"),
    ]


def missing_table(sweep: Sweep) -> Table:
    """The points that were not measured, and why."""
    axes = list(sweep.axes)
    rows = [[result.point.label(axes), result.reason or ""] for result in sweep.missing]
    return text_table(["point", "reason"], rows, left=2)


def growth_table(found: Sequence[Growth]) -> Table:
    """The fits of several figures and series: exponent, straight line and distance from it."""
    rows = [
        [label(each.figure, area_unit(each.line.results)).long, each.line.name, *_fit(each)]
        for each in found
    ]
    return text_table(["figure", "at", "points", "exponent", "at 0", "slope", "off"], rows, left=2)


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
    return table_of(_columns(figures, report.area_unit), [figures])


def cells_table(report: AreaReport) -> Table:
    """The cells of a flattened design by type."""
    return Table([words("cell"), Column("count", "count", ",d")], [*report.total.cells.items()])


def parts_table(report: AreaReport) -> Table:
    """The submodules of a design, one instance in each row, and the share of all alike."""
    figures = report.unflattened.figures
    main, whole = next(iter(figures.items()))
    rows: list[Mapping[str, Any]] = [{"part": report.top, "count": 1, **figures, "share": 1.0}]
    for part in report.parts:
        share = part.instances * part.each.figures[main] / whole if whole else 0.0
        known = {"part": "  " + indented(part), "count": part.instances, "share": share}
        rows.append({**known, **part.each.figures})
    columns = _columns(figures, report.area_unit)
    counts, shares = Column("count", "count", ",d"), Column("share", "share", ".1%")
    return table_of([words("part"), counts, *columns, shares], rows)


def indented(part: Part) -> str:
    """The last name of a part's path, two spaces in for each level above."""
    *above, name = part.path.split("/")
    return "  " * len(above) + name


def _columns(figures: Iterable[str], unit: str | None) -> list[Column]:
    return [Column(name, label(name, unit).short, partial(text, name)) for name in figures]
