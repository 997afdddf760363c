"""Units with one AXI4-Stream on each side held against docs/axis.md, for all beats and all stalls.

A beat is an item. With its ports named as those of streams, such a unit is a function behind a
queue (`axs6.proof.stream`): the marks of a beat, and the function of the unit that is behind the
bus, which is proved alone. What the bytes of beats are is stated here anew.
"""

import time
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import replace
from functools import cached_property, partial
from typing import Any

from axs6.golden.formats import Mode
from axs6.hw.core.layouts import PADDING, UNUSED, Field, fields, port_fields
from axs6.hw.registry import BUS_UNITS, UNITS
from axs6.hw.verilog import Generated, generate
from axs6.proof.aig import FALSE, NEXT, TRUE, UNDRIVEN, Graph
from axs6.proof.colours import Property
from axs6.proof.cores import split
from axs6.proof.equivalence import compare
from axs6.proof.items import item_of
from axs6.proof.netlists import Design, check_driven, mapped_design, verilog_design
from axs6.proof.prove import Claim, Outcome, check_ports, mapped_name
from axs6.proof.steps import NotShownError, show_passed
from axs6.proof.stream import PipelinedUnit
from axs6.sim.batch.read import read_netlist
from axs6.sim.words import payload_width
from axs6.synth.mapped import mapped_netlist

BEHIND: Mapping[str, tuple[str, Mapping[str, Any]]] = {
    "axis_encoder": ("encoder", {}),
    "axis_decoder": ("decoder", {"blocks": "packed"}),
}
"""The unit behind a bus, and parameters that it has there."""

FUNCTION = "each beat is what the unit behind the bus gives, with tlast and tuser of its own"

PORTS = {
    "s_axis_tvalid[0]": "i_valid[0]",
    "s_axis_tready[0]": "i_ready[0]",
    "m_axis_tvalid[0]": "o_valid[0]",
    "m_axis_tready[0]": "o_ready[0]",
}
"""Handshakes of the buses, and what streams call them."""

MARKS = ("tlast", "tuser")
"""What a beat has beside its data, in this order above them."""


