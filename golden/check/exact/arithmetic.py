"""Arithmetic of FP32 patterns and of numbers that may be NaN or infinite, by IEEE 754."""

from collections.abc import Sequence
from fractions import Fraction
from math import floor
from typing import Final

from axs6.golden.check.exact.accumulator import Accumulator, Output
from axs6.golden.check.exact.floats import (
    FP32,
    Special,
    Value,
    float_value,
    floor_log2,
    power,
    round_to_float,
)

ZERO: Final = Fraction(0)


def number(bits: int) -> Value:
    """The value of a pattern."""
    return float_value(bits, FP32)


def multiply(x: Value, y: Value) -> Value:
    """x * y by IEEE 754, without the sign of zeros."""
    if isinstance(x, Fraction) and isinstance(y, Fraction):
        return x * y
    if Special.NAN in (x, y) or _zero(x) or _zero(y):
        return Special.NAN if Special.NAN in (x, y) or _infinite(x) or _infinite(y) else ZERO
    negative = _negative(x) != _negative(y)
    return Special.NEGATIVE_INFINITY if negative else Special.INFINITY


def _zero(x: Value) -> bool:
    return x in (0, Special.NEGATIVE_ZERO)


def _infinite(x: Value) -> bool:
    return x in (Special.INFINITY, Special.NEGATIVE_INFINITY)


def _negative(x: Value) -> bool:
    return x is Special.NEGATIVE_INFINITY or (isinstance(x, Fraction) and x < 0)


def add(values: Sequence[Value]) -> Value:
    """The exact sum: NaN of NaN and of opposite infinities."""
    infinities = {x for x in values if _infinite(x)}
    if Special.NAN in values or len(infinities) == 2:
        return Special.NAN
    if infinities:
        return infinities.pop()
    return sum((x for x in values if isinstance(x, Fraction)), ZERO)


def sum_bits(a: int, b: int, output: Output, accumulator: Accumulator) -> int:
    """a + b of FP32 patterns, rounded to an output; the sum of zeros is -0 only if both are."""
    if a == b == FP32.sign:
        return a
    return rounded(add([number(a), number(b)]), output, accumulator)


def multiply_add_bits(x: int, factor: Value, y: int, accumulator: Accumulator) -> int:
    """x * factor + y of FP32 patterns, rounded once, for a factor that is not negative.

    A sum of zeros is -0 only if both are.
    """
    product = multiply(number(x), factor)
    if product == 0 and x & y == y == FP32.sign:
        return y
    return rounded(add([product, number(y)]), Output(), accumulator)


def product_bits(x: Value, factor: Value, accumulator: Accumulator) -> int:
    """FP32 pattern of x times a factor that is not negative; a product of 0 keeps the sign of x."""
    bits = rounded(multiply(x, factor), Output(), accumulator)
    minus = x is Special.NEGATIVE_ZERO or _negative(x)
    return FP32.sign if minus and not bits else bits


def rounded(x: Value, output: Output, accumulator: Accumulator) -> int:
    """FP32 pattern of a number rounded to an output; overflow gives an infinity."""
    if isinstance(x, Special):
        infinite = FP32.infinity if x is Special.INFINITY else FP32.sign | FP32.infinity
        return accumulator.nan if x is Special.NAN else infinite
    if x == 0:
        return 0
    bias = output.fields.bias
    unit = power(max(floor_log2(abs(x)), 1 - bias) - output.fields.fraction_bits)
    result = (floor if output.toward_zero else round)(abs(x) / unit) * unit
    magnitude = FP32.infinity if result >= power(bias + 1) else round_to_float(result, FP32)
    return (FP32.sign if x < 0 else 0) | magnitude
