"""Input arrays as exact integers: sign, significand and exponent, without any rounding."""

from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from axs6.golden.spec import FP32, FP64

INTEGER = "iu"
"""Kinds of NumPy's dtypes of integers. Spans of time are none, though NumPy calls them so."""

TOP = 63 - FP64.fraction_bits
"""Bits that a binary64 significand lies below the top of its word."""


@dataclass(frozen=True)
class Wide:
    """Values as (-1)^negative * significand * 2^exponent, exact; `infinite` and `nan` set aside.

    A significand that is not zero has its top bit (bit 63) set, except for values below
    2^-1000, which every block encodes as magnitude 0.
    """

    negative: NDArray[np.bool_]
    significand: NDArray[np.uint64]
    exponent: NDArray[np.int64]
    infinite: NDArray[np.bool_]
    nan: NDArray[np.bool_]


def bit_length(x: NDArray[np.uint64]) -> NDArray[np.int64]:
    """Number of bits in each unsigned integer, 0 for 0."""
    filled = x.copy()
    for shift in (1, 2, 4, 8, 16, 32):
        filled |= filled >> np.uint64(shift)
    return np.bitwise_count(filled).astype(np.int64)


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
    return Wide(
        negative=bits >= np.uint64(FP64.sign_bit),
        significand=significand,
        exponent=np.maximum(field, 1) - FP64.bias - FP64.fraction_bits - TOP,
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
