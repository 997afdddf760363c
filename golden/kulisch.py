"""Integers of many bits in arrays: digits, and Kulisch accumulators that add without rounding.

A wide integer is the sum of digits times powers of 2^bits, least significant first, each a signed
64-bit integer. Digits are *settled* when all but the last are in [0, 2^bits).
"""

from collections.abc import Sequence
from typing import Any

import numpy as np
from numpy.typing import NDArray

from axs6.golden import fp32
from axs6.golden.formats import FP32

Integers = NDArray[np.int64]
Leading = tuple[NDArray[np.bool_], NDArray[np.uint64], Integers, NDArray[np.bool_]]
"""Sign, leading bits, their exponent, and whether any bit below them is 1."""

LEADING_BITS = 62
"""Bits that `leading` gives of an integer, at most; at least 30 of one that has more."""

LIMB_BITS = 32
HEADROOM_BITS = 2 * LIMB_BITS
"""Room above the largest single term, for 2^64 of them."""

PART_BITS = 31
"""Bits of what is shifted by up to 31 at a time, so that 62 hold it."""

UNSETTLED = 1 << 28
"""Terms whose carries limbs hold."""

QUOTIENT_LIMBS = 2
"""Limbs of a quotient below the units: 64 fraction bits and a sticky bit round it."""


def settle(digits: Sequence[Integers], bits: int) -> list[Integers]:
    """The same integer with carries moved up, so that all digits but the last are settled."""
    settled: list[Integers] = []
    total = digits[0]
    for above in digits[1:]:
        settled.append(total & np.int64((1 << bits) - 1))
        total = above + (total >> np.int64(bits))
    return [*settled, total]


def magnitude(digits: Sequence[Integers], bits: int) -> tuple[NDArray[np.bool_], list[Integers]]:
    """Signs, and the settled digits of the magnitudes."""
    settled = settle(digits, bits)
    negative = settled[-1] < 0
    return negative, settle([np.where(negative, -x, x) for x in settled], bits)


def leading(digits: Sequence[Integers], bits: int) -> Leading:
    """The leading bits of integers, which have at most LEADING_BITS in their last digit."""
    negative, settled = magnitude(digits, bits)
    top = settled[-1]
    exponent, sticky = np.zeros(top.shape, np.int64), np.zeros(top.shape, bool)
    for digit in settled[-2::-1]:
        room = top < np.int64(1 << LEADING_BITS - bits)
        top = np.where(room, (top << np.int64(bits)) | digit, top)
        exponent += np.where(room, 0, bits)
        sticky |= ~room & (digit != 0)
    return negative, top.view(np.uint64), exponent, sticky


def shifted(digits: Sequence[Integers], bits: int, right: int) -> Integers:
    """Settled digits, with a sign in the last, over 2^right toward minus infinity; it fits."""
    total = np.zeros(digits[-1].shape, np.int64)
    for index, digit in enumerate(digits):
        left = bits * index - right
        if index == len(digits) - 1 or left > -bits:
            total += digit << np.int64(left) if left > 0 else digit >> np.int64(-left)
    return total


def joined(digits: Sequence[Integers], bits: int) -> NDArray[Any]:
    """Integers as ones of Python, of any width, in an array of objects."""
    total = digits[0].astype(object)
    for index, digit in enumerate(digits[1:], 1):
        total = total + (digit.astype(object) << bits * index)
    return np.asarray(total, object)


def parted(x: NDArray[Any], bits: int) -> list[Integers]:
    """Integers of Python of up to `bits` bits as settled digits of PART_BITS bits."""
    count = -(-bits // PART_BITS)
    parts = [x >> PART_BITS * index for index in range(count)]
    low = [part & (1 << PART_BITS) - 1 for part in parts[:-1]]
    return [np.asarray(part, np.int64) for part in (*low, parts[-1])]


class KulischAccumulator:
    """An array of integers times 2^lowest, as limbs whose carries are settled at the end.

    Args:
        shape: shape of the array.
        lowest, highest: exponents of the terms.
        bits: bits of the magnitude of a term, up to 62.
    """

    def __init__(self, shape: tuple[int, ...], lowest: int, highest: int, bits: int) -> None:
        self._shape = shape
        self._lowest = lowest
        self._parts = -(-bits // PART_BITS)
        size = int(np.prod(shape, dtype=np.int64))
        count = -(-(highest - lowest + bits + HEADROOM_BITS) // LIMB_BITS)
        self._limbs = np.zeros((count + 1, size), np.int64)
        self._column = np.arange(size)
        self._terms = 0

    def add(self, terms: NDArray[np.integer], exponents: NDArray[np.integer] | int) -> None:
        """Add terms * 2^exponents."""
        self._terms += 1
        if self._terms % UNSETTLED == 0:
            self._limbs[:] = settle(list(self._limbs), LIMB_BITS)
        rest = np.broadcast_to(terms, self._shape).astype(np.int64).ravel()
        exponent = np.broadcast_to(exponents, self._shape).astype(np.int64).ravel() - self._lowest
        for part in range(self._parts):
            last = part == self._parts - 1
            value = rest if last else rest & np.int64((1 << PART_BITS) - 1)
            rest = rest >> np.int64(PART_BITS)
            limb = exponent >> 5
            value = value << (exponent & (LIMB_BITS - 1))
            self._limbs[limb, self._column] += value & np.int64((1 << LIMB_BITS) - 1)
            self._limbs[limb + 1, self._column] += value >> np.int64(LIMB_BITS)
            exponent = exponent + PART_BITS

    def leading(self) -> Leading:
        """The leading bits of the sums."""
        limbs = [x.reshape(self._shape) for x in self._limbs]
        negative, top, exponent, sticky = leading(limbs, LIMB_BITS)
        return negative, top, exponent + self._lowest, sticky

    def quotient(self, scale: fp32.Bits, divisor: int, exponent: int) -> fp32.Bits:
        """fp32(sum * scale / divisor * 2^exponent), rounded once; a sum of 0 gives +0.

        Args:
            scale: FP32 patterns. Infinite and NaN ones make the result as IEEE 754 has it.
            divisor: below 2^31.
            exponent: of a power of two.
        """
        negative, limbs = magnitude(list(self._limbs), LIMB_BITS)
        scale = np.broadcast_to(scale, self._shape).ravel()
        minus, significand, lowest = fp32.split(scale)
        factor = significand.astype(np.int64)
        scaled = settle([*(x * factor for x in limbs), np.zeros_like(factor)], LIMB_BITS)
        remainder = np.zeros_like(factor)
        digits: list[Integers] = []
        for limb in [*scaled[::-1], *[np.zeros_like(factor)] * QUOTIENT_LIMBS]:
            digit, remainder = np.divmod((remainder << np.int64(LIMB_BITS)) + limb, divisor)
            digits.append(digit)
        _, top, above, sticky = leading(digits[::-1], LIMB_BITS)
        lowest = lowest + above + (exponent + self._lowest - LIMB_BITS * QUOTIENT_LIMBS)
        bits = fp32.round_to_fp32(negative ^ minus, top, lowest, sticky | (remainder != 0))
        special = fp32.is_nan(scale) | fp32.is_infinite(scale)
        if special.any():
            some = np.any([x != 0 for x in limbs], axis=0)
            sign = np.where(negative, np.uint32(FP32.sign_bit), np.uint32(0))
            one = np.where(some, sign | fp32.ONE, np.uint32(0))
            bits = np.where(special, fp32.multiply(one, scale), bits)
        return bits.reshape(self._shape)
