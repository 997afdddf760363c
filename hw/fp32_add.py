"""FP32 addition as combinational steps, short enough to run at the clock of a block dot product."""

from typing import Any

from amaranth.hdl import Cat, Const, Module, Mux, Signal
from amaranth.lib import data

from axs6.golden.spec import FP32
from axs6.hw.fp32 import (
    FIELD,
    MAGNITUDE,
    SIGNIFICAND,
    layout,
    rounded_pattern,
    shift_right_sticky,
    significand_of,
    special_or,
)
from axs6.hw.layouts import fp32_layout
from axs6.hw.pipeline import Step
from axs6.hw.trees import leading_zeros

GUARD = 3
"""Bits kept below the significand; the lowest is the or of all that follow."""

WIDE = SIGNIFICAND + GUARD

_NOTES = {"exponent": FIELD, "sign": 1, "zero_sign": 1, "infinite": 1, "nan": 1}
"""What the result needs beside the sum: the larger exponent field, at least 1; the sign of the
larger operand and that of a sum of zero; and whether it is special."""

operands_layout = data.StructLayout({"a": FP32.width, "b": FP32.width})
ordered_layout = data.StructLayout(
    {"large": SIGNIFICAND, "small": SIGNIFICAND, "below": FIELD, "subtract": 1, **_NOTES}
)
near_layout = data.StructLayout(
    {"large": SIGNIFICAND, "small": SIGNIFICAND, "distance": range(WIDE + 1), "subtract": 1}
    | _NOTES
)
aligned_layout = data.StructLayout({"large": SIGNIFICAND, "small": WIDE, "subtract": 1, **_NOTES})
total_layout = data.StructLayout({"total": WIDE + 1, **_NOTES})
counted_layout = data.StructLayout({"total": WIDE + 1, "shift": range(WIDE + 1), **_NOTES})
normal_layout = data.StructLayout({"total": WIDE + 1, **_NOTES})


def pass_on(m: Module, step: Step, *names: str) -> None:
    """Connect members that a step leaves as they are, and all notes but those it drives."""
    for name in names:
        m.d.comb += getattr(step.o, name).eq(getattr(step.i, name))


class Order(Step):
    """The operands in order of magnitude."""

    def __init__(self) -> None:
        super().__init__(operands_layout, ordered_layout, levels=24)

    def elaborate(self, platform: Any) -> Module:
        """Build the comparison and the exchange."""
        m = Module()
        o = self.o
        swap = self.i.a[:MAGNITUDE] < self.i.b[:MAGNITUDE]
        large = data.View(layout, Signal(FP32.width, name="large"))
        small = data.View(layout, Signal(FP32.width, name="small"))
        m.d.comb += [
            large.as_value().eq(Mux(swap, self.i.b, self.i.a)),
            small.as_value().eq(Mux(swap, self.i.a, self.i.b)),
        ]
        special = large.exponent == FP32.exponent_special
        small_infinite = (small.exponent == FP32.exponent_special) & ~small.fraction.any()
        subtract = large.sign ^ small.sign
        m.d.comb += [
            o.large.eq(significand_of(large)),
            o.small.eq(significand_of(small)),
            o.exponent.eq(large.exponent | ~large.exponent.any()),
            o.below.eq(small.exponent | ~small.exponent.any()),
            o.subtract.eq(subtract),
            o.sign.eq(large.sign),
            o.zero_sign.eq(large.sign & small.sign),
            o.infinite.eq(special & ~large.fraction.any()),
            o.nan.eq(special & (large.fraction.any() | (small_infinite & subtract))),
        ]
        return m


class Distance(Step):
    """How far the smaller operand is below the larger one."""

    def __init__(self) -> None:
        super().__init__(ordered_layout, near_layout, levels=13)

    def elaborate(self, platform: Any) -> Module:
        """Build the subtraction and its limit."""
        m = Module()
        distance = Signal(FIELD)
        m.d.comb += [
            distance.eq(self.i.exponent - self.i.below),
            self.o.distance.eq(Mux(distance > WIDE, WIDE, distance)),
        ]
        pass_on(m, self, "large", "small", "subtract", *_NOTES)
        return m


class Align(Step):
    """The smaller operand on the exponent of the larger one."""

    def __init__(self) -> None:
        super().__init__(near_layout, aligned_layout, levels=12)

    def elaborate(self, platform: Any) -> Module:
        """Build the shift."""
        m = Module()
        wide = Cat(Const(0, GUARD), self.i.small)
        m.d.comb += self.o.small.eq(shift_right_sticky(m, wide, self.i.distance))
        pass_on(m, self, "large", "subtract", *_NOTES)
        return m


class AddAligned(Step):
    """Sum or difference of aligned significands, never negative, one bit wider."""

    def __init__(self) -> None:
        super().__init__(aligned_layout, total_layout, levels=28)

    def elaborate(self, platform: Any) -> Module:
        """Build the adder."""
        m = Module()
        width = len(self.o.total)
        small = Signal(width)
        m.d.comb += [
            small.eq(self.i.small ^ self.i.subtract.replicate(width)),
            self.o.total.eq((self.i.large << GUARD) + small + self.i.subtract),
        ]
        pass_on(m, self, *_NOTES)
        return m


class Count(Step):
    """How far the sum moves up: to its top bit, but not below exponent field 1."""

    def __init__(self) -> None:
        super().__init__(total_layout, counted_layout, levels=15)

    def elaborate(self, platform: Any) -> Module:
        """Build the leading-zero count and its limit."""
        m = Module()
        zeros = leading_zeros(m, self.i.total)
        m.d.comb += self.o.shift.eq(Mux(zeros > self.i.exponent, self.i.exponent, zeros))
        pass_on(m, self, "total", *_NOTES)
        return m


class Normalise(Step):
    """The sum moved up, and the exponent field less one of the result."""

    def __init__(self) -> None:
        super().__init__(counted_layout, normal_layout, levels=12)

    def elaborate(self, platform: Any) -> Module:
        """Build the shift and the subtraction."""
        m = Module()
        m.d.comb += [
            self.o.total.eq(self.i.total << self.i.shift),
            self.o.exponent.eq(self.i.exponent - self.i.shift),
        ]
        pass_on(m, self, "sign", "zero_sign", "infinite", "nan")
        return m


class RoundTotal(Step):
    """The FP32 result."""

    def __init__(self) -> None:
        super().__init__(normal_layout, fp32_layout, levels=26)

    def elaborate(self, platform: Any) -> Module:
        """Build the rounding and the special values."""
        m = Module()
        i = self.i
        kept, rest = i.total[GUARD + 1 :], i.total[: GUARD + 1]
        round_up = rest[-1] & (rest[:-1].any() | kept[0])
        pattern = rounded_pattern(m, i.exponent, kept, round_up)
        zero = ~i.total.any()
        sign = Mux(zero, i.zero_sign, i.sign)
        m.d.comb += self.o.value.eq(
            special_or(i.nan, i.infinite, sign, pattern & ~zero.replicate(MAGNITUDE))
        )
        return m


def addition_steps() -> list[Step]:
    """The steps of an FP32 addition, from two operands `a` and `b` to `fp32_layout`."""
    return [Order(), Distance(), Align(), AddAligned(), Count(), Normalise(), RoundTotal()]
