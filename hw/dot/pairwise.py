"""Products that are rounded one by one, and added in pairs to the sum of a step."""

from typing import Any

from amaranth.hdl import Cat, Module, Mux, Signal, Value
from amaranth.lib import data

from axs6.golden.formats import FP32, Float
from axs6.golden.fp32 import scale_bits
from axs6.golden.operands import IntegerForm
from axs6.golden.rounding import Rounding
from axs6.hw.core.codes import is_infinite, is_nan
from axs6.hw.core.layouts import float_layout, fp32_layout
from axs6.hw.core.pipeline import Step, in_lanes
from axs6.hw.core.structures import ArrayLayout
from axs6.hw.core.trees import balanced, leading_zeros
from axs6.hw.dot.align import AlignPlan
from axs6.hw.dot.operand import OperandSignals
from axs6.hw.fp32.add import adding_steps, operands_layout
from axs6.hw.fp32.normalise import ScaledInteger, normalising_steps
from axs6.hw.fp32.widen import Widen


def product_number(align: AlignPlan) -> ScaledInteger:
    """Products as integers under exponents, which are rounded."""
    accumulator = align.plan.terms.accumulator
    return ScaledInteger(
        align.plan.magnitude_bits,
        align.plan.terms.largest_exponent + 1,
        align.plan.terms.offset - 1,
        align.output,
        accumulator.rounding is Rounding.TOWARD_ZERO,
    )


class MakeProducts(Step):
    """The products of a step, each with its NaN or infinity.

    Values below the smallest normal operand, of an accumulator that flushes them, are 0.
    """

    verilog_name = "products"

    def __init__(self, align: AlignPlan) -> None:
        self._align = align
        plan = align.plan
        number = product_number(align).magnitude_layout
        super().__init__(plan.i, ArrayLayout(number, plan.count), levels=40)

    def elaborate(self, platform: Any) -> Module:
        """Build multipliers, adders of exponents, comparisons, and what is special."""
        m = Module()
        forms = self._align.plan.forms
        sides = [
            OperandSignals(m, form, view, name)
            for form, view, name in zip(forms, (self.i.a, self.i.b), "ab", strict=True)
        ]
        for lane, product in enumerate(self.o):
            (a_sign, a, a_field), (b_sign, b, b_field) = (
                self._value(m, side, form, lane, name)
                for side, form, name in zip(sides, forms, "ab", strict=True)
            )
            m.d.comb += [
                product.magnitude.eq(a * b),
                product.sign.eq(a_sign ^ b_sign),
                product.top.eq(a_field + b_field + 1),
            ]
            self._special(m, sides, lane, product, (a_sign, a, b_sign, b))
        return m

    def _value(
        self, m: Module, side: OperandSignals, form: IntegerForm, lane: int, name: str
    ) -> tuple[Value, Value, Value]:
        """The sign of a value below 0, its magnitude, and the sum of its exponent fields."""
        sign, number, field = side.element(lane)
        for level in form.levels:
            number = side.scaled(number, level, lane)
        magnitude = Signal(form.bound.bit_length(), name=f"{name}_value{lane}")
        fields = [*side.exponents(lane), *([field] if len(field) else [])]
        total = Signal(range(form.largest_exponent + 1), name=f"{name}_exponent{lane}")
        m.d.comb += total.eq(balanced(fields, lambda x, y: x + y) if fields else 0)
        flush = self._align.plan.terms.accumulator.flush
        counts = number.any()
        if flush is not None:
            unit = form.offset - scale_bits(form.divisor)
            wide = Signal(form.bound.bit_length(), name=f"{name}_number{lane}")
            m.d.comb += wide.eq(number)
            bits = len(wide) - leading_zeros(m, wide)
            counts = counts & (bits + total > flush - unit)
        m.d.comb += magnitude.eq(Mux(counts, number, 0))
        return sign & counts, magnitude, total

    def _special(
        self,
        m: Module,
        sides: list[OperandSignals],
        lane: int,
        product: Any,
        values: tuple[Value, Value, Value, Value],
    ) -> None:
        """NaN and infinities of a product."""
        forms = self._align.plan.forms
        _, a, _, b = values
        codes = [view.codes[lane] for view in (self.i.a, self.i.b)]
        elements = [form.format.element for form in forms]
        nan = [each for side in sides for each in side.nan_scales_of(lane)]
        infinite: list[Value] = []
        nan += [is_nan(x, c) for x, c in zip(elements, codes, strict=True) if x.has_nan]
        for x, code, other, other_code, y in (
            (elements[0], codes[0], b, codes[1], elements[1]),
            (elements[1], codes[1], a, codes[0], elements[0]),
        ):
            if x.has_infinity:
                found = is_infinite(x, code)
                infinite.append(found)
                times_zero = ~other.any()
                if y.has_infinity:
                    times_zero = times_zero & ~is_infinite(y, other_code)
                nan.append(found & times_zero)
        if nan:
            m.d.comb += product.nan.eq(balanced(nan, lambda x, y: x | y))
        if infinite:
            m.d.comb += [
                product.infinite.eq(balanced(infinite, lambda x, y: x | y)),
                product.negative.eq(codes[0][-1] ^ codes[1][-1]),
            ]


