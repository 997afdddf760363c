"""FP32 addition as combinational steps, short enough to run at the clock of a block dot product."""

from typing import Any

from amaranth.hdl import Cat, Const, Module, Mux, Signal
from amaranth.lib import data

from axs6.golden.formats import FP32, Float
from axs6.hw.core.pipeline import Step
from axs6.hw.core.structures import ArrayLayout, StructLayout
from axs6.hw.core.trees import leading_zeros_of, zero_groups
from axs6.hw.fp32.common import (
    BYTE,
    FIELD,
    FRACTION,
    MAGNITUDE,
    SIGNIFICAND,
    AddRounding,
    PackFp32,
    add_with_carry,
    layout,
    limited,
    packing_layout,
    pass_on,
    rounding_layout,
    shift_right_sticky,
)

GUARD = 3
"""Bits kept below the significand; the lowest is the or of all that follow."""

WIDE = SIGNIFICAND + GUARD
DISTANCE = WIDE.bit_length()
COARSE = (4, 3)
FINE = (2, 1, 0)
"""Bits of the distance by which the two steps of the alignment shift."""

_NOTES = {"exponent": FIELD, "sign": 1, "zero_sign": 1, "infinite": 1, "nan": 1}
"""Fields that the result needs besides the sum: the larger exponent field, at least 1; the sign of
the larger operand and the sign of a sum of zero; and whether it is special."""

operands_layout = StructLayout({"a": FP32.width, "b": FP32.width})
compared_layout = StructLayout(
    {"a": FP32.width, "b": FP32.width, "a_normal": 1, "b_normal": 1, "swap": 1}
)
"""Operands, whether they have their hidden bit, and whether `b` has the larger magnitude."""
ordered_layout = StructLayout(
    {"large": layout, "small": layout, "large_normal": 1, "small_normal": 1}
)
"""Operands with their hidden bits."""


def shifting_layout(distance: int) -> data.StructLayout:
    """Operands; the smaller one still has to be shifted by some bits of the distance."""
    return StructLayout(
        {"large": SIGNIFICAND, "small": WIDE, "distance": distance, "subtract": 1, **_NOTES}
    )


unaligned_layout = StructLayout(
    {"large": SIGNIFICAND, "small": SIGNIFICAND, "distance": FIELD, "subtract": 1, **_NOTES}
)
aligned_layout = StructLayout({"large": SIGNIFICAND, "small": WIDE, "subtract": 1, **_NOTES})
total_layout = StructLayout({"total": WIDE + 1, **_NOTES})
grouped_layout = StructLayout(
    {
        "total": WIDE + 1,
        "groups": ArrayLayout(
            StructLayout({"zeros": BYTE.bit_length() - 1, "some": 1}),
            (1 << DISTANCE) // BYTE,
        ),
        **_NOTES,
    }
)
"""A sum, and of each of its bytes the leading zeros and whether a bit is set, from the top."""
counted_layout = StructLayout({"total": WIDE + 1, "zeros": DISTANCE, **_NOTES})
limited_layout = StructLayout({"total": WIDE + 1, "shift": DISTANCE, "normal": 1, **_NOTES})
normal_layout = StructLayout({"total": WIDE, "odd": 1, "zero": 1, **_NOTES})
"""A sum that still has to be shifted left by one place if its distance is odd."""


class Compare(Step):
    """Which operand has the larger magnitude."""

    def __init__(self) -> None:
        super().__init__(operands_layout, compared_layout, levels=16)

    def elaborate(self, platform: Any) -> Module:
        """Build the comparison."""
        m = Module()
        a, b, o = self.i.a, self.i.b, self.o
        m.d.comb += [
            o.a_normal.eq(a[FRACTION:MAGNITUDE].any()),
            o.b_normal.eq(b[FRACTION:MAGNITUDE].any()),
            o.swap.eq(a[:MAGNITUDE] < b[:MAGNITUDE]),
        ]
        pass_on(m, self, "a", "b")
        return m


class Order(Step):
    """The operands in order of magnitude."""

    def __init__(self) -> None:
        super().__init__(compared_layout, ordered_layout, levels=6)

    def elaborate(self, platform: Any) -> Module:
        """Build the exchange."""
        m = Module()
        i, o = self.i, self.o
        m.d.comb += [
            o.large.as_value().eq(Mux(i.swap, i.b, i.a)),
            o.small.as_value().eq(Mux(i.swap, i.a, i.b)),
            o.large_normal.eq(Mux(i.swap, i.b_normal, i.a_normal)),
            o.small_normal.eq(Mux(i.swap, i.a_normal, i.b_normal)),
        ]
        return m


