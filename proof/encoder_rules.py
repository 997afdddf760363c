"""What an encoder has to give by the definitions of its formats, for ranges of magnitudes.

Magnitudes are patterns without their sign. Source: docs/formats.md, "Encoding".
"""

from bisect import bisect_right
from collections import defaultdict
from collections.abc import Iterator
from dataclasses import dataclass, replace
from fractions import Fraction
from functools import cache, cached_property
from itertools import pairwise
from math import ceil

import numpy as np
from numpy.typing import NDArray

from axs6.golden.check.exact import floats
from axs6.golden.check.exact.floats import Special, float_value, floor_log2, power
from axs6.golden.check.exact.formats import Definition, Exponent, Shift, negated
from axs6.golden.check.exact.rounding import Rounding, listed_code, rounded
from axs6.golden.check.exact.scales import FP32_LARGEST, exponent_code
from axs6.proof.one_value import Ranges

SAMPLES = 256
"""Blocks that show which nodes cannot be constant, before a proof is tried."""


@dataclass(frozen=True)
class Rank:
    """Magnitudes under which a block has one exponent, and with it one power of two.

    Args:
        start, stop: patterns. code: of the exponent. log2: of the magnitudes, None for 0.
    """

    start: int
    stop: int
    code: int
    log2: int | None


@dataclass(frozen=True)
class Group:
    """What is assumed of the values of a group.

    Args:
        stop: all magnitudes that count are below it. others: those that do not count and may be
        there too. some: sets of which some lane has one. log2: of the largest, None for 0.
        exponent: of the scales so far; None if they are NaN.
    """

    stop: int
    others: Ranges
    some: tuple[Ranges, ...]
    log2: int | None
    exponent: int | None

    @property
    def all(self) -> Ranges:
        """The magnitudes that each value may have."""
        return (*([(0, self.stop)] if self.stop else []), *self.others)


