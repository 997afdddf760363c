"""Patterns of real scales, under which each bit of a decoder counts."""

import numpy as np
from numpy.random import Generator
from numpy.typing import NDArray

from axs6.golden.formats import FP32, Float
from axs6.golden.scaling import real_values

Patterns = NDArray[np.int64]


def by_highest(rng: Generator, bits: int, shape: tuple[int, ...]) -> Patterns:
    """Random numbers, 0 and each place of the highest 1 equally often."""
    limit = 1 << rng.integers(0, bits, shape, endpoint=True)
    return rng.integers(limit >> 1, limit)


def sparse(rng: Generator, scale: Float, count: int) -> Patterns:
    """Scales with one or two 1s in their fractions; half of them are subnormal or nearly so."""
    top = np.where(rng.random(count) < 0.5, 4, scale.exponent_special)
    first, second = 1 << rng.integers(scale.fraction_bits, size=(2, count))
    return rng.integers(top) << scale.fraction_bits | first | np.where(top > 4, second, first)


def subnormal(rng: Generator, scale: Float, count: int) -> Patterns:
    """Subnormal scales with each place of the highest 1, alone in a third of them."""
    alone = 1 << rng.integers(scale.fraction_bits, size=count)
    others = by_highest(rng, scale.fraction_bits, (count,))
    return np.where(rng.random(count) < 1 / 3, alone, others)


def near_the_largest(rng: Generator, dtype: Float, values: NDArray[np.float32]) -> Patterns:
    """FP32 scales that make a value of each row the last that is not too large, or too large by
    some binades.

    If they can, they make one that is too large only as it is rounded.
    """
    last = np.array([dtype.max_finite - 1, dtype.max_finite], np.uint32)
    below, largest = real_values(dtype, last).astype(np.float64)
    limit = 2 * largest - below
    bound = (largest + limit) / 2
    beside = np.array([-1, 0, 1])
    found = (_fp32(bound / values.astype(np.float64))[..., None] + beside).reshape(len(values), -1)
    products = _numbers(found) * np.repeat(values, len(beside), axis=1)
    rounded = (products >= bound) & (products < limit)
    some = np.argmax(rounded + rng.random(found.shape), axis=1)
    binades = rng.choice([0, 0, 0, 1, 1, 2, 3], len(values)) << FP32.fraction_bits
    return np.clip(found[np.arange(len(found)), some] + binades, 0, FP32.max_finite)


def near_midpoints(rng: Generator, dtype: Float, values: NDArray[np.float32]) -> Patterns:
    """FP32 scales by which the products with some values are a midpoint of a dtype and a single 1
    below it."""
    count, bits = len(values), FP32.fraction_bits + 1
    odd = np.maximum(np.frexp(values)[0] * (1 << bits), 1).astype(np.int64)
    odd //= odd & -odd
    below = bits + np.frexp(odd)[1] - rng.integers(1, 3, count) - dtype.fraction_bits - 1
    below = np.maximum(below, 1)
    one = rng.integers(below)
    # Of all midpoints those count for which the product has the factor `odd`.
    halves = [pow(2, -int(k), int(n)) for k, n in zip(below - one, odd, strict=True)]
    least = -np.array(halves) % odd
    times = rng.integers((2 << dtype.fraction_bits) // odd, (4 << dtype.fraction_bits) // odd + 1)
    middle = least + odd * times
    middle += odd * (middle % 2 == 0)
    product = (middle << below) + (1 << one)
    return _fp32((product // odd) * 2.0 ** rng.integers(-140, 80, count))


def _numbers(patterns: Patterns) -> NDArray[np.float64]:
    return patterns.astype(np.uint32).view(np.float32).astype(np.float64)


def _fp32(numbers: NDArray[np.float64]) -> Patterns:
    with np.errstate(all="ignore"):
        patterns = numbers.astype(np.float32).view(np.uint32)
    return np.minimum(patterns.astype(np.int64), FP32.max_finite)
