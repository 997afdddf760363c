"""Scales of groups, from their largest values: exponents and shifts, integers, real numbers.

Every function works on one level of scales. `axs6.golden.encode` goes through the levels.
"""

from fractions import Fraction
from functools import cache
from typing import Any

import numpy as np
from numpy.typing import NDArray

from axs6.golden import fp32
from axs6.golden.floats import Wide, bf16_bits, bit_length, round_to_float
from axs6.golden.formats import FP32, Element, Exponent, Float, Real, Rule

FRACTION = np.uint32((1 << FP32.fraction_bits) - 1)
SMALLEST_SCALE = np.float32(2.0**-126)
"""FP32 scales are at least this, so that their reciprocals are finite."""

TOP_BIT = np.uint64(1 << 63)
NO_VALUE = -(1 << 20)
"""In place of the exponent of a zero: below that of every value."""

Values32 = NDArray[np.float32]


def group_max(x: NDArray[Any], group: int) -> NDArray[Any]:
    """The largest value of each group of successive ones, a power of two, in index order.

    NumPy reduces short rows slowly, so whole arrays are compared with themselves, shifted.
    """
    flat, step = x.reshape(-1), group // 2
    while step:
        flat = np.maximum(flat[:-step], flat[step:])
        step //= 2
    return flat[::group].copy()


