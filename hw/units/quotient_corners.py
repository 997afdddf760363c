"""Special cases of the divisions in encoders of scales that are real numbers and integers.

A low digit of a quotient counts only where what follows from it is next to a number at which a code
changes. The outer scale, which has more bits than the values, is chosen so that it is.
"""

from collections.abc import Iterator
from functools import cache

import numpy as np
from numpy.random import Generator
from numpy.typing import NDArray

from axs6.golden.formats import FP32, BlockFormat, Float, Integer, Real
from axs6.golden.scaling import real_values

EACH = 4 << 10
"""Blocks of each kind."""

OFF = 2
"""Units in the last place of an outer scale by which a quotient misses its number, at most."""

HARD = 1 << 14
"""Reciprocals that are hardest to round; of these the harder ones come more often."""

LEFT = 14
"""Bits of what is left by the hardest quotients, fewer than this."""

TRIED = 64
"""Random outer scales of which one is taken."""

CHOICES = 16
"""Random boundaries of which one is taken for a value."""

Numbers = NDArray[np.float64]
Patterns = NDArray[np.int64]


def outer_patterns(rng: Generator, count: int) -> Patterns:
    """FP32 patterns of positive numbers: of any size, near 1, subnormal, powers of two, and at both
    ends of the range, where fractions are zeros, ones, one bit, and ones above zeros."""
    bits, fractions = FP32.fraction_bits, rng.integers(0, FP32.smallest_normal, count)
    near_one = (FP32.bias + rng.integers(-12, 12, count) << bits) | fractions
    subnormal = 1 + (fractions >> rng.integers(bits, size=count))
    anything = rng.integers(1, FP32.max_finite, count)
    fields = rng.integers(-6, 6, count) % FP32.exponent_special
    ones = 1 << np.arange(bits)
    extremes = np.array([0, (1 << bits) - 1, *ones, *((1 << bits) - ones)])
    ends = np.maximum(fields << bits | rng.choice(extremes, count), 1)
    powers = rng.integers(1, FP32.exponent_special, count) << bits
    return np.choose(rng.integers(5, size=count), [anything, near_one, subnormal, powers, ends])


def quotient_corners(
    fmt: BlockFormat, dtype: Float, lanes: int, sizes: Numbers
) -> list[tuple[Patterns, Patterns]]:
    """Outer scales, and blocks whose quotients are those at which a code changes, or beside them.

    Args:
        fmt: a format with an outer scale. dtype: of the values. lanes: values of an item.
        sizes: boundaries of the element, under scales of 1.

    Returns:
        Blocks whose codes of values change; blocks whose scale changes if the format has any;
        blocks of values nearest to both under given outer scales; and blocks of values whose
        products are hard to round.
    """
    rng = np.random.default_rng(17)
    steps = _Steps(fmt)
    kinds = [_at_elements(rng, steps, dtype, lanes, sizes)]
    if fmt.blocked:
        kinds.append(_at_scales(rng, steps, dtype, lanes, sizes))
    kinds.append(_nearest(rng, steps, dtype, lanes, sizes))
    return [*kinds, _hard_products(rng, steps, dtype, lanes, sizes)]


class _Steps:
    """The scale of a block as a function of its largest magnitude over the largest element.

    `numbers` are scales, in order, and `bounds` the quotients between them, where it changes.
    """

    def __init__(self, fmt: BlockFormat) -> None:
        self.largest = float(fmt.element.largest)
        self.numbers, self.bounds = np.ones(1), np.zeros(0)
        if not fmt.blocked:
            return
        scale = fmt.blocked[-1].scale
        if isinstance(scale, Integer):
            self.numbers = np.arange(1.0, scale.largest_code + 1)
            self.bounds = self.numbers[:-1]
            return
        assert isinstance(scale, Real)
        codes = np.arange(1, scale.largest_code + 1)  # one under another has 16 bits at most
        self.numbers = real_values(scale.dtype, codes).astype(np.float64)
        below = real_values(scale.dtype, codes - 1).astype(np.float64)
        self.bounds = ((self.numbers + below) / 2)[1:]

    def of(self, quotients: Numbers) -> Numbers:
        """The scales of blocks with some quotients."""
        return self.numbers[np.searchsorted(self.bounds, quotients)]

    def bound(self, rng: Generator, count: int) -> Numbers:
        """Random quotients at which the scale changes, and a tenth at its least and largest one."""
        ends = self.numbers[[0, -1]]
        anywhere = rng.choice(np.concatenate([ends, self.bounds]), count)
        return np.where(rng.random(count) < 0.1, rng.choice(ends, count), anywhere)


