"""Adding the terms of dot products, step by step, as an accumulator says."""

from collections.abc import Iterable, Iterator
from typing import Any

import numpy as np
from numpy.typing import DTypeLike, NDArray

from axs6.golden import fp32, kulisch
from axs6.golden.accumulator import Alignment
from axs6.golden.floats import bit_length
from axs6.golden.formats import FP32, Float
from axs6.golden.kulisch import PART_BITS, Leading
from axs6.golden.operands import INTEGER_BITS, Integers
from axs6.golden.rounding import Rounding
from axs6.golden.terms import DIGIT_BITS, FLOAT_BITS, StepTerms, Terms

NOTHING = -(1 << 18)
"""In place of the exponent of a term that does not count: below that of every other."""

FP32_RANGE = (FP32.emin - FP32.fraction_bits, FP32.bias - FP32.fraction_bits)
"""Exponents of the last bits of FP32 values."""


def combined(
    terms: Terms,
    steps: Iterable[StepTerms],
    shape: tuple[int, ...],
    scale: fp32.Bits | None = None,
    factors: Iterable[fp32.Bits] = (),
) -> fp32.Bits:
    """FP32 results of steps that come in index order.

    Args:
        terms: what the terms are.
        steps: the steps of the dot products.
        shape: shape of the results.
        scale: FP32 patterns that the dot products are multiplied by at the end; None for 1.
        factors: FP32 patterns for the sums that a scaled accumulator promotes, in their order; one
            of fewer steps at the end is promoted too.
    """
    if terms.accumulator.output is None:
        results = _exact(terms, steps, shape, scale)
    else:
        results = _rounded(terms, steps, shape, scale, iter(factors))
    return np.where(fp32.is_nan(results), np.uint32(terms.accumulator.nan), results)


def _rounded(
    terms: Terms,
    steps: Iterable[StepTerms],
    shape: tuple[int, ...],
    scale: fp32.Bits | None,
    factors: Iterator[fp32.Bits],
) -> fp32.Bits:
    """Sums that are rounded after each step."""
    accumulator = terms.accumulator
    promoted = total = np.zeros(shape, np.uint32)
    number = 0
    for number, step in enumerate(steps, 1):
        total = after_step(terms, step, total)
        if accumulator.promote and number % accumulator.promote == 0:
            if accumulator.scaled:
                promoted = fp32.multiply_add(total, next(factors), promoted)
            else:
                promoted = fp32.add(promoted, total)
            total = np.zeros(shape, np.uint32)
    if accumulator.promote and not accumulator.scaled:
        total = fp32.add(promoted, total)
    elif accumulator.promote:
        whole = number % accumulator.promote == 0
        total = promoted if whole else fp32.multiply_add(total, next(factors), promoted)
    if terms.divisor > 1:
        total = fp32.divide_by_scale(total, terms.divisor)
    return total if scale is None else fp32.multiply(total, scale)


def after_step(terms: Terms, step: StepTerms, total: fp32.Bits) -> fp32.Bits:
    """The accumulator after one more step."""
    accumulator = terms.accumulator
    assert accumulator.output is not None
    toward_zero = accumulator.rounding is Rounding.TOWARD_ZERO
    before = total if accumulator.fused else None
    if accumulator.pairwise:
        return _sum_of(terms, total, _pairwise(terms, step))
    if accumulator.sum_fraction is not None:
        step = with_infinities(terms, step)
        value = aligned_twice(terms, step, total)
    elif accumulator.fraction is not None:
        value = aligned(terms, step, before)
    elif len(step.exponents) > 1 or accumulator.fused:
        value = exactly(terms, step, before)
    else:
        negative, top, exponent, sticky = kulisch.leading([x[0] for x in step.digits], DIGIT_BITS)
        value = negative, top, exponent + (step.exponents[0] + terms.offset), sticky
    result = fp32.round_through(accumulator.output, *value, toward_zero=toward_zero)
    if not accumulator.fused:
        if step.special is not None:
            result = np.where(step.special != 0, step.special, result)
        return fp32.add(total, result, accumulator.output, toward_zero)
    if not accumulator.minus_zero:
        result = np.where(result == FP32.sign_bit, np.uint32(0), result)
    special = np.zeros_like(total) if step.special is None else step.special
    # What is no number stays, or meets the next one.
    stays = (special != 0) | fp32.is_infinite(total) | fp32.is_nan(total)
    return np.where(stays, fp32.add(total, special), result) if stays.any() else result


