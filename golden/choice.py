"""The choice of a group's scale, where its format takes the best of several by their errors.

Values x become code * scale, and the sum of (x - code * scale)^2 is that of x^2 less the *merit*
of the scale, scale^2 * sum of code * (2 |x / scale| - code) over magnitudes of codes. So the
scale of the largest merit has the smallest squared error. Merits here are integers:

- codes are those of rounding to nearest, whatever rounding encoding has afterwards, as integers
  in the element's unit;
- |x / scale| is what encoding rounds, in units, with `MERIT_FRACTION` bits after the point and
  what is below them dropped, and held below twice the power of two above the largest element: for
  BF16 and FP16 under powers of two nothing is dropped that counts;
- scales are counted in a unit that the candidates share.

The first of the largest merits wins, so that the scale of the largest magnitude does where others
are equal.
"""

from collections.abc import Callable, Sequence
from functools import cache
from typing import Any

import numpy as np
from numpy.typing import NDArray

from axs6.golden.finite import reshaped
from axs6.golden.floats import Wide
from axs6.golden.formats import (
    FP64,
    BlockFormat,
    Element,
    Integer,
    Real,
    Scale,
    ValueTable,
)
from axs6.golden.formats.block_format import MERIT_FRACTION
from axs6.golden.quantise import Quantiser
from axs6.golden.rounding import Rounding
from axs6.golden.tables import wide_table_codes

FLOAT64_BITS = FP64.fraction_bits + 1
"""Bits of the integers that float64 holds."""

HALF = np.uint64(16)
"""Bits of a significand that are multiplied apart, so that a product has at most 64."""

Scaled = tuple[Wide, NDArray[np.int16]]
"""Values over their real and integer scales (rows, B), and exponents of groups (rows, groups)."""


def neighbours(scale: Scale, codes: NDArray[Any]) -> tuple[NDArray[Any], ...]:
    """The codes, and those before and after each; at the ends of the codes itself again."""
    dtype, lowest = codes.dtype.type, lowest_code(scale)
    before = np.maximum(codes, dtype(lowest + 1)) - dtype(1)
    after = np.minimum(codes, dtype(scale.largest_code - 1)) + dtype(1)
    return codes, before, after


def lowest_code(scale: Scale) -> int:
    """The smallest code that encoding gives."""
    if isinstance(scale, Real):
        return scale.dtype.smallest_normal
    return int(isinstance(scale, Integer))


def choose(
    fmt: BlockFormat,
    candidates: Sequence[NDArray[Any]],
    under: Callable[[NDArray[Any]], Scaled],
) -> NDArray[Any]:
    """The code of the best candidate of each group.

    Args:
        fmt: the format.
        candidates: codes of its finest scales, the preferred ones first, each (rows, groups).
        under: gives the values under such codes.
    """
    scale, least = fmt.levels[0].scale, np.minimum.reduce(candidates)
    best, most = candidates[0], merits(fmt, *under(candidates[0]))
    most *= counted(scale, best, least) ** 2
    for codes in candidates[1:]:
        merit = merits(fmt, *under(codes)) * counted(scale, codes, least) ** 2
        better = merit > most
        best, most = np.where(better, codes, best), np.where(better, merit, most)
    return best


def counted(scale: Scale, codes: NDArray[Any], least: NDArray[Any]) -> NDArray[np.int64]:
    """Scales in the unit of the last bit of `least`, the smallest of the candidates."""
    wide, low = codes.astype(np.int64), least.astype(np.int64)
    if isinstance(scale, Integer):
        return wide
    bits = scale.dtype.fraction_bits if isinstance(scale, Real) else 0
    significand = (wide & (1 << bits) - 1) + (1 << bits)
    return significand << (wide >> bits) - (low >> bits)


def merits(fmt: BlockFormat, x: Wide, exponent: NDArray[np.int16]) -> NDArray[np.int64]:
    """Merits of the scales of groups in units of the scale, (rows, groups).

    Args:
        fmt: the format.
        x: finite values over their real and integer scales, (rows, B).
        exponent: exponents of groups, (rows, groups).
    """
    element, size = fmt.element, fmt.levels[0].values
    values = reshaped(x, (exponent.size, size))
    flat = exponent.astype(np.int64).reshape(-1)
    if isinstance(element, ValueTable):
        signed = wide_table_codes(element, Rounding.NEAREST, values, exponent.reshape(-1, 1))
        codes = np.abs(element.integers[signed])
    else:
        magnitudes = _nearest(element).wide_magnitudes(values, flat + element.emin, None)
        codes = element.integers[magnitudes]
    terms = codes * (2 * _in_units(element, values, flat) - (codes << MERIT_FRACTION))
    total: NDArray[np.int64] = terms.sum(axis=1).reshape(exponent.shape)
    return total


@cache
def _nearest(element: Element) -> Quantiser:
    return Quantiser((element, element), Rounding.NEAREST, 0)


def _in_units(element: Element, x: Wide, exponent: NDArray[np.int64]) -> NDArray[np.int64]:
    """Magnitudes of values in units of the element times 2^exponent, with their fraction."""
    divisor = np.uint64(element.divisor)
    low = (x.significand & np.uint64((1 << int(HALF)) - 1)) * divisor >> HALF
    product = (x.significand >> HALF) * divisor + low
    unit = exponent + (element.emin - element.fraction_bits)
    right = unit[:, None] - x.exponent - (MERIT_FRACTION + int(HALF))
    most = np.uint64((1 << element.integer_bits + 1 + MERIT_FRACTION) - 1)
    kept = product >> np.clip(right, 0, 63).astype(np.uint64)
    return np.minimum(kept, most).astype(np.int64)
