"""The canonical form of a module: equal for modules that differ only in the names inside them.

Amaranth writes a module for each instance: 32 equal lanes arrive as 32 modules, which are measured
once.
"""

import hashlib
import json
import re
from collections import defaultdict
from collections.abc import Callable, Iterator, Mapping
from dataclasses import dataclass
from typing import Any, Final

Bit = int | str
"""A net's number in the Yosys JSON netlist, or a constant: `0`, `1`, `x` or `z`."""

Pin = tuple[str, bool, list[Bit]]
"""A pin of a cell: its name, whether it may drive, and what it is connected to."""

PortBit = tuple[str, int]
"""A port and the position of a bit in it."""

_DEPTH: Final = 6
"""Cells that a signature looks back. It only puts things in an order; equality does not need it."""


@dataclass(frozen=True)
class Child:
    """Target of an instance: a module, and for each of its ports the instance's bits."""

    module: str
    pins: Mapping[str, list[PortBit]]


@dataclass(frozen=True)
class Form:
    """A module without the names in it.

    Modules of equal `text` are isomorphic, but for what the bits of their inputs are called: the
    text has every cell, connection, constant, parameter and attribute, with nets numbered. The k-th
    of `inputs` and of `outputs` in one is the k-th in the other.
    """

    text: str
    inputs: tuple[PortBit, ...]
    outputs: tuple[PortBit, ...]

    def stands_for(self, other: "Form") -> bool:
        """Say whether modules are equal: no input has names in both that differ.

        Amaranth merges inputs that lie side by side in the parent into one with a generated name,
        so that of equal lanes one may have names for bits for which another has none.
        """
        return self.text == other.text and all(
            own == theirs or is_generated(own[0]) or is_generated(theirs[0])
            for own, theirs in zip(self.inputs, other.inputs, strict=True)
        )

    def child(self, module: str, form: "Form") -> Child:
        """Return this module's instances as ones of an equal `module` of another form."""
        pins: dict[str, dict[int, PortBit]] = defaultdict(dict)
        own = (*self.inputs, *self.outputs)
        for bit, (port, position) in zip(own, (*form.inputs, *form.outputs), strict=True):
            pins[port][position] = bit
        return Child(
            module, {port: [bits[k] for k in range(len(bits))] for port, bits in pins.items()}
        )


def is_generated(name: str) -> bool:
    """Say whether Yosys or Amaranth generated a name, so that it has no meaning."""
    return "$" in name


def canonical_form(module: Mapping[str, Any], child: Callable[[str], Child | None]) -> Form:
    """Return the canonical form of a module.

    Nets are numbered from the outputs inwards, against the direction of signals, where the pins of
    the cell that drives a net put its inputs in an order. Outputs with names come first, then those
    with generated names and then cells that no output depends on, in the order of their signatures.
    Where that leaves several orders, the module's own decides, and equal modules may get different
    texts.

    Args:
        module: of a Yosys JSON netlist.
        child: what a cell type stands for where it is a module.
    """
    return _Walk(module, child).form()


@dataclass(frozen=True)
class _Cell:
    """A cell: all but its connections as text, and its pins by name."""

    what: str
    pins: list[Pin]


