"""Scales of channels and tensors, by which dot products multiply their totals."""

import numpy as np
from numpy.random import Generator
from numpy.typing import NDArray

from axs6.golden.formats import FP32
from axs6.hw.fp32.common import SIGNIFICAND

Patterns = NDArray[np.int64]

AIMED = 0.7
"""Share of the vectors whose scales are chosen for their totals, where such scales are found."""

LEAST = 1 - FP32.bias - FP32.fraction_bits
"""Exponent of the lowest place of FP32."""

FURTHER = 4
"""Places, less one, that a subnormal product of some vectors lacks at most."""


def outer_scales(rng: Generator, count: int) -> Patterns:
    """FP32 patterns, many of moderate size; few are NaN, infinite or negative."""
    ends = [0, 1, FP32.smallest_normal, FP32.max_finite, FP32.infinity, FP32.quiet_nan]
    middle = rng.integers(FP32.bias - 40, FP32.bias + 40, count) << FP32.fraction_bits
    middle |= rng.integers(0, 1 << FP32.fraction_bits, count)
    any_size = rng.integers(0, FP32.infinity, count)
    kind = rng.random(count)
    size = np.where(kind < 0.6, middle, np.where(kind < 0.95, any_size, rng.choice(ends, count)))
    negative = (rng.random(count) < 0.1).astype(np.int64)
    return size + (negative << FP32.width - 1)


def aimed_scales(rng: Generator, totals: NDArray[np.uint32]) -> Patterns:
    """Scales of vectors with these totals, FP32 patterns: of many of them so that the product lies
    halfway between two FP32 numbers, or a single 1 above or below, and random ones of the others.

    The significand of such a scale has any width, as those of subnormal scales do, and the product
    may be subnormal itself.
    """
    count = len(totals)
    others = outer_scales(rng, count)
    values = np.abs(totals.view(np.float32).astype(np.float64))
    fraction, exponent = np.frexp(np.where(np.isfinite(values), values, 0))
    odd = np.maximum(fraction * (1 << SIGNIFICAND), 1).astype(np.int64)
    odd //= odd & -odd
    lengths = np.frexp(odd)[1]
    width = rng.integers(1, SIGNIFICAND, count, endpoint=True)
    dropped = lengths + width - rng.integers(0, 2, count) - SIGNIFICAND
    # Exponents of the lowest places of products under scales of 1, and of scales.
    lowest = exponent - lengths
    tiny = LEAST - lowest - dropped - rng.integers(FURTHER, size=count)
    kinds = [np.full(count, LEAST), rng.integers(-120, 20, count), np.clip(tiny, LEAST, 100)]
    places = np.choose(rng.integers(3, size=count), kinds)
    dropped = np.maximum(dropped, LEAST - lowest - places)
    half = np.clip(dropped - 1, 0, 2 * SIGNIFICAND)
    target = (1 << half) + (1 << rng.integers(np.maximum(half, 1))) * rng.integers(-1, 2, count)
    scales = target * _inverse(odd) & (2 << half) - 1
    scales |= rng.integers(1 << width - 1, 1 << width) >> half + 1 << half + 1
    exact = (dropped > 0) & (half < dropped) & (scales < 1 << SIGNIFICAND)
    aimed = np.ldexp(scales.astype(np.float64), places).astype(np.float32).view(np.uint32)
    return np.where(exact & (rng.random(count) < AIMED), aimed.astype(np.int64), others)


def _inverse(odd: NDArray[np.int64]) -> NDArray[np.int64]:
    """The inverse of each odd number modulo 2^64."""
    found = odd.astype(np.uint64)
    for _ in range(5):  # each step doubles the number of right bits, 3 at first
        found *= np.uint64(2) - odd.astype(np.uint64) * found
    return found.view(np.int64)
