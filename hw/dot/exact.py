"""Exact sums: integers as wide as the exponents of their terms reach, rounded once.

An exact accumulator is such an integer, with room for the carries of 2^32 steps.
"""

from typing import Any

from amaranth.hdl import Cat, Const, Module, Mux, Signal, Value, signed, unsigned
from amaranth.lib import data

from axs6.golden.formats import FP32
from axs6.golden.terms import Terms
from axs6.hw.core.layouts import outer_layout
from axs6.hw.core.pipeline import Step, past
from axs6.hw.core.structures import StructLayout
from axs6.hw.core.trees import balanced, leading_zeros
from axs6.hw.dot.align import AlignPlan
from axs6.hw.fp32.common import SIGNIFICAND, layout, pass_on, significand_of
from axs6.hw.fp32.multiply import product
from axs6.hw.fp32.normalise import SPECIAL, ScaledInteger, normalising_steps

HEADROOM = 32
"""Bits of an exact accumulator above those of a step."""

QUOTIENT = 27
"""Bits of a quotient, at least; they and a sticky bit round it."""


def wide_layout(bits: int) -> data.StructLayout:
    """An integer in two's complement, and what is no number."""
    return StructLayout({"sum": signed(bits), **SPECIAL})


class ExactPlan:
    """Widths of exact sums.

    Args:
        align: of the terms, which are exact, or else aligned within each step.
    """

    def __init__(self, align: AlignPlan) -> None:
        self.align = align
        plan, terms = align.plan, align.plan.terms
        if terms.accumulator.fraction is None:
            bound = plan.count * terms.bound << plan.scale_bound
            self.lowest = terms.offset
        else:
            bound = align.sum_bound << align.code_bound - 1
            self.lowest = align.base - align.fraction + 1
        self.bits = bound.bit_length() + 1

    @property
    def terms(self) -> Terms:
        """The terms that are added."""
        return self.align.plan.terms

    def wide(self, headroom: int = 0) -> ScaledInteger:
        """The sums, and how they are rounded."""
        align = self.align.wide
        return ScaledInteger(
            self.bits + headroom - 1, 0, self.lowest, align.dtype, align.toward_zero
        )


