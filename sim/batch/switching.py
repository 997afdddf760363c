"""Switching of a component's signals on a stream of items, by the names of its Verilog."""

import json
from collections.abc import Mapping
from typing import Any

from numpy.typing import NDArray

from axs6.hw.core.layouts import port_fields
from axs6.hw.core.rtlil import convert, without_fields
from axs6.hw.names import plain_names
from axs6.sim.batch.activity import ActivityModel
from axs6.sim.batch.netlist import TOP, flattened
from axs6.sim.batch.read import CLOCK
from axs6.sim.saif import SaifInstance, Switching, clock_net, saif

PERIOD = 10_000
"""Picoseconds of a cycle, as in waveforms."""

_SCRIPT = "proc\nflatten\nmemory_collect\nopt_clean\nwrite_json -noscopeinfo\n"


def switching_file(component: Any, module: str, items: Mapping[str, NDArray[Any]]) -> str:
    """SAIF of a component that takes an item in each cycle, from reset on and without stalls.

    It has every signal with a name of the design's own, in the scopes of its submodules. The cycles
    that fill the pipeline are not counted.

    Args:
        component: with streams `i` and `o`, and `latency`.
        module: its name in Verilog.
        items: an array for each input field, its first axis the items.

    Raises:
        ValueError: arrays that do not fit the input payload, or too few items.
        ToolError: Yosys or g++ is missing or fails, or the component does not take an item in each
            cycle.
    """
    netlist = flattened(plain_names(without_fields(convert(component, TOP))), _SCRIPT)
    top = json.loads(netlist)["modules"][TOP]
    (clock,) = top["ports"][CLOCK]["bits"]
    nets = _named_nets(top)
    watched = [bit for bit in dict.fromkeys(nets.values()) if bit != clock]
    inputs, outputs = port_fields(component)
    model = ActivityModel(netlist, watched, inputs, outputs, module)
    sequence = {name: array[None] for name, array in items.items()}
    activity = model.run(sequence, settle=component.latency, levels=True)
    assert activity.ones is not None
    (toggles,), (ones,) = activity.changes.tolist(), activity.ones.tolist()
    counted = dict(zip(watched, map(Switching, toggles, ones), strict=True))
    counted[clock] = clock_net(activity.pairs)
    scope = SaifInstance(module)
    for (*path, name), bit in nets.items():
        scope.within(tuple(path)).nets[name] = counted[bit]
    return saif(scope, activity.pairs, PERIOD, module)


def _named_nets(top: Mapping[str, Any]) -> dict[tuple[str, ...], int | str]:
    """The bits of signals by their path: instances, and the name of the bit."""
    found = {}
    for flat, net in top["netnames"].items():
        *scopes, name = net["attributes"].get("hdlname", flat).split()
        if net["hide_name"] or name.startswith("$"):
            continue
        for k, bit in enumerate(net["bits"]):
            found[*scopes, name if len(net["bits"]) == 1 else f"{name}[{k}]"] = bit
    return found
