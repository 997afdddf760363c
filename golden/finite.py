"""Rows of values of any dtype, with NaN and infinities set aside."""

from collections.abc import Sequence
from dataclasses import dataclass, replace
from fractions import Fraction
from functools import cached_property
from typing import Any

import numpy as np
from numpy.typing import NDArray

from axs6.golden.floats import Wide, fp32_bits, wide
from axs6.golden.formats import FP32
from axs6.golden.scaling import (
    as_wide,
    group_max,
    integer_scales,
    magnitudes,
    rounded_product,
    rounded_quotient,
    wide_max,
)

MAGNITUDE = np.uint32(FP32.sign_bit - 1)
LARGEST = as_wide(np.array([FP32.max_finite], np.uint32))
"""The largest finite FP32 value, as which infinities are encoded before they saturate."""


@dataclass(frozen=True)
class Largest:
    """The largest magnitudes of groups, (rows, groups).

    Args:
        bits: their FP32 patterns, where FP32 holds the dtype.
        wide: exact integers, where it does not.
    """

    bits: NDArray[np.uint32] | None
    wide: Wide | None

    @classmethod
    def joined(cls, parts: Sequence["Largest"]) -> "Largest":
        """Rows of all parts, in order."""
        if parts[0].bits is not None:
            return cls(np.concatenate([x.bits for x in parts if x.bits is not None]), None)
        wide = [x.wide for x in parts if x.wide is not None]
        significand = np.concatenate([x.significand for x in wide])
        exponent = np.concatenate([x.exponent for x in wide])
        return cls(None, magnitudes(significand, exponent))

    @classmethod
    def merged(cls, parts: Sequence["Largest"]) -> "Largest":
        """The larger of the same rows of several parts, all (rows, 1)."""
        if parts[0].bits is not None:
            bits = np.stack([x.bits for x in parts if x.bits is not None])
            return cls(bits.max(axis=0), None)
        wide = [x.wide for x in parts if x.wide is not None]
        significand = np.concatenate([x.significand for x in wide], axis=1)
        exponent = np.concatenate([x.exponent for x in wide], axis=1)
        return cls(None, wide_max(magnitudes(significand, exponent), len(wide)))

    @property
    def exact(self) -> Wide:
        """The values as exact integers."""
        if self.wide is not None:
            return self.wide
        assert self.bits is not None
        return as_wide(self.bits)

    @property
    def shape(self) -> tuple[int, ...]:
        """(rows, groups)."""
        return self.zero.shape

    @property
    def zero(self) -> NDArray[np.bool_]:
        """Which are 0."""
        if self.wide is not None:
            return self.wide.significand == 0
        assert self.bits is not None
        return self.bits == 0

    def of_groups(self, groups: int) -> "Largest":
        """The largest of each of `groups` equal groups of rows, (groups, 1), 0 of no rows."""
        rows = self.shape[0] // max(1, groups)
        if self.bits is not None:
            found = self.bits.reshape(groups, rows).max(axis=1, keepdims=True, initial=0)
            return Largest(found.astype(np.uint32), None)
        x = self.exact
        if not rows:
            return Largest(np.zeros((groups, 1), np.uint32), None)
        shape = (groups, rows)
        whole = magnitudes(x.significand.reshape(shape), x.exponent.reshape(shape))
        return Largest(None, wide_max(whole, rows))

    def quotient(self, divisor: Fraction) -> NDArray[np.float32]:
        """fp32(x / divisor), rounded once; the divisor is an integer of up to 31 bits times a power
        of two.

        FP32's own division does that where it holds the divisor. Where it is told to take subnormal
        numbers for 0, divisors of 1 or more keep that apart from normal quotients.
        """
        held = 1 <= divisor <= FP32.largest and Fraction(float(np.float32(divisor))) == divisor
        if self.bits is not None and held:
            return self.bits.view(np.float32) / np.float32(divisor)
        return rounded_quotient(self.exact, divisor).view(np.float32)

    def product(self, factor: NDArray[np.float32]) -> NDArray[np.float32]:
        """fp32(x * factor), rounded once; the factor is one positive finite number."""
        if self.bits is not None and factor <= 1:  # as in `quotient`
            return self.bits.view(np.float32) * factor
        return rounded_product(self.exact, np.broadcast_to(factor, self.shape)).view(np.float32)

    def ratio(self, top: Fraction, step: NDArray[np.float32], most: int) -> NDArray[np.uint16]:
        """ceil(x / (top * step)), from 1 to `most`; `top` is an integer over a power of two.

        In float64 the ratio is right: a whole number apart from one with a remainder by 2^-47 of
        it, as the denominator has at most 31 bits.
        """
        if self.bits is None or top.numerator >= 1 << 7:
            return integer_scales(self.exact, step, top, most)
        exact = step.astype(np.float64) * float(top)
        quotient = np.ceil(self.bits.view(np.float32).astype(np.float64) / exact)
        return np.clip(quotient, 1, most).astype(np.uint16)


