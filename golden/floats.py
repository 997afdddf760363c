"""Input arrays as exact integers: sign, significand and exponent, without any rounding."""

from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from axs6.golden.formats import FP32, FP64, Float

INTEGER = "iu"
"""Kinds of NumPy's integer dtypes, without time spans, which NumPy counts as integers."""

TOP = 63 - FP64.fraction_bits
"""Bits that a binary64 significand lies below the top of its word."""


@dataclass(frozen=True)
class Wide:
    """Values as (-1)^negative * significand * 2^exponent, exact; `infinite` and `nan` set aside.

    A significand that is not zero has its top bit (bit 63) set.
    """

    negative: NDArray[np.bool_]
    significand: NDArray[np.uint64]
    exponent: NDArray[np.int64]
    infinite: NDArray[np.bool_]
    nan: NDArray[np.bool_]


def bit_length(x: NDArray[np.uint64]) -> NDArray[np.int64]:
    """Number of bits in each unsigned integer, 0 for 0.

    It is in the exponent field of float64. No carry reaches it when the conversion rounds, because
    the bits below every bit that is 1 are cleared first.
    """
    leading = (x & ~(x >> np.uint64(1))).astype(np.float64)
    field = leading.view(np.int64) >> np.int64(FP64.fraction_bits)
    return np.maximum(field - (FP64.bias - 1), 0)


def fp32_bits(x: NDArray[np.generic]) -> NDArray[np.uint32] | None:
    """Bit patterns of `x` widened exactly to FP32, or None where FP32 cannot hold its dtype.

    float32, float16 and bfloat16 widen; bfloat16 comes as an `ml_dtypes.bfloat16` array or as
    uint16 bit patterns, because NumPy has no dtype of its own for it.
    """
    if x.dtype == np.float32:
        return x.view(np.uint32)
    if x.dtype == np.float16:
        return x.astype(np.float32).view(np.uint32)
    if x.dtype == np.uint16 or x.dtype.name == "bfloat16":
        return x.view(np.uint16).astype(np.uint32) << np.uint32(16)
    return None


def wide(x: NDArray[np.generic]) -> Wide:
    """Decompose float64 and integer values.

    float64 values of magnitude 2^128 or more count as infinite, as the format says.

    Raises:
        TypeError: the dtype is neither float64 nor an integer of up to 64 bits.
    """
    if x.dtype == np.float64:
        return _from_float64(x.view(np.uint64))
    if x.dtype.kind in INTEGER:
        return _from_integer(x)
    raise TypeError(
        "values must be float32, float16, bfloat16 (ml_dtypes, or bit patterns in uint16), "
        f"float64 or integers, not {x.dtype}"
    )


def _from_float64(bits: NDArray[np.uint64]) -> Wide:
    magnitude = bits & np.uint64(FP64.sign_bit - 1)
    field = (magnitude >> np.uint64(FP64.fraction_bits)).astype(np.int64)
    fraction = bits & np.uint64((1 << FP64.fraction_bits) - 1)
    hidden = (field > 0).astype(np.uint64) << np.uint64(FP64.fraction_bits)
    nan = magnitude > np.uint64(FP64.infinity)
    overflow = field > FP64.bias + FP32.bias
    significand = np.where(overflow, np.uint64(0), (fraction | hidden) << np.uint64(TOP))
    exponent = np.maximum(field, 1) - FP64.bias - FP64.fraction_bits - TOP
    subnormal = (field == 0) & (significand != 0)
    if subnormal.any():
        zeros = 64 - bit_length(significand[subnormal])
        significand[subnormal] <<= zeros.astype(np.uint64)
        exponent[subnormal] -= zeros
    return Wide(
        negative=bits >= np.uint64(FP64.sign_bit),
        significand=significand,
        exponent=exponent,
        infinite=overflow & ~nan,
        nan=nan,
    )


