"""The loop of an accumulator that is added to one number of each step, without another rounding.

The number is the exact sum of the products of a step, or that of its aligned terms. Both are
aligned to the larger exponent of the two. Bits of an exact sum that lie below are or-ed into the
last one, which is too far below the result to matter else; others are dropped toward minus
infinity.
"""

from typing import Any

from amaranth.hdl import Cat, Const, Module, Mux, Signal, Value, signed, unsigned
from amaranth.lib import data

from axs6.golden.rounding import Rounding
from axs6.hw.core.layouts import float_layout
from axs6.hw.core.pipeline import Step, in_lanes, past
from axs6.hw.core.structures import ArrayLayout, StructLayout
from axs6.hw.core.trees import any_of, balanced, largest_of
from axs6.hw.dot.align import AlignPlan, AlignTerms, OneTerm, distance_steps
from axs6.hw.dot.aligned_sum import sum_steps
from axs6.hw.dot.exact import Leading, leading_layout
from axs6.hw.dot.fused import special_of
from axs6.hw.dot.terms import TermPlan
from axs6.hw.fp32.accumulator import SKIPPED
from axs6.hw.fp32.common import limited, pass_on
from axs6.hw.fp32.normalise import SPECIAL, IntegerMagnitude, ScaledInteger, normalising_steps

GUARD = 5
"""Bits of an exact sum below those of the result, at least: two for each leading bit that may
cancel where the other number is far below, and one that says whether any is lost."""


class JoinPlan:
    """Widths and constants of the sum of an accumulator and a number.

    Args:
        align: of the terms of a step.
    """

    def __init__(self, align: AlignPlan) -> None:
        self.align = align
        accumulator = align.plan.terms.accumulator
        self.groups = accumulator.groups
        self.group = AlignPlan(TermPlan(align.plan.terms, self.groups))
        self.sum_fraction = accumulator.sum_fraction
        self.exact = accumulator.sum_fraction is None
        self.reach = accumulator.reach
        self.significand = align.output.fraction_bits + 1
        wide = align.wide
        if self.sum_fraction is None:
            self.leading = max(wide.bits, self.significand + GUARD)
            self.fraction, self.placed = self.leading - 1, 0
            self.bound = (1 << self.leading) - 1
            self.base = wide.exponent - 1
            self.term_top = wide.top_bound + wide.bits
            own = 1 << self.leading
        else:
            self.fraction, self.placed = (
                self.sum_fraction + 1,
                self.sum_fraction + 1 - align.fraction,
            )
            self.bound = self.groups * (self.group.sum_bound + 1)
            self.base = align.base
            self.term_top = align.code_bound
            own = 1 << self.fraction + 1
        self.own_code = align.output.emin - 1 - self.base
        self.top_bound = max(self.term_top, align.output.exponent_special - 1 + self.own_code)
        self.term_bits = self.bound.bit_length() + self.placed
        self.own_bits = self.fraction + 1
        total = (self.bound << self.placed) + own
        self.wide = ScaledInteger(
            total.bit_length(),
            self.top_bound,
            self.base - self.fraction,
            align.output,
            accumulator.rounding is Rounding.TOWARD_ZERO,
            not accumulator.minus_zero,
            None if self.sum_fraction is None else self.sum_fraction - align.output.fraction_bits,
        )

    @property
    def top_bits(self) -> int:
        """Bits of a code."""
        return self.top_bound.bit_length()

    @property
    def term(self) -> data.StructLayout:
        """The number of a step, the code of its exponent, and what is special."""
        number = signed(self.bound.bit_length() + 1)
        return StructLayout({"sum": number, "top": unsigned(self.term_top.bit_length()), **SPECIAL})

    @property
    def loop(self) -> data.StructLayout:
        """The accumulator and that number."""
        return StructLayout({"total": self.align.output.width, "term": self.term})

    @property
    def compared(self) -> data.StructLayout:
        """Both, and how far each is below the larger exponent."""
        return StructLayout(
            {
                "sum": self.term["sum"].shape,
                "significand": self.significand,
                "sign": 1,
                "below": (self.term_bits + 1).bit_length(),
                "own_below": self.own_bits.bit_length(),
                "reached": 1,
                "top": self.top_bits,
                **SPECIAL,
            }
        )

    @property
    def shifted(self) -> data.StructLayout:
        """Both on one exponent."""
        numbers = {"sum": signed(self.term_bits + 1), "own": signed(self.own_bits + 1)}
        return StructLayout({**numbers, "top": self.top_bits, **SPECIAL})


class SignTerm(Step):
    """The leading bits of an exact sum as a number, with the code 0 where it is 0."""

    def __init__(self, join: JoinPlan) -> None:
        i = leading_layout(join.leading, join.term_top)
        super().__init__(i, join.term, levels=12)

    def elaborate(self, platform: Any) -> Module:
        """Build the negation and the gates."""
        m = Module()
        leading = self.i.leading
        some = leading[-1]
        m.d.comb += [
            self.o.sum.eq(Mux(self.i.sign, -leading, leading)),
            self.o.top.eq(self.i.top & some.replicate(len(self.i.top))),
        ]
        pass_on(m, self, *SPECIAL)
        return m