def _at_scales(
    rng: Generator, steps: _Steps, dtype: Float, lanes: int, sizes: Numbers
) -> tuple[Patterns, Patterns]:
    """Outer scales under which a block's largest magnitude is where its scale changes."""
    bounds = steps.bound(rng, EACH)
    top = _near(rng, dtype, _held(outer_patterns(rng, EACH)) * steps.largest * bounds)
    outer = _beside(rng, _numbers(dtype, top) / (steps.largest * or_a_bit_above(rng, bounds)))
    scales = _held(outer) * steps.of(bounds)
    values = patterns_near(dtype, scales[:, None] * rng.choice(sizes, (EACH, lanes)))
    values = np.minimum(values, top[:, None])
    values[np.arange(EACH), rng.integers(lanes, size=EACH)] = top
    return outer, values | rng.integers(2, size=values.shape) << dtype.width - 1


def _at_elements(
    rng: Generator, steps: _Steps, dtype: Float, lanes: int, sizes: Numbers
) -> tuple[Patterns, Patterns]:
    """Outer scales under which values in one lane are where their code changes, or in all lanes.

    Another lane has the largest magnitude, which gives the block a random scale.
    """
    held, rows = _held(outer_patterns(rng, EACH)), np.arange(EACH)
    factors = rng.choice(steps.numbers, EACH)
    top = _near(rng, dtype, held * steps.largest * factors)
    factors = steps.of(_numbers(dtype, top) / held / steps.largest)
    bounds = rng.choice(sizes, (EACH, lanes))
    focus = rng.integers(lanes, size=EACH)
    value = _near(rng, dtype, held * factors * bounds[rows, focus])
    goals = or_a_bit_above(rng, bounds[rows, focus])
    outer = _beside(rng, _numbers(dtype, value) / (goals * factors))
    values = patterns_near(dtype, (_held(outer) * factors)[:, None] * bounds)
    values[rows, focus] = value
    if len(steps.numbers) > 1:
        values = np.minimum(values, top[:, None])
        values[rows, (focus + rng.integers(1, lanes, EACH)) % lanes] = top
    return outer, values | rng.integers(2, size=values.shape) << dtype.width - 1


def _nearest(
    rng: Generator, steps: _Steps, dtype: Float, lanes: int, sizes: Numbers
) -> tuple[Patterns, Patterns]:
    """Values nearest to where a scale or a code changes, or beside, under given outer scales.

    Half of the outer scales have reciprocals that are hard to round. Of the others, half are those
    of some random ones under which the scale is nearest to its change, or to where the quotient is
    rounded to it. Values are at the boundaries to which their products are nearest, or just below
    the largest one.
    """
    rows = np.arange(EACH)
    outer, bounds = outer_patterns(rng, EACH), steps.bound(rng, EACH)
    outer[::2] = _hard_to_divide_by(rng, outer[::2])
    top = _or_beside(rng, dtype, _held(outer) * steps.largest * bounds)
    outer[1::4], top[1::4] = _nearest_scales(rng, steps, dtype, bounds[1::4])
    held = _held(outer)
    scales = held * steps.of(_numbers(dtype, top) / held / steps.largest)
    values = _nearest_values(rng, dtype, scales, sizes, lanes)
    if len(steps.numbers) > 1:
        below = top[:, None] - (1 << rng.integers(8, size=values.shape))
        close = (rows % 8 == 1)[:, None] & (rng.random(values.shape) < 0.8)
        values = np.minimum(np.where(close, np.maximum(below, 0), values), top[:, None])
        values[rows, rng.integers(lanes, size=EACH)] = top
    return outer, values | rng.integers(2, size=values.shape) << dtype.width - 1


