"""Totals of the vectors of a unit: those that none has, and those after which all is the same."""

from collections.abc import Container, Mapping, Sequence

import numpy as np

from axs6.proof.aig import FALSE, Graph
from axs6.proof.solver import never

FIRST_ITEM, NEXT_ITEM, TOTAL = "first ", "next ", "total "
"""Prefixes of `VectorUnit.function`: totals after the first item of a vector and after another, and
the inputs that are totals before one."""

Alternatives = tuple[dict[str, bool], list[str]]
"""Totals that are alike: the values of some bits, and those which are free."""


class Reached:
    """Finds totals that no vector has: sets of them, in which some bits have some values.

    A set is never reached if no first item gives one of it, and no item that follows on a total
    which is in none of the sets.

    Args:
        function: of the unit. codes: whether an item has valid codes alone. seconds: limit of each
        question.
    """

    def __init__(self, function: Graph, codes: int, seconds: float) -> None:
        self._function, self._codes, self._seconds = function, codes, seconds
        self._sets: list[dict[str, bool]] = []

    def never(self, function: Graph) -> int:
        """Whether totals before an item are in one of the sets, as a literal of a function."""
        return function.any(_within(function, x, TOTAL, function.inputs) for x in self._sets)

    def excludes(self, ones: Container[str]) -> bool:
        """Whether a total is shown to be never reached; a set with it is kept then.

        Args:
            ones: names of inputs that are 1.
        """
        names = [x for x in self._function.inputs if x.startswith(TOTAL)]
        found = {x.removeprefix(TOTAL): x in ones for x in names}
        known = any(each.items() <= found.items() for each in self._sets)
        if known or not self._is_apart(found):
            return False
        for name in list(found):
            fewer = {x: one for x, one in found.items() if x != name}
            if fewer and self._is_apart(fewer):
                found = fewer
        self._sets.append(found)
        return True

    def _is_apart(self, bits: Mapping[str, bool]) -> bool:
        """Whether a set is never reached, if the others are not."""
        graph, outputs = self._function, self._function.outputs
        first = _within(graph, bits, FIRST_ITEM, outputs)
        after = _within(graph, bits, NEXT_ITEM, outputs)
        before = graph.any([self.never(graph), _within(graph, bits, TOTAL, graph.inputs)])
        into = graph.any([first, graph.both(after, before ^ 1)])
        return never(graph, graph.both(into, self._codes), self._seconds)


class Alike:
    """Finds totals that give the same outputs, and again totals that are alike after any item.

    They are in sets: some bits have some values, and the others, which are free, any.

    Args:
        function: of the unit. codes: whether an item has valid codes alone. seconds: limit of each
        question.
    """

    def __init__(self, function: Graph, codes: int, seconds: float) -> None:
        self._function, self._codes, self._seconds = function, codes, seconds
        self._sets: list[Alternatives] = []

    def some(self, function: Graph) -> int:
        """Whether totals before an item are in one of the sets, as a literal of a function."""
        return function.any(_within(function, x, TOTAL, function.inputs) for x, _ in self._sets)

    def joined(self, graph: Graph, outputs: Mapping[str, int]) -> dict[str, int]:
        """Outputs of a function, with the free bits of totals in a set as 0.

        If totals are the same then, they are alike.
        """
        return _joined(graph, outputs, self._sets)

    def joins(self, unlike: Sequence[str], ones: Container[str]) -> bool:
        """Whether totals after an item, which differ, are shown to be alike; their set is kept.

        Args:
            unlike: names of the outputs that differ. ones: names of inputs that are 1.
        """
        if not all(x.startswith((FIRST_ITEM, NEXT_ITEM)) for x in unlike):
            return False
        prefix = FIRST_ITEM if unlike[0].startswith(FIRST_ITEM) else NEXT_ITEM
        graph, free = self._function, [x.removeprefix(prefix) for x in unlike if prefix in x]
        words = {bit: np.array([x in ones], np.uint64) for x, bit in graph.inputs.items()}
        names = [x for x in graph.outputs if x.startswith(prefix) and x not in unlike]
        found = graph.values([graph.outputs[x] for x in names], words)
        bits = {
            name.removeprefix(prefix): bool(each[0] & 1)
            for name, each in zip(names, found, strict=True)
        }
        if (bits, free) in self._sets or not self._is_alike(bits, free):
            return False
        for name in list(bits):
            fewer = {x: one for x, one in bits.items() if x != name}
            if self._is_alike(fewer, free):
                bits = fewer
        self._sets.append((bits, free))
        return True

    def _is_alike(self, bits: dict[str, bool], free: list[str]) -> bool:
        """Whether all totals of a set are shown to be like those whose free bits are 0."""
        graph, inputs = self._function, self._function.inputs
        sets = [*self._sets, (bits, free)]
        fixed = {inputs[TOTAL + name]: int(one) for name, one in bits.items()}
        zeros = dict.fromkeys((inputs[TOTAL + name] for name in free), FALSE)
        one, other = (self._after(values, sets) for values in (fixed, {**fixed, **zeros}))
        unlike = graph.any(graph.unlike(bit, other[name]) for name, bit in one.items())
        return never(graph, graph.both(unlike, self._codes), self._seconds)

    def _after(self, values: Mapping[int, int], sets: Sequence[Alternatives]) -> dict[str, int]:
        """Outputs after totals of which some bits have some values."""
        outputs = self._function.outputs
        found = self._function.cofactor([*outputs.values()], values)
        return _joined(self._function, dict(zip(outputs, found, strict=True)), sets)


def _joined(
    graph: Graph, outputs: Mapping[str, int], sets: Sequence[Alternatives]
) -> dict[str, int]:
    """Outputs of a function, with the free bits of totals in a set as 0."""
    found = dict(outputs)
    for bits, free in sets:
        for prefix in (FIRST_ITEM, NEXT_ITEM):
            apart = _within(graph, bits, prefix, found) ^ 1
            found |= {prefix + x: graph.both(found[prefix + x], apart) for x in free}
    return found


def _within(
    graph: Graph, bits: Mapping[str, bool], prefix: str, literals: Mapping[str, int]
) -> int:
    """Whether a total has some bits."""
    return graph.all(literals[prefix + name] ^ (not one) for name, one in bits.items())
