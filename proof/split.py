"""A SAT question in parts: by the elements of outputs, and by where patterns of scales begin.

A unit has equal lanes, so the answer for one of them is the answer for the others. What a circuit
does with a number depends most on the highest 1 of its pattern: with it given, the zeros above are
counted, and whether the number is subnormal is known.
"""

from collections import defaultdict
from collections.abc import Iterable, Iterator, Mapping, Sequence

from axs6.hw.core.layouts import Field
from axs6.proof.aig import FALSE, Graph
from axs6.proof.solver import solve

QUICK = 1.0
"""Seconds for a question before it is split."""


class Split:
    """Answers whether one of some outputs can be 1.

    Args:
        graph: of the outputs. inputs, outputs: fields of the payloads. numbers: names of the inputs
        by whose highest 1 a question is split, in this order. seconds: limit of each part.
    """

    def __init__(
        self,
        graph: Graph,
        inputs: Sequence[Field],
        outputs: Sequence[Field],
        numbers: Iterable[str],
        seconds: float,
    ) -> None:
        self._graph, self._seconds = graph, seconds
        fields = {field.name: field for field in inputs}
        self._numbers = [_bits(graph, fields[name], 0) for name in numbers]
        self._places = {
            bit >> 1: (field, index, place)
            for field in inputs
            for index in range(field.count)
            for place, bit in enumerate(_bits(graph, field, index))
        }
        self._element_of = {
            f"o__payload[{field.offset + k}]": (field.name, k // field.width)
            for field in outputs
            for k in range(field.count * field.width)
        }

    def solve(self, outputs: Mapping[str, int]) -> set[int] | None:
        """The nodes that are 1 where some output is.

        Args:
            outputs: literals by the names of the outputs.

        Returns:
            Empty if none ever is, None if the time is over.
        """
        found = solve(self._graph, [self._graph.any(outputs.values())], QUICK)
        if found is not None:
            return found
        seen, over = set(), False
        for literal in self._elements(outputs):
            moved, back = self._moved(literal)
            if moved not in seen:
                seen.add(moved)
                found = self._in_cases(moved, self._numbers)
                if found:
                    return {back.get(node, node) for node in found}
                over |= found is None
        return None if over else set()

    def _elements(self, outputs: Mapping[str, int]) -> list[int]:
        """For each element of the outputs whether one of its bits is 1."""
        elements: dict[tuple[str, int], list[int]] = defaultdict(list)
        for name, bit in outputs.items():
            elements[self._element_of.get(name, (name, 0))].append(bit)
        return [self._graph.any(bits) for bits in elements.values()]

    def _moved(self, literal: int) -> tuple[int, Mapping[int, int]]:
        """The same function of the first elements of inputs, and their nodes before.

        A function of several elements of one input stays as it is.
        """
        graph = self._graph
        used: dict[str, tuple[Field, set[int]]] = {}
        for node in graph.leaves([literal]) & self._places.keys():
            field, index, _ = self._places[node]
            used.setdefault(field.name, (field, set()))[1].add(index)
        if any(len(indices) > 1 for _, indices in used.values()):
            return literal, {}
        pairs = [
            pair
            for field, (index,) in used.values()
            for pair in zip(_bits(graph, field, index), _bits(graph, field, 0), strict=True)
        ]
        (moved,) = graph.cofactor([literal], dict(pairs))
        return moved, {first >> 1: own >> 1 for own, first in pairs}

    def _in_cases(self, literal: int, numbers: Sequence[Sequence[int]]) -> set[int] | None:
        """The nodes that are 1 where a literal is, which is asked again by the highest 1 of numbers
        if the answer takes long."""
        found = solve(self._graph, [literal], QUICK if numbers else self._seconds)
        if found is not None or not numbers:
            return found
        over = False
        for case in by_highest(numbers[0]):
            (part,) = self._graph.cofactor([literal], case)
            found = set() if part == FALSE else self._in_cases(part, numbers[1:])
            if found:
                ones = {bit >> 1 for bit, value in case.items() if value}
                return found - {bit >> 1 for bit in case} | ones
            over |= found is None
        return None if over else set()


def by_highest(bits: Sequence[int]) -> Iterator[dict[int, int]]:
    """Constants in place of some bits, lowest first, by the place of the highest 1; then zeros."""
    for place in reversed(range(len(bits))):
        yield {**dict.fromkeys(bits[place + 1 :], 0), bits[place]: 1}
    yield dict.fromkeys(bits, 0)


def _bits(graph: Graph, field: Field, index: int) -> list[int]:
    return graph.bus("i__payload", field.offset + index * field.width, field.width)
