"""All cases of some bits at once: 64 in a word, and numbers of many cases."""

from collections.abc import Sequence
from typing import Any

import numpy as np
from numpy.typing import NDArray


def words_of(bits: NDArray[Any]) -> NDArray[np.uint64]:
    """A bit for each case as words: case k is bit k mod 64 of word k / 64. Zeros fill the last."""
    padded = np.pad(bits, (0, -len(bits) % 64))
    return np.packbits(padded, bitorder="little").view(np.uint64)


def counting(literals: Sequence[int]) -> dict[int, NDArray[np.uint64]]:
    """Words with all values of some literals: the literal k of case j is bit k of j."""
    cases = np.arange(max(1 << len(literals), 64), dtype=np.uint32)
    return {each: words_of((cases >> k & 1).astype(np.uint8)) for k, each in enumerate(literals)}


def cases_of(words: NDArray[np.uint64], bits: int) -> NDArray[np.uint8]:
    """The values in the 2^bits cases of `counting`."""
    return np.unpackbits(words.view(np.uint8), bitorder="little")[: 1 << bits]


_LOW = 32

WIDTH_MAX = 96
"""Bits of numbers, at most."""


class Numbers:
    """Numbers modulo 2^width, of at most `WIDTH_MAX` bits, as 32 low bits and the others."""

    def __init__(self, low: NDArray[np.uint64], high: NDArray[np.uint64], width: int) -> None:
        self._low, self._high = low, high
        self._mask = np.uint64((1 << max(0, width - _LOW)) - 1)
        self._low_mask = np.uint64((1 << min(width, _LOW)) - 1)

    @classmethod
    def zeros(cls, count: int, width: int) -> "Numbers":
        """Some zeros."""
        return cls(np.zeros(count, np.uint64), np.zeros(count, np.uint64), width)

    @classmethod
    def of(cls, numbers: NDArray[Any], width: int) -> "Numbers":
        """From Python's integers."""
        held = numbers % (1 << width)
        low, high = held & ((1 << _LOW) - 1), held >> _LOW
        return cls(low.astype(np.uint64), high.astype(np.uint64), width)

    def add(self, bits: NDArray[np.uint8], times: int) -> None:
        """Add bits times a number."""
        wide = bits.astype(np.uint64)
        self._low += wide * np.uint64(times & ((1 << _LOW) - 1))
        self._high += wide * np.uint64(times >> _LOW)

    def _settled(self) -> tuple[NDArray[np.uint64], NDArray[np.uint64]]:
        high = self._high + (self._low >> np.uint64(_LOW)) & self._mask
        return self._low & self._low_mask, high

    def equal(self, other: "Numbers") -> NDArray[np.bool_]:
        """Whether numbers are the same."""
        mine, theirs = self._settled(), other._settled()
        return (mine[0] == theirs[0]) & (mine[1] == theirs[1])

    def at(self, index: int) -> int:
        """One number."""
        low, high = self._settled()
        return int(low[index]) | int(high[index]) << _LOW
