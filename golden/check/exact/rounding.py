"""Rounding of numbers and to codes, in fractions: steps of the exact model."""

from bisect import bisect_right
from fractions import Fraction
from math import floor
from typing import Final, NamedTuple

from axs6.golden.check.exact.floats import BF16, FP32, Value, float_value, round_to_float
from axs6.golden.check.exact.formats import Element


class Rounding(NamedTuple):
    """How a value between two codes is rounded.

    Args:
        name: "nearest", "toward_zero" or "stochastic".
        bits: width of the random integers of "stochastic".
    """

    name: str = "nearest"
    bits: int = 0


NEAREST: Final = Rounding()


def bf16(x: Fraction) -> Value:
    """BF16 value nearest to `x`, which may be an infinity."""
    return float_value(round_to_float(x, BF16), BF16)


def fp32_or_infinite(x: Fraction) -> Value:
    """FP32 value nearest to `x`, which may be an infinity."""
    return float_value(round_to_float(x, FP32), FP32)


def fp32(x: Fraction) -> Fraction:
    """FP32 value nearest to `x`; the largest where that is an infinity."""
    value = float_value(round_to_float(x, FP32, saturate=True), FP32)
    assert isinstance(value, Fraction)
    return value


def rounded(x: Fraction, element: Element, rounding: Rounding, word: int = 0) -> int:
    """The place in an element's magnitudes of the one that `x` >= 0 is rounded to."""
    if rounding.name == "nearest":
        return element.nearest(x)
    low = element.below(x)
    if rounding.name == "toward_zero" or low == len(element.magnitudes) - 1:
        return low
    lower, upper = element.magnitudes[low : low + 2]
    part = (x - lower) / (upper - lower)
    return low + (floor(part * 2**rounding.bits) + word) // 2**rounding.bits


def listed_code(
    x: Fraction,
    negative: bool,
    element: Element,
    rounding: Rounding = NEAREST,
    word: int = 0,
) -> int:
    """The code of a listed value to which a magnitude is rounded, of its sign or 0.

    A tie goes to the even code; if neither or both are even, to the smaller magnitude.
    """
    magnitudes, codes = element.sides[negative]
    low = bisect_right(magnitudes, x) - 1
    if low == len(codes) - 1 or rounding.name == "toward_zero":
        return codes[low]
    lower, upper = magnitudes[low : low + 2]
    code, next_code = codes[low : low + 2]
    if rounding.name == "nearest":
        up = x - lower > upper - x
        tie = x - lower == upper - x
        return next_code if up or (tie and code % 2 == 1 and next_code % 2 == 0) else code
    part = (x - lower) / (upper - lower)
    return next_code if floor(part * 2**rounding.bits) + word >= 2**rounding.bits else code


def counted(x: Fraction, rounding: Rounding, word: int) -> int:
    """The integer that `x` is rounded to."""
    if rounding.name == "nearest":
        return round(x)
    magnitude = floor(abs(x))
    if rounding.name == "stochastic":
        magnitude = (floor(abs(x) * 2**rounding.bits) + word) // 2**rounding.bits
    return -magnitude if x < 0 else magnitude
