"""Whether a mutant with registers is the unit's function behind a queue, of items or of vectors.

Registers of the two may take different values in states that are never reached, or hold what no
output shows.
"""

from collections.abc import Mapping, Sequence
from functools import cached_property, partial
from typing import Protocol

import numpy as np

from axs6.hw.core.layouts import Field
from axs6.hw.units.unit import Items
from axs6.proof.aig import FALSE, TRUE, Graph
from axs6.proof.colours import Property
from axs6.proof.equivalence import compare
from axs6.proof.items import item_of
from axs6.proof.solver import solve
from axs6.proof.steps import NotShownError
from axs6.proof.stream import PipelinedUnit
from axs6.proof.totals import FIRST_ITEM, NEXT_ITEM, TOTAL, Alike, Reached
from axs6.proof.vectors import WAYS, Adding, VectorUnit
from axs6.proof.verdicts import UNDECIDED, Decision, Verdict
from axs6.synth.process import Limit

MOST_ITEMS = 3
"""Items, at most, of a vector that is to tell a mutant apart."""

IN_PARTS = 6
"""Times the limit of a solver, for a comparison of totals that are reached, or alike."""

PAYLOAD_IN, PAYLOAD_OUT = "i_payload[", "o_payload["


class SameQueue(Protocol):
    """Says of mutants with registers whether they are the unit."""

    def decide(self, outputs: Mapping[str, int]) -> Decision:
        """Of a mutant with these outputs.

        Raises:
            NotShownError: it is no function behind a queue that can be recognised.
        """


class SameItems:
    """For units whose outputs depend on one item each.

    Args:
        graph: of the unit with its mutants. right: outputs of the unit. inputs: fields of its
        payload. latency: cycles from input to output. seconds: limit of each question.
    """

    def __init__(
        self,
        graph: Graph,
        right: Mapping[str, int],
        inputs: Sequence[Field],
        latency: int,
        seconds: float,
    ) -> None:
        self._graph, self._right, self._inputs = graph, right, inputs
        self._latency, self._seconds = latency, seconds

    @cached_property
    def _function(self) -> Graph:
        """The unit's function, without its registers."""
        return PipelinedUnit(self._graph.with_outputs(self._right)).function()

    def decide(self, outputs: Mapping[str, int]) -> Decision:
        """As of `SameQueue`."""
        unit = PipelinedUnit(self._graph.with_outputs(outputs))
        found = compare(unit.function(), self._function, seconds=self._seconds)
        if found.equal is False:
            return Decision(Verdict.DIFFERENT, item_of(found.inputs, self._inputs))
        control = unit.control()
        shown = found.equal and all(
            control.shows(each, self._latency, self._seconds).holds for each in Property
        )
        return Decision(Verdict.EQUAL if shown else Verdict.OPEN)


class _Vectors(VectorUnit):
    """A unit of which mutants have the same registers, so that the order of totals is known."""

    @cached_property
    def _totals(self) -> list[int]:
        return sorted(self._loop)

    @property
    def totals(self) -> frozenset[int]:
        """The registers of totals."""
        return frozenset(self._loop)

    @cached_property
    def machine(self) -> tuple[object, ...]:
        """What decides that it is a queue of vectors, which mutants may have in common."""
        parts = self.control(), self.adding()
        return self._begins, *(
            (x.registers, x.handshakes, x.loads, frozenset(x.out)) for x in parts
        )

    def is_queue(self, latency: int) -> bool:
        """Whether it is shown to be a queue of vectors."""
        control = self.control()
        adding = (partial(self.shows, each, latency) for each in Adding)
        queued = (partial(control.shows, each, latency, self._seconds) for each in Property)
        return all(shows().holds for shows in (*adding, *queued))


