"""Special cases of dot products: each product of two elements in each lane."""

import numpy as np
from numpy.typing import NDArray

from axs6.golden.terms import Terms
from axs6.hw.units.accumulate_steps import items_of_codes, minus_codes, zero_code
from axs6.hw.units.sum_operands import lanes_of_products
from axs6.hw.units.unit import Items

LEAST = 1 << 12
"""Steps, at least; or each product comes twice in each lane, the second time beside zeros."""

NEAR = 1 << 8
"""How far apart in the ascending order of products those of a step are, at most."""

ZEROS = (0.5, 0.9)
"""The share of lanes of a step that are zeros, but for the first time of each product."""


def each_product(terms: Terms) -> Items:
    """Each product of elements in each lane, with any signs, beside zeros and products of about the
    same size, so that it counts where sums drop small terms."""
    rng, width = np.random.default_rng(25), terms.reduction
    lanes = np.array([lane for _, lane in lanes_of_products(terms)])
    orders, signs, zeros = [], [], []
    for time in range(max(2, -(-LEAST // len(lanes)))):
        orders.append(_orders(rng, len(lanes), width))
        for _ in lanes:
            shares = rng.random(width)
            zeros.append(shares < (ZEROS[rng.integers(len(ZEROS))] if time else 0))
            signs.append(rng.integers(4, size=width))
    chosen, sign, nothing = np.concatenate(orders), np.array(signs), np.array(zeros)
    codes = []
    for side, form in enumerate((terms.a, terms.b)):
        each = lanes[chosen, side]
        # Neither element is negative, that of a, both, or that of b.
        negative = (sign == 2) | (sign == (3 if side else 1))
        each = np.where(negative, minus_codes(form)[each], each)
        codes.append(np.where(nothing, zero_code(form), each))
    steps = len(chosen)
    return items_of_codes(codes, np.zeros((steps, 3), np.int64), np.ones(steps, np.int64), terms)


def _orders(rng: np.random.Generator, count: int, lanes: int) -> NDArray[np.int64]:
    """For each lane an order of products, nearly the ascending one, of shape (count, lanes)."""
    return np.argsort(np.arange(count)[:, None] + NEAR * rng.random((count, lanes)), axis=0)
