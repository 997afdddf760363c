"""Vectors so long that their totals are rounded, of formats without exponents.

Sums of blocks are then whole numbers of few places, and FP32 adds them without a rounding until the
total has 24 places.
"""

import numpy as np

from axs6.golden.formats import Shift
from axs6.hw.core.layouts import scale_names
from axs6.hw.dot.shape import DotShape
from axs6.hw.fp32.common import SIGNIFICAND
from axs6.hw.units.sum_operands import (
    largest_code,
    largest_exponent,
    negated_codes,
    number_blocks,
    sums_of,
)
from axs6.hw.units.unit import Items

VECTORS, ITEMS = 256, 1 << 16
"""Numbers of vectors, and of items of all of them, at most; one vector may be longer."""

LONGEST = 1 << 16
"""Items that come to a total of 24 places, at most."""

LAST = 32
"""Items behind these, of which some have few lanes that are not 0."""


def long_vectors(shape: DotShape) -> Items:
    """Vectors of block pairs without `outer`: the largest sums up to 24 places, then random ones.

    There are none if the sum of two blocks may be rounded, or if no vector is long enough.
    """
    rng = np.random.default_rng(13)
    largest, needed = _largest_pair(shape), length_needed(shape)
    count = int(np.clip(ITEMS // needed, 1, VECTORS)) if needed else 0
    climb = needed * (1 + np.arange(count) % 2)
    last = np.cumsum(climb + LAST) - 1
    ends = np.zeros(last[-1] + 1 if count else 0, np.int64)
    ends[last] = 1
    behind = np.zeros(len(ends), bool)
    behind[(last[:, None] - np.arange(LAST)).ravel()] = True
    others = number_blocks(rng, shape, int(behind.sum()))
    lanes = rng.integers(1, shape.block, (LAST * count, 1), endpoint=True)
    order = rng.permuted(np.tile(np.arange(shape.block), (LAST * count, 1)), axis=1)
    others["a.codes"][order >= lanes] = shape.a.element.zero_code
    items: Items = {"last": ends}
    for name, array in largest.items():
        items[name] = np.repeat(array, len(ends), axis=0)
        items[name][behind] = others[name]
    minus = (np.cumsum(ends) - ends) % 4 > 1
    codes = items["a.codes"]
    codes[minus] = negated_codes(shape.a)[codes[minus]]
    return items


def length_needed(shape: DotShape) -> int:
    """Pairs of blocks with the largest sum whose total has more places than FP32.

    0 if the sum of two blocks may be rounded, or if no vector is long enough.
    """
    needed = -(-(1 << SIGNIFICAND) // int(sums_of(_largest_pair(shape), shape)[0]))
    exponents = largest_exponent(shape.a) + largest_exponent(shape.b)
    return 0 if needed <= 2 or needed > LONGEST or exponents else needed


def _largest_pair(shape: DotShape) -> Items:
    """The pair of blocks with the largest sum."""
    items = number_blocks(np.random.default_rng(0), shape, 1)
    for side, fmt in zip("ab", shape.formats, strict=True):
        items[f"{side}.codes"][:] = largest_code(fmt)
        for name, level in zip(scale_names(fmt), fmt.blocked[::-1], strict=True):
            shifts = isinstance(level.scale, Shift)
            items[f"{side}.{name}"][:] = 0 if shifts else level.scale.largest_code
    return items