class PlaceTerms(Step):
    """The terms of a step at their exponents, and their sum."""

    def __init__(self, exact: ExactPlan) -> None:
        self._exact = exact
        plan = exact.align.plan
        levels = 3 * plan.scale_bits + 8 * plan.count.bit_length()
        super().__init__(plan.o, exact.wide().sum_layout, levels=levels)

    def elaborate(self, platform: Any) -> Module:
        """Build the shifts and the adders."""
        m = Module()
        plan = self._exact.align.plan
        placed = []
        for index, value in enumerate(self.i["values"]):
            term = Signal(signed(self._exact.bits), name=f"term{index}")
            m.d.comb += term.eq(_shifted_up(value, self.i.scales[index // plan.cluster], term))
            placed.append(term)
        m.d.comb += self.o.sum.eq(balanced(placed, lambda x, y: x + y))
        pass_on(m, self, *plan.special)
        return m


class PlaceSum(Step):
    """The aligned sum of a step at its exponent."""

    def __init__(self, exact: ExactPlan) -> None:
        align = exact.align
        super().__init__(
            align.wide.sum_layout, exact.wide().sum_layout, levels=3 * align.code_bits + 6
        )

    def elaborate(self, platform: Any) -> Module:
        """Build the shift."""
        m = Module()
        amount = Signal(len(self.i.top))
        m.d.comb += [
            amount.eq(Mux(self.i.top == 0, 0, self.i.top - 1)),
            self.o.sum.eq(_shifted_up(self.i.sum, amount, self.o.sum)),
        ]
        pass_on(m, self, *SPECIAL)
        return m


def _shifted_up(value: Value, amount: Value, like: Value) -> Value:
    """A number times a power of two, in the width of another: a shift of no more bits than that."""
    moved: Value = value
    for bit in range(len(amount)):
        size = min(len(like), len(moved) + (1 << bit))
        moved = Mux(amount[bit], Cat(Const(0, 1 << bit), moved)[:size].as_signed(), moved)
    return moved


class AddWide(Step):
    """The accumulator with the sum of a step."""

    def __init__(self, exact: ExactPlan) -> None:
        wide = exact.wide(HEADROOM)
        layout = wide_layout(wide.bits + 1)
        i = StructLayout({"total": layout, "term": exact.wide().sum_layout})
        super().__init__(i, layout, levels=2 + 3 * wide.bits.bit_length())

    def elaborate(self, platform: Any) -> Module:
        """Build the adder, and the sum of what is no number."""
        m = Module()
        total, term, o = self.i.total, self.i.term, self.o
        clash = total.infinite & term.infinite & (total.negative ^ term.negative)
        m.d.comb += [
            o.sum.eq(total.sum + term.sum),
            o.nan.eq(total.nan | term.nan | clash),
            o.infinite.eq(total.infinite | term.infinite),
            o.negative.eq(Mux(term.infinite, term.negative, total.negative)),
        ]
        return m


class Total(Step):
    """The accumulator as a sum to be rounded."""

    def __init__(self, wide: ScaledInteger) -> None:
        super().__init__(wide_layout(wide.bits + 1), wide.sum_layout, levels=0)

    def elaborate(self, platform: Any) -> Module:
        """Connect the fields."""
        m = Module()
        pass_on(m, self, "sum", *SPECIAL)
        return m


def leading_layout(bits: int, top: int) -> data.StructLayout:
    """The highest bits of a magnitude, whether any is below them, and the place of their top."""
    return StructLayout(
        {"leading": bits, "sticky": 1, "top": unsigned(top.bit_length()), "sign": 1, **SPECIAL}
    )


class Leading(Step):
    """The highest bits of a magnitude."""

    def __init__(self, wide: ScaledInteger, bits: int) -> None:
        self._wide, self._bits = wide, bits
        levels = 5 * wide.bits.bit_length()
        o = leading_layout(bits, wide.bits + wide.top_bound)
        super().__init__(wide.magnitude_layout, o, levels=levels)

    def elaborate(self, platform: Any) -> Module:
        """Build the count of zeros and the shift."""
        m = Module()
        magnitude = self.i.magnitude
        zeros = leading_zeros(m, magnitude)
        moved = Signal(max(len(magnitude), self._bits))
        below = Const(0, len(moved) - len(magnitude))
        m.d.comb += [
            moved.eq(Cat(below, magnitude) << zeros),
            self.o.leading.eq(moved[-self._bits :]),
            self.o.sticky.eq(moved[: -self._bits].any()),
            self.o.top.eq(self.i.top + (self._wide.bits - zeros)),
        ]
        pass_on(m, self, "sign", *SPECIAL)
        return m


class DivideLeading(Step):
    """The highest bits over a divisor, with a bit below them that says whether anything is left.

    Multiplying by the inverse, rounded up to as many bits more than the number has as the divisor
    has, gives the quotient of every number.
    """

    def __init__(self, wide: ScaledInteger, bits: int, divisor: int, top: int) -> None:
        self._bits, self._divisor = bits, divisor
        super().__init__(leading_layout(bits, top), wide.magnitude_layout, levels=60)

    def elaborate(self, platform: Any) -> Module:
        """Build the products and the comparison."""
        m = Module()
        more = self._bits + (self._divisor - 1).bit_length()
        inverse = -(-(1 << more) // self._divisor)
        quotient = Signal(len(self.o.magnitude) - 1)
        rest = Signal(self._bits)
        m.d.comb += [
            quotient.eq((self.i.leading * inverse) >> more),
            rest.eq(self.i.leading - quotient * self._divisor),
            self.o.magnitude.eq(Cat(self.i.sticky | rest.any(), quotient)),
        ]
        pass_on(m, self, "sign", "top", *SPECIAL)
        return m


def scaled_by_outer(wide: ScaledInteger) -> ScaledInteger:
    """Magnitudes times a significand of FP32, under its exponent field."""
    exponent = wide.exponent + FP32.emin - 1 - FP32.fraction_bits
    largest = FP32.exponent_special - 1
    return ScaledInteger(wide.bits + SIGNIFICAND, largest, exponent, wide.dtype, wide.toward_zero)


class TimesOuter(Step):
    """A magnitude times an FP32 value, exactly."""

    def __init__(self, wide: ScaledInteger, view: str) -> None:
        self._view = view
        i = StructLayout({**wide.magnitude_layout.members, **outer_layout.members})
        super().__init__(i, scaled_by_outer(wide).magnitude_layout, levels=60)

    def elaborate(self, platform: Any) -> Module:
        """Build the multiplier, and what the product is where a factor is no number."""
        m = Module()
        i, o = self.i, self.o
        outer = data.View(layout, i.outer)
        special = outer.exponent.all()
        nan, infinite = special & outer.fraction.any(), special & ~outer.fraction.any()
        significand = significand_of(outer)
        zero = ~i.infinite & ~i.magnitude.any()
        m.d.comb += [
            o.magnitude.eq(product(m, i.magnitude, significand, self._view)),
            o.top.eq(outer.exponent | ~outer.exponent.any()),
            o.sign.eq(i.sign ^ outer.sign),
            o.negative.eq(Mux(i.infinite, i.negative, i.sign) ^ outer.sign),
            o.infinite.eq(i.infinite | infinite),
            o.nan.eq(i.nan | nan | (infinite & zero) | (i.infinite & ~significand.any())),
        ]
        return m


def rounding_steps(exact: ExactPlan, outer: data.StructLayout, view: str) -> list[Step]:
    """The steps from an exact accumulator to the result.

    It is multiplied by `outer`, if there is one, divided by what its terms are over, and rounded.
    """
    wide, terms = exact.wide(HEADROOM), exact.terms
    steps: list[Step] = past([Total(wide), normalising_steps(wide)[0]], outer)
    if outer.size:
        steps.append(TimesOuter(wide, view))
        wide = scaled_by_outer(wide)
    if terms.divisor == 1:
        return [*steps, *normalising_steps(wide)[1:]]
    bits = QUOTIENT + terms.divisor.bit_length()
    quotient = ((1 << bits) - 1) // terms.divisor
    exponent = wide.exponent + terms.scale_bits - bits - 1
    top = wide.bits + wide.top_bound
    after = ScaledInteger(quotient.bit_length() + 1, top, exponent, FP32, False)
    divide = DivideLeading(after, bits, terms.divisor, top)
    return [*steps, Leading(wide, bits), divide, *normalising_steps(after)[1:]]
