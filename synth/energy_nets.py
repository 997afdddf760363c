"""The nets of a mapped netlist: what drives them, and their capacitances."""

import json
from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import NDArray

from axs6.synth.capacitance import Capacitances
from axs6.synth.graph import MappedNetlist, Net

CLOCK = "clk"
KINDS = ("inputs", "gates", "flip_flops")
"""Kinds of drivers of a net."""


@dataclass(frozen=True, eq=False)
class Nets:
    """The nets of a netlist other than the clock.

    Args:
        bits: of each net in the module that is simulated.
        capacitances: of each net: of the pins that it drives and of the one that drives it.
        kinds: for each net, what drives it, as an index of `KINDS`.
        clock: capacitance of all pins at the clock.
    """

    bits: tuple[int | str, ...]
    capacitances: NDArray[np.float64]
    kinds: NDArray[np.int64]
    clock: float


def find_nets(netlist: str, capacitances: Capacitances) -> Nets:
    """Return the nets of a mapped netlist.

    Args:
        netlist: as `axs6.synth.mapped.mapped_netlist` gives it.
        capacitances: of the cells that it was mapped to.

    Raises:
        SynthesisError: the capacitance of a pin is not known.
    """
    content = json.loads(netlist)
    module = content["mapped"]
    graph = MappedNetlist(module, capacitances.direction)
    clock = module["ports"][CLOCK]["bits"][0]
    simulated = counterparts(module, content["modules"]["top"])
    nets = [net for net in (*graph.inputs, *graph.driver) if net != clock]
    return Nets(
        tuple(simulated[net] for net in nets),
        np.array([_capacitance(graph, net, capacitances) for net in nets]),
        np.array([KINDS.index(_kind(graph, net, clock)) for net in nets]),
        _capacitance(graph, clock, capacitances),
    )


def counterparts(mapped: Mapping[str, Any], top: Mapping[str, Any]) -> dict[Net, int | str]:
    """Map each net of the mapped module to its net in the module with the gates' logic."""
    return {
        net: bit
        for name, each in mapped["netnames"].items()
        if name in top["netnames"]
        for net, bit in zip(each["bits"], top["netnames"][name]["bits"], strict=True)
    }


def _capacitance(graph: MappedNetlist, net: Net, capacitances: Capacitances) -> float:
    total = sum(capacitances.of(reader.cell, pin) for reader, pin in graph.readers[net])
    driver = graph.driver.get(net)
    if driver is not None:
        (pin,) = (name for name, driven in driver.outputs.items() if driven == net)
        total += capacitances.of(driver.cell, pin)
    return total


def _kind(graph: MappedNetlist, net: Net, clock: Net) -> str:
    if net not in graph.driver:
        return "inputs"
    return "flip_flops" if clock in graph.driver[net].inputs.values() else "gates"