class BusProof:
    """Proves that a unit on AXI4-Stream is the unit behind the bus, and keeps the bus's rules.

    Args:
        unit: its name. parameters: of it; the others keep their defaults. seconds: limit of each
        question to a solver, and of Yosys.

    Raises:
        ValueError: an argument is refused, or the unit has several buses on a side.
    """

    unspecified = ""
    """Why it has no specification: every one has."""

    def __init__(self, unit: str, parameters: Mapping[str, Any], seconds: float = 600) -> None:
        if unit not in BEHIND:
            raise ValueError(f"a proof of a bus needs {' or '.join(BEHIND)}, not {unit}")
        entry = BUS_UNITS[unit]
        self._settings, self._seconds = entry.parameters(parameters), seconds
        self._name = unit
        component: Any = entry.build(**self._settings)
        self._given, self._taken = (
            fields(bus.tdata.shape()) for bus in (component.s_axis, component.m_axis)
        )
        width = payload_width(self._given)
        self.inputs: list[Field] = [
            *self._given,
            *(
                replace(self._given[0], name=name, offset=width + k, width=1, shape=())
                for k, name in enumerate(MARKS)
            ),
        ]
        """Fields of a beat that goes in."""

    @cached_property
    def _made(self) -> Generated:
        return generate(self._name, **self._settings)

    @cached_property
    def expected(self) -> Graph:
        """Data and marks of a beat that comes out, as functions of those of one that goes in."""
        name, more = BEHIND[self._name]
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
        packs = any(x.startswith("block.") for x in found)
        data = _packed(found, self._taken) if packs else _read(graph, found, beat, self._taken)
        last, user = (beat[x][0] for x in MARKS)
        wrong = [*found.get("invalid", ()), *found.get("error", ()), *beat.get(PADDING, ())]
        bits = [*data, last, graph.any([user, *wrong])]
        return graph.with_outputs({f"o_payload[{k}]": bit for k, bit in enumerate(bits)})

    def specification(self) -> Iterator[Claim]:
        """Prove that the RTL without registers is the unit behind the bus.

        Raises:
            SynthesisError: pyosys is missing, fails, or takes too long.
        """
        if not self._settings["stages"]:
            yield from self._equal("RTL", self._design)

    def rtl(self) -> Iterator[Claim]:
        """Prove that the RTL with its registers is the unit behind the bus, and a queue."""
        if self._settings["stages"]:
            yield from self._equal("RTL", self._design)

    @cached_property
    def _design(self) -> Design:
        return verilog_design(self._made.verilog, self._made.module, seconds=self._seconds)

    def mapped(self, **options: Any) -> Iterator[Claim]:
        """Prove the same of the netlist which synthesis gives.

        Args:
            options: of `axs6.synth.flow.Synthesis`.

        Raises:
            SynthesisError: as `axs6.synth.mapped.mapped_netlist`.
        """
        made = self._made
        netlist = mapped_netlist(made.verilog, made.module, timeout=self._seconds, **options)
        yield from self._equal(mapped_name(**options), mapped_design(netlist, self._seconds))

    def netlist(self, name: str, verilog: str, liberty: str | None = None) -> Iterator[Claim]:
        """Prove the same of other Verilog; arguments and errors are those of `UnitProof`."""
        design = verilog_design(verilog, liberty=liberty, seconds=self._seconds)
        check_ports(name, self._made.module, self._design.graph, design.graph)
        read_netlist(design.netlist)
        check_driven(name, design.netlist)
        yield from self._equal(name, design)

    def _equal(self, name: str, design: Design) -> Iterator[Claim]:
        graph, start = self._as_stream(design.graph), time.perf_counter()
        try:
            unit = PipelinedUnit(graph)
            function = unit.function()
            if not self._settings["stages"]:
                show_passed(graph)
        except NotShownError as error:
            seconds = time.perf_counter() - start
            yield Claim(name, "a function behind a queue", Outcome.OPEN, str(error), seconds)
            return
        yield self._same_function(name, function)
        if not self._settings["stages"]:
            yield Claim(name, "tready and tvalid pass through", Outcome.PROVED, "structure", 0.0)
            return
        control, latency = unit.control(), self._made.manifest["latency"]
        for each in Property:
            yield _in_all_cycles(name, each, partial(control.shows, each, latency, self._seconds))

    def _same_function(self, name: str, function: Graph) -> Claim:
        start = time.perf_counter()
        expected = self.expected
        found = compare(function, expected, seconds=self._seconds)
        seconds = time.perf_counter() - start
        if found.equal is not False:
            outcome = Outcome.PROVED if found.equal else Outcome.OPEN
            return Claim(name, FUNCTION, outcome, found.by, seconds)
        if any(each.startswith(UNDRIVEN) for each in found.inputs):
            return Claim(name, FUNCTION, Outcome.OPEN, "outputs depend on undriven nets", seconds)
        item = item_of(found.inputs, self.inputs)
        return Claim(name, FUNCTION, Outcome.REFUTED, found.by, seconds, item)

    def _as_stream(self, graph: Graph) -> Graph:
        """The graph with the ports of streams in place of those of buses."""
        given, taken = (
            {
                **{f"{bus}_tdata[{k}]": f"{side}_payload[{k}]" for k in range(width)},
                **{f"{bus}_{x}[0]": f"{side}_payload[{width + k}]" for k, x in enumerate(MARKS)},
            }
            for bus, side, width in (
                ("s_axis", "i", payload_width(self._given)),
                ("m_axis", "o", payload_width(self._taken)),
            )
        )
        names = {**PORTS, **given, **taken}
        # Registers may be named as ports are, of buses or of streams.
        registers = {x.removeprefix(NEXT) for x in graph.outputs if x.startswith(NEXT)}
        names |= {NEXT + x: f"{NEXT}register {x}" for x in registers}
        found = graph.with_outputs({names.get(x, x): bit for x, bit in graph.outputs.items()})
        names |= {x: f"register {x}" for x in registers}
        found.inputs = {names.get(x, x): bit for x, bit in graph.inputs.items()}
        return found


def _in_all_cycles(name: str, text: str, shows: Callable[[], bool | None]) -> Claim:
    start = time.perf_counter()
    shown = shows()
    outcome = {True: Outcome.PROVED, False: Outcome.REFUTED, None: Outcome.OPEN}[shown]
    return Claim(name, text, outcome, "ABC pdr", time.perf_counter() - start)


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
