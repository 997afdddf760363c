"""Proofs about a unit, for all inputs: of its RTL, and of netlists that are to be the same."""

import time
from collections.abc import Callable, Iterator, Mapping
from dataclasses import dataclass
from enum import StrEnum
from functools import cached_property, partial
from typing import Any

import numpy as np

from axs6.hw.core.layouts import port_fields
from axs6.hw.registry import find_with_streams
from axs6.hw.units.unit import Items
from axs6.hw.verilog import Generated, generate
from axs6.proof.aig import NEXT, UNDRIVEN, Graph
from axs6.proof.colours import Answer, Property
from axs6.proof.equivalence import compare
from axs6.proof.items import item_of, names_of, numbers_of, one_item_each
from axs6.proof.netlists import Design, check_driven, mapped_design, verilog_design
from axs6.proof.specifications import SPECIFICATIONS
from axs6.proof.steps import NotShownError, Proof, Subject
from axs6.proof.stream import PipelinedUnit
from axs6.proof.vectors import RESULTS, WAYS, Adding, VectorUnit
from axs6.sim.batch.engine import GateModel
from axs6.sim.batch.read import read_netlist
from axs6.sim.compiled import Stall
from axs6.sim.tools import ToolError
from axs6.sim.words import payload_width
from axs6.synth.mapped import mapped_netlist

RANDOM_ITEMS = 2000
"""Items that look for a difference where a step of a proof fails, beside the corner cases."""

VECTOR_ITEMS = 20_000
"""The same with stalls, where items form vectors: each copy in the simulator takes several."""

STALL_SEEDS = 4
"""Simulations with stalls that look for a fault which the proof found."""


class Outcome(StrEnum):
    """PROVED: for all inputs. REFUTED: an input shows the contrary. OPEN: neither is known."""

    PROVED = "proved"
    REFUTED = "refuted"
    OPEN = "open"


@dataclass(frozen=True)
class Claim:
    """A statement about a design and what is known of it.

    Args:
        design: "RTL", or what the netlist is. text: the statement. outcome: proved or not. reason:
        what showed it, or why it is open. seconds: time. item: an input that refutes it.
    """

    design: str
    text: str
    outcome: Outcome
    reason: str
    seconds: float
    item: Items | None = None

    def to_dict(self) -> dict[str, Any]:
        """Everything, for JSON."""
        item = None if self.item is None else numbers_of(self.item)
        return {**vars(self), "outcome": str(self.outcome), "item": item}


