"""Capacitances of the pins of cells, and the energy of a net's toggle."""

from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path

from axs6.synth import sky130
from axs6.synth.errors import SynthesisError
from axs6.synth.liberty import FEMTOFARADS, LibertyGroup, parse, read_library, scale


@dataclass(frozen=True)
class Pin:
    """A pin of a cell: its direction (`input` or `output`) and its capacitance, if it is known."""

    direction: str
    capacitance: float | None


@dataclass(frozen=True)
class Capacitances:
    """The pins of a library's cells, and the energy of a net's toggle.

    Args:
        pins: for each cell its pins by name.
        change: energy of one change of a net of capacitance 1.
        unit: of energies.
        source: the library or target, for messages.
    """

    pins: Mapping[str, Mapping[str, Pin]]
    change: float
    unit: str
    source: str

    def direction(self, cell: str, pin: str) -> str:
        """Return the direction of a pin, nothing where it is not known."""
        found = self.pins.get(cell, {}).get(pin)
        return found.direction if found else ""

    def of(self, cell: str, pin: str) -> float:
        """Return the capacitance of a pin.

        Raises:
            SynthesisError: it is not known.
        """
        found = self.pins.get(cell, {}).get(pin)
        if found is None or found.capacitance is None:
            raise SynthesisError(
                f"{self.source} must give the capacitance of pin {pin} of {cell} and does not"
            )
        return found.capacitance


def capacitances(target: str, liberty: Path | None) -> Capacitances:
    """Return the pins of the target's gates, or of a library's cells.

    Raises:
        SynthesisError: a target of no gates, a file that cannot be read or is no Liberty file, or
            a library without a voltage or a unit of capacitance.
    """
    if liberty is not None:
        return of_library(*read_library(liberty))
    if target == "sky130":
        return of_library(sky130.liberty(), "target sky130")
    if target == "generic":
        return generic()
    raise SynthesisError(f"energy needs gates, of generic, sky130 or a library, not {target}")


def of_library(text: str, source: str) -> Capacitances:
    """Return the pins of a library's cells, in femtofarads, from its Liberty text.

    A pin without `capacitance` has the mean of `rise_capacitance` and `fall_capacitance`, or else
    the library's default for pins of its direction where that is not 0; an output that has none of
    them has 0. A change of a net dissipates C V^2 / 2 with the library's `nom_voltage`.

    Raises:
        SynthesisError: as `capacitances`.
    """
    library = parse(text, source)
    voltage = library.number("nom_voltage")
    if voltage <= 0:
        raise SynthesisError(f"{source} must give nom_voltage, in volts, and does not")
    load = scale(library, "capacitive_load_unit", FEMTOFARADS, source)
    pins = {
        cell.arguments[0]: {
            name: _pin(pin, library, load) for pin in cell.all("pin") for name in pin.arguments
        }
        for cell in library.all("cell")
        if cell.arguments
    }
    return Capacitances(pins, voltage**2 / 2, "fJ", source)


def _pin(pin: LibertyGroup, library: LibertyGroup, load: float) -> Pin:
    direction = pin.text("direction")
    if "capacitance" in pin.attributes:
        return Pin(direction, load * pin.number("capacitance"))
    edges = [pin.number(edge) for edge in ("rise_capacitance", "fall_capacitance")]
    if all(edges):
        return Pin(direction, load * sum(edges) / 2)
    default = library.number(f"default_{direction}_pin_cap")
    known = default > 0 or direction == "output"
    return Pin(direction, load * default if known else None)


_GATES: Mapping[str, tuple[Mapping[str, int], int]] = {
    "INV": ({"A": 2}, 2),
    "NAND2": ({"A": 2, "B": 2}, 3),
    "NOR2": ({"A": 2, "B": 2}, 3),
    "XOR2": ({"A": 4, "B": 4}, 4),
    "XNOR2": ({"A": 4, "B": 4}, 4),
    "MUX2": ({"A": 2, "B": 2, "S": 4}, 2),
    "MUXI2": ({"A": 2, "B": 2, "S": 4}, 4),
    "AOI21": ({"A": 2, "B": 2, "C": 2}, 3),
    "OAI21": ({"A": 2, "B": 2, "C": 2}, 3),
    "AOI22": ({"A": 2, "B": 2, "C": 2, "D": 2}, 4),
    "OAI22": ({"A": 2, "B": 2, "C": 2, "D": 2}, 4),
    "$_DFF_P_": ({"C": 12, "D": 2}, 2),
}
"""For each generic gate the transistor gates that an input is connected to, and the drains at the
output, in the static CMOS circuits whose transistors `axs6.synth.gates` counts. The input of XOR,
XNOR and multiplexers that they invert drives an inverter and two transistors more; a flip-flop's
clock is counted with what changes with it: two inverters and four transmission gates."""

_NAND2_INPUT = 2
"""Transistor gates at an input of a two-input NAND: the unit of capacitance."""


def generic() -> Capacitances:
    """Return the pins of the generic gates; capacitance 1 is an input of a two-input NAND.

    Transistors are all of one size, and a drain counts as a gate. The unit of energy is a change of
    an input of a two-input NAND.
    """
    pins = {
        name: {
            **{pin: Pin("input", count / _NAND2_INPUT) for pin, count in inputs.items()},
            "Q" if "DFF" in name else "Y": Pin("output", drains / _NAND2_INPUT),
        }
        for name, (inputs, drains) in _GATES.items()
    }
    return Capacitances(pins, 1.0, "NAND2 inputs", "target generic")