def _pairwise(terms: Terms, step: StepTerms) -> fp32.Bits:
    """The products of a step, each rounded, added in pairs with one rounding for each sum."""
    output, toward_zero = _rounding(terms)
    negative, top, above, sticky = kulisch.leading(step.digits, DIGIT_BITS)
    exponent = above + (step.exponents + terms.offset)
    if step.negative is not None:
        negative = step.negative
    products = fp32.round_through(output, negative, top, exponent, sticky, toward_zero)
    if step.special is not None:
        products = np.where(step.special != 0, step.special, products)
    values = list(_normal(terms, products))
    while len(values) > 1:
        odd = values[len(values) // 2 * 2 :]
        values = [_sum_of(terms, x, y) for x, y in zip(values[::2], values[1::2], strict=False)]
        values += odd
    return values[0]


def _rounding(terms: Terms) -> tuple[Float, bool]:
    """The format of results, and whether they are rounded toward zero."""
    assert terms.accumulator.output is not None
    return terms.accumulator.output, terms.accumulator.rounding is Rounding.TOWARD_ZERO


def _sum_of(terms: Terms, a: fp32.Bits, b: fp32.Bits) -> fp32.Bits:
    """a + b, rounded."""
    return _normal(terms, fp32.add(a, b, *_rounding(terms)))


def _normal(terms: Terms, values: fp32.Bits) -> fp32.Bits:
    """Results, where the accumulator flushes with zeros in place of subnormal ones."""
    output = terms.accumulator.output
    if terms.accumulator.flush is None or output is None:
        return values
    least = np.uint32(output.emin + FP32.bias << FP32.fraction_bits)
    sign = np.uint32(FP32.sign_bit)
    return np.where(values & ~sign < least, values & sign, values)


def _exact(
    terms: Terms, steps: Iterable[StepTerms], shape: tuple[int, ...], scale: fp32.Bits | None
) -> fp32.Bits:
    """Sums of one rounding at the end."""
    wide = None
    special = np.zeros(shape, np.uint32)
    for step in steps:
        if terms.accumulator.fraction is None:
            wide = wide or _wide_enough(terms, shape, step)
            _add_terms(terms, step, wide)
        else:
            digits, exponent = aligned_sum(terms, step, None)
            lowest = terms.offset + terms.point - terms.accumulator.fraction
            highest = lowest + terms.largest_exponent + PART_BITS * (len(digits) - 1)
            bits = terms.aligned_bits if len(digits) == 1 else PART_BITS
            wide = wide or kulisch.KulischAccumulator(shape, lowest, highest, bits)
            for part, digit in enumerate(digits):
                wide.add(digit, np.maximum(exponent, lowest) + PART_BITS * part)
        if step.special is not None:
            special = fp32.add(special, step.special)
    if wide is None:
        return special
    factor = fp32.ONE if scale is None else scale
    results = wide.quotient(factor, terms.divisor, terms.scale_bits)
    return np.where(special != 0, fp32.multiply(special, factor), results)


def _wide_enough(
    terms: Terms, shape: tuple[int, ...], step: StepTerms, total: bool = False
) -> kulisch.KulischAccumulator:
    """A wide integer for terms of any exponent and, if `total`, for an FP32 value."""
    bits = max(FLOAT_BITS, FP32.fraction_bits + 1) if len(step.digits) > 1 else terms.width - 1
    lowest = terms.offset
    highest = lowest + terms.largest_exponent + DIGIT_BITS * (len(step.digits) - 1)
    if total:
        lowest, highest = min(lowest, FP32_RANGE[0]), max(highest, FP32_RANGE[1])
        bits = max(bits, FP32.fraction_bits + 1)
    return kulisch.KulischAccumulator(shape, lowest, highest, bits)


def _add_terms(terms: Terms, step: StepTerms, wide: kulisch.KulischAccumulator) -> None:
    for part, digits in enumerate(step.digits):
        for term, exponent in zip(digits, step.exponents, strict=True):
            wide.add(term, exponent + (terms.offset + DIGIT_BITS * part))


def exactly(terms: Terms, step: StepTerms, total: fp32.Bits | None) -> Leading:
    """The sum of the terms of a step, and of the accumulator where it is one of them."""
    shape = step.exponents.shape[1:]
    wide = _wide_enough(terms, shape, step, total is not None)
    _add_terms(terms, step, wide)
    if total is not None:
        negative, significand, exponent = fp32.split(total)
        signed = significand.view(np.int64)
        wide.add(np.where(negative, -signed, signed), exponent)
    return wide.leading()


def aligned(terms: Terms, step: StepTerms, total: fp32.Bits | None) -> Leading:
    """As `exactly`, without the bits that lie too far below the largest exponent."""
    digits, exponent = aligned_sum(terms, step, total)
    negative, top, above, sticky = kulisch.leading(digits, PART_BITS)
    return negative, top, exponent + above, sticky


def aligned_sum(
    terms: Terms, step: StepTerms, total: fp32.Bits | None
) -> tuple[list[Integers], Integers]:
    """The aligned sum as settled digits of PART_BITS bits, or one int64 if it fits; its exponent.

    Integers of Python hold sums that are wider: exact, and slower.
    """
    accumulator = terms.accumulator
    assert accumulator.fraction is not None
    zero = accumulator.alignment is Alignment.ZERO
    negative, kept, exponents = _placed(terms, step)
    wide = kept.dtype == object
    all_bits = terms.aligned_bits if wide else 63
    top = exponents.max(axis=0)
    if accumulator.least is not None:
        top = np.maximum(top, accumulator.least)
    if total is not None:
        own, value, low = _own_term(terms, total, object if wide else np.int64)
        top = np.maximum(top, own)
    summed = _sum_at(kept, negative, exponents, top, all_bits)
    if total is not None:
        right = np.clip(top - accumulator.fraction - low, 0, all_bits)
        summed = summed + _divided(value, right, zero)
    parts = kulisch.parted(summed, terms.aligned_bits) if wide else [summed]
    return parts, top - accumulator.fraction


def with_infinities(terms: Terms, step: StepTerms) -> StepTerms:
    """A step whose terms of 2^128 or more are infinities."""
    highest = terms.bound.bit_length() + terms.largest_exponent + terms.offset
    if highest <= FP32.bias + 1:
        return step
    negative, top, above, _ = kulisch.leading(step.digits, DIGIT_BITS)
    bits = bit_length(top) + above + step.exponents + terms.offset
    over = (top != 0) & (bits > FP32.bias + 1)
    infinity = np.uint32(FP32.infinity)
    plus, minus = ((over & sign).any(axis=0) for sign in (~negative, negative))
    special = fp32.add(
        np.where(plus, infinity, np.uint32(0)),
        np.where(minus, infinity | np.uint32(FP32.sign_bit), np.uint32(0)),
    )
    if step.special is not None:
        special = fp32.add(special, step.special)
    return step._replace(special=special)


def aligned_twice(terms: Terms, step: StepTerms, total: fp32.Bits) -> Leading:
    """As `aligned`, the terms by themselves first, and then their sum and the accumulator.

    A sum is an integer of units of `fraction` bits below its exponent, then of one bit more than
    `sum_fraction`.
    """
    accumulator = terms.accumulator
    assert accumulator.fraction is not None
    assert accumulator.sum_fraction is not None
    fraction, more = accumulator.fraction, accumulator.sum_fraction + 1 - accumulator.fraction
    summed, top = _sum_of_groups(terms, step)
    all_bits = terms.aligned_bits if summed.dtype == object else 63
    output, _ = _rounding(terms)
    own = np.maximum(fp32.split(total)[2] + FP32.fraction_bits, output.emin)  # of zeros too
    largest = np.maximum(top, own)
    right = np.minimum(largest - top, all_bits)
    _, value, low = _own_term(terms, total, summed.dtype.type)
    kept = value >> np.minimum(largest - fraction - low, all_bits)
    if accumulator.reach is not None:
        kept = np.where(own < largest - accumulator.reach, 0, kept)
    result = (summed << more >> right) + (kept << more)
    parts = kulisch.parted(result, terms.aligned_bits) if result.dtype == object else [result]
    exponent = largest - accumulator.sum_fraction - 1
    return _floored(parts, exponent, accumulator.sum_fraction, output.emin)


def _floored(parts: list[Integers], exponent: Integers, fraction: int, emin: int) -> Leading:
    """A sum without the bits that are this many places below its leading one, or below 2^emin."""
    negative, top, above, sticky = kulisch.leading(parts, PART_BITS)
    bits, exponent = bit_length(top), exponent + above
    drop = np.clip(np.maximum(bits - 1, emin - exponent) - fraction, 0, 63).view(np.uint64)
    kept = top >> drop
    lost = sticky | ((kept << drop) != top)
    return negative, kept + (negative & lost), exponent + drop.view(np.int64), np.zeros_like(lost)


def _sum_of_groups(terms: Terms, step: StepTerms) -> tuple[NDArray[Any], Integers]:
    """The sum of the terms of a step, aligned in groups and then by group, and its exponent."""
    negative, kept, exponents = _placed(terms, step)
    all_bits = terms.aligned_bits if kept.dtype == object else 63
    sums, tops = [], []
    for group in range(min(terms.accumulator.groups, len(exponents))):
        here = slice(group, None, terms.accumulator.groups)
        tops.append(exponents[here].max(axis=0))
        sign = None if negative is None else negative[here]
        sums.append(_sum_at(kept[here], sign, exponents[here], tops[-1], all_bits))
    top = np.max(tops, axis=0)
    moved = (x >> np.minimum(top - y, all_bits) for x, y in zip(sums, tops, strict=True))
    return np.asarray(sum(moved)), top


def _placed(
    terms: Terms, step: StepTerms
) -> tuple[NDArray[np.bool_] | None, NDArray[Any], Integers]:
    """The terms of a step in units of `fraction` bits below their exponents, and those.

    Signs and magnitudes where terms are truncated toward zero; else numbers, and None.
    """
    accumulator = terms.accumulator
    assert accumulator.fraction is not None
    zero = accumulator.alignment is Alignment.ZERO
    drop = terms.point - accumulator.fraction
    negative = None
    exponents = step.exponents + (terms.offset + terms.point)
    if zero:
        negative, digits = kulisch.magnitude(step.digits, DIGIT_BITS)
        nothing = np.logical_and.reduce([x == 0 for x in digits])
        if step.some is not None:
            nothing = ~step.some
        exponents = np.where(nothing, NOTHING, exponents)
    else:
        digits = kulisch.settle(step.digits, DIGIT_BITS)
    if terms.aligned_bits > INTEGER_BITS:
        kept = kulisch.joined(digits, DIGIT_BITS) << max(-drop, 0) >> max(drop, 0)
    else:
        kept = kulisch.shifted(digits, DIGIT_BITS, drop)
    return negative, kept, exponents


def _sum_at(
    kept: NDArray[Any],
    negative: NDArray[np.bool_] | None,
    exponents: Integers,
    top: Integers,
    all_bits: int,
) -> NDArray[Any]:
    """The sum of terms at one exponent."""
    moved = kept >> np.minimum(top - exponents, all_bits)
    if negative is not None:
        moved = np.where(negative, -moved, moved)
    return np.asarray(moved.sum(axis=0))


def _own_term(
    terms: Terms, total: fp32.Bits, dtype: DTypeLike
) -> tuple[Integers, NDArray[Any], Integers]:
    """The accumulator as a term: its exponent, and the integer and exponent that it is.

    The integer, of a dtype, has more bits where more than those of FP32 are kept.
    """
    accumulator = terms.accumulator
    assert accumulator.fraction is not None
    assert accumulator.output is not None
    negative, significand, low = fp32.split(total)
    exponent = np.maximum(low + FP32.fraction_bits, accumulator.output.emin)
    if accumulator.alignment is Alignment.ZERO:
        exponent = np.where(significand == 0, NOTHING, exponent)
    more = max(accumulator.fraction - FP32.fraction_bits, 0)
    signed = significand.view(np.int64).astype(dtype) << more
    return exponent, np.where(negative, -signed, signed), low - more


def _divided(x: NDArray[Any], right: Integers, toward_zero: bool) -> NDArray[Any]:
    """x / 2^right, toward zero or toward minus infinity."""
    return np.where(x < 0, -(-x >> right), x >> right) if toward_zero else x >> right