def _hard_to_divide_by(rng: Generator, outer: Patterns) -> Patterns:
    """Outer scales whose reciprocals are hard to round; every fourth of these is subnormal."""
    fields = np.maximum(outer >> FP32.fraction_bits, 1)
    fields[::4] = FP32.exponent_special - rng.integers(1, 3, len(fields[::4]))
    lost = np.maximum(fields - (2 * FP32.bias - 2), 0)
    order = rng.random(len(outer))
    either = rng.random(len(outer)) < 1 / 2

    def fractions(bits: int) -> Patterns:
        hard, ones = hard_reciprocals(bits), one_digit_reciprocals(bits)
        of_ones, of_hard = (len(ones) * order).astype(int), (HARD**order).astype(int) - 1
        return np.where(either, ones[of_ones], hard[of_hard])

    found = np.choose(lost, [fractions(each) for each in range(3)])
    return fields << FP32.fraction_bits | found


def _nearest_scales(
    rng: Generator, steps: _Steps, dtype: Float, bounds: Numbers
) -> tuple[Patterns, Patterns]:
    """Outer scales and largest values whose quotients are nearest to bounds, but not equal.

    They are nearest to a bound, or to the middle between it and an FP32 number beside it: as near
    as can be, if the values can ask for that.
    """
    count = len(bounds)
    middle = _middles(rng, bounds)
    goals = np.where(rng.random(count) < 0.5, middle, bounds)[:, None]
    some = outer_patterns(rng, count * TRIED).reshape(count, TRIED)
    tops = _or_beside(rng, dtype, _held(some) * steps.largest * goals)
    missed = np.abs(_divided(dtype, tops, steps) / _held(some) / goals - 1)
    rows, best = np.arange(count), np.argmin(np.where(missed > 0, missed, np.inf), axis=1)
    outer, top = some[rows, best], tops[rows, best]
    left = 1 << rng.integers(10, size=count) | 1
    hard_outer, hard_top = _hardest_scales(rng, steps, dtype, middle, left)
    return np.where(hard_top > 0, hard_outer, outer), np.where(hard_top > 0, hard_top, top)


def _middles(rng: Generator, bounds: Numbers) -> Numbers:
    """The middles between bounds and an FP32 number beside, below or above."""
    beside = np.where(rng.random(len(bounds)) < 0.5, 0, np.float32(np.inf)).astype(np.float32)
    return (bounds + np.nextafter(bounds.astype(np.float32), beside).astype(np.float64)) / 2


def _hardest_scales(
    rng: Generator, steps: _Steps, dtype: Float, middles: Numbers, left: Patterns
) -> tuple[Patterns, Patterns]:
    """Outer scales and largest values whose quotients are hard to round; 0 where there are none.

    The significands of dividend, divisor and middle are whole numbers n, d and m, and m times d is
    n times 2^24 but for `left`, a small odd number: d is that number over m, modulo 2^24.
    """
    ones = FP32.fraction_bits + 1
    wholes, exponents = np.frexp(middles)
    whole = np.ldexp(wholes, ones + 1).astype(np.int64) | 1
    inverse = np.array([pow(x, -1, 1 << ones) for x in whole.tolist()])
    divisor = left * inverse % (1 << ones)
    low = divisor < 1 << ones - 1
    divisor, left = np.where(low, (1 << ones) - divisor, divisor), np.where(low, -left, left)
    dividend = (whole * divisor - left) >> ones
    place = rng.integers(-100, 100, len(whole)) - ones
    outer = np.ldexp(divisor.astype(np.float64), place)
    numbers = np.ldexp(dividend.astype(np.float64), place + exponents - 1)
    top = patterns_near(dtype, numbers * steps.largest)
    exact = (_divided(dtype, top, steps) == numbers) & (dividend < 1 << ones)
    patterns = outer.astype(np.float32).view(np.uint32).astype(np.int64)
    return np.where(exact, patterns, 0), np.where(exact, top, 0)


def remainder_corners(
    fmt: BlockFormat, dtype: Float, lanes: int, sizes: Numbers
) -> tuple[Patterns, Patterns]:
    """Outer scales, and blocks whose scales are hard to round, with remainders of many bits.

    The bits of a quotient before the last are all ones or all zeros, and the bits of the remainders
    that give them are random. See `quotient_corners`; the format has scales of blocks.
    """
    rng = np.random.default_rng(22)
    steps = _Steps(fmt)
    left = rng.integers(1 << rng.integers(1, LEFT, HARD)) | 1
    middles = _middles(rng, steps.bound(rng, HARD))
    outer, top = _hardest_scales(rng, steps, dtype, middles, left)
    outer, top = outer[top > 0], top[top > 0]
    scales = _held(outer) * steps.of(_numbers(dtype, top) / _held(outer) / steps.largest)
    values = np.minimum(_nearest_values(rng, dtype, scales, sizes, lanes), top[:, None])
    values[np.arange(len(top)), rng.integers(lanes, size=len(top))] = top
    return outer, values | rng.integers(2, size=values.shape) << dtype.width - 1


