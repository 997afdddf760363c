"""Constraints of a unit's Verilog for tools of synthesis, in SDC."""

from axs6.hw.core.clock import clock_text
from axs6.hw.integration import input_ports
from axs6.hw.verilog import Generated


def constraints(made: Generated, period: float) -> str:
    """SDC of a unit: its clock, and no delay outside of its ports.

    Inputs come straight from registers elsewhere and outputs go straight into some, at the same
    clock: the whole period is the unit's. Times are in nanoseconds.

    Args:
        made: the unit.
        period: of its clock, in picoseconds.
    """
    clock, inputs = made.manifest["clock"], {made.manifest["reset"]}
    for stream in made.manifest["streams"]:
        inputs |= input_ports(stream)
    ports = [port for port in made.ports if port != clock]
    taken = [port for port in ports if port in inputs]
    given = [port for port in ports if port not in inputs]
    lines = [
        f"# Constraints of {made.module} for a clock of {clock_text(period)}, in nanoseconds.",
        "set_units -time ns",
        f"create_clock -name {clock} -period {period / 1e3:.10g} [get_ports {{{clock}}}]",
        "# Registers of the same clock drive the inputs and take the outputs. Where logic stands",
        "# between, its delay goes in place of 0.",
        f"set_input_delay 0 -clock {clock} [get_ports {{{' '.join(taken)}}}]",
        f"set_output_delay 0 -clock {clock} [get_ports {{{' '.join(given)}}}]",
    ]
    return "\n".join([*lines, ""])
