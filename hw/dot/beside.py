"""What goes along with the products of a block: exponents, scales, and NaN or an infinity."""

from collections.abc import Iterator

from amaranth.hdl import Cat, Const, Module, Signal, Value
from amaranth.lib import data

from axs6.golden.formats import BlockFormat, Exponent, Level, Real, Shift
from axs6.hw.core.codes import infinite_products, is_infinite, is_nan, significand_and_field
from axs6.hw.core.layouts import scale_names
from axs6.hw.core.trees import any_of, balanced
from axs6.hw.dot.shape import Scaling, Shape


def add_beside(m: Module, shape: Shape, i: data.View, o: data.View) -> None:
    """Drive the fields of `Shape.beside` from the operands."""
    sides = [(shape.a, i.a), (shape.b, i.b)]
    if shape.exponent_bits:
        m.d.comb += o.exponent.eq(balanced(list(_exponents(sides)), lambda a, b: a + b))
    for scaling in shape.scalings:
        for name, value in _scales(shape, scaling, sides):
            m.d.comb += Value.cast(o[name]).eq(value)
    if shape.special:
        m.d.comb += o.special.eq(_special(m, sides))


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


def _scales(shape: Shape, scaling: Scaling, sides: Sides) -> Iterator[tuple[str, Value]]:
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


def _special(m: Module, sides: Sides) -> Value:
    """What the products add up to where one of them is NaN or infinite; see `Shape.sum`."""
    nan = [
        code == level.scale.nan_code
        for fmt, block in sides
        for level, codes in _codes(fmt, block)
        if level.scale.nan_code is not None
        for code in codes
    ]
    for fmt, block in sides:
        if fmt.element.has_nan:
            nan += [is_nan(fmt.element, code) for code in block.codes]
    if not any(fmt.element.has_infinity for fmt, _ in sides):
        return Cat(any_of(nan), Const(0, 1))
    infinite = [[is_infinite(fmt.element, code) for code in block.codes] for fmt, block in sides]
    zero = [_zero(fmt, block) for fmt, block in sides]
    (_, a), (_, b) = sides
    negative = [x[-1] ^ y[-1] for x, y in zip(a.codes, b.codes, strict=True)]
    times_zero, *signs = infinite_products(
        list(zip(*infinite, strict=True)), list(zip(*zero, strict=True)), negative
    )
    some = [Signal(name=name) for name in ("nan", "plus", "minus")]
    m.d.comb += [x.eq(y) for x, y in zip(some, (any_of([*nan, times_zero]), *signs), strict=True)]
    bad = some[0] | (some[1] & some[2])
    return Cat(bad | some[2], ~bad & (some[1] | some[2]))


def _zero(fmt: BlockFormat, block: data.View) -> list[Value]:
    """Which values are 0, by their elements or by a scale."""
    one_zero = fmt.element.sign_bit if fmt.element.signed_zero or fmt.element.divisor > 1 else 0
    bits = fmt.element.width - bool(one_zero)
    found = [~code[:bits].any() for code in block.codes]
    for level, codes in _codes(fmt, block):
        if isinstance(level.scale, Exponent | Shift):
            continue
        size = len(found) // len(codes)
        for lane in range(len(found)):
            code = codes[lane // size]
            bits = code[:-1] if isinstance(level.scale, Real) else code
            found[lane] = found[lane] | ~bits.any()
    return found
