"""An energy report as a table with its notes."""

from axs6.synth.energy_report import LEAVES_OUT, PARTS, Consumption, EnergyReport
from axs6.tables import Table, text_table

LEFT_OUT = f"Not counted: {'; '.join(LEAVES_OUT)}."
"""A sentence with the parts of the energy that are not counted."""


def energy_title(report: EnergyReport) -> str:
    """Unit of the energies, and the data."""
    cycles = f"{report.measured.cycles:,d} cycles in {report.sequences} sequences"
    return f"Energy in {report.unit}, stimulus {report.stimulus}, {cycles}"


def energy_table(name: str, report: EnergyReport) -> Table:
    """The energy of the unit called `name`, and that of the reference beside it."""
    sides = [_figures(each) for each in (report.measured, report.reference)]
    of_both = f"a {report.operation}"
    rows = [
        ["an item", *(each["item"] for each in sides)],
        [
            of_both if report.operation == "MAC" else f"{of_both}, a MAC",
            *(each["operation"] for each in sides),
        ],
        ["relative", f"{report.relative:.3f} ± {report.relative_error:.3f}", "1"],
        *([part.replace("_", "-"), *(each[part] for each in sides)] for part in PARTS),
        ["changes of a net in a cycle", *(each["activity"] for each in sides)],
    ]
    return text_table(["", name, f"INT8 dot, {report.reference_lanes} lanes"], rows)


def _figures(measured: Consumption) -> dict[str, str]:
    """The figures of a column by row; parts are shares."""
    return {
        "item": f"{measured.per_item:,.0f} ± {measured.standard_error:,.0f}",
        "operation": f"{measured.per_operation:,.1f}",
        "activity": f"{measured.activity:.3f}",
        **{part: f"{measured.parts[part] / measured.per_item:.1%}" for part in PARTS},
    }
