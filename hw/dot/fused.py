"""The loop of a fused accumulator: aligned with the terms of each step and added with them."""

from collections.abc import Collection
from typing import Any

from amaranth.hdl import Cat, Const, Module, Mux, Signal, Value
from amaranth.lib import data

from axs6.hw.core.layouts import float_layout
from axs6.hw.core.parameters import STRUCTURE
from axs6.hw.core.pipeline import NOTHING, Step, past
from axs6.hw.core.structures import StructLayout
from axs6.hw.dot.align import AlignPlan, shifted, signed_value
from axs6.hw.dot.aligned_sum import sum_steps
from axs6.hw.fp32.accumulator import SKIPPED
from axs6.hw.fp32.common import limited, pass_on
from axs6.hw.fp32.normalise import SPECIAL, normalising_steps


def loop_layout(align: AlignPlan) -> data.StructLayout:
    """The accumulator, in the format of the results, and the terms of a step."""
    return StructLayout({"total": align.output.width, "term": align.distances_layout})


def _terms(align: AlignPlan) -> dict[str, Any]:
    members = align.distances_layout.members
    return {name: members[name] for name in ("values", "distances")}


def _own(align: AlignPlan) -> dict[str, Any]:
    return {"significand": align.output.fraction_bits + 1, "sign": 1, **SPECIAL}


def coded_layout(align: AlignPlan) -> data.StructLayout:
    """The accumulator as significand and code, and what the result is where it is no number."""
    codes = {"own": align.code_bits, "top": align.code_bits}
    return StructLayout({**_terms(align), **_own(align), **codes})


def compared_layout(align: AlignPlan) -> data.StructLayout:
    """How far all terms, and the accumulator, are below the larger of their exponents."""
    bits = {"below": align.distance_bits, "own_distance": align.own_distance_bits}
    return StructLayout({**_terms(align), **_own(align), **bits, "top": align.code_bits})


class OwnCode(Step):
    """The accumulator's significand and code, and what is special."""

    def __init__(self, align: AlignPlan) -> None:
        self._align = align
        super().__init__(loop_layout(align), coded_layout(align), levels=10)

    def elaborate(self, platform: Any) -> Module:
        """Build the addition to the field, and the sum of what is no number."""
        m = Module()
        align, o, term = self._align, self.o, self.i.term
        total = data.View(float_layout(align.output), self.i.total)
        normal = total.exponent.any()
        code = (total.exponent | ~normal) + align.own_code
        some = normal | total.fraction.any()
        counts = code if align.plan.signed else Mux(some, code, 0)
        m.d.comb += [
            o.significand.eq(Cat(total.fraction, normal)),
            o.sign.eq(total.sign),
            o.own.eq(counts),
            *special_of(o, total, term, align.special),
            o["values"].eq(term["values"]),
            o.distances.eq(term.distances),
            o.top.eq(term.top),
        ]
        return m


def special_of(
    o: data.View, total: data.View, term: data.View, names: Collection[str]
) -> list[Any]:
    """Assignments of what the sum of an accumulator and a term is where it is no number."""
    none = Const(0, 1)
    nan, infinite, negative = (
        term[name] if name in names else none for name in ("nan", "infinite", "negative")
    )
    full = total.exponent.all()
    own_infinite = full & ~total.fraction.any()
    return [
        o.nan.eq(
            nan
            | (full & total.fraction.any())
            | (own_infinite & infinite & (negative ^ total.sign))
        ),
        o.infinite.eq(infinite | own_infinite),
        o.negative.eq(Mux(infinite, negative, total.sign)),
    ]


class CompareOwn(Step):
    """The larger exponent, and the distances to it."""

    def __init__(self, align: AlignPlan) -> None:
        self._align = align
        super().__init__(coded_layout(align), compared_layout(align), levels=20)

    def elaborate(self, platform: Any) -> Module:
        """Build the comparison and two subtractions."""
        m = Module()
        align, i, o = self._align, self.i, self.o
        above, under = Signal(align.code_bits), Signal(align.code_bits)
        larger = Signal()
        m.d.comb += [
            larger.eq(i.own > i.top),
            above.eq(i.own - i.top),
            under.eq(i.top - i.own),
            o.top.eq(Mux(larger, i.own, i.top)),
            o.below.eq(Mux(larger, limited(above, align.distance_bits), 0)),
            o.own_distance.eq(Mux(larger, 0, limited(under, align.own_distance_bits))),
        ]
        pass_on(m, self, *_terms(align), *_own(align))
        return m


