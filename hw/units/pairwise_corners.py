"""Special cases of dot products that add products in pairs, and have no subnormal numbers."""

from collections.abc import Iterator

import numpy as np
from numpy.random import Generator

from axs6.golden.formats import Float
from axs6.golden.terms import Terms
from axs6.hw.units.accumulate_steps import (
    Corner,
    Vector,
    element_codes,
    minus,
    output_of,
    zero_code,
)
from axs6.hw.units.sum_operands import Lane

STEPS = 1 << 14
"""Random steps."""

ABOUT = 2
"""Binades above or below the least normal number, up to this."""

LARGER = 60
"""Binades by which a step is above it where an operand is near, fewer than this."""


def pairwise_corners(terms: Terms) -> Iterator[Vector]:
    """A step, in which pairs are zeros, random or nearly cancel. A product, the sum of a pair or
    that of all is about the least normal number, or an operand is."""
    if not terms.accumulator.pairwise:
        return
    rng, products = np.random.default_rng(24), _Products(terms)
    for _ in range(STEPS):
        lanes = [lane for _ in range(terms.reduction // 2) for lane in products.pair(rng)]
        yield [Corner(lanes, *_scales(rng, terms, products, lanes))]


class _Products:
    """Products of positive elements in ascending order."""

    def __init__(self, terms: Terms) -> None:
        self._terms = terms
        codes = [
            [code for each in element_codes(form) for code in each] for form in (terms.a, terms.b)
        ]
        lanes = [(a, b) for a in codes[0] for b in codes[1]]
        self._lanes = sorted(lanes, key=self.number)
        self._numbers = [self.number(lane) for lane in self._lanes]

    def number(self, lane: Lane) -> int:
        """The product of a lane's elements."""
        forms = (self._terms.a, self._terms.b)
        x, y = (int(f.format.element.integers[c]) for f, c in zip(forms, lane, strict=True))
        return x * y

    def pair(self, rng: Generator) -> list[Lane]:
        """Two lanes: zeros, random ones, or twice such whose products cancel but for a little."""
        terms, count = self._terms, len(self._lanes)
        kind, (first, second) = rng.integers(4), rng.integers(count, size=2).tolist()
        if kind == 0:
            return [(zero_code(terms.a), zero_code(terms.b))] * 2
        if kind > 1:
            more = 1 << int(rng.integers(6)) if rng.random() < 0.5 else 1
            second = min(
                int(np.searchsorted(self._numbers, self._numbers[first] + more)), count - 1
            )
        lanes = [self._lanes[first], *minus([self._lanes[second]], terms)]
        lanes = lanes if rng.random() < 0.5 else minus(lanes, terms)
        return lanes if rng.random() < 0.5 else lanes[::-1]


def _scales(
    rng: Generator, terms: Terms, products: _Products, lanes: list[Lane]
) -> tuple[int, int, int]:
    """How far the scales of a step are below 1, 0, and how much further those of `a` are."""
    numbers = [products.number(lane) for lane in lanes]
    pair = 2 * int(rng.integers(len(lanes) // 2))
    number = [numbers[pair], sum(numbers[pair : pair + 2]), sum(numbers)][int(rng.integers(3))]
    output: Float = output_of(terms)
    below = abs(number).bit_length() - 1 - terms.a.one - terms.b.one - output.emin
    below += int(rng.integers(-ABOUT, ABOUT, endpoint=True))
    side, flush = int(rng.integers(3)), terms.accumulator.flush
    if side == 2 or flush is None:
        return below, 0, 0
    below -= int(rng.integers(LARGER))
    form = (terms.a, terms.b)[side]
    operand = int(form.format.element.integers[lanes[pair][side]])
    own = abs(operand).bit_length() - 1 - form.one - flush
    own += int(rng.integers(-ABOUT, ABOUT, endpoint=True))
    return below, 0, own - (below - below // 2) if side == 0 else below // 2 - own
