"""A Kulisch accumulator: block sums added as one wide integer, rounded once at the end."""

import numpy as np
from numpy.typing import NDArray

from axs6.golden.fp32 import Bits, round_to_fp32
from axs6.golden.spec import EXPONENT_BIAS, EXPONENT_MAX, PRODUCT_MAX, SUM_BITS

LIMB_BITS = 32
HEADROOM_BITS = 2 * LIMB_BITS
"""Room above the largest single term, for 2^64 of them."""

LIMBS = -(-(2 * EXPONENT_MAX + SUM_BITS + HEADROOM_BITS) // LIMB_BITS)
MASK = np.int64((1 << LIMB_BITS) - 1)
FRACTION_LIMBS = 2
"""Limbs of the quotient by 961 below the units: 64 fraction bits and a sticky bit round it."""


class Accumulator:
    """An array of integers of `LIMBS` * 32 bits, as limbs whose carries are settled at the end.

    Args:
        shape: shape of the array of results.
    """

    def __init__(self, shape: tuple[int, ...]) -> None:
        self._shape = shape
        self._size = int(np.prod(shape, dtype=np.int64))
        self._limbs = np.zeros((LIMBS, self._size), np.int64)
        self._column = np.arange(self._size)
        self._terms = 0

    def add(self, sums: NDArray[np.integer], exponents: NDArray[np.integer]) -> None:
        """Add sums * 2^exponents, exponents being sums of two biased exponents (0 to 510)."""
        self._terms += 1
        if self._terms % (1 << 30) == 0:
            self._settle()
        e = np.broadcast_to(exponents, self._shape).astype(np.int64).ravel()
        term = np.broadcast_to(sums, self._shape).astype(np.int64).ravel() << (e % LIMB_BITS)
        limb = e // LIMB_BITS
        self._limbs[limb, self._column] += term & MASK
        self._limbs[limb + 1, self._column] += term >> LIMB_BITS

    def result(self) -> Bits:
        """fp32(total / 961 * 2^-254), a zero total giving +0."""
        self._settle()
        negative = self._limbs[-1] < 0
        quotient, remainder = self._divide(np.where(negative, -self._limbs, self._limbs))
        top, exponent, sticky = self._leading_bits(quotient)
        bits = round_to_fp32(
            negative,
            top,
            exponent - LIMB_BITS * FRACTION_LIMBS - 2 * EXPONENT_BIAS,
            sticky | (remainder != 0),
        )
        return bits.reshape(self._shape)

    def _settle(self) -> None:
        """Carry each limb into the next, so that all but the last are in [0, 2^32)."""
        for i in range(LIMBS - 1):
            self._limbs[i + 1] += self._limbs[i] >> LIMB_BITS
            self._limbs[i] &= MASK

    def _divide(self, limbs: NDArray[np.int64]) -> tuple[NDArray[np.int64], NDArray[np.int64]]:
        """Quotient by 961, with fraction limbs below, and remainder. Limbs may be negated ones."""
        for i in range(LIMBS - 1):
            limbs[i + 1] += limbs[i] >> LIMB_BITS
            limbs[i] &= MASK
        quotient = np.zeros((LIMBS + FRACTION_LIMBS, self._size), np.int64)
        remainder = np.zeros(self._size, np.int64)
        for i in reversed(range(LIMBS + FRACTION_LIMBS)):
            digit = limbs[i - FRACTION_LIMBS] if i >= FRACTION_LIMBS else 0
            quotient[i], remainder = np.divmod((remainder << LIMB_BITS) + digit, PRODUCT_MAX)
        return quotient, remainder

    def _leading_bits(
        self, limbs: NDArray[np.int64]
    ) -> tuple[NDArray[np.uint64], NDArray[np.int64], NDArray[np.bool_]]:
        """The 32 to 61 leading bits of each column, their exponent, and whether any are below."""
        highest = len(limbs) - 1 - np.argmax(limbs[::-1] != 0, axis=0)
        high = np.maximum(highest, 1)
        upper = limbs[high, self._column]
        lower = limbs[high - 1, self._column]
        below = np.arange(len(limbs))[:, None] < high - 1
        sticky = ((limbs != 0) & below).any(axis=0)
        # Two whole limbs may have 64 bits: the three lowest join the sticky bit.
        top = (upper << (LIMB_BITS - 3)) | (lower >> 3)
        sticky |= (lower & 7) != 0
        return top.astype(np.uint64), (high - 1) * LIMB_BITS + 3, sticky
