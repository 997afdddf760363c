"""The Hadamard transform as a unit."""

import numpy as np
from numpy.random import Generator
from numpy.typing import NDArray

from axs6.golden.formats import Float
from axs6.golden.formats.floating import INPUT_DTYPES
from axs6.golden.hadamard import GUARD_BITS, SIZES, hadamard_bits
from axs6.hw.hadamard import Hadamard
from axs6.hw.units.encoder_corners import SPECIALS, beside_specials, exponent_rows, lane_rows
from axs6.hw.units.quotient_corners import patterns_near
from axs6.hw.units.unit import Fields, Items, Parameters, Unit

Rows = NDArray[np.int64]

TURNS = 256
"""Rows for each place of a sum's highest 1, in all lanes."""


def hadamard_items(items: Fields, parameters: Parameters) -> Items:
    """The transform of each item."""
    patterns = items["values"].astype(np.uint64)
    return {"values": hadamard_bits(patterns, INPUT_DTYPES[parameters["dtype"]])}


def corner_rows(dtype: Float, size: int) -> Rows:
    """Rows of patterns: special values, and the limits of range, alignment and rounding."""
    rng = np.random.default_rng(size)
    sign = dtype.sign_bit
    one = dtype.bias << dtype.fraction_bits
    specials = [dtype.quiet_nan, dtype.infinity + 1, dtype.infinity, dtype.infinity | sign]
    limits = [0, sign, 1, sign | 1, dtype.smallest_normal - 1, dtype.smallest_normal]
    limits += [dtype.largest_code, sign | dtype.largest_code, one, one + 1, sign | one]
    same = np.repeat(np.array([specials + limits]).T, size, axis=1)
    alone = np.zeros((len(specials + limits), size), np.int64)
    alone[np.arange(len(alone)), np.arange(len(alone)) * 7 % size] = specials + limits
    among = random_rows(dtype, size, rng, len(alone))
    among = np.where(alone != 0, alone, among)
    mixed = rng.choice(limits, (16, size))
    two = np.where(rng.random((16, size)) < 0.1, rng.choice(specials[2:], (16, size)), one)
    return np.concatenate(
        [
            *(same, alone, among, mixed, two, _distances(dtype, size, rng)),
            *(_cancelling(dtype, size, rng), *lane_rows(dtype, size)),
            *exponent_rows(dtype, size, nan=True),
            beside_specials(random_rows(dtype, size, rng, SPECIALS), dtype),
        ]
    )


def _cancelling(dtype: Float, size: int, rng: Generator) -> Rows:
    """Rows of which each sum in turn has its highest 1 at each place, and one other at most.

    The first value cancels the others, as far as its significand reaches, and the second one what
    is left. They are integers, in units of the last place that is kept.
    """
    bits = dtype.fraction_bits + 1
    lane, place, turn = np.indices((size, bits + GUARD_BITS, TURNS // size)).reshape(3, -1)
    wanted = 1 << place | (turn > 0) << rng.integers(0, place + 1)
    signs = 1 - 2 * (np.bitwise_count(lane[:, None] & np.arange(size)) & 1).astype(np.int64)
    most = (1 << bits + GUARD_BITS) // (size - 2)
    values = signs * _rounded(rng.integers(0, most, (len(lane), size)), bits)
    values[:, :2] = 0
    for index in (0, 1):  # the signs of both are those of the lane
        left = (wanted - (signs * values).sum(axis=1)) * signs[:, index]
        values[:, index] = _rounded(left, bits)
    unit = -bits - rng.integers(0, dtype.bias // 2, len(lane))
    numbers = np.ldexp(np.abs(values).astype(np.float64), unit[:, None])
    return patterns_near(dtype, numbers) | np.where(values < 0, dtype.sign_bit, 0)


def _rounded(values: Rows, bits: int) -> Rows:
    """Integers of this many bits and zeros behind them."""
    widths = np.frexp(np.abs(values).astype(np.float64))[1]
    places = np.maximum(widths - bits, 0)
    return np.sign(values) * (np.abs(values) >> places << places)


def _distances(dtype: Float, size: int, rng: Generator) -> Rows:
    """Rows whose values are each number of binades below the largest, to beyond the last bit."""
    depth = dtype.fraction_bits + GUARD_BITS + 3
    top = min(dtype.exponent_special - 1, depth + 2)
    below = np.minimum(np.arange(depth), top - 1)[:, None]
    fraction = rng.integers(0, 1 << dtype.fraction_bits, (depth, size))
    rows = (top - below << dtype.fraction_bits) + fraction
    rows[:, 0] = (top << dtype.fraction_bits) + fraction[:, 0]
    return rows | np.where(rng.random(rows.shape) < 0.5, dtype.sign_bit, 0)


def random_rows(dtype: Float, size: int, rng: Generator, count: int) -> Rows:
    """Rows of patterns spread over 1 to 40 binades, and rows of arbitrary patterns."""
    width = 1 << dtype.exponent_bits
    top = rng.integers(1, width - 1, (count, 1))
    spread = rng.choice([1, 3, 8, 40], (count, 1))
    field = np.maximum(top - rng.integers(0, spread, (count, size)), 0)
    fraction = rng.integers(0, 1 << dtype.fraction_bits, (count, size))
    sign = rng.integers(0, 2, (count, size)) << dtype.width - 1
    rows = sign | field << dtype.fraction_bits | fraction
    any_bits = rng.integers(0, 1 << dtype.width, (count, size))
    return np.where(rng.random((count, 1)) < 0.05, any_bits, rows)


def _corners(parameters: Parameters) -> Items:
    return {"values": corner_rows(INPUT_DTYPES[parameters["dtype"]], parameters["block"])}


def _random(parameters: Parameters, rng: Generator, count: int) -> Items:
    dtype = INPUT_DTYPES[parameters["dtype"]]
    return {"values": random_rows(dtype, parameters["block"], rng, count)}


HADAMARD = Unit(
    name="hadamard",
    summary="blocks of values are multiplied by a Hadamard matrix",
    component=Hadamard,
    values=lambda formats: {"block": SIZES, "dtype": tuple(INPUT_DTYPES)},
    golden=hadamard_items,
    corners=_corners,
    random=_random,
    operation="value",
    blocks=False,
)
