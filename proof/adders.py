"""Adders of a graph, found by cuts, and sums of bits that they take apart.

Two nodes that are the exclusive or and the majority of the same three literals are the sum and the
carry of a full adder: a + b + c = sum + 2 carry. Of two literals they are those of a half adder.
Both are read from truth tables over cuts, so each equation holds for all values of the leaves,
whatever the design was made from.
"""

import heapq
from collections import defaultdict
from collections.abc import Callable, Iterable, Iterator, Sequence
from functools import cache
from itertools import product
from typing import NamedTuple

from axs6.proof.aig import FALSE, Graph

CUTS = 12
"""Cuts of a node that are kept, those of few leaves first."""

LEAVES = 3

Cut = tuple[tuple[int, ...], int]
"""Nodes, and the truth table over them: bit j is the value where leaf k is bit k of j."""

_VARIABLES = (0xAA, 0xCC, 0xF0)

_MAJORITIES = {
    (a & b) | (a & c) | (b & c): flips
    for flips in product((0, 1), repeat=3)
    for a, b, c in [[x ^ 0xFF * flip for x, flip in zip(_VARIABLES, flips, strict=True)]]
}
"""Which leaves are inverted, by the truth table."""

_CONJUNCTIONS = {
    ((0xA ^ 0xF * first) & (0xC ^ 0xF * second)) ^ 0xF * out: ((first, second), out)
    for first, second, out in product((0, 1), repeat=3)
}
"""Which leaves are inverted, and whether the result is."""

_PARITIES = {3: (0x96, 0x69), 2: (0x6, 0x9)}
"""Truth tables of the exclusive or by the number of leaves, and inverted."""


class Adder(NamedTuple):
    """Literals with: the sum of the operands = sum + 2 carry."""

    operands: tuple[int, ...]
    sum: int
    carry: int


class Adders:
    """The full and half adders of a graph, found where they are asked for.

    Args:
        graph: may grow.
    """

    def __init__(self, graph: Graph) -> None:
        self._graph = graph
        self._cuts: dict[int, list[Cut]] = {0: [((), 0)]}
        self._carries: dict[tuple[int, ...], list[tuple[int, tuple[int, ...], int]]]
        self._carries = defaultdict(list)
        self._parities: dict[int, list[tuple[tuple[int, ...], int]]] = defaultdict(list)

    def search(self, literals: Iterable[int]) -> None:
        """Look for adders among the nodes that literals depend on."""
        for node in self._graph.cone(literals, self._cuts):
            self._cuts[node] = [((node,), 2), *self._cuts_of(node)]
            for leaves, table in self._cuts[node]:
                count = len(leaves)
                if count == 3 and table in _MAJORITIES:
                    self._carries[leaves].append((node, _MAJORITIES[table], 0))
                elif count == 2 and table in _CONJUNCTIONS:
                    self._carries[leaves].append((node, *_CONJUNCTIONS[table]))
                elif count > 1 and table in _PARITIES[count]:
                    self._parities[node].append((leaves, _PARITIES[count].index(table)))

    def of(self, node: int) -> Iterator[Adder]:
        """The adders whose sum is a node."""
        for leaves, inverted in self._parities.get(node, ()):
            for carry, flips, out in self._carries.get(leaves, ()):
                operands = tuple(2 * leaf + flip for leaf, flip in zip(leaves, flips, strict=True))
                yield Adder(operands, 2 * node + (inverted ^ sum(flips) & 1), 2 * carry + out)

    def parity(self, node: int) -> Adder | None:
        """An adder whose sum is a node and whose carry is not in the design."""
        for leaves, inverted in self._parities.get(node, ()):
            return Adder(tuple(2 * leaf for leaf in leaves), 2 * node + inverted, FALSE)
        return None

    def _cuts_of(self, node: int) -> list[Cut]:
        """Cuts of at most three leaves, those of few leaves first."""
        pair = self._graph.operands(node)
        assert pair is not None
        a, b = pair
        found: dict[tuple[int, ...], int] = {}
        for leaves_a, table_a in self._cuts.get(a >> 1) or [((a >> 1,), 2)]:
            for leaves_b, table_b in self._cuts.get(b >> 1) or [((b >> 1,), 2)]:
                leaves = tuple(sorted({*leaves_a, *leaves_b}))
                if len(leaves) > LEAVES or leaves in found:
                    continue
                full = (1 << (1 << len(leaves))) - 1
                x = _over(table_a, leaves_a, leaves) ^ full * (a & 1)
                y = _over(table_b, leaves_b, leaves) ^ full * (b & 1)
                found[leaves] = x & y
        return sorted(found.items(), key=lambda cut: len(cut[0]))[:CUTS]


