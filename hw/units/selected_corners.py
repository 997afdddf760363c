"""Corners of encoders that choose by errors, an element or a scale: blocks in which two have nearly
the same error; and for a selection of elements, blocks beside the bounds of one that fit it."""

from dataclasses import replace
from fractions import Fraction

import numpy as np
from numpy.random import Generator
from numpy.typing import NDArray

from axs6.golden.encode import encode
from axs6.golden.formats import BlockFormat, Element, Float, Selected
from axs6.hw.units.encoder_corners import as_values, boundaries
from axs6.hw.units.quotient_corners import patterns_near

PAIRS = 1 << 12
"""Pairs of blocks from which such blocks are looked for."""

BESIDE = 1 << 13
"""Blocks beside bounds."""

FITS = 0.95
"""Share of the most that an element's squared error is less than the other's, at least, where it is
best by far."""

BINADES = 4
"""Binades below the largest magnitude in which values lie."""


def nearly_equal_rows(fmt: BlockFormat, dtype: Float, lanes: int) -> NDArray[np.int64]:
    """Blocks, two and two, of which one pattern differs by 1, and the element or the scale with it.

    Between two blocks with different choices, lanes change one after the other, and then the
    pattern of the lane that changes the choice is halved. The largest magnitude is that of both,
    and scales of tensors are 1.
    """
    rng = np.random.default_rng(17)
    one, width = dtype.bias << dtype.fraction_bits, 1 << dtype.fraction_bits
    top = one + rng.integers(width, size=(PAIRS, 1))
    signs = rng.integers(2, size=(PAIRS, lanes)) << dtype.width - 1
    ends = top - rng.integers(1, BINADES * width, (2, PAIRS, lanes))
    ends[:, :, 0] = top[:, 0]
    blocked = replace(fmt, levels=fmt.blocked)

    def choice(magnitudes: NDArray[np.int64], signs: NDArray[np.int64]) -> NDArray[np.integer]:
        """The element of each row, or the code of its scale."""
        rows = magnitudes.reshape(-1, lanes) | np.repeat(signs, magnitudes.size // signs.size, 0)
        found = encode(as_values(dtype, rows), blocked)
        chosen = found.scales[-1] if found.selected is None else found.selected
        return np.asarray(chosen).reshape(magnitudes.shape[:-1])

    first, last = (choice(x, signs) for x in ends)
    some = np.flatnonzero(first != last)
    (a, b), signs, first = ends[:, some], signs[some], first[some]
    if not some.size:
        return np.zeros((0, lanes), np.int64)
    steps = np.where(np.arange(lanes) < np.arange(lanes + 1)[:, None], b[:, None], a[:, None])
    turn = np.argmax(choice(steps, signs) != first[:, None], axis=1)
    index, lane = np.arange(len(some)), turn - 1
    low, high = a[index, lane], b[index, lane]
    row = steps[index, lane]
    while (abs(high - low) > 1).any():
        middle = (low + high) // 2
        row[index, lane] = middle
        same = choice(row, signs) == first
        low, high = np.where(same, middle, low), np.where(same, high, middle)
    found = np.repeat(row[:, None], 2, axis=1)
    found[index, :, lane] = np.stack([low, high], axis=1)
    return np.asarray(found.reshape(-1, lanes) | np.repeat(signs, 2, axis=0), np.int64)


def rows_beside_bounds(
    fmt: BlockFormat, dtype: Float, lanes: int, factors: NDArray[np.float64]
) -> NDArray[np.int64]:
    """Blocks under some scales, powers of two, of which each fits one of both elements.

    Of its values over the scale, some are midpoints of that element, or a single 1 above or below,
    in units of the selection; the others are values of the element.
    """
    rng = np.random.default_rng(19)
    shape, element = (BESIDE, lanes), fmt.element
    assert isinstance(element, Selected)
    single = np.arange(lanes) == rng.integers(lanes, size=(BESIDE, 1))
    many = rng.random(shape) < rng.choice([0.5, 1], (BESIDE, 1))
    at_bound = np.where(rng.random((BESIDE, 1)) < 0.5, single, many)
    second = rng.integers(2, size=(BESIDE, 1))
    first, last = element.parts
    pairs = ((last, first), (first, last))
    number = np.where(second, *(_numbers(rng, *pair, element.unit, at_bound) for pair in pairs))
    places = dtype.fraction_bits + element.divisor.bit_length() - np.frexp(number)[1]
    places = np.maximum(places, 1)
    one = 1 << rng.integers(places) + np.arange(element.divisor.bit_length())[:, None, None]
    found = (number << places) + rng.choice([-1, 0, 1, 1], shape) * one * at_bound
    # The value is a pattern if its number of units is a multiple of the divisor.
    whole = np.argmax(found % element.divisor == 0, axis=0)
    found = np.take_along_axis(found, whole[None], axis=0)[0]
    sizes = np.ldexp(found / element.divisor, -places) * float(element.unit * element.divisor / 2)
    scales = rng.choice(factors, (BESIDE, 1))
    top = patterns_near(dtype, scales * float(element.largest))
    values = np.minimum(patterns_near(dtype, scales * sizes), top)
    np.put_along_axis(values, rng.integers(lanes, size=(BESIDE, 1)), top, axis=1)
    return values | rng.integers(2, size=shape) << dtype.width - 1


def _numbers(
    rng: Generator, part: Element, other: Element, unit: Fraction, at_bound: NDArray[np.bool_]
) -> NDArray[np.int64]:
    """Midpoints of an element, and elsewhere its values, or where it is best by far, in half units.

    That is at midpoints of the other element that are near its values.
    """
    bounds, others = (
        np.array([int(2 * bound / unit) for bound in boundaries(x)]) for x in (part, other)
    )
    values, worse = (np.unique(np.abs(x.integers)) * int(2 * x.unit / unit) for x in (part, other))
    errors = [np.abs(others[:, None] - x).min(axis=1) ** 2 for x in (values, worse)]
    gain = errors[1] - errors[0]
    best = others[gain >= min(FITS * gain.max(), gain.max())]
    shape = at_bound.shape
    found = np.where(
        rng.random((shape[0], 1)) < 0.5, rng.choice(values[1:], shape), rng.choice(best, shape)
    )
    return np.where(at_bound, rng.choice(np.setdiff1d(bounds, values), shape), found)
