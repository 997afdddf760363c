"""Dot products with an accumulator: expected results and random steps."""

from collections.abc import Iterator
from typing import Any

import numpy as np
from numpy.random import Generator
from numpy.typing import NDArray

from axs6.golden import fp32
from axs6.golden.formats import FP32, BlockFormat, Exponent, Integer, Level, Real
from axs6.golden.operands import IntegerForm, Operand
from axs6.golden.scale_factor import ScaleFactor
from axs6.golden.sums import combined
from axs6.golden.terms import StepTerms, Terms, digits_of, flushed, products_of_digits
from axs6.hw.core.layouts import scale_names
from axs6.hw.core.parameters import DEFAULT_ACCUMULATOR
from axs6.hw.dot.accumulated import dot_terms
from axs6.hw.units.blocks import blocks_of, random_codes, special_codes
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
    items count; of scales that multiply sums, those of the last items of sums.
    """
    terms = terms_of(parameters)
    blocks = [
        blocks_of(items, form.format, f"{name}.") for name, form in (("a", terms.a), ("b", terms.b))
    ]
    a, b = (
        flushed(Operand.of(each, form), terms)
        for each, form in zip(blocks, (terms.a, terms.b), strict=True)
    )
    factor = np.zeros(0, np.uint32)
    if terms.accumulator.scaled:
        (one,), (other,) = map(ScaleFactor.of_blocks, blocks)
        factor = one.products(other)[:, 0]
    step = step_of(a, b, terms)
    turns = parameters["interleave"]
    start, lengths = vectors_of(items["last"], turns)
    results = np.zeros(len(start), np.uint32)
    for length in np.unique(lengths):
        rows = np.flatnonzero(lengths == length)
        steps = (_taken(step, start[rows] + k * turns) for k in range(length))
        ends = start[rows] + (length - 1) * turns
        scale = items["outer"][ends].astype(np.uint32) if "outer" in items else None
        sums = (factor[start[rows] + k * turns] for k in _sum_ends(terms, length))
        results[rows] = combined(terms, steps, (len(rows),), scale, sums)
    return results


def _sum_ends(terms: Terms, length: int) -> Iterator[int]:
    """The last step of each scaled sum, in a vector with a given number of steps."""
    if terms.accumulator.scaled:
        size = terms.accumulator.promote or 1
        yield from (min(end, length) - 1 for end in range(size, length + size, size))


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
        center = np.clip(middle_code(level) + rng.integers(-12, 13, vectors), low, largest)
        middle = np.where(rng.random(vectors) < 0.7, center, middle)[vector]
        spread = rng.integers(1, 24, vectors)[vector]
        apart = rng.integers(-spread, spread + 1, (groups, len(vector))).T
        if form.scaled and isinstance(level.scale, Real):
            # Sums of blocks are added at every distance, and products of scales are rounded.
            bits = level.scale.dtype.fraction_bits
            apart = (apart << bits) + rng.integers(0, 1 << bits, apart.shape)
        codes = np.clip(middle[:, None] + apart, low, largest)
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


def middle_code(level: Level) -> int:
    """A code in the middle of a scale's range."""
    if isinstance(level.scale, Exponent):
        return level.scale.bias
    if isinstance(level.scale, Real):
        return level.scale.dtype.bias << level.scale.dtype.fraction_bits
    return max(1, level.scale.largest_code // 2)