class SameVectors:
    """For units whose outputs are of vectors.

    Args:
        graph: of the unit with its mutants. right: outputs of the unit. inputs: fields of its
        payload, of which `last` ends a vector. codes: whether an item has valid codes alone; others
        do not count. latency: cycles from input to output. seconds: limit of each question.
    """

    def __init__(
        self,
        graph: Graph,
        right: Mapping[str, int],
        inputs: Sequence[Field],
        codes: int,
        latency: int,
        seconds: float,
    ) -> None:
        self._graph, self._outputs, self._inputs = graph, right, inputs
        self._codes, self._latency, self._seconds = codes, latency, seconds
        self._ends = [f"i_payload[{x.offset}]" for x in inputs if x.name == "last"]
        self._queues: list[tuple[tuple[object, ...], bool]] = []

    @cached_property
    def _right(self) -> tuple[_Vectors, Graph] | None:
        """The unit, and its totals and output as functions; None if it has none."""
        try:
            unit = self._unit(self._outputs)
            return unit, unit.function()
        except NotShownError:
            return None

    def _unit(self, outputs: Mapping[str, int]) -> _Vectors:
        graph = self._graph.with_outputs(outputs)
        graph.inputs = dict(graph.inputs)  # the totals of each unit are inputs of its own
        return _Vectors(graph, self._ends, self._seconds)

    def decide(self, outputs: Mapping[str, int]) -> Decision:
        """As of `SameQueue`."""
        if self._right is None:
            return UNDECIDED
        (right, wanted), unit = self._right, self._unit(outputs)
        given = unit.function()
        if unit.totals != right.totals:
            raise NotShownError("totals are in other registers than those of the unit")
        if self._same_function(wanted, given):
            return Decision(Verdict.EQUAL if self._is_queue(unit) else Verdict.OPEN)
        items = _Unrolled([wanted, given], self._codes, self._ends, self._seconds).items(
            self._inputs
        )
        return UNDECIDED if items is None else Decision(Verdict.DIFFERENT, items)

    def _same_function(self, wanted: Graph, given: Graph) -> bool:
        """Whether totals and outputs are shown to be alike for all totals that are reached."""
        limit = Limit(IN_PARTS * self._seconds)
        while limit.left:
            known = (self._where_reached(each) for each in (wanted, given))
            found = compare(*known, seconds=self._seconds, ways=WAYS)
            if found.equal is not False:
                return bool(found.equal)
            excluded = self._reached.excludes(found.inputs)
            if not (excluded or self._alike.joins(found.outputs, found.inputs)):
                return False
        return False

    def _where_reached(self, function: Graph) -> Graph:
        """Outputs with one total for all that are alike; 0 for invalid codes, and for totals that
        are never reached.

        A mutant may have any total that is like one which is reached.
        """
        alike = self._alike.some(function)
        never = function.both(self._reached.never(function), alike ^ 1)
        counts = function.both(self._codes, never ^ 1)
        outputs = self._alike.joined(function, function.outputs)
        return function.with_outputs({x: function.both(bit, counts) for x, bit in outputs.items()})

    @cached_property
    def _reached(self) -> Reached:
        assert self._right is not None
        return Reached(self._right[1], self._codes, self._seconds)

    @cached_property
    def _alike(self) -> Alike:
        assert self._right is not None
        return Alike(self._right[1], self._codes, self._seconds)

    def _is_queue(self, unit: _Vectors) -> bool:
        """Whether it is a queue of vectors: most mutants have the control of another one."""
        for machine, shown in self._queues:
            if machine == unit.machine:
                return shown
        self._queues.append((unit.machine, unit.is_queue(self._latency)))
        return self._queues[-1][1]


class _Unrolled:
    """Looks for a vector of which two units give different results.

    Args:
        functions: of the two, with totals and outputs. codes: whether an item has valid codes
        alone, as a literal of both. ends: names of the bits of an item which end a vector.
        seconds: limit for each length.
    """

    def __init__(
        self, functions: Sequence[Graph], codes: int, ends: Sequence[str], seconds: float
    ) -> None:
        self._functions, self._codes = functions, codes
        self._ends, self._seconds = ends, seconds
        self._into = Graph(())

    def items(self, inputs: Sequence[Field]) -> Items | None:
        """The items of a vector; None if the time is over, or up to `MOST_ITEMS` show nothing."""
        into, payloads = self._into, list[dict[str, int]]()
        names = [x for x in self._functions[0].inputs if x.startswith(PAYLOAD_IN)]
        totals: list[dict[str, int]] = [{} for _ in self._functions]
        valid = TRUE
        for number in range(MOST_ITEMS):
            payload = {x: into.input(f"{x} of item {number}") for x in names}
            payloads.append(payload)
            one, other = (
                self._result(function, payload, before)
                for function, before in zip(self._functions, totals, strict=True)
            )
            unlike = into.any(into.unlike(bit, other[name]) for name, bit in one.items())
            within = {**payload, **dict.fromkeys(self._ends, FALSE)}
            totals = [
                self._after(function, within, before)
                for function, before in zip(self._functions, totals, strict=True)
            ]
            codes = self._functions[0].with_outputs({"codes": self._codes})
            valid = into.both(valid, codes.copied(into, payload)["codes"])
            if found := solve(into, [into.both(valid, unlike)], self._seconds):
                return self._items_of(found, payloads, inputs)
        return None

    def _after(
        self, function: Graph, payload: Mapping[str, int], totals: Mapping[str, int]
    ) -> dict[str, int]:
        """Totals after an item, by the names of inputs; before the first one there are none."""
        said = NEXT_ITEM if totals else FIRST_ITEM
        taken = {x: bit for x, bit in function.outputs.items() if x.startswith(said)}
        found = function.with_outputs(taken).copied(self._into, {**payload, **totals})
        return {TOTAL + name.removeprefix(said): bit for name, bit in found.items()}

    def _result(
        self, function: Graph, payload: Mapping[str, int], totals: Mapping[str, int]
    ) -> dict[str, int]:
        """What an item gives that ends a vector."""
        given = {**payload, **dict.fromkeys(self._ends, TRUE)}
        after = self._after(function, given, totals)
        shown = {x: bit for x, bit in function.outputs.items() if x.startswith(PAYLOAD_OUT)}
        return function.with_outputs(shown).copied(self._into, {**given, **after})

    def _items_of(
        self, ones: set[int], payloads: Sequence[Mapping[str, int]], inputs: Sequence[Field]
    ) -> Items:
        """Items whose bits are 1 at some nodes, of which the last one ends the vector."""
        found = []
        for number, payload in enumerate(payloads, 1):
            names = {x for x, bit in payload.items() if bit >> 1 in ones} - {*self._ends}
            names |= {*self._ends} if number == len(payloads) else set()
            found.append(item_of(names, inputs))
        return {name: np.concatenate([item[name] for item in found]) for name in found[0]}
