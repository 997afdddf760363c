"""Dot products with an accumulator: expected results, corner cases and random steps."""

from collections.abc import Iterator, Sequence
from itertools import product
from typing import Any, NamedTuple

import numpy as np
from numpy.random import Generator
from numpy.typing import NDArray

from axs6.golden import fp32
from axs6.golden.formats import FP32, BlockFormat, Exponent, Integer, Level, Real
from axs6.golden.operands import IntegerForm, Operand
from axs6.golden.sums import combined
from axs6.golden.terms import StepTerms, Terms, digits_of, flushed, products_of_digits
from axs6.hw.core.layouts import scale_names
from axs6.hw.core.parameters import DEFAULT_ACCUMULATOR
from axs6.hw.dot.accumulated import dot_terms
from axs6.hw.units.blocks import blocks_of, random_codes, special_codes
from axs6.hw.units.dot_corners import outer_scales
from axs6.hw.units.unit import Fields, Items, Parameters
from axs6.hw.units.vectors import vectors_of

NAN_OR_INFINITE = 0.02
"""Share of the random items that may hold NaN or an infinity."""


def terms_of(parameters: Parameters) -> Terms:
    """The terms that a unit with these parameters adds."""
    terms = _terms(parameters)
    assert terms is not None
    return terms


def is_default(parameters: Parameters) -> bool:
    """Whether a unit adds block sums in FP32, one after the other."""
    return _terms(parameters) is None


def _terms(parameters: Parameters) -> Terms | None:
    chosen = (parameters.get("format", "axs6"), parameters.get("accumulator", DEFAULT_ACCUMULATOR))
    return dot_terms(chosen[0], parameters["block"], chosen[1])


def accumulated(items: Fields, parameters: Parameters) -> NDArray[np.uint32]:
    """FP32 results of the vectors that take turns in a stream, in the order of their last items.

    All vectors of one length at once. Of `outer`, the scales of channels and tensors, those of last
    items count.
    """
    terms = terms_of(parameters)
    a, b = (
        flushed(Operand.of(blocks_of(items, form.format, f"{name}."), form), terms)
        for name, form in (("a", terms.a), ("b", terms.b))
    )
    step = step_of(a, b, terms)
    turns = parameters["interleave"]
    start, lengths = vectors_of(items["last"], turns)
    results = np.zeros(len(start), np.uint32)
    for length in np.unique(lengths):
        rows = np.flatnonzero(lengths == length)
        steps = (_taken(step, start[rows] + k * turns) for k in range(length))
        ends = start[rows] + (length - 1) * turns
        scale = items["outer"][ends].astype(np.uint32) if "outer" in items else None
        results[rows] = combined(terms, steps, (len(rows),), scale)
    return results