class Distance(Step):
    """How far the smaller operand is below the larger one, and what is special."""

    def __init__(self) -> None:
        super().__init__(ordered_layout, unaligned_layout, levels=11)

    def elaborate(self, platform: Any) -> Module:
        """Build the subtraction.

        A subnormal operand has the exponent field of the least normal ones, which is one more
        than the field says. A special smaller operand of an infinite one is infinite too, and one
        of a NaN makes no difference.
        """
        m = Module()
        large, small, o = self.i.large, self.i.small, self.o
        least = self.i.large_normal & ~self.i.small_normal
        distance = add_with_carry(large.exponent, ~small.exponent, ~least)[:FIELD]
        special = large.exponent.all()
        subtract = large.sign ^ small.sign
        invalid = small.exponent.all() & subtract
        m.d.comb += [
            o.large.eq(Cat(large.fraction, self.i.large_normal)),
            o.small.eq(Cat(small.fraction, self.i.small_normal)),
            o.distance.eq(distance),
            o.exponent.eq(large.exponent | ~self.i.large_normal),
            o.subtract.eq(subtract),
            o.sign.eq(large.sign),
            o.zero_sign.eq(large.sign & small.sign),
            o.infinite.eq(special),
            o.nan.eq(special & (large.fraction.any() | invalid)),
        ]
        return m


class AlignCoarse(Step):
    """The smaller operand moved by the high bits of its distance."""

    def __init__(self) -> None:
        super().__init__(unaligned_layout, shifting_layout(len(FINE)), levels=9)

    def elaborate(self, platform: Any) -> Module:
        """Build the limit of the distance and the shift."""
        m = Module()
        wide = Cat(Const(0, GUARD), self.i.small)
        distance = limited(self.i.distance, DISTANCE)
        m.d.comb += [
            self.o.small.eq(shift_right_sticky(m, wide, distance, COARSE)),
            self.o.distance.eq(distance),
        ]
        pass_on(m, self, "large", "subtract", *_NOTES)
        return m


class AlignFine(Step):
    """The smaller operand on the exponent of the larger one."""

    def __init__(self) -> None:
        super().__init__(shifting_layout(len(FINE)), aligned_layout, levels=7)

    def elaborate(self, platform: Any) -> Module:
        """Build the shift."""
        m = Module()
        shifted = shift_right_sticky(m, self.i.small, self.i.distance, FINE)
        m.d.comb += self.o.small.eq(shifted)
        pass_on(m, self, "large", "subtract", *_NOTES)
        return m


class AddAligned(Step):
    """Sum or difference of aligned significands, never negative, one bit wider."""

    def __init__(self) -> None:
        super().__init__(aligned_layout, total_layout, levels=22)

    def elaborate(self, platform: Any) -> Module:
        """Build the adder."""
        m = Module()
        width = len(self.o.total)
        small = Signal(width)
        m.d.comb += [
            small.eq(self.i.small ^ self.i.subtract.replicate(width)),
            self.o.total.eq(add_with_carry(self.i.large << GUARD, small, self.i.subtract)),
        ]
        pass_on(m, self, *_NOTES)
        return m


class CountSumByteZeros(Step):
    """Leading zeros of each byte of the sum."""

    verilog_name = "count_groups"

    def __init__(self) -> None:
        # The lowest byte is half zeros, so that two of its bits are each other's inverse.
        super().__init__(total_layout, grouped_layout, levels=6, held=grouped_layout.size - 1)

    def elaborate(self, platform: Any) -> Module:
        """Build the trees."""
        m = Module()
        groups = zero_groups(m, self.i.total, BYTE)
        for o, (zeros, some) in zip(self.o.groups, groups, strict=True):
            m.d.comb += [o.zeros.eq(zeros), o.some.eq(some)]
        pass_on(m, self, "total", *_NOTES)
        return m


class CountSumZeros(Step):
    """Leading zeros of the sum."""

    verilog_name = "count"

    def __init__(self) -> None:
        super().__init__(grouped_layout, counted_layout, levels=5)

    def elaborate(self, platform: Any) -> Module:
        """Build the rest of the tree."""
        m = Module()
        groups = [(group.zeros, group.some) for group in self.i.groups]
        m.d.comb += self.o.zeros.eq(leading_zeros_of(m, groups))
        pass_on(m, self, "total", *_NOTES)
        return m


