"""Dot products of blocks of any format, exact and in accumulators of hardware.

Everything is a fraction until the format of an accumulator rounds it. The rules are those of
docs/formats.md and, for tensor cores, of MMA-Sim (arXiv 2511.10909).
"""

from collections.abc import Iterator, Sequence
from fractions import Fraction
from math import floor, trunc
from typing import Final, NamedTuple

from axs6.golden.check.exact.blocks import Block, decode_value, scale_value
from axs6.golden.check.exact.floats import (
    FP32,
    FP32_NAN,
    Format,
    Special,
    Value,
    float_value,
    floor_log2,
    power,
    round_to_float,
)
from axs6.golden.check.exact.formats import Definition, Exponent, Integer, Level, Real, real_element


class Output(NamedTuple):
    """Format of an accumulator, and whether it rounds toward zero or to nearest even."""

    fields: Format = FP32
    toward_zero: bool = False


FP32_TOWARD_ZERO: Final = Output(FP32, toward_zero=True)
E8M13_TOWARD_ZERO: Final = Output(Format(8, 13), toward_zero=True)


class Accumulator(NamedTuple):
    """An accumulator of products.

    Args:
        reduction: lanes of a step; None: a block.
        fraction: bits that terms keep after the point; None: terms are added exactly.
        toward_zero: whether the bits below are dropped from magnitudes, not from signed numbers.
        least: the exponent of zeros in a fused step of magnitudes; None: they have none.
        fused: whether the accumulator is one of the terms of a step.
        output: format of the accumulator.
        promote: steps after which it is added to an FP32 one outside; None: never.
        joined: lanes whose products are one term, at the exponent of their scales; 1: by the
            elements.
        wide: whether one number holds the whole sum, rounded once at the end.
        nan: the pattern of NaN.
    """

    reduction: int | None = None
    fraction: int | None = None
    toward_zero: bool = False
    least: int | None = None
    fused: bool = False
    output: Output = Output()
    promote: int | None = None
    joined: int = 1
    wide: bool = False
    nan: int = FP32_NAN


def _tensor_core(
    reduction: int, fraction: int, least: int, output: Output = FP32_TOWARD_ZERO
) -> Accumulator:
    return Accumulator(reduction, fraction, True, least, True, output, nan=0x7FFFFFFF)


ACCUMULATORS: Final = {
    "fp32": Accumulator(),
    "exact": Accumulator(wide=True),
    "paper": Accumulator(64, 23),
    "volta": _tensor_core(4, 23, -131),
    "turing": _tensor_core(8, 24, -132),
    "ampere": _tensor_core(8, 24, -132),
    "hopper": _tensor_core(16, 25, -133),
    "ada_fp8": _tensor_core(16, 13, -132, E8M13_TOWARD_ZERO),
    "hopper_fp8": _tensor_core(32, 13, -133, E8M13_TOWARD_ZERO),
    "blackwell": _tensor_core(32, 25, -133),
    "blackwell_mx": _tensor_core(32, 25, -133),
    "blackwell_fp4": _tensor_core(64, 35, -139)._replace(joined=16),
}
"""Accumulators that have names."""

ZERO: Final = Fraction(0)


class Operand(NamedTuple):
    """A row of blocks in a format."""

    blocks: Sequence[Block]
    definition: Definition


class Lane(NamedTuple):
    """One value or product of two, without the scales of tensors and channels.

    Args:
        value: the number.
        scale: the sum of the exponent fields of its scales.
        exponent: the same with those of the elements.
    """

    value: Value
    scale: int
    exponent: int


class Term(NamedTuple):
    """A number that a step adds.

    Args:
        value: the number.
        exponent: power of two of its point.
        counts: whether the exponent counts where the number is 0, and magnitudes are aligned.
    """

    value: Fraction
    exponent: int
    counts: bool = False


def block_dot(a: Block, b: Block, fa: Definition, fb: Definition) -> Value:
    """The sum of the products of two blocks, exactly."""
    return _add(
        [_multiply(decode_value(a, i, fa), decode_value(b, i, fb)) for i in range(fa.block)]
    )


def dot(a: Operand, b: Operand, accumulator: Accumulator) -> int:
    """FP32 pattern of the dot product of two rows of blocks."""
    return Products.of(ExactRow.of(a), ExactRow.of(b)).added(accumulator)


class ExactRow(NamedTuple):
    """A row of blocks, value by value.

    Args:
        lanes: its values.
        outer: the product of the scales of its tensor and its channel.
        definition: its format.
    """

    lanes: list[Lane]
    outer: Value
    definition: Definition

    @classmethod
    def of(cls, operand: Operand) -> "ExactRow":
        """The values of all blocks."""
        lanes = [
            _lane(block, index, operand.definition)
            for block in operand.blocks
            for index in range(operand.definition.block)
        ]
        return cls(lanes, _outer(operand), operand.definition)


