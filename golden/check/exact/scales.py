"""Scales of groups, in fractions: steps of the exact model."""

from collections.abc import Sequence
from fractions import Fraction
from math import ceil, floor, prod
from typing import Final, NamedTuple

from axs6.golden.check.exact.blocks import scale_value
from axs6.golden.check.exact.floats import Special, Value, floor_log2, power
from axs6.golden.check.exact.formats import (
    Definition,
    Exponent,
    Integer,
    Level,
    Real,
    real_code,
    real_range,
    real_value,
)
from axs6.golden.check.exact.rounding import Rounding, bf16, fp32, fp32_or_infinite

FP32_LARGEST: Final = power(128) - power(104)


class ScalesAbove(NamedTuple):
    """The scales above a group.

    Args:
        factors: the real and integer scales, coarse to fine.
        reciprocal: r, FP32, of all of them; an infinity where it overflows.
        exponent: of the power of two.
        top: floor(log2 amax) of the group above.
    """

    factors: tuple[Fraction, ...] = ()
    reciprocal: Value = Fraction(1)
    exponent: int = 0
    top: int = 0


class GroupEncoding(NamedTuple):
    """A format, how to round, and what is found so far, group by group."""

    definition: Definition
    rounding: Rounding
    propagate: bool
    given: Fraction | None
    scales: list[list[int]]
    codes: list[int]
    zero_points: list[int]


def find_scale(
    levels: Sequence[Level], top: Fraction, above: ScalesAbove, found: GroupEncoding
) -> tuple[int, ScalesAbove]:
    """The code of a group's scale, and what the scales say to what is within the group."""
    level = levels[0]
    if isinstance(level, Real):
        code = _real(levels, top, above, found)
        s = real_value(code, level)
        assert isinstance(s, Fraction)
        return code, _divided(above, s, level)
    if isinstance(level, Integer):
        quotient = top / (found.definition.element.largest * prod(above.factors))
        code = min(max(ceil(quotient), 1), 2**level.bits - 1)
        return code, _divided(above, Fraction(code), level)
    top = divide(top, above)
    if isinstance(level, Exponent):
        code = exponent_code(level, top, found.definition)
        bias = 2 ** (level.bits - 1) - 1
        return code, above._replace(exponent=code - bias, top=floor_log2(top) if top else 0)
    code = 2**level.bits - 1
    if not any(isinstance(x, Exponent) for x in found.definition.levels):
        beyond = power(above.exponent - floor_log2(1 / found.definition.element.largest))
        while code and top * power(code) >= beyond:
            code -= 1
    elif top:
        code = min(above.top - floor_log2(top), code)
    within = above._replace(exponent=above.exponent - code)
    return code, within._replace(top=floor_log2(top)) if top else within


def under(level: Level, code: int, above: ScalesAbove) -> ScalesAbove:
    """What the scales say to values whose finest scale has a code."""
    s = scale_value(code, level)
    assert isinstance(s, Fraction)
    if isinstance(level, Exponent):
        return above._replace(exponent=floor_log2(s))
    return _divided(above, s, level)


def _real(levels: Sequence[Level], top: Fraction, above: ScalesAbove, found: GroupEncoding) -> int:
    level = levels[0]
    assert isinstance(level, Real)
    if not above.factors and found.given is not None:
        return real_code(found.given, level)
    s = quotient(levels, top, above, found)
    return real_code(Fraction(1), level) if level.single and top == 0 else held(s, level)


def quotient(
    levels: Sequence[Level],
    top: Fraction,
    above: ScalesAbove,
    found: GroupEncoding,
    times: Fraction = Fraction(1),
) -> Value:
    """A real scale before it is rounded to its numbers."""
    level, largest = levels[0], found.definition.element.largest
    if isinstance(level, Real) and level.arithmetic == "bf16":
        reciprocal = bf16(1 / largest)
        assert isinstance(reciprocal, Fraction)
        s = bf16(fp32(top * reciprocal))
        return fp32_or_infinite(s * times) if isinstance(s, Fraction) else s
    s = fp32_or_infinite(
        top / (found.definition.element.largest * _largest_factor(levels[1:], found))
    )
    for factor in above.factors:
        s = fp32_or_infinite(s / factor) if isinstance(s, Fraction) else s
    return fp32_or_infinite(s * times) if isinstance(s, Fraction) else s


def held(s: Value, level: Real) -> int:
    """The code of the real scale nearest to `s`."""
    low, high = real_range(level)
    if isinstance(s, Special):
        s = high
    return real_code(min(max(s, low), high), level)


def _largest_factor(levels: Sequence[Level], found: GroupEncoding) -> Fraction:
    """The largest factor of the next real or integer scale, 1 where there is none.

    Where that may be 1.5 times larger, the largest power of two that still has a scale for it.
    """
    for level in levels[:1]:
        if isinstance(level, Integer):
            return Fraction(2**level.bits - 1)
        if isinstance(level, Real):
            largest = real_range(level)[1]
            if len(levels) == 1 and found.definition.choice == "four-over-six":
                return power(floor_log2(largest * 2 / 3))
            return largest
    return Fraction(1)


def _divided(above: ScalesAbove, s: Fraction, level: Level) -> ScalesAbove:
    r = above.reciprocal
    if isinstance(level, Real) and level.arithmetic == "bf16":
        r = bf16(1 / s)
    elif isinstance(r, Fraction):
        r = fp32_or_infinite(r / s)
    return above._replace(factors=(*above.factors, s), reciprocal=r)


def divide(x: Fraction, above: ScalesAbove) -> Fraction:
    """v = fp32(x * r); x itself where there is no real scale."""
    if not above.factors or x == 0:
        return x
    if isinstance(above.reciprocal, Special):
        return FP32_LARGEST
    return fp32(x * above.reciprocal)


def exponent_code(level: Exponent, top: Fraction, definition: Definition) -> int:
    """The code of the power of two of a group whose largest magnitude is `top`."""
    if top == 0:
        return 0
    emax = -floor_log2(1 / definition.element.largest) - 1
    if level.rule == "floor":
        exponent = floor_log2(top) - emax
    elif level.rule == "ceil":
        exponent = -floor_log2(1 / top) - emax
    elif level.rule == "even":
        step = power(floor_log2(top) - definition.element.precision)
        exponent = floor_log2(floor(top / step + Fraction(1, 2)) * step) - emax
    else:
        quotient = fp32(top / definition.element.largest)
        exponent = -floor_log2(1 / quotient) if quotient else -(2**16)
    bias = 2 ** (level.bits - 1) - 1
    return min(max(exponent + bias, 0), 2**level.bits - (2 if level.nan else 1))