class UnitProof:
    """Proves that a unit is what its formats define, and that other designs are that unit.

    Args:
        unit: name of a unit with streams `i` and `o`. Its outputs depend on one item each, or on
        vectors and it has a specification.
        parameters: of it; the others keep their defaults.
        seconds: limit of each question to a solver, and of Yosys.

    Raises:
        ValueError: an argument is refused, or outputs depend on several items in another way.
        SynthesisError: pyosys is missing, fails, or takes too long.
    """

    same = "outputs are those of the RTL without registers"
    """What is claimed of a design whose outputs depend on one item each."""

    def __init__(self, unit: str, parameters: Mapping[str, Any], seconds: float = 600) -> None:
        self._entry = entry = find_with_streams(unit)
        self._settings = entry.parameters(parameters)
        self._flat = self._settings | ({"stages": 0} if "stages" in self._settings else {})
        self._seconds = seconds
        self.inputs, self.outputs = port_fields(entry.build(**self._settings))
        self._alone = one_item_each(entry, self.inputs)
        if not self._alone and entry.name not in SPECIFICATIONS:
            raise ValueError(
                "a proof of this needs outputs of one item each, and those of "
                f"{entry.name} depend on several"
            )
        self._ends = [f"i_payload[{field.offset}]" for field in self.inputs if field.name == "last"]

    def _check_turns(self) -> None:
        """Refuse vectors that take turns."""
        turns = self._settings.get("interleave", 1)
        if not self._alone and turns != 1:
            raise ValueError(f"a proof of registers needs interleave 1, not {turns}")

    @cached_property
    def _made(self) -> Generated:
        return generate(self._entry.name, **self._settings)

    @cached_property
    def _reference(self) -> Design:
        """The RTL without registers."""
        flat = generate(self._entry.name, **self._flat)
        return verilog_design(flat.verilog, flat.module, seconds=self._seconds)

    @cached_property
    def unspecified(self) -> str:
        """Why the RTL cannot be held to a specification; nothing if it can."""
        name = self._entry.name
        if name not in SPECIFICATIONS:
            known = ", ".join(SPECIFICATIONS)
            return f"{name} has no specification to prove; these have: {known}"
        ports = Graph(f"i_payload[{k}]" for k in range(payload_width(self.inputs)))
        try:
            self.held(ports)
        except ValueError as error:
            return str(error)
        return ""

    def held(self, graph: Graph) -> Proof:
        """The proof that a graph with the unit's ports, without `stages`, is the specified unit.

        Raises:
            ValueError: there is no specification of the format.
        """
        of = Subject(graph, self._flat, self.inputs, self.outputs, self._seconds)
        return SPECIFICATIONS[self._entry.name](of)

    def specification(self) -> Iterator[Claim]:
        """Prove that the RTL without registers is what the formats' definitions say.

        Raises:
            ValueError: there is no specification of the unit or the format.
        """
        if self.unspecified:
            raise ValueError(self.unspecified)
        for text, step in self.held(self._reference.graph).steps().items():
            yield self._claim("RTL", text, self._reference, step)

    def rtl(self) -> Iterator[Claim]:
        """Prove that the RTL with its registers is that without them, behind a queue."""
        if self._settings.get("stages"):
            self._check_turns()
            made = self._made
            design = verilog_design(made.verilog, made.module, seconds=self._seconds)
            yield from self._equal("RTL", design)

    def mapped(self, **options: Any) -> Iterator[Claim]:
        """Prove that the netlist which synthesis gives is the RTL.

        Args:
            options: of `axs6.synth.flow.Synthesis`.

        Raises:
            ValueError: vectors take turns.
            SynthesisError: as `axs6.synth.mapped.mapped_netlist`.
        """
        self._check_turns()
        made = self._made
        netlist = mapped_netlist(made.verilog, made.module, timeout=self._seconds, **options)
        name = " ".join(
            [
                str(options.get("liberty") or options["target"]),
                *(["with adder cells"] if options.get("adder_cells") else []),
                f"for {options.get('optimise', 'area')}",
            ]
        )
        yield from self._equal(name, mapped_design(netlist, self._seconds))

    def netlist(self, name: str, verilog: str, liberty: str | None = None) -> Iterator[Claim]:
        """Prove that other Verilog is the unit.

        Args:
            name: of the design, for claims. verilog: text. liberty: text of a Liberty file with its
            cells, if it has cells.

        Raises:
            SynthesisError: Yosys refuses it.
            ValueError: it has other ports, or bits that nothing drives; or vectors take turns.
            NetlistError: it has other clocks or edges, latches, loops, or nets with two drivers.
        """
        self._check_turns()
        design = verilog_design(verilog, liberty=liberty, seconds=self._seconds)
        wanted, given = (_ports(each.graph) for each in (self._reference, design))
        if unlike := sorted(wanted ^ given):
            said = f"no {unlike[0]}" if unlike[0] in wanted else f"not {unlike[0]}"
            raise ValueError(f"{name} must have the ports of {self._made.module}; {said}")
        read_netlist(design.netlist)
        check_driven(name, design.netlist)
        yield from self._equal(name, design)

    def _equal(self, name: str, design: Design) -> Iterator[Claim]:
        if not self._alone:
            yield from self._equal_vectors(name, design, self._reference.graph)
            return
        if not self._settings.get("stages"):
            yield self._same_function(name, design, design.graph, self._reference.graph)
            return
        try:
            unit = PipelinedUnit(design.graph)
            function = unit.function()
        except NotShownError as error:
            yield self._failed(name, "a function behind a queue", design, str(error), 0.0)
            return
        wanted = self._reference.graph
        payload = {bit: x for bit, x in wanted.outputs.items() if bit in function.outputs}
        yield self._same_function(name, design, function, wanted.with_outputs(payload))
        yield from self._queue(name, design, unit)

    @property
    def _same_totals(self) -> str:
        """What is claimed of a design that adds up vectors."""
        registers = " without registers" if self._settings.get("stages") else ""
        return f"totals and results are those of the RTL{registers}"

    def _equal_vectors(self, name: str, design: Design, wanted: Graph) -> Iterator[Claim]:
        start, text = time.perf_counter(), self._same_totals
        try:
            unit, flat = (
                VectorUnit(graph, self._ends, self._seconds) for graph in (design.graph, wanted)
            )
            one, other = unit.function(), flat.function()
            if len(one.outputs) != len(other.outputs):
                raise NotShownError("totals have other bits than those of the RTL")
            found = compare(one, other, seconds=self._seconds, ways=WAYS)
        except NotShownError as error:
            said, seconds = str(error), time.perf_counter() - start
            yield self._failed(name, "sums of vectors behind a queue", design, said, seconds)
            return
        seconds = time.perf_counter() - start
        if not found.equal:
            yield self._failed(name, text, design, found.by, seconds)
            return
        yield Claim(name, text, Outcome.PROVED, found.by, seconds)
        latency = self._made.manifest["latency"]
        for each in Adding:
            yield self._in_all_cycles(name, each, design, partial(unit.shows, each, latency))
        yield from self._queue(name, design, unit)

    def _queue(self, name: str, design: Design, unit: PipelinedUnit) -> Iterator[Claim]:
        control, latency = unit.control(), self._made.manifest["latency"]
        for each in Property:
            shows = partial(control.shows, each, latency, self._seconds)
            text = each if self._alone else RESULTS[each]
            yield self._in_all_cycles(name, text, design, shows)

    def _in_all_cycles(
        self, name: str, text: str, design: Design, shows: Callable[[], Answer]
    ) -> Claim:
        """A claim that is shown or not."""
        start = time.perf_counter()
        holds, by = shows()
        seconds = time.perf_counter() - start
        if holds is False:
            reason = f"{by}, {self._seen_with_stalls(design)}"
            return Claim(name, text, Outcome.REFUTED, reason, seconds)
        outcome = Outcome.PROVED if holds else Outcome.OPEN
        return Claim(name, text, outcome, by, seconds)

    def _same_function(self, name: str, design: Design, one: Graph, other: Graph) -> Claim:
        start, text = time.perf_counter(), self.same
        found = compare(one, other, seconds=self._seconds)
        seconds = time.perf_counter() - start
        if found.equal is not False:
            outcome = Outcome.PROVED if found.equal else Outcome.OPEN
            return Claim(name, text, outcome, found.by, seconds)
        if any(each.startswith(UNDRIVEN) for each in found.inputs):
            return Claim(name, text, Outcome.OPEN, "outputs depend on undriven nets", seconds)
        item = item_of(found.inputs, self.inputs)
        if not self._differs(design, item).any():
            raise ToolError(f"an item that was to refute {name} does not: {numbers_of(item)}")
        return Claim(name, text, Outcome.REFUTED, found.by, seconds, item)

    def _claim(self, name: str, text: str, design: Design, step: Callable[[], None]) -> Claim:
        start = time.perf_counter()
        try:
            step()
        except NotShownError as error:
            seconds = time.perf_counter() - start
            return self._failed(name, text, design, str(error), seconds, error.payload)
        return Claim(name, text, Outcome.PROVED, "proof", time.perf_counter() - start)

    def _failed(
        self,
        name: str,
        text: str,
        design: Design,
        why: str,
        seconds: float,
        payload: int | None = None,
    ) -> Claim:
        """A claim of which a step failed: refuted if an input, which may be given, differs."""
        for items in self._to_try(payload if self._alone else None):
            try:
                differs = self._differs(design, items)
            except ToolError as error:
                return Claim(name, text, Outcome.REFUTED, f"{why}; in simulation: {error}", seconds)
            if differs.any():
                which = self._items_of(items, int(np.argmax(differs)))
                item = {key: values[which] for key, values in items.items()}
                return Claim(name, text, Outcome.REFUTED, why, seconds, item)
        return Claim(name, text, Outcome.OPEN, why, seconds)

    def _to_try(self, payload: int | None) -> Iterator[Items]:
        """A payload if there is one, corner cases, then random items."""
        if payload is not None:
            yield item_of(names_of(payload), self.inputs)
        yield self._entry.corners(self._flat)
        yield self._entry.random(self._flat, np.random.default_rng(1), RANDOM_ITEMS)

    def _items_of(self, items: Mapping[str, Any], output: int) -> slice:
        """The items on which an output depends: one, or those of a vector."""
        if self._alone:
            return slice(output, output + 1)
        ends = [0, *(1 + np.flatnonzero(items["last"]))]
        return slice(ends[output], ends[output + 1])

    def _seen_with_stalls(self, design: Design) -> str:
        """Whether random items with random stalls show a fault in the batch simulator, and how."""
        count = RANDOM_ITEMS if self._alone else VECTOR_ITEMS
        for seed in range(STALL_SEEDS):
            items = self._entry.random(self._flat, np.random.default_rng(seed), count)
            stall = Stall(0.4, 0.4, seed=seed)
            try:
                wrong = self._differs(design, items, stall)
            except ToolError as error:
                return f"in simulation with stalls of seed {seed}: {error}"
            if wrong.any():
                return f"in simulation with stalls of seed {seed}: {wrong.sum()} outputs differ"
        return f"not seen in {STALL_SEEDS} simulations with stalls"

    def _differs(self, design: Design, items: Mapping[str, Any], stall: Stall | None = None) -> Any:
        """Which items give other outputs in the batch simulator than the golden model says."""
        expected = self._entry.golden(items, self._flat)
        given = self._simulated(design, items, stall)
        unlike = [
            (given[key] != right.astype(given[key].dtype)).reshape(len(right), -1).any(axis=1)
            for key, right in expected.items()
        ]
        return np.any(unlike, axis=0)

    def _simulated(self, design: Design, items: Mapping[str, Any], stall: Stall | None) -> Any:
        """The outputs that a design gives in the batch simulator."""
        model = GateModel(design.netlist, self._entry.name, **self._settings)
        return model.run(dict(items), stall).outputs


def _ports(graph: Graph) -> set[str]:
    """Names of the ports' bits, but of clock and reset, which a design may not use."""
    registers = {name.removeprefix(NEXT) for name in graph.outputs if name.startswith(NEXT)}
    names = [x for x in graph.inputs if x not in registers and not x.startswith(UNDRIVEN)]
    names += [x for x in graph.outputs if not x.startswith(NEXT)]
    return set(names) - {"clk[0]", "rst[0]"}
