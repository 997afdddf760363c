"""Exponents and codes of rows of values, in integer arithmetic only: what `encode` is made of."""

from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import NDArray

from axs6.golden.floats import fp32_bits, wide
from axs6.golden.spec import EXPONENT_BIAS, EXPONENT_MAX, FP32, Mode, Rounding, code_formats

Flags = tuple[NDArray[np.bool_] | None, NDArray[np.bool_] | None]
"""Which values are infinite and which NaN; None where there are none."""


@dataclass(frozen=True)
class Quantiser:
    """What the codes of a block are, and how a magnitude that falls between two is chosen.

    Args:
        mode: dense or high-precision.
        block_size: values in a row.
        rounding: how a magnitude is rounded.
        random_bits: width of the random words of stochastic rounding.
    """

    mode: Mode
    block_size: int
    rounding: Rounding
    random_bits: int

    @property
    def magnitude_bits(self) -> NDArray[np.uint8] | np.uint8:
        """Bits of the magnitudes in a row; one number where all are alike."""
        even, odd = (code.magnitude_bits for code in code_formats(self.mode))
        if even == odd:
            return np.uint8(even)
        return np.tile(np.array([even, odd], np.uint8), self.block_size // 2)

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
        magnitude = bits & np.uint32(FP32.sign_bit - 1)
        largest = _row_max(magnitude)
        infinite = nan = None
        if largest.size and int(largest.max()) >= FP32.infinity:
            infinite, nan = magnitude == FP32.infinity, magnitude > FP32.infinity
            bits = np.where(nan, np.uint32(0), bits)
            magnitude = np.where(nan, 0, np.minimum(magnitude, FP32.max_finite)).astype(np.uint32)
            largest = _row_max(magnitude)
        # A block of subnormals has exponent 1 where its top fraction bit is set, else 0.
        subnormal = largest >> np.uint32(FP32.fraction_bits - 1)
        exponent = np.where(subnormal > 1, (largest >> FP32.fraction_bits) + 1, subnormal)
        exponents[:] = exponent
        field = np.maximum(magnitude >> np.uint32(FP32.fraction_bits), np.uint32(1))
        significand = magnitude - ((field - np.uint32(1)) << np.uint32(FP32.fraction_bits))
        shift = exponent.astype(np.uint32)[:, None] + np.uint32(FP32.fraction_bits) - field
        product = significand * self.largest(np.uint32)
        if words is not None:
            scaled = product.astype(np.uint64) << np.uint64(self.random_bits)
            rounded = self._rounded_up(scaled >> np.minimum(shift, 63).astype(np.uint64), words)
        else:
            # A product has at most 30 bits, so a shift by 31 rounds to 0 as every larger one does.
            rounded = self._shift_rounded(product, np.minimum(shift, np.uint32(31)))
        negative = bits > np.uint32(FP32.sign_bit)
        codes[:] = rounded
        codes |= negative.view(np.uint8) << self.magnitude_bits
        if infinite is not None:
            self._saturate(infinite, negative, exponents, codes)
        return infinite, nan

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
        top = np.where(x.significand != 0, x.exponent + 63, -EXPONENT_BIAS - 1).max(
            axis=1, initial=-200
        )
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
            rounded = self._shift_rounded(scaled, np.clip(shift, 1, 64).astype(np.uint64))
            magnitude = np.where(shift > 64, np.uint64(0), rounded)
        negative = x.negative & (x.significand != 0)
        codes[:] = magnitude
        codes |= negative.view(np.uint8) << self.magnitude_bits
        if not (x.infinite.any() or x.nan.any()):
            return None, None
        self._saturate(x.infinite, x.negative, exponents, codes)
        return x.infinite, x.nan

    def _shift_rounded(self, x: NDArray, shift: NDArray) -> NDArray:
        """x / 2^shift rounded. Half up is right for nearest: docs/format.md shows the only tie."""
        one = x.dtype.type(1)
        doubled = x >> (shift - one)
        if self.rounding is Rounding.NEAREST:
            doubled += one
        return doubled >> one

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


def _row_max(x: NDArray[np.uint32]) -> NDArray[np.uint32]:
    """Largest value of each row, by halves: NumPy reduces short rows slowly."""
    width = x.shape[1]
    while width > 1:
        width //= 2
        x = np.maximum(x[:, :width], x[:, width : 2 * width])
    return x[:, 0]
