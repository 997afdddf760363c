"""Codes of scales and elements as float32 numbers, and back where that is exact."""

from dataclasses import dataclass
from functools import lru_cache
from typing import Any

import numpy as np
from numpy.typing import NDArray

from axs6.golden.formats import BF16, FP16, FP32, Element, Exponent, Float, NotANumber

NAN = np.uint32(0x7FC00000)
"""The float32 that stands for every NaN."""


@dataclass(frozen=True)
class ScaleNumber:
    """The numbers that the codes of a scale stand for.

    Args:
        number: what they are.
        signed: whether the top bit of a floating-point code is a sign, or is not looked at.
        nan_is_zero: whether the code of NaN stands for 0.
    """

    number: Exponent | Float
    signed: bool = True
    nan_is_zero: bool = False

    @property
    def dtype(self) -> np.dtype[Any]:
        """Of the codes: unsigned integers, little-endian."""
        bits = self.number.width if isinstance(self.number, Float) else self.number.bits
        return np.dtype(f"<u{bits // 8}")

    def values(self, codes: NDArray[Any]) -> NDArray[np.float32]:
        """The numbers of codes, exactly."""
        if self.number == FP32:
            return codes.view(np.float32)
        if self.number == FP16:
            return codes.view(np.float16).astype(np.float32)
        if self.number == BF16:
            return (codes.astype(np.uint32) << 16).view(np.float32)
        return _scale_table(self)[codes]

    def codes(self, values: NDArray[np.float32]) -> tuple[NDArray[Any], NDArray[np.bool_]]:
        """Codes of float32 numbers, and which of them have one: the same number and sign."""
        if self.number == FP32:
            return values.view(np.uint32), np.ones(values.shape, bool)
        if self.number == FP16:
            with np.errstate(over="ignore"):
                held = values.astype(np.float16)
            return held.view(np.uint16), _same(held.astype(np.float32), values)
        if self.number == BF16:
            codes = (values.view(np.uint32) >> 16).astype(np.uint16)
            return codes, _same(self.values(codes), values)
        return code_of(_scale_table(self), values)


def code_of(
    table: NDArray[np.float32], values: NDArray[np.float32]
) -> tuple[NDArray[np.uint8], NDArray[np.bool_]]:
    """The first code of a table of numbers that is each value, and which values have one."""
    patterns, codes = np.unique(_patterns(table), return_index=True)
    wanted = _patterns(values)
    place = np.minimum(np.searchsorted(patterns, wanted), len(patterns) - 1)
    return codes[place].astype(np.uint8), patterns[place] == wanted


@lru_cache
def element_table(element: Element) -> NDArray[np.float32]:
    """The value of each code of an element of at most 8 bits, exactly; NaN and infinities too."""
    values = np.array([_value(element, code) for code in range(1 << element.width)], np.float32)
    values.flags.writeable = False
    return values


@lru_cache
def pair_table(element: Element) -> NDArray[np.uint64]:
    """The bits of the two values of each byte of 4-bit codes, the first in the low bits."""
    table, codes = element_table(element), np.arange(256)
    pairs = np.stack([table[codes & 15], table[codes >> 4]], axis=-1)
    return pairs.view(np.uint64).reshape(-1)


def _value(element: Element | Float, code: int) -> float:
    found = element.integer(code)
    if isinstance(found, NotANumber):
        return float(found.value.lower())
    value = float(found * element.unit)
    negative_zero = not found and element.signed_zero and code & element.sign_bit
    return -value if negative_zero else value


@lru_cache
def _scale_table(of: ScaleNumber) -> NDArray[np.float32]:
    number = of.number
    if isinstance(number, Exponent):
        codes = np.arange(1 << number.bits)
        with np.errstate(over="ignore"):  # 2^128, which `Interleaving.scales` refuses
            values = np.ldexp(np.float32(1), codes - number.bias)
        if number.nan_code is not None:
            values[number.nan_code] = np.nan
    else:
        values = np.array([_value(number, code) for code in range(1 << number.width)], np.float32)
        if of.nan_is_zero:
            values[np.isnan(values)] = 0
        if not of.signed:
            values[number.sign_bit :] = values[: number.sign_bit]
    values.flags.writeable = False
    return values


def _patterns(values: NDArray[np.float32]) -> NDArray[np.uint32]:
    """The bits of float32 numbers, those of every NaN the same."""
    return np.where(np.isnan(values), NAN, np.ascontiguousarray(values).view(np.uint32))


def _same(one: NDArray[np.float32], other: NDArray[np.float32]) -> NDArray[np.bool_]:
    """Which numbers are the same, signs of zeros and NaN too."""
    return _patterns(one) == _patterns(other)