def wide_max(x: Wide, group: int) -> Wide:
    """The largest magnitude of each group of successive values (..., size), as (..., groups)."""
    shape = (*x.significand.shape[:-1], x.significand.shape[-1] // group, group)
    exponent = np.where(x.significand != 0, x.exponent, NO_VALUE).reshape(shape)
    top = exponent.max(axis=-1)
    significand = x.significand.reshape(shape)
    largest = np.where(exponent == top[..., None], significand, np.uint64(0)).max(axis=-1)
    return magnitudes(largest, np.where(largest != 0, top, 0))


def magnitudes(significand: NDArray[np.uint64], exponent: NDArray[np.int64]) -> Wide:
    """Finite values without a sign."""
    nothing = np.zeros(significand.shape, bool)
    return Wide(nothing, significand, exponent, nothing, nothing)


def log2(x: Wide) -> NDArray[np.int64]:
    """floor(log2 x), NO_VALUE for 0."""
    return np.where(x.significand != 0, x.exponent + 63, NO_VALUE)


def fp32_log2(bits: NDArray[np.uint32]) -> NDArray[np.int32]:
    """As `log2`, of FP32 patterns without a sign."""
    field = bits >> np.uint32(FP32.fraction_bits)
    found = field.view(np.int32) - np.int32(FP32.bias)
    subnormal = field == 0
    if subnormal.any():
        found[subnormal] = log2(as_wide(bits[subnormal]))
    return found


def exponents(scale: Exponent, element: Element, largest: Wide) -> NDArray[np.uint8]:
    """Codes of exponent scales of groups with these largest magnitudes."""
    floor = log2(largest) - element.emax
    if scale.rule is Rule.CEIL:
        floor += largest.significand > TOP_BIT
    elif scale.rule is Rule.EVEN:
        floor += largest.significand >= np.uint64((1 << 64) - (1 << 62 - element.precision))
    elif scale.rule is Rule.RCEIL:
        quotient = as_wide(rounded_quotient(largest, element.largest))
        floor = log2(quotient) + (quotient.significand > TOP_BIT)
    codes = np.clip(floor + scale.bias, 0, scale.largest_code).astype(np.uint8)
    return np.where(largest.significand == 0, np.uint8(0), codes)


def fp32_exponents(
    scale: Exponent, element: Element, largest: NDArray[np.uint32]
) -> NDArray[np.uint8]:
    """As `exponents`, of FP32 patterns without a sign.

    It is right where amax is normal, and where the code would be 0 or less for a subnormal one.
    """
    emax = element.emax
    if scale.rule is Rule.CEIL:
        largest = largest + FRACTION
    elif scale.rule is Rule.EVEN:
        largest = largest + np.uint32(1 << FP32.fraction_bits - 1 - element.precision)
    elif scale.rule is Rule.RCEIL:
        with np.errstate(over="ignore"):  # an infinite one has the largest code
            quotient = largest.view(np.float32) / np.float32(element.largest)
        largest, emax = quotient.view(np.uint32) + FRACTION, 0
    fields = (largest >> FP32.fraction_bits).astype(np.int16)
    offset = scale.bias - FP32.bias - emax
    codes = np.maximum(fields + np.int16(offset), np.int16(0))
    return np.minimum(codes, np.int16(scale.largest_code)).astype(np.uint8)


def as_wide(bits: NDArray[np.uint32]) -> Wide:
    """Finite FP32 patterns as exact integers."""
    negative, significand, exponent = fp32.split(bits)
    zeros = 64 - bit_length(significand)
    nothing = np.zeros(bits.shape, bool)
    top = significand << np.minimum(zeros, 63).astype(np.uint64)
    return Wide(negative, top, exponent - zeros, nothing, nothing)


def rounded_quotient(x: Wide, divisor: Fraction) -> NDArray[np.uint32]:
    """Patterns of fp32(x / divisor), rounded once.

    The divisor is an integer of up to 31 bits times a power of two.
    """
    odd, power = divisor.numerator, divisor.denominator.bit_length() - 1
    twos = (odd & -odd).bit_length() - 1
    quotient, rest = np.divmod(x.significand >> np.uint64(2), np.uint64(odd >> twos))
    inexact = (rest != 0) | (x.significand & np.uint64(3) != 0)
    exponent = x.exponent + 2 + power - twos
    return round_to_float(FP32, x.negative, quotient, exponent, inexact).astype(np.uint32)


def rounded_product(x: Wide, factor: Values32) -> NDArray[np.uint32]:
    """Patterns of fp32(x * factor), rounded once; the factor is positive and finite."""
    _, significand, exponent = fp32.split(factor.view(np.uint32))
    low = (x.significand & np.uint64(0xFFFFFFFF)) * significand
    product = (x.significand >> np.uint64(32)) * significand + (low >> np.uint64(32))
    inexact = low & np.uint64(0xFFFFFFFF) != 0
    total = x.exponent + 32 + exponent
    return round_to_float(FP32, x.negative, product, total, inexact).astype(np.uint32)


def rounded_sum(x: Wide, y: Wide) -> NDArray[np.uint32]:
    """Patterns of fp32(x + y), rounded once, of magnitudes."""
    swap = log2(x) < log2(y)
    large, small = (
        np.where(swap, b, a)
        for a, b in ((x.significand, y.significand), (y.significand, x.significand))
    )
    exponent, other = (
        np.where(swap, b, a) for a, b in ((x.exponent, y.exponent), (y.exponent, x.exponent))
    )
    distance = np.where(small != 0, exponent - other, 0).astype(np.uint64)
    aligned = small >> distance
    inexact = np.where(distance < 64, aligned << distance, np.uint64(0)) != small
    three = np.uint64(3)
    low = (large & np.uint64(7)) + (aligned & np.uint64(7))
    total = (large >> three) + (aligned >> three) + (low >> three)
    inexact |= low & np.uint64(7) != 0
    return round_to_float(FP32, x.negative, total, exponent + 3, inexact).astype(np.uint32)


def real_scales(
    scale: Real, quotient: Values32, zero: NDArray[np.bool_]
) -> tuple[NDArray[Any], Values32]:
    """Codes and values of real scales.

    Args:
        scale: the kind.
        quotient: what the scale would be, before it is held to the numbers of its dtype.
        zero: which groups hold nothing but zeros.
    """
    dtype = scale.dtype
    if dtype == FP32:
        held = np.clip(quotient, SMALLEST_SCALE, np.float32(dtype.largest))
        value = np.where(zero, np.float32(1), held)
        return value.view(np.uint32), value
    smallest, largest = (np.float32(dtype.unit * 2**dtype.fraction_bits), np.float32(dtype.largest))
    x = as_wide(np.clip(quotient, smallest, largest).view(np.uint32))
    codes = round_to_float(dtype, x.negative, x.significand >> np.uint64(2), x.exponent + 2)
    return codes.astype(code_dtype(dtype.width)), real_values(dtype, codes)


def as_bf16(x: Values32) -> Values32:
    """The nearest BF16 numbers, ties to even."""
    return (bf16_bits(x).astype(np.uint32) << np.uint32(16)).view(np.float32)


def real_values(dtype: Float, codes: NDArray[Any]) -> Values32:
    """Values of codes of real scales, exact; NaN where they are NaN."""
    if dtype == FP32:
        return codes.view(np.float32)
    return _real_table(dtype)[codes]


@cache
def _real_table(dtype: Float) -> Values32:
    values = [dtype.integer(code) for code in range(1 << dtype.width)]
    numbers = [float(v * dtype.unit) if isinstance(v, int) else np.nan for v in values]
    return np.array(numbers, np.float32)


def integer_scales(largest: Wide, step: Values32, top: Fraction, most: int) -> NDArray[np.uint16]:
    """Integer scales ceil(largest / (top * step)), from 1 to `most`.

    Args:
        largest: the largest magnitudes of groups.
        step: the scale of the group above, normal numbers.
        top: the largest element, an integer over a power of two.
        most: the largest code.
    """
    _, divisor, exponent = fp32.split(step.view(np.uint32))
    twos = (top.numerator & -top.numerator).bit_length() - 1
    odd, power = top.numerator >> twos, twos + 1 - top.denominator.bit_length()
    room = 40 - odd.bit_length()  # by which a divisor of 24 bits times the odd part can be moved
    below = np.clip(exponent + power - largest.exponent, 0, 96)  # at 0 the ratio is 2^16 or more
    first = np.clip(below - room, 0, 63).astype(np.uint64)
    numerator = largest.significand >> first
    numerator += numerator << first != largest.significand
    denominator = divisor * np.uint64(odd) << np.minimum(below, room).astype(np.uint64)
    quotient, rest = np.divmod(numerator, denominator)
    return np.clip(quotient + (rest != 0), 1, most).astype(np.uint16)


def code_dtype(bits: int) -> type[np.unsignedinteger]:
    """The smallest unsigned dtype that holds codes of this width."""
    return np.uint8 if bits <= 8 else np.uint16 if bits <= 16 else np.uint32


def spread(x: NDArray[Any], groups: int) -> NDArray[Any]:
    """Values of groups (..., m) for the finer groups or values in them, (..., groups).

    Those of one group stay (..., 1), which broadcasts.
    """
    return x if x.shape[-1] in (1, groups) else np.repeat(x, groups // x.shape[-1], axis=-1)
