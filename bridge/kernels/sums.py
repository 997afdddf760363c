"""Sums of a block's products: how wide they are, and in which lanes the library computes them."""

from enum import IntEnum
from functools import cache
from typing import Any

import numpy as np
from numpy.typing import NDArray

from axs6.golden.accumulator import Accumulator
from axs6.golden.formats import Exponent, Real, Shift
from axs6.golden.terms import Terms
from axs6.torch.kernels.layout import Layout
from axs6.torch.kernels.library import library

BFLOAT = np.dtype(np.uint16)
"""Stands for BF16: the upper halves of float32."""

FLOAT = np.dtype(np.float32)

LANES = (np.dtype(np.int8), np.dtype(np.int16), BFLOAT, FLOAT)
"""Dtypes of lanes, in the order of their numbers."""

FP32_BITS = 24
"""Bits of sums that FP32 holds: more need float64, or lanes that are split."""

DOUBLE_BITS = 53
"""Bits of sums that float64 holds."""

UPPER = 1 << 9
"""Lanes are split into a multiple of this and the rest; see tiles.hpp."""


@cache
def sum_bits(a: Layout, b: Layout) -> int:
    """Bits of a block's sum with the significands of its factors.

    Raises:
        ValueError: the formats are not multiplied.
    """
    return Terms.of(a.format, b.format, Accumulator()).bound.bit_length()


@cache
def are_powers(a: Layout, b: Layout) -> bool:
    """Whether all factors are powers of two."""
    blocked = (*a.format.blocked, *b.format.blocked)
    return all(isinstance(x.scale, Exponent | Shift) for x in blocked)


class Factors(IntEnum):
    """How sums are multiplied by the factors of their blocks: see product.hpp."""

    SHORT = 0
    POWERS = 1
    LONG = 2
    DOUBLE = 3


@cache
def factors(a: Layout, b: Layout) -> Factors | None:
    """The factors of sums of integers; None where neither FP32 nor float64 holds their products."""
    sums, significands = block_bits(a, b), significand_bits(a)
    if are_powers(a, b):
        return Factors.POWERS if sums <= FP32_BITS else None
    if sum_bits(a, b) <= FP32_BITS:
        return Factors.SHORT
    if sums > FP32_BITS or max(significands, significand_bits(b)) > FP32_BITS:
        return None
    return Factors.LONG if sums + significands <= FP32_BITS else Factors.DOUBLE


def block_bits(a: Layout, b: Layout) -> int:
    """Bits of a block's sum."""
    return (a.block * a.bound * b.bound).bit_length()


def significand_bits(held: Layout) -> int:
    """Bits of the significands of a block's factors."""
    scales = [x.scale for x in held.format.blocked]
    bits = [
        x.dtype.fraction_bits + 1 if isinstance(x, Real) else x.bits
        for x in scales
        if not isinstance(x, Exponent | Shift)
    ]
    return sum(bits)


@cache
def in_tiles(a: Layout, b: Layout) -> bool:
    """Whether a matrix unit multiplies two layouts: all its sums are exact in FP32."""
    try:
        wide = sum_bits(a, b) > FP32_BITS
    except ValueError:
        return False
    if wide and not are_powers(a, b):
        return False
    parts = [_split(x.magnitudes) if wide else (x.magnitudes,) for x in (a, b)]
    if not all(_is_short(part) for x in parts for part in x):
        return False
    left, right = ([int(np.abs(part).max()) for part in x] for x in parts)
    if not wide:
        return a.block * left[0] * right[0] < 1 << FP32_BITS
    (high, low), (other_high, other_low) = left, right
    sums = (
        high // UPPER * (other_high // UPPER),
        high // UPPER * other_low + low * (other_high // UPPER),
        low * other_low,
    )
    return a.block * max(sums) < 1 << FP32_BITS


def _split(values: NDArray[np.int64]) -> tuple[NDArray[np.int64], NDArray[np.int64]]:
    upper = np.rint(values / UPPER).astype(np.int64) * UPPER
    return upper, values - upper


def _is_short(values: NDArray[np.int64]) -> bool:
    """Whether BF16 holds integers."""
    patterns = values.astype(np.float32).view(np.uint32)
    return bool((np.abs(values) < 1 << FP32_BITS).all() and not (patterns & 0xFFFF).any())


def integer_lanes(held: Layout) -> np.dtype[Any]:
    """The narrowest lanes that the library has for a layout without a matrix unit."""
    if held.format.element.has_nan:
        return FLOAT
    for dtype in LANES[not library().axs6_has_8_bit() : 2]:
        most = 1 << 8 * dtype.itemsize - 1
        if -most <= held.low and held.high < most:
            return dtype
    return FLOAT


def common_lanes(a: Layout, b: Layout) -> np.dtype[Any]:
    """The lanes in which the library multiplies two layouts.

    Lanes of 8 bits are faster than a matrix unit where sums are read block by block.
    """
    integers = LANES[max(LANES.index(integer_lanes(x)) for x in (a, b))]
    found = factors(a, b)
    if integers == LANES[0] and found is not None:
        return integers
    if library().axs6_has_tiles() and in_tiles(a, b):
        return BFLOAT
    return FLOAT if found is None else integers


def own_lanes(held: Layout) -> np.dtype[Any]:
    """The lanes in which the library encodes a layout: those of products, if they are integers."""
    found = integer_lanes(held)
    if found == LANES[0] or not (library().axs6_has_tiles() and in_tiles(held, held)):
        return found
    return BFLOAT


def converted(lanes: NDArray[Any], dtype: np.dtype[Any]) -> NDArray[Any]:
    """Integers in lanes of another dtype, which holds them."""
    if lanes.dtype == dtype:
        return lanes
    if lanes.dtype == BFLOAT:
        lanes = (lanes.astype(np.uint32) << 16).view(np.float32)
    if dtype == BFLOAT:
        return (lanes.astype(np.float32).view(np.uint32) >> 16).astype(BFLOAT)
    return lanes.astype(dtype, copy=False)
