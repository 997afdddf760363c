"""Dot products of blocks of any format, exact and in accumulators of hardware.

Everything is a fraction until the format of an accumulator rounds it. The rules are those of
docs/formats.md and, for tensor and matrix cores, of MMA-Sim (arXiv 2511.10909).
"""

from collections.abc import Iterator, Sequence
from fractions import Fraction
from typing import NamedTuple

from axs6.golden.check.exact.accumulator import Accumulator, Output
from axs6.golden.check.exact.arithmetic import (
    ZERO,
    add,
    multiply,
    number,
    product_bits,
    sum_bits,
)
from axs6.golden.check.exact.blocks import Block, decode_value, scale_value
from axs6.golden.check.exact.floats import (
    FP32,
    Special,
    Value,
    floor_log2,
    power,
    round_to_float,
)
from axs6.golden.check.exact.formats import Definition, Exponent, Integer, Level, Real, real_element
from axs6.golden.check.exact.step import ExactStep, Term, aligned, stepped


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
        factors: of a product.
    """

    value: Value
    scale: int
    exponent: int
    factors: tuple[Value, ...] = ()


def block_dot(a: Block, b: Block, fa: Definition, fb: Definition) -> Value:
    """The sum of the products of two blocks, exactly."""
    return add([multiply(decode_value(a, i, fa), decode_value(b, i, fb)) for i in range(fa.block)])


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
            Lane(
                multiply(x.value, y.value),
                x.scale + y.scale,
                x.exponent + y.exponent,
                (_times(x.value, _divisor(a.definition)), _times(y.value, _divisor(b.definition))),
            )
            for x, y in zip(a.lanes, b.lanes, strict=True)
        ]
        divisor = _divisor(a.definition) * _divisor(b.definition)
        numbers = [x.value * divisor if isinstance(x.value, Fraction) else ZERO for x in lanes]
        outer = multiply(a.outer, b.outer)
        factor = outer if isinstance(outer, Special) else number(round_to_float(outer, FP32))
        return cls(lanes, numbers, factor, divisor, a.definition, b.definition)

    def added(self, accumulator: Accumulator) -> int:
        """FP32 pattern of their sum, times the outer factor."""
        if accumulator.wide:
            return product_bits(_wide_sum(self, accumulator), self.outer, accumulator)
        result = _accumulated(self, accumulator)
        for factor in (1 / self.divisor, self.outer):
            if factor != 1:
                minus_zero = result == FP32.sign
                x = Special.NEGATIVE_ZERO if minus_zero else number(result)
                result = product_bits(x, factor, accumulator)
        return result


def _divisor(definition: Definition) -> Fraction:
    """2^n - 1 over 2^n, in whose units accumulators hold elements with this denominator."""
    denominator = definition.unit.denominator
    odd = denominator // (denominator & -denominator)
    return Fraction(1) if odd == 1 else Fraction(odd, 2 ** odd.bit_length())


def _times(x: Value, factor: Fraction) -> Value:
    return x * factor if isinstance(x, Fraction) else x


def _steps(products: Products, accumulator: Accumulator) -> Iterator[ExactStep]:
    """The steps in order."""
    step = accumulator.reduction or products.a.block
    for start in range(0, len(products.lanes), step):
        here = slice(start, start + step)
        lanes = products.lanes[here]
        specials = [lane.value for lane in lanes if isinstance(lane.value, Special)]
        special = add(specials) if specials else ZERO
        yield ExactStep(_terms(products, here, accumulator), special, [x.factors for x in lanes])


def _wide_sum(products: Products, accumulator: Accumulator) -> Value:
    """The exact sum of the results of all steps, which drop bits where terms are aligned."""
    return add(
        [
            step.special
            if isinstance(step.special, Special)
            else aligned(step.terms, accumulator) / products.divisor
            for step in _steps(products, accumulator)
        ]
    )


def _accumulated(products: Products, accumulator: Accumulator) -> int:
    """FP32 pattern of the sum over all steps, in units of the divisor."""
    outside = inside = 0
    for count, step in enumerate(_steps(products, accumulator), 1):
        inside = stepped(inside, step, accumulator)
        if accumulator.promote and count % accumulator.promote == 0:
            outside, inside = sum_bits(outside, inside, Output(), accumulator), 0
    return sum_bits(outside, inside, Output(), accumulator) if accumulator.promote else inside


def _terms(products: Products, here: slice, accumulator: Accumulator) -> list[Term]:
    """The terms of a step."""
    lanes, numbers, fa, fb = products.lanes[here], products.numbers[here], products.a, products.b
    if accumulator.fraction is None:
        return [Term(x, 0) for x in numbers]
    floating = fa.floating or fb.floating
    if accumulator.joined == 1 and floating:
        return [Term(x, lane.exponent) for x, lane in zip(numbers, lanes, strict=True)]
    together = min(_one_exponent(fa), _one_exponent(fb), accumulator.reduction or fa.block)
    size = accumulator.joined if accumulator.joined > 1 else together
    size = 1 if accumulator.groups > 1 else size
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
    ]


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
            product = multiply(product, scale_value(codes[0], level))
    return product
