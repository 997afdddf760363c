"""Conditions of all figures of a design: goal of mapping, units, timing model."""

from collections.abc import Collection, Iterable, Sequence

from axs6.synth.pages.labels import derived
from axs6.synth.report import AreaReport
from axs6.synth.scripts import GOALS
from axs6.synth.sweep.growth import Growth, growth, varying
from axs6.synth.sweep.points import Result, Sweep


def reports(results: Iterable[Result]) -> list[AreaReport]:
    """The reports of the results that have one."""
    return [result.measured.report for result in results if result.measured]


def area_unit(results: Iterable[Result]) -> str | None:
    """Unit of the areas of the results, all on one target; None if unknown."""
    return next((report.area_unit for report in reports(results)), None)


def mapped_for(found: Collection[AreaReport]) -> str:
    """Goal of mapping, and adder cells if they are used: `, for speed, adder cells`.

    A goal that differs between the reports is left out, and FPGAs have none.
    """
    goals = {report.optimise for report in found}
    goal = goals.pop() if len(goals) == 1 else None
    adders = any(report.adder_cells for report in found)
    if goal and goal not in GOALS:
        goal = f"the clock ({goal})"
    return (f", for {goal}" if goal else "") + (", adder cells" if adders else "")


def conditions(found: Collection[AreaReport]) -> list[str]:
    """The timing model and, where the figures' names lack it, the unit of areas, in a line each."""
    timings = [f"timing: {report.timing.model}" for report in found if report.timing]
    units = [f"area: {report.area_unit}" for report in found if report.library]
    return list(dict.fromkeys([*timings, *units]))


def telling(results: Sequence[Result]) -> list[str]:
    """The figures that differ between results, without redundant ones."""
    figures = {name for result in results if result.measured for name in result.measured.figures}
    return [figure for figure in varying(results) if not derived(figure, figures)]


def telling_growth(sweep: Sweep) -> list[Growth]:
    """How the `telling` figures of each design grow."""
    shown = {subject: telling(results) for subject, results in sweep.subjects.items()}
    return [each for each in growth(sweep) if each.figure in shown[each.subject]]