def step_of(a: Operand, b: Operand, terms: Terms) -> StepTerms:
    """The terms of every item. A format without blocks may have more lanes than terms."""
    count = len(a.integers)

    def by_term(x: Operand) -> NDArray[np.int64]:
        lanes = x.integers.reshape(count, -1)[:, : terms.reduction]
        return lanes.reshape(count, terms.step, terms.lanes)

    def exponents(x: Operand) -> NDArray[np.int64]:
        each = x.exponents.reshape(count, -1)[:, : terms.reduction]
        return np.repeat(each, terms.step // each.shape[1], axis=1)

    left, right = (digits_of(by_term(x), x.form.bound.bit_length()) for x in (a, b))
    digits = products_of_digits(left, right, lambda x, y: (x * y).sum(axis=-1))
    pairwise = terms.accumulator.pairwise
    special = None
    if terms.a.format.has_nan or terms.b.format.has_nan:
        special = _special(a, b, terms.reduction if pairwise else None)
    some = negative = None
    if terms.gated_by_products:
        some = ((by_term(a) != 0) & (by_term(b) != 0)).any(axis=-1).T
    if pairwise:
        negative = ((by_term(a) < 0) ^ (by_term(b) < 0))[..., 0].T
    exponent = (exponents(a) + exponents(b)).T
    return StepTerms([x.T for x in digits], exponent, special, some, negative)


def _taken(step: StepTerms, items: NDArray[np.int64]) -> StepTerms:
    def taken(x: NDArray[Any] | None) -> Any:
        return None if x is None else x[..., items]

    digits = [x[:, items] for x in step.digits]
    return StepTerms(digits, *map(taken, step[1:]))


def _special(a: Operand, b: Operand, lanes: int | None) -> fp32.Bits:
    """The special value of the sum of each item's products, or of each of its first `lanes`."""
    (a_nan, a_infinite, a_sign), (b_nan, b_infinite, b_sign) = map(_classes, (a, b))
    infinite = a_infinite | b_infinite
    sign = a_sign * b_sign
    nan = a_nan | b_nan | (infinite & (sign == 0))
    plus, minus = (infinite & (sign == each) for each in (1, -1))
    if lanes is None:
        nan, plus, minus = (x.any(axis=1) for x in (nan, plus, minus))
    else:
        nan, plus, minus = (x[:, :lanes].T for x in (nan, plus, minus))
    value = np.where(minus, np.uint32(FP32.sign_bit), np.uint32(0)) | np.uint32(FP32.infinity)
    value = np.where(plus | minus, value, np.uint32(0))
    return np.where(nan | (plus & minus), np.uint32(FP32.quiet_nan), value)


def _classes(x: Operand) -> tuple[NDArray[np.bool_], NDArray[np.bool_], NDArray[np.int8]]:
    """Which lanes of each item are NaN and which are infinite, and their signs."""
    shape = (len(x.integers), -1)
    integers = x.integers.reshape(shape)
    nan = np.zeros(integers.shape, bool) if x.nan is None else x.nan.reshape(shape)
    signs = np.zeros(integers.shape, np.int8) if x.infinite is None else x.infinite.reshape(shape)
    sign = np.where(signs != 0, signs, np.sign(integers)) * ~nan
    return nan, signs != 0, sign.astype(np.int8)


def accumulated_random(parameters: Parameters, rng: Generator, vector: NDArray[np.int64]) -> Items:
    """Random steps of items of some vectors; within a vector, scales are near each other."""
    terms = terms_of(parameters)
    return {
        f"{name}.{field}": array
        for name, form in (("a", terms.a), ("b", terms.b))
        for field, array in _random_side(rng, form, terms.reduction, vector).items()
    }


def _random_side(rng: Generator, form: IntegerForm, lanes: int, vector: NDArray[np.int64]) -> Items:
    """The lanes of one operand for items that belong to some vectors."""
    fmt, items, vectors = form.format, Items(), int(vector.max()) + 1
    for name, level in levels_of(fmt):
        groups, largest = lanes // int(level.group), level.scale.largest_code
        low = int(isinstance(level.scale, Integer))
        middle = rng.integers(low, largest + 1, vectors)
        center = np.clip(_one(level) + rng.integers(-12, 13, vectors), low, largest)
        middle = np.where(rng.random(vectors) < 0.7, center, middle)[vector]
        spread = rng.integers(1, 24, vectors)[vector]
        codes = middle[:, None] + rng.integers(-spread, spread + 1, (groups, len(vector))).T
        codes = np.clip(codes, low, largest)
        if level.scale.nan_code is not None:
            codes = np.where(rng.random(codes.shape) < 0.002, level.scale.nan_code, codes)
        if isinstance(level.scale, Real) and level.scale.selector:
            codes |= rng.integers(0, 2, codes.shape) << (level.scale.bits - 1)
        items[name] = codes[:, 0] if groups == 1 and level.group == fmt.block else codes
    codes = random_codes(rng, (len(vector), lanes), fmt)
    some = rng.random((len(vector), 1)) < NAN_OR_INFINITE
    items["codes"] = np.where(np.isin(codes, special_codes(fmt)) & ~some, 0, codes)
    return items


def levels_of(fmt: BlockFormat) -> list[tuple[str, Level]]:
    """Levels within a block, coarse to fine, with the names of their fields."""
    return list(zip(scale_names(fmt), fmt.blocked[::-1], strict=True))


def _one(level: Level) -> int:
    """A code in the middle of a scale's range."""
    if isinstance(level.scale, Exponent):
        return level.scale.bias
    if isinstance(level.scale, Real):
        return level.scale.dtype.bias << level.scale.dtype.fraction_bits
    return max(1, level.scale.largest_code // 2)


Lane = tuple[int, int]
"""Codes of a and b in one lane."""


class Corner(NamedTuple):
    """A step.

    `lanes` are the first ones, or those of the first terms, and the others 0; `below` is how far
    the scales are below 1, and `apart` how far those of every other group are below the others.
    """

    lanes: Sequence[Lane]
    below: int = 0
    apart: int = 0


def accumulated_corners(parameters: Parameters) -> Items:
    """Vectors that combine alignment, cancellation, rounding and special values.

    Every distance of exponents from 0 to beyond the bits that are kept, between terms of a step and
    between the accumulator and a step, with either sign and either one larger; zeros of either
    kind, under large scales and small ones; the least and the largest products; NaN and infinities.
    """
    terms = terms_of(parameters)
    vectors = [
        *_distant(terms),
        *_beside_ties(terms),
        *_zeros(terms),
        *_ends(terms),
        *_special_vectors(terms),
    ]
    corners = [corner for vector in vectors for corner in vector]
    items: Items = {"last": np.concatenate([[0] * (len(v) - 1) + [1] for v in vectors])}
    below, apart = (np.array([x[k] for x in corners]) for k in (1, 2))
    for side, (name, form) in enumerate((("a", terms.a), ("b", terms.b))):
        codes = np.full((len(corners), terms.reduction), _zero(form), np.int64)
        for row, (lanes, *_) in enumerate(corners):
            spread = terms.lanes if len(lanes) * terms.lanes <= terms.reduction else 1
            chosen = [lane[side] for lane in lanes[: terms.reduction]]
            codes[row, : len(chosen) * spread : spread] = chosen
        items[f"{name}.codes"] = codes
        for field, level in levels_of(form.format):
            scales = _lowered(level, below, apart, terms.reduction, side)
            single = scales.shape[1] == 1 and level.group == form.format.block
            items[f"{name}.{field}"] = scales[:, 0] if single else scales
    if any(form.format.outer for form in (terms.a, terms.b)):
        items["outer"] = outer_scales(np.random.default_rng(8), len(corners))
    return items


def _lowered(
    level: Level, below: NDArray[np.int64], apart: NDArray[np.int64], lanes: int, side: int
) -> NDArray[np.int64]:
    """Codes of a level this far below 1, half of the distance in each operand."""
    odd = np.arange(lanes // int(level.group)) % 2
    total = below[:, None] + apart[:, None] * odd
    half = total // 2 if side else total - total // 2
    if isinstance(level.scale, Exponent):
        codes = _one(level) - half
    elif isinstance(level.scale, Real):
        codes = _one(level) - (half << level.scale.dtype.fraction_bits) + (half & 7)
    else:
        codes = _one(level) - (half & 1)
    return np.clip(codes, int(isinstance(level.scale, Integer)), level.scale.largest_code)


Vector = list[Corner]


def _distant(terms: Terms) -> Iterator[Vector]:
    """Two products at every distance, from their scales, from their elements, and within a step."""
    a, b = (_element_codes(form) for form in (terms.a, terms.b))
    most = (terms.accumulator.fraction or 24) + 6
    for gap in range(most):
        lower = [(x[0], y[0], 0) for x, y in _pairs(a, b, gap)]
        lower += [(x[-1], y[-1], 0) for x, y in _pairs(a, b, gap)]
        if terms.a.format.blocked:
            lower.append((a[-1][0], b[-1][0], gap))
        for code, factor, below in lower:
            for first, second in _signed((a[-1][0], b[-1][0]), (code, factor), terms):
                yield [Corner([first]), Corner([second], below)]
                yield [Corner([second], below), Corner([first])]
                yield [Corner([first]), Corner([second], below), Corner(_negated(first, terms))]
                yield [Corner([first, second], 0, below)]
                yield [Corner([first, second], 3, below), Corner([second, first], below, 3)]


TIES = range(22, 27)
"""How far products are below an accumulator of FP32 that they are about half a last place of."""

BESIDE = range(3, 12)
"""How far other products are below those, where the last bits that a sum keeps may lie."""


def _beside_ties(terms: Terms) -> Iterator[Vector]:
    """Products near half a last place of the accumulator, beside much smaller ones, if sums of
    terms and accumulator drop bits."""
    if terms.accumulator.sum_fraction is None:
        return
    a, b = _element_codes(terms.a), _element_codes(terms.b)
    one = (a[-1][-1], b[-1][-1])
    for gap, further in product(TIES, BESIDE):
        found = [(one, (x[-1], y[-1]), gap) for x, y in _pairs(a, b, further)]
        for (x, y), (z, w) in product(_pairs(a, b, gap), _pairs(a, b, gap + further)):
            found.append(((x[-1], y[-1]), (z[-1], w[-1]), 0))
        for half, small, below in found:
            for first, second in _signed(half, small, terms):
                yield [Corner([one]), Corner([first, second], below)]
                yield [Corner(_negated(one, terms)), Corner([first, second], below)]


def _pairs(a: list[list[int]], b: list[list[int]], gap: int) -> list[tuple[list[int], list[int]]]:
    """Codes of elements whose exponents add up to this far below the largest, if there are any."""
    down = min(gap, len(a) - 1)
    return [(a[-1 - down], b[-1 - gap + down])] if gap - down < len(b) else []


def _zeros(terms: Terms) -> Iterator[Vector]:
    """Zeros of both signs, under scales far above and below those of a number."""
    a, b = (_element_codes(form) for form in (terms.a, terms.b))
    one, nothing = (a[-1][0], b[-1][0]), _zero(terms.a)
    minus = _minus(nothing, terms.a)
    for zero in [(nothing, _zero(terms.b)), (nothing, b[-1][0]), (minus, b[0][0])]:
        for gap in (-40, -9, 0, 9, 40):
            yield [Corner([one]), Corner([zero], gap)]
            yield [Corner([zero], gap)]
            yield [Corner([zero], gap), Corner([one])]
            yield [Corner([one, zero], gap, 5), Corner(_negated(one, terms), gap)]


OVERFLOWS = range(-130, -80)
"""How far the scales of a step are below 1 where its sum is near the largest FP32 values."""


def _ends(terms: Terms) -> Iterator[Vector]:
    """Sums that overflow, underflow or are subnormal."""
    a, b = (_element_codes(form) for form in (terms.a, terms.b))
    one = (a[-1][0], b[-1][0])
    many = [one] * terms.reduction
    for end in (-300, -250, -200, -130, 0, 100, 130, 140, 150, 200, 250, 280, 300):
        for lanes in (many, [one], _negated(one, terms), [(a[0][0], b[0][0])]):
            yield [Corner(lanes, end)] * 3
            yield [Corner(lanes, end), Corner(_negated(one, terms), end), Corner([one], end - 1)]
    # Of two or three equal sums that are finite, together too large for FP32 at some of these.
    for end in OVERFLOWS:
        for lanes in (many, [one], _negated(one, terms)):
            yield [Corner(lanes, end)] * 2
            yield [Corner(lanes, end), Corner([one], end + 1), Corner([one], end)]


def _special_vectors(terms: Terms) -> Iterator[Vector]:
    """NaN and infinities, in one step or in two, and numbers after them."""
    one = (_element_codes(terms.a)[-1][0], _element_codes(terms.b)[-1][0])
    nothing = (_zero(terms.a), _zero(terms.b))
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


def _ends_of(codes: NDArray[np.int64]) -> list[int]:
    """The first and the last of some codes."""
    return sorted({*codes[:1].tolist(), *codes[-1:].tolist()})


def _element_codes(form: IntegerForm) -> list[list[int]]:
    """Codes of positive elements by their exponent, the largest of each first."""
    element = form.format.element
    special = set(special_codes(form.format).tolist())
    found: dict[int, list[int]] = {}
    for code in range(1 << element.width):
        value = int(element.integers[code])
        if value > 0 and code not in special:
            found.setdefault(value.bit_length(), []).append(code)
    return [codes[::-1] for _, codes in sorted(found.items())]


def _zero(form: IntegerForm) -> int:
    """The code of 0."""
    return form.format.element.zero_code


def _minus(code: int, form: IntegerForm) -> int:
    """The code of the negative of an element."""
    element = form.format.element
    if element.listed:
        minus = np.flatnonzero(element.integers == -element.integers[code])
        return int(minus[0]) if minus.size else code
    if element.signed_zero or element.divisor > 1:
        return code ^ element.sign_bit
    return -code % (1 << element.width)


def _negated(lane: Lane, terms: Terms) -> list[Lane]:
    return [(_minus(lane[0], terms.a), lane[1])]


def _signed(first: Lane, second: Lane, terms: Terms) -> Iterator[tuple[Lane, Lane]]:
    """Both signs of both."""
    for x in (first, *_negated(first, terms)):
        for y in (second, *_negated(second, terms)):
            yield x, y
