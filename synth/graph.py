"""A mapped netlist as a graph: nets, the pins at them, and an order of the gates."""

from collections import defaultdict
from collections.abc import Callable, Iterator, Mapping
from dataclasses import dataclass
from typing import Any

from axs6.synth.errors import SynthesisError

Net = int
"""A net's number in the Yosys JSON netlist."""


@dataclass(frozen=True)
class Instance:
    """An instance of a cell: its name, its type and the net at each pin of one bit.

    Pins at constants are left out; pins of buses are called `NAME[3]`.
    """

    name: str
    cell: str
    inputs: Mapping[str, Net]
    outputs: Mapping[str, Net]


class MappedNetlist:
    """A flat module of mapped cells.

    Args:
        module: of a Yosys JSON netlist, without hierarchy.
        directions: gives the direction (`input` or `output`) of a pin of a cell type where the
            netlist does not say it.
    """

    def __init__(self, module: Mapping[str, Any], directions: Callable[[str, str], str]) -> None:
        self.instances = [
            _instance(name, cell, directions) for name, cell in module["cells"].items()
        ]
        self.inputs = _ports(module, "input")
        self.outputs = _ports(module, "output")
        self.driver: dict[Net, Instance] = {}
        self.readers: dict[Net, list[tuple[Instance, str]]] = defaultdict(list)
        for instance in self.instances:
            for net in instance.outputs.values():
                self.driver[net] = instance
            for pin, net in instance.inputs.items():
                self.readers[net].append((instance, pin))
        self._names = _names(module)

    def name(self, net: Net) -> str:
        """Return a net's name in the design."""
        return self._names.get(net, f"net {net}")

    def ordered(self, is_register: Callable[[str], bool]) -> Iterator[Instance]:
        """Yield the registers and then the gates, each after those that drive it.

        Raises:
            SynthesisError: gates drive each other in a loop.
        """
        waiting: dict[str, int] = {}
        ready: list[Instance] = []
        for instance in self.instances:
            nets = set(instance.inputs.values())
            waiting[instance.name] = sum(net in self.driver for net in nets)
            if is_register(instance.cell) or not waiting[instance.name]:
                ready.append(instance)
        done = 0
        for instance in ready:
            yield instance
            done += 1
            for net in set(instance.outputs.values()):
                for reader in {r.name: r for r, _ in self.readers[net]}.values():
                    if is_register(reader.cell):
                        continue
                    waiting[reader.name] -= 1
                    if not waiting[reader.name]:
                        ready.append(reader)
        if done < len(self.instances):
            raise SynthesisError(
                "a design to be timed must have no combinational loop, and has one"
            )


def _instance(
    name: str, cell: Mapping[str, Any], directions: Callable[[str, str], str]
) -> Instance:
    pins: dict[str, dict[str, Net]] = {"input": {}, "output": {}}
    stated = cell.get("port_directions", {})
    for port, bits in cell["connections"].items():
        direction = stated.get(port) or directions(cell["type"], port)
        for k, bit in enumerate(bits):
            if isinstance(bit, int) and direction in pins:
                pins[direction][port if len(bits) == 1 else f"{port}[{k}]"] = bit
    return Instance(name, cell["type"], pins["input"], pins["output"])


def _ports(module: Mapping[str, Any], direction: str) -> dict[Net, str]:
    return {
        bit: name if len(port["bits"]) == 1 else f"{name}[{k}]"
        for name, port in module["ports"].items()
        if port["direction"] == direction
        for k, bit in enumerate(port["bits"])
        if isinstance(bit, int)
    }


def _names(module: Mapping[str, Any]) -> dict[Net, str]:
    """Name each net: by the shortest name of the design's own, else by a generated one."""
    best: dict[Net, tuple[bool, int, str]] = {}
    for name, net in module["netnames"].items():
        hidden = bool(net.get("hide_name", 0))
        for k, bit in enumerate(net["bits"]):
            if isinstance(bit, int):
                text = name if len(net["bits"]) == 1 else f"{name}[{k}]"
                best[bit] = min(best.get(bit, (True, 1 << 30, "")), (hidden, len(text), text))
    return {bit: text for bit, (_, _, text) in best.items()}