class Flush(Step):
    """A value, or the zero of its sign in place of a subnormal one."""

    def __init__(self) -> None:
        super().__init__(fp32_layout, fp32_layout, levels=6)

    def elaborate(self, platform: Any) -> Module:
        """Build the gates."""
        m = Module()
        x = data.View(float_layout(FP32), self.i.value)
        gates = x.exponent.any().replicate(FP32.fraction_bits)
        m.d.comb += self.o.value.eq(Cat(x.fraction & gates, x.exponent, x.sign))
        return m


class Pairs(Step):
    """Neighbours as the operands of additions."""

    def __init__(self, count: int) -> None:
        i = ArrayLayout(fp32_layout, count)
        super().__init__(i, ArrayLayout(operands_layout, count // 2), levels=0)

    def elaborate(self, platform: Any) -> Module:
        """Connect the operands."""
        m = Module()
        for index, pair in enumerate(self.o):
            m.d.comb += [
                pair.a.eq(self.i[2 * index].value),
                pair.b.eq(self.i[2 * index + 1].value),
            ]
        return m


class Only(Step):
    """The only element of an array."""

    def __init__(self) -> None:
        super().__init__(ArrayLayout(fp32_layout, 1), fp32_layout, levels=0)

    def elaborate(self, platform: Any) -> Module:
        """Connect it."""
        m = Module()
        m.d.comb += self.o.eq(self.i[0])
        return m


def sum_steps(align: AlignPlan) -> list[Step]:
    """The steps of an addition, from `a` and `b` to `value`."""
    accumulator = align.plan.terms.accumulator
    steps = adding_steps(align.output, accumulator.rounding is Rounding.TOWARD_ZERO)
    return [*steps, *flush_steps(align)]


def flush_steps(align: AlignPlan) -> list[Step]:
    """The step that flushes a result, if the accumulator does."""
    return [] if align.plan.terms.accumulator.flush is None else [Flush()]


def pairwise_steps(align: AlignPlan) -> list[Step]:
    """The steps from the lanes of a step to its sum in FP32."""
    count = align.plan.count

    def rounding() -> list[Step]:
        number = product_number(align)
        return [*normalising_steps(number)[1:], *widen_of(align.output), *flush_steps(align)]

    steps: list[Step] = [MakeProducts(align), *in_lanes(rounding, count)]
    while count > 1:
        steps += [Pairs(count), *in_lanes(lambda: sum_steps(align), count // 2)]
        count //= 2
    return [*steps, Only()]


def widen_of(dtype: Float) -> list[Step]:
    """The step that gives a value of a format in FP32, if it is another one."""
    return [] if dtype == FP32 else [Widen(dtype)]
