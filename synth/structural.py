"""Mapped netlists as structural Verilog with plain names, which any tool reads."""

import re
from collections.abc import Iterable, Mapping
from typing import Any

from axs6.synth.graph import MappedNetlist, Net


class NetNames:
    """Plain names of the nets and the instances of a flat module of library cells.

    A net has the name of the input that it is, else of the first output, else of a wire: `n_` and
    its name in the design. Instances are called `u_` and the name of what they drive. Characters
    that plain identifiers cannot have are `_`.

    Args:
        module: of a Yosys JSON netlist.
        netlist: the same as a graph.
    """

    def __init__(self, module: Mapping[str, Any], netlist: MappedNetlist) -> None:
        self.wires: list[str] = []
        self.instances: dict[str, str] = {}
        self._taken = dict.fromkeys(module["ports"], 0)
        self._names: dict[Net, str] = {}
        for side in ("input", "output"):
            for name, bit in port_bits(module, side):
                if isinstance(bit, int):
                    self._names.setdefault(bit, name)
        for instance in netlist.instances:
            for bits in module["cells"][instance.name]["connections"].values():
                for bit in reversed(bits):
                    if isinstance(bit, int) and bit not in self._names:
                        self._names[bit] = self._unique(f"n_{netlist.name(bit)}")
                        self.wires.append(self._names[bit])
            driven = next((netlist.name(net) for net in instance.outputs.values()), instance.name)
            self.instances[instance.name] = self._unique(f"u_{driven}")

    def __getitem__(self, bit: int | str) -> str:
        """The name of a net, or a constant; unknown bits are 0."""
        if not isinstance(bit, int):
            return "1'b1" if bit == "1" else "1'b0"
        return self._names[bit]

    def _unique(self, name: str) -> str:
        """Return a new plain identifier."""
        plain = re.sub(r"\W+", "_", name, flags=re.ASCII).rstrip("_")
        while plain in self._taken:
            self._taken[plain] += 1
            plain = f"{plain}_{self._taken[plain]}"
        self._taken[plain] = 0
        return plain


def structural(module: Mapping[str, Any], top: str, names: NetNames) -> str:
    """Return a flat module of library cells as Verilog.

    Args:
        module: of a Yosys JSON netlist.
        top: its name.
        names: of its nets and instances.
    """
    outputs = port_bits(module, "output")
    lines = [
        f"module {top} ({', '.join(module['ports'])});",
        *(f"  {port['direction']} {_declared(n, port)};" for n, port in module["ports"].items()),
        *(f"  wire {name};" for name in names.wires),
        *(_instance(name, cell, names) for name, cell in module["cells"].items()),
        *(f"  assign {name} = {names[bit]};" for name, bit in outputs if names[bit] != name),
        "endmodule",
        "",
    ]
    return "\n".join(lines)


def port_bits(module: Mapping[str, Any], direction: str) -> list[tuple[str, int | str]]:
    """Return the bits of the ports of a direction by name."""
    return [
        (name if len(port["bits"]) == 1 else f"{name}[{k}]", bit)
        for name, port in module["ports"].items()
        if port["direction"] == direction
        for k, bit in enumerate(port["bits"])
    ]


def _instance(name: str, cell: Mapping[str, Any], names: NetNames) -> str:
    pins = ", ".join(
        f".{pin}({_joined(names[bit] for bit in reversed(bits))})"
        for pin, bits in cell["connections"].items()
    )
    return f"  {cell['type']} {names.instances[name]} ({pins});"


def _declared(name: str, port: Mapping[str, Any]) -> str:
    width = len(port["bits"])
    return name if width == 1 else f"[{width - 1}:0] {name}"


def _joined(names: Iterable[str]) -> str:
    one, *more = names
    return f"{{{', '.join((one, *more))}}}" if more else one
