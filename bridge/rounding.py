"""Rounding of magnitudes to codes, exactly, in float64."""

from dataclasses import dataclass, replace
from typing import Any

import numpy as np
import torch
from torch import Tensor
from torch.nn import functional

from axs6.golden.formats import ValueTable
from axs6.golden.rounding import Rounding, check_random_bits, check_rounding
from axs6.golden.tables import ladder

WORDS = (torch.uint8, torch.int8, torch.int16, torch.int32, torch.int64)


@dataclass(frozen=True, eq=False)
class Rounder:
    """A rounding, with its random words.

    Args:
        rounding: nearest, toward zero or stochastic.
        words: for stochastic rounding a word for each value, integers of shape (count, B).
        bits: width of the words.
    """

    rounding: Rounding = Rounding.NEAREST
    words: Tensor | None = None
    bits: int = 0

    def of(self, rows: slice, shape: tuple[int, ...]) -> "Rounder":
        """The rounder of some rows of blocks, of this shape (R, n, B)."""
        if self.words is None:
            return self
        words = self.words.view(-1, *shape[1:])[rows] if self.words.numel() else self.words
        return replace(self, words=words.view(shape))

    def round_(self, steps: Tensor, ties_away: bool = False) -> Tensor:
        """Round float64 values of the shape of the words, in place; zeros keep signs.

        The nearest of two is the even one, or the one of the larger magnitude.

        They have at most 29 significant bits, and their magnitudes times 2^bits are below 2^53, or
        saturate, so that all operations here are exact.
        """
        if self.words is None:
            if ties_away and self.rounding is Rounding.NEAREST:
                return steps.add_(torch.copysign(steps.new_tensor(0.5), steps)).trunc_()
            return steps.round_() if self.rounding is Rounding.NEAREST else steps.trunc_()
        steps.mul_(2.0**self.bits).trunc_()
        words = self.words.double().view_as(steps).copysign_(steps)
        return steps.add_(words).mul_(2.0**-self.bits).trunc_()

    def listed(self, x: Tensor, table: ValueTable) -> Tensor:
        """Float64 values in 2^unit_exponent of a table rounded to its entries, in units.

        Differences from entry to entry, times 2^bits, are below 2^53, so that a floor of a
        rounded quotient is right.
        """
        nearest = self.words is None and self.rounding is Rounding.NEAREST
        how = Rounding.NEAREST if nearest else Rounding.TOWARD_ZERO
        entries, bounds = (x.new_tensor(found) for found in ladder(table, how, np.float64))
        places = torch.bucketize(x, bounds, right=True)
        low = entries[places]
        if self.words is None:
            return low
        away = places + torch.where(x < 0, -1, 1)
        high = entries[away.clamp(0, len(entries) - 1)]
        gap = torch.where(high == low, 1, high - low)
        part = ((x * table.divisor - low).abs() * 2.0**self.bits).trunc_().div_(gap.abs()).trunc_()
        up = part + self.words.double() >= 2.0**self.bits
        return torch.where(up, high, low)


NEAREST = Rounder()


def rounder(
    x: Tensor, size: int, rounding: str, random: Tensor | None, random_bits: int
) -> Rounder:
    """The rounder for the values of `x`, in blocks of `size`.

    Raises:
        TypeError: `random` is not a tensor of integers.
        ValueError: a parameter is unknown; `random` is missing or not asked for, of another shape
            or on another device than `x`, or a word is out of range.
    """
    checked = check_rounding(rounding)
    check_random_bits(random_bits)
    check_random(random)
    if checked is not Rounding.STOCHASTIC:
        if random is not None:
            raise ValueError(f'random is for rounding "stochastic", not {str(checked)!r}')
        return Rounder(checked)
    if random is None:
        raise ValueError('rounding "stochastic" needs random, an integer for each value')
    _check_words(random, random_bits, x)
    return Rounder(checked, as_rows(random, size), random_bits)


def as_rows(x: Tensor, size: int) -> Tensor:
    """The blocks of `x` along its last axis, shape (count, size), padded with zeros."""
    missing = -x.shape[-1] % size
    padded = functional.pad(x.detach(), (0, missing)) if missing else x.detach()
    return padded.reshape(-1, size) if padded.numel() else padded.new_empty(0, size)


def check_random(random: Any) -> None:
    """Raise TypeError unless `random` is a tensor or None."""
    if not (random is None or isinstance(random, Tensor)):
        raise TypeError(f"random must be a tensor, not {type(random).__name__}")


def check_device(random: Tensor | None, x: Tensor) -> None:
    """Raise ValueError unless random words and values are on one device."""
    if random is not None and random.device != x.device:
        raise ValueError(f"random must be on {x.device} as the values are, not on {random.device}")


def _check_words(random: Tensor, bits: int, x: Tensor) -> None:
    if random.dtype not in WORDS:
        raise TypeError(f"random must hold uint8, int8, int16, int32 or int64, not {random.dtype}")
    if random.shape != x.shape:
        raise ValueError(
            f"random must have the shape of the values {tuple(x.shape)}, not {tuple(random.shape)}"
        )
    check_device(random, x)
    if not random.numel():
        return
    low, high = (int(word) for word in random.aminmax())
    if low < 0 or high >= 1 << bits:
        # As int64: 2^bits may be more than its own dtype holds.
        wide = random.long()
        first = int(((wide < 0) | (wide >= 1 << bits)).flatten().int().argmax())
        index = tuple(int(i) for i in np.unravel_index(first, tuple(random.shape)))
        raise ValueError(
            f"random must be from 0 to 2^{bits} - 1: element {index} is {int(random[index])}"
        )