class Overflows(Step):
    """Terms of 2^128 or more as infinities."""

    def __init__(self, align: AlignPlan) -> None:
        self._align = align
        super().__init__(align.plan.o, align.plan.o, levels=40)

    def elaborate(self, platform: Any) -> Module:
        """Build a shift for each term, out of whose top the bits of large ones go."""
        m = Module()
        align, plan, i = self._align, self._align.plan, self.i
        terms, width = plan.terms, plan.magnitude_bits
        over, signs = [], []
        for index in range(plan.count):
            value = Value.cast(i["values"][index])
            negative = value[-1]
            magnitude = value[:width]
            if plan.signed:
                magnitude = Signal(width, name=f"magnitude{index}")
                m.d.comb += magnitude.eq(Mux(negative, -value.as_signed(), value))
            code = i.codes[index] + i.scales[index // plan.cluster]
            # The unit of a magnitude with this sum of fields is its width below 2^128.
            least = align.output.bias + 1 - width - terms.offset + plan.gated
            more = Signal(range(width + 1), name=f"more{index}")
            above = code - least
            m.d.comb += more.eq(Mux(above < 0, 0, Mux(above > width, width, above)))
            over.append((magnitude << more)[width:].any())
            signs.append(negative)
        plus, minus = (
            any_of([x & (y if sign else ~y) for x, y in zip(over, signs, strict=True)])
            for sign in (False, True)
        )
        clash = (plus & minus) | (i.infinite & Mux(i.negative, plus, minus))
        m.d.comb += [
            self.o.nan.eq(i.nan | clash),
            self.o.infinite.eq(i.infinite | plus | minus),
            self.o.negative.eq(Mux(i.infinite, i.negative, minus)),
        ]
        pass_on(m, self, "values", "codes", "scales")
        return m


class Deal(Step):
    """The terms of a step by group."""

    def __init__(self, join: JoinPlan) -> None:
        self._join = join
        o = ArrayLayout(join.group.plan.o, join.groups)
        super().__init__(join.align.plan.o, o, levels=0)

    def elaborate(self, platform: Any) -> Module:
        """Connect every field, those of special values to each group."""
        m = Module()
        groups = self._join.groups
        for start, group in enumerate(self.o):
            for name in ("values", "codes"):
                for to, index in zip(group[name], range(start, 1 << 16, groups), strict=False):
                    m.d.comb += Value.cast(to).eq(Value.cast(self.i[name][index]))
            m.d.comb += group.scales.eq(self.i.scales)
            m.d.comb += [group[name].eq(self.i[name]) for name in self._join.group.plan.special]
        return m


class JoinGroups(Step):
    """The sums of groups on the largest of their exponents, and their sum."""

    def __init__(self, join: JoinPlan) -> None:
        self._join = join
        i = ArrayLayout(join.group.wide.sum_layout, join.groups)
        super().__init__(i, join.term, levels=40 if join.groups > 1 else 0)

    def elaborate(self, platform: Any) -> Module:
        """Build the comparisons, shifts and additions."""
        m = Module()
        groups, o = list(self.i), self.o
        m.d.comb += o.top.eq(largest_of(m, [x.top for x in groups]))
        moved = []
        for index, group in enumerate(groups):
            below = Signal(len(group.top), name=f"below{index}")
            m.d.comb += below.eq(o.top - group.top)
            bits = len(group.sum).bit_length()
            moved.append(group.sum >> limited(below, bits))
        m.d.comb += o.sum.eq(balanced(moved, lambda a, b: a + b))
        m.d.comb += [o[name].eq(groups[0][name]) for name in SPECIAL]
        return m


class CompareCodes(Step):
    """The larger exponent, the distances to it, and what is special."""

    def __init__(self, join: JoinPlan) -> None:
        self._join = join
        super().__init__(join.loop, join.compared, levels=30)

    def elaborate(self, platform: Any) -> Module:
        """Build the comparison and two subtractions."""
        m = Module()
        join, o, term = self._join, self.o, self.i.term
        total = data.View(float_layout(join.align.output), self.i.total)
        normal = total.exponent.any()
        own, above, under = (Signal(join.top_bits, name=x) for x in ("own", "above", "under"))
        larger = Signal()
        m.d.comb += [
            own.eq((total.exponent | ~normal) + join.own_code),
            larger.eq(own > term.top),
            above.eq(own - term.top),
            under.eq(term.top - own),
            o.sum.eq(term.sum),
            o.significand.eq(Cat(total.fraction, normal)),
            o.sign.eq(total.sign),
            o.top.eq(Mux(larger, own, term.top)),
            o.below.eq(Mux(larger, limited(above, len(o.below)), 0)),
            o.own_below.eq(Mux(larger, 0, limited(under, len(o.own_below)))),
            o.reached.eq(larger | (under <= join.reach) if join.reach is not None else 1),
            *special_of(o, total, term, tuple(SPECIAL)),
        ]
        return m


class ShiftBoth(Step):
    """Accumulator and number on one exponent."""

    def __init__(self, join: JoinPlan) -> None:
        self._join = join
        levels = 4 * (join.term_bits + 1).bit_length() + 8
        super().__init__(join.compared, join.shifted, levels=levels)

    def elaborate(self, platform: Any) -> Module:
        """Build the shifts."""
        m = Module()
        join, i = self._join, self.i
        own = Signal(signed(join.significand + 1))
        m.d.comb += own.eq(Mux(i.sign, -i.significand, i.significand))
        placed = Cat(Const(0, join.placed), i.sum).as_signed()
        more = join.fraction - join.significand + 1
        if join.exact:
            own_sum = _moved(m, Cat(Const(0, more), own), i.own_below, "own")
            total = _moved(m, placed, i.below, "sum")
        else:
            # The accumulator keeps as many bits as terms do.
            lower = join.align.fraction - join.significand + 1
            kept = Signal(signed(join.significand + 1 + lower))
            m.d.comb += kept.eq(Cat(Const(0, lower), own).as_signed() >> i.own_below)
            gated = kept & i.reached.replicate(len(kept))
            own_sum = Cat(Const(0, more - lower), gated).as_signed()
            total = placed >> i.below
        m.d.comb += [self.o.sum.eq(total), self.o.own.eq(own_sum)]
        pass_on(m, self, "top", *SPECIAL)
        return m


def _moved(m: Module, value: Value, distance: Value, name: str) -> Value:
    """A number over a power of two toward minus infinity, with what is lost or-ed into the last
    bit."""
    for bit in range(len(distance)):
        amount = min(1 << bit, len(value) - 1)
        moved = Signal(signed(len(value)), name=f"{name}_moved{bit}")
        down = value.as_signed() >> amount
        jammed = Cat(down[0] | value[:amount].any(), down[1:])
        m.d.comb += moved.eq(Mux(distance[bit], jammed, value).as_signed())
        value = moved
    return value.as_signed()


class AddBoth(Step):
    """The sum of both."""

    def __init__(self, join: JoinPlan) -> None:
        super().__init__(join.shifted, join.wide.sum_layout, levels=14)

    def elaborate(self, platform: Any) -> Module:
        """Build the adder."""
        m = Module()
        m.d.comb += self.o.sum.eq(self.i.sum + self.i.own)
        pass_on(m, self, "top", *SPECIAL)
        return m


SIGN = StructLayout({"minus": 1})
"""The sign of a total that passes a step without a term."""


class KeepSign(Step):
    """Sets the sign of a total aside where there is no term, which would make +0 of -0.

    Args:
        i: layout of total and term.
        total: the name of the total there.
    """

    def __init__(self, i: data.StructLayout, total: str) -> None:
        self._total = total
        super().__init__(
            StructLayout({**i.members, **SKIPPED.members}),
            StructLayout({**i.members, **SIGN.members}),
            levels=1,
        )

    def elaborate(self, platform: Any) -> Module:
        """Build the gate."""
        m = Module()
        m.d.comb += self.o.minus.eq(self.i.skipped & self.i[self._total][-1])
        pass_on(m, self, *(name for name in self.o.shape().members if name != "minus"))
        return m


class GiveSign(Step):
    """The new total, with the sign that was set aside."""

    def __init__(self, width: int) -> None:
        value = StructLayout({"value": width})
        super().__init__(StructLayout({**value.members, **SIGN.members}), value, levels=1)

    def elaborate(self, platform: Any) -> Module:
        """Build the gate."""
        m = Module()
        value = self.i.value
        m.d.comb += self.o.value.eq(Cat(value[:-1], value[-1] | self.i.minus))
        return m


def keeping_sign(steps: list[Step], total: str, width: int) -> list[Step]:
    """Steps of a loop that keep -0 where a turn is skipped; see `Loop`."""
    i = steps[0].i.shape()
    assert isinstance(i, data.StructLayout)
    return [KeepSign(i, total), *past(steps, SIGN), GiveSign(width)]


def number_steps(join: JoinPlan, view: str) -> list[Step]:
    """The steps from the terms of a step to the number that the accumulator is added to."""
    align = join.align
    if join.exact:
        wide = align.wide
        return [
            OneTerm(align),
            IntegerMagnitude(wide),
            Leading(wide, join.leading),
            SignTerm(join),
        ]

    def of_group() -> list[Step]:
        group = join.group
        return [*distance_steps(group), AlignTerms(group, view), *sum_steps(group, view)]

    steps: list[Step] = [Overflows(align)] if align.plan.overflows else []
    return [*steps, Deal(join), *in_lanes(of_group, join.groups), JoinGroups(join)]


def joining_steps(join: JoinPlan, skips: bool) -> list[Step]:
    """The steps of the loop, from `JoinPlan.loop` to the new accumulator, `value`."""
    steps = [
        CompareCodes(join),
        ShiftBoth(join),
        AddBoth(join),
        *normalising_steps(join.wide),
    ]
    return keeping_sign(steps, "total", join.align.output.width) if skips else steps