def _divided(dtype: Float, tops: Patterns, steps: _Steps) -> Numbers:
    """Largest values over the largest element, rounded to FP32."""
    return (_numbers(dtype, tops) / steps.largest).astype(np.float32).astype(np.float64)


def _nearest_values(
    rng: Generator, dtype: Float, scales: Numbers, sizes: Numbers, lanes: int
) -> Patterns:
    """Values whose products with reciprocals of scales are nearest to boundaries, or beside.

    They are nearest to one of some random boundaries that values reach.
    """
    with np.errstate(over="ignore"):
        largest = real_values(dtype, np.array([dtype.max_finite], np.uint32)).astype(np.float64)
        reached = np.maximum(np.searchsorted(sizes, largest / scales, "right"), 1)
    bounds = sizes[rng.integers(0, reached[:, None, None], (len(scales), lanes, CHOICES))]
    found = patterns_near(dtype, scales[:, None, None] * bounds)
    with np.errstate(over="ignore", divide="ignore", invalid="ignore"):
        reciprocals = (1 / scales).astype(np.float32).astype(np.float64)[:, None, None]
        missed = np.abs(_numbers(dtype, found) * reciprocals / bounds - 1)
    best = np.argmin(np.where(missed > 0, missed, np.inf), axis=2)
    values = np.take_along_axis(found, best[..., None], axis=2)[..., 0]
    near = values + rng.choice([-1, 0, 0, 0, 0, 0, 1], values.shape)
    return np.clip(near, 0, dtype.max_finite)


PRODUCTS = 3 << 10
"""Products of which factors are looked for."""

BELOW = 20
"""Places, fewer than this, from the middle of two FP32 numbers to the last 1 of a product near."""


def _hard_products(
    rng: Generator, steps: _Steps, dtype: Float, lanes: int, sizes: Numbers
) -> tuple[Patterns, Patterns]:
    """Values whose products with reciprocals of outer scales are hard to round to FP32.

    The exact product is the middle between a boundary and the FP32 number next to it, or just
    beyond that middle, so that its last 1 decides the code. Such a value is in all lanes. If the
    format has scales of blocks, another lane has a largest value that gives the block the scale 1.
    """
    blocked, most = len(steps.numbers) > 1, steps.largest * (1 - 2.0**-6)
    reached = sizes[sizes < most] if blocked else sizes
    found = zip(*_hard_factors(rng, dtype, reached), strict=True)
    outer, values = (np.concatenate(each) for each in found)
    patterns = np.tile(patterns_near(dtype, values)[:, None], lanes)
    if blocked:
        top = patterns_near(dtype, outer * most)
        patterns[np.arange(len(top)), rng.integers(lanes, size=len(top))] = top
    signs = rng.integers(2, size=patterns.shape) << dtype.width - 1
    return outer.astype(np.float32).view(np.uint32).astype(np.int64), patterns | signs


