"""Mapped netlists as structural Verilog with plain names, which any tool reads."""

import re
from collections.abc import Iterable, Mapping, Sequence
from typing import Any

from axs6.synth.graph import MappedNetlist, Net


def structural(module: Mapping[str, Any], top: str, netlist: MappedNetlist) -> str:
    """Return a flat module of library cells as Verilog.

    Nets are called `n_` and their name in the design, instances `u_` and the name of what they
    drive, with `_` for what plain identifiers cannot have. Unknown bits are 0.

    Args:
        module: of a Yosys JSON netlist.
        top: its name.
        netlist: the same as a graph.
    """
    names = _Names(module, netlist)
    outputs = _bits(module, "output")
    cells = _instances(module, netlist, names)
    lines = [
        f"module {top} ({', '.join(module['ports'])});",
        *(f"  {port['direction']} {_declared(n, port)};" for n, port in module["ports"].items()),
        *(f"  wire {name};" for name in names.wires),
        *cells,
        *(f"  assign {name} = {names[bit]};" for name, bit in outputs if names[bit] != name),
        "endmodule",
        "",
    ]
    return "\n".join(lines)


class _Names:
    """The name of each bit: of an input, else of the first output that it is, else of a wire.

    `wires` are the names that are of no port. Names are assigned on demand.
    """

    def __init__(self, module: Mapping[str, Any], netlist: MappedNetlist) -> None:
        self.wires: list[str] = []
        self._taken = dict.fromkeys(module["ports"], 0)
        self._netlist = netlist
        self._names: dict[Net, str] = {}
        for side in ("input", "output"):
            for name, bit in _bits(module, side):
                if isinstance(bit, int):
                    self._names.setdefault(bit, name)

    def __getitem__(self, bit: int | str) -> str:
        if not isinstance(bit, int):
            return "1'b1" if bit == "1" else "1'b0"
        if bit not in self._names:
            self._names[bit] = self.unique(f"n_{self._netlist.name(bit)}")
            self.wires.append(self._names[bit])
        return self._names[bit]

    def unique(self, name: str) -> str:
        """Return a new plain identifier."""
        plain = re.sub(r"\W+", "_", name, flags=re.ASCII).rstrip("_")
        while plain in self._taken:
            self._taken[plain] += 1
            plain = f"{plain}_{self._taken[plain]}"
        self._taken[plain] = 0
        return plain


def _bits(module: Mapping[str, Any], direction: str) -> list[tuple[str, int | str]]:
    """Return the bits of the ports of a direction by name."""
    return [
        (name if len(port["bits"]) == 1 else f"{name}[{k}]", bit)
        for name, port in module["ports"].items()
        if port["direction"] == direction
        for k, bit in enumerate(port["bits"])
    ]


def _instances(module: Mapping[str, Any], netlist: MappedNetlist, names: _Names) -> Sequence[str]:
    lines = []
    for instance in netlist.instances:
        driven = next((netlist.name(net) for net in instance.outputs.values()), instance.name)
        pins = ", ".join(
            f".{pin}({_joined(names[bit] for bit in reversed(bits))})"
            for pin, bits in module["cells"][instance.name]["connections"].items()
        )
        lines.append(f"  {instance.cell} {names.unique(f'u_{driven}')} ({pins});")
    return lines


def _declared(name: str, port: Mapping[str, Any]) -> str:
    width = len(port["bits"])
    return name if width == 1 else f"[{width - 1}:0] {name}"


def _joined(names: Iterable[str]) -> str:
    one, *more = names
    return f"{{{', '.join((one, *more))}}}" if more else one
