"""Vectors of random blocks whose sums in FP32 are hard.

The largest term cancels, so that what is left has any number of leading zeros; terms are far apart;
one bit of a term is half a unit in the last place of the sum; or sums are at either end of FP32.
"""

from dataclasses import dataclass

import numpy as np
from numpy.random import Generator
from numpy.typing import NDArray

from axs6.golden.formats import FP32, BlockFormat, Exponent, Shift
from axs6.hw.core.layouts import scale_names
from axs6.hw.dot.shape import WORD, DotShape
from axs6.hw.fp32.common import SIGNIFICAND
from axs6.hw.fp32.number import LEAST_EXPONENT
from axs6.hw.units.block_dot import products
from axs6.hw.units.blocks import blocks_of, random_blocks, special_codes
from axs6.hw.units.unit import Items

LENGTH = 4
"""Items of a vector that cancels: a term, two smaller ones, and the first one with the opposite
sign."""

CANCEL, APART, ENDS = 1024, 192, 2048
"""Numbers of vectors of each kind."""

POOL = 1 << 14
"""Random pairs of blocks, of which those are taken whose sums have few ones."""

FEW = 256
"""Sums with few ones."""

HIGH = 0.2
"""Share of them near the largest number."""


def hard_sums(shape: DotShape) -> Items:
    """Vectors of block pairs without `outer`.

    Exponents of a vector that cancels are half of the time those of sums that are subnormal or just
    above. Scales that are no exponents are random, and so are codes.
    """
    rng = np.random.default_rng(11)
    largest = sum(map(largest_exponent, shape.formats))
    least = -LEAST_EXPONENT - shape.offset
    low = rng.integers(least - shape.width, least + SIGNIFICAND + 4, CANCEL)
    few = _with_few_ones(rng, shape)
    halves, halfway = _halfway(shape, few, least, largest)
    totals = [
        _cancelling(rng, low, largest),
        rng.integers(0, largest, (APART, 2), endpoint=True),
        halfway,
        _at_ends(rng, least, few.widths)[:, None],
    ]
    ends = [np.arange(x.shape[1]) == x.shape[1] - 1 for x in totals]
    last = [np.tile(end, len(x)) for end, x in zip(ends, totals, strict=True)]
    exponents = np.clip(np.concatenate([x.ravel() for x in totals]), 0, largest)
    items = _blocks(rng, shape, CANCEL * LENGTH + APART * 2)
    items = {
        name: np.concatenate([array, halves[name], few.items[name]])
        for name, array in items.items()
    }
    for name, array in items.items():
        array[: CANCEL * LENGTH : 2 * LENGTH] = few.items[name][: CANCEL // 2]
        array[LENGTH - 1 : CANCEL * LENGTH : LENGTH] = array[: CANCEL * LENGTH : LENGTH]
    codes = items["a.codes"][: CANCEL * LENGTH]
    codes[LENGTH - 1 :: LENGTH] = _negated(shape.a)[codes[::LENGTH]]
    first = np.minimum(exponents, largest_exponent(shape.a))
    for side, fmt, each in (("a", shape.a, first), ("b", shape.b, exponents - first)):
        for name, level in zip(scale_names(fmt), fmt.blocked[::-1], strict=True):
            if isinstance(level.scale, Exponent):
                items[f"{side}.{name}"] = np.minimum(each, level.scale.largest_code)
    return {**items, "last": np.concatenate(last).astype(np.int64)}


def _cancelling(rng: Generator, low: NDArray[np.int64], largest: int) -> NDArray[np.int64]:
    """Sums of exponents, of shape (n, LENGTH); half of them begin at low ones."""
    top = np.where(np.arange(len(low)) % 2, low, rng.integers(0, largest + 1, len(low)))
    below = np.zeros((len(low), LENGTH), np.int64)
    steps = rng.integers(0, SIGNIFICAND + 2, (len(low), LENGTH - 2))
    below[:, 1:-1] = np.cumsum(steps, axis=1)
    return top[:, None] - below


@dataclass(frozen=True)
class _Few:
    """Pairs of blocks whose sums have few ones, those with a single one first.

    Of each sum also whether it is negative, its width, and the width below its highest one; and the
    numbers of those with up to one and up to two ones.
    """

    items: Items
    negative: NDArray[np.bool_]
    widths: NDArray[np.int64]
    below: NDArray[np.int64]
    powers: int
    pairs: int


def _halfway(
    shape: DotShape, few: _Few, least: int, largest: int
) -> tuple[Items, NDArray[np.int64]]:
    """Two sums, of which a bit of the smaller one is half a unit in the last place of the result.

    Each of the sums with few ones is the smaller one. The bit is its highest 1 or the next. Both
    sums have the same sign, or opposite signs; the larger one may be a power of two, and then the
    result has one place less. The smaller one comes first or last. Sums with two ones are also
    subnormal, with their lowest 1 at each place.

    Returns:
        The blocks, and for each pair of sums those of their exponents.
    """
    rng, sums = np.random.default_rng(12), FEW if largest else 0  # without exponents none is alike
    index = np.stack(np.meshgrid(np.arange(sums), (False, True), range(3)), axis=-1).reshape(-1, 3)
    two = few.widths[: min(few.pairs, sums)]
    place, of = np.nonzero(np.arange(SIGNIFICAND)[:, None] + two < SIGNIFICAND)
    place, of, kind = np.tile(place, 2), np.tile(of, 2), np.repeat([0, 2], len(of))
    small, is_next = np.append(index[:, 0], of), np.append(index[:, 1], np.zeros_like(of))
    kind = np.append(index[:, 2], kind)
    unlike, power = kind > 0, kind == 2
    large = rng.integers(np.where(power, max(1, few.powers), FEW))
    bit = np.where(is_next & (few.below[small] > 0), few.below[small], few.widths[small])
    distance = SIGNIFICAND + bit - few.widths[large] + power
    top = rng.integers(np.clip(distance, 0, largest), largest, endpoint=True)
    top[len(index) :] = least + place + distance[len(index) :]
    exponents, index = np.stack([top, top - distance], axis=1), np.stack([large, small], axis=1)
    items = {name: array[index] for name, array in few.items.items()}
    wrong = (few.negative[large] ^ few.negative[small]) != unlike
    codes = items["a.codes"]
    codes[wrong, 1] = _negated(shape.a)[codes[wrong, 1]]
    turned = np.arange(len(index)) % 2 > 0
    for array in (exponents, *items.values()):
        array[turned] = array[turned, ::-1]
    return {name: array.reshape(-1, *array.shape[2:]) for name, array in items.items()}, exponents


def _at_ends(rng: Generator, least: int, widths: NDArray[np.int64]) -> NDArray[np.int64]:
    """Sums of exponents with which sums of these widths are subnormal, or near the largest
    number."""
    low = least - 1 - rng.integers(0, widths, endpoint=True)
    high = least + LEAST_EXPONENT + FP32.bias + 1 - widths + rng.integers(0, 2, len(widths))
    return np.where(rng.random(len(widths)) < HIGH, high, low)


def _blocks(rng: Generator, shape: DotShape, count: int) -> Items:
    """Random pairs of blocks of numbers."""
    items: Items = {}
    for side, fmt in zip("ab", shape.formats, strict=True):
        fields = random_blocks(rng, fmt, shape.block, count)
        no_number = np.isin(fields["codes"], special_codes(fmt))
        fields["codes"] = np.where(no_number, fmt.element.zero_code, fields["codes"])
        for name, level in zip(scale_names(fmt), fmt.blocked[::-1], strict=True):
            if level.scale.nan_code is not None:
                fields[name] = np.where(fields[name] == level.scale.nan_code, 0, fields[name])
        items |= {f"{side}.{name}": array for name, array in fields.items()}
    return items


def _with_few_ones(rng: Generator, shape: DotShape) -> _Few:
    """Pairs of blocks, of which each bit of the sum may be the one that decides a rounding."""
    items = _blocks(rng, shape, POOL)
    large = np.arange(shape.block) < rng.integers(0, shape.block, (POOL, 1))
    nothing = rng.random((POOL, shape.block)) < rng.choice([0, 0, 0.5, 0.9], (POOL, 1))
    large &= ~nothing
    for side, fmt in zip("ab", shape.formats, strict=True):
        codes = np.where(nothing, fmt.element.zero_code, items[f"{side}.codes"])
        items[f"{side}.codes"] = np.where(large, _largest_code(fmt), codes)
        for name, level in zip(scale_names(fmt), fmt.blocked[::-1], strict=True):
            if isinstance(level.scale, Shift):
                shifts = items[f"{side}.{name}"]
                size = shape.block // shifts.shape[-1]
                shifts *= ~large[:, size - 1 :: size] if shifts.ndim > 1 else 1
    a, b = (blocks_of(items, x, f"{side}.") for side, x in zip("ab", shape.formats, strict=True))
    found = products(a, b, shape)
    high = found["high"].astype(object) << WORD if "high" in found else 0
    sums = found["sum"].astype(object) + high
    sizes, where = (x[1:] for x in np.unique(np.append(0, np.abs(sums)), return_index=True))
    ones = np.array([each.bit_count() for each in sizes])
    chosen = np.resize(np.argsort(ones, kind="stable")[:FEW], ENDS)
    widths = np.array([each.bit_length() for each in sizes[chosen]])
    below = np.array([(each ^ 1 << each.bit_length() >> 1).bit_length() for each in sizes[chosen]])
    places = where[chosen] - 1
    return _Few(
        {name: array[places] for name, array in items.items()},
        (sums[places] < 0).astype(bool),
        widths,
        below,
        *(int((ones <= most).sum()) for most in (1, 2)),
    )


def largest_exponent(fmt: BlockFormat) -> int:
    """The largest exponent field."""
    return next((x.scale.largest_code for x in fmt.blocked if isinstance(x.scale, Exponent)), 0)


def _negated(fmt: BlockFormat) -> NDArray[np.int64]:
    """For each code, the code whose value is nearest to the negated value."""
    values = fmt.element.integers[: 1 << fmt.element.width].astype(np.int64)
    codes = np.setdiff1d(np.arange(len(values)), special_codes(fmt))
    distance = np.abs(values[codes][None] + values[:, None])
    return codes[np.argmin(distance, axis=1)]


def _largest_code(fmt: BlockFormat) -> np.int64:
    """The code of the largest number."""
    codes = np.setdiff1d(np.arange(1 << fmt.element.width), special_codes(fmt))
    return codes[np.argmax(fmt.element.integers[codes])]