def _from_integer(x: NDArray[np.generic]) -> Wide:
    negative = x < 0  # type: ignore[operator]
    bits = x.astype(np.int64).view(np.uint64) if x.dtype.kind == "i" else x.astype(np.uint64)
    magnitude: NDArray[np.uint64] = np.where(negative, ~bits + np.uint64(1), bits)
    leading_zeros = 64 - bit_length(magnitude)
    nothing = np.zeros(x.shape, bool)
    return Wide(
        negative=negative,
        significand=np.left_shift(magnitude, np.minimum(leading_zeros, 63).astype(np.uint64)),
        exponent=-leading_zeros,
        infinite=nothing,
        nan=nothing,
    )


def round_to_float(
    dtype: Float,
    negative: NDArray[np.bool_],
    significand: NDArray[np.uint64],
    exponent: NDArray[np.int64],
    sticky: NDArray[np.bool_] | bool = False,
    toward_zero: bool = False,
) -> NDArray[np.uint64]:
    """Patterns of (-1)^negative * significand * 2^exponent in `dtype`, rounded once.

    To the nearest, ties to even, or toward zero. Overflows become an infinity, toward zero too, as
    in tensor cores; or the largest finite value if `dtype` has no infinity.

    Args:
        dtype: dtype of the result, with at most 52 fraction bits. Without subnormal values, results
            are not below its smallest.
        negative: signs; a zero keeps its sign.
        significand: below 2^62.
        exponent: within +-2^20.
        sticky: whether the true value lies strictly between this significand and the next, which
            needs at least 3 more significant bits than `dtype` has.
        toward_zero: drop what lies below the last bit.
    """
    fraction, lowest = dtype.fraction_bits, dtype.emin - dtype.fraction_bits
    if sticky is not False:
        significand = significand | np.asarray(sticky).astype(np.uint64)
    ulp = np.maximum(exponent + (bit_length(significand) - (fraction + 1)), lowest)
    drop = ulp - exponent
    right = np.minimum(np.maximum(drop, 0), 63).view(np.uint64)
    shifted = significand << np.maximum(-drop, 0).view(np.uint64)
    if not toward_zero:
        # Below the last bit kept: less than half of it, and one more where that bit is 1.
        below = (np.uint64(1) << right) - np.uint64(1)
        shifted += (below >> np.uint64(1)) + ((shifted >> right) & below & np.uint64(1))
    kept = shifted >> right
    # The hidden bit of `kept` adds one to an exponent field that is one too small, and a carry
    # out of the rounding adds another.
    field = np.minimum(ulp - lowest, 1 << dtype.exponent_bits).view(np.uint64)
    hidden = 1 - dtype.first_normal << fraction  # which the field 0 has too
    largest = (dtype.infinity if dtype.has_infinity else dtype.largest_code) + hidden
    pattern = np.minimum((field << np.uint64(fraction)) + kept, np.uint64(largest))
    pattern *= kept != 0
    if hidden:
        pattern -= np.uint64(hidden)
    return pattern | (negative.astype(np.uint64) << np.uint64(dtype.magnitude_bits))


def bf16_bits(values: NDArray[np.float32]) -> NDArray[np.uint16]:
    """Patterns of the nearest BF16 numbers, ties to even, as libraries round; NaN becomes quiet."""
    bits = values.view(np.uint32)
    rounded = (bits + (((bits >> 16) & 1) + np.uint32(0x7FFF))) >> 16
    return np.where(np.isnan(values), bits >> 16 | 0x40, rounded).astype(np.uint16)


def split(
    dtype: Float, patterns: NDArray[np.unsignedinteger]
) -> tuple[NDArray[np.bool_], NDArray[np.uint64], NDArray[np.int64]]:
    """Sign, significand and exponent of its least significant bit, for finite values of `dtype`."""
    wide = patterns.astype(np.uint64)
    mask = np.uint64((1 << dtype.magnitude_bits) - 1)
    rest = wide & mask
    low = np.uint64(dtype.first_normal)
    below = np.maximum(rest >> np.uint64(dtype.fraction_bits), low) - low
    hidden = np.uint64(1 - dtype.first_normal << dtype.fraction_bits)
    significand = rest - (below << np.uint64(dtype.fraction_bits)) + hidden
    exponent = below.view(np.int64) + (dtype.emin - dtype.fraction_bits)
    return wide > mask, significand, exponent
