"""Codes of values in tables: the nearest entry, or the one before it, of the value's sign.

A magnitude is counted in half units of the table, what lies below in one more bit. In this count
every bound between two entries is an integer, so that comparisons are exact.
"""

from collections.abc import Callable
from dataclasses import dataclass
from fractions import Fraction
from functools import cache
from typing import Any, TypeVar

import numpy as np
from numpy.typing import NDArray

from axs6.golden.floats import Wide, bit_length
from axs6.golden.formats import ValueTable
from axs6.golden.rounding import Rounding
from axs6.golden.scaling import as_wide

T = TypeVar("T", np.uint8, np.uint16)

UNSURE = 255
"""In place of a code, where the upper half of a pattern does not decide it."""

DEEP = -40
"""Exponent of a scale from which all values that FP32 holds as subnormal become 0."""

LARGE = np.uint64((1 << 63) - 1)
"""Count of magnitudes of 2^63 units and more."""

TOP_FIELD = 0x7F7F
"""Upper half of the pattern of the largest FP32 number."""


@dataclass(frozen=True)
class Entries:
    """Entries of one sign, from 0 up.

    Args:
        counts: their magnitudes in units, uint64.
        codes: their codes, uint8.
    """

    counts: NDArray[np.uint64]
    codes: NDArray[np.uint8]

    def bounds(self, rounding: Rounding) -> NDArray[np.uint64]:
        """For each entry but the first the smallest count of half units that gives it, doubled.

        An odd count stands for all between two half units.
        """
        low, high = self.counts[:-1], self.counts[1:]
        if rounding is Rounding.TOWARD_ZERO:
            return high * np.uint64(4)
        odd, even = self.codes[:-1] & 1 == 1, self.codes[1:] & 1 == 0
        return (low + high) * np.uint64(2) + ~(odd & even)


@cache
def sides(table: ValueTable) -> tuple[Entries, Entries]:
    """The entries from 0 up, and those from 0 down."""
    found = [list(zip(*table.side(negative), strict=True)) for negative in (False, True)]
    plus, minus = (Entries(np.array(x, np.uint64), np.array(codes, np.uint8)) for x, codes in found)
    return plus, minus


def table_codes(
    table: ValueTable,
    rounding: Rounding,
    bits: NDArray[np.uint32],
    exponent: NDArray[np.int16],
) -> NDArray[np.uint8]:
    """Codes of finite FP32 values (rows, size), to the nearest entry or toward zero.

    Args:
        table: the element.
        rounding: without random words.
        bits: patterns of the values.
        exponent: of the scale of each row, (rows,).
    """
    upper = (bits >> np.uint32(16)).astype(np.uint16)
    if exponent.any():
        field = (upper & np.uint16(0x7FFF)).astype(np.int32)
        field -= (exponent.astype(np.int32) << 7)[:, None]
        np.clip(field, 0, TOP_FIELD, out=field)
        upper = field.astype(np.uint16) | upper & np.uint16(0x8000)
    codes: NDArray[np.uint8] = np.take(_lookup(table, rounding), upper)
    unsure = codes == UNSURE
    deep = exponent < DEEP
    if deep.any():
        unsure[deep] = True
    places = np.flatnonzero(unsure)
    if places.size:
        rows = places // bits.shape[1]
        some = as_wide(bits.reshape(-1)[places])
        codes.reshape(-1)[places] = wide_table_codes(table, rounding, some, exponent[rows])
    return codes


@cache
def _lookup(table: ValueTable, rounding: Rounding) -> NDArray[np.uint8]:
    """`by_upper_half` of the codes of a table."""
    exponent = np.zeros(1, np.int16)
    return by_upper_half(lambda x: wide_table_codes(table, rounding, as_wide(x), exponent))


def by_upper_half(found: Callable[[NDArray[np.uint32]], NDArray[T]]) -> NDArray[T]:
    """What a function of FP32 patterns gives for all with each upper half, in order of these.

    It is the largest number of its dtype where the lower half decides. That may also be what the
    function gives, which has to be called for it in any case.
    """
    low = np.arange(1 << 16, dtype=np.uint32) << np.uint32(16)
    first, last = found(low), found(low | np.uint32(0xFFFF))
    return np.where(first == last, first, np.iinfo(first.dtype).max).astype(first.dtype)


