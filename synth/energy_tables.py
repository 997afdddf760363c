"""Energy reports as tables for a terminal."""

from rich.console import Group
from rich.text import Text

from axs6.synth.energy_report import EnergyReport
from axs6.synth.pages.energy import LEFT_OUT, energy_table, energy_title
from axs6.synth.tables import rich_table


def render(name: str, report: EnergyReport) -> Group:
    """Return the energy of the unit called `name`, and that of the reference beside it."""
    head = Text(energy_title(report), style="bold")
    return Group(head, rich_table(energy_table(name, report)), Text(LEFT_OUT, style="dim"))