def _hard_factors(
    rng: Generator, dtype: Float, sizes: Numbers
) -> Iterator[tuple[Numbers, Numbers]]:
    """Outer scales and values, whose products with reciprocals are hard to round to FP32.

    Both factors of a product are significands.
    """
    for bound in rng.choice(sizes, PRODUCTS):
        below = max(0, int(rng.integers(-BELOW // 4, BELOW)))  # a quarter are exact ties
        beside = int(rng.choice([-1, 1]))
        number = int(np.ldexp(np.frexp(bound)[0], FP32.fraction_bits + 2))
        product = (number + beside << below) + (beside if below else 0)
        most = max(4 << below, 1 << FP32.fraction_bits // 2)
        candidates = np.arange(1 << below | 1, min(most, 2 << dtype.fraction_bits), 2)
        both = (product % candidates == 0) & (product < candidates << FP32.fraction_bits + 1)
        values = candidates[both].astype(np.float64)
        others = product / values
        factors = np.frexp(others)[0] * 2.0 ** rng.integers(-6, 6, len(values))
        outer = (1 / factors).astype(np.float32)
        exact = (1 / outer).astype(np.float64) == factors
        unit = bound / (number << below)
        yield outer[exact].astype(np.float64), (values * others / factors * unit)[exact]


@cache
def hard_reciprocals(lost: int) -> Patterns:
    """Fractions of FP32 numbers whose reciprocals are nearest to a middle between two, in order.

    `lost` are the bits that a reciprocal lacks as it is subnormal.
    """
    distance = np.abs(_beyond_middles(lost))
    nearest = np.argpartition(distance, HARD)[:HARD]
    return nearest[np.argsort(distance[nearest], kind="stable")]


@cache
def one_digit_reciprocals(lost: int) -> Patterns:
    """Fractions of FP32 numbers whose reciprocals have a single 1 behind a middle between two.

    Zeros follow in what a division finds first. The 1 is in each place; see `hard_reciprocals`.
    """
    bits = FP32.fraction_bits
    part = _beyond_middles(lost) / (np.arange(1 << bits, 2 << bits) * 2.0)
    digits = 2.0 ** -np.arange(2, bits)
    near = (np.flatnonzero((part >= x) & (part < x + 2.0 ** (2 - bits))) for x in digits)
    return np.concatenate(list(near))


def _beyond_middles(lost: int) -> Patterns:
    """By how much the reciprocal of each significand is beyond a middle, times twice the
    significand; see `hard_reciprocals`."""
    bits = FP32.fraction_bits
    significands = np.arange(1 << bits, 2 << bits)
    remainders: Patterns = 2 * ((1 << 2 * bits + 1 - lost) % significands) - significands
    return remainders


def _or_beside(rng: Generator, dtype: Float, numbers: Numbers) -> Patterns:
    """Patterns nearest to positive numbers, or on either side."""
    found = patterns_near(dtype, numbers)
    return np.clip(found + rng.choice([-1, 0, 0, 1], found.shape), 0, dtype.max_finite)


def _near(rng: Generator, dtype: Float, numbers: Numbers) -> Patterns:
    """Patterns near positive numbers; half of them have few bits in their fractions."""
    patterns = np.maximum(patterns_near(dtype, numbers), 1)
    cut = patterns >> dtype.fraction_bits - 3 << dtype.fraction_bits - 3
    return np.where((rng.random(len(patterns)) < 0.5) & (cut > 0), cut, patterns)


def _beside(rng: Generator, numbers: Numbers) -> Patterns:
    """FP32 patterns of numbers, or some units in the last place beside."""
    with np.errstate(over="ignore"):
        patterns = numbers.astype(np.float32).view(np.uint32).astype(np.int64)
    off = rng.integers(-OFF, OFF, len(numbers), endpoint=True)
    return np.clip(patterns + off, 1, FP32.max_finite)


def or_a_bit_above(rng: Generator, numbers: Numbers) -> Numbers:
    """Positive numbers, or the sum with a single 1 in some place of their FP32 fraction."""
    unit = np.spacing(numbers.astype(np.float32)).astype(np.float64)
    bit = unit * 2.0 ** rng.integers(FP32.fraction_bits, size=len(numbers))
    return numbers + np.where(rng.random(len(numbers)) < 1 / 3, bit, 0)


def _held(outer: Patterns) -> Numbers:
    """Outer scales as they count: at least the least normal number."""
    normal = np.maximum(outer, FP32.smallest_normal)
    return normal.astype(np.uint32).view(np.float32).astype(np.float64)


def patterns_near(dtype: Float, numbers: Numbers) -> Patterns:
    """Patterns of positive numbers, held to finite ones."""
    with np.errstate(over="ignore"):
        if dtype.exponent_bits == FP32.exponent_bits:
            single = numbers.astype(np.float32).view(np.uint32).astype(np.int64)
            found = single >> FP32.width - dtype.width
        else:
            found = numbers.astype(np.float16).view(np.uint16).astype(np.int64)
    return np.minimum(found, dtype.max_finite)


def _numbers(dtype: Float, patterns: Patterns) -> Numbers:
    return real_values(dtype, patterns.astype(np.uint32)).astype(np.float64)
