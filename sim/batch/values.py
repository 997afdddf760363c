"""Vector expressions and the ranges of their elements.

A word of one bit is a mask: a bit for each copy in one machine word. Other words are stored in
elements of 8, 16, 32 or 64 bits whose low bits are the word's; what the bits above hold is known
by a range. So a sum whose exact value fits its element is never masked, and a word is cleaned only
for a consumer that reads the bits above.
"""

from dataclasses import dataclass

SIZES = (1, 8, 16, 32, 64)


def element_bits(width: int) -> int:
    """Bits of the smallest element that holds `width` bits."""
    return next(size for size in SIZES if size >= width)


@dataclass(frozen=True)
class Value:
    """A C++ expression of type V<bits>, and the range of its elements, signed if `low` < 0."""

    text: str
    bits: int
    low: int
    high: int

    def is_unsigned(self, width: int) -> bool:
        """Whether every element is the unsigned value of its low `width` bits."""
        return self.low >= 0 and self.high < 1 << width

    def is_signed(self, width: int) -> bool:
        """Whether every element is the signed value of its low `width` bits."""
        return self.low >= -(1 << width - 1) and self.high < 1 << width - 1


def fitted(text: str, bits: int, low: int, high: int) -> Value:
    """A value whose exact range is given; elements wrap where it does not fit them."""
    if low >= 0 and high < 1 << bits:
        return Value(text, bits, low, high)
    if low >= -(1 << bits - 1) and high < 1 << bits - 1:
        return Value(text, bits, low, high)
    return Value(text, bits, 0, (1 << bits) - 1)


def constant(value: int, bits: int) -> Value:
    """The same value in every element."""
    return Value(
        f"splat<{bits}>({value & (1 << bits) - 1}u{'ll' * (bits > 32)})", bits, value, value
    )


def resized(value: Value, bits: int) -> Value:
    """The value in elements of another size: extended as its range says, or truncated."""
    if bits == value.bits:
        return value
    if bits == 1:
        return tested(value, 1)
    if value.bits == 1:
        ones = constant(-1 if value.low < 0 else 1, bits)
        return Value(f"where({value.text}, {ones.text})", bits, value.low, value.high)
    if bits > value.bits:
        extend = "sext" if value.low < 0 else "zext"
        return Value(f"{extend}<{bits}>({value.text})", bits, value.low, value.high)
    return fitted(f"trunc<{bits}>({value.text})", bits, value.low, value.high)


def tested(value: Value, mask: int) -> Value:
    """Whether the value has a bit of `mask`."""
    if value.bits == 1:
        return Value(value.text, 1, 0, 1)
    return Value(f"test({value.text}, {constant(mask, value.bits).text})", 1, 0, 1)


def unsigned(value: Value, width: int) -> Value:
    """The unsigned value of the low `width` bits."""
    if value.is_unsigned(width):
        return value
    if width == value.bits:
        return Value(value.text, value.bits, 0, (1 << width) - 1)
    mask = constant((1 << width) - 1, value.bits)
    return Value(f"both({value.text}, {mask.text})", value.bits, 0, (1 << width) - 1)


def signed(value: Value, width: int) -> Value:
    """The signed value of the low `width` bits."""
    if value.is_signed(width):
        return value
    low, high = -(1 << width - 1), (1 << width - 1) - 1
    if width == value.bits:
        return Value(value.text, value.bits, low, high)
    spare = value.bits - width
    return Value(f"sar(shl({value.text}, {spare}), {spare})", value.bits, low, high)
