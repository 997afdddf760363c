"""Vectors of random blocks whose sums in FP32 are hard.

The largest term cancels, so that what is left has any number of leading zeros; terms are far apart;
one bit of a term is half a unit in the last place of the sum; sums are at either end of FP32; or
each lane counts, as no other has a larger product.
"""

from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.random import Generator
from numpy.typing import NDArray

from axs6.golden.formats import FP32, Exponent, Real, Shift
from axs6.hw.core.layouts import scale_names
from axs6.hw.dot.shape import DotShape
from axs6.hw.fp32.common import SIGNIFICAND
from axs6.hw.fp32.number import LEAST_EXPONENT
from axs6.hw.units.blocks import number_codes
from axs6.hw.units.real_scales import subnormal
from axs6.hw.units.sum_operands import (
    exponent_level,
    largest_code,
    largest_exponent,
    negated_codes,
    number_blocks,
    sums_of,
    with_exponents,
)
from axs6.hw.units.unit import Items

LENGTH = 4
"""Items of a vector that cancels: a term, two smaller ones, and the first one with the opposite
sign."""

CANCEL, APART, ENDS, ALIKE, LARGEST = 1024, 192, 2560, 4096, 512
"""Numbers of vectors of each kind."""

POOL = 1 << 16
"""Random pairs of blocks, of which those are taken whose sums have few ones."""

FEW = 256
"""Sums with few ones."""

FINITE = 270
"""Places, about, from the least subnormal number to the largest number."""

ANY = 256
"""Other sums, which are near the largest number, as those of few ones are once more."""

FULL = 256
"""Sums with the most ones in a row from the highest place on."""

TRIED, CARRIED = 1 << 17, 512
"""Pairs of sums of which those are taken that carry, and how many of these at most."""

GUARD = 3
"""Places below half a unit of a sum that carries, the lowest of which stands for all further."""

HIGH = 0.2
"""Share of sums with few ones near the largest number."""


