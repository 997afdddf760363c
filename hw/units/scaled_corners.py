"""Special cases and random items of encoders whose scales are real numbers and integers."""

from collections.abc import Iterator
from dataclasses import replace
from fractions import Fraction
from itertools import chain
from typing import Any

import numpy as np
from numpy.random import Generator
from numpy.typing import NDArray

from axs6.golden.factors import Factor
from axs6.golden.finite import Largest
from axs6.golden.formats import CHANNEL, FP32, BlockFormat, Float, Integer, Level, Real, Selected
from axs6.golden.scaling import as_bf16, real_values
from axs6.hw.core.layouts import outer_names
from axs6.hw.units.encoder_corners import (
    beside_specials,
    boundaries,
    for_specials,
    lane_rows,
    near,
    special_patterns,
    two_bit_rows,
)
from axs6.hw.units.quotient_corners import (
    or_a_bit_above,
    outer_patterns,
    patterns_near,
    quotient_corners,
    remainder_corners,
)
from axs6.hw.units.selected_corners import nearly_equal_rows, rows_beside_bounds
from axs6.hw.units.unit import Items

OUTER = np.array(
    [1.0, 1 / 3, 3.0, 1.7 * 2.0**-60, 2.0**100, 2.0**-126, 2.0**-130, 2.0**-149, 3.4e38], np.float32
).view(np.uint32)
"""Outer scales of every size: the ends of FP32, subnormal ones, and no powers of two."""

NO_SCALE = np.array(
    [
        *(0, 0x80000000, 0xBF800000, FP32.infinity, 0xFF800000),
        *(FP32.infinity | 1 << bit for bit in range(FP32.fraction_bits)),
    ],
    np.uint32,
)
"""Patterns that are no positive finite number."""

AT_BOUNDARIES = 1 << 12
"""Blocks at random boundaries."""

A_BIT_OFF = 3 << 12
"""Blocks whose largest magnitude is one bit off."""

PRODUCTS_A_BIT_OFF = 3 << 12
"""Blocks of products that are one bit off."""

FAR_BELOW = 4
"""Blocks with subnormals under each binade."""

MANY = 1 << 8
"""Scales of a block under them, at most."""

OFF = 3
"""Units in the last place that they are off at most."""

FACTORS = 14
"""Scales of a block under each outer one, about."""


