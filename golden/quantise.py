"""Exponents and codes of rows of values, in integer arithmetic only: what `encode` is made of."""

from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import NDArray

from axs6.golden.floats import fp32_bits, wide
from axs6.golden.spec import EXPONENT_BIAS, EXPONENT_MAX, FP32, Mode, Rounding, code_formats

Flags = tuple[NDArray[np.bool_] | None, NDArray[np.bool_] | None]
"""Which values are infinite and which NaN; None where there are none."""

UPPER_FRACTION_BITS = FP32.fraction_bits - 16
"""Bits of a fraction in the upper half of a pattern, from which a block's exponent is found."""


@dataclass(frozen=True)
class Quantiser:
    """What the codes of a block are, and how a magnitude that falls between two is chosen.

    Args:
        mode: dense or high-precision.
        block: values in a row.
        rounding: how a magnitude is rounded.
        random_bits: width of the random words of stochastic rounding.
    """

    mode: Mode
    block: int
    rounding: Rounding
    random_bits: int

    @property
    def magnitude_bits(self) -> NDArray[np.uint8] | np.uint8:
        """Bits of the magnitudes in a row; one number where all are alike."""
        even, odd = (code.magnitude_bits for code in code_formats(self.mode))
        if even == odd:
            return np.uint8(even)
        return np.tile(np.array([even, odd], np.uint8), self.block // 2)

    def largest(self, dtype: Any) -> Any:
        """Largest magnitudes in a row."""
        one = dtype(1)
        return (one << self.magnitude_bits.astype(dtype)) - one

    def encode(
        self,
        values: NDArray[np.generic],
        words: NDArray[np.uint64] | None,
        exponents: NDArray[np.uint8],
        codes: NDArray[np.uint8],
    ) -> Flags:
        """Encode rows of values into `exponents` and `codes`; say which are not finite."""
        bits = fp32_bits(values)
        if bits is None:
            return self._encode_wide(values, words, exponents, codes)
        return self._encode_fp32(bits, words, exponents, codes)

    def _encode_fp32(
        self,
        bits: NDArray[np.uint32],
        words: NDArray[np.uint64] | None,
        exponents: NDArray[np.uint8],
        codes: NDArray[np.uint8],
    ) -> Flags:
        """With e the exponent field (at least 1) and M the significand, |x| / scale is
        M / 2^(23 + E - e)."""
        upper = _upper_half(bits)
        largest = _row_max(upper)
        infinite = nan = None
        if int(largest.max(initial=0)) >= FP32.infinity >> 16:
            magnitude = bits & np.uint32(FP32.sign_bit - 1)
            infinite, nan = magnitude == FP32.infinity, magnitude > FP32.infinity
            # The pattern before an infinity is the largest finite value of its sign.
            bits = np.where(nan, np.uint32(0), bits - infinite)
            upper = _upper_half(bits)
            largest = _row_max(upper)
        # A block of subnormals has exponent 1 where its top fraction bit is set, else 0.
        subnormal = largest >> np.uint16(UPPER_FRACTION_BITS - 1)
        exponent = np.where(subnormal > 1, (largest >> UPPER_FRACTION_BITS) + 1, subnormal)
        exponents[:] = exponent
        significand, shift = self._below_scale(bits, upper, exponent.astype(np.uint16))
        if words is None:
            twice = significand * (self.largest(np.uint32) * np.uint32(2)) >> shift
            codes[:] = self._halved(twice)
        else:
            product = (significand * self.largest(np.uint32)).astype(np.uint64)
            fixed = product << np.uint64(self.random_bits) >> shift.astype(np.uint64)
            codes[:] = self._rounded_up(fixed, words)
        negative = bits > np.uint32(FP32.sign_bit)
        codes |= self._signs(negative)
        if infinite is not None:
            self._saturate(infinite, negative, exponents, codes)
        return infinite, nan

    def _below_scale(
        self, bits: NDArray[np.uint32], upper: NDArray[np.uint16], exponent: NDArray[np.uint16]
    ) -> tuple[NDArray[np.uint32], NDArray[np.uint32]]:
        """Significands of rows, and how far each lies below the row's scale, in bits.

        Shifts may exceed the width of a word: NumPy shifts all its bits out then.
        """
        hidden = np.uint32(1 << FP32.fraction_bits)
        significand = bits & (hidden - np.uint32(1)) | hidden
        # Ones below E + 23 keep fractions from borrowing of the difference of exponents.
        fraction = np.uint16(UPPER_FRACTION_BITS)
        reach = (exponent + np.uint16(FP32.fraction_bits + 1) << fraction) - np.uint16(1)
        shift = (reach[:, None] - upper >> fraction).astype(np.uint32)
        # Above, every subnormal value becomes 0, with a hidden bit or without it.
        if int(exponent.min(initial=EXPONENT_MAX)) + FP32.fraction_bits < 31 + self.random_bits:
            subnormal = upper >> fraction == 0
            significand -= subnormal * hidden
            shift -= subnormal
        return significand, shift

    def _encode_wide(
        self,
        values: NDArray[np.generic],
        words: NDArray[np.uint64] | None,
        exponents: NDArray[np.uint8],
        codes: NDArray[np.uint8],
    ) -> Flags:
        """Rows of float64 or integers, whose significands M reach 64 bits.

        With n magnitude bits floor((2^n - 1) M / 2^n) stands for (2^n - 1) M: the n bits that it
        drops lie below all that is read, because M / 2^shift < 1 makes every shift 64 or more.
        """
        x = wide(values)
        saturated = x.infinite.any(axis=1)
        top = np.where(x.significand != 0, x.exponent + 63, -EXPONENT_BIAS - 1).max(axis=1)
        exponent = np.clip(top + EXPONENT_BIAS + 1, 0, EXPONENT_MAX)
        exponent[saturated] = EXPONENT_MAX
        exponents[:] = exponent
        bits, largest = self.magnitude_bits.astype(np.uint64), self.largest(np.uint64)
        low = x.significand & largest
        scaled = largest * (x.significand >> bits) + (largest * low >> bits)
        shift = (exponent - EXPONENT_BIAS)[:, None] - x.exponent - bits.astype(np.int64)
        if words is not None:
            shift = shift - self.random_bits
            fixed = np.where(shift > 63, 0, scaled >> np.minimum(shift, 63).astype(np.uint64))
            magnitude = self._rounded_up(fixed.astype(np.uint64), words)
        else:
            magnitude = self._halved(scaled >> np.maximum(shift - 1, 0).astype(np.uint64))
        codes[:] = magnitude
        codes |= self._signs(x.negative & (x.significand != 0))
        if not (x.infinite.any() or x.nan.any()):
            return None, None
        self._saturate(x.infinite, x.negative, exponents, codes)
        return x.infinite, x.nan

    def _halved(self, twice: NDArray) -> NDArray[np.uint8]:
        """Twice the magnitudes, rounded down, as magnitudes.

        Half up is right for nearest: docs/format.md shows the only tie.
        """
        rounded = twice.astype(np.uint8)
        if self.rounding is Rounding.NEAREST:
            rounded += np.uint8(1)
        return rounded >> np.uint8(1)

    def _signs(self, negative: NDArray[np.bool_]) -> NDArray[np.uint8]:
        """The sign bits of codes."""
        return negative.view(np.uint8) * (self.largest(np.uint8) + np.uint8(1))

    def _rounded_up(self, fixed: NDArray[np.uint64], words: NDArray[np.uint64]) -> NDArray:
        """Numbers with `random_bits` bits after the point, rounded up where a word carries."""
        return fixed + words >> np.uint64(self.random_bits)

    def _saturate(
        self,
        infinite: NDArray[np.bool_],
        negative: NDArray[np.bool_],
        exponents: NDArray[np.uint8],
        codes: NDArray[np.uint8],
    ) -> None:
        exponents[infinite.any(axis=1)] = EXPONENT_MAX
        largest = np.broadcast_to(self.largest(np.uint8), codes.shape)
        codes[infinite] = largest[infinite]
        codes[infinite & negative] |= (largest + np.uint8(1))[infinite & negative]


def _upper_half(bits: NDArray[np.uint32]) -> NDArray[np.uint16]:
    """The upper 16 bits of magnitudes."""
    return (bits >> np.uint32(16)).astype(np.uint16) & np.uint16((FP32.sign_bit - 1) >> 16)


def _row_max(x: NDArray[np.uint16]) -> NDArray[np.uint16]:
    """Largest value of each row: NumPy reduces short rows slowly, so whole arrays are compared
    with themselves, shifted."""
    width, flat = x.shape[1], x.reshape(-1)
    step = width // 2
    while step:
        flat = np.maximum(flat[:-step], flat[step:])
        step //= 2
    return flat[::width].copy()
