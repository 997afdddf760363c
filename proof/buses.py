"""Units with one AXI4-Stream on each side held against docs/axis.md, for all beats and all stalls.

A beat is an item. With its ports named as those of streams, such a unit is a function behind a
queue (`axs6.proof.stream`): the marks of a beat, and the function of the unit that is behind the
bus, which is proved alone. What the bytes of beats are is stated here anew.
"""

import json
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import replace
from functools import cached_property
from typing import Any

from axs6.golden.formats import Mode
from axs6.hw.core.layouts import PADDING, UNUSED, Field, fields, port_fields
from axs6.hw.registry import BUS_UNITS, UNITS
from axs6.hw.verilog import generate
from axs6.proof.aig import FALSE, NEXT, TRUE, Graph
from axs6.proof.cores import split
from axs6.proof.netlists import Design, verilog_design
from axs6.proof.prove import Claim, Outcome, UnitProof
from axs6.proof.steps import NotShownError, show_passed
from axs6.proof.stream import PipelinedUnit
from axs6.sim.batch.engine import ComponentModel, Source
from axs6.sim.batch.model import model_source
from axs6.sim.batch.read import read_netlist
from axs6.sim.compiled import Stall
from axs6.sim.words import payload_width

BEHIND: Mapping[str, tuple[str, Mapping[str, Any]]] = {
    "axis_encoder": ("encoder", {}),
    "axis_decoder": ("decoder", {"blocks": "packed"}),
}
"""The unit behind a bus, and parameters that it has there."""

PORTS = {
    "s_axis_tvalid": "i_valid",
    "s_axis_tready": "i_ready",
    "m_axis_tvalid": "o_valid",
    "m_axis_tready": "o_ready",
}
"""Handshakes of the buses, and what streams call them."""

SIDES = {"s_axis": "i", "m_axis": "o"}
"""The streams in place of the buses."""

BESIDE = {"last": "tlast", "user": "tuser"}
"""What a beat has beside its data, above them in a payload, and its port."""


