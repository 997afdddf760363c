"""Codes of values, given the scales of their groups: one rounding to the element's grid.

All elements are rounded by one rule. Over its scale, a value of exponent e and significand M has
the quantum 2^(max(e, emin) - fraction_bits) / divisor. So its magnitude is divisor * M shifted
right and rounded; above emin, each binade adds 2^fraction_bits, as in a floating-point code.
"""

from dataclasses import dataclass
from functools import cached_property
from typing import Any

import numpy as np
from numpy.typing import NDArray

from axs6.golden.finite import Finite, reshaped
from axs6.golden.floats import Wide
from axs6.golden.formats import FP32, Element, TwosComplement, ValueTable
from axs6.golden.rounding import Rounding
from axs6.golden.scaling import as_wide
from axs6.golden.tables import ends, table_codes, wide_table_codes

HIDDEN = np.uint32(1 << FP32.fraction_bits)
UPPER_FRACTION_BITS = FP32.fraction_bits - 16
"""Bits of a fraction in the upper half of a pattern."""

ZERO = np.int16(0)

FULL_FIELD = 255
"""Stands for the exponent field of the scale of a group of zeros, under which zeros become 0."""

WIDE_BITS = 62
"""Bits of a significand of which a double's or a wide integer's is made; one more is its half."""


def each(x: NDArray[np.int16], size: int) -> NDArray[np.int16]:
    """Numbers (rows,) as a column; repeated for 2 and 4 values, which NumPy broadcasts slowly."""
    if size not in (2, 4):
        return x[:, None]
    copies = np.uint32(0x10001) if size == 2 else np.uint64(0x1000100010001)
    return (x.view(np.uint16) * copies).view(np.int16).reshape(-1, size)


