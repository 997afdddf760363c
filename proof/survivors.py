"""A SAT solver on mutants that no item kills: equal to the unit, or an item that kills."""

from collections.abc import Callable, Container, Mapping, Sequence

from axs6.golden.formats import Scale
from axs6.hw.core.layouts import Field
from axs6.proof.aig import FALSE, NEXT, TRUE, Graph
from axs6.proof.equivalence import WAYS, compare
from axs6.proof.items import item_of
from axs6.proof.mutants import SELECTOR, SELECTOR_BITS
from axs6.proof.same_queue import SameItems, SameQueue, SameVectors
from axs6.proof.split import Split
from axs6.proof.steps import NotShownError, Proof
from axs6.proof.verdicts import UNDECIDED, Decision, Verdict
from axs6.proof.windows import Faults

PAYLOAD, VALID = "o_payload[", "o_valid[0]"

SMALL, LARGE = ((8, 12), (16, 24), (24, 80)), ((48, None), (96, None))
"""Windows around a fault: levels behind it, and levels before those, None for all."""

QUICK = 1.0
"""Seconds for a first question about a mutant."""

WHOLE = 3
"""Times the limit of a solver, for the question about the whole unit."""

IN_PARTS = 10
"""Times the limit of a solver, for a question in parts."""

WIDE = 8
"""Bits of a scale above which a question is split by its highest 1."""