class BusProof(UnitProof):
    """Proves that a unit on AXI4-Stream is the unit behind the bus, and keeps the bus's rules.

    Args:
        unit: its name. parameters: of it; the others keep their defaults. seconds: limit of each
        question to a solver, and of Yosys.

    Raises:
        ValueError: an argument is refused, or the unit has several buses on a side.
    """

    unspecified = ""
    """Why it has no specification: every one has."""

    same = "each beat is what the unit behind the bus gives, with tlast and tuser of its own"

    def __init__(self, unit: str, parameters: Mapping[str, Any], seconds: float = 600) -> None:
        if unit not in BEHIND:
            raise ValueError(f"a proof of a bus needs {' or '.join(BEHIND)}, not {unit}")
        self._entry = entry = BUS_UNITS[unit]
        self._settings, self._seconds = entry.parameters(parameters), seconds
        self._flat = {**self._settings, "stages": 0}
        self._alone, self._ends = True, []
        component: Any = entry.build(**self._settings)
        self.inputs, self.outputs = (_beat(x.tdata) for x in (component.s_axis, component.m_axis))

    @cached_property
    def expected(self) -> Graph:
        """Data and marks of a beat that comes out, as functions of those of one that goes in."""
        name, more = BEHIND[self._entry.name]
        own = UNITS[name].defaults
        settings = {x: value for x, value in self._settings.items() if x in own}
        settings |= {**more, "stages": 0}
        made = generate(name, **settings)
        behind = verilog_design(made.verilog, made.module, seconds=self._seconds).graph
        inputs, outputs = port_fields(UNITS[name].build(**settings))
        graph = Graph(f"i_payload[{k}]" for k in range(payload_width(self.inputs)))
        beat = split([*graph.inputs.values()], self.inputs)
        known = {
            f"i_payload[{x.offset + k}]": bit for x in inputs for k, bit in enumerate(beat[x.name])
        }
        payload = [f"o_payload[{k}]" for k in range(payload_width(outputs))]
        only = behind.with_outputs({x: behind.outputs[x] for x in payload})
        found = split([*only.copied(graph, known).values()], outputs)
        taken = [x for x in self.outputs if x.name not in BESIDE]
        packs = any(x.startswith("block.") for x in found)
        data = _packed(found, taken) if packs else _read(graph, found, beat, taken)
        last, user = (beat[x][0] for x in BESIDE)
        wrong = [*found.get("invalid", ()), *found.get("error", ()), *beat.get(PADDING, ())]
        bits = [*data, last, graph.any([user, *wrong])]
        return graph.with_outputs({f"o_payload[{k}]": bit for k, bit in enumerate(bits)})

    def specification(self) -> Iterator[Claim]:
        """Prove that the RTL without registers is the unit behind the bus."""
        if not self._settings["stages"]:
            yield from self._equal("RTL", self._reference)

    def _equal(self, name: str, design: Design) -> Iterator[Claim]:
        graph = self._as_stream(design.graph)
        try:
            unit = PipelinedUnit(graph)
            function = unit.function()
            if not self._settings["stages"]:
                show_passed(graph)
        except NotShownError as error:
            yield self._failed(name, "a function behind a queue", design, str(error), 0.0)
            return
        yield self._same_function(name, design, function, self.expected)
        if self._settings["stages"]:
            yield from self._queue(name, design, unit)
        else:
            yield Claim(name, "tready and tvalid pass through", Outcome.PROVED, "structure", 0.0)

    def _simulated(self, design: Design, items: Mapping[str, Any], stall: Stall | None) -> Any:
        netlist = json.loads(design.netlist)
        top = netlist["modules"]["top"]
        ports = top["ports"]
        top["ports"] = {x: ports[x] for x in ("clk", "rst") if x in ports}
        for old, new in PORTS.items():
            top["ports"][new] = ports[old]
        for bus, side in SIDES.items():
            bits = [bit for x in ("tdata", *BESIDE.values()) for bit in ports[f"{bus}_{x}"]["bits"]]
            top["ports"][f"{side}_payload"] = {**ports[f"{bus}_tdata"], "bits": bits}
        # A vector ends with a field `last`; here each beat has an output.
        inputs, outputs = (
            [replace(x, name=BESIDE.get(x.name, x.name)) for x in each]
            for each in (self.inputs, self.outputs)
        )
        text = model_source(read_netlist(json.dumps(netlist)), inputs, outputs)
        model = ComponentModel(Source(text, inputs, outputs), self._entry.name)
        given = {BESIDE.get(name, name): values for name, values in items.items()}
        found = model.run(given, stall).outputs
        return {x.name: found[BESIDE.get(x.name, x.name)] for x in self.outputs}

    def _as_stream(self, graph: Graph) -> Graph:
        """The graph with the ports of streams in place of those of buses."""
        names = {f"{old}[0]": f"{new}[0]" for old, new in PORTS.items()}
        for (bus, side), beat in zip(SIDES.items(), (self.inputs, self.outputs), strict=True):
            width = payload_width(beat) - len(BESIDE)
            names |= {f"{bus}_tdata[{k}]": f"{side}_payload[{k}]" for k in range(width)}
            for k, x in enumerate(BESIDE.values()):
                names[f"{bus}_{x}[0]"] = f"{side}_payload[{width + k}]"
        # Registers may be named as ports are, of buses or of streams.
        registers = {x.removeprefix(NEXT) for x in graph.outputs if x.startswith(NEXT)}
        names |= {NEXT + x: f"{NEXT}register {x}" for x in registers}
        found = graph.with_outputs({names.get(x, x): bit for x, bit in graph.outputs.items()})
        names |= {x: f"register {x}" for x in registers}
        found.inputs = {names.get(x, x): bit for x, bit in graph.inputs.items()}
        return found


def _beat(tdata: Any) -> list[Field]:
    """Fields of a beat: those of its data, then `last` and `user`."""
    found = fields(tdata.shape())
    width = payload_width(found)
    return [*found, *(Field(x, width + k, 1, False, ()) for k, x in enumerate(BESIDE))]


def _packed(found: Mapping[str, Sequence[int]], beat: Sequence[Field]) -> list[int]:
    """The data of a beat with the block that an encoder gives."""
    bits: list[int] = []
    for field in beat:
        width, name = field.width * field.count, field.name
        if f"block.{name}" in found:
            bits += found[f"block.{name}"]
        elif name == "mode":
            bits += [TRUE if Mode.DENSE >> k & 1 else FALSE for k in range(width)]
        elif name == "payload":
            bits += found["block.codes"]
        elif name in ("reserved", UNUSED, PADDING):
            bits += [FALSE] * width
    return bits


def _read(
    graph: Graph,
    found: Mapping[str, Sequence[int]],
    beat: Mapping[str, Sequence[int]],
    values: Sequence[Field],
) -> list[int]:
    """The data of a beat with what a decoder gives: zeros where the padding is wrong."""
    right = graph.any(beat.get(PADDING, ())) ^ 1
    return [graph.both(right, bit) for field in values for bit in found[field.name]]
