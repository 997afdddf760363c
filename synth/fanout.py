"""Buffer trees before registers: no net drives hundreds of register pins by itself.

ABC does not see registers, so it neither sizes nor buffers the gates in front of their enables: one
gate would drive every register of a rank.
"""

from collections import defaultdict
from collections.abc import Mapping
from dataclasses import asdict, dataclass
from typing import Any, Final

from axs6.synth.cells import Cell, CellLibrary

MOST: Final = 16
"""Pins of registers, or buffers, that a net may drive."""


@dataclass(frozen=True)
class Buffering:
    """The buffer and its pins, and for each type of register the pins that it may drive."""

    cell: str
    input: str
    output: str
    pins: Mapping[str, list[str]]

    def to_dict(self) -> dict[str, Any]:
        """Return plain dictionaries, from which `Buffering(**it)` makes this again."""
        return asdict(self)


def buffering(library: CellLibrary) -> Buffering | None:
    """Return how to buffer with a library, None where it has no buffer with delays.

    Of the buffers, the one with the least product of area and time to drive `MOST` register pins.
    """
    pins = {cell.name: sorted(cell.setups) for cell in library.cells.values() if cell.is_register}
    capacitances = [library[name].inputs[pin] for name in pins for pin in pins[name]]
    buffers = [cell for cell in library.gates(1, 0b10) if cell.arcs]
    if not buffers or not capacitances:
        return None
    load = MOST * max(capacitances)

    def cost(cell: Cell) -> float:
        return cell.area * max(t.at(0.0, load) for arc in cell.arcs for t in arc.delay.values())

    best = min(buffers, key=lambda cell: (cost(cell), cell.name))
    (source,), (output,) = best.inputs, best.functions
    return Buffering(best.name, source, output, pins)


def add_buffers(module: dict[str, Any], plan: Buffering) -> None:
    """Put trees of buffers before the register pins of a module of a Yosys JSON netlist.

    A net with at most `MOST` such pins stays as it is. Otherwise each buffer drives up to `MOST`
    pins, and buffers are buffered likewise, until the net drives no more than `MOST`.
    """
    cells = module["cells"]
    driven: dict[int, list[list[Any]]] = defaultdict(list)
    for cell in cells.values():
        for pin in plan.pins.get(cell["type"], ()):
            bits = cell["connections"].get(pin, [])
            if len(bits) == 1 and isinstance(bits[0], int):
                driven[bits[0]].append(bits)
    free = 1 + max(
        (bit for net in module["netnames"].values() for bit in net["bits"] if isinstance(bit, int)),
        default=1,
    )
    for net, pins in driven.items():
        number = 0
        while len(pins) > MOST:
            groups = [pins[k : k + MOST] for k in range(0, len(pins), MOST)]
            pins = []
            for group in groups:
                for bits in group:
                    bits[0] = free
                connections = {plan.input: [net], plan.output: [free]}
                name = f"fanout_{net}_{number}"
                cells[name] = {
                    "hide_name": 0,
                    "type": plan.cell,
                    "parameters": {},
                    "attributes": {},
                    "port_directions": {plan.input: "input", plan.output: "output"},
                    "connections": connections,
                }
                module["netnames"][f"{name}_net"] = {
                    "hide_name": 0,
                    "bits": [free],
                    "attributes": {},
                }
                pins.append(connections[plan.input])
                free, number = free + 1, number + 1