class LimitNormalisation(Step):
    """How far the sum moves up: to its top bit, but not below exponent field 1.

    The exponent becomes the field of a sum that does not move.
    """

    verilog_name = "limit"

    def __init__(self) -> None:
        super().__init__(counted_layout, limited_layout, levels=12)

    def elaborate(self, platform: Any) -> Module:
        """Build the comparison."""
        m = Module()
        i, o = self.i, self.o
        normal = i.zeros <= i.exponent
        m.d.comb += [
            o.normal.eq(normal),
            o.shift.eq(Mux(normal, i.zeros, i.exponent)),
            # truncates: an infinity or NaN, whose exponent is not read
            o.exponent.eq(i.exponent + 1),
        ]
        pass_on(m, self, "total", "sign", "zero_sign", "infinite", "nan")
        return m


class NormaliseSum(Step):
    """The sum moved up by the even part of its distance, and its exponent field."""

    verilog_name = "normalise"

    def __init__(self) -> None:
        super().__init__(limited_layout, normal_layout, levels=11)

    def elaborate(self, platform: Any) -> Module:
        """Build the shift and the subtraction."""
        m = Module()
        i, o = self.i, self.o
        m.d.comb += [
            # truncates: the top bit of a normal sum, which its fraction leaves out
            o.total.eq(i.total << Cat(Const(0, 1), i.shift[1:])),
            o.odd.eq(i.shift[0]),
            o.zero.eq(~i.total.any()),
            # truncates: a normal sum moves by its exponent at most; others have field 0
            o.exponent.eq((i.exponent - i.shift)[:FIELD] & i.normal.replicate(FIELD)),
        ]
        pass_on(m, self, "sign", "zero_sign", "infinite", "nan")
        return m


class RoundTotal(Step):
    """The sum in its place without its top bit, whether to round up, and the sign."""

    def __init__(self) -> None:
        super().__init__(normal_layout, rounding_layout, levels=6)

    def elaborate(self, platform: Any) -> Module:
        """Build the last place of the shift and the decision to nearest even."""
        m = Module()
        i, o = self.i, self.o
        total = Mux(i.odd, i.total << 1, i.total)[:WIDE]
        fraction, rest = total[-FRACTION:], total[:-FRACTION]
        m.d.comb += [
            o.fraction.eq(fraction),
            o.field.eq(Mux(i.zero, 0, i.exponent)),
            o.round_up.eq(rest[-1] & (rest[:-1].any() | fraction[0])),
            o.sign.eq(Mux(i.zero, i.zero_sign, i.sign)),
        ]
        pass_on(m, self, "infinite", "nan")
        return m


def addition_steps() -> list[Step]:
    """The steps of an FP32 addition, from two operands `a` and `b` to `fp32_layout`."""
    align = [AlignCoarse(), AlignFine()]
    normalise = [CountSumByteZeros(), CountSumZeros(), LimitNormalisation(), NormaliseSum()]
    return [
        Compare(),
        Order(),
        Distance(),
        *align,
        AddAligned(),
        *normalise,
        RoundTotal(),
        AddRounding(),
        PackFp32(),
    ]


class RoundTotalTo(Step):
    """The sum in its place, rounded to a format with the exponents of FP32."""

    def __init__(self, dtype: Float, toward_zero: bool) -> None:
        self._dtype, self._toward_zero = dtype, toward_zero
        levels = 8 if toward_zero else 26
        super().__init__(normal_layout, packing_layout, levels=levels)

    def elaborate(self, platform: Any) -> Module:
        """Build the last place of the shift and the rounding."""
        m = Module()
        i, o = self.i, self.o
        bits = self._dtype.fraction_bits
        total = Signal(WIDE)
        fraction, rest = total[-bits:], total[:-bits]
        field = Mux(i.zero, 0, i.exponent)
        up = Const(0, 1) if self._toward_zero else rest[-1] & (rest[:-1].any() | fraction[0])
        rounded = Signal(bits + FP32.exponent_bits + 1)
        m.d.comb += [
            total.eq(Mux(i.odd, i.total << 1, i.total)),
            rounded.eq(Cat(fraction, field[: FP32.exponent_bits]) + up),
            o.magnitude.eq(Cat(Const(0, FP32.fraction_bits - bits), rounded)),
            o.sign.eq(Mux(i.zero, i.zero_sign, i.sign)),
        ]
        pass_on(m, self, "infinite", "nan")
        return m


def adding_steps(dtype: Float, toward_zero: bool) -> list[Step]:
    """The steps of an FP32 addition, the sum rounded to a format with the exponents of FP32."""
    if dtype == FP32 and not toward_zero:
        return addition_steps()
    return [*addition_steps()[:-3], RoundTotalTo(dtype, toward_zero), PackFp32()]
