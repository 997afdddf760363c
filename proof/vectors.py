"""Whether a unit that adds up vectors is its RTL without `stages`, for any payload and any stalls.

Everything is read from the flat netlist with its registers; names of nets mean nothing. Beside what
`axs6.proof.stream` says:

1. Control may depend on the bit that ends a vector. One control register says that the next item
   begins a vector: it takes that bit of each item that is added, and nothing else. So an item is
   added in the cycles in which that register depends on such a bit.
2. The loop is the registers that take functions of themselves. They hold the total. The total
   after an item is a function of the input, and within a vector of the total before it; the output
   is a function of the total and of the last item. These functions are compared with those of the
   RTL without `stages`.
3. Up to the loop the machine is a queue of items, of which each is popped as it is added. With the
   colour of the last item in place of the loop, the whole machine is a queue of vectors.
"""

from collections.abc import Callable, Iterable, Mapping
from dataclasses import replace
from enum import StrEnum
from functools import cache, cached_property

import numpy as np

from axs6.proof.aig import FALSE, TRUE, Graph
from axs6.proof.cases import words_of
from axs6.proof.colours import NOTHING_KNOWN, Answer, Control, Load, Property, in_row
from axs6.proof.solver import never
from axs6.proof.steps import NotShownError
from axs6.proof.stream import PipelinedUnit

WAYS = ("&cec",)
"""How ABC compares sums: `&cec -x` is slower."""

TRIED = 8
"""Inputs with which the registers of totals are told apart."""


class Adding(StrEnum):
    """What makes totals those of vectors, in every cycle after a reset and for all stalls."""

    ORDER = "items are added in the order in which they went in"
    ONCE = "no item is added twice, or before it went in"
    WHOLE = "what is added is of one item"
    PROGRESS = "an item that went in is added while the receiver is ready"
    BEGIN = "after the last item of a vector, and after no other, the next one begins a total"
    TAKEN = "an item that is added changes all parts of the total"
    KEPT = "between the items of a vector the total stays as it is"


RESULTS = {
    Property.ORDER: "results come out in the order of their vectors",
    Property.ONCE: "no result comes out twice, or before the last item of its vector went in",
    Property.WHOLE: "each result is of one vector",
    Property.HELD: Property.HELD,
    Property.VALID: "with the last item of a vector inside, valid comes, ready or not",
    Property.LATENCY: "without stalls, a result comes out within the latency",
    Property.PROGRESS: "a result comes out while the receiver is ready",
    Property.RATE: Property.RATE,
}
"""What the properties of a queue say of vectors."""

QUEUED = {
    Adding.ORDER: Property.ORDER,
    Adding.ONCE: Property.ONCE,
    Adding.WHOLE: Property.WHOLE,
    Adding.PROGRESS: Property.PROGRESS,
}
"""Properties of the queue in front of the loop."""


