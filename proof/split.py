"""A SAT question in parts: by the elements of outputs, and by the values of inputs.

A unit has equal lanes, so the answer for one of them is the answer for the others. What a circuit
does with a scale that is a number depends most on the highest 1 of its pattern: with it given, the
zeros above are counted, and whether the number is subnormal is known. Other inputs are given bit by
bit, until all cases of those that are left can be tried.
"""

from collections import defaultdict
from collections.abc import Iterable, Iterator, Mapping, Sequence

import numpy as np

from axs6.hw.core.layouts import Field
from axs6.proof.aig import TRUE, Graph
from axs6.proof.cases import cases_of, counting
from axs6.proof.solver import solve
from axs6.synth.process import Limit

QUICK = 1.0
"""Seconds for a question before it is split."""

TRIED = 24
"""Bits of which all cases are tried; for more of them the solver is asked."""

AT_ONCE = 18
"""Bits of the cases that are tried at once."""


class Split:
    """Answers whether one of some outputs can be 1.

    Args:
        graph: of the outputs. inputs, outputs: fields of the payloads. numbers: names of the inputs
        by whose highest 1 a question is split; without any it is not split. seconds: limit for each
        element of the outputs.
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
        first = {field.name: _bits(graph, field, 0) for field in inputs}
        self._numbers = [first.pop(name) for name in numbers]
        if self._numbers:
            self._numbers += [[bit] for bits in first.values() for bit in bits]
        self._places = {
            bit >> 1: (field, index, place)
            for field in inputs
            for index in range(field.count)
            for place, bit in enumerate(_bits(graph, field, index))
        }
        self._element_of = {
            f"o_payload[{field.offset + k}]": (field.name, k // field.width)
            for field in outputs
            for k in range(field.count * field.width)
        }

    def solve(self, outputs: Mapping[str, int]) -> set[int] | None:
        """The nodes that are 1 where some output is.

        Args:
            outputs: literals by the names of the outputs.

        Returns:
            Empty if none ever is, None if the time is over, or if elements of outputs depend on
            several elements of an input.
        """
        pairs = [self._moved(literal) for literal in self._elements(outputs)]
        if not self._numbers or any(moved is None for moved, _ in pairs):
            return None
        seen, over = set(), False
        for moved, back in pairs:
            if moved is not None and moved not in seen:
                seen.add(moved)
                found = self._in_cases(moved, self._numbers, Limit(self._seconds))
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

    def _moved(self, literal: int) -> tuple[int | None, Mapping[int, int]]:
        """The same function of the first elements of inputs, and their nodes before.

        There is none of a function of several elements of one input.
        """
        graph = self._graph
        used: dict[str, tuple[Field, set[int]]] = {}
        for node in graph.leaves([literal]) & self._places.keys():
            field, index, _ = self._places[node]
            used.setdefault(field.name, (field, set()))[1].add(index)
        if any(len(indices) > 1 for _, indices in used.values()):
            return None, {}
        pairs = [
            pair
            for field, (index,) in used.values()
            for pair in zip(_bits(graph, field, index), _bits(graph, field, 0), strict=True)
        ]
        (moved,) = graph.cofactor([literal], dict(pairs))
        return moved, {first >> 1: own >> 1 for own, first in pairs}

    def _in_cases(
        self, literal: int, numbers: Sequence[Sequence[int]], limit: Limit
    ) -> set[int] | None:
        """The nodes that are 1 where a literal is.

        The question is asked again for each highest 1 of a number, if the answer takes long.
        """
        leaves = self._graph.leaves([literal])
        if len(leaves) <= TRIED:
            return _tried(self._graph, literal, [2 * node for node in sorted(leaves)])
        numbers = [bits for bits in numbers if any(bit >> 1 in leaves for bit in bits)]
        share = min(QUICK, limit.left) if numbers else limit.left
        found = solve(self._graph, [literal], share)
        if found is not None or not numbers or not limit.left:
            return found
        over = False
        for case in by_highest(numbers[0]):
            (part,) = self._graph.cofactor([literal], case)
            found = self._in_cases(part, numbers[1:], limit)
            if found:
                ones = {bit >> 1 for bit, value in case.items() if value}
                return found - {bit >> 1 for bit in case} | ones
            over |= found is None
        return None if over else set()


def _tried(graph: Graph, literal: int, inputs: Sequence[int]) -> set[int]:
    """The inputs that are 1 in the first case in which a literal is; empty if there is none."""
    if not inputs:
        return {0} if literal == TRUE else set()
    low, high = inputs[:AT_ONCE], inputs[AT_ONCE:]
    given = counting(low)
    words = max(1, (1 << len(low)) // 64)
    for case in range(1 << len(high)):
        values = {bit: ~np.zeros(words, np.uint64) * (case >> k & 1) for k, bit in enumerate(high)}
        (found,) = graph.values([literal], given | values)
        if found.any():
            place = int(np.argmax(cases_of(found, len(low))))
            number = place | case << len(low)
            return {0} | {bit >> 1 for k, bit in enumerate(inputs) if number >> k & 1}
    return set()


def by_highest(bits: Sequence[int]) -> Iterator[dict[int, int]]:
    """Constants in place of some bits, lowest first, by the place of the highest 1; then zeros."""
    for place in reversed(range(len(bits))):
        yield {**dict.fromkeys(bits[place + 1 :], 0), bits[place]: 1}
    yield dict.fromkeys(bits, 0)


def _bits(graph: Graph, field: Field, index: int) -> list[int]:
    return graph.bus("i_payload", field.offset + index * field.width, field.width)
