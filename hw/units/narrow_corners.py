"""Special cases of dot products whose totals have few bits."""

from collections.abc import Iterator
from itertools import chain, product

from axs6.golden.terms import Terms
from axs6.hw.units.accumulate_steps import (
    Corner,
    Vector,
    element_codes,
    minus,
    negated,
    output_of,
    signed,
    zero_code,
)
from axs6.hw.units.sum_operands import STEP_BITS, ProductSums

NARROW = 14
"""Bits of significands up to which totals have few."""


FEW = 3
"""Bits of the numbers that are left where all else cancels."""

DISTANCES = 45
"""Distances of the exponents of a narrow total and of a sum, up to this."""

BESIDE_TIES = *range(-4, DISTANCES), 64, 69, 128, 133
"""How far products are below those of a tie: every distance that counts, and some of 7 and 8 bits,
of which no bit may be lost."""


def narrow_corners(terms: Terms) -> Iterator[Vector]:
    """Totals, ties and small sums at all exponents and distances, if totals have few bits."""
    if output_of(terms).fraction_bits < NARROW:
        yield from _totals(terms)
        yield from _beside_ties(terms)
        yield from cancelled(terms)


def _totals(terms: Terms) -> Iterator[Vector]:
    """At each exponent: a total and a small sum at every distance above; sums that round up to a
    power of two, and those of a few ones that a small sum cancels."""
    output = output_of(terms)
    a, b = element_codes(terms.a), element_codes(terms.b)
    one, least, sums = (a[-1][0], b[-1][0]), (a[0][-1], b[0][-1]), ProductSums(terms)
    unit = terms.a.one + terms.b.one
    for exponent in range(output.emin - output.fraction_bits, 4 - output.emin):
        for gap in range(DISTANCES):
            for x, y in signed(one, least, terms):
                yield [Corner([x], -exponent), Corner([y], -exponent - gap)]
        for width in range(1, STEP_BITS + 1):
            end = width - 1 - unit - exponent
            for low in range(width):
                steps = list(sums.steps((1 << width) - (1 << low)))
                number = [Corner(lanes, end - place) for lanes, place in steps]
                yield number
                yield [*number, Corner(negated(least, terms), end - width)]


def _beside_ties(terms: Terms) -> Iterator[Vector]:
    """Sums half way between two totals, beside products at every distance below in the same step,
    or in the next one."""
    a, b = element_codes(terms.a), element_codes(terms.b)
    one, least = (a[-1][0], b[-1][0]), (a[0][-1], b[0][-1])
    nothing, block = (zero_code(terms.a), zero_code(terms.b)), int(terms.a.format.block)
    unit, sums = terms.a.one + terms.b.one, ProductSums(terms)
    blocks, empty = terms.reduction // block, [nothing] * block
    for number, place in _ties(terms, block):
        lanes, end = sums.step(number), -unit - place
        filled = [*lanes, *[nothing] * (-len(lanes) % block)]
        for gap, (small, count) in product(BESIDE_TIES, ((one, block), (least, 1))):
            for x in (small, *negated(small, terms)):
                others = [x] * count
                yield [Corner(lanes, end), Corner(others, end + gap)]
                # In each block of a step but the first, below the tie in the block beside it.
                for at in range(1, max(2, blocks if count > 1 else 0)):
                    before = [filled if k == (at + 1) % 2 else empty for k in range(at)]
                    step = [*chain(*before), *others]
                    yield [Corner(step, end, gap) if at % 2 else Corner(step, end + gap, -gap)]


def cancelled(terms: Terms) -> Iterator[Vector]:
    """Where a step has three blocks: two cancel, and a number of a few bits is left of the third,
    at every distance below. Totals as large as the two are finite, or not."""
    output, block = output_of(terms), int(terms.a.format.block)
    if terms.reduction < 3 * block:
        return
    one = (element_codes(terms.a)[-1][0], element_codes(terms.b)[-1][0])
    nothing, sums = (zero_code(terms.a), zero_code(terms.b)), ProductSums(terms)
    first = [one, *[nothing] * (block - 1)]
    for number, gap in product(range(1, 1 << FEW), range(DISTANCES)):
        left = sums.step(number)[:block]
        empty = [nothing] * (block - len(left))
        for lanes, end in product((left, minus(left, terms)), (0, -output.emax)):
            yield [Corner([*first, *lanes, *empty, *negated(one, terms)], end, gap)]


def _ties(terms: Terms, block: int) -> Iterator[tuple[int, int]]:
    """Ties: whole numbers half way between two totals, and the exponent of each one's last bit.

    Each width of subnormal totals has ties, and so have totals near 1 and near the largest; one
    rounds to the total below, one to that above. A number comes without trailing zeros, with one,
    and with about as many as the largest sum of a block has room for.
    """
    output = output_of(terms)
    elements = [int(form.format.element.integers.max()) for form in (terms.a, terms.b)]
    largest = block * elements[0] * elements[1]
    most, lowest = output.fraction_bits + 2, output.emin - output.fraction_bits - 1
    places = [(width, lowest) for width in range(2, most + 1)]
    places += [(most, exponent) for exponent in (1 - most, 2 - most - output.emin)]
    for width, place in places:
        further = largest.bit_length() - width
        for zeros, left in product((0, 1, further - 1, further), (0, (1 << width - 1) - 2)):
            number = (1 << width) - 1 - left << max(0, zeros)
            if zeros >= 0 and number <= largest:
                yield number, place - zeros
