"""How encoding and sums round, and the random bits of stochastic rounding."""

from collections.abc import Sequence
from enum import StrEnum
from typing import Final

from axs6.golden.arguments import check_integer


class Rounding(StrEnum):
    """How a number that falls between two codes is rounded."""

    NEAREST = "nearest"
    TOWARD_ZERO = "toward_zero"
    STOCHASTIC = "stochastic"


DETERMINISTIC: Final = (Rounding.NEAREST, Rounding.TOWARD_ZERO)
"""Roundings without random bits."""

RANDOM_BITS: Final = 16
RANDOM_BITS_MAX: Final = 32
"""Random bits that stochastic rounding takes for each value: the default and the largest number."""


def check_rounding(rounding: str, known: Sequence[Rounding] = tuple(Rounding)) -> Rounding:
    """Return `rounding` as a `Rounding`, or raise ValueError naming the known ones."""
    if rounding not in known:
        raise ValueError(f"rounding must be one of {', '.join(known)}, not {rounding!r}")
    return Rounding(rounding)


def check_random_bits(bits: int) -> int:
    """Return `bits`, or raise ValueError unless it is an integer from 1 to 32."""
    return check_integer("random_bits", bits, 1, RANDOM_BITS_MAX)