@dataclass(frozen=True)
class Quantiser:
    """How the values of a group become codes.

    Args:
        elements: the elements at even and at odd indices of a group, alike but for their width.
        rounding: how a magnitude that falls between two codes is rounded.
        random_bits: width of the random words of stochastic rounding.
    """

    elements: tuple[Element, Element]
    rounding: Rounding
    random_bits: int

    @property
    def element(self) -> Element:
        """The element of the first value."""
        return self.elements[0]

    @cached_property
    def reach(self) -> int:
        """Bits by which a value may lie below `emin` and not be lost."""
        random = self.random_bits if self.rounding is Rounding.STOCHASTIC else 0
        return self.element.fraction_bits + self.element.divisor.bit_length() + random + 1

    def _each(self, name: str, size: int, dtype: Any) -> Any:
        """A property of the elements of a group of `size`; one number where both are alike."""
        even, odd = (getattr(element, name) for element in self.elements)
        return dtype(even) if even == odd else np.tile(np.array([even, odd], dtype), size // 2)

    def codes(
        self,
        x: Finite,
        size: int,
        exponent: NDArray[np.int16],
        empty: NDArray[np.bool_] | None,
        words: NDArray[np.uint64] | None,
        zero: NDArray[np.int16] | None,
    ) -> NDArray[np.uint8]:
        """Codes of values, (groups, size).

        Args:
            x: the values over their real and integer scales.
            size: values of a group with one exponent.
            exponent: of each group.
            empty: which groups are empty; None where none is.
            words: random words, (groups, size), for stochastic rounding.
            zero: codes of the value 0, in formats with a zero point.
        """
        element = self.element
        if x.bits is None:
            assert x.wide is not None
            return self._wide_codes(reshaped(x.wide, (len(exponent), size)), exponent, words)
        bits = x.bits.reshape(len(exponent), size)
        if isinstance(element, ValueTable):
            if words is not None:
                return self._wide_codes(as_wide(bits), exponent, words)
            return table_codes(element, self.rounding, bits, exponent)
        base = exponent + np.int16(FP32.bias + element.emin)
        if empty is not None:
            base[empty] = FULL_FIELD
        magnitude = self.magnitudes(bits, x.upper.reshape(bits.shape), base, words)
        negative = bits >= FP32.sign_bit if element.signed_zero else bits > FP32.sign_bit
        if zero is not None:
            sign = negative.view(np.int8).astype(np.int16)
            code = (magnitude ^ -sign) + sign  # the negative of negative ones
            code += zero
            np.maximum(code, np.int16(0), out=code)
            return np.minimum(code, np.int16(element.largest_code), out=code).astype(np.uint8)
        codes = self.signed(magnitude, negative)
        deep = base <= self.reach
        if deep.any():
            given = None if words is None else words[deep]
            codes[deep] = self._wide_codes(as_wide(bits[deep]), exponent[deep], given)
        return codes

    def _wide_codes(
        self, x: Wide, exponent: NDArray[np.int16], words: NDArray[np.uint64] | None
    ) -> NDArray[np.uint8]:
        """As `codes`, from exact values."""
        if isinstance(self.element, ValueTable):
            column, bits = exponent[:, None], self.random_bits
            return wide_table_codes(self.element, self.rounding, x, column, words, bits)
        base = exponent.astype(np.int64) + self.element.emin
        magnitude = self.wide_magnitudes(x, base, words)
        negative = x.negative
        if not self.element.signed_zero:
            negative = negative & (x.significand != 0)
        return self.signed(magnitude, negative)

    def magnitudes(
        self,
        bits: NDArray[np.uint32],
        upper: NDArray[np.uint16],
        base: NDArray[np.int16],
        words: NDArray[np.uint64] | None,
    ) -> NDArray[np.uint8]:
        """Magnitudes of finite FP32 values (rows, size), as codes without a sign.

        Args:
            bits: their patterns.
            upper: the upper halves of the patterns, without the sign.
            base: for each row the exponent field of 2^emin times the scale, (rows,): more than
                `reach`, so that what FP32 holds as subnormal is 0.
            words: random words, for stochastic rounding.
        """
        element, size = self.element, bits.shape[1]
        below = each(base, size) - (upper >> UPPER_FRACTION_BITS).view(np.int16)
        nearest = int(below.min(initial=1))
        above_emin = nearest < 0
        drop = np.maximum(below, ZERO) if above_emin else below
        shift = (drop + np.int16(FP32.fraction_bits - element.fraction_bits)).astype(np.uint32)
        scaled = bits & (HIDDEN - np.uint32(1))
        scaled |= HIDDEN
        if element.divisor > 1:
            scaled *= self._each("divisor", size, np.uint32)
        magnitude = self._rounded(scaled, shift, words)
        if element.divisor > 1 and nearest > 0:  # below 2^emin, nothing rounds beyond it
            return magnitude.astype(np.uint8)
        magnitude = magnitude.astype(np.int16)
        if above_emin:
            drop -= below
            drop <<= np.int16(element.fraction_bits)
            magnitude += drop
        largest = self._each("largest_code", size, np.int16)
        return np.minimum(magnitude, largest, out=magnitude).astype(np.uint8)

    def wide_magnitudes(
        self, x: Wide, base: NDArray[np.int64], words: NDArray[np.uint64] | None
    ) -> NDArray[np.uint64]:
        """Magnitudes of finite values (rows, size) of which FP32 cannot hold all.

        With n bits in a divisor 2^n - 1, floor(divisor M / 2^n) stands for divisor * M: the bits
        that it drops lie below all that is read, because such elements have no fraction bits.

        Args:
            x: the values.
            base: for each row the exponent of 2^emin times the scale, (rows,).
            words: random words, for stochastic rounding.
        """
        element, size = self.element, x.significand.shape[1]
        below = base[:, None] - np.where(x.significand != 0, x.exponent + 63, -(1 << 20))
        drop = np.clip(below, 0, 4 * WIDE_BITS)
        if element.divisor > 1:
            divisor = self._each("divisor", size, np.uint64)
            bits = np.uint64(1) * np.bitwise_count(divisor)
            scaled = divisor * (x.significand >> bits)
            scaled += divisor * (x.significand & divisor) >> bits
            shift = 63 - bits.astype(np.int64) + drop
        else:
            dropped = x.significand & np.uint64(3) != 0
            scaled = x.significand >> np.uint64(2) | dropped
            shift = WIDE_BITS - 1 - element.fraction_bits + drop
        magnitude = self._rounded(scaled, shift.astype(np.uint64), words)
        binades = np.clip(-below, 0, 1 << 12).astype(np.uint64)
        magnitude += binades << np.uint64(element.fraction_bits)
        return np.minimum(magnitude, self._each("largest_code", size, np.uint64))

    def _rounded(
        self, scaled: NDArray[Any], shift: NDArray[Any], words: NDArray[np.uint64] | None
    ) -> NDArray[Any]:
        """`scaled` / 2^shift, rounded, where the shift leaves no more bits than a code has.

        NumPy shifts all bits out of a word where a shift is as wide as the word or wider.
        """
        dtype = scaled.dtype.type
        one = dtype(1)
        if words is not None:
            free = 64 - 8 * scaled.itemsize
            right = (shift.astype(np.int64) + (free - self.random_bits)).astype(np.uint64)
            fixed = scaled.astype(np.uint64) << np.uint64(free) >> right
            return (fixed + words >> np.uint64(self.random_bits)).astype(dtype)
        if self.rounding is Rounding.TOWARD_ZERO:
            return scaled >> shift
        if self.element.divisor > 1 or self.element.ties_away:  # of a divisor, halfway is 1/2 alone
            twice = scaled >> shift - one
            twice += one
            twice >>= one
            return twice
        # Just under a half carries where more is dropped; a last bit of 1 makes it a half.
        odd = scaled >> shift & one
        odd += one << shift - one
        odd += scaled
        odd -= one
        odd >>= shift
        return odd

    def signed(self, magnitude: NDArray[Any], negative: NDArray[np.bool_]) -> NDArray[np.uint8]:
        """Codes of magnitudes and signs."""
        sign = negative.view(np.uint8)
        if isinstance(self.element, TwosComplement):
            mask = np.uint8(2 * self.element.sign_bit - 1)
            return (magnitude.astype(np.uint8) ^ -sign) + sign & mask
        if not self.element.has_negative_zero:
            sign = sign & (magnitude != 0)
        codes = sign * self._each("sign_bit", magnitude.shape[1], np.uint8)
        codes |= magnitude.astype(np.uint8, copy=False)
        return codes

    def largest(self, negative: NDArray[np.bool_]) -> NDArray[np.uint8]:
        """The codes of the largest values of these signs."""
        if isinstance(self.element, ValueTable):
            return ends(self.element, negative)
        each = self._each("largest_code", negative.shape[1], np.uint8)
        if not self.element.signed:
            return np.where(negative, np.uint8(0), each)
        return self.signed(np.broadcast_to(each, negative.shape), negative)
