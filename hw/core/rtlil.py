"""RTLIL of components, with equal lanes as instances of one module.

Amaranth elaborates every submodule and writes a module for each. Most of a unit is equal lanes:
elaborated once they take a tenth of the time, and the Verilog a tenth of the text.
"""

import re
from collections import Counter
from collections.abc import Callable, Iterable, Mapping, Sequence
from typing import Any

from amaranth.hdl import (
    ClockSignal,
    Fragment,
    Instance,
    Module,
    ResetSignal,
    Value,
    ValueLike,
)
from amaranth.lib import wiring
from amaranth.lib.wiring import Flow, In

from axs6.hw.core.amaranth_internals import convert_fragment
from axs6.hw.core.clocking import USUAL, Clocking


class Modules:
    """A platform under which lanes share a module.

    Args:
        prefix: prefix of the modules' names.
        clocking: of those that have registers.
        sources: whether cells have the attribute `src`: file and line.
    """

    def __init__(self, prefix: str, clocking: Clocking, sources: bool = False) -> None:
        self._prefix = prefix
        self._clocking = clocking
        self.sources = sources
        self._texts: dict[str, str] = {}

    @property
    def rtlil(self) -> str:
        """RTLIL of the modules so far."""
        return "".join(self._texts.values())

    def add(self, core: wiring.Component, *, clocked: bool = False) -> str:
        """Return the name of the module of a core, a new one if none is equal."""
        name = first = f"{self._prefix}.{verilog_name(core)}"
        text = _not_on_top(convert_top(core, name, self, self._clocking if clocked else None))
        number = 1
        while self._texts.setdefault(name, text) != text:
            number += 1
            renamed = f"{first}_{number}"
            text = re.sub(rf"\\{re.escape(name)}(?=[.\s])", rf"\\{renamed}", text)
            name = renamed
        return name


def convert(
    component: wiring.Component,
    name: str,
    clocking: Clocking = USUAL,
    *,
    sources: bool = False,
) -> str:
    """RTLIL of a component as the module `name`, with ports of clock and reset beside its own.

    With `sources` cells have the attribute `src`: file and line.

    Raises:
        ValueError: a module of the component has the name of one that its lanes share.
    """
    modules = Modules(name, Clocking(asynchronous=clocking.asynchronous), sources)
    text = convert_top(component, name, modules, clocking) + modules.rtlil
    twice = [each for each, count in Counter(_MODULE.findall(text)).items() if count > 1]
    if twice:
        raise ValueError(f"modules must have names of their own, not {', '.join(twice)} twice")
    return text


_MODULE = re.compile(r"^module \\(\S+)$", re.M)


_FIELD = re.compile(
    r"""
    ^[ ]*wire[ ][^\n]*\\[^\s.\[]+[.\[]\S*\n
    | ^[ ]*connect[ ]\\[^\s.\[]+[.\[]\S*[ ][^\n]*\n
    """,
    re.M | re.X,
)
"""A wire that is a field of another, as `\\sum.exponent` or `\\codes[3]`, or its connection."""


def without_fields(text: str) -> str:
    """RTLIL without the wires that Amaranth adds for every field of a structure.

    Nothing reads them: they are names for waveforms. Two thirds of the text are theirs, and a
    simulator that does not remove them, such as Icarus, takes most of its time over them.
    """
    return _FIELD.sub("", text)


def convert_top(
    component: wiring.Component, name: str, modules: Modules, clocking: Clocking | None
) -> str:
    """RTLIL of a component without the modules that its lanes share.

    With `clocking` it has a clock and a reset even where it has no registers: a unit's ports thus
    stay the same whatever its number of stages.
    """
    fragment = Fragment.get(component, modules)
    ports: dict[str, tuple[Value, None]] = {
        name: (value, None) for name, (_, value) in _ports(component).items()
    }
    if clocking:
        ports |= clocking.ports(fragment)
    text, _ = convert_fragment(fragment, ports, name, emit_src=modules.sources)
    return str(text)


def port_name(path: Iterable[str | int]) -> str:
    """A port's name in Verilog: the names on its path, joined by `_`."""
    return "_".join(map(str, path))


def _not_on_top(text: str) -> str:
    return text.replace("attribute \\top 1\n", "", 1)


def add_lanes(
    m: Module,
    platform: Any,
    makes: Sequence[Callable[[], wiring.Component]],
    lanes: Iterable[Mapping[str, ValueLike]],
    *,
    clocked: bool = False,
) -> None:
    """Add components, few of them different, as submodules `lane0`, `lane1` and so on.

    Args:
        m: the module that they belong to.
        platform: the one of its elaboration; equal lanes share a module if it is `Modules`.
        makes: each gives a component, a new one in each call; lanes take turns among them.
        lanes: for each component what its ports are connected to, by their names in Verilog.
        clocked: whether they have registers.
    """
    cores = [make() for make in makes]
    modules = platform if isinstance(platform, Modules) else None
    shared = [modules.add(core, clocked=clocked) if modules else None for core in cores]
    clock: dict[str, Value] = {"i_clk": ClockSignal(), "i_rst": ResetSignal()} if clocked else {}
    for index, connections in enumerate(lanes):
        kind = index % len(makes)
        core, module = cores[kind], shared[kind]
        if module:
            submodule: Any = Instance(module, **clock, **_instance_ports(core, connections))
        else:
            submodule = core if index == kind else makes[kind]()
            m.d.comb += [
                port.eq(value) if flow == In else Value.cast(value).eq(port)
                for _, flow, port, value in _connected(submodule, connections)
            ]
        m.submodules[f"lane{index}"] = submodule


def _ports(component: wiring.Component) -> dict[str, tuple[Flow, Value]]:
    """Direction and value of each port, by its name in Verilog."""
    members = list(component.signature.flatten(component))
    ports = {port_name(path): (member.flow, Value.cast(value)) for path, member, value in members}
    assert len(ports) == len(members), "two ports have one name"
    return ports


def _connected(
    core: wiring.Component, connections: Mapping[str, ValueLike]
) -> Iterable[tuple[str, Flow, Value, ValueLike]]:
    ports = _ports(core)
    assert connections.keys() == ports.keys(), "every port is connected"
    for name, (flow, port) in ports.items():
        value = connections[name]
        assert len(Value.cast(value)) == len(port), f"width of {name}"
        yield name, flow, port, value


def _instance_ports(
    core: wiring.Component, connections: Mapping[str, ValueLike]
) -> dict[str, Value]:
    return {
        f"{'i' if flow == In else 'o'}_{name}": Value.cast(value)
        for name, flow, _, value in _connected(core, connections)
    }


def verilog_name(core: wiring.Component) -> str:
    """The Verilog name of a core: its class's `verilog_name`, or else the class, in snake case.

    Names of classes say in which unit a core is; in Verilog the module around it does.
    """
    name = type(core).__name__
    default = "".join(f"_{c}" if c.isupper() and i else c for i, c in enumerate(name)).lower()
    return str(getattr(core, "verilog_name", default))
