"""The units by name. Every command, test, benchmark and report finds a unit here."""

from collections.abc import Mapping

from axs6.hw.units import axis, block_dot, decoder, dot, encoder, lfsr
from axs6.hw.units.unit import Unit

UNITS: Mapping[str, Unit] = {
    unit.name: unit
    for unit in (
        encoder.ENCODER,
        encoder.STOCHASTIC_ENCODER,
        encoder.FEEDBACK_ENCODER,
        lfsr.LFSR,
        decoder.DECODER,
        decoder.EXPANDER,
        block_dot.BLOCK_DOT,
        dot.DOT,
        dot.MATMUL,
    )
}
"""The units with streams `i` and `o`, by name."""

BUS_UNITS: Mapping[str, Unit] = {
    unit.name: unit for unit in (axis.AXIS_ENCODER, axis.AXIS_DECODER, axis.AXIS_DOT)
}
"""The units on AXI4-Stream, by name: the others behind a bus."""

ALL_UNITS: Mapping[str, Unit] = {**UNITS, **BUS_UNITS}
"""Every unit, by name."""


def find(name: str) -> Unit:
    """The unit called `name`.

    Raises:
        ValueError: there is none; the message lists the known ones.
    """
    if name not in ALL_UNITS:
        raise ValueError(f"unit must be one of {', '.join(ALL_UNITS)}, not {name!r}")
    return ALL_UNITS[name]


def find_with_streams(name: str) -> Unit:
    """The unit called `name`, which must have streams `i` and `o`.

    Raises:
        ValueError: there is none, or it is on a bus; the message lists those that may be named.
    """
    if name in BUS_UNITS:
        raise ValueError(f"{name} is on AXI4-Stream; unit must be one of {', '.join(UNITS)} here")
    return find(name)
