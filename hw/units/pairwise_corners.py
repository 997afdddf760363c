"""Special cases of dot products that add products in pairs, and have no subnormal numbers."""

from bisect import bisect_left
from collections.abc import Iterator, Sequence

import numpy as np
from numpy.random import Generator

from axs6.golden.terms import Terms
from axs6.hw.units.accumulate_steps import (
    EXPONENTS,
    Corner,
    Vector,
    both_negated,
    negated,
    output_of,
    zero_code,
)
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
    """A step of random products and pairs of zeros, of which a pair or the whole step may nearly
    cancel.

    A product, the sum of a pair or that of all is about the least normal number, or an operand is;
    or the scales are random.
    """
    if not terms.accumulator.pairwise:
        return
    rng, products = np.random.default_rng(24), products_of_elements(terms)
    for _ in range(STEPS):
        yield [_scaled(rng, terms, _products(rng, terms, products))]


def _products(rng: Generator, terms: Terms, products: Sequence[Product]) -> list[Product]:
    """The products of a step."""
    nothing = (0, (zero_code(terms.a), zero_code(terms.b)))
    lanes: list[Product] = []
    for pair in range(0, terms.reduction, 2):
        if rng.random() < 0.25:
            lanes += [nothing, nothing]
            continue
        chosen = (products[k] for k in rng.integers(len(products), size=2))
        lanes += [x if rng.random() < 0.5 else _opposite(x, terms) for x in chosen]
        if rng.random() < 0.5:
            _cancel(rng, terms, products, lanes, pair)
    if rng.random() < 0.25:
        _cancel(rng, terms, products, lanes, 0)
    return lanes


def _cancel(
    rng: Generator, terms: Terms, products: Sequence[Product], lanes: list[Product], first: int
) -> None:
    """Replace one of the lanes from the first on, so that the sum of these is small."""
    left = 1 << int(rng.integers(LEFT)) if rng.random() < 0.5 else 1
    place = int(rng.integers(first, len(lanes)))
    others = sum(number for number, _ in lanes[first:]) - lanes[place][0]
    nearest = bisect_left(products, abs(others) + left, key=lambda x: x[0])
    found = products[min(nearest, len(products) - 1)]
    lanes[place] = found if others < 0 else _opposite(found, terms)


def _opposite(x: Product, terms: Terms) -> Product:
    (lane,) = negated(x[1], terms)
    return -x[0], lane


def _scaled(rng: Generator, terms: Terms, lanes: Sequence[Product]) -> Corner:
    """A step of lanes, under scales at which one of their numbers is about the least normal one, or
    under random ones."""
    numbers = [number for number, _ in lanes]
    codes = [both_negated(x, terms) if rng.random() < 0.5 else x for _, x in lanes]
    output, flush, side = output_of(terms), terms.accumulator.flush, int(rng.integers(4))
    if side == 3:
        return Corner(codes, int(rng.integers(EXPONENTS.start, EXPONENTS.stop)))
    place = int(rng.integers(len(lanes)))
    pair = place - place % 2
    number = [numbers[place], sum(numbers[pair : pair + 2]), sum(numbers)][int(rng.integers(3))]
    below = abs(number).bit_length() - 1 - terms.a.one - terms.b.one - output.emin
    below += int(rng.integers(-ABOUT, ABOUT, endpoint=True))
    if side == 2 or flush is None:
        return Corner(codes, below)
    below -= int(rng.integers(LARGER))
    form = (terms.a, terms.b)[side]
    operand = int(form.format.element.integers[codes[place][side]])
    own = abs(operand).bit_length() - 1 - form.one - flush
    own += int(rng.integers(-ABOUT, ABOUT, endpoint=True))
    return Corner(codes, below, lower=below // 2 - own if side else own - (below - below // 2))
