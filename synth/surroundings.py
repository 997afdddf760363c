"""Surroundings of a unit that timing assumes: the cell that drives its inputs, the load at its
outputs."""

from dataclasses import dataclass

from axs6.synth.cells import Cell, CellLibrary

SKY130_LOAD = 33.4
"""The load at outputs in femtofarads that published flows use with sky130."""


@dataclass(frozen=True)
class Surroundings:
    """Surroundings of a unit: the cell that drives each input, and the load at each output in
    fF."""

    driver: Cell
    load: float


def surroundings(library: CellLibrary) -> Surroundings | None:
    """Return what is assumed around a unit in a library, None where the library has no delays.

    The driver is the smallest buffer, or the smallest inverter where there is no buffer. The load
    is `SKY130_LOAD` for libraries of that process, else four inputs of the smallest inverter.
    """
    driver, inverter = library.buffer or library.inverter, library.inverter
    if driver is None or inverter is None or not driver.arcs:
        return None
    (capacitance,) = inverter.inputs.values()
    load = SKY130_LOAD if library.name.startswith("sky130") else 4 * capacitance
    return Surroundings(driver, load)
