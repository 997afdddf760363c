"""Area reports as tables for a terminal."""

from rich.box import SIMPLE_HEAD
from rich.console import Group, RenderableType
from rich.table import Table
from rich.text import Text

from axs6.synth.pages import document
from axs6.synth.pages.labels import label
from axs6.synth.pages.tables import cells_table, parts_table, totals_table
from axs6.synth.report import AreaReport


def render(report: AreaReport) -> Group:
    """Return the totals, the cells by type and, where there are submodules, the breakdown."""
    head = Text(f"{report.top} on {report.library or report.target}, flattened", style="bold")
    if report.optimise:
        adders = ", adder cells" if report.adder_cells else ""
        head.append(f", for {report.optimise}{adders}")
    tools = Text(f"Yosys {report.tools['yosys']}, pyosys {report.tools['pyosys']}", style="dim")
    shown: list[RenderableType] = [head, tools]
    shown += [rich_table(totals_table(report)), *_timing(report), rich_table(cells_table(report))]
    if report.parts:
        main = label(next(iter(report.unflattened.figures))).short
        note = "Each row is one instance; the share is that of all instances in the {}."
        head = Text("By submodule, hierarchy kept: differs from the flattened total", style="bold")
        shown += [head, Text(note.format(main), style="dim"), rich_table(parts_table(report))]
    return Group(*shown)


def rich_table(cells: document.Table) -> Table:
    """A table of a report page, for a terminal."""
    table = Table(box=SIMPLE_HEAD, padding=(0, 1, 0, 0))
    for index, column in enumerate(cells.columns):
        left = index < cells.left
        table.add_column(Text(column), justify="left" if left else "right", no_wrap=left)
    for row in cells.rows:
        table.add_row(*map(Text, row))
    return table


def _timing(report: AreaReport) -> list[RenderableType]:
    """Return the longest path, what gave it and, after place and route, what the device holds."""
    timing = report.timing
    if timing is None:
        return []
    table = Table(box=SIMPLE_HEAD, padding=(0, 1, 0, 0))
    figures = {
        "delay ps": timing.delay_ps and f"{timing.delay_ps:,.0f}",
        "Fmax MHz": timing.fmax_mhz and f"{timing.fmax_mhz:,.1f}",
        "levels": f"{timing.levels:,d}" if timing.levels is not None else None,
    }
    shown = {name: text for name, text in figures.items() if text}
    for name in shown:
        table.add_column(name, justify="right")
    table.add_column("longest path from")
    table.add_column("to")
    table.add_row(*shown.values(), Text(timing.start or "-"), Text(timing.end or "-"))
    lines: list[RenderableType] = [table, Text(f"timing: {timing.model}", style="dim")]
    if report.placement:
        placed = report.placement
        parts = ", ".join(
            f"{used:,d} of {placed.available[name]:,d} {name}" for name, used in placed.used.items()
        )
        lines.append(Text(f"placed, with the registers at the ports: {parts}", style="dim"))
    return lines
