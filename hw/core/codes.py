"""Codes of floating-point elements and scales as signals: their parts, and special values."""

from collections.abc import Sequence

import numpy as np
from amaranth.hdl import Cat, Const, Shape, Value, signed

from axs6.golden.decode import element_values
from axs6.golden.formats import (
    BlockFormat,
    Element,
    Float,
    Integer,
    Real,
    Scale,
    Selected,
    ValueTable,
)
from axs6.hw.core.trees import any_of


def split(dtype: Float, code: Value) -> tuple[Value, Value]:
    """Fraction and exponent field of a code."""
    return code[: dtype.fraction_bits], code[dtype.fraction_bits : dtype.magnitude_bits]


def significand_and_field(dtype: Float, code: Value) -> tuple[Value, Value]:
    """The significand of a code, as an integer, and the exponent field of 1 that is 0.

    Subnormal numbers have the field of the smallest normal ones.
    """
    fraction, field = split(dtype, code)
    if not dtype.subnormals:
        return Cat(fraction, Const(1, 1)), field
    normal = field.any()
    return Cat(fraction, normal), (field - normal)[: len(field)]


def is_zero(scale: Real | Integer, code: Value) -> Value:
    """Whether a scale is 0, in a format that has such a code."""
    if isinstance(scale, Integer):
        return ~code.any()
    if not scale.dtype.subnormals:
        return Const(0, 1)
    return ~code[: scale.dtype.magnitude_bits].any()


Listed = ValueTable | Selected
"""Elements whose integers are looked up."""


def table_shape(table: Listed) -> Shape:
    """The shape of the integers of a table."""
    low, high = int(table.integers.min()), int(table.integers.max())
    return signed(max(high.bit_length(), (~low).bit_length()) + 1)


def table_integer(table: Listed, code: Value) -> Value:
    """The integer of a code, with the bit that selects an element above it, in two's complement."""
    integers = table.integers.tolist()
    is_code = [code == each for each in range(len(integers))]

    def bit(place: int) -> Value:
        ones = [is_code[each] for each, value in enumerate(integers) if value >> place & 1]
        return any_of(ones) if ones else Const(0, 1)

    return Cat(bit(place) for place in range(table_shape(table).width)).as_signed()


def negative_zeros(table: Listed) -> list[int]:
    """Codes of -0, which an element of a selection may have, with the bit that selects it."""
    values = element_values(table)
    return [int(code) for code in np.flatnonzero((values == 0) & np.signbit(values))]


def is_negative(element: Element, code: Value) -> Value:
    """Whether the value of a code is negative."""
    if isinstance(element, Listed):
        return table_integer(element, code)[-1]
    return code[-1]


def code_bits(element: Element) -> int:
    """Bits of a code, with the one that selects an element."""
    return element.width + isinstance(element, Selected)


def with_selectors(
    fmt: BlockFormat, codes: Sequence[Value], scales: Sequence[Value]
) -> list[Value]:
    """Codes of lanes in a row with the bits above them that select elements, where there are any.

    Args:
        fmt: the format.
        codes: of the lanes.
        scales: codes of their scales of the finest level.
    """
    if not isinstance(fmt.element, Selected):
        return list(codes)
    size = len(codes) // len(scales)
    return [Cat(code, scales[lane // size][-1]) for lane, code in enumerate(codes)]


def number_bits(scale: Scale, code: Value) -> Value:
    """The bits of a scale that are its number: all but one that selects an element."""
    return code[:-1] if isinstance(scale, Real) and scale.selector else code


def is_nan(element: Element, code: Value) -> Value:
    """Whether a code is NaN."""
    if not element.has_nan:
        return Const(0, 1)
    assert isinstance(element, Float)
    if not element.has_negative_zero:
        return code == element.quiet_nan
    fraction, field = split(element, code)
    return field.all() & (fraction.any() if element.has_infinity else fraction.all())


def is_infinite(element: Element, code: Value) -> Value:
    """Whether a code is an infinity."""
    if not element.has_infinity:
        return Const(0, 1)
    assert isinstance(element, Float)
    if not element.has_negative_zero:
        return code[: element.magnitude_bits] == element.infinity
    fraction, field = split(element, code)
    return field.all() & ~fraction.any()


def infinite_products(
    infinite: Sequence[tuple[Value, Value]],
    zero: Sequence[tuple[Value, Value]],
    negative: Sequence[Value],
) -> tuple[Value, Value, Value]:
    """The sum of products of two factors with infinities, by IEEE 754.

    Args:
        infinite: for each product, which of its factors are infinite.
        zero: which of them are 0; infinities are not, whatever this says.
        negative: whether the product is negative.

    Returns:
        Whether a product is NaN, an infinity times 0; whether one is +Inf; and whether one is -Inf.
    """
    nan, plus, minus = [], [], []
    for (a, b), (a_zero, b_zero), sign in zip(infinite, zero, negative, strict=True):
        nan.append((a & b_zero & ~b) | (b & a_zero & ~a))
        plus.append((a | b) & ~sign)
        minus.append((a | b) & sign)
    return any_of(nan), any_of(plus), any_of(minus)
