"""Special cases of dot products of any block formats."""

from collections.abc import Iterator

import numpy as np
from numpy.typing import NDArray

from axs6.golden.formats import FP32, BlockFormat, Real
from axs6.hw.core.layouts import scale_names
from axs6.hw.dot.shape import DotShape
from axs6.hw.fp32.number import LEAST_EXPONENT
from axs6.hw.units.block_dot import end_scales
from axs6.hw.units.blocks import end_codes, is_nan, special_codes
from axs6.hw.units.hard_sums import hard_sums
from axs6.hw.units.long_vectors import long_vectors
from axs6.hw.units.outer_scales import aimed_scales
from axs6.hw.units.sum_operands import (
    exponent_level,
    largest_exponent,
    number_blocks,
    products_of,
    with_exponents,
)
from axs6.hw.units.unit import Items
from axs6.hw.units.vectors import fp32_terms

AIMED = 1 << 12
"""Pairs of blocks whose scales are chosen for their sums."""

DISTANCE = 45
"""Distances of two terms, up to this, at which a sum of them is rounded."""

Pair = tuple[int, int, int]
"""Rows of codes of both operands, and the sum of their exponents."""

PLUS, MINUS, ONE, MINUS_ONE, ZERO, SPECIAL = range(6)
"""Rows of codes: the largest value in every lane, of either sign; the smallest one in a lane, of
either sign; zeros; and, in a lane, what is no number, where there is such a code."""


def format_corners(shape: DotShape) -> Items:
    """Vectors that overflow, underflow, cancel, and round at every distance."""
    vectors = list(_vectors(shape))
    pairs = [pair for vector in vectors for pair in vector]
    totals = np.array([total for _, _, total in pairs])
    first = np.minimum(totals, largest_exponent(shape.a))
    items: Items = {}
    nan = len(pairs) // 16  # of different numbers of rows, so that one operand alone is NaN
    for side, fmt, exponents, column in (
        ("a", shape.a, first, 0),
        ("b", shape.b, totals - first, 1),
    ):
        rows = _rows(fmt, shape.block)
        scales = end_scales(fmt, shape.block, len(pairs), nan - 1 - column)
        held = with_exponents(fmt, scales, exponents)
        for name, level in zip(scale_names(fmt), fmt.blocked[::-1], strict=True):
            codes = scales[name]
            scales[name] = np.where(is_nan(level.scale, codes), codes, held[name])
        items |= {f"{side}.{name}": array for name, array in scales.items()}
        items[f"{side}.codes"] = rows[np.array([pair[column] for pair in pairs])]
    last = [[0] * (len(vector) - 1) + [1] for vector in vectors]
    items["last"] = np.concatenate(last)
    return with_hard_sums(items, shape)


def with_hard_sums(items: Items, shape: DotShape) -> Items:
    """Items, and behind them those of `hard_sums`, `long_vectors` and `_aimed_blocks`."""
    parts = [items, hard_sums(shape), long_vectors(shape), _aimed_blocks(shape)]
    return {name: np.concatenate([x[name] for x in parts]) for name in items}


def _aimed_blocks(shape: DotShape) -> Items:
    """Pairs of blocks, each a vector, whose FP32 scales are chosen for their sums; none if there
    are no such scales. The significand of the first scale has any width."""
    levels = [exponent_level(fmt) for fmt in shape.formats]
    wide = all(x and isinstance(x[1], Real) and x[1].dtype == FP32 for x in levels)
    rng = np.random.default_rng(14)
    items = number_blocks(rng, shape, AIMED if wide else 0)
    items["last"] = np.ones(len(items["a.codes"]), np.int64)
    if not wide:
        return items
    names = [f"{side}.{x[0]}" for side, x in zip("ab", levels, strict=True) if x]
    one = FP32.bias << FP32.fraction_bits
    first, second = (items[name] for name in names)
    kept = rng.integers(FP32.fraction_bits, size=first.shape, endpoint=True)
    moved = rng.integers(-20, 20, first.shape) << FP32.fraction_bits
    first[:] = one + moved + (rng.integers(1 << kept) << FP32.fraction_bits - kept)
    second[:] = one
    totals = fp32_terms(products_of(items, shape), shape)
    aimed = aimed_scales(rng, totals) & FP32.sign_bit - 1
    second[:] = np.minimum(aimed, FP32.max_finite).reshape(second.shape)
    return items


def _vectors(shape: DotShape) -> Iterator[list[Pair]]:
    largest = largest_exponent(shape.a) + largest_exponent(shape.b)
    least = -LEAST_EXPONENT - shape.offset
    near = range(least - shape.width - 2, least + 3)
    over = range(least + 277 - shape.width - 2, least + 277 + 3)
    totals = {0, largest, largest // 2, *near, *over}
    middle = min(largest, max(0, least + 100))
    for total in sorted(x for x in totals if 0 <= x <= largest):
        for x in range(SPECIAL + 1):
            yield [(x, ONE, total)]
            yield [(ONE, x, total)]
        for x in range(SPECIAL + 1):
            yield from ([(x, PLUS, total), (y, PLUS, total)] for y in range(SPECIAL + 1))
    for distance in range(DISTANCE):
        low = max(0, middle - distance)
        for x, y in ((PLUS, ONE), (MINUS, ONE), (PLUS, MINUS_ONE), (ONE, PLUS)):
            yield [(PLUS, PLUS, middle), (x, y, low)]
            yield [(ONE, ONE, middle), (x, y, low), (MINUS, PLUS, low)]


def _rows(fmt: BlockFormat, block: int) -> NDArray[np.int64]:
    values = fmt.element.integers
    ends = end_codes(fmt)
    codes = [ends[np.argmax(values[ends])], ends[np.argmin(values[ends])]]
    rows = np.full((SPECIAL + 1, block), fmt.element.zero_code, np.int64)
    rows[PLUS], rows[MINUS] = codes
    plus, minus = ends[values[ends] > 0], ends[values[ends] < 0]
    rows[ONE, 0] = plus[np.argmin(values[plus])]
    rows[MINUS_ONE, -1] = minus[np.argmax(values[minus])] if minus.size else rows[MINUS, 0]
    special = special_codes(fmt)
    rows[SPECIAL, block // 2] = special[0] if special.size else 0
    return rows
