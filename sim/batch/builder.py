"""New cells for a module of Yosys JSON."""

from collections.abc import Mapping
from itertools import count
from typing import Any

Bits = list[Any]
Cells = dict[str, dict[str, Any]]


class Builder:
    """Adds cells to a module, and bits that they drive.

    `cells` holds what replaces the module's cells.
    """

    def __init__(self, module: Mapping[str, Any]) -> None:
        ports = (bits for cell in module["cells"].values() for bits in cell["connections"].values())
        named = (net["bits"] for net in module["netnames"].values())
        used = [bit for bits in (*ports, *named) for bit in bits]
        self._free = count(max((bit for bit in used if isinstance(bit, int)), default=1) + 1)
        self.cells: Cells = {}

    def bits(self, width: int) -> Bits:
        """New bits, which nothing drives yet."""
        return [next(self._free) for _ in range(width)]

    def cell(self, kind: str, width: int, **operands: Bits) -> Bits:
        """Add a cell with an output of `width` bits and return that."""
        output = self.bits(width)
        self.drive(kind, output, **operands)
        return output

    def drive(self, kind: str, output: Bits, **operands: Bits) -> None:
        """Add a cell that drives `output`."""
        self.cells[f"$made{output[0]}"] = {
            "type": kind,
            "parameters": dict.fromkeys(("A_SIGNED", "B_SIGNED"), "0"),
            "port_directions": {**dict.fromkeys(operands, "input"), "Y": "output"},
            "connections": {**operands, "Y": output},
        }

    def register(self, output: Bits, clock: Bits, data: Bits, enable: Bits | None = None) -> None:
        """Add a register on the rising edge of `clock`."""
        connections = {"CLK": clock, "D": data, "Q": output}
        if enable is not None:
            connections["EN"] = enable
        self.cells[f"$made{output[0]}"] = {
            "type": "$dff" if enable is None else "$dffe",
            "parameters": {"CLK_POLARITY": "1", "EN_POLARITY": "1"},
            "port_directions": {port: "output" if port == "Q" else "input" for port in connections},
            "connections": connections,
        }
