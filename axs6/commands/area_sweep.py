"""Measurement, tables and pages of `axs6 area`."""

import logging
import math
import sys
from collections.abc import Mapping, Sequence
from typing import Any

from rich.console import Console
from rich.progress import BarColumn, MofNCompleteColumn, Progress, TextColumn, TimeElapsedColumn
from rich.text import Text

from axs6.commands.area_timing import TimedOutput
from axs6.commands.output import print_table, verdict
from axs6.commands.report import ReportFiles
from axs6.hw.core.clock import clock_text
from axs6.synth.bound import unit_bound
from axs6.synth.energy import check_energy
from axs6.synth.energy_report import EnergyReport
from axs6.synth.energy_stimulus import Stimulus
from axs6.synth.errors import SynthesisError
from axs6.synth.flow import Synthesis
from axs6.synth.pages import page
from axs6.synth.pages.conditions import conditions, mapped_for, reports, telling_growth
from axs6.synth.pages.tables import growth_table, point_tables, results_table
from axs6.synth.sweep import Result, Sweep, sweep
from axs6.synth.sweep.growth import growth
from axs6.synth.sweep.points import Point
from axs6.synth.tables import notes, render, render_energy
from axs6.synth.targets import FPGAS
from axs6.tables import Table, rich_table

_log = logging.getLogger("axs6")


def measure(
    units: Sequence[str],
    expression: str | None,
    parameters: Mapping[str, Any],
    options: Synthesis,
    *,
    stimulus: Stimulus | None,
    timed: TimedOutput,
    runs: Mapping[str, Any],
    report: ReportFiles,
) -> bool:
    """Measure units, or a sweep of them; show the figures and write the files asked for.

    Args:
        units: their names.
        expression: what --sweep says, if it was given.
        parameters: of the units.
        options: how they are synthesised.
        stimulus: data of `axs6.synth.energy.energy`, if energies are asked for.
        timed: the mapped Verilog of the one unit and its timing, if they are asked for.
        runs: `timeout`, `jobs` and `scheduler` of `axs6.synth.sweep.sweep`.
        report: where to write.

    Returns:
        Whether all points are there, and meet the clock if there is one.

    Raises:
        ValueError: energies, a netlist or OpenSTA are asked for of a sweep.
        SynthesisError: nothing could be measured, or an energy that is not measured is asked for.
    """
    if stimulus and expression:
        raise ValueError("--energy measures units, not sweeps: leave out one of the two")
    for unit in units if stimulus else ():
        check_energy(unit, options)
    timed.check(units, expression, options)
    liberty = options.liberty
    report.check(*timed.paths(liberty), inputs=[liberty] if liberty else [])
    out = report.console()
    asked = {"parameters": parameters, "stimulus": stimulus, **runs, **vars(options)}
    done = _run(units, expression, asked, out)
    energies: dict[str, EnergyReport] = {}
    figures: Any
    if expression is None:
        figures, energies = _units(done, parameters, timed, runs["timeout"], out)
    else:
        _show(done, parameters, out)
        figures = {**done.to_dict(), "growth": [each.to_dict() for each in growth(done)]}
    report.write(figures, results_table(done))
    report.write_pages(lambda: page(done, ["axs6", *sys.argv[1:]], energies), out)
    if len(done.missing) == len(done.results):
        raise SynthesisError("no point of the sweep could be measured")
    met = [_shown_clock(result, list(done.axes), out) for result in done.results]
    return not done.missing and all(met)


def _run(
    units: Sequence[str], expression: str | None, arguments: dict[str, Any], out: Console
) -> Sweep:
    """Measure, with a line of progress on a terminal."""
    columns = (TextColumn("{task.description}"), BarColumn(), MofNCompleteColumn())
    with Progress(
        *columns, TimeElapsedColumn(), console=out, transient=True, disable=not out.is_terminal
    ) as bar:
        task = bar.add_task("synthesising", total=None)

        def advance(result: Result, done: int, total: int) -> None:
            if expression is None and result.reason:
                raise SynthesisError(result.reason)
            bar.update(task, completed=done, total=total)
            if expression is not None and not result.cached:
                _log.info("measured %s (%d of %d)", result.point.subject, done, total)

        return sweep(units, expression, progress=advance, **arguments)


def _units(
    done: Sweep,
    given: Mapping[str, Any],
    timed: TimedOutput,
    timeout: float,
    out: Console,
) -> tuple[list[dict[str, Any]], dict[str, EnergyReport]]:
    """Show the report of each unit, and its energy where it was measured.

    Returns:
        All that is known of each unit, and the energies by `Point.subject`.
    """
    figures: list[dict[str, Any]] = []
    energies = {}
    for result in done.results:
        point, measured = result.point, result.measured
        if measured is None:
            continue
        print_table(out, render(measured.report, measured.latency, _chosen_view(point, given)))
        found = {"parameters": point.parameters, "latency": measured.latency}
        found |= measured.report.to_dict()
        if known := unit_bound(point):
            out.print(Text(known.text(measured.report)), "", sep="\n")
            found["bound"] = known.to_dict(measured.report)
        if used := measured.energy:
            print_table(out, render_energy(point.unit, used))
            energies[point.subject] = used
            found["energy"] = used.to_dict()
        found |= timed.run(result, timeout, out)
        figures.append(found)
    return figures, energies


def _show(done: Sweep, given: Mapping[str, Any], out: Console) -> None:
    for subject, cells in point_tables(done).items():
        results = done.subjects[subject]
        known = reports(results)
        _print(out, f"{subject}, flattened{mapped_for(known)}", cells)
        chosen = _chosen_view(results[0].point, {**given, **done.axes})
        if said := [*conditions(known), *chosen]:
            out.print(*notes(said), "", sep="\n")
    grown = telling_growth(done)
    for subject, axis in dict.fromkeys((each.subject, each.axis) for each in grown):
        own = [each for each in grown if (each.subject, each.axis) == (subject, axis)]
        _print(out, f"Growth of {subject} with {axis}", growth_table(own))
    for result in done.missing:
        out.print(Text(f"missing {result.point.label(list(done.axes))}: {result.reason}"))
    earlier = sum(result.cached for result in done.results)
    counts = f"{earlier:,} measured earlier, {len(done.missing):,} missing"
    out.print(f"{len(done.results):,} points, {counts}")


def _shown_clock(result: Result, axes: Sequence[str], out: Console) -> bool:
    """Say whether a point meets the clock that was asked for, and by how much; say it too."""
    timing = result.measured.report.timing if result.measured else None
    if timing is None or timing.slack_ps is None or timing.clock_ps is None:
        return True
    met = timing.slack_ps >= 0
    text = f"{result.point.label(axes)}: clock of {clock_text(timing.clock_ps)}"
    if met:
        text += f" met with {timing.slack_ps:,.0f} ps to spare"
    elif timing.delay_ps:
        least = math.ceil(timing.delay_ps)
        text += f" missed by {-timing.slack_ps:,.0f} ps; {clock_text(least)} can be met"
    out.print(verdict(met, text))
    return met


def _chosen_view(point: Point, given: Mapping[str, Any]) -> list[str]:
    """A line with the view that was chosen for an FPGA; none where the user chose."""
    target = point.options.target
    if target not in FPGAS or point.view is None or "view" in given:
        return []
    return [f"view: {point.view}, as a rule the smaller on {target}; --view takes the other"]


def _print(out: Console, title: str, cells: Table) -> None:
    """Print a table under its title."""
    out.print(Text(title, style="bold"))
    print_table(out, rich_table(cells))
