"""Units with one AXI4-Stream on each side held against docs/axis.md, for all beats and all stalls.

A beat is an item. With its ports named as those of streams, such a unit is a function behind a
queue (`axs6.proof.stream`): the marks of a beat, and the function of the unit that is behind the
bus, which is proved alone. What the bytes of beats are is stated here anew.
"""

import json
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import replace
from functools import cached_property
from itertools import count
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
    "axis_dot": ("dot", {"blocks": "packed"}),
}
"""The unit behind a bus, and parameters that it has there."""

SLAVE, MASTER = "s_axis", "m_axis"
"""Names of buses begin so: of those that give beats to a unit, and of the one that takes them."""

UNCONNECTED = -1
"""A net that nothing else reads or drives."""

BESIDE = {"last": "tlast", "user": "tuser"}
"""What a beat has beside its data, above them in a payload, and its port."""


class BusProof(UnitProof):
    """Proves that a unit on AXI4-Stream is the unit behind the bus, and keeps the bus's rules.

    Args:
        unit: its name. parameters: of it; the others keep their defaults. seconds: limit of each
        question to a solver, and of Yosys.

    Raises:
        ValueError: an argument is refused.
    """

    unspecified = ""
    """Why it has no specification: every one has."""

    same = "each beat is what the unit behind the bus gives, with tlast and tuser of its own"

    def __init__(self, unit: str, parameters: Mapping[str, Any], seconds: float = 600) -> None:
        self._entry = entry = BUS_UNITS[unit]
        self._settings, self._seconds = entry.parameters(parameters), seconds
        self._flat = {**self._settings, "stages": 0}
        self._alone, self._ends = True, []
        component: Any = entry.build(**self._settings)
        data = {x: fields(getattr(component, x).tdata.shape()) for x in component.signature.members}
        self._buses = {
            side: {x: each for x, each in data.items() if x.startswith(name)}
            for side, name in (("i", SLAVE), ("o", MASTER))
        }
        self.inputs, self.outputs = (_beat(x) for x in self._buses.values())

    @cached_property
    def _behind(self) -> tuple[Graph, list[Field], list[Field]]:
        """The graph of the unit behind the bus, and fields of its payloads."""
        name, more = BEHIND[self._entry.name]
        own = UNITS[name].defaults
        settings = {x: value for x, value in self._settings.items() if x in own}
        settings |= {**more, "stages": 0}
        made = generate(name, **settings)
        graph = verilog_design(made.verilog, made.module, seconds=self._seconds).graph
        return graph, *port_fields(UNITS[name].build(**settings))

    @cached_property
    def expected(self) -> Graph:
        """Data and marks of a beat that comes out, as functions of those of one that goes in."""
        behind, inputs, outputs = self._behind
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
        module = netlist["modules"]["top"]
        self._take_streams(module)
        # The simulator takes a field `last` for the end of a vector, which nothing else reads.
        ends = self._vector_ends(items)
        width = payload_width(self.inputs)
        last = [Field(x, width, 1, False, ()) for x in ends]
        module["ports"]["i_payload"]["bits"] += [UNCONNECTED] * len(last)
        inputs, outputs = (
            [replace(x, name=BESIDE.get(x.name, x.name)) for x in each]
            for each in (self.inputs, self.outputs)
        )
        text = model_source(read_netlist(json.dumps(netlist)), [*inputs, *last], outputs)
        model = ComponentModel(Source(text, [*inputs, *last], outputs), self._entry.name)
        given = {BESIDE.get(name, name): values for name, values in items.items()}
        found = model.run(given | ends, stall).outputs
        return {x.name: found[BESIDE.get(x.name, x.name)] for x in self.outputs}

    def _vector_ends(self, items: Mapping[str, Any]) -> dict[str, Any]:
        """Where vectors end, as `last`; nothing, as each beat has an output."""
        return {}

    def _take_streams(self, module: dict[str, Any]) -> None:
        """Give a module of Yosys JSON the ports of streams in place of those of buses."""
        ports = module["ports"]
        module["ports"] = {x: ports[x] for x in ("clk", "rst") if x in ports}
        for old, new in self._names.items():
            (bus, bit), (stream, place) = (x[:-1].split("[") for x in (old, new))
            port = {"direction": ports[bus]["direction"], "bits": []}
            bits = module["ports"].setdefault(stream, port)["bits"]
            if len(bits) == int(place):  # `valid` and `ready` are those of the first bus
                bits.append(ports[bus]["bits"][int(bit)])

    @cached_property
    def _names(self) -> dict[str, str]:
        """Names of the bits of buses, each with that of a stream in its place."""
        names: dict[str, str] = {}
        for side, buses in self._buses.items():
            places = count()
            for bus, data in buses.items():
                names |= {f"{bus}_t{x}[0]": f"{side}_{x}[0]" for x in ("valid", "ready")}
                bits = [f"tdata[{k}]" for k in range(payload_width(data))]
                bits += [f"{port}[0]" for port in BESIDE.values()]
                names |= {f"{bus}_{x}": f"{side}_payload[{next(places)}]" for x in bits}
        return names

    def _as_stream(self, graph: Graph) -> Graph:
        """The graph with the ports of streams in place of those of buses."""
        # Registers may be named as ports are, of buses or of streams.
        registers = {x.removeprefix(NEXT) for x in graph.outputs if x.startswith(NEXT)}
        names = self._names | {NEXT + x: f"{NEXT}register {x}" for x in registers}
        found = graph.with_outputs({names.get(x, x): bit for x, bit in graph.outputs.items()})
        names |= {x: f"register {x}" for x in registers}
        found.inputs = {names.get(x, x): bit for x, bit in graph.inputs.items()}
        return found


def _beat(buses: Mapping[str, Sequence[Field]]) -> list[Field]:
    """Fields of the beats of buses: those of the data of each one, then `last` and `user`.

    Of several buses they are named after each one, as "a.last" for `s_axis_a`.
    """
    found: list[Field] = []
    start = 0
    for bus, data in buses.items():
        width = payload_width(data)
        beat = [*data, *(Field(x, width + k, 1, False, ()) for k, x in enumerate(BESIDE))]
        of = f"{bus.removeprefix(f'{SLAVE}_')}." if len(buses) > 1 else ""
        found += [replace(x, name=of + x.name, offset=start + x.offset) for x in beat]
        start += payload_width(beat)
    return found


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
