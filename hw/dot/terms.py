"""The terms of a step of a dot product: exact sums of products of lanes under exponents."""

from collections.abc import Sequence
from dataclasses import dataclass, replace
from functools import cached_property
from typing import Any

from amaranth.hdl import Cat, Const, Module, Mux, Shape, Signal, Value, signed, unsigned
from amaranth.lib import data

from axs6.golden.accumulator import Accumulator, Alignment
from axs6.golden.formats import (
    FP32,
    TENSOR,
    BlockFormat,
    Exponent,
    Mode,
    Real,
    Selected,
    name_of,
)
from axs6.golden.operands import IntegerForm
from axs6.golden.terms import Terms
from axs6.hw.core.codes import infinite_products, is_infinite, is_nan, is_negative
from axs6.hw.core.parameters import STRUCTURE
from axs6.hw.core.pipeline import Chain, Step
from axs6.hw.core.rtlil import add_lanes
from axs6.hw.core.structures import ArrayLayout, StructLayout
from axs6.hw.core.trees import any_of, balanced
from axs6.hw.dot.block_dot import block_dot_steps
from axs6.hw.dot.operand import OperandSignals, operand_layout
from axs6.hw.dot.shape import BLOCK_MAX, DotShape, check_table


@dataclass(frozen=True)
class TermPlan:
    """Parameters of the hardware of terms, from their definition.

    The exponent of a term is the sum of the fields of its elements and of the fields of its
    scales. Terms in a row under the same scales are a *cluster*.

    Args:
        terms: what the terms are, of blocks no larger than a step; see `step_terms`.
        groups: into which terms are dealt in turn; the plan is that of one of them.
    """

    terms: Terms
    groups: int = 1

    @property
    def count(self) -> int:
        """Terms of a step."""
        return self.terms.step // self.groups

    @property
    def reduction(self) -> int:
        """Lanes of a step."""
        return self.terms.reduction

    @property
    def forms(self) -> tuple[IntegerForm, IntegerForm]:
        """The forms of the operands."""
        return self.terms.a, self.terms.b

    @property
    def signed(self) -> bool:
        """Whether terms are two's complement, as what is dropped toward minus infinity must be."""
        accumulator = self.terms.accumulator
        if accumulator.pairwise:
            return False
        return accumulator.fraction is None or accumulator.alignment is Alignment.FLOOR

    @property
    def gated(self) -> bool:
        """Whether a term of zeros does not count in the largest exponent."""
        return self.terms.accumulator.fraction is not None and not self.signed

    @cached_property
    def magnitude_bits(self) -> int:
        """Bits of the magnitude of a term."""
        return self.terms.bound.bit_length()

    @property
    def value_shape(self) -> Shape:
        """Shape of a term: a number in two's complement, or a magnitude with its sign on top."""
        width = self.magnitude_bits + 1
        return signed(width) if self.signed else unsigned(width)

    @cached_property
    def cluster(self) -> int:
        """Terms of a cluster."""
        spans = [
            int(level.group)
            for form in self.forms
            for level in form.levels
            if isinstance(level.scale, Exponent | Real)
        ]
        return min([*spans, self.reduction]) // (self.terms.lanes * self.groups)

    @property
    def clusters(self) -> int:
        """Clusters of a step."""
        return self.count // self.cluster

    @cached_property
    def field_bound(self) -> int:
        """The largest sum of the fields of two elements; 0 where they are in the integers."""
        return sum(int(form.fields.max()) for form in self.forms)

    @property
    def code_bits(self) -> int:
        """Bits of a local code: the sum of fields; one more than it, and 0 for a term of 0, where
        those do not count."""
        return (self.field_bound + self.gated).bit_length()

    @property
    def scale_bound(self) -> int:
        """The largest sum of the fields of scales."""
        return self.terms.largest_exponent - self.field_bound

    @property
    def scale_bits(self) -> int:
        """Bits of that sum."""
        return self.scale_bound.bit_length()

    @cached_property
    def has_infinity(self) -> bool:
        """Whether a product may be infinite."""
        return any(form.format.element.has_infinity for form in self.forms)

    @cached_property
    def has_nan(self) -> bool:
        """Whether a product may be NaN."""
        nan_codes = (x.scale.nan_code for form in self.forms for x in form.levels)
        return (
            self.has_infinity
            or any(form.format.element.has_nan for form in self.forms)
            or any(code is not None for code in nan_codes)
        )

    @cached_property
    def overflows(self) -> bool:
        """Whether terms may be 2^128 or more, where such are infinite."""
        terms = self.terms
        highest = terms.bound.bit_length() + terms.largest_exponent + terms.offset
        return terms.accumulator.sum_fraction is not None and highest > FP32.bias + 1

    @cached_property
    def core(self) -> DotShape | None:
        """The block dot products that terms of several lanes are made of, if they are."""
        size = min(self.terms.lanes, BLOCK_MAX)
        selects = any(isinstance(form.format.element, Selected) for form in self.forms)
        if size == 1 or (selects and self.terms.accumulator.scaled):
            return None
        dense = [
            without_blocks(form.format)
            if form.scaled
            else replace(form.format, modes=(Mode.DENSE,))
            for form in self.forms
        ]
        a, b = (x.with_block(size) if x.blocked and x.block > size else x for x in dense)
        return DotShape(a, b, size)

    @property
    def special(self) -> dict[str, int]:
        """Fields with the special values of products, if some may be NaN or infinite."""
        if self.overflows:
            return {"nan": 1, "infinite": 1, "negative": 1}
        infinite = {"infinite": 1, "negative": 1} if self.has_infinity else {}
        return {**({"nan": 1} if self.has_nan else {}), **infinite}

    @cached_property
    def i(self) -> data.StructLayout:
        """The lanes of a step of both operands, with their scales."""
        return StructLayout(step_layout(self.terms).members)

    @cached_property
    def o(self) -> data.StructLayout:
        """Terms, their local codes, the sums of the fields of scales, and what is special."""
        return StructLayout(
            {
                "values": ArrayLayout(self.value_shape, self.count),
                "codes": ArrayLayout(unsigned(self.code_bits), self.count),
                "scales": ArrayLayout(unsigned(self.scale_bits), self.clusters),
                **self.special,
            }
        )


