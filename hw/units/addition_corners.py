"""Pairs of FP32 values whose sums are hard: they cancel, or hang on one bit far below."""

from itertools import product

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
    and subtracted, of which a bit of the smaller one decides the rounding.
    """
    rng = np.random.default_rng(13)
    pairs = np.concatenate([_cancelling(rng), _distant(rng)])
    pairs ^= rng.integers(0, 2, (len(pairs), 1)) << (FP32.width - 1)
    return rng.permuted(pairs, axis=1)


def special_pairs() -> NDArray[np.int64]:
    """Pairs of patterns, of shape (n, 2), of which one at least is an infinity or a NaN, in either
    order.

    Infinities are beside each other, beside NaNs of one bit, and beside numbers whose exponent
    field lacks one bit. So are NaNs.
    """
    rng = np.random.default_rng(14)
    infinities = [FP32.infinity, FP32.infinity | FP32.sign_bit]
    nans = [FP32.infinity | 1 << bit for bit in range(FP32.fraction_bits)]
    fields = FP32.exponent_special ^ 1 << np.arange(FP32.exponent_bits)
    numbers = fields << FP32.fraction_bits | rng.integers(1 << FP32.fraction_bits, size=len(fields))
    others = [*infinities, *nans, *numbers, *(numbers | FP32.sign_bit)]
    pairs = np.array([*product([*infinities, FP32.quiet_nan], others)])
    return np.concatenate([pairs, pairs[:, ::-1]])


def _cancelling(rng: Generator) -> NDArray[np.int64]:
    """Pairs of opposite signs whose difference has one or two ones.

    They are counted in halves of the larger one's last place. The smaller one is in the binade
    below or further below; or in the same one, and their difference is even.
    """
    shape = (SIGNIFICAND + 1, SIGNIFICAND + 1, 2, 2)
    high, low, same, near_subnormals = np.indices(shape).reshape(len(shape), -1)
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
    """Pairs at every distance, of which the smaller one has up to three ones.

    They are its hidden bit, one that may be half a unit in the last place of the sum or a quarter,
    and one further below.
    """
    shape = (FAR, SIGNIFICAND, 2, 2, 2)
    distance, below, quarter, near_power, minus = np.indices(shape).reshape(len(shape), -1)
    half = distance - 1 - quarter
    one = np.where((half >= 0) & (half < SIGNIFICAND), 1 << np.clip(half, 0, SIGNIFICAND), 0)
    bits = FP32.fraction_bits
    small = (one | 1 << below) & ((1 << bits) - 1)
    field = rng.integers(0, FP32.exponent_special - distance)
    large = rng.integers(0, 1 << np.where(near_power, 3, bits))
    signs = minus << (FP32.width - 1)
    return np.stack([(field + distance) << bits | large, field << bits | small | signs], axis=1)