def hard_sums(shape: DotShape) -> Items:
    """Vectors of block pairs without `outer`.

    Exponents of a vector that cancels are half of the time those of sums that are subnormal or just
    above. Scales that are no exponents are random, and so are codes.
    """
    # A generator for each kind, so that a change of one leaves the others as they are.
    rng = np.random.default_rng(11)
    of_low, of_few, of_cancelling, of_apart, of_carried = rng.spawn(5)
    of_ends, of_any, of_blocks, of_whole, of_small = rng.spawn(5)
    largest = sum(map(largest_exponent, shape.formats))
    least = -LEAST_EXPONENT - shape.offset
    low = of_low.integers(least - shape.width, least + SIGNIFICAND + 4, CANCEL)
    few = _with_few_ones(of_few, shape)
    ties = [_halfway(shape, few, least, largest), _carried(of_carried, shape, few, largest)]
    totals = [
        _cancelling(of_cancelling, low, largest),
        of_apart.integers(0, largest, (APART, 2), endpoint=True),
        np.concatenate([exponents for _, exponents in ties]),
        _at_ends(of_ends, least, few)[:, None],
        of_any.integers(least, least + FINITE - shape.width, (ALIKE + LARGEST, 1)),
    ]
    ends = [np.arange(x.shape[1]) == x.shape[1] - 1 for x in totals]
    last = [np.tile(end, len(x)) for end, x in zip(ends, totals, strict=True)]
    exponents = np.clip(np.concatenate([x.ravel() for x in totals]), 0, largest)
    items = number_blocks(of_blocks, shape, CANCEL * LENGTH + APART * 2)
    left = of_cancelling.integers(len(few.widths), size=(LENGTH - 2, CANCEL // 2))
    whole = _whole(of_whole, shape)
    items = {
        name: np.concatenate([array, *(x[name] for x, _ in ties), few.items[name], whole[name]])
        for name, array in items.items()
    }
    for name, array in items.items():
        array[: CANCEL * LENGTH : 2 * LENGTH] = few.items[name][: CANCEL // 2]
        if not largest:  # without exponents, only such sums are small enough
            for place in range(1, LENGTH - 1):
                array[place : CANCEL * LENGTH : 2 * LENGTH] = few.items[name][left[place - 1]]
        array[LENGTH - 1 : CANCEL * LENGTH : LENGTH] = array[: CANCEL * LENGTH : LENGTH]
    codes = items["a.codes"][: CANCEL * LENGTH]
    codes[LENGTH - 1 :: LENGTH] = negated_codes(shape.a)[codes[::LENGTH]]
    first = np.minimum(exponents, largest_exponent(shape.a))
    for side, fmt, each in (("a", shape.a, first), ("b", shape.b, exponents - first)):
        fields = {name: items[f"{side}.{name}"] for name in scale_names(fmt)}
        fields = with_exponents(fmt, fields, each)
        items |= {f"{side}.{name}": array for name, array in fields.items()}
    small = _under_subnormal_scales(of_small, shape, few)
    items = {name: np.concatenate([array, small[name]]) for name, array in items.items()}
    last.append(np.ones(len(small["a.codes"]), bool))
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
    """Pairs of blocks whose sums have few ones, those with a single one first: `ENDS`, then the
    first `FEW` again, `ANY` others, and those of `_carrying`, a larger one before each smaller one.

    Of each sum also whether it is negative, its width, and the width below its highest one; the
    numbers of those with up to one and up to two ones; and the place of the smaller one's bit that
    is half a unit, for each pair that carries.
    """

    items: Items
    negative: NDArray[np.bool_]
    widths: NDArray[np.int64]
    below: NDArray[np.int64]
    powers: int
    pairs: int
    halves: NDArray[np.int64]


def _under_subnormal_scales(rng: Generator, shape: DotShape, few: _Few) -> Items:
    """Sums with few ones, each a vector, under subnormal scales, if a format's scales are real."""
    levels = [(side, exponent_level(fmt)) for side, fmt in zip("ab", shape.formats, strict=True)]
    real = [(f"{side}.{x[0]}", x[1]) for side, x in levels if x and isinstance(x[1], Real)]
    items = {name: array[: FEW * bool(real)] for name, array in few.items.items()}
    for name, scale in real:
        codes = items[name]
        items[name] = subnormal(rng, scale.dtype, codes.size).reshape(codes.shape)
    return items


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
    rng, sums = np.random.default_rng(12), FEW if largest else 0  # none without exponents
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
    return _two_sums(shape, few, (large, small), (top, top - distance), unlike)


def _carried(
    rng: Generator, shape: DotShape, few: _Few, largest: int
) -> tuple[Items, NDArray[np.int64]]:
    """Two sums that carry, of which the smaller one has half a unit in the last place above."""
    pairs = len(few.halves) if largest else 0
    large, small = len(few.widths) - 2 * len(few.halves) + np.arange(2 * pairs).reshape(-1, 2).T
    distance = SIGNIFICAND + few.halves[:pairs] - few.widths[large]
    low, high = np.clip(distance, 0, largest), largest + np.minimum(distance, 0)
    top = rng.integers(low, high, endpoint=True)
    return _two_sums(shape, few, (large, small), (top, top - distance), np.zeros(pairs, bool))


def _two_sums(
    shape: DotShape,
    few: _Few,
    sums: tuple[NDArray[np.int64], NDArray[np.int64]],
    totals: tuple[NDArray[np.int64], NDArray[np.int64]],
    unlike: NDArray[np.bool_],
) -> tuple[Items, NDArray[np.int64]]:
    """Pairs of sums of `few` under exponents, of the same sign or of opposite signs; the blocks,
    and the sums of exponents. Every second pair is turned round."""
    (large, small), exponents = sums, np.stack(totals, axis=1)
    index = np.stack(sums, axis=1)
    items = {name: array[index] for name, array in few.items.items()}
    wrong = (few.negative[large] ^ few.negative[small]) != unlike
    codes = items["a.codes"]
    codes[wrong, 1] = negated_codes(shape.a)[codes[wrong, 1]]
    turned = np.arange(len(index)) % 2 > 0
    for array in (exponents, *items.values()):
        array[turned] = array[turned, ::-1]
    return {name: array.reshape(-1, *array.shape[2:]) for name, array in items.items()}, exponents


def _at_ends(rng: Generator, least: int, few: _Few) -> NDArray[np.int64]:
    """Sums of exponents with which sums are subnormal, or near the largest number.

    Of the first ones the highest 1 is half of the least number; of half of the others the next 1.
    """
    widths, first = few.widths, np.arange(len(few.widths)) < FEW
    low = least - 1 - rng.integers(0, widths, endpoint=True)
    low = np.where(rng.random(len(low)) < 0.5, least - few.below, low)
    low = np.where(first, least - widths, low)
    high = least + LEAST_EXPONENT + FP32.bias + 1 - widths + rng.integers(0, 2, len(widths))
    large = (rng.random(len(widths)) < HIGH) & ~first
    large[ENDS:] = True
    return np.where(large, high, low)


def _whole(rng: Generator, shape: DotShape) -> Items:
    """Pairs of blocks with the same codes in all lanes, of each product about equally many; and
    with the largest products, of one sign, in all lanes but one or two."""
    items = number_blocks(rng, shape, ALIKE + LARGEST)
    pairs, values = _products(rng, shape)
    pairs = pairs[:, np.resize(_one_of_each_first(values), ALIKE)]
    minus = rng.random((2, LARGEST, shape.block)) < 0.5
    minus[1] = minus[0] ^ (np.arange(LARGEST) % 2 > 0)[:, None]
    lanes = rng.integers(shape.block, size=(LARGEST, 2))
    for index, (side, fmt) in enumerate(zip("ab", shape.formats, strict=True)):
        codes, largest = items[f"{side}.codes"], largest_code(fmt)
        codes[:ALIKE] = pairs[index][:, None]
        ends = np.where(minus[index], negated_codes(fmt)[largest], largest)
        np.put_along_axis(ends, lanes, np.take_along_axis(codes[ALIKE:], lanes, axis=1), axis=1)
        codes[ALIKE:] = ends
        for name, level in zip(scale_names(fmt), fmt.blocked[::-1], strict=True):
            if isinstance(level.scale, Shift):
                items[f"{side}.{name}"][ALIKE:] = 0
    return items


def _products(rng: Generator, shape: DotShape) -> tuple[NDArray[np.int64], NDArray[np.int64]]:
    """Pairs of codes of numbers in random order, of shape (2, n), and their products: all pairs, or
    some of more than `POOL`."""
    numbers = [number_codes(fmt) for fmt in shape.formats]
    pairs = np.stack(np.meshgrid(*numbers)).reshape(2, -1)
    pairs = rng.permutation(pairs, axis=1)[:, :POOL]
    a, b = (x.element.integers[each] for x, each in zip(shape.formats, pairs, strict=True))
    return pairs, a.astype(np.int64) * b.astype(np.int64)


def _one_of_each_first(values: NDArray[Any]) -> NDArray[np.int64]:
    """Indices of values: first one of each value, then a second one, and so on."""
    order = np.argsort(values, kind="stable")
    first = np.flatnonzero(np.append(True, values[order][1:] != values[order][:-1]))
    counts = np.diff(np.append(first, len(values)))
    turn = np.arange(len(values)) - np.repeat(first, counts)
    return order[np.argsort(turn, kind="stable")]


def _with_few_ones(rng: Generator, shape: DotShape) -> _Few:
    """Pairs of blocks, of which each bit of the sum may be the one that decides a rounding."""
    of_blocks, of_made, of_others, of_carrying = rng.spawn(4)
    items = number_blocks(of_blocks, shape, POOL)
    large = np.arange(shape.block) < rng.integers(0, shape.block, (POOL, 1))
    nothing = rng.random((POOL, shape.block)) < rng.choice([0, 0, 0.5, 0.9], (POOL, 1))
    large &= ~nothing
    for side, fmt in zip("ab", shape.formats, strict=True):
        codes = np.where(nothing, fmt.element.zero_code, items[f"{side}.codes"])
        items[f"{side}.codes"] = np.where(large, largest_code(fmt), codes)
        for name, level in zip(scale_names(fmt), fmt.blocked[::-1], strict=True):
            if isinstance(level.scale, Shift):
                shifts = items[f"{side}.{name}"]
                size = shape.block // shifts.shape[-1]
                shifts *= ~large[:, size - 1 :: size] if shifts.ndim > 1 else 1
    made = _made_of_few_ones(of_made, shape, POOL // 2)
    items = {name: np.concatenate([made[name], array]) for name, array in items.items()}
    sums = sums_of(items, shape)
    found, where = (x[1:] for x in np.unique(np.append(0, np.abs(sums)), return_index=True))
    ones = np.array([each.bit_count() for each in found])
    few = np.argsort(ones, kind="stable")[:ENDS]
    others = of_others.integers(len(found), size=ANY)
    larger, smaller, halves = _carrying(of_carrying, np.asarray(found, object))
    pairs = np.stack([larger, smaller], axis=1).ravel()
    chosen = np.concatenate([np.resize(few, ENDS), np.resize(few, FEW), others, pairs])
    widths = np.array([each.bit_length() for each in found[chosen]])
    below = np.array([(each ^ 1 << each.bit_length() >> 1).bit_length() for each in found[chosen]])
    places = where[chosen] - 1
    return _Few(
        {name: array[places] for name, array in items.items()},
        (sums[places] < 0).astype(bool),
        widths,
        below,
        int((ones <= 1).sum()),
        int((ones <= 2).sum()),
        halves,
    )


def _carrying(
    rng: Generator, sums: NDArray[np.object_]
) -> tuple[NDArray[np.int64], NDArray[np.int64], NDArray[np.int64]]:
    """Pairs of sums that carry into one place more where a bit of the smaller one is half a unit in
    the last place there, with zeros below it and a 1 in the lowest place that is kept, or further.

    Returns:
        The indices of the larger and of the smaller ones, and the places of these bits.
    """
    widths = np.array([each.bit_length() for each in sums])
    small = rng.integers(len(sums), size=TRIED)
    half = rng.integers(GUARD, max(GUARD + 1, int(widths.max())), TRIED)
    places = half.astype(object)
    below = sums[small] & (1 << places) - 1
    tie = (sums[small] >> places & 1 > 0) & (below > 0) & (below >> places - GUARD + 1 == 0)
    ties = np.resize(np.flatnonzero(tie), TRIED * bool(tie.any()))
    small, half = small[ties], half[ties]
    leading = widths - [(each ^ (1 << each.bit_length()) - 1).bit_length() for each in sums]
    large = rng.choice(np.argsort(-leading, kind="stable")[:FULL], len(ties))
    distance = SIGNIFICAND + half - widths[large]
    up, down = np.maximum(distance, 0).astype(object), np.maximum(-distance, 0).astype(object)
    added = (sums[large] << up) + (sums[small] << down)
    carries = np.array([each.bit_length() for each in added]) > widths[large] + up
    found = np.flatnonzero(carries.astype(bool))[:CARRIED]
    return large[found], small[found], half[found]


def _made_of_few_ones(rng: Generator, shape: DotShape, count: int) -> Items:
    """Pairs of blocks under scales of 1 whose sums have one to three ones, where lanes reach them.

    Each lane takes the largest product that is left.
    """
    pairs, values = _products(rng, shape)
    sizes, first = np.unique(values, return_index=True)
    places = min(63, (int(sizes[-1]) * shape.block).bit_length())
    left = np.bitwise_or.reduce(1 << rng.integers(places, size=(3, count)))
    codes = np.zeros((2, count, shape.block), np.int64)
    for lane in range(shape.block):
        index = np.searchsorted(sizes, left, "right") - 1
        codes[:, :, lane] = pairs[:, first[index]]
        left = left - sizes[index]
    minus = rng.random(count) < 0.5
    codes[0, minus] = negated_codes(shape.a)[codes[0, minus]]
    items = number_blocks(rng, shape, count)
    for side, fmt, each in zip("ab", shape.formats, codes, strict=True):
        items[f"{side}.codes"] = each
        for name, level in zip(scale_names(fmt), fmt.blocked[::-1], strict=True):
            array, scale = items[f"{side}.{name}"], level.scale
            if isinstance(scale, Real):
                array &= ~((1 << scale.dtype.fraction_bits) - 1)
            elif not isinstance(scale, Exponent):
                array[:] = int(not isinstance(scale, Shift))
    return items