def wide_table_codes(
    table: ValueTable,
    rounding: Rounding,
    x: Wide,
    exponent: NDArray[np.int16],
    words: NDArray[np.uint64] | None = None,
    random_bits: int = 0,
) -> NDArray[np.uint8]:
    """Codes of exact values.

    Args:
        table: the element.
        rounding: how a value between two entries is rounded.
        x: finite values.
        exponent: of the scale of each, of a shape that broadcasts.
        words: random words of their shape, for stochastic rounding.
        random_bits: width of these.
    """
    found = np.empty(x.significand.shape, np.uint8)
    if words is None:
        half, inexact = counted(table, x, exponent, 1)
        count = np.minimum(half, LARGE >> np.uint64(1)) << np.uint64(1) | inexact
    else:
        count, _ = counted(table, x, exponent, random_bits)
    for negative, side in zip((False, True), sides(table), strict=True):
        here = x.negative == negative
        if words is None:
            places = np.searchsorted(side.bounds(rounding), count[here], "right")
        else:
            places = _drawn(side, count[here], words[here], random_bits)
        found[here] = side.codes[places]
    return found


def _drawn(
    side: Entries, count: NDArray[np.uint64], words: NDArray[np.uint64], bits: int
) -> NDArray[np.intp]:
    """Places of magnitudes counted in 2^-bits units, by random words."""
    shift = np.uint64(bits)
    low = np.searchsorted(side.counts, count >> shift, "right") - 1
    below = np.minimum(low, max(len(side.counts) - 2, 0))
    gap = np.append(np.diff(side.counts), np.uint64(1))[below]
    part = (count - (side.counts[below] << shift)) // gap
    drawn = below + ((part + words) >> shift).astype(np.intp)
    return np.where(low < len(side.counts) - 1, drawn, low)


def counted(
    table: ValueTable, x: Wide, exponent: NDArray[Any], fraction_bits: int
) -> tuple[NDArray[np.uint64], NDArray[np.bool_]]:
    """Magnitudes in 2^-fraction_bits units of the table times 2^exponent, rounded down.

    Returns:
        The counts, `LARGE` at most, and whether anything was dropped.
    """
    divisor, byte = np.uint64(table.divisor), np.uint64(8)
    low = (x.significand & np.uint64(255)) * divisor
    product = (x.significand >> byte) * divisor + (low >> byte)
    left = x.exponent + 8 + fraction_bits - table.unit_exponent - exponent.astype(np.int64)
    right = np.clip(-left, 0, 64).astype(np.uint64)  # NumPy gives 0 where all bits are shifted out
    kept = product >> right
    inexact = (kept << right != product) | (low & np.uint64(255) != 0)
    wide = np.clip(left, 0, 63)
    beyond = (bit_length(product) + wide > 63) & (product != 0)
    return np.where(beyond, LARGE, kept << wide.astype(np.uint64)), inexact


def ladder(
    table: ValueTable, rounding: Rounding, dtype: type[np.float32 | np.float64]
) -> tuple[NDArray[Any], NDArray[Any]]:
    """The entries in units, from the lowest up, and for each but the first the least value for it.

    Least values are counted in 2^unit_exponent: without a divisor in units too. Values of the
    dtype, which holds the entries and what lies halfway between them, are compared exactly.
    """
    plus, minus = sides(table)
    values = np.concatenate([minus.counts[:0:-1] * dtype(-1), plus.counts.astype(dtype)])
    bounds = []
    for side, sign in ((minus, -1), (plus, 1)):
        for bound in side.bounds(rounding).tolist()[::sign]:
            exact, beyond = Fraction(sign * (bound // 2), 2 * table.divisor), bool(bound & 1)
            at = dtype(float(exact))
            below, same = Fraction(float(at)) < exact, Fraction(float(at)) == exact
            # Below 0 a value goes up where its magnitude does not reach the entry below.
            up = below or (same and beyond == (sign > 0))
            bounds.append(np.nextafter(at, dtype(np.inf)) if up else at)
    return values, np.array(bounds, dtype)


def ends(table: ValueTable, negative: NDArray[np.bool_]) -> NDArray[np.uint8]:
    """The codes of the largest magnitudes of these signs."""
    plus, minus = (side.codes[-1] for side in sides(table))
    return np.where(negative, minus, plus)