@dataclass(frozen=True)
class Finite:
    """Rows of finite values, (rows, size), and the places of nonfinite ones.

    Args:
        bits: FP32 patterns, where FP32 holds the dtype.
        wide: exact integers, where it does not.
        infinite: signs of infinite or too large values, 0 for all others; None if all were finite.
        nan: places of NaN.
    """

    bits: NDArray[np.uint32] | None
    wide: Wide | None
    infinite: NDArray[np.int8] | None = None
    nan: NDArray[np.bool_] | None = None

    @cached_property
    def upper(self) -> NDArray[np.uint16]:
        """The upper 16 bits of the patterns, without the sign."""
        assert self.bits is not None
        return (self.bits >> np.uint32(16)).astype(np.uint16) & np.uint16(int(MAGNITUDE) >> 16)

    @classmethod
    def of(cls, values: NDArray[Any], saturate: bool) -> "Finite":
        """NaN becomes +0, and an infinity the largest finite FP32 value if `saturate`, else +0."""
        bits = fp32_bits(values)
        if bits is None:
            return cls._of_wide(wide(values), saturate)
        finite = cls(bits, None)
        if int(finite.upper.max(initial=0)) < FP32.infinity >> 16:
            return finite
        magnitude = bits & MAGNITUDE
        infinite, nan = magnitude == FP32.infinity, magnitude > FP32.infinity
        # The pattern before an infinity is the largest finite value of its sign.
        kept = bits - infinite if saturate else np.where(infinite, np.uint32(0), bits)
        return cls(np.where(nan, np.uint32(0), kept), None, _signs(infinite, bits > MAGNITUDE), nan)

    @classmethod
    def _of_wide(cls, x: Wide, saturate: bool) -> "Finite":
        if not (x.infinite.any() or x.nan.any()):
            return cls(None, x)
        largest = LARGEST.significand if saturate else np.uint64(0)
        significand = np.where(x.nan, np.uint64(0), np.where(x.infinite, largest, x.significand))
        exponent = np.where(x.infinite, LARGEST.exponent, x.exponent)
        kept = replace(x, significand=significand, exponent=exponent, negative=x.negative & ~x.nan)
        return cls(None, kept, _signs(x.infinite, x.negative), x.nan)

    @property
    def shape(self) -> tuple[int, ...]:
        """(rows, size)."""
        if self.wide is not None:
            return self.wide.significand.shape
        assert self.bits is not None
        return self.bits.shape

    @property
    def exact(self) -> Wide:
        """The values as exact integers."""
        if self.wide is not None:
            return self.wide
        assert self.bits is not None
        return as_wide(self.bits)

    def in_rows(self, size: int) -> "Finite":
        """The same values in rows of this size, without those that were not finite."""
        if self.wide is None:
            assert self.bits is not None
            if self.bits.shape[1] == size:
                return self
            return Finite(self.bits.reshape(-1, size), None)
        return Finite(None, reshaped(self.wide, (-1, size)))

    def largest(self, group: int) -> "Largest":
        """The largest magnitude of each group of `group` values, (rows, size / group)."""
        if self.wide is not None:
            return Largest(None, wide_max(self.wide, group))
        assert self.bits is not None
        found = group_max(self.bits & MAGNITUDE, group)
        return Largest(found.reshape(len(self.bits), self.bits.shape[1] // group), None)

    def largest_of_sign(self, negative: bool, group: int) -> Largest:
        """As `largest`, but only of the values of one sign; 0 if a group has none."""
        if self.wide is not None:
            kept = np.where(self.wide.negative == negative, self.wide.significand, np.uint64(0))
            return Largest(None, wide_max(replace(self.wide, significand=kept), group))
        assert self.bits is not None
        # Patterns of negative values are the largest as they are, and the smallest with a sign.
        if negative:
            top = group_max(self.bits, group)
            found = np.where(top > MAGNITUDE, top & MAGNITUDE, np.uint32(0))
        else:
            found = np.maximum(group_max(self.bits.view(np.int32), group), 0).view(np.uint32)
        return Largest(found.reshape(len(self.bits), self.bits.shape[1] // group), None)


def _signs(which: NDArray[np.bool_], negative: NDArray[np.bool_]) -> NDArray[np.int8]:
    return np.where(negative, np.int8(-1), np.int8(1)) * which


def reshaped(x: Wide, shape: tuple[int, int]) -> Wide:
    """The same values in another shape."""
    return Wide(
        x.negative.reshape(shape),
        x.significand.reshape(shape),
        x.exponent.reshape(shape),
        x.infinite.reshape(shape),
        x.nan.reshape(shape),
    )