def without_blocks(fmt: BlockFormat) -> BlockFormat:
    """A format with the scale of its blocks for the tensor, under which elements are terms."""
    whole = replace(fmt.blocked[-1], group=TENSOR)
    return BlockFormat(fmt.element, (whole,))


def step_terms(a: BlockFormat, b: BlockFormat, accumulator: Accumulator) -> Terms:
    """The terms of two formats, whose blocks are the parts of blocks that a step has, if it has.

    Raises:
        ValueError: the formats or the accumulator do not fit, levels within a block are no smaller
            than a step, or there is no hardware for an element or for the accumulator.
    """
    terms = Terms.of(a, b, accumulator)
    for fmt in (a, b):
        check_table(fmt)
        if not fmt.element.signed:
            raise ValueError(f"{name_of(fmt)} has zero points, for which there is no hardware")
        inner = [int(level.group) for level in fmt.blocked[:-1]]
        if inner and terms.reduction <= inner[-1]:
            raise ValueError(
                f"reduction must be more than {inner[-1]} for {name_of(fmt)} here, the values of "
                f"a group within its blocks, not {terms.reduction}"
            )
    parts = [
        fmt
        if terms.reduction >= fmt.block or not fmt.blocked
        else replace(fmt, modes=(Mode.DENSE,)).with_block(terms.reduction)
        for fmt in (a, b)
    ]
    left, right = (
        replace(form, format=part) for form, part in zip((terms.a, terms.b), parts, strict=True)
    )
    return replace(terms, a=left, b=right)


def step_layout(terms: Terms) -> data.StructLayout:
    """The lanes of a step of both operands, with their scales."""
    a, b = (operand_layout(form, terms.reduction) for form in (terms.a, terms.b))
    return data.StructLayout({"a": a, "b": b})


