"""Vectors whose largest term cancels: what is left has any number of leading zeros."""

import numpy as np
from numpy.typing import NDArray

from axs6.golden.formats import BlockFormat, Exponent
from axs6.hw.core.layouts import scale_names
from axs6.hw.dot.shape import DotShape
from axs6.hw.fp32.common import SIGNIFICAND
from axs6.hw.fp32.number import LEAST_EXPONENT
from axs6.hw.units.blocks import random_blocks, special_codes
from axs6.hw.units.unit import Items

LENGTH = 4
"""Items of a vector: a term, two smaller ones, and the first one with the opposite sign."""

VECTORS = 768

ABOVE = SIGNIFICAND + 4
"""How far above the least exponent a term may be, from which what is left becomes subnormal."""


def cancelling(shape: DotShape) -> Items:
    """Vectors of block pairs without `outer`.

    In half of them the sum of the exponents is just above that of the least subnormal number, if
    formats have exponents. Other scales are random, and so are the codes.
    """
    rng = np.random.default_rng(10)
    largest = sum(map(largest_exponent, shape.formats))
    least = -LEAST_EXPONENT - shape.offset
    low = least + rng.integers(-shape.width, ABOVE, VECTORS)
    top = np.where(np.arange(VECTORS) % 2, low, rng.integers(0, largest, VECTORS, endpoint=True))
    below = np.zeros((VECTORS, LENGTH), np.int64)
    below[:, 1:-1] = np.cumsum(rng.integers(0, SIGNIFICAND + 2, (VECTORS, LENGTH - 2)), axis=1)
    totals = np.clip(top[:, None] - below, 0, largest).ravel()
    first = np.minimum(totals, largest_exponent(shape.a))
    items: Items = {}
    for side, fmt, exponents in (("a", shape.a, first), ("b", shape.b, totals - first)):
        fields = _without_nan(random_blocks(rng, fmt, shape.block, VECTORS * LENGTH), fmt)
        for name, level in zip(scale_names(fmt), fmt.blocked[::-1], strict=True):
            if isinstance(level.scale, Exponent):
                fields[name] = np.minimum(exponents, level.scale.largest_code)
        for name, array in fields.items():
            array[LENGTH - 1 :: LENGTH] = array[::LENGTH]
            items[f"{side}.{name}"] = array
    codes, negated = items["a.codes"], _negated(shape.a)
    codes[LENGTH - 1 :: LENGTH] = negated[codes[::LENGTH]]
    return {**items, "last": np.tile(np.arange(LENGTH) == LENGTH - 1, VECTORS).astype(np.int64)}


def largest_exponent(fmt: BlockFormat) -> int:
    """The largest exponent field."""
    return next((x.scale.largest_code for x in fmt.blocked if isinstance(x.scale, Exponent)), 0)


def _without_nan(fields: Items, fmt: BlockFormat) -> Items:
    """Blocks with 0 in place of what is no number."""
    found = dict(fields)
    found["codes"] = np.where(np.isin(found["codes"], special_codes(fmt)), 0, found["codes"])
    for name, level in zip(scale_names(fmt), fmt.blocked[::-1], strict=True):
        if level.scale.nan_code is not None:
            found[name] = np.where(found[name] == level.scale.nan_code, 0, found[name])
    return found


def _negated(fmt: BlockFormat) -> NDArray[np.int64]:
    """For each code that of the nearest value to its negative one."""
    values = fmt.element.integers.astype(np.int64)
    codes = np.setdiff1d(np.arange(len(values)), special_codes(fmt))
    distance = np.abs(values[codes][None] + values[:, None])
    return codes[np.argmin(distance, axis=1)]
