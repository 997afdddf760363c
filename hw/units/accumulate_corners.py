"""Special cases of dot products with an accumulator."""

from collections.abc import Iterator, Sequence
from itertools import product

import numpy as np
from numpy.typing import NDArray

from axs6.golden.formats import FP32
from axs6.golden.terms import Terms
from axs6.hw.units.accumulate import terms_of
from axs6.hw.units.accumulate_steps import (
    EXPONENTS,
    Corner,
    Vector,
    element_codes,
    items_of,
    items_of_codes,
    minus,
    minus_codes,
    negated,
    output_of,
    signed,
    zero_code,
)
from axs6.hw.units.blocks import special_codes
from axs6.hw.units.infinite_corners import infinite_terms
from axs6.hw.units.narrow_corners import NARROW, narrow_corners
from axs6.hw.units.pairwise_corners import pairwise_corners
from axs6.hw.units.product_corners import each_product
from axs6.hw.units.sum_operands import STEP_BITS, Lane, ProductSums, products_of_elements
from axs6.hw.units.unit import Items, Parameters
from axs6.hw.units.vectors import HARD_DIVISOR, hard_quotients


def accumulated_corners(parameters: Parameters) -> Items:
    """Vectors without `outer` that combine alignment, cancellation, rounding and special values.

    Every distance of exponents from 0 to beyond the bits that are kept, between terms of a step and
    between the accumulator and a step, with either sign and either one larger; zeros of either
    kind, under large scales and small ones; the least and the largest products; NaN and infinities.
    Each product of elements in each lane. Where scales multiply sums, the sums of two blocks or
    three, at every distance.
    """
    terms = terms_of(parameters)
    vectors: list[Vector] = [
        *_distant(terms),
        *far_blocks(terms),
        *added_distances(terms),
        *_beside_ties(terms),
        *exact_ties(terms),
        *_zeros(terms),
        *_ends(terms),
        *_cancelling(terms),
        *_every_exponent(terms),
        *infinite_terms(terms),
        *_every_total(terms),
        *narrow_corners(terms),
        *pairwise_corners(terms),
        *_special_vectors(terms),
        *_scaled(terms),
    ]
    parts = [items_of(vectors, terms), nearly_equal(terms), each_product(terms)]
    return {name: np.concatenate([x[name] for x in parts]) for name in parts[0]}


def _distant(terms: Terms) -> Iterator[Vector]:
    """Two products at every distance, from their scales, from their elements, and within a step."""
    a, b = (element_codes(form) for form in (terms.a, terms.b))
    for gap in range(_distances(terms)):
        lower = [(x[0], y[0], 0) for x, y in _pairs(a, b, gap)]
        lower += [(x[-1], y[-1], 0) for x, y in _pairs(a, b, gap)]
        if terms.a.format.blocked:
            lower.append((a[-1][0], b[-1][0], gap))
        for code, factor, below in lower:
            for first, second in signed((a[-1][0], b[-1][0]), (code, factor), terms):
                yield [Corner([first]), Corner([second], below)]
                yield [Corner([second], below), Corner([first])]
                yield [Corner([first]), Corner([second], below), Corner(negated(first, terms))]
                yield [Corner([first, second], 0, below)]
                yield [Corner([first, second], 3, below), Corner([second, first], below, 3)]


def _distances(terms: Terms) -> int:
    """Distances of exponents, from 0 to beyond all bits that are kept."""
    return (terms.accumulator.fraction or 24) + 6


