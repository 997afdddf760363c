"""Pairs of FP32 values whose sums are hard: they cancel, or hang on one bit far below."""

import numpy as np
from numpy.random import Generator
from numpy.typing import NDArray

from axs6.golden.formats import FP32
from axs6.hw.fp32.common import SIGNIFICAND

FAR = SIGNIFICAND + 4
"""Distances of exponents from 0 to beyond all bits that a sum keeps."""

LOW = 26
"""Exponent fields up to which a difference of two numbers may be subnormal."""


def addition_corners() -> NDArray[np.int64]:
    """Pairs of patterns, of shape (n, 2), of random signs and in either order.

    Their differences have every number of leading zeros, and one or two ones at all places; half of
    them are of numbers near the subnormal ones. Or the pairs are numbers at every distance, added
    and subtracted, of which the smaller one has a single 1 in its fraction or none.
    """
    rng = np.random.default_rng(13)
    pairs = np.concatenate([_cancelling(rng), _distant(rng)])
    pairs ^= rng.integers(0, 2, (len(pairs), 1)) << (FP32.width - 1)
    return rng.permuted(pairs, axis=1)


def _cancelling(rng: Generator) -> NDArray[np.int64]:
    """Pairs of opposite signs whose difference has one or two ones.

    They are counted in halves of the larger one's last place. The smaller one is in the binade
    below or further below; or in the same one, and their difference is even.
    """
    high, low, same, near_subnormals = (
        np.stack(np.meshgrid(*[np.arange(SIGNIFICAND + 1)] * 2, [0, 1], [0, 1]), axis=-1)
        .reshape(-1, 4)
        .T
    )
    kept = low <= high
    difference = (1 << high[kept] | 1 << low[kept]) & ~same[kept]
    least = 1 << (SIGNIFICAND - 1)
    room = difference >> 1
    above = np.where(
        same[kept], room + rng.integers(0, least, len(room)), rng.integers(0, room + 1)
    )
    large = least + np.minimum(above, least - 1)
    field = np.where(
        near_subnormals[kept],
        rng.integers(2, LOW, len(room)),
        rng.integers(2, FP32.exponent_special, len(room)),
    )
    halves = np.stack([2 * large, -(2 * large - difference)], axis=1)
    values = np.ldexp(halves.astype(np.float64), (field + FP32.emin - 1 - SIGNIFICAND)[:, None])
    return values.astype(np.float32).view(np.uint32).astype(np.int64)


def _distant(rng: Generator) -> NDArray[np.int64]:
    """Pairs at every distance, of which the smaller one's significand has at most two ones."""
    grid = np.meshgrid(np.arange(FAR), np.arange(SIGNIFICAND), [0, FP32.sign_bit])
    distance, place, sign = np.stack(grid, axis=-1).reshape(-1, 3).T
    bits = FP32.fraction_bits
    small = rng.integers(0, FP32.exponent_special - distance)
    fraction = rng.integers(0, 1 << bits, len(small))
    one = (1 << place) & ((1 << bits) - 1)
    return np.stack([(small + distance) << bits | fraction, small << bits | one | sign], axis=1)
