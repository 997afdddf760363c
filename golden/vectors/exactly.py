"""Exact values as the words of vectors, and packed blocks as the exact model has them."""

from typing import Final

from axs6.golden.check.exact.blocks import Block, tiled
from axs6.golden.check.exact.floats import (
    FP32,
    FP32_NAN,
    Special,
    Value,
    float_value,
    power,
    round_to_float,
)
from axs6.golden.check.exact.formats import Definition, Real

SPECIALS: Final = {
    Special.NAN: "nan",
    Special.INFINITY: "inf",
    Special.NEGATIVE_INFINITY: "-inf",
    Special.NEGATIVE_ZERO: "0",
}


def pattern_of(value: Value) -> int:
    """The FP32 pattern of a value that FP32 holds."""
    if isinstance(value, Special):
        return {
            Special.NAN: FP32_NAN,
            Special.INFINITY: FP32.infinity,
            Special.NEGATIVE_INFINITY: FP32.sign | FP32.infinity,
            Special.NEGATIVE_ZERO: FP32.sign,
        }[value]
    bits = round_to_float(value, FP32)
    if float_value(bits, FP32) != value:
        raise ValueError(f"{value} is not an FP32 number")
    return bits


def exact_sum(value: Value) -> tuple[str, int]:
    """An odd integer, in hexadecimal, and the power of two that it is multiplied by."""
    if isinstance(value, Special):
        return SPECIALS[value], 0
    if not value:
        return "0", 0
    twos = (value.numerator & -value.numerator).bit_length() - value.denominator.bit_length()
    return f"{int(value / power(twos)):x}", twos


def unpacked(data: bytes, definition: Definition) -> Block:
    """The one block of packed bytes, by the definition of the layout."""
    size, levels = definition.block, definition.levels[::-1]
    outer, zero, at = [], None, 0
    zero_point = any(isinstance(level, Real) and level.zero_point for level in levels)
    for level in levels:
        if isinstance(level.group, str) or tiled(level, definition):
            length = -(-level.bits // 8)
            outer.append((int.from_bytes(data[at : at + length], "little"),))
            at += length
    if zero_point and outer:
        zero, at = data[at], at + 1
    number, position = int.from_bytes(data[at:], "little"), 0

    def take(width: int) -> int:
        nonlocal position
        position += width
        return number >> position - width & (1 << width) - 1

    inner = []
    for level in levels:
        if isinstance(level.group, int) and not tiled(level, definition):
            inner.append(tuple(take(level.bits) for _ in range(size // level.group)))
            if zero_point:
                zero = take(definition.element.width)
    codes = tuple(take(definition.element.width) for _ in range(size))
    return Block((*outer, *inner), codes, zero)