class Products(NamedTuple):
    """The products of two rows, lane by lane.

    Args:
        lanes: the products; accumulators hold those that are numbers in units of `divisor`.
        numbers: these numbers, 0 in place of others.
        outer: the FP32 factor at the end.
        divisor: 2^n - 1 over 2^n of both formats, or 1.
        a, b: the formats.
    """

    lanes: list[Lane]
    numbers: list[Fraction]
    outer: Value
    divisor: Fraction
    a: Definition
    b: Definition

    @classmethod
    def of(cls, a: ExactRow, b: ExactRow) -> "Products":
        """Each value of `a` times that of `b`."""
        lanes = [
            Lane(_multiply(x.value, y.value), x.scale + y.scale, x.exponent + y.exponent)
            for x, y in zip(a.lanes, b.lanes, strict=True)
        ]
        divisor = _divisor(a.definition) * _divisor(b.definition)
        numbers = [x.value * divisor if isinstance(x.value, Fraction) else ZERO for x in lanes]
        outer = _multiply(a.outer, b.outer)
        factor = outer if isinstance(outer, Special) else _value(round_to_float(outer, FP32))
        return cls(lanes, numbers, factor, divisor, a.definition, b.definition)

    def added(self, accumulator: Accumulator) -> int:
        """FP32 pattern of their sum, times the outer factor."""
        if accumulator.wide:
            return _product_bits(_wide_sum(self, accumulator), self.outer, accumulator)
        result = _accumulated(self, accumulator)
        for factor in (1 / self.divisor, self.outer):
            if factor != 1:
                minus_zero = result == FP32.sign
                x = Special.NEGATIVE_ZERO if minus_zero else _value(result)
                result = _product_bits(x, factor, accumulator)
        return result


def _divisor(definition: Definition) -> Fraction:
    """2^n - 1 over 2^n, in whose units accumulators hold elements with this denominator."""
    denominator = definition.unit.denominator
    odd = denominator // (denominator & -denominator)
    return Fraction(1) if odd == 1 else Fraction(odd, 2 ** odd.bit_length())


def _steps(products: Products, accumulator: Accumulator) -> Iterator[tuple[list[Term], Value]]:
    """The terms of each step, and the sum of its products that are no numbers."""
    step = accumulator.reduction or products.a.block
    for start in range(0, len(products.lanes), step):
        yield _terms(products, slice(start, start + step), accumulator)


def _wide_sum(products: Products, accumulator: Accumulator) -> Value:
    """The exact sum of the results of all steps, which drop bits where terms are aligned."""
    return _add(
        [
            special
            if isinstance(special, Special)
            else _aligned(terms, accumulator) / products.divisor
            for terms, special in _steps(products, accumulator)
        ]
    )


def _accumulated(products: Products, accumulator: Accumulator) -> int:
    """FP32 pattern of the sum over all steps, in units of the divisor."""
    outside = inside = 0
    for number, (terms, special) in enumerate(_steps(products, accumulator), 1):
        inside = _stepped(inside, terms, special, accumulator)
        if accumulator.promote and number % accumulator.promote == 0:
            outside, inside = _sum_bits(outside, inside, Output(), accumulator), 0
    return _sum_bits(outside, inside, Output(), accumulator) if accumulator.promote else inside


def _stepped(running: int, terms: list[Term], special: Value, accumulator: Accumulator) -> int:
    """The running sum after a step; `special` is the sum of the NaN and infinities of its terms."""
    before = _value(running)
    if accumulator.fused and isinstance(before, Fraction):
        terms = [*terms, Term(before, max(running >> 23 & 255, 1) - 127)]
    total: Value = _aligned(terms, accumulator)
    if isinstance(special, Special):
        total = special
    if accumulator.fused:
        bits = _bits(
            _add([before, total]) if isinstance(before, Special) else total,
            accumulator.output,
            accumulator,
        )
        return 0 if bits == FP32.sign else bits
    return _sum_bits(
        running, _bits(total, accumulator.output, accumulator), accumulator.output, accumulator
    )


def _aligned(terms: list[Term], accumulator: Accumulator) -> Fraction:
    """The sum of terms, each with its bits far below the largest exponent dropped."""
    if accumulator.fraction is None:
        return sum((term.value for term in terms), ZERO)
    counted = [x.exponent for x in terms if x.value or x.counts or not accumulator.toward_zero]
    if accumulator.least is not None:
        counted.append(accumulator.least)
    unit = power(max(counted, default=0) - accumulator.fraction)
    drop = trunc if accumulator.toward_zero else floor
    return sum((drop(term.value / unit) for term in terms), 0) * unit


