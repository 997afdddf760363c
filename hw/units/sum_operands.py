"""Blocks of which the corners of sums are made."""

from collections.abc import Iterator, Sequence
from functools import lru_cache
from itertools import product

import numpy as np
from numpy.random import Generator
from numpy.typing import NDArray

from axs6.golden.formats import BlockFormat, Exponent, Real, Scale
from axs6.golden.terms import Terms
from axs6.hw.core.layouts import scale_names
from axs6.hw.dot.shape import WORD, DotShape
from axs6.hw.units.block_dot import products
from axs6.hw.units.blocks import blocks_of, is_nan, number_codes, random_blocks, special_codes
from axs6.hw.units.unit import Fields, Items


def exponent_level(fmt: BlockFormat) -> tuple[str, Scale] | None:
    """Name and scale of the level of a block whose codes have an exponent."""
    levels = zip(scale_names(fmt), fmt.blocked[::-1], strict=True)
    return next(
        ((name, x.scale) for name, x in levels if isinstance(x.scale, (Exponent, Real))), None
    )


def largest_exponent(fmt: BlockFormat) -> int:
    """The largest exponent of a block's scale; 0 without one.

    The exponent of a real scale is its exponent field less 1. The last field is not used, as some
    of its fractions may be NaN.
    """
    found = exponent_level(fmt)
    if found is None:
        return 0
    _, scale = found
    if isinstance(scale, Real):
        return (scale.largest_code >> scale.dtype.fraction_bits) - 2
    return scale.largest_code


def with_exponents(fmt: BlockFormat, items: Fields, exponents: NDArray[np.int64]) -> Items:
    """Blocks with these exponents, as of `largest_exponent`, in all groups; fractions stay."""
    found = exponent_level(fmt)
    if found is None:
        return dict(items)
    name, scale = found
    codes = items[name]
    each = np.minimum(exponents, largest_exponent(fmt)).reshape(-1, *[1] * (codes.ndim - 1))
    if isinstance(scale, Real):
        bits = scale.dtype.fraction_bits
        mask = (1 << scale.dtype.exponent_bits) - 1 << bits
        each = codes & ~mask | each + 1 << bits
    return {**items, name: np.broadcast_to(each, codes.shape)}


def number_blocks(rng: Generator, shape: DotShape, count: int) -> Items:
    """Random pairs of blocks of numbers."""
    items: Items = {}
    for side, fmt in zip("ab", shape.formats, strict=True):
        fields = random_blocks(rng, fmt, shape.block, count)
        no_number = np.isin(fields["codes"], special_codes(fmt))
        fields["codes"] = np.where(no_number, fmt.element.zero_code, fields["codes"])
        for name, level in zip(scale_names(fmt), fmt.blocked[::-1], strict=True):
            fields[name] = np.where(is_nan(level.scale, fields[name]), 0, fields[name])
        items |= {f"{side}.{name}": array for name, array in fields.items()}
    return items


def sums_of(items: Fields, shape: DotShape) -> NDArray[np.object_]:
    """The sum of each pair of blocks, a whole number of the least products."""
    found = products_of(items, shape)
    high = found["high"].astype(object) << WORD if "high" in found else 0
    return np.asarray(found["sum"].astype(object) + high, object)


def products_of(items: Fields, shape: DotShape) -> Items:
    """The fields of `DotShape.sum` for each pair of blocks."""
    a, b = (blocks_of(items, x, f"{side}.") for side, x in zip("ab", shape.formats, strict=True))
    return products(a, b, shape)


def negated_codes(fmt: BlockFormat) -> NDArray[np.int64]:
    """For each code, the code whose value is nearest to the negated value."""
    values = fmt.element.integers[: 1 << fmt.element.width].astype(np.int64)
    codes = number_codes(fmt)
    distance = np.abs(values[codes][None] + values[:, None])
    return codes[np.argmin(distance, axis=1)]


def largest_code(fmt: BlockFormat) -> np.int64:
    """The code of the largest number."""
    codes = number_codes(fmt)
    found: np.int64 = codes[np.argmax(fmt.element.integers[codes])]
    return found


STEP_BITS = 12
"""Bits of a number that the products of one step add up to, at most."""

Lane = tuple[int, int]
"""Codes of a and b in one lane."""

Product = tuple[int, Lane]
"""A product, a whole number of the least ones, and a lane that has it."""


def lanes_of_products(terms: Terms) -> list[Product]:
    """Every lane of two positive elements with its product, in ascending order of products."""
    first, second = (
        [(int(form.format.element.integers[x]), int(x)) for x in number_codes(form.format)]
        for form in (terms.a, terms.b)
    )
    positive = product([x for x in first if x[0] > 0], [y for y in second if y[0] > 0])
    return sorted(((x * y, (a, b)) for (x, a), (y, b) in positive), key=lambda x: x[0])


@lru_cache(maxsize=1)
def products_of_elements(terms: Terms) -> Sequence[Product]:
    """Every product of two positive elements, in ascending order, with one lane that has it."""
    return tuple(sorted(dict(lanes_of_products(terms)).items()))


class ProductSums:
    """Lanes whose products add up to a number, a whole number of the least products.

    Args:
        terms: of which a step has the lanes.
    """

    def __init__(self, terms: Terms) -> None:
        found = products_of_elements(terms)[::-1]
        self._lanes = [each for each in found if each[0] < 1 << STEP_BITS]
        largest = self._lanes[0][0] if self._lanes else 1
        self._most = terms.reduction
        blocked = terms.a.format.blocked
        self._bits = max(1, largest.bit_length() - 1) if blocked else STEP_BITS

    def steps(self, number: int) -> Iterator[tuple[list[Lane], int]]:
        """Lanes of each step, and the place of its bits in the number, the highest bits first.

        Of formats without scales, which cannot lower a step, only numbers of `STEP_BITS` bits have
        this sum. Where lanes are too few, or no product is small enough, the sum is less.
        """
        places = range((number.bit_length() - 1) // self._bits * self._bits, -1, -self._bits)
        for place in places:
            yield self.step(number >> place & (1 << self._bits) - 1), place

    def step(self, number: int) -> list[Lane]:
        """Lanes of one step, the largest products first."""
        chosen: list[Lane] = []
        for value, lane in self._lanes:
            while value <= number and len(chosen) < self._most:
                chosen.append(lane)
                number -= value
        return chosen
