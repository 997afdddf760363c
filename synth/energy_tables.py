"""Energy reports as tables for a terminal."""

from rich.box import SIMPLE_HEAD
from rich.console import Group
from rich.table import Table
from rich.text import Text

from axs6.synth.energy_report import LEAVES_OUT, PARTS, Consumption, EnergyReport


def render(name: str, report: EnergyReport) -> Group:
    """Return the energy of the unit called `name`, and that of the reference beside it."""
    cycles = f"{report.measured.cycles:,d} cycles in {report.sequences} sequences"
    head = Text(f"Energy in {report.unit}, stimulus {report.stimulus}, {cycles}", style="bold")
    table = Table(box=SIMPLE_HEAD, padding=(0, 1, 0, 0))
    table.add_column("")
    for title in (name, f"INT8 dot, {report.reference_lanes} lanes"):
        table.add_column(title, justify="right", no_wrap=True)
    sides = [_figures(each) for each in (report.measured, report.reference)]
    table.add_row("an item", *(each["item"] for each in sides))
    table.add_row(
        f"a {report.operation}" if report.operation == "MAC" else f"a {report.operation}, a MAC",
        *(each["operation"] for each in sides),
    )
    table.add_row("relative", f"{report.relative:.3f} ± {report.relative_error:.3f}", "1")
    for part in PARTS:
        table.add_row(part.replace("_", "-"), *(each[part] for each in sides))
    table.add_row("changes of a net in a cycle", *(each["activity"] for each in sides))
    left = f"Not counted: {'; '.join(LEAVES_OUT)}."
    return Group(head, table, Text(left, style="dim"))


def _figures(measured: Consumption) -> dict[str, str]:
    """Return the figures of a column by row; parts are shares."""
    return {
        "item": f"{measured.per_item:,.0f} ± {measured.standard_error:,.0f}",
        "operation": f"{measured.per_operation:,.1f}",
        "activity": f"{measured.activity:.3f}",
        **{part: f"{measured.parts[part] / measured.per_item:.1%}" for part in PARTS},
    }