def far_blocks(terms: Terms) -> Iterator[Vector]:
    """A product in each lane but of the first block, far below those of that block, or above. Of
    such a distance no bit may be lost: it is a power of two or a little more."""
    block = int(terms.a.format.block)
    one = (element_codes(terms.a)[-1][0], element_codes(terms.b)[-1][0])
    nothing = (zero_code(terms.a), zero_code(terms.b))
    distances = [(1 << bit) + more for bit in range(5, 9) for more in (0, 1, 7)]
    for place, far in product(range(block, terms.reduction), distances):
        lanes = [one] * block + [nothing] * (terms.reduction - block)
        lanes[place] = one
        for sign in (1, -1):
            yield [Corner(lanes, -sign * far // 2, sign * far)]


def added_distances(terms: Terms) -> Iterator[Vector]:
    """A total, at every distance below it a block of one product or none, and at every distance
    below that one of the largest products: how far the last block moves is the sum of both.

    Powers of two in the first block may be half a last place of the total.
    """
    block = int(terms.a.format.block)
    one = (element_codes(terms.a)[-1][0], element_codes(terms.b)[-1][0])
    nothing = (zero_code(terms.a), zero_code(terms.b))
    powers = [lane for number, lane in products_of_elements(terms) if not number & number - 1]
    distances = range(_distances(terms) if terms.reduction > block else 0)
    for below, apart, first in product(distances, distances, (one, nothing, *powers[-1:])):
        lanes = [first] + [nothing] * (block - 1) + [one] * (terms.reduction - block)
        yield [Corner([one]), Corner(lanes, below, apart)]


TIES = range(22, 27)
"""How far products are below an accumulator of FP32 that they are about half a last place of."""

BESIDE = range(3, 12)
"""How far other products are below those, where the last bits that a sum keeps may lie."""


def _beside_ties(terms: Terms) -> Iterator[Vector]:
    """Products near half a last place of the accumulator, beside much smaller ones, if sums of
    terms and accumulator drop bits."""
    if terms.accumulator.sum_fraction is None:
        return
    a, b = element_codes(terms.a), element_codes(terms.b)
    one = (a[-1][-1], b[-1][-1])
    for gap, further in product(TIES, BESIDE):
        found = [(one, (x[-1], y[-1]), gap) for x, y in _pairs(a, b, further)]
        for (x, y), (z, w) in product(_pairs(a, b, gap), _pairs(a, b, gap + further)):
            found.append(((x[-1], y[-1]), (z[-1], w[-1]), 0))
        for half, small, below in found:
            for first, second in signed(half, small, terms):
                yield [Corner([one]), Corner([first, second], below)]
                yield [Corner(negated(one, terms)), Corner([first, second], below)]


def exact_ties(terms: Terms) -> Iterator[Vector]:
    """Where sums of terms and accumulator are exact: half a last place and a little more.

    It carries a total of ones, or is added to a number far above or taken from it, before or after;
    before also as each subnormal total.
    """
    accumulator = terms.accumulator
    if not accumulator.fused or accumulator.fraction is not None:
        return
    sums, output = ProductSums(terms), output_of(terms)
    ones = [*sums.steps((2 << output.fraction_bits) - 1)]
    lowest = -terms.a.one - terms.b.one - output.emin
    for further in range(1, STEP_BITS - 1):
        half = sums.step((2 << further) + 1)
        subnormal = range(1, output.fraction_bits - further)
        steps = [*ones, (half, -further)]
        yield [Corner(lanes, -place) for lanes, place in steps]
        yield [Corner(minus(lanes, terms), -place) for lanes, place in steps]
        for number, gap in product((1, 3), TIES):
            large, below = sums.step(number), gap + further + 2 - number.bit_length()
            for x, y in product((large, minus(large, terms)), (half, minus(half, terms))):
                yield [Corner(x), Corner(y, below)]
                for end in (below, *(further + 1 + lowest + k for k in subnormal)):
                    yield [Corner(y, end), Corner(x, end - below)]


def _pairs(a: list[list[int]], b: list[list[int]], gap: int) -> list[tuple[list[int], list[int]]]:
    """Codes of elements whose exponents add up to this far below the largest, if there are any."""
    down = min(gap, len(a) - 1)
    return [(a[-1 - down], b[-1 - gap + down])] if gap - down < len(b) else []


def _zeros(terms: Terms) -> Iterator[Vector]:
    """Zeros of both signs, under scales far above and below those of a number."""
    a, b = (element_codes(form) for form in (terms.a, terms.b))
    one, nothing = (a[-1][0], b[-1][0]), zero_code(terms.a)
    for zero in [
        (nothing, zero_code(terms.b)),
        (nothing, b[-1][0]),
        *negated((nothing, b[0][0]), terms),
    ]:
        for gap in (-40, -9, 0, 9, 40):
            yield [Corner([one]), Corner([zero], gap)]
            yield [Corner([zero], gap)]
            yield [Corner([zero], gap), Corner([one])]
            yield [Corner([one, zero], gap, 5), Corner(negated(one, terms), gap)]


OVERFLOWS = range(-3, 47)
"""How far the scales of a step are below the largest power of two where its sum overflows."""


def _ends(terms: Terms) -> Iterator[Vector]:
    """Sums that overflow, underflow or are subnormal."""
    a, b = (element_codes(form) for form in (terms.a, terms.b))
    one = (a[-1][0], b[-1][0])
    many = [one] * terms.reduction
    for end in (-300, -250, -200, -130, 0, 100, 130, 140, 150, 200, 250, 280, 300):
        for lanes in (many, [one], negated(one, terms), [(a[0][0], b[0][0])]):
            yield [Corner(lanes, end)] * 3
            yield [Corner(lanes, end), Corner(negated(one, terms), end), Corner([one], end - 1)]
    # Of two or three equal sums that are finite, together too large at some of these.
    for end in _overflows(terms):
        for lanes in (many, [one], negated(one, terms)):
            yield [Corner(lanes, end)] * 2
            yield [Corner(lanes, end), Corner([one], end + 1), Corner([one], end)]


def _overflows(terms: Terms) -> list[int]:
    """How far scales are below 1 where sums of a step are too large for the accumulator."""
    largest = output_of(terms).largest.numerator.bit_length() - 1
    return [x - largest for x in OVERFLOWS]


CANCELLING = range(-12, 26)
"""How far scales are below the least normal total where sums cancel."""

STEPS, GAP = 8192, 16
"""Random steps, and how far the scales of two are apart, at most, whose sums are nearly equal."""


def _cancelling(terms: Terms) -> Iterator[Vector]:
    """A total that cancels but for a small product added before, about where it is subnormal."""
    a, b = (element_codes(form) for form in (terms.a, terms.b))
    one, least = (a[-1][0], b[-1][0]), (a[0][-1], b[0][-1])
    lowest = -output_of(terms).emin
    for x, y in signed(one, least, terms):
        for near, gap in product(CANCELLING, range(output_of(terms).fraction_bits + 2)):
            end = near + lowest
            yield [Corner([x], end), Corner([y], end + gap), Corner(negated(x, terms), end)]


def nearly_equal(terms: Terms) -> Items:
    """A step, and one of opposite sign under a larger scale, which is often a small sum. They are
    nearly equal, or a power of two is left."""
    rng, lowest = np.random.default_rng(10), -output_of(terms).emin
    forms = (terms.a, terms.b)
    pool = [
        rng.choice([code for each in element_codes(x) for code in each], (STEPS, terms.reduction))
        for x in forms
    ]
    few = np.arange(terms.reduction) >= rng.integers(1, terms.reduction + 1, (STEPS, 1))
    pool[0][few] = zero_code(terms.a)
    factors = [
        form.format.element.integers[x].astype(np.int64)
        for form, x in zip(forms, pool, strict=True)
    ]
    sums = (factors[0] * factors[1]).sum(axis=1)
    order = np.argsort(sums)
    ordered = sums[order]
    chosen, below = [], []
    for _ in range(STEPS):
        second = order[rng.integers(STEPS >> rng.integers(STEPS.bit_length()))]
        gap, end = int(rng.integers(GAP)), int(rng.integers(-lowest, lowest + CANCELLING.stop))
        exact = int(sums[second]) << gap
        left = int(rng.integers(-1, 2)) << int(rng.integers(exact.bit_length() + 1))
        sought = min(exact + left, int(ordered[-1]))
        near = np.searchsorted(ordered, sought) + rng.integers(-2, 2)
        chosen += [order[np.clip(near, 0, STEPS - 1)], second]
        below += [end + gap, end]
    codes = [x[chosen] for x in pool]
    codes[0][1::2] = minus_codes(terms.a)[codes[0][1::2]]
    distances = np.array([below, *[[0] * len(below)] * 2]).T
    return items_of_codes(codes, distances, np.arange(len(below)) % 2, terms)


FAR = range(120, 150, 5), range(-130, -60, 5)
"""How far scales of one product are below 1, and of another: of their distance not all bits
count."""


def _every_exponent(terms: Terms) -> Iterator[Vector]:
    """The least product with each exponent, in each place of a subnormal total too, alone and
    before another, a zero and a large one; and products far apart."""
    a, b = (element_codes(form) for form in (terms.a, terms.b))
    one, least = (a[-1][0], b[-1][0]), (a[0][-1], b[0][-1])
    nothing = (zero_code(terms.a), zero_code(terms.b))
    for end in EXPONENTS:
        for first in ([least], negated(least, terms)):
            yield [Corner(first, end)]
            yield [Corner(first, end), Corner([nothing], end)]
            yield from ([Corner(first, end), Corner([x], end)] for x in (least, one))
    for low, high in product(*FAR):
        for x, y in signed(one, least, terms):
            yield [Corner([x], low), Corner([y], high)]
            yield [Corner([y], high), Corner([x], low)]


TOTALS = 1 << 13
"""How many totals there are at least."""


def _every_total(terms: Terms) -> Iterator[Vector]:
    """Totals with each significand, if few bits are kept, or random ones of every width, and
    those that are hard to divide, under random exponents.

    A step adds some bits of the significand, the highest first, where scales can lower the next.
    """
    rng, output = np.random.default_rng(15), output_of(terms)
    width = min(output.fraction_bits, terms.accumulator.fraction or FP32.fraction_bits) + 1
    if width <= NARROW:
        chosen = np.resize(np.arange(1 << width - 1, 1 << width), TOTALS).tolist()
    else:
        chosen = (1 + rng.integers(2 << rng.integers(width, size=TOTALS)) // 2 * 2).tolist()
        chosen += hard_quotients() if terms.divisor == HARD_DIVISOR else []
    sums = ProductSums(terms)
    lowest = output.emin - output.fraction_bits
    for significand in chosen:
        end = significand.bit_length() - 1 - terms.a.one - terms.b.one
        end -= int(rng.integers(lowest, 2 - output.emin))
        yield [Corner(lanes, end - place) for lanes, place in sums.steps(significand)]


def _special_vectors(terms: Terms) -> Iterator[Vector]:
    """NaN and infinities, in one step or in two, and numbers after them."""
    one = (element_codes(terms.a)[-1][0], element_codes(terms.b)[-1][0])
    nothing = (zero_code(terms.a), zero_code(terms.b))
    specials = [
        *((int(x), y) for x in special_codes(terms.a.format) for y in (nothing[1], one[1])),
        *((x, int(y)) for y in special_codes(terms.b.format) for x in (nothing[0], one[0])),
        *(
            (int(x), int(y))
            for x in special_codes(terms.a.format)
            for y in special_codes(terms.b.format)
        ),
    ]
    ends = [
        *((int(x), one[1]) for x in _ends_of(special_codes(terms.a.format))),
        *((one[0], int(y)) for y in _ends_of(special_codes(terms.b.format))),
    ]
    for lane, place in product(ends, range(terms.reduction)):
        lanes = [nothing] * terms.reduction
        lanes[place] = lane
        yield [Corner(lanes)]
    for lane in specials:
        yield [Corner([lane])]
        yield [Corner([one]), Corner([one, lane]), Corner([one])]
        for other in specials[:: max(1, len(specials) // 8)]:
            yield [Corner([lane]), Corner([other])]
            yield [Corner([lane, other])]


SCALED_GAPS = range(61)
"""How far the scales of one block are below those of another whose sums are added."""

UNDERFLOWS = range(120, 190, 3)
"""How far the scales of a block are below 1 where its sum times them is about subnormal."""


def _scaled(terms: Terms) -> Iterator[Vector]:
    """Sums of whole blocks times their scales, and added, if scales multiply sums."""
    if not terms.accumulator.scaled:
        return
    a, b = element_codes(terms.a), element_codes(terms.b)
    one, nothing = (a[-1][0], b[-1][0]), (zero_code(terms.a), zero_code(terms.b))

    def block(lanes: Sequence[Lane], below: int) -> Vector:
        return [Corner(lanes, below)] * (terms.accumulator.promote or 1)

    minus = negated(one, terms)
    for lanes in ([one], [one] * terms.reduction, [(a[0][-1], b[-1][-1])]):
        for gap, other in product(SCALED_GAPS, ([one], minus)):
            yield [*block(lanes, 0), *block(other, gap)]
            yield [*block(other, gap), *block(lanes, 0)]
            yield [*block(lanes, 0), *block(other, gap), *block(lanes, gap + 1)]
            yield [*block([one], 1), *block(minus, 1), *block(lanes, gap)]
        for end in UNDERFLOWS:
            yield [*block(lanes, end), *block(minus, end + 1), *block(minus, end)]
            yield [*block(minus, end), *block([nothing], end), *block(lanes, end + 24)]
    # Sums that become -0 times their scales, or in the accumulator.
    small, least = (negated((a[0][-1], y), terms) for y in (b[len(b) // 2][0], b[0][-1]))
    for end in UNDERFLOWS:
        yield block(small, end)
        yield [*block(small, end), *block(least, end)]
    for end in (*_overflows(terms), -250, -300):
        yield [*block([one], end), *block([one], end + 1)]
        yield [*block([one], end), *block(minus, end)]
        yield [*block([one], 0), *block([nothing], end), *block([one], 0)]


def _ends_of(codes: NDArray[np.int64]) -> list[int]:
    """The first and the last of some codes."""
    return sorted({*codes[:1].tolist(), *codes[-1:].tolist()})