def scaled_corners(fmt: BlockFormat, dtype: Float, lanes: int) -> Items:
    """Special values under each outer scale, and values at boundaries of codes and of scales."""
    special = special_patterns(dtype)
    alone = np.zeros((len(special), lanes), np.int64)
    alone[np.arange(len(special)), np.arange(len(special)) % lanes] = special
    windows = np.resize(special, (-(-len(special) // lanes), lanes))
    outer = OUTER if fmt.outer else OUTER[:1]
    parts: list[tuple[NDArray[Any], NDArray[np.int64]]]
    first = (alone, windows, windows[::-1], *lane_rows(dtype, lanes))
    parts = [(np.resize(outer, len(x)), x) for x in first]
    parts += [(np.full(len(x), OUTER[0]), x) for x in _under_one(fmt, dtype, lanes)]
    parts += [(np.full(1, scale), np.zeros((1, lanes), np.int64)) for scale in outer]
    for scale in outer:
        for rows in _boundary_rows(fmt, dtype, lanes, scale.view(np.float32)):
            parts.append((np.full(len(rows), scale), rows))
    if fmt.outer:
        parts.append((np.resize(NO_SCALE, len(windows)), windows))
        parts += _without_scale(dtype, lanes)
        sizes = np.array([*map(float, boundaries(fmt.element))])
        parts += quotient_corners(fmt, dtype, lanes, sizes)
        parts.append(_subnormal(dtype, lanes))
    else:
        kinds = [kind(fmt, dtype, lanes) for kind in (_largest_a_bit_off, _products_a_bit_off)]
        if _scale_is_the_largest(fmt):
            kinds.append(_under_the_largest(fmt, dtype, lanes))
        kinds.append(_far_below(dtype, lanes))
        parts += [(np.full(len(x), OUTER[0]), x) for x in kinds]
    parts.append(_at_random_boundaries(fmt, dtype, lanes))
    if isinstance(fmt.element, Selected):
        factors = _factors(fmt)[0]
        for rows in (
            nearly_equal_rows(fmt, dtype, lanes),
            rows_beside_bounds(fmt, dtype, lanes, factors[np.frexp(factors)[0] == 0.5]),
        ):
            parts.append((np.full(len(rows), OUTER[0]), rows))
    scales, values = (np.concatenate(each).astype(np.int64) for each in zip(*parts, strict=True))
    parts = [(scales, values), (for_specials(scales), beside_specials(values, dtype))]
    if fmt.outer and fmt.blocked:
        parts.append(remainder_corners(fmt, dtype, lanes, sizes))
    scales, values = (np.concatenate(each).astype(np.int64) for each in zip(*parts, strict=True))
    return {**dict.fromkeys(outer_names(fmt), scales), "values": values}


def _without_scale(
    dtype: Float, lanes: int
) -> Iterator[tuple[NDArray[np.uint32], NDArray[np.int64]]]:
    """Random numbers under outer scales that are none: of any size, the largest, and with an
    infinity or NaN in each lane."""
    rng = np.random.default_rng(14)
    scale, lane, nan = np.indices((len(NO_SCALE), lanes, 2)).reshape(3, -1)
    shape = (len(scale), lanes)
    largest = dtype.max_finite - rng.integers(4 << dtype.fraction_bits, size=shape)
    special = rng.integers(dtype.infinity, size=shape)
    special[np.arange(len(scale)), lane] = dtype.infinity | nan
    for values in (rng.integers(dtype.infinity, size=shape), largest, special):
        yield NO_SCALE[scale], values


def _subnormal(dtype: Float, lanes: int) -> tuple[NDArray[np.int64], NDArray[np.int64]]:
    """Subnormals of a bit and random ones from each place below, under scales of their size."""
    rng = np.random.default_rng(16)
    high, low = np.array([(a, b) for a in range(dtype.fraction_bits) for b in range(a + 1)]).T
    patterns = 1 << high | rng.integers(1 << low) | 1 << low >> 1
    rows = np.stack([np.roll(patterns, 11 * lane) for lane in range(lanes)], axis=1)
    fractions = rng.integers(FP32.smallest_normal, size=len(rows))
    outer = FP32.bias + dtype.emin << FP32.fraction_bits | fractions
    return outer, rows | rng.integers(2, size=rows.shape) << dtype.width - 1


def _under_one(fmt: BlockFormat, dtype: Float, lanes: int) -> Iterator[NDArray[np.int64]]:
    """Values of one or two bits in their fractions, under the scale 1, if values can ask for it.

    Entries of a table are found by comparisons, in which no bit stands for another.
    """
    if fmt.element.listed:
        return
    (largest,) = patterns_near(dtype, np.array([float(fmt.element.largest)])).tolist()
    top = (largest >> dtype.fraction_bits) - dtype.bias << dtype.fraction_bits
    for rows in two_bit_rows(fmt.element, dtype, lanes):
        found = rows + top
        found[rows == dtype.bias << dtype.fraction_bits] = largest
        yield found


def _boundary_rows(
    fmt: BlockFormat, dtype: Float, lanes: int, outer: np.float32
) -> Iterator[NDArray[np.int64]]:
    """Blocks in which values lie at boundaries of an element under some scale."""
    held = max(Fraction(float(outer)), Fraction(2) ** FP32.emin)
    bounds = _bounds(fmt)
    for index, (factor, maxima) in enumerate(_scales(fmt)):
        patterns = near(dtype, [held * factor * x for x in bounds])
        both = np.concatenate([patterns, patterns | dtype.sign_bit])
        others = lanes - bool(maxima)
        rows = np.resize(both, (-(-len(both) // others), others))
        if not maxima:
            yield rows
        for turn, top in enumerate(near(dtype, [held * x for x in maxima])):
            some = rows if turn == 0 else np.roll(rows, -2 * (index + turn), axis=0)[:2]
            place = (index + turn) % lanes
            yield np.insert(some, place, top, axis=1)


def _bounds(fmt: BlockFormat) -> list[Fraction]:
    """Boundaries of the element under every shift, and of the shifts."""
    return [*chain.from_iterable(_bounds_of_shifts(fmt))]


def _bounds_of_shifts(fmt: BlockFormat) -> list[list[Fraction]]:
    """Boundaries of the element, and of the shifts, under each sum of shifts."""
    bounds = boundaries(fmt.element)
    most = sum(level.scale.largest_code for level in fmt.shifts)
    if most:
        bounds = [*bounds, Fraction(2) ** fmt.element.emax]
    return [[bound / (1 << shift) for bound in bounds] for shift in range(most + 1)]


def _divided(scale: Real, codes: NDArray[np.int64]) -> NDArray[np.float32]:
    """The numbers by whose reciprocals values are multiplied, about, under codes of a scale."""
    values = real_values(scale.dtype, codes)
    if scale.arithmetic == FP32:
        return values
    return np.float32(1) / as_bf16(np.float32(1) / values)


def _first_magnitudes(fmt: BlockFormat, codes: NDArray[np.int64]) -> NDArray[np.float32]:
    """The least largest magnitudes whose scales have these codes, or more, in FP32."""
    low, high = np.zeros(len(codes), np.uint32), np.full(len(codes), FP32.max_finite, np.uint32)
    while (low < high).any():
        middle = low + (high - low) // np.uint32(2)
        found, _ = Factor.one().find(fmt, fmt.blocked[-1], Largest(middle[:, None], None))
        reached = found[:, 0] >= codes
        high = np.where(reached, middle, high)
        low = np.where(reached, low, middle + np.uint32(1))
    return low.view(np.float32)


def _scales(fmt: BlockFormat) -> list[tuple[Fraction, list[Fraction]]]:
    """Scales of a block, and largest magnitudes at which they begin; 1 where it has none."""
    if not fmt.blocked:
        return [(Fraction(1), [])]
    scale, top = fmt.blocked[-1].scale, fmt.element.largest
    if isinstance(scale, Integer):
        most = scale.largest_code
        codes = np.unique(np.geomspace(1, most, FACTORS).astype(int)).tolist()
        return [(Fraction(code), [top * (code - 1), top * code]) for code in codes]
    assert isinstance(scale, Real)
    dtype = scale.dtype
    codes = np.linspace(dtype.smallest_normal, dtype.largest_code - 1, FACTORS).astype(int).tolist()
    if scale.arithmetic != FP32:
        some = np.array(codes)
        starts = [_first_magnitudes(fmt, some + more) for more in (0, 1)]
        columns = (_divided(scale, some).tolist(), *(x.tolist() for x in starts))
        return [(Fraction(x), [*map(Fraction, at)]) for x, *at in zip(*columns, strict=True)]
    found = []
    for code in codes:
        here, above = (Fraction(_number(dtype, each)) * dtype.unit for each in (code, code + 1))
        found.append((here, [top * here, top * (here + above) / 2]))
    return found


def _at_random_boundaries(
    fmt: BlockFormat, dtype: Float, lanes: int
) -> tuple[NDArray[np.int64], NDArray[np.int64]]:
    """Random outer scales, and blocks at boundaries under them, a few units in the last place off.

    Most have a largest magnitude at which the scale of the block changes; it is in a random lane.
    The others are at boundaries of elements.
    """
    rng = np.random.default_rng(13)
    shape = (AT_BOUNDARIES, lanes)
    outer = outer_patterns(rng, AT_BOUNDARIES) if fmt.outer else np.full(AT_BOUNDARIES, OUTER[0])
    held = outer.astype(np.uint32).view(np.float32).astype(np.float64)
    sizes = np.array([*map(float, _bounds(fmt))])
    factors, maxima = _factors(fmt)
    which = rng.integers(len(factors), size=AT_BOUNDARIES)
    values = held[:, None] * factors[which, None] * rng.choice(sizes, shape)
    rows = np.arange(AT_BOUNDARIES)
    values[rows, rng.integers(lanes, size=AT_BOUNDARIES)] = held * maxima[which]
    patterns = patterns_near(dtype, values) + rng.integers(-OFF, OFF, shape, endpoint=True)
    signs = rng.integers(2, size=shape) << dtype.width - 1
    return outer, np.clip(patterns, 0, dtype.max_finite) | signs


def _largest_a_bit_off(fmt: BlockFormat, dtype: Float, lanes: int) -> NDArray[np.int64]:
    """Blocks whose largest magnitude, or that over the largest element, is one bit above where
    their scale changes, or below.

    Half of the other lanes are at the change or one bit below, or at the largest magnitude or one
    bit below; half are at boundaries of elements, or one bit above or below.
    """
    rng = np.random.default_rng(15)
    shape = (A_BIT_OFF, lanes)
    factors, maxima = _factors(fmt)
    which = rng.integers(len(factors), size=A_BIT_OFF)
    bits = 1 << rng.integers(dtype.fraction_bits, size=(2, *shape))
    change = patterns_near(dtype, maxima[which])[:, None]
    top = change + rng.choice([-1, 0, 1, 1], change.shape) * bits[0, :, :1]
    top[::4] = patterns_near(dtype, _quotients_a_bit_above(rng, fmt, maxima[which]))[::4, None]
    top = np.clip(top, 1, dtype.max_finite)
    sizes = np.array([*map(float, _bounds(fmt))])
    others = patterns_near(dtype, factors[which, None] * rng.choice(sizes, shape))
    others += rng.choice([-1, 0, 1], shape) * bits[1]
    close = np.where(np.arange(A_BIT_OFF)[:, None] % 2, change, top)
    often = rng.choice([0.5, 1], (A_BIT_OFF, 1))
    close = close - bits[1] * (rng.random(shape) < often)
    values = np.where(rng.random(shape) < 0.5, close, others)
    values = np.clip(values, 0, top)
    values[np.arange(A_BIT_OFF), rng.integers(lanes, size=A_BIT_OFF)] = top[:, 0]
    return values | rng.integers(2, size=shape) << dtype.width - 1


def _products_a_bit_off(fmt: BlockFormat, dtype: Float, lanes: int) -> NDArray[np.int64]:
    """Blocks of values whose products with the reciprocal of their scale are one bit below a
    boundary of elements under a shift, or above. Another lane has the least largest magnitude that
    gives the block this scale."""
    rng = np.random.default_rng(21)
    shape, rows = (PRODUCTS_A_BIT_OFF, lanes), np.arange(PRODUCTS_A_BIT_OFF)
    factors, maxima = _factors(fmt)
    which = rng.integers(len(factors), size=PRODUCTS_A_BIT_OFF)
    sizes = rng.choice(np.array(_bounds_of_shifts(fmt), np.float64), PRODUCTS_A_BIT_OFF)
    sizes = np.take_along_axis(sizes, rng.integers(sizes.shape[1], size=shape), axis=1)
    bits = rng.choice([-1, -1, 1], shape) * 2.0 ** rng.integers(-FP32.fraction_bits, 0, shape)
    products = sizes + np.ldexp(bits, np.frexp(sizes)[1] - 1)
    top = np.maximum(patterns_near(dtype, maxima[which]), 1)
    values = np.minimum(patterns_near(dtype, factors[which, None] * products), top[:, None])
    values[rows, rng.integers(lanes, size=PRODUCTS_A_BIT_OFF)] = top
    return values | rng.integers(2, size=shape) << dtype.width - 1


def _far_below(dtype: Float, lanes: int) -> NDArray[np.int64]:
    """Blocks with a largest magnitude in each binade, and subnormals of one bit."""
    fields = np.tile(np.arange(1, dtype.exponent_special), FAR_BELOW)
    index = np.arange(len(fields))[:, None]
    rows = 1 << (5 * index + 7 * np.arange(lanes)) % dtype.fraction_bits
    rows[index[:, 0], index[:, 0] % lanes] = fields << dtype.fraction_bits | 1
    return rows


def _quotients_a_bit_above(
    rng: Generator, fmt: BlockFormat, maxima: NDArray[np.float64]
) -> NDArray[np.float64]:
    """Largest magnitudes at which, divided by the largest element, the scale changes, or whose
    quotients have a single 1 behind that number."""
    scale = fmt.blocked[-1].scale if fmt.blocked else None
    if not isinstance(scale, Real) or scale.arithmetic == FP32:
        largest = float(fmt.element.largest)
        return largest * or_a_bit_above(rng, maxima / largest)
    inverse = as_bf16(np.array(1 / fmt.element.largest, np.float32)).astype(np.float64)
    kept = np.ldexp(1.0, np.frexp(maxima * inverse)[1] - scale.arithmetic.fraction_bits - 2)
    return or_a_bit_above(rng, maxima * inverse // kept * kept) / inverse


def _scale_is_the_largest(fmt: BlockFormat) -> bool:
    """Whether the scale of a block is its largest magnitude itself, or a multiple."""
    scale = fmt.blocked[-1].scale if fmt.blocked else None
    return isinstance(scale, Real) and scale.dtype == FP32


def _under_the_largest(fmt: BlockFormat, dtype: Float, lanes: int) -> NDArray[np.int64]:
    """Blocks whose largest magnitude is what an outer scale is in `quotient_corners`."""
    rng = np.random.default_rng(18)
    alike = replace(fmt, levels=(Level(fmt.blocked[-1].scale, CHANNEL),))
    sizes = np.array([*map(float, boundaries(fmt.element))])
    found = []
    for outer, values in quotient_corners(alike, dtype, lanes, sizes):
        numbers = outer.astype(np.uint32).view(np.float32) * float(fmt.element.largest)
        top, sign = patterns_near(dtype, numbers.astype(np.float64))[:, None], dtype.sign_bit
        rows = np.minimum(values & sign - 1, top) | values & sign
        rows[np.arange(len(rows)), rng.integers(lanes, size=len(rows))] = top[:, 0]
        found.append(rows)
    return np.concatenate(found)


def _factors(fmt: BlockFormat) -> tuple[NDArray[np.float64], NDArray[np.float64]]:
    """Scales of a block, and the largest magnitude from which on each is taken."""
    largest = float(fmt.element.largest)
    if not fmt.blocked:
        return np.ones(1), np.full(1, largest)
    scale = fmt.blocked[-1].scale
    if isinstance(scale, Integer):
        numbers = np.arange(1.0, scale.largest_code + 1)
        return numbers, largest * (numbers - 1)
    assert isinstance(scale, Real)
    dtype = scale.dtype
    codes = np.unique(np.linspace(1, scale.largest_code, MANY).astype(np.int64)).tolist()
    if scale.arithmetic != FP32:
        numbers = _divided(scale, np.array(codes)).astype(np.float64)
        return numbers, _first_magnitudes(fmt, np.array(codes)).astype(np.float64)
    numbers, below = (
        np.array([float(_number(dtype, code - less) * dtype.unit) for code in codes])
        for less in (0, 1)
    )
    return numbers, largest * (numbers + below) / 2


def _number(dtype: Float, code: int) -> int:
    value = dtype.integer(code)
    assert isinstance(value, int)
    return value


def random_outer_scales(
    rng: Generator, fmt: BlockFormat, dtype: Float, values: NDArray[np.int64]
) -> Items:
    """Outer scales for blocks of values: most near what the largest magnitudes ask for."""
    if not fmt.outer:
        return {}
    count = len(values)
    fields = values >> dtype.fraction_bits & dtype.exponent_special
    field = fields.max(axis=1) - dtype.bias + FP32.bias
    scale = fmt.blocked[-1].scale.largest if fmt.blocked else Fraction(1)
    reach = float(fmt.element.largest * scale)
    near_field = field - round(np.log2(reach)) + rng.integers(-4, 5, count)
    pattern = np.clip(near_field, 0, FP32.exponent_special - 1) << FP32.fraction_bits
    pattern |= rng.integers(0, 1 << FP32.fraction_bits, count)
    anything = rng.integers(0, 1 << FP32.width, count)
    often = rng.random(count) < 0.85
    (name,) = outer_names(fmt)
    return {name: np.where(often, pattern, anything)}