def _terms(products: Products, here: slice, accumulator: Accumulator) -> tuple[list[Term], Value]:
    """The terms of a step, and the sum of the products that are no numbers, 0 if there are none."""
    lanes, numbers, fa, fb = products.lanes[here], products.numbers[here], products.a, products.b
    specials = [lane.value for lane in lanes if isinstance(lane.value, Special)]
    special = _add(specials) if specials else ZERO
    if accumulator.fraction is None:
        return [Term(x, 0) for x in numbers], special
    floating = fa.floating or fb.floating
    if accumulator.joined == 1 and floating:
        return [Term(x, lane.exponent) for x, lane in zip(numbers, lanes, strict=True)], special
    together = min(_one_exponent(fa), _one_exponent(fb), accumulator.reduction or fa.block)
    size = accumulator.joined if accumulator.joined > 1 else together
    top = 0
    if accumulator.joined == 1:
        top = floor_log2(size * _bound(fa) * _bound(fb) * products.divisor)
    return [
        Term(
            sum(numbers[i : i + size], ZERO),
            lanes[i].scale + top,
            accumulator.joined > 1 and any(numbers[i : i + size]),
        )
        for i in range(0, len(lanes), size)
    ], special


def _one_exponent(definition: Definition) -> int:
    """Values of the largest group with one exponent."""
    levels = [x for x in definition.levels if isinstance(x, Exponent | Real)]
    return min((x.group for x in levels if isinstance(x.group, int)), default=definition.block)


def _bound(definition: Definition) -> Fraction:
    """The largest magnitude of a value over the power of two of its scales."""
    bound = max(x.bound for x in (definition.element, definition.second) if x)
    for level in definition.levels:
        if isinstance(level, Integer):
            bound *= 2**level.bits - 1
        if isinstance(level, Real) and isinstance(level.group, int):
            bound *= 2 - power(-level.fraction_bits)
    return bound


def _lane(block: Block, index: int, definition: Definition) -> Lane:
    inner, within = without_outer(block, definition)
    scale = 0
    for level, codes in zip(within.levels[::-1], inner.scales, strict=True):
        scale += _exponent_field(codes[index * len(codes) // definition.block], level)
    own = definition.element.fields[block.codes[index]] if definition.floating else 0
    return Lane(decode_value(inner, index, within), scale, scale + own)


def without_outer(block: Block, definition: Definition) -> tuple[Block, Definition]:
    """A block and its format without the scales of tensors and channels."""
    levels = tuple(level for level in definition.levels if isinstance(level.group, int))
    scales = block.scales[len(definition.levels) - len(levels) :]
    return block._replace(scales=scales), definition._replace(levels=levels)


def _exponent_field(code: int, level: Level) -> int:
    """The power of two that the exponent field of a scale says; shifts are part of the value."""
    if isinstance(level, Exponent):
        return code - 2 ** (level.bits - 1) + 1
    if isinstance(level, Real):
        return max(code >> 23, 1) - 127 if level.single else real_element(level).fields[code]
    return 0


def _outer(operand: Operand) -> Value:
    """The product of the scales of the tensor and the channel."""
    product: Value = Fraction(1)
    for level, codes in zip(operand.definition.levels[::-1], operand.blocks[0].scales, strict=True):
        if not isinstance(level.group, int):
            product = _multiply(product, scale_value(codes[0], level))
    return product


def _value(bits: int) -> Value:
    return float_value(bits, FP32)


def _multiply(x: Value, y: Value) -> Value:
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


def _add(values: Sequence[Value]) -> Value:
    """The exact sum: NaN of NaN and of opposite infinities."""
    infinities = {x for x in values if _infinite(x)}
    if Special.NAN in values or len(infinities) == 2:
        return Special.NAN
    if infinities:
        return infinities.pop()
    return sum((x for x in values if isinstance(x, Fraction)), ZERO)


def _sum_bits(a: int, b: int, output: Output, accumulator: Accumulator) -> int:
    """a + b of FP32 patterns, rounded to an output; the sum of zeros is -0 only if both are."""
    if a == b == FP32.sign:
        return a
    return _bits(_add([_value(a), _value(b)]), output, accumulator)


def _product_bits(x: Value, factor: Value, accumulator: Accumulator) -> int:
    """FP32 pattern of x times a factor that is not negative; a product of 0 keeps the sign of x."""
    bits = _bits(_multiply(x, factor), Output(), accumulator)
    minus = x is Special.NEGATIVE_ZERO or _negative(x)
    return FP32.sign if minus and not bits else bits


def _bits(x: Value, output: Output, accumulator: Accumulator) -> int:
    """FP32 pattern of a number rounded to an output; overflow gives an infinity."""
    if isinstance(x, Special):
        infinite = FP32.infinity if x is Special.INFINITY else FP32.sign | FP32.infinity
        return accumulator.nan if x is Special.NAN else infinite
    if x == 0:
        return 0
    exponent = max(floor_log2(abs(x)), 1 - FP32.bias)
    unit = power(exponent - output.fields.fraction_bits)
    count = (floor if output.toward_zero else round)(abs(x) / unit)
    return (FP32.sign if x < 0 else 0) | round_to_float(count * unit, FP32)
