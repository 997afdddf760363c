"""Switching of the nets of a mapped design on real data, by the names of its Verilog."""

import json
from collections.abc import Mapping
from typing import Any

from axs6.hw.core.layouts import port_fields
from axs6.sim.batch.activity import ActivityModel
from axs6.sim.saif import SaifInstance, Switching, clock_net, saif
from axs6.synth.energy_nets import CLOCK, counterparts
from axs6.synth.energy_stimulus import Items
from axs6.synth.graph import MappedNetlist, Net
from axs6.synth.netlist import MappedDesign
from axs6.synth.structural import port_bits
from axs6.synth.targets import NAME


def switching_file(
    design: MappedDesign, netlist: str, component: Any, items: Items, about: str
) -> str:
    """SAIF of a mapped component that takes an item in each cycle.

    It has the nets and ports of the netlist's Verilog by name, and the outputs of its instances.
    The counts are of all sequences together, without the cycles that fill the pipeline.

    Args:
        design: the component after synthesis.
        netlist: the same as `axs6.synth.mapped.mapped_netlist` gives it.
        component: with streams `i` and `o`, and `latency`.
        items: sequences of items, an array of shape (sequences, items, ...) for each field.
        about: what the items are.
    """
    graph = MappedNetlist(design.module, design.library.direction)
    simulated = _simulated(netlist, design.module)
    clock = design.module["ports"][CLOCK]["bits"][0]
    nets = [net for net in (*graph.inputs, *graph.driver) if net != clock]
    inputs, outputs = port_fields(component)
    model = ActivityModel(netlist, [simulated[net] for net in nets], inputs, outputs, design.top)
    activity = model.run(items, settle=component.latency, levels=True)
    assert activity.ones is not None
    cycles = len(activity.changes) * activity.pairs
    toggles, ones = activity.changes.sum(axis=0).tolist(), activity.ones.sum(axis=0).tolist()
    counted = dict(zip(nets, map(Switching, toggles, ones), strict=True))
    counted[clock] = clock_net(cycles)
    return saif(_scope(design, graph, counted), cycles, design.period_ps, f"{design.top}, {about}")


def _simulated(netlist: str, module: Mapping[str, Any]) -> dict[Net, int | str]:
    """The net of the simulated module for each net of the design, which has the same names."""
    content = json.loads(netlist)
    mapped, top = content["mapped"], content["modules"]["top"]
    named = {each["attributes"][NAME]: each["bits"] for each in mapped["netnames"].values()}
    bits = counterparts(mapped, top)
    return {
        net: bits[same]
        for name, each in module["netnames"].items()
        for net, same in zip(each["bits"], named.get(name, ()), strict=False)
        if isinstance(net, int)
    }


def _scope(
    design: MappedDesign, graph: MappedNetlist, counted: Mapping[Net, Switching]
) -> SaifInstance:
    """The nets as the netlist's Verilog has them: by name, and at the outputs of each instance."""
    top = SaifInstance(design.top)
    ports = [*port_bits(design.module, "input"), *port_bits(design.module, "output")]
    named = [(design.names[net], net) for net in counted]
    top.nets = {name: counted[net] for name, net in (*ports, *named) if isinstance(net, int)}
    for instance in graph.instances:
        scope = top.within((design.names.instances[instance.name],))
        scope.nets = {pin: counted[net] for pin, net in instance.outputs.items()}
    return top
