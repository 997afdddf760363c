"""Reports of area and energy as tables for a terminal."""

from collections.abc import Iterable

from rich.box import SIMPLE_HEAD
from rich.console import Group, RenderableType
from rich.table import Table
from rich.text import Text

from axs6.synth.energy_report import EnergyReport
from axs6.synth.pages.conditions import conditions, mapped_for
from axs6.synth.pages.energy import LEFT_OUT, energy_table, energy_title
from axs6.synth.pages.labels import label
from axs6.synth.pages.tables import cells_table, parts_table, totals_table
from axs6.synth.report import AreaReport
from axs6.tables import rich_table


def render(report: AreaReport, latency: int | None = None, others: Iterable[str] = ()) -> Group:
    """Return the totals, the cells by type and, where there are submodules, the breakdown.

    Args:
        report: of a unit.
        latency: cycles from an input of the unit to its output, if they are to be shown.
        others: more lines below the totals.
    """
    source = report.library or report.target
    head = Text(f"{report.top} on {source}, flattened{mapped_for([report])}", style="bold")
    tools = Text(f"Yosys {report.tools['yosys']}, pyosys {report.tools['pyosys']}", style="dim")
    shown: list[RenderableType] = [head, tools]
    shown += [rich_table(totals_table(report)), *_timing(report)]
    shown += notes([*conditions([report]), *_placed(report), *_latency(latency), *others])
    shown.append(rich_table(cells_table(report)))
    if report.parts:
        main = label(next(iter(report.unflattened.figures))).short
        note = "Each row is one instance; the share is that of all instances in the {}."
        head = Text("By submodule, hierarchy kept: differs from the flattened total", style="bold")
        shown += [head, Text(note.format(main), style="dim"), rich_table(parts_table(report))]
    return Group(*shown)


def render_energy(name: str, report: EnergyReport) -> Group:
    """Return the energy of the unit called `name`, and that of the reference beside it."""
    head = Text(energy_title(report), style="bold")
    return Group(head, rich_table(energy_table(name, report)), Text(LEFT_OUT, style="dim"))


def notes(lines: Iterable[str]) -> list[RenderableType]:
    """Return lines that belong to a table."""
    return [Text(line, style="dim") for line in lines]


def _timing(report: AreaReport) -> list[RenderableType]:
    """Return the longest path."""
    timing = report.timing
    if timing is None:
        return []
    table = Table(box=SIMPLE_HEAD, padding=(0, 1, 0, 0))
    figures = {
        "delay ps": timing.delay_ps and f"{timing.delay_ps:,.0f}",
        "Fmax MHz": timing.fmax_mhz and f"{timing.fmax_mhz:,.1f}",
        "clock ps": timing.clock_ps and f"{timing.clock_ps:,.0f}",
        "slack ps": f"{timing.slack_ps:,.0f}" if timing.slack_ps is not None else None,
        "levels": f"{timing.levels:,d}" if timing.levels is not None else None,
    }
    shown = {name: text for name, text in figures.items() if text}
    for name in shown:
        table.add_column(name, justify="right")
    table.add_column("longest path from")
    table.add_column("to")
    table.add_row(*shown.values(), Text(timing.start or "-"), Text(timing.end or "-"))
    return [table]


def _placed(report: AreaReport) -> list[str]:
    """Return what the device holds after place and route."""
    placed = report.placement
    if placed is None:
        return []
    parts = (f"{n:,d} of {placed.available[name]:,d} {name}" for name, n in placed.used.items())
    return [f"placed, with the registers at the ports: {', '.join(parts)}"]


def _latency(cycles: int | None) -> list[str]:
    return [] if cycles is None else [f"latency: {cycles} {'cycle' if cycles == 1 else 'cycles'}"]
