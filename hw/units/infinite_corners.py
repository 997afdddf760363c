"""Special cases of dot products with products of 2^128 or more, which are infinite."""

from collections.abc import Iterator
from itertools import chain, product

from axs6.golden.terms import Terms
from axs6.hw.units.accumulate_steps import (
    EXPONENTS,
    Corner,
    Vector,
    element_codes,
    negated,
    signed,
    zero_code,
)
from axs6.hw.units.sum_operands import STEP_BITS, Lane, ProductSums, products_of_elements

INFINITE, ABOUT_INFINITE = range(-256, -100), range(-142, -124)
"""How far scales are below 1 where products are about 2^128 or more, and where about 2^128."""


def infinite_terms(terms: Terms) -> Iterator[Vector]:
    """Each exponent of infinite products, alone, after an infinite total and together with a larger
    one; one after a total with each exponent; and products about as large as the least infinite
    one in each lane, alone, after an infinite total, and beside a larger or smaller product."""
    if terms.accumulator.sum_fraction is None:
        return
    a, b = element_codes(terms.a), element_codes(terms.b)
    one, least = (a[-1][0], b[-1][0]), (a[0][-1], b[0][-1])
    largest = INFINITE.start
    for x, y in chain(signed(one, least, terms), signed(one, one, terms)):
        for end in INFINITE:
            yield [Corner([y], end)]
            yield [Corner([x], largest), Corner([y], end)]
            yield [Corner([x, y], end)]
        for end in EXPONENTS:
            yield [Corner([y], end), Corner([x], largest)]
    yield from _in_each_lane(terms, one)


def _in_each_lane(terms: Terms, one: Lane) -> Iterator[Vector]:
    """Products about 2^128: powers of two, and where none is a product of elements, the least one
    with as many bits."""
    nothing, sums = (zero_code(terms.a), zero_code(terms.b)), ProductSums(terms)
    steps = [(sums.step(1 << place), sums.step((1 << place) - 1)) for place in range(1, STEP_BITS)]
    pairs = [(x[0], y[0]) for x, y in steps if x and y]
    pairs += [(x, x) for x in _least_of_widths(terms)]
    cases = [*product(ABOUT_INFINITE, pairs), *product(INFINITE, [(one, one)])]
    for place in range(terms.reduction):
        for end, (power, below) in cases:
            for x in (power, *negated(power, terms)):
                lanes = [nothing] * terms.reduction
                lanes[place] = x
                yield [Corner([*lanes], end)]
                for total in (one, *negated(one, terms)):
                    yield [Corner([total], INFINITE.start), Corner([*lanes], end)]
                for y in (one, *negated(one, terms), below, *negated(below, terms)):
                    lanes[place - 1] = y
                    yield [Corner([*lanes], end)]


def _least_of_widths(terms: Terms) -> list[Lane]:
    """The lane with the least product of each number of bits, if that is no power of two."""
    least = {
        number.bit_length(): (number, lane) for number, lane in products_of_elements(terms)[::-1]
    }
    return [lane for number, lane in least.values() if number & number - 1]