class MakeTerms(Step):
    """The terms of a step.

    In the structure, products that are added exactly are those of block dot products: compressor
    trees.
    """

    verilog_name = "products"

    def __init__(self, plan: TermPlan, view: str) -> None:
        self._plan = plan
        self._core = plan.core if view == STRUCTURE else None
        adding = 7 * (plan.terms.lanes - 1).bit_length()
        super().__init__(plan.i, plan.o, levels=22 + adding)

    def elaborate(self, platform: Any) -> Module:
        """Build multipliers, trees of adders, and the detection of what is special."""
        m = Module()
        plan = self._plan
        sides = [
            OperandSignals(m, form, view, name)
            for form, view, name in zip(plan.forms, (self.i.a, self.i.b), "ab", strict=True)
        ]
        if self._core:
            self._cores(m, platform, sides, self._core)
        else:
            make = self._product if plan.terms.lanes == 1 else self._sum
            for index in range(plan.count):
                make(m, sides, index)
        for index, total in enumerate(self.o.scales):
            lane = index * plan.cluster * plan.terms.lanes
            fields = [each for side in sides for each in side.exponents(lane)]
            m.d.comb += total.eq(balanced(fields, lambda a, b: a + b) if fields else 0)
        self._special(m, sides)
        return m

    def _product(self, m: Module, sides: Sequence[OperandSignals], index: int) -> None:
        """A term of one lane."""
        (a_sign, a, a_field), (b_sign, b, b_field) = (side.element(index) for side in sides)
        magnitude = Signal(self._plan.magnitude_bits, name=f"product{index}")
        product = a * b
        for side, form in zip(sides, self._plan.forms, strict=True):
            for level in form.levels:
                product = side.scaled(product, level, index)
        m.d.comb += magnitude.eq(product)
        negative = a_sign ^ b_sign
        value: Value = Cat(magnitude, negative)
        if self._plan.signed:
            value = Mux(negative, -magnitude, magnitude)
        m.d.comb += self.o.values[index].eq(value)
        self._code(m, index, a_field + b_field, magnitude.any())

    def _cores(
        self, m: Module, platform: Any, sides: Sequence[OperandSignals], shape: DotShape
    ) -> None:
        """Terms of several lanes as sums of block dot products, whose exponents are left out."""
        plan = self._plan
        cores = plan.reduction // shape.block
        sums = Signal(ArrayLayout(shape.sum, cores))
        lanes = (
            {"i": _core_pair(shape, sides, index * shape.block), "o": sums[index]}
            for index in range(cores)
        )
        add_lanes(m, platform, [lambda: Chain(block_dot_steps(shape))], lanes)
        members = [name for name in ("sum", "high") if name in shape.sum.members]
        numbers: list[Value] = [
            Cat(*(Value.cast(each[name]) for name in members)).as_signed() for each in sums
        ]
        size = cores // plan.count
        for index, total in enumerate(_grouped(numbers, size)):
            self._term(m, sides, index, total)

    def _sum(self, m: Module, sides: Sequence[OperandSignals], index: int) -> None:
        """A term of several lanes: sums of groups, multiplied by what their levels say."""
        plan = self._plan
        first, lanes, size = index * plan.terms.lanes, plan.terms.lanes, 1
        values: list[Value] = [
            sides[0].number(lane) * sides[1].number(lane) for lane in range(first, first + lanes)
        ]
        pairs = zip(*(form.levels for form in plan.forms), strict=True)
        for levels in pairs:
            group = min(int(levels[0].group), lanes)
            values, size = _grouped(values, group // size), group
            for part, value in enumerate(values):
                product = value
                for side, level in zip(sides, levels, strict=True):
                    product = side.scaled(product, level, first + part * group)
                values[part] = product
        (total,) = _grouped(values, lanes // size)
        self._term(m, sides, index, total)

    def _term(self, m: Module, sides: Sequence[OperandSignals], index: int, total: Value) -> None:
        """A term of several lanes from their sum."""
        plan = self._plan
        number = Signal(signed(plan.magnitude_bits + 1), name=f"sum{index}")
        m.d.comb += number.eq(total)
        negative = number[-1]
        magnitude = Mux(negative, -number, number)[: plan.magnitude_bits]
        value = number if plan.signed else Cat(magnitude, negative)
        m.d.comb += self.o.values[index].eq(value)
        some: Value = number.any()
        if plan.terms.gated_by_products:
            lanes = range(index * plan.terms.lanes, (index + 1) * plan.terms.lanes)
            some = any_of([~(sides[0].is_zero(lane) | sides[1].is_zero(lane)) for lane in lanes])
        self._code(m, index, Const(0, 0), some)

    def _code(self, m: Module, index: int, fields: Value, some: Value) -> None:
        code = self.o.codes[index]
        if self._plan.gated:
            m.d.comb += code.eq(Mux(some, fields + 1, 0))
        elif len(code):
            m.d.comb += code.eq(fields)

    def _special(self, m: Module, sides: Sequence[OperandSignals]) -> None:
        """NaN, infinities and their signs, over all lanes."""
        plan, (a, b) = self._plan, sides
        lanes = range(len(self.i.a.codes))
        pairs = [(a.code(lane), b.code(lane)) for lane in lanes]
        elements = [form.format.element for form in plan.forms]
        nan = [*a.nan_scales(), *b.nan_scales()]
        for x, codes in zip(elements, zip(*pairs, strict=True), strict=True):
            nan += [is_nan(x, code) for code in codes] if x.has_nan else []
        if plan.has_infinity:
            times_zero, plus, minus = infinite_products(
                [(is_infinite(elements[0], x), is_infinite(elements[1], y)) for x, y in pairs],
                [(a.is_zero(lane), b.is_zero(lane)) for lane in range(plan.reduction)],
                [is_negative(elements[0], x) ^ is_negative(elements[1], y) for x, y in pairs],
            )
            m.d.comb += [self.o.infinite.eq(plus | minus), self.o.negative.eq(minus)]
            nan += [times_zero, plus & minus]
        if plan.has_nan:
            m.d.comb += self.o.nan.eq(any_of(nan))


def _core_pair(shape: DotShape, sides: Sequence[OperandSignals], first: int) -> Value:
    """The operands of a block dot product from some lane on; the codes of its exponents are 0."""
    fields: list[Value] = []
    for side, fmt in zip(sides, shape.formats, strict=True):
        for level, own in zip(side.levels[::-1], fmt.blocked[::-1], strict=True):
            group = int(own.group)
            for lane in range(first, first + shape.block, group):
                exponent = isinstance(level.scale, Exponent)
                fields.append(Const(0, level.scale.bits) if exponent else side.scale(level, lane))
        fields += side.codes(first, shape.block)
    return Cat(*fields)


def _grouped(values: Sequence[Value], size: int) -> list[Value]:
    """Sums of so many values in a row."""
    return [
        balanced(values[start : start + size], lambda x, y: x + y)
        for start in range(0, len(values), size)
    ]
