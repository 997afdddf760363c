"""Memories as registers: a register for each word, a tree of multiplexers for each read port."""

from collections.abc import Mapping
from itertools import count
from typing import Any

from axs6.sim.batch.netlist import NetlistError

MEMORY = "$mem_v2"

Bits = list[Any]
Cells = dict[str, dict[str, Any]]


def split_memories(module: Mapping[str, Any]) -> tuple[Cells, dict[int, int]]:
    """The cells of a module, with memories replaced, and initial values of bits.

    Raises:
        NetlistError: a memory has ports that are transparent or have resets.
    """
    builder = _Builder(module)
    initial: dict[int, int] = {}
    for name, cell in module["cells"].items():
        if cell["type"] == MEMORY:
            _Memory(name, cell, builder).build(initial)
        else:
            builder.cells[name] = cell
    return builder.cells, initial


class _Memory:
    def __init__(self, name: str, cell: Mapping[str, Any], builder: "_Builder") -> None:
        self._name = name
        self._builder = builder
        self._connections = cell["connections"]
        self._parameters = cell["parameters"]
        self._width, self._size, self._address = map(self._number, ("WIDTH", "SIZE", "ABITS"))
        flags = ("RD_TRANSPARENCY_MASK", "RD_WIDE_CONTINUATION", "WR_WIDE_CONTINUATION", "OFFSET")
        ends = [bit for port in ("RD_ARST", "RD_SRST") for bit in self._connections[port]]
        if any(map(self._number, flags)) or any(bit not in ("0", "x") for bit in ends):
            raise NetlistError(f"memory {name} must have plain ports, without resets")

    def _number(self, name: str) -> int:
        return int(self._parameters[name].replace("x", "0"), 2)

    def _port(self, kind: str, what: str, index: int, width: int) -> Bits:
        bits: Bits = self._connections[f"{kind}_{what}"]
        return bits[index * width : (index + 1) * width]

    def build(self, initial: dict[int, int]) -> None:
        """Add the registers and the logic of the ports."""
        content, width = self._number("INIT"), self._width
        digits = [content >> place & 1 for place in range(width * self._size)]
        if self._number("WR_PORTS"):
            words = [self._builder.bits(width) for _ in range(self._size)]
            initial.update(zip((bit for word in words for bit in word), digits, strict=True))
            for number, word in enumerate(words):
                self._write(number, word)
        else:
            words = [list(map(str, digits[i : i + width])) for i in range(0, len(digits), width)]
        for port in range(self._number("RD_PORTS")):
            self._read(port, words)

    def _write(self, number: int, word: Bits) -> None:
        builder, width = self._builder, self._width
        constant = [str(number >> place & 1) for place in range(self._address)]
        value, clock = word, self._connections["WR_CLK"][:1]
        for port in range(self._number("WR_PORTS")):
            address = self._port("WR", "ADDR", port, self._address)
            here = builder.cell("$eq", 1, A=address, B=constant)
            enable = builder.cell(
                "$and", width, A=self._port("WR", "EN", port, width), B=here * width
            )
            new = builder.cell("$and", width, A=self._port("WR", "DATA", port, width), B=enable)
            unchanged = builder.cell("$not", width, A=enable)
            old = builder.cell("$and", width, A=value, B=unchanged)
            value = builder.cell("$or", width, A=new, B=old)
        builder.register(word, clock, value)

    def _read(self, port: int, words: list[Bits]) -> None:
        builder, width = self._builder, self._width
        address = self._port("RD", "ADDR", port, self._address)
        level = words
        for bit in address:
            level = [*level, ["0"] * width] if len(level) % 2 else level
            level = [
                builder.cell("$mux", width, A=low, B=high, S=[bit])
                for low, high in zip(level[::2], level[1::2], strict=True)
            ]
        data, output = level[0], self._port("RD", "DATA", port, width)
        if self._number("RD_CLK_ENABLE") >> port & 1:
            clock, enable = (self._port("RD", what, port, 1) for what in ("CLK", "EN"))
            builder.register(output, clock, data, enable)
        else:
            builder.drive("$or", output, A=data, B=["0"] * width)


class _Builder:
    """Adds cells to a module of Yosys JSON, and bits that they drive.

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