class _Walk:
    def __init__(self, module: Mapping[str, Any], child: Callable[[str], Child | None]) -> None:
        self._module = module
        self._ports: dict[str, Any] = module["ports"]
        self._cells = [_cell(name, cell, child) for name, cell in module["cells"].items()]
        self._drivers: dict[Bit, list[tuple[str, int, _Cell]]] = defaultdict(list)
        for cell in self._cells:
            for pin, drives, bits in cell.pins:
                for k, bit in enumerate(bits if drives else ()):
                    self._drivers[bit].append((pin, k, cell))
        self._numbers: dict[Bit, int] = {}
        self._order: list[Bit] = []
        self._done = 0
        self._reached: dict[int, _Cell] = {}

    def form(self) -> Form:
        outputs = self._walk_outputs()
        self._walk_cells()
        inputs = [
            ((name, k), bit)
            for name in sorted(self._ports, key=lambda name: (is_generated(name), _natural(name)))
            if self._ports[name]["direction"] == "input"
            for k, bit in enumerate(self._ports[name]["bits"])
        ]
        self._number([bit for _, bit in inputs])
        inputs.sort(key=lambda each: self._numbers[each[1]])
        return Form(
            self._text([bit for _, bit in inputs], outputs),
            tuple(place for place, _ in inputs),
            tuple((name, k) for name in outputs for k in range(len(self._ports[name]["bits"]))),
        )

    def _walk_outputs(self) -> list[str]:
        """Number what outputs depend on; return them in order."""
        found = [name for name, port in self._ports.items() if port["direction"] != "input"]
        ordered = sorted(name for name in found if not is_generated(name))
        for name in ordered:
            self._visit(self._ports[name]["bits"])
        generated = sorted(filter(is_generated, found), key=_natural)
        for name in self._by_signature(generated, lambda name: self._ports[name]["bits"]):
            self._visit(self._ports[name]["bits"])
            ordered.append(name)
        return ordered

    def _walk_cells(self) -> None:
        """Number the nets at cells that no output depends on."""
        left = [cell for cell in self._cells if id(cell) not in self._reached]
        bits = {id(cell): [bit for _, _, bits in cell.pins for bit in bits] for cell in left}
        for cell in self._by_signature(left, lambda cell: bits[id(cell)], lambda cell: cell.what):
            self._reach(cell)
            self._visit([])

    def _visit(self, bits: list[Bit]) -> None:
        """Number nets and all that they depend on."""
        self._number(bits)
        while self._done < len(self._order):
            drivers = self._drivers.get(self._order[self._done], [])
            self._done += 1
            if len(drivers) > 1:
                drivers = sorted(drivers, key=lambda each: (each[2].what, *each[:2]))
            for _, _, cell in drivers:
                self._reach(cell)

    def _reach(self, cell: _Cell) -> None:
        if id(cell) not in self._reached:
            self._reached[id(cell)] = cell
            for _, _, bits in cell.pins:
                self._number(bits)

    def _number(self, bits: list[Bit]) -> None:
        for bit in bits:
            if isinstance(bit, int) and bit not in self._numbers:
                self._numbers[bit] = len(self._order)
                self._order.append(bit)

    def _by_signature(
        self,
        things: list[Any],
        bits: Callable[[Any], list[Bit]],
        what: Callable[[Any], str] = lambda _: "",
    ) -> list[Any]:
        """Sort by what things are and by what the nets at them depend on."""
        known: dict[tuple[Bit, int], str] = {}
        return sorted(
            things,
            key=lambda each: (what(each), [self._cone(bit, _DEPTH, known) for bit in bits(each)]),
        )

    def _cone(self, bit: Bit, depth: int, known: dict[tuple[Bit, int], str]) -> str:
        """Return a signature of what a net depends on, back to nets with numbers."""
        if isinstance(bit, str):
            return bit
        if bit in self._numbers:
            return f"{self._numbers[bit]}"
        if not depth:
            return ""
        if (bit, depth) not in known:
            sources = sorted(
                [cell.what, pin, k]
                + [
                    self._cone(each, depth - 1, known)
                    for _, drives, bits in cell.pins
                    for each in ([] if drives else bits)
                ]
                for pin, k, cell in self._drivers.get(bit, [])
            )
            digest = hashlib.blake2b(json.dumps(sources).encode(), digest_size=12)
            known[bit, depth] = digest.hexdigest()
        return known[bit, depth]

    def _text(self, inputs: list[Bit], outputs: list[str]) -> str:
        ports = []
        for name in outputs:
            port = {**self._ports[name], "bits": self._numbered(self._ports[name]["bits"])}
            ports.append(["" if is_generated(name) else name, port])
        cells = [
            [cell.what, [[pin, self._numbered(bits)] for pin, _, bits in cell.pins]]
            for cell in self._reached.values()
        ]
        rest = {
            key: value
            for key, value in self._module.items()
            if key not in ("attributes", "ports", "cells", "netnames")
        }
        everything = [
            self._numbered(inputs),
            ports,
            cells,
            sorted(self._nets()),
            _attributes(self._module),
            rest,
        ]
        return json.dumps(everything, sort_keys=True)

    def _nets(self) -> Iterator[str]:
        """Yield the attributes of nets, such as their initial values."""
        for net in self._module["netnames"].values():
            if attributes := _attributes(net):
                bits = [self._numbers.get(bit, "none") for bit in net["bits"]]
                yield json.dumps([bits, attributes], sort_keys=True)

    def _numbered(self, bits: list[Bit]) -> list[Bit]:
        return [bit if isinstance(bit, str) else self._numbers[bit] for bit in bits]


def _cell(name: str, cell: Mapping[str, Any], child: Callable[[str], Child | None]) -> _Cell:
    instance = child(cell["type"])
    kind = instance.module if instance else cell["type"]
    own = name if instance and not is_generated(name) else ""
    directions = cell.get("port_directions", {})
    connections: dict[str, list[Bit]] = cell["connections"]
    pins: list[Pin]
    if instance:
        pins = [
            (
                pin,
                directions.get(bits[0][0]) != "input",
                [connections[port][k] if port in connections else "x" for port, k in bits],
            )
            for pin, bits in instance.pins.items()
        ]
    else:
        pins = [(pin, directions.get(pin) != "input", bits) for pin, bits in connections.items()]
    what = [kind, own, cell["parameters"], _attributes(cell)]
    return _Cell(json.dumps(what, sort_keys=True), sorted(pins, key=lambda pin: pin[0]))


def _attributes(thing: Mapping[str, Any]) -> dict[str, str]:
    return {key: value for key, value in thing["attributes"].items() if key != "src"}


def _natural(name: str) -> list[tuple[int, str]]:
    """Return a sorting key that puts `port$9` before `port$10`."""
    return [(int(text), "") if text.isdigit() else (-1, text) for text in re.split(r"(\d+)", name)]


def representatives(modules: Mapping[str, Any], top: str) -> dict[str, Child]:
    """Map every module below `top` that equals another one to the first of them.

    Modules equal each other if they are isomorphic: they differ in the names and the order of the
    nets, cells and ports with generated names in them, and in nothing else. Instances keep their
    names, which reports show. Modules that are joined are equal; in rare cases (see
    `canonical_form`) equal modules stay apart.

    Args:
        modules: those of a Yosys JSON netlist, without processes.
        top: the name of the top module.

    Returns:
        For each module that is not the first of its kind the first one, with the module's bits that
        belong at the first one's ports.
    """
    first: dict[str, list[tuple[str, Form]]] = defaultdict(list)
    chosen: dict[str, Child] = {}

    def visit(name: str) -> Child | None:
        if name not in modules or "blackbox" in modules[name]["attributes"]:
            return None
        if name not in chosen:
            form = canonical_form(modules[name], visit)
            found = (each for each in first[form.text] if each[1].stands_for(form))
            equal, theirs = next(found, (name, form))
            if equal == name:
                first[form.text].append((name, form))
            chosen[name] = form.child(equal, theirs)
        return chosen[name]

    visit(top)
    return {name: equal for name, equal in chosen.items() if name != equal.module}
