"""Area reports as tables for a terminal."""

from typing import Final, NamedTuple

from rich.box import SIMPLE_HEAD
from rich.console import Group, RenderableType
from rich.table import Table
from rich.text import Text

from axs6.synth.report import AreaReport, Part


class _Column(NamedTuple):
    label: str
    format: str


_COLUMNS: Final = {
    "gate_equivalents": _Column("GE", ",.1f"),
    "transistors": _Column("transistors", ",d"),
    "gates": _Column("gates", ",d"),
    "luts": _Column("LUTs", ",d"),
    "flip_flops": _Column("FFs", ",d"),
    "carries": _Column("carry", ",d"),
    "dsps": _Column("DSPs", ",d"),
    "block_rams": _Column("BRAMs", ",d"),
    "area": _Column("area", ",.1f"),
    "sequential_area": _Column("seq. area", ",.1f"),
    "sequential_share": _Column("seq.", ".1%"),
}


def render(report: AreaReport) -> Group:
    """Return the totals, the cells by type and, where there are submodules, the breakdown."""
    head = Text(f"{report.top} on {report.library or report.target}, flattened", style="bold")
    if report.optimise:
        adders = ", adder cells" if report.adder_cells else ""
        head.append(f", for {report.optimise}{adders}")
    tools = Text(f"Yosys {report.tools['yosys']}, pyosys {report.tools['pyosys']}", style="dim")
    shown: list[RenderableType] = [head, tools, _totals(report), *_timing(report), _cells(report)]
    if report.parts:
        main = _COLUMNS[next(iter(report.unflattened.figures))].label
        note = "Each row is one instance; the share is that of all instances in the {}."
        head = Text("By submodule, hierarchy kept: differs from the flattened total", style="bold")
        shown += [head, Text(note.format(main), style="dim"), _breakdown(report)]
    return Group(*shown)


def _totals(report: AreaReport) -> Table:
    table = Table(box=SIMPLE_HEAD, padding=(0, 1, 0, 0))
    for figure in report.total.figures:
        table.add_column(_COLUMNS[figure].label, justify="right")
    table.add_row(*_values(report.total.figures))
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
    shown = {label: text for label, text in figures.items() if text}
    for label in shown:
        table.add_column(label, justify="right")
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


def _cells(report: AreaReport) -> Table:
    table = Table(box=SIMPLE_HEAD, padding=(0, 1, 0, 0))
    table.add_column("cell")
    table.add_column("count", justify="right")
    for cell, count in report.total.cells.items():
        table.add_row(Text(cell), f"{count:,d}")
    return table


def _breakdown(report: AreaReport) -> Table:
    main, whole = next(iter(report.unflattened.figures.items()))
    table = Table(box=SIMPLE_HEAD, padding=(0, 1, 0, 0))
    table.add_column("part", no_wrap=True)
    table.add_column("count", justify="right")
    for figure in report.unflattened.figures:
        table.add_column(_COLUMNS[figure].label, justify="right")
    table.add_column("share", justify="right")
    table.add_row(Text(report.top), "1", *_values(report.unflattened.figures), "100.0%")
    for part in report.parts:
        share = part.instances * part.each.figures[main] / whole if whole else 0.0
        table.add_row(
            _indented(part), f"{part.instances:,d}", *_values(part.each.figures), f"{share:.1%}"
        )
    return table


def _indented(part: Part) -> Text:
    *above, name = part.path.split("/")
    return Text("  " * (len(above) + 1) + name)


def _values(figures: dict[str, float]) -> list[str]:
    return [format(value, _COLUMNS[figure].format) for figure, value in figures.items()]
