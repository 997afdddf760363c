"""FP32 arithmetic on bit patterns, by integers, with exactly one rounding to nearest even.

Every function takes and gives uint32 arrays. Subnormals are kept, overflow gives infinity, and a
NaN is always `FP32.quiet_nan`, whatever the processor at hand would return.
"""

import numpy as np
from numpy.typing import NDArray

from axs6.golden.floats import bit_length
from axs6.golden.spec import ACCUMULATOR_SCALE, FP32, PRODUCT_MAX

Bits = NDArray[np.uint32]

LOWEST = 1 - FP32.bias - FP32.fraction_bits
"""Exponent of the least significant bit of a subnormal, -149."""

GUARD = 36
"""Bits below the larger operand of an addition; beyond them a sticky bit is enough."""


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
    length = bit_length(significand)
    ulp = np.maximum(exponent + length - FP32.fraction_bits - 1, LOWEST)
    drop = ulp - exponent
    left = np.clip(-drop, 0, 63).astype(np.uint64)
    right = np.clip(drop, 0, 63).astype(np.uint64)
    shifted = significand << left
    kept = shifted >> right
    rest = shifted - (kept << right)
    half = (np.uint64(1) << right) >> np.uint64(1)
    odd = (kept & np.uint64(1)).astype(bool)
    above = (rest > half) | ((rest == half) & (odd | sticky))
    kept += (above & (drop > 0)).astype(np.uint64)
    # The hidden bit of `kept` adds one to an exponent field that is one too small, and a carry
    # out of the rounding adds another.
    pattern = ((ulp - LOWEST).astype(np.uint64) << np.uint64(FP32.fraction_bits)) + kept
    pattern = np.where(kept == 0, np.uint64(0), np.minimum(pattern, np.uint64(FP32.infinity)))
    sign = np.where(negative, np.uint32(FP32.sign_bit), np.uint32(0))
    return pattern.astype(np.uint32) | sign


def split(bits: Bits) -> tuple[NDArray[np.bool_], NDArray[np.uint64], NDArray[np.int64]]:
    """Sign, significand and exponent of its least significant bit, for finite values."""
    magnitude = (bits & np.uint32(FP32.sign_bit - 1)).astype(np.uint64)
    field = np.maximum(magnitude >> np.uint64(FP32.fraction_bits), np.uint64(1))
    significand = magnitude - ((field - np.uint64(1)) << np.uint64(FP32.fraction_bits))
    return bits >= FP32.sign_bit, significand, field.astype(np.int64) - 1 + LOWEST


def is_nan(bits: Bits) -> NDArray[np.bool_]:
    """Which patterns are NaN."""
    return (bits & np.uint32(FP32.sign_bit - 1)) > FP32.infinity


def is_infinite(bits: Bits) -> NDArray[np.bool_]:
    """Which patterns are +Inf or -Inf."""
    return (bits & np.uint32(FP32.sign_bit - 1)) == FP32.infinity


def from_integer(value: NDArray[np.integer], exponent: NDArray[np.integer]) -> Bits:
    """value * 2^exponent for signed integers below 2^62. An underflow keeps its sign."""
    wide = value.astype(np.int64)
    return round_to_fp32(wide < 0, np.abs(wide).astype(np.uint64), exponent.astype(np.int64))


def add(a: Bits, b: Bits) -> Bits:
    """a + b. Opposite infinities give NaN; x + (-x) is +0."""
    a, b = np.broadcast_arrays(a, b)
    magnitude = np.uint32(FP32.sign_bit - 1)
    swap = (a & magnitude) < (b & magnitude)
    large, small = np.where(swap, b, a), np.where(swap, a, b)
    negative, significand, exponent = split(large)
    small_negative, small_significand, small_exponent = split(small)
    distance = np.minimum(exponent - small_exponent, 63).astype(np.uint64)
    addend = small_significand << np.uint64(GUARD)
    aligned = addend >> distance
    sticky = (aligned << distance) != addend
    total = significand << np.uint64(GUARD)
    subtract = negative != small_negative
    # A subtrahend with bits below the guard leaves a difference just below the next integer.
    borrow = sticky.astype(np.uint64)
    total = np.where(subtract, total - aligned - borrow, total + aligned)
    negative = np.where(total == 0, negative & small_negative, negative)
    result = round_to_fp32(negative, total, exponent - GUARD, sticky)
    result = np.where(is_infinite(large), large, result)
    nan = is_nan(a) | is_nan(b) | (is_infinite(a) & is_infinite(b) & (a != b))
    return np.where(nan, np.uint32(FP32.quiet_nan), result)


def divide_by_scale(bits: Bits) -> Bits:
    """bits / (961 / 1024), which turns an accumulator into the value of the dot product."""
    negative, significand, exponent = split(bits)
    quotient, remainder = np.divmod(significand << np.uint64(GUARD), np.uint64(PRODUCT_MAX))
    exponent = exponent + ACCUMULATOR_SCALE - GUARD
    result = round_to_fp32(negative, quotient, exponent, remainder != 0)
    result = np.where(is_infinite(bits), bits, result)
    return np.where(is_nan(bits), np.uint32(FP32.quiet_nan), result)
