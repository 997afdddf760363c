"""Sideband of the products of a block: exponents, scales, and NaN or an infinity."""

from collections.abc import Iterator, Sequence

from amaranth.hdl import Cat, Const, Module, Signal, Value
from amaranth.lib import data

from axs6.golden.formats import BlockFormat, Exponent, Level, Real, Shift
from axs6.hw.core.codes import (
    Listed,
    infinite_products,
    is_infinite,
    is_nan,
    is_negative,
    is_zero,
    number_bits,
    significand_and_field,
    table_integer,
)
from axs6.hw.core.layouts import scale_names
from axs6.hw.core.trees import any_of, balanced
from axs6.hw.dot.shape import SPECIAL_GROUP, DotShape, GroupScaling, lane_codes


def add_beside(m: Module, shape: DotShape, i: data.View, o: data.View) -> None:
    """Drive the fields of `DotShape.beside` or `DotShape.with_specials` from the operands."""
    sides = [(shape.a, i.a), (shape.b, i.b)]
    if shape.exponent_bits:
        m.d.comb += o.exponent.eq(balanced(list(_exponents(sides)), lambda a, b: a + b))
    for scaling in shape.scalings:
        for name, value in _scales(shape, scaling, sides):
            m.d.comb += Value.cast(o[name]).eq(value)
    if "special" in o.shape().members:
        m.d.comb += o.special.eq(_special(m, _no_numbers(sides, 0, shape.block)))
    if "specials" in o.shape().members:
        for group, special in enumerate(o.specials):
            found = _no_numbers(sides, group * SPECIAL_GROUP, (group + 1) * SPECIAL_GROUP)
            m.d.comb += special.eq(Cat(found))


def join_specials(m: Module, i: data.View, o: data.View) -> None:
    """Drive the field `special` from `specials`, which are of groups of lanes."""
    found = [any_of(each) for each in zip(*i.specials, strict=True)]
    m.d.comb += o.special.eq(_special(m, found))


Sides = list[tuple[BlockFormat, data.View]]


def _codes(fmt: BlockFormat, block: data.View) -> Iterator[tuple[Level, list[Value]]]:
    """The levels of a block and the codes of their scales."""
    for name, level in zip(scale_names(fmt), fmt.blocked[::-1], strict=True):
        field = block[name]
        yield level, list(field) if isinstance(field, data.View) else [field]


def _exponents(sides: Sides) -> Iterator[Value]:
    for fmt, block in sides:
        for level, (first, *_) in _codes(fmt, block):
            if isinstance(level.scale, Exponent):
                yield first
            elif isinstance(level.scale, Real):
                yield significand_and_field(level.scale.dtype, first)[1]


def _scales(shape: DotShape, scaling: GroupScaling, sides: Sides) -> Iterator[tuple[str, Value]]:
    """The fields of one size of groups, an element for each group."""
    shifts: list[list[Value]] = [[] for _ in range(shape.block // scaling.group)]
    factors: list[list[Value]] = [[] for _ in shifts]
    for fmt, block in sides:
        for level, codes in _codes(fmt, block):
            if level.group != scaling.group:
                continue
            for code, shift, factor in zip(codes, shifts, factors, strict=True):
                if isinstance(level.scale, Shift):
                    shift.append(~code)
                elif isinstance(level.scale, Real):
                    factor.append(significand_and_field(level.scale.dtype, code)[0])
                elif not isinstance(level.scale, Exponent):
                    factor.append(code)
    if scaling.shift:
        bits = scaling.shift.bit_length()
        sums = [balanced(each, lambda a, b: a + b) for each in shifts]
        yield f"shift{scaling.group}", _joined(sums, bits)
    if scaling.factor > 1:
        bits = scaling.factor.bit_length()
        products = [balanced(each, lambda a, b: a * b) for each in factors]
        yield f"factor{scaling.group}", _joined(products, bits)


def _joined(values: list[Value], bits: int) -> Value:
    """Values in so many bits each, side by side."""
    return Cat(Cat(value, Const(0, max(0, bits - len(value))))[:bits] for value in values)


def _no_numbers(sides: Sides, first: int, end: int) -> list[Value]:
    """Whether products of some lanes are NaN, or, with scales, of the first lanes; +Inf; and -Inf.

    Only the first where elements have no infinity.
    """
    nan = [
        number_bits(level.scale, code) == level.scale.nan_code
        for fmt, block in sides
        for level, codes in _codes(fmt, block)
        if level.scale.nan_code is not None and not first
        for code in codes
    ]
    lanes = [lane_codes(fmt, block)[first:end] for fmt, block in sides]
    for (fmt, _), codes in zip(sides, lanes, strict=True):
        if fmt.element.has_nan:
            nan += [is_nan(fmt.element, code) for code in codes]
    if not any(fmt.element.has_infinity for fmt, _ in sides):
        return [any_of(nan)]
    infinite = [
        [is_infinite(fmt.element, code) for code in codes]
        for (fmt, _), codes in zip(sides, lanes, strict=True)
    ]
    zero = [_zero(fmt, block)[first:end] for fmt, block in sides]
    signs = [
        [is_negative(fmt.element, code) for code in codes]
        for (fmt, _), codes in zip(sides, lanes, strict=True)
    ]
    negative = [x ^ y for x, y in zip(*signs, strict=True)]
    times_zero, *signs = infinite_products(
        list(zip(*infinite, strict=True)), list(zip(*zero, strict=True)), negative
    )
    return [any_of([*nan, times_zero]), *signs]


def _special(m: Module, found: Sequence[Value]) -> Value:
    """The special value of the sum if one of the products is NaN or infinite; see
    `DotShape.sum`."""
    if len(found) == 1:
        return Cat(found[0], Const(0, 1))
    some = [Signal(name=name) for name in ("nan", "plus", "minus")]
    m.d.comb += [x.eq(y) for x, y in zip(some, found, strict=True)]
    bad = some[0] | (some[1] & some[2])
    return Cat(bad | some[2], ~bad & (some[1] | some[2]))


def _zero(fmt: BlockFormat, block: data.View) -> list[Value]:
    """Which values are 0, by their elements or by a scale."""
    one_zero = fmt.element.sign_bit if fmt.element.signed_zero or fmt.element.divisor > 1 else 0
    bits = fmt.element.width - bool(one_zero)
    found = [~code[:bits].any() for code in block.codes]
    if isinstance(fmt.element, Listed):
        found = [table_integer(fmt.element, code) == 0 for code in lane_codes(fmt, block)]
    for level, codes in _codes(fmt, block):
        if isinstance(level.scale, Exponent | Shift):
            continue
        size = len(found) // len(codes)
        for lane in range(len(found)):
            found[lane] = found[lane] | is_zero(level.scale, codes[lane // size])
    return found