class VectorUnit(PipelinedUnit):
    """The graph of a unit with streams `i` and `o` whose outputs are of vectors.

    Args:
        graph: as `axs6.proof.aig.read_aiger` reads it. ends: names of the bits of the input's
        payload any of which ends a vector. seconds: limit of each question to a solver.

    Raises:
        NotShownError: as of `PipelinedUnit`; or no register, or several, say that a vector begins.
    """

    def __init__(self, graph: Graph, ends: Iterable[str], seconds: float) -> None:
        self._seconds = seconds
        super().__init__(graph, ends)
        self._begins, self._adds = self._find_beginning()

    def _find_beginning(self) -> tuple[int, int]:
        """Whether the next item begins a vector, and whether one is added in this cycle."""
        graph, found = self._graph, []
        marks = [set(self._ends)]
        marks += [{2 * node} for node, after in self._control.items() if after is None]
        for node, after in self._control.items():
            if after is None:
                continue
            leaves = graph.leaves([self._next[node]])
            for mark in marks:
                if not leaves & {bit >> 1 for bit in mark}:
                    continue
                one, zero = (
                    graph.cofactor([self._next[node]], dict.fromkeys(mark, x))[0]
                    for x in (TRUE, FALSE)
                )
                adds = graph.unlike(one, zero)
                changes = graph.both(adds ^ 1, graph.unlike(self._next[node], 2 * node))
                if never(graph, changes, self._seconds):
                    found.append((2 * node ^ (after == FALSE), adds))
        if len(found) != 1:
            raise NotShownError(f"{len(found)} registers say that a vector begins, in place of 1")
        return found[0]

    def _more_control(self) -> list[int]:
        """Registers that are reset, and that no payload reaches but the bits that end vectors."""
        allowed = {each >> 1 for each in (*self._ends, self._rst, self._i_valid, self._o_ready)}
        reach = {x: self._graph.leaves([taken]) for x, taken in self._next.items()}
        while True:
            found = {x for x, each in reach.items() if each <= allowed | reach.keys()}
            if len(found) == len(reach):
                break
            reach = {x: reach[x] for x in found}
        after = self._graph.cofactor([self._next[x] for x in reach], {self._rst: TRUE})
        return [x for x, value in zip(reach, after, strict=True) if value in (FALSE, TRUE)]

    def _find_loop(self) -> set[int]:
        taken = {
            node: self._graph.leaves([x for x in rows if x != 2 * node])
            for node, (_, rows) in self._rows.items()
        }
        below = {node: each & self._rows.keys() for node, each in taken.items()}
        return {node for node in below if node in _reached(node, below)}

    @cached_property
    def _taken(self) -> Mapping[int, Load]:
        """What each bank of the loop takes of items: of what it takes where none is added, nothing
        is known."""
        loops = {self._bank[node] for node in self._loop}
        adds, inverted = self._adds >> 1, bool(self._adds & 1)

        def taken(load: Load, added: bool) -> Iterable[frozenset[int] | None]:
            unknown = frozenset([NOTHING_KNOWN])
            return (row if row is None else row - loops if added else unknown for row in load.rows)

        return {
            bank: Load((*load.controls, adds), (*taken(load, inverted), *taken(load, not inverted)))
            for bank, load in self._loads.items()
            if bank in loops
        }

    def control(self) -> Control:
        """The queue of vectors: the loop has the colour of the last item that was added."""
        found = super().control()
        ends = self._graph.both(found.handshakes.push, self._graph.any(self._ends))
        handshakes = replace(found.handshakes, push=ends)
        return replace(found, handshakes=handshakes, loads={**found.loads, **self._taken})

    def adding(self) -> Control:
        """The queue in front of the loop."""
        handshakes = replace(self._handshakes, pop=self._adds, shown=self._adds)
        found = self._controlled(handshakes, self._taken.values())
        return replace(found, loads={**found.loads, **self._taken})

    def shows(self, name: Adding, latency: int) -> Answer:
        """Whether a property holds."""
        graph, control = self._graph, self.adding()
        if name in QUEUED:
            return control.shows(QUEUED[name], latency, self._seconds)
        if name is Adding.BEGIN:
            (begins,) = graph.cofactor([self._begins], {2 * x: n for x, n in self._next.items()})
            return control.keeps(graph.any(self._ends), begins, latency, self._seconds)
        bad = FALSE
        for load in self._taken.values():
            holds = graph.any(
                in_row(graph, load.controls, number)
                for number, row in enumerate(load.rows)
                if row is None
            )
            if name is Adding.TAKEN:
                bad = graph.any([bad, graph.both(self._adds, holds)])
            else:
                within = graph.both(self._adds ^ 1, self._begins ^ 1)
                bad = graph.any([bad, graph.both(within, holds ^ 1)])
        return control.avoids(bad, self._seconds)

    def function(self) -> Graph:
        """The graph with totals and the output as functions of the input and of totals.

        Outputs are "first 0", ... for totals after the first item of a vector, "next 0", ... after
        another, and those of the payload. Totals are the inputs "total 0", ...

        Raises:
            NotShownError: a register takes several functions of these.
        """
        graph, loop = self._graph, self._totals
        totals = {2 * node: graph.input(f"total {k}") for k, node in enumerate(loop)}
        value = self._values([x for node in loop for x in self._rows[node][1]])
        outputs = super().function().outputs
        for k, node in enumerate(loop):
            for when, said in ((self._begins, "first"), (self._begins ^ 1, "next")):
                taken = {self._replaced(x, value) for x in self._taken_where(node, when)}
                if len(taken) != 1:
                    raise NotShownError(f"a part of a total takes {len(taken)} functions")
                outputs[f"{said} {k}"] = taken.pop()
        given = graph.cofactor([*outputs.values()], totals)
        return graph.with_outputs(dict(zip(outputs, given, strict=True)))

    def _taken_where(self, node: int, when: int) -> list[int]:
        """What a register takes as an item is added, where something is so."""
        controls, rows = self._rows[node]
        possible = self._possible(controls, when)
        return [x for case, x in enumerate(rows) if x != 2 * node and possible[case]]

    @cached_property
    def _possible(self) -> Callable[[tuple[int, ...], int], list[bool]]:
        graph = self._graph

        @cache
        def possible(controls: tuple[int, ...], when: int) -> list[bool]:
            when = graph.both(self._adds, when)
            cases = (in_row(graph, controls, number) for number in range(1 << len(controls)))
            return [not never(graph, graph.both(when, here), self._seconds) for here in cases]

        return possible

    @cached_property
    def _totals(self) -> list[int]:
        """The registers of totals in an order that their names and places do not change.

        The order is that of what the output is where one of them is unlike all others. If that does
        not tell two apart, a comparison may fail, but shows nothing that is wrong.
        """
        graph, out = self._graph, super().function().outputs
        nodes = sorted(self._loop)
        one = np.eye(len(nodes), dtype=np.uint8)
        totals = np.tile(np.concatenate([one, 1 - one]), (TRIED, 1))
        given = {2 * node: words_of(totals[:, k]) for k, node in enumerate(nodes)}
        rng = np.random.default_rng(0)
        for name in sorted(graph.inputs):
            if name.startswith("i_payload["):
                tried = rng.integers(0, 2, TRIED, np.uint8)
                given[graph.inputs[name]] = words_of(np.repeat(tried, 2 * len(nodes)))
        found = np.stack(graph.values([out[name] for name in sorted(out)], given))
        bits = np.unpackbits(found.view(np.uint8), axis=1, bitorder="little")[:, : len(totals)]
        places = bits.reshape(len(out), TRIED, 2, len(nodes))
        order = {node: places[..., k].tobytes() for k, node in enumerate(nodes)}
        return sorted(nodes, key=order.__getitem__)


def _reached(start: int, below: Mapping[int, set[int]]) -> set[int]:
    """What is below a node, or below that, and so on."""
    found: set[int] = set()
    left = [start]
    while left:
        new = below[left.pop()] - found
        found |= new
        left += new
    return found
