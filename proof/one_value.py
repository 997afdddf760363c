"""Functions of one floating-point value, as literals of a graph, known for all its patterns.

Patterns are taken field by field: with the sign and the exponent field given, little of a function
is left, most often a constant; what depends on the fraction is tried for all fractions.
"""

from collections.abc import Sequence
from functools import cache, cached_property

import numpy as np
from numpy.typing import NDArray

from axs6.golden.check.exact.floats import Format
from axs6.proof.aig import FALSE, TRUE, Graph
from axs6.proof.cases import cases_of, counting

Ranges = tuple[tuple[int, int], ...]
"""Sets of magnitudes, patterns without their sign: from one number to below another."""


class OneValue:
    """Functions of a value with given bits.

    Args:
        graph: of the functions. bits: the value's pattern, lowest bit first. dtype: its fields.
    """

    def __init__(self, graph: Graph, bits: Sequence[int], dtype: Format) -> None:
        self._graph, self._dtype = graph, dtype
        self._fraction = bits[: dtype.fraction_bits]
        self._above = bits[dtype.fraction_bits :]
        self.by_field = cache(self._by_field)
        self._words: dict[int, NDArray[np.uint64]] = {}
        self._numbers = cache(self._numbers_of)
        self._constants = cache(self._constant_fields)

    def _by_field(self, literals: tuple[int, ...]) -> list[tuple[int, ...]]:
        """Literals as functions of the fraction, for each exponent field, then with the sign 1."""
        found = [literals]
        for bit in self._above[::-1]:
            halves = {
                each: [
                    tuple(self._graph.cofactor(each, {bit: value})) if max(each) > TRUE else each
                    for value in (FALSE, TRUE)
                ]
                for each in set(found)
            }
            found = [half for each in found for half in halves[each]]
        return found

    @cached_property
    def _fractions(self) -> dict[int, NDArray[np.uint64]]:
        return counting(self._fraction)

    def _words_of(self, literals: Sequence[int]) -> list[NDArray[np.uint64]]:
        """Each literal for all fractions."""
        new = [each for each in dict.fromkeys(literals) if each not in self._words]
        self._words |= zip(new, self._graph.values(new, self._fractions), strict=True)
        return [self._words[each] for each in literals]

    def codes(self, literals: Sequence[int]) -> NDArray[np.uint16]:
        """The number that functions of the fraction are together, for each fraction."""
        bits = len(self._fraction)
        found = np.zeros(1 << bits, np.uint16)
        for place, words in enumerate(self._words_of(literals)):
            found |= cases_of(words, bits).astype(np.uint16) << np.uint16(place)
        return found

    def _constant_fields(self, literal: int) -> NDArray[np.bool_]:
        """For each sign and exponent field, whether a function is 1 for all fractions."""
        rows = [each for (each,) in self.by_field((literal,))]
        ones = [
            each == TRUE or (each > TRUE and not (~self._words_of([each])[0]).any())
            for each in rows
        ]
        return np.array(ones).reshape(2, -1)

    def holds(self, literal: int, magnitudes: Ranges) -> bool:
        """Whether a function is 1 for all values with some magnitudes, of either sign."""
        if literal in (FALSE, TRUE):
            return literal == TRUE or not magnitudes
        return all(self._holds_between(literal, *each) for each in magnitudes)

    def _holds_between(self, literal: int, start: int, stop: int) -> bool:
        bits = len(self._fraction)
        first, last = -(-start >> bits), stop >> bits
        if last > first and not self._constants(literal)[:, first:last].all():
            return False
        parts = {(start, min(stop, first << bits)), (max(start, last << bits), stop)}
        return all(self._holds_within(literal, a, b) for a, b in parts if a < b)

    def _holds_within(self, literal: int, start: int, stop: int) -> bool:
        """The same for magnitudes of one exponent field."""
        bits = len(self._fraction)
        field, rows = start >> bits, self.by_field((literal,))
        base = field << bits
        return all(
            bool(self.codes(rows[sign | field])[start - base : stop - base].all())
            for sign in (0, len(rows) // 2)
        )

    def numbers(self, literals: tuple[int, ...], magnitudes: Ranges) -> set[int]:
        """The numbers that functions are together for some magnitudes, of either sign."""
        bits, rows = len(self._fraction), self.by_field(literals)
        found: set[int] = set()
        for start, stop in magnitudes:
            for field in range(start >> bits, -(-stop >> bits)):
                first, last = (
                    max(start - (field << bits), 0),
                    min(stop - (field << bits), 1 << bits),
                )
                for sign in (0, len(rows) // 2):
                    found |= self._numbers(rows[sign | field], first, last)
        return found

    def _numbers_of(self, literals: tuple[int, ...], first: int, last: int) -> frozenset[int]:
        """The numbers that functions of the fraction are together, from one fraction to another."""
        if max(literals) <= TRUE:
            return frozenset([sum(bit << k for k, bit in enumerate(literals))])
        return frozenset(np.flatnonzero(np.bincount(self.codes(literals)[first:last])).tolist())
