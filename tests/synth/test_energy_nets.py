"""Changes of every net of a mapped unit, against its cells evaluated in NumPy."""

import json
from typing import Any

import numpy as np
import pytest
from numpy.typing import NDArray

from axs6.hw.core.layouts import fields, port_fields
from axs6.hw.registry import UNITS, find
from axs6.hw.verilog import generate
from axs6.sim.batch.activity import ActivityModel
from axs6.synth import gates
from axs6.synth.capacitance import generic
from axs6.synth.energy_nets import find_nets
from axs6.synth.graph import MappedNetlist
from axs6.synth.mapped import mapped_netlist

SEQUENCES, CYCLES = 3, 40
PARAMETERS = {"block": 8, "stages": 1}


def functions() -> dict[str, Any]:
    """The generic gates as compiled expressions of bit arrays."""
    found = {}
    for line in gates.genlib().splitlines():
        name, function = line.split()[1], line.split("=", 1)[1].split(";")[0]
        text = function.replace("!", "~").replace("*", "&").replace("+", "|")
        found[name] = compile(text, name, "eval")
    return found


def evaluated(netlist: str, payload: NDArray[Any]) -> NDArray[Any]:
    """Changes of every net but the clock, shape (sequences, nets), from bits of the payload."""
    module = json.loads(netlist)["mapped"]
    graph = MappedNetlist(module, generic().direction)
    ports = {name: port["bits"] for name, port in module["ports"].items()}
    order = list(graph.ordered(lambda cell: cell == "$_DFF_P_"))
    registers = [each for each in order if each.cell == "$_DFF_P_"]
    expressions = functions()
    no = np.zeros(SEQUENCES, bool)
    held = {each.outputs["Q"]: no for each in registers}
    history = []
    for cycle in range(CYCLES):
        values = {
            ports["rst"][0]: no,
            **dict.fromkeys((*ports["i_valid"], *ports["o_ready"]), ~no),
        }
        values |= dict(zip(ports["i_payload"], payload[:, cycle].T, strict=True)) | held
        for each in order:
            if each.cell != "$_DFF_P_":
                read = {pin: values[net] for pin, net in each.inputs.items()}
                (driven,) = each.outputs.values()
                values[driven] = eval(expressions[each.cell], {}, read)
        held = {each.outputs["Q"]: values[each.inputs["D"]] for each in registers}
        clock = ports["clk"][0]
        history.append([values[n] for n in (*graph.inputs, *graph.driver) if n != clock])
    seen = np.array(history)
    return (seen[1:] != seen[:-1])[PARAMETERS["stages"] :].sum(axis=0).T


def bits(items: dict[str, NDArray[Any]], component: Any) -> NDArray[Any]:
    """The payload of items, shape (sequences, cycles, bits)."""
    layout = fields(component.i.payload.shape())
    found = np.zeros((SEQUENCES, CYCLES, component.i.payload.shape().size), bool)
    for field in layout:
        values = items[field.name].reshape(SEQUENCES, CYCLES, field.count, 1)
        places = values >> np.arange(field.width) & 1
        end = field.offset + field.count * field.width
        found[..., field.offset : end] = places.reshape(SEQUENCES, CYCLES, -1)
    return found


@pytest.fixture(scope="module")
def netlist() -> str:
    made = generate("block_dot", **PARAMETERS)
    return mapped_netlist(made.verilog, made.module)


def counted(netlist: str) -> tuple[NDArray[Any], NDArray[Any]]:
    """Changes as the simulator counts them, and as they are."""
    component: Any = UNITS["block_dot"].build(**PARAMETERS)
    rng = np.random.default_rng(0)
    flat = find("block_dot").random(PARAMETERS, rng, SEQUENCES * CYCLES)
    items = {name: v.reshape(SEQUENCES, CYCLES, *v.shape[1:]) for name, v in flat.items()}
    nets = find_nets(netlist, generic())
    model = ActivityModel(netlist, nets.bits, *port_fields(component), "block_dot")
    changes = model.run(items, settle=component.latency).changes
    return changes, evaluated(netlist, bits(items, component))


def test_changes_of_every_net_of_a_unit(netlist: str) -> None:
    changes, expected = counted(netlist)
    assert changes.shape[1] > 1000
    assert changes.any(axis=0).mean() > 0.9
    assert np.array_equal(changes, expected)


def test_nets_that_are_mixed_up_are_caught(netlist: str) -> None:
    content = json.loads(netlist)
    names = content["modules"]["top"]["netnames"]
    inner = [name for name in names if name.startswith("net") and len(names[name]["bits"]) == 1]
    first, second = inner[10], inner[-10]
    names[first], names[second] = names[second], names[first]
    changes, expected = counted(json.dumps(content))
    assert not np.array_equal(changes, expected)