def _over(table: int, leaves: tuple[int, ...], more: tuple[int, ...]) -> int:
    """A truth table over some leaves as one over more of them."""
    return table if leaves == more else _spread(table, tuple(map(more.index, leaves)), len(more))


@cache
def _spread(table: int, places: tuple[int, ...], count: int) -> int:
    found = 0
    for row in range(1 << count):
        old = sum((row >> place & 1) << k for k, place in enumerate(places))
        found |= (table >> old & 1) << row
    return found


class Form:
    """A sum of nodes times integers, and a constant, modulo 2^width.

    Args:
        width: as above.
        bits: literals of a number, lowest first.
    """

    def __init__(self, width: int, bits: Sequence[int] = ()) -> None:
        self.width = width
        self.constant = 0
        self.of: dict[int, int] = {}
        for place, bit in enumerate(bits):
            self.add(bit, 1 << place)

    def copy(self) -> "Form":
        """Another one that is the same."""
        found = Form(self.width)
        found.constant, found.of = self.constant, dict(self.of)
        return found

    def add(self, literal: int, times: int) -> None:
        """Add a literal times an integer; an inverted one is 1 minus its node."""
        modulus = 1 << self.width
        if literal & 1:
            self.constant = (self.constant + times) % modulus
            times = -times
        total = (self.of.pop(literal >> 1, 0) + times) % modulus
        if total and literal >> 1:
            self.of[literal >> 1] = total

    def expand(self, adders: Adders, allowed: Callable[[int], bool] = lambda node: True) -> None:
        """Put operands in place of sum and carry as long as both are there.

        Args:
            adders: of the graph, searched already. allowed: whether a node may be taken apart.
        """
        left = [-node for node in self.of]
        heapq.heapify(left)
        waiting: dict[int, set[int]] = defaultdict(set)
        while left:
            node = -heapq.heappop(left)
            if node not in self.of or not allowed(node):
                continue
            adder = self._usable(adders, node)
            if adder is None:
                for each in adders.of(node):
                    waiting[each.carry >> 1].add(node)
                continue
            self._remove(adder)
            for literal in adder.operands:
                for each in (literal >> 1, *waiting.pop(literal >> 1, ())):
                    heapq.heappush(left, -each)

    def _usable(self, adders: Adders, node: int) -> Adder | None:
        """An adder with this sum whose carry is there as often as needed.

        The sum's highest bit needs none: twice that is 0.
        """
        modulus = 1 << self.width
        if 2 * self.of[node] % modulus == 0:
            return adders.parity(node)
        for adder in adders.of(node):
            if self._times(adder.carry) == 2 * self._times(adder.sum) % modulus:
                return adder
        return None

    def _times(self, literal: int) -> int:
        times = self.of.get(literal >> 1, 0)
        return -times % (1 << self.width) if literal & 1 else times

    def _remove(self, adder: Adder) -> None:
        """Use sum = operands - 2 carry."""
        times = self._times(adder.sum)
        self.add(adder.sum, -times)
        for each in adder.operands:
            self.add(each, times)
        self.add(adder.carry, -2 * times)
