"""Special cases of dot products: each product of two elements in each lane."""

from collections.abc import Iterator

import numpy as np
from numpy.typing import NDArray

from axs6.golden.terms import Terms
from axs6.hw.units.accumulate_steps import Corner, Vector, both_negated, minus, zero_code
from axs6.hw.units.sum_operands import lanes_of_products

LEAST = 1 << 12
"""Steps, at least; or each product comes twice in each lane, the second time beside zeros."""

NEAR = 1 << 8
"""How far apart in the ascending order of products those of a step are, at most."""

ZEROS = (0.5, 0.9)
"""The share of lanes of a step that are zeros, but for the first time of each product."""


def each_product(terms: Terms) -> Iterator[Vector]:
    """Each product of elements in each lane, with any signs, beside zeros and products of about the
    same size, so that it counts where sums drop small terms."""
    rng, nothing = np.random.default_rng(25), (zero_code(terms.a), zero_code(terms.b))
    lanes = [lane for _, lane in lanes_of_products(terms)]
    signs = [(x, *minus([x], terms)) for x in lanes]
    signed = [(x, y, both_negated(x, terms), both_negated(y, terms)) for x, y in signs]
    for time in range(max(2, -(-LEAST // len(lanes)))):
        for row in _orders(rng, len(lanes), terms.reduction):
            zero = rng.random(terms.reduction) < (rng.choice(ZEROS) if time else 0)
            sign = rng.integers(4, size=terms.reduction)
            chosen = zip(row.tolist(), sign.tolist(), zero.tolist(), strict=True)
            yield [Corner([nothing if none else signed[k][s] for k, s, none in chosen])]


def _orders(rng: np.random.Generator, count: int, lanes: int) -> NDArray[np.int64]:
    """For each lane an order of products, nearly the ascending one, of shape (count, lanes)."""
    return np.argsort(np.arange(count)[:, None] + NEAR * rng.random((count, lanes)), axis=0)
