"""Blocks of every format, decoded and packed by definition: one block and one value at a time."""

from collections.abc import Sequence
from fractions import Fraction
from typing import NamedTuple

from axs6.golden.check.exact.floats import Format, Special, Value, power, round_to_float
from axs6.golden.check.exact.formats import (
    Definition,
    Element,
    Exponent,
    Level,
    Real,
    Shift,
    real_value,
)


class Block(NamedTuple):
    """One block of B values.

    Args:
        scales: for each level, coarse to fine, the codes of the groups that the block lies in, or
            that lie in it.
        codes: B of them.
        zero_point: the code of the value 0, in formats with a zero point.
    """

    scales: tuple[tuple[int, ...], ...]
    codes: tuple[int, ...]
    zero_point: int | None = None


def decode_value(block: Block, index: int, definition: Definition) -> Value:
    """The value at an index of a block, exactly.

    Under a scale of 0 a negative number is -0, and an infinity NaN.
    """
    value = element_value(block, index, definition)
    for level, codes in zip(definition.levels[::-1], block.scales, strict=True):
        factor = scale_value(codes[index * len(codes) // definition.block], level)
        if isinstance(factor, Special):
            return Special.NAN
        if isinstance(value, Fraction):
            value = Special.NEGATIVE_ZERO if value < 0 and not factor else value * factor
        elif value is not Special.NEGATIVE_ZERO and not factor:
            value = Special.NAN
    return value


def element_value(block: Block, index: int, definition: Definition) -> Value:
    """The value at an index, without scales."""
    value = element_of(block, index, definition).values[block.codes[index]]
    if isinstance(value, Fraction) and block.zero_point is not None:
        value -= block.zero_point
    return value


def element_of(block: Block, index: int, definition: Definition) -> Element:
    """The element of a value, which its finest scale may select."""
    if definition.second is None:
        return definition.element
    level = definition.levels[0]
    assert isinstance(level, Real)
    codes = block.scales[-1]
    code = codes[index * len(codes) // definition.block]
    return definition.second if code >> (level.bits - 1) else definition.element


def scale_value(code: int, level: Level) -> Value:
    """The factor of a scale, or NaN."""
    if isinstance(level, Real):
        return real_value(code, level)
    if isinstance(level, Exponent):
        nan = level.nan and code == 2**level.bits - 1
        return Special.NAN if nan else power(code - 2 ** (level.bits - 1) + 1)
    return power(-code) if isinstance(level, Shift) else Fraction(code)


def decode_bits(block: Block, index: int, definition: Definition, dtype: Format) -> int:
    """Bit pattern of a value in a dtype: rounded once, held to the largest finite value."""
    value = decode_value(block, index, definition)
    if isinstance(value, Fraction):
        return round_to_float(value, dtype, saturate=True)
    return {
        Special.NAN: dtype.infinity | 1 << dtype.fraction_bits - 1,
        Special.INFINITY: dtype.infinity,
        Special.NEGATIVE_INFINITY: dtype.sign | dtype.infinity,
        Special.NEGATIVE_ZERO: dtype.sign,
    }[value]


def pack_block(block: Block, definition: Definition) -> bytes:
    """Scales of groups within the block, coarse to fine, then the codes; zeros to a byte.

    A zero point follows its scale.

    Least significant bit first, in index order. With a header: the exponent above the two bits of
    the dense mode, and zeros, 16 bits in all.
    """
    fields = []
    for level, codes in zip(definition.levels[::-1], block.scales, strict=True):
        if isinstance(level.group, int) and not tiled(level, definition):
            fields += [(code, level.bits) for code in codes]
            if block.zero_point is not None:
                fields.append((block.zero_point, definition.element.width))
    if definition.header:
        fields = [(block.scales[0][0] << 2, 16)]
    fields += [(code, definition.element.width) for code in block.codes]
    number = position = 0
    for value, width in fields:
        number |= value << position
        position += width
    return number.to_bytes(-(-position // 8), "little")


def tiled(level: Level, definition: Definition) -> bool:
    """Whether a scale is one of several rows."""
    return definition.rows > 1 and level.group == definition.block


def pack_outer(rows: Sequence[Sequence[Block]], definition: Definition) -> bytes:
    """The bytes before the blocks: scales of the tensor, channels and tiles, then zero points.

    Each in whole bytes, the least significant first; those of channels in the order of the rows,
    and those of tiles too, for each row of tiles in the order of its blocks.
    """
    data = b""
    for number, level in enumerate(definition.levels[::-1]):
        if tiled(level, definition):
            for row in rows[:: definition.rows]:
                for block in row:
                    data += block.scales[number][0].to_bytes(-(-level.bits // 8), "little")
        elif isinstance(level.group, str):
            holders = rows[:1] if level.group == "tensor" else rows
            for row in holders:
                data += row[0].scales[number][0].to_bytes(-(-level.bits // 8), "little")
            if isinstance(level, Real) and level.zero_point:
                data += bytes(row[0].zero_point or 0 for row in holders)
    return data