class Judge:
    """Says of mutants whether they are the unit.

    Equal means equal `ready` and `valid`, an equal payload where it is valid, and equal values that
    registers take, for all inputs and all values of registers. A mutant of a unit with registers is
    also equal if it is the same function behind a queue (`axs6.proof.same_queue`).

    Args:
        graph: of the unit with its mutants.
        inputs, outputs: fields of the unit's payloads.
        scales: of fields that are codes of a scale: other values than its codes do not count.
        latency: cycles from input to output of a unit that is a queue; None for others.
        proof: gives the proof that a graph is what the unit has to be, which is tried where the
        solver takes too long.
        seconds: limit of the solvers; questions in parts (`axs6.proof.split`) have more.

    Source: docs/verification.md, "Mutants".
    """

    def __init__(
        self,
        graph: Graph,
        inputs: Sequence[Field],
        outputs: Sequence[Field],
        scales: Mapping[str, Scale] | None = None,
        latency: int | None = None,
        proof: Callable[[Graph], Proof] | None = None,
        seconds: float = 60,
    ) -> None:
        known = scales or {}
        self._graph, self._inputs, self._seconds = graph, inputs, seconds
        self._proof = proof
        self._registers = any(name.startswith(NEXT) for name in graph.outputs)
        selector = [graph.inputs[f"{SELECTOR}[{k}]"] for k in range(SELECTOR_BITS)]
        self._right = self._outputs(0)
        codes = [_is_code(graph, x, known[x.name]) for x in inputs if x.name in known]
        numbers = [name for name, scale in known.items() if scale.bits > WIDE]
        self._split = Split(graph, inputs, outputs, numbers, IN_PARTS * seconds)
        self._valid_codes = graph.all(codes)
        self._right_seen = self._seen(self._right)
        counts = self._seen(dict.fromkeys(self._right, TRUE) | {VALID: self._right[VALID]})
        self._faults = Faults(graph, selector, {**counts, VALID: self._valid_codes})
        self._queue = None if latency is None else self._same_queue(latency)

    def _same_queue(self, latency: int) -> SameQueue:
        """What compares queues of items or of vectors."""
        graph, right, inputs = self._graph, self._right, self._inputs
        if any(field.name == "last" for field in inputs):
            codes = self._valid_codes
            return SameVectors(graph, right, inputs, codes, latency, self._seconds)
        return SameItems(graph, right, inputs, latency, self._seconds)

    def _outputs(self, number: int) -> dict[str, int]:
        """The outputs of a mutant, or with 0 of the unit."""
        graph = self._graph
        bits = {graph.inputs[f"{SELECTOR}[{k}]"]: number >> k & 1 for k in range(SELECTOR_BITS)}
        found = graph.cofactor(list(graph.outputs.values()), bits)
        return dict(zip(graph.outputs, found, strict=True))

    def decide_quickly(self, number: int) -> Decision:
        """Whether the mutant with this value of the selector is the unit, or OPEN."""
        if self._faults.end_nearby(number, SMALL, QUICK):
            return Decision(Verdict.EQUAL)
        return UNDECIDED

    def decide_soon(self, number: int) -> Decision:
        """The same, by larger windows, and by a first question about the whole unit."""
        if self._faults.end_nearby(number, LARGE, QUICK):
            return Decision(Verdict.EQUAL)
        return self._decided(number, self._faults.unlike(number, QUICK))

    def decide(self, number: int) -> Decision:
        """The same, by all that may show it: this may take long."""
        seen = self._seen(self._outputs(number))
        found = self._split.solve(self._differences(seen))
        if found is None:
            found = self._faults.unlike(number, WHOLE * self._seconds)
        return self._compared(number, seen) if found is None else self._decided(number, found)

    def _differences(self, seen: Mapping[str, int]) -> dict[str, int]:
        """Where outputs of a mutant are not those of the unit, by their names."""
        return {name: self._graph.unlike(bit, seen[name]) for name, bit in self._right_seen.items()}

    def _decided(self, number: int, found: set[int] | None) -> Decision:
        """What the nodes say that are 1 where outputs differ; OPEN without an answer."""
        if found is None:
            return UNDECIDED
        if not found:
            return Decision(Verdict.EQUAL)
        ones = {name for name, bit in self._graph.inputs.items() if bit >> 1 in found}
        return self._unlike(number, ones)

    def _compared(self, number: int, seen: Mapping[str, int]) -> Decision:
        """What ABC or the proof of the unit says of a mutant."""
        graph, seconds = self._graph, 2 * self._seconds
        ports = (graph.with_outputs(each) for each in (self._right_seen, seen))
        found = compare(*ports, seconds=seconds, ways=WAYS[-1:])
        if found.equal is False:
            return self._unlike(number, found.inputs)
        equal = found.equal or self._proved(graph.with_outputs(self._outputs(number)))
        return Decision(Verdict.EQUAL if equal else Verdict.OPEN)

    def _unlike(self, number: int, ones: Container[str]) -> Decision:
        """A mutant with other outputs or registers where some inputs are 1."""
        if self._registers:
            return self._as_queue(self._outputs(number))
        return Decision(Verdict.DIFFERENT, item_of(ones, self._inputs))

    def _seen(self, outputs: Mapping[str, int]) -> dict[str, int]:
        """The outputs where they count, else 0: for valid codes, and payloads that are valid."""
        return {
            name: self._graph.all(
                [bit, outputs[VALID] if name.startswith(PAYLOAD) else TRUE, self._valid_codes]
            )
            for name, bit in outputs.items()
        }

    def _proved(self, mutant: Graph) -> bool:
        """Whether the proof of the unit holds for a mutant."""
        if self._proof is None:
            return False
        try:
            for step in self._proof(mutant).steps().values():
                step()
        except NotShownError:
            return False
        return True

    def _as_queue(self, wrong: Mapping[str, int]) -> Decision:
        """Whether a mutant with these outputs is the unit's function behind a queue."""
        try:
            return self._queue.decide(wrong) if self._queue else UNDECIDED
        except NotShownError:
            return UNDECIDED


def _is_code(graph: Graph, field: Field, scale: Scale) -> int:
    """Whether all numbers of a field are codes of a scale."""
    codes = TRUE
    for first in range(field.offset, field.offset + field.width * field.count, field.width):
        names = (f"i_payload[{first + k}]" for k in range(field.width))
        bits = [graph.inputs.get(name, FALSE) for name in names]
        valid = graph.at_most(bits, scale.largest_code)
        if scale.nan_code is not None:
            above = graph.at_most(bits, scale.nan_code - 1) ^ 1
            is_nan = graph.both(graph.at_most(bits, scale.nan_code), above)
            valid = graph.any([valid, is_nan])
        codes = graph.both(codes, valid)
    return codes
