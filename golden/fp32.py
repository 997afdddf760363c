"""FP32 arithmetic on bit patterns, by integers, with exactly one rounding to nearest even.

Every function takes and gives uint32 arrays. Subnormals are kept, overflow gives infinity, and a
NaN is always `FP32.quiet_nan`, whatever the processor at hand would return.
"""

from typing import Final

import numpy as np
from numpy.typing import NDArray

from axs6.golden import floats
from axs6.golden.floats import bit_length, round_to_float
from axs6.golden.formats import FP32, Float

Bits = NDArray[np.uint32]

LOWEST = 1 - FP32.bias - FP32.fraction_bits
"""Exponent of the least significant bit of a subnormal, -149."""

ONE: Final[Bits] = np.array(FP32.bias << FP32.fraction_bits, np.uint32)
"""1.0."""

GUARD = 36
"""Bits below the last one of operands; beyond them it is enough to know whether any is 1."""

RAISED = 60
"""Bits of an addend of `multiply_add`: 12 more than a product has, and two less than a sum may."""


def round_to_fp32(
    negative: NDArray[np.bool_],
    significand: NDArray[np.uint64],
    exponent: NDArray[np.int64],
    sticky: NDArray[np.bool_] | bool = False,
) -> Bits:
    """(-1)^negative * significand * 2^exponent, rounded once.

    Args:
        negative: signs; a zero keeps its sign.
        significand: below 2^62.
        exponent: within +-2^20.
        sticky: whether the true value lies strictly between this significand and the next, which
            needs at least 26 significant bits.
    """
    patterns = round_to_float(FP32, negative, significand, exponent, sticky)
    return patterns.astype(np.uint32)


def split(bits: Bits) -> tuple[NDArray[np.bool_], NDArray[np.uint64], NDArray[np.int64]]:
    """Sign, significand and exponent of its least significant bit, for finite values."""
    return floats.split(FP32, bits)


def _special(bits: Bits) -> NDArray[np.bool_]:
    """Which patterns are infinities or NaN."""
    return (bits & np.uint32(FP32.sign_bit - 1)) >= FP32.infinity


def is_nan(bits: Bits) -> NDArray[np.bool_]:
    """Which patterns are NaN."""
    return (bits & np.uint32(FP32.sign_bit - 1)) > FP32.infinity


def is_infinite(bits: Bits) -> NDArray[np.bool_]:
    """Which patterns are +Inf or -Inf."""
    return (bits & np.uint32(FP32.sign_bit - 1)) == FP32.infinity


def round_through(
    dtype: Float,
    negative: NDArray[np.bool_],
    significand: NDArray[np.uint64],
    exponent: NDArray[np.int64],
    sticky: NDArray[np.bool_] | bool,
    toward_zero: bool,
) -> Bits:
    """As `axs6.golden.floats.round_to_float`, and FP32 patterns of its results.

    `dtype` has an infinity, and no value that FP32 has not.
    """
    bits = round_to_float(dtype, negative, significand, exponent, sticky, toward_zero)
    if dtype == FP32:
        return bits.astype(np.uint32)
    infinite = bits & np.uint64(dtype.sign_bit - 1) == dtype.infinity
    widened = round_to_fp32(*floats.split(dtype, bits))
    return np.where(infinite, widened & np.uint32(FP32.sign_bit) | FP32.infinity, widened)


def add(a: Bits, b: Bits, dtype: Float = FP32, toward_zero: bool = False) -> Bits:
    """a + b, rounded to `dtype`. Opposite infinities give NaN; x + (-x) is +0."""
    a_negative, a_significand, a_exponent = split(a)
    b_negative, b_significand, b_exponent = split(b)
    exponent = np.maximum(a_exponent, b_exponent)
    left = _aligned(a_negative, a_significand, exponent - a_exponent)
    right = _aligned(b_negative, b_significand, exponent - b_exponent)
    total = left + right
    negative = np.where(total == 0, a_negative & b_negative, total < 0)
    significand = np.abs(total).view(np.uint64)
    result = round_through(dtype, negative, significand, exponent - GUARD, False, toward_zero)
    if not (_special(a).any() or _special(b).any()):
        return result
    result = np.where(_special(a), a, np.where(_special(b), b, result))
    nan = is_nan(a) | is_nan(b) | (is_infinite(a) & is_infinite(b) & (a != b))
    return np.where(nan, np.uint32(FP32.quiet_nan), result)