class Amounts(Step):
    """How far each term moves."""

    def __init__(self, align: AlignPlan) -> None:
        self._align = align
        layout = compared_layout(align)
        members = {name: each for name, each in layout.members.items() if name != "below"}
        super().__init__(layout, StructLayout(members), levels=12)

    def elaborate(self, platform: Any) -> Module:
        """Build the additions and their limits."""
        m = Module()
        for before, after in zip(self.i.distances, self.o.distances, strict=True):
            total = before + self.i.below
            m.d.comb += after.eq(limited(total, self._align.distance_bits))
        pass_on(m, self, *(name for name in self.o.shape().members if name != "distances"))
        return m


class ShiftAll(Step):
    """The terms and the accumulator on one exponent."""

    def __init__(self, align: AlignPlan, view: str) -> None:
        self._align, self._inverted = align, view == STRUCTURE
        levels = 3 * align.distance_bits + 2
        super().__init__(Amounts(align).o.shape(), align.aligned_layout, levels=levels)

    def elaborate(self, platform: Any) -> Module:
        """Build the shifts."""
        m = Module()
        align = self._align
        lanes = zip(self.i["values"], self.i.distances, self.o.terms, strict=True)
        for value, distance, term in lanes:
            moved = shifted(m, align, Value.cast(value), distance, self._inverted)
            m.d.comb += Value.cast(term).eq(moved)
        m.d.comb += Value.cast(self.o.own).eq(self._shifted_own(m))
        pass_on(m, self, "top", *SPECIAL)
        return m

    def _shifted_own(self, m: Module) -> Value:
        align, significand = self._align, self.i.significand
        more = align.fraction - align.output.fraction_bits
        if align.plan.signed:
            number = Mux(self.i.sign, -significand, significand).as_signed()
            placed = Cat(Const(0, more), number).as_signed() if more >= 0 else number >> -more
            return placed >> self.i.own_distance
        placed = Cat(Const(0, more), significand) if more >= 0 else significand[-more:]
        moved = Signal(align.own_bits, name="own_moved")
        m.d.comb += moved.eq(placed >> self.i.own_distance)
        return signed_value(moved, self.i.sign, self._inverted)


def kept_layout(align: AlignPlan) -> data.StructLayout:
    """Bits of the accumulator below the aligned ones, which a step without a term must keep."""
    below = align.output.fraction_bits - align.fraction
    return StructLayout({"aside": below, "aside_sign": 1}) if below > 0 else NOTHING


class SetAside(Step):
    """The accumulator without the bits below the aligned ones where there is no term, and those."""

    def __init__(self, align: AlignPlan) -> None:
        self._align = align
        members = loop_layout(align).members
        super().__init__(
            StructLayout({**members, **SKIPPED.members}),
            StructLayout({**members, **kept_layout(align).members}),
            levels=1,
        )

    def elaborate(self, platform: Any) -> Module:
        """Build the gates."""
        m = Module()
        i, o = self.i, self.o
        below = len(o.aside)
        number = i.skipped & ~data.View(float_layout(self._align.output), i.total).exponent.all()
        gates = number.replicate(below)
        m.d.comb += [
            o.aside.eq(i.total[:below] & gates),
            o.aside_sign.eq(i.total[-1] & number),
            o.total.eq(Cat(i.total[:below] & ~gates, i.total[below:])),
        ]
        pass_on(m, self, "term")
        return m


class PutBack(Step):
    """The new accumulator, with the bits that were set aside."""

    def __init__(self, align: AlignPlan) -> None:
        value = StructLayout({"value": align.output.width})
        members = {**value.members, **kept_layout(align).members}
        super().__init__(StructLayout(members), value, levels=1)

    def elaborate(self, platform: Any) -> Module:
        """Build the gates."""
        m = Module()
        i, value = self.i, self.i.value
        sign = value[-1] | i.aside_sign
        m.d.comb += self.o.value.eq(
            Cat(value[: len(i.aside)] | i.aside, value[len(i.aside) : -1], sign)
        )
        return m


def fused_steps(align: AlignPlan, view: str = STRUCTURE, skips: bool = False) -> list[Step]:
    """The steps of the loop, from `loop_layout` to the new accumulator, `value`.

    Terms of 0 leave the accumulator as it is where all its bits are aligned. Where that is not so
    and `skips` is set, there is a field `skipped`; see `Loop`.
    """
    steps: list[Step] = [
        OwnCode(align),
        CompareOwn(align),
        Amounts(align),
        ShiftAll(align, view),
        *sum_steps(align, view),
        *normalising_steps(align.wide),
    ]
    kept = kept_layout(align)
    return [SetAside(align), *past(steps, kept), PutBack(align)] if skips and kept.size else steps