class EncoderRules:
    """The definition of a format, for values of a type: scales and codes by ranges of patterns."""

    def __init__(self, definition: Definition, dtype: floats.Format, rounding: str) -> None:
        self._definition, self._dtype = definition, dtype
        self._rounding = Rounding(rounding)
        level = definition.levels[-1]
        assert isinstance(level, Exponent)
        self._level = level
        self._nan = 2**level.bits - 1 if level.nan else None
        self._bias = 2 ** (level.bits - 1) - 1
        element = definition.element
        self._propagate = level.nan or element.nan is not None
        infinity = dtype.infinity
        self.end = end = 1 << dtype.exponent_bits + dtype.fraction_bits
        self.finite: Ranges = ((0, infinity),)
        self.special: Ranges = ((infinity, end),)
        self._kinds = {
            Special.INFINITY: (infinity, infinity + 1),
            Special.NAN: (infinity + 1, end),
        }
        own = {
            Special.INFINITY: element.codes.get(Special.INFINITY),
            Special.NAN: element.nan,
        }
        self._to_nan = tuple(
            self._kinds[x] for x in self._kinds if self._nan is not None and own[x] is None
        )
        self._largest = () if self._propagate else (self._kinds[Special.INFINITY],)
        self.bits = dtype.exponent_bits + dtype.fraction_bits
        self._passing = tuple(
            x for x in self._kinds.values() if x not in (*self._to_nan, *self._largest)
        )
        self.codes = cache(self._codes)

    def _number(self, pattern: int) -> Fraction:
        value = float_value(pattern, self._dtype)
        assert isinstance(value, Fraction)
        return value

    def _exponent_of(self, pattern: int) -> int:
        return exponent_code(self._level, self._number(pattern), self._definition)

    @cached_property
    def _ranks(self) -> list[Rank]:
        """All finite magnitudes: a power of two or a change of the exponent begins another one."""
        bits = self._dtype.fraction_bits
        powers = [1 << k for k in range(bits)]
        powers += [field << bits for field in range(1, 2**self._dtype.exponent_bits)]
        starts = [0]
        for start, stop in pairwise(powers):
            starts.append(start)
            first, last = (self._exponent_of(each) for each in (start, stop - 1))
            if first != last:
                starts.append(
                    start + bisect_right(range(start, stop), first, key=self._exponent_of)
                )
        found = []
        for start, stop in zip(starts, [*starts[1:], self._dtype.infinity], strict=True):
            found.append(self._rank(start, stop, self._number(start)))
        return [*found, *(self._rank(*each, FP32_LARGEST) for each in self._largest)]

    def _rank(self, start: int, stop: int, number: Fraction) -> Rank:
        code = exponent_code(self._level, number, self._definition)
        return Rank(start, stop, code, floor_log2(number) if number else None)

    def samples(self, group: Group, lanes: int) -> NDArray[np.uint32]:
        """Patterns for each lane of a group, some lane with each of what some must have."""
        rng = np.random.default_rng(0)
        shape = lanes, SAMPLES

        def any_of(ranges: Ranges, *shape: int) -> NDArray[np.int64]:
            """Ends of ranges, and numbers within them."""
            start, stop = np.array(ranges)[rng.integers(len(ranges), size=shape)].T
            kinds = [start, stop - 1, rng.integers(start, stop)]
            return np.choose(rng.integers(3, size=shape[::-1]), kinds).T

        found = any_of(group.all, *shape)
        for some in group.some:  # and those a little below
            binades = rng.integers(1, 4, shape) << self._dtype.fraction_bits
            near = np.clip(any_of(some, *shape) - binades, 0, None)
            found = np.where((rng.random(shape) < 0.5) & (near < group.stop), near, found)
        order = rng.permuted(np.tile(np.arange(lanes), (SAMPLES, 1)), axis=1)
        for place, some in zip(order.T, group.some, strict=False):
            found[place, np.arange(SAMPLES)] = any_of(some, SAMPLES)
        signs = rng.integers(2, size=shape) << self.bits
        return (found | signs).astype(np.uint32)

    def blocks(self, finer: bool) -> Iterator[tuple[int, Group]]:
        """Exponent codes with the blocks that have them; together these are all blocks.

        Args:
            finer: whether there are scales within a block with a NaN exponent.
        """
        for group, code in self._maxima():
            if group.all:
                yield code, group
            if self._nan is not None and self._to_nan and finer:
                yield self._nan, self._with_nan(group)
        if self._nan is not None and self._to_nan and not finer:
            last, _ = self._maxima()[-1]
            yield self._nan, replace(self._with_nan(last), some=(self._to_nan,))

    def _maxima(self) -> list[tuple[Group, int]]:
        """Blocks by their largest magnitude, with the code of the exponent for it.

        Those without a value that counts come first.
        """
        ranks, found = self._ranks, []
        if self._passing or self._to_nan:
            found = [(Group(0, self._passing, (), None, ranks[0].code - self._bias), ranks[0].code)]
        for rank in ranks:
            some = (((rank.start, rank.stop),),)
            group = Group(rank.stop, self._passing, some, rank.log2, rank.code - self._bias)
            found.append((group, rank.code))
        return found

    def _with_nan(self, group: Group) -> Group:
        """The same with a value that makes the exponent NaN."""
        others, some = (*group.others, *self._to_nan), (*group.some, self._to_nan)
        return replace(group, others=others, some=some, exponent=None)

    def groups(self, level: Shift, above: Group, finer: bool) -> Iterator[tuple[int, Group]]:
        """Shift codes with the groups that have them; together these are all groups of `above`.

        Args:
            level: the shift. above: what holds of the group that this one lies in. finer: whether
            there are scales within it, for which its largest value counts.
        """
        found: dict[tuple[int, int | None], list[Rank]] = defaultdict(list)
        nothing = Rank(0, 0, 0, None)  # where no value of the block counts
        for rank in [x for x in self._ranks if x.stop <= above.stop] or [nothing]:
            code = 2**level.bits - 1
            if rank.log2 is not None and above.log2 is not None:
                code = min(above.log2 - rank.log2, code)
            found[code, rank.log2 if finer else None].append(rank)
        for (code, _), (first, *_, last) in ((x, [y[0], *y]) for x, y in found.items()):
            exponent = None if above.exponent is None else above.exponent - code
            some = (((first.start, last.stop),),) if first.start else ()
            yield code, Group(last.stop, above.others, some, last.log2, exponent)

    def _codes(self, exponent: int | None, sign: int) -> tuple[tuple[int, int], ...]:
        """From which magnitude on a value gets which code, for all magnitudes of a sign."""
        element = self._definition.element
        if exponent is None:
            return ((0, element.zero),)
        codes = [code for _, code in self._steps(sign)]
        signed = sign and element.zero_sign
        zero = element.codes[Special.NEGATIVE_ZERO] if signed else element.zero
        found = [(0, zero), (1, codes[0])]
        for place in range(1, len(codes)):
            start = self._first(place, exponent, sign)
            if start < self._dtype.infinity:
                found.append((max(start, 1), codes[place]))
        specials = [
            (start, self._special(x, sign, codes[-1])) for x, (start, _) in self._kinds.items()
        ]
        return *found, *specials

    def _steps(self, sign: int) -> list[tuple[Fraction, int]]:
        """The magnitudes of a sign that are written, from 0 up, and their codes."""
        element = self._definition.element
        if element.listed:
            return [(abs(x), code) for x, code in element.side(-1 if sign else 1)]
        return [(x, element.codes[negated(x) if sign else x]) for x in element.magnitudes]

    def _place(self, x: Fraction, sign: int) -> int:
        """The place in these of the one that a magnitude is rounded to."""
        element = self._definition.element
        if not element.listed:
            return rounded(x, element, self._rounding)
        found = listed_code(x, bool(sign), element, self._rounding)
        return [code for _, code in self._steps(sign)].index(found)

    def _first(self, place: int, exponent: int, sign: int) -> int:
        """The pattern of the smallest magnitude that becomes an element's magnitude."""
        (lower, _), (upper, _) = self._steps(sign)[place - 1 : place + 1]
        nearest = self._rounding.name == "nearest"
        limit = ((lower + upper) / 2 if nearest else upper) * power(exponent)
        pattern = _at_least(limit, self._dtype)

        def becomes(pattern: int) -> bool:
            value = self._number(pattern) / power(exponent)
            return self._place(value, sign) >= place

        if pattern >= self._dtype.infinity or becomes(pattern):
            return pattern
        return pattern + 1

    def _special(self, special: Special, sign: int, largest: int) -> int:
        element = self._definition.element
        if not self._propagate:
            return element.zero if special is Special.NAN else largest
        if special is Special.NAN:
            return element.nan or element.zero
        signed = Special.NEGATIVE_INFINITY if sign else special
        other = element.nan if self._nan is None else None
        return element.codes.get(signed, other or element.zero)

    def by_field(self, group: Group, sign: int) -> dict[int, tuple[tuple[int, int, int], ...]]:
        """Codes of the values that a lane may have: from and to which fraction, by the field."""
        bits = self._dtype.fraction_bits
        codes = self.codes(group.exponent, sign)
        stops = [*(start for start, _ in codes[1:]), self.end]
        found: dict[int, list[tuple[int, int, int]]] = defaultdict(list)
        for (start, code), stop in zip(codes, stops, strict=True):
            for low, high in group.all:
                first, last = max(start, low), min(stop, high)
                for field in range(first >> bits, -(-last >> bits)):
                    base = field << bits
                    a, b = max(first - base, 0), min(last - base, 1 << bits)
                    if a < b:
                        found[field].append((a, b, code))
        return {field: tuple(parts) for field, parts in found.items()}


def _at_least(limit: Fraction, dtype: floats.Format) -> int:
    """The pattern of the smallest magnitude of at least a positive number."""
    exponent = max(floor_log2(limit) - dtype.fraction_bits, dtype.lowest)
    significand = ceil(limit / power(exponent))
    return (exponent - dtype.lowest << dtype.fraction_bits) + significand
