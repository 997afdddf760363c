"""Special cases of dot products that add products in pairs, and have no subnormal numbers."""

from bisect import bisect_left
from collections.abc import Iterator, Sequence

import numpy as np
from numpy.random import Generator

from axs6.golden.terms import Terms
from axs6.hw.units.accumulate_steps import Corner, Vector, negated, output_of, zero_code
from axs6.hw.units.sum_operands import Product, products_of_elements

STEPS = 1 << 14
"""Random steps."""

ABOUT = 2
"""Binades above or below the least normal number, up to this."""

LARGER = 60
"""Binades by which a step is above it where an operand is near, fewer than this."""

LEFT = 6
"""Bits of what is left where a pair nearly cancels, up to this."""


def pairwise_corners(terms: Terms) -> Iterator[Vector]:
    """A step, in which pairs are zeros, random or nearly cancel. A product, the sum of a pair or
    that of all is about the least normal number, or an operand is."""
    if not terms.accumulator.pairwise:
        return
    rng, products = np.random.default_rng(24), products_of_elements(terms)
    for _ in range(STEPS):
        pairs = [_pair(rng, terms, products) for _ in range(terms.reduction // 2)]
        yield [_step(rng, terms, [lane for pair in pairs for lane in pair])]


def _pair(rng: Generator, terms: Terms, products: Sequence[Product]) -> list[Product]:
    """Two lanes with their products: zeros, random ones of either sign, or, half of the time, such
    as cancel but for a little."""
    kind, swapped, alike = int(rng.integers(4)), rng.random() < 0.5, rng.random() < 0.5
    if kind == 0:
        return [(0, (zero_code(terms.a), zero_code(terms.b)))] * 2
    first, second = (products[k] for k in rng.integers(len(products), size=2))
    if kind > 1:
        left = 1 << int(rng.integers(LEFT)) if rng.random() < 0.5 else 1
        place = bisect_left(products, first[0] + left, key=lambda x: x[0])
        second = products[min(place, len(products) - 1)]
    if kind > 1 or not alike:
        second = _opposite(second, terms)
    pair = [second, first] if swapped else [first, second]
    return pair if rng.random() < 0.5 else [_opposite(x, terms) for x in pair]


def _opposite(x: Product, terms: Terms) -> Product:
    (lane,) = negated(x[1], terms)
    return -x[0], lane


def _step(rng: Generator, terms: Terms, lanes: Sequence[Product]) -> Corner:
    """A step of lanes, under scales at which one of their numbers is about the least normal one."""
    numbers, codes = [number for number, _ in lanes], [lane for _, lane in lanes]
    output, flush, side = output_of(terms), terms.accumulator.flush, int(rng.integers(3))
    pair = 2 * int(rng.integers(len(lanes) // 2))
    number = [numbers[pair], sum(numbers[pair : pair + 2]), sum(numbers)][int(rng.integers(3))]
    below = abs(number).bit_length() - 1 - terms.a.one - terms.b.one - output.emin
    below += int(rng.integers(-ABOUT, ABOUT, endpoint=True))
    if side == 2 or flush is None:
        return Corner(codes, below)
    below -= int(rng.integers(LARGER))
    form = (terms.a, terms.b)[side]
    operand = int(form.format.element.integers[codes[pair][side]])
    own = abs(operand).bit_length() - 1 - form.one - flush
    own += int(rng.integers(-ABOUT, ABOUT, endpoint=True))
    return Corner(codes, below, lower=below // 2 - own if side else own - (below - below // 2))