def _aligned(
    negative: NDArray[np.bool_], significand: NDArray[np.uint64], distance: NDArray[np.int64]
) -> NDArray[np.int64]:
    """A signed addend over 2^distance, with GUARD bits more.

    Where bits are lost, the last one that is kept is 1. It lies so far below the last bit of every
    result that sums and differences are rounded as with all of them.
    """
    return _over(negative, significand << np.uint64(GUARD), distance)


def _over(
    negative: NDArray[np.bool_], addend: NDArray[np.uint64], distance: NDArray[np.int64]
) -> NDArray[np.int64]:
    """A signed addend over 2^distance, the last bit 1 where bits are lost."""
    shift = np.minimum(distance, 63).view(np.uint64)
    aligned = addend >> shift
    aligned |= (aligned << shift) != addend
    return np.where(negative, -aligned.view(np.int64), aligned.view(np.int64))


def multiply(a: Bits, b: Bits) -> Bits:
    """a * b. Zero times an infinity gives NaN."""
    negative, significand, exponent = split(a)
    other, factor, above = split(b)
    result = round_to_fp32(negative ^ other, significand * factor, exponent + above)
    sign = np.uint32(FP32.sign_bit)
    infinite = is_infinite(a) | is_infinite(b)
    result = np.where(infinite, (a ^ b) & sign | np.uint32(FP32.infinity), result)
    zero = (a & ~sign == 0) | (b & ~sign == 0)
    nan = is_nan(a) | is_nan(b) | infinite & zero
    return np.where(nan, np.uint32(FP32.quiet_nan), result)


def multiply_add(a: Bits, b: Bits, c: Bits) -> Bits:
    """a * b + c, rounded once. Zero times an infinity, and opposite infinities, give NaN."""
    a_negative, a_significand, a_exponent = split(a)
    b_negative, b_significand, b_exponent = split(b)
    c_negative, c_significand, c_exponent = split(c)
    minus = a_negative ^ b_negative
    product, low = _raised(a_significand * b_significand, a_exponent + b_exponent)
    addend, other = _raised(c_significand, c_exponent)
    exponent = np.maximum(low, other)
    total = _over(minus, product, exponent - low) + _over(c_negative, addend, exponent - other)
    negative = np.where(total == 0, minus & c_negative, total < 0)
    result = round_to_fp32(negative, np.abs(total).view(np.uint64), exponent)
    nothing = _special(a) | _special(b)
    if not (nothing.any() or _special(c).any()):
        return result
    special = add(np.where(nothing, multiply(a, b), np.uint32(0)), c)
    return np.where(nothing | _special(c), special, result)


def _raised(
    significand: NDArray[np.uint64], exponent: NDArray[np.int64]
) -> tuple[NDArray[np.uint64], NDArray[np.int64]]:
    """A number of RAISED bits, and its exponent; 0 has one below those of all others."""
    left = RAISED - bit_length(significand)
    raised = significand << left.view(np.uint64)
    return raised, np.where(significand == 0, 3 * LOWEST, exponent - left)


def divide_by_scale(bits: Bits, divisor: int) -> Bits:
    """bits / (divisor / 2^n), which turns an accumulator into the value of the dot product.

    `divisor` is below 2^27, and n its bits: 961 / 1024 for AXS-6.
    """
    negative, significand, exponent = split(bits)
    quotient, remainder = np.divmod(significand << np.uint64(GUARD), np.uint64(divisor))
    exponent = exponent + (scale_bits(divisor) - GUARD)
    result = round_to_fp32(negative, quotient, exponent, remainder != 0)
    result = np.where(is_infinite(bits), bits, result)
    return np.where(is_nan(bits), np.uint32(FP32.quiet_nan), result)


def scale_bits(divisor: int) -> int:
    """n of the power 2^n, not below `divisor`, that keeps an accumulator in the range of y."""
    return (divisor - 1).bit_length()
