"""FP32 arithmetic as combinational steps: conversion, addition and the final division.

Each result has one rounding to nearest even; subnormals are kept, overflow gives infinity, and a
NaN is always the positive quiet one.
"""

from typing import Any

from amaranth.hdl import Cat, Const, Module, Mux, Signal, Value, signed
from amaranth.lib import data

from axs6.golden.spec import (
    ACCUMULATOR_SCALE,
    EXPONENT_BIAS,
    EXPONENT_SUM_BITS,
    FP32,
    MAGNITUDE_BITS,
    SUM_BITS,
)
from axs6.hw.layouts import float_layout, fp32_layout, sum_layout
from axs6.hw.pipeline import Step
from axs6.hw.trees import leading_zeros

FIELD = FP32.exponent_bits
SIGNIFICAND = FP32.fraction_bits + 1
MAGNITUDE = FP32.width - 1
GUARD = 3
"""Bits kept below the significand in an addition; the lowest is the or of all that follow."""

FRACTION = 14
"""Bits kept below the units in the division."""

layout = float_layout(FP32)


def significand_of(x: data.View) -> Value:
    """Fraction with its hidden bit."""
    return Cat(x.fraction, x.exponent.any())


def rounded_pattern(m: Module, base: Value, kept: Value, round_up: Value) -> Value:
    """Exponent field and fraction of a rounded result, infinity where it is too large.

    `base` is the exponent field less one: the hidden bit of `kept` adds the one, and a carry out
    of the rounding adds another.
    """
    total = Signal(MAGNITUDE + 1)
    pattern = Signal(MAGNITUDE)
    m.d.comb += [
        total.eq((base << FP32.fraction_bits) + kept + round_up),
        pattern.eq(Mux(total >= FP32.infinity, FP32.infinity, total[:MAGNITUDE])),
    ]
    return pattern


def special_or(nan: Value, infinite: Value, sign: Value, pattern: Value) -> Value:
    """NaN, a signed infinity, or the pattern with its sign."""
    magnitude = Mux(infinite, FP32.infinity, pattern)
    return Mux(nan, FP32.quiet_nan, Cat(magnitude[:MAGNITUDE], sign))


def shift_right_sticky(m: Module, value: Value, distance: Value) -> Value:
    """`value >> distance`, the lowest bit or-ed with every bit that falls off."""
    for stage in range(len(distance)):
        amount = 1 << stage
        shifted = Signal(len(value), name=f"shifted{stage}")
        lost = value[: min(amount + 1, len(value))].any()
        kept = value[amount + 1 :] if amount + 1 < len(value) else Cat()
        m.d.comb += shifted.eq(Mux(distance[stage], Cat(lost, kept), value))
        value = shifted
    return value


class NormaliseSum(Step):
    """The sum of a block dot product as sign, magnitude with its top bit set, and field.

    `field` is what the exponent field would be without limits, two's complement.
    """

    def __init__(self) -> None:
        o = data.StructLayout(
            {"sign": 1, "magnitude": SUM_BITS, "field": signed(EXPONENT_SUM_BITS + 1)}
        )
        super().__init__(sum_layout, o, levels=22)

    def elaborate(self, platform: Any) -> Module:
        """Build the negation, the leading-zero count and the shift."""
        m = Module()
        negative = self.i.sum < 0
        magnitude = Signal(SUM_BITS)
        m.d.comb += magnitude.eq(Mux(negative, -self.i.sum, self.i.sum))
        zeros = leading_zeros(m, magnitude)
        scale = 2 * EXPONENT_BIAS + ACCUMULATOR_SCALE - FP32.bias - (SUM_BITS - 1)
        m.d.comb += [
            self.o.sign.eq(negative),
            self.o.magnitude.eq(magnitude << zeros),
            self.o.field.eq(self.i.exponent - zeros - scale),
        ]
        return m


class RoundSum(Step):
    """FP32 value of a normalised sum: exact, unless it is subnormal or too large."""

    def __init__(self, i: data.StructLayout) -> None:
        super().__init__(i, fp32_layout, levels=26)

    def elaborate(self, platform: Any) -> Module:
        """Build the shift into the subnormals, its rounding, and the limits."""
        m = Module()
        field = self.i.field
        wide = Signal(SIGNIFICAND + GUARD)
        distance = Signal(5)
        subnormal = field < 1
        deepest = (1 << len(distance)) - 1
        m.d.comb += wide.eq(self.i.magnitude << (len(wide) - SUM_BITS))
        with m.If(field < 1 - deepest):
            m.d.comb += distance.eq(deepest)
        with m.Elif(subnormal):
            m.d.comb += distance.eq((1 - field)[: len(distance)])
        shifted = shift_right_sticky(m, wide, distance)
        kept, rest = shifted[GUARD:], shifted[:GUARD]
        half = 1 << (GUARD - 1)
        round_up = (rest > half) | ((rest == half) & kept[0])
        too_large = ~subnormal & (field >= FP32.exponent_special)
        base = Mux(subnormal | ~self.i.magnitude[-1], 0, (field - 1)[:FIELD])
        pattern = rounded_pattern(m, base, kept, round_up)
        limited = Mux(too_large & self.i.magnitude[-1], FP32.infinity, pattern)
        m.d.comb += self.o.value.eq(Cat(limited[:MAGNITUDE], self.i.sign))
        return m


class Align(Step):
    """The operands of an addition in order of magnitude, on a common exponent."""

    def __init__(self) -> None:
        i = data.StructLayout({"a": FP32.width, "b": FP32.width})
        o = data.StructLayout(
            {
                "large": SIGNIFICAND,
                "small": SIGNIFICAND + GUARD,
                "exponent": FIELD,
                "subtract": 1,
                "sign": 1,
                "zero_sign": 1,
                "infinite": 1,
                "nan": 1,
            }
        )
        super().__init__(i, o, levels=26)

    def elaborate(self, platform: Any) -> Module:
        """Build the comparison, the swap and the shift."""
        m = Module()
        o = self.o
        swap = self.i.a[:MAGNITUDE] < self.i.b[:MAGNITUDE]
        large = data.View(layout, Signal(FP32.width, name="large"))
        small = data.View(layout, Signal(FP32.width, name="small"))
        m.d.comb += [
            large.as_value().eq(Mux(swap, self.i.b, self.i.a)),
            small.as_value().eq(Mux(swap, self.i.a, self.i.b)),
        ]
        field = Signal(FIELD)
        distance = Signal(FIELD)
        limited = Signal(5)
        most = (1 << len(limited)) - 1
        m.d.comb += [
            field.eq(large.exponent | ~large.exponent.any()),
            distance.eq(field - (small.exponent | ~small.exponent.any())),
            limited.eq(Mux(distance > most, most, distance[: len(limited)])),
        ]
        wide = Cat(Const(0, GUARD), significand_of(small))
        is_special = large.exponent == FP32.exponent_special
        small_infinite = (small.exponent == FP32.exponent_special) & ~small.fraction.any()
        subtract = large.sign ^ small.sign
        m.d.comb += [
            o.large.eq(significand_of(large)),
            o.small.eq(shift_right_sticky(m, wide, limited)),
            o.exponent.eq(field),
            o.subtract.eq(subtract),
            o.sign.eq(large.sign),
            o.zero_sign.eq(large.sign & small.sign),
            o.infinite.eq(is_special & ~large.fraction.any()),
            o.nan.eq(is_special & (large.fraction.any() | (small_infinite & subtract))),
        ]
        return m


class AddAligned(Step):
    """Sum or difference of aligned significands, never negative, one bit wider."""

    def __init__(self, i: data.StructLayout) -> None:
        members = {k: v for k, v in i.members.items() if k not in ("large", "small", "subtract")}
        o = data.StructLayout({"sum": SIGNIFICAND + GUARD + 1, **members})
        super().__init__(i, o, levels=12)

    def elaborate(self, platform: Any) -> Module:
        """Build the adder."""
        m = Module()
        large = self.i.large << GUARD
        invert = self.i.subtract.replicate(len(self.o.sum))
        small = Signal(len(self.o.sum))
        m.d.comb += [
            small.eq(self.i.small ^ invert),
            self.o.sum.eq((large + small + self.i.subtract)[: len(self.o.sum)]),
        ]
        for name in ("exponent", "sign", "zero_sign", "infinite", "nan"):
            m.d.comb += getattr(self.o, name).eq(getattr(self.i, name))
        return m


class RoundAddition(Step):
    """The FP32 result of an addition."""

    def __init__(self, i: data.StructLayout) -> None:
        super().__init__(i, fp32_layout, levels=36)

    def elaborate(self, platform: Any) -> Module:
        """Build the normalisation, which stops at the subnormals, and the rounding."""
        m = Module()
        total, exponent = self.i.sum, self.i.exponent
        zeros = leading_zeros(m, total)
        shift = Signal(range(len(total)))
        m.d.comb += shift.eq(Mux(zeros > exponent, exponent, zeros)[: len(shift)])
        normal = Signal(len(total))
        m.d.comb += normal.eq(total << shift)
        kept, rest = normal[GUARD + 1 :], normal[: GUARD + 1]
        half = 1 << GUARD
        round_up = (rest > half) | ((rest == half) & kept[0])
        pattern = rounded_pattern(m, (exponent - shift)[:FIELD], kept, round_up)
        sign = Mux(total.any(), self.i.sign, self.i.zero_sign)
        nonzero = Mux(total.any(), pattern, 0)
        m.d.comb += self.o.value.eq(special_or(self.i.nan, self.i.infinite, sign, nonzero))
        return m


def addition_steps() -> list[Step]:
    """The steps of an FP32 addition, from two operands `a` and `b` to `fp32_layout`."""
    align = Align()
    add = AddAligned(align.o.shape())
    return [align, add, RoundAddition(add.o.shape())]


class UnpackAccumulator(Step):
    """Significand of an accumulator as a fixed-point number, and what its quotient needs."""

    def __init__(self) -> None:
        o = data.StructLayout(
            {
                "quotient": SIGNIFICAND + 1 + FRACTION,
                "base": FIELD,
                "sign": 1,
                "infinite": 1,
                "nan": 1,
            }
        )
        super().__init__(fp32_layout, o, levels=4)

    def elaborate(self, platform: Any) -> Module:
        """Split the fields."""
        m = Module()
        x = data.View(layout, self.i.value)
        is_special = x.exponent == FP32.exponent_special
        m.d.comb += [
            self.o.quotient.eq(significand_of(x) << FRACTION),
            self.o.base.eq(x.exponent - x.exponent.any()),
            self.o.sign.eq(x.sign),
            self.o.infinite.eq(is_special & ~x.fraction.any()),
            self.o.nan.eq(is_special & x.fraction.any()),
        ]
        return m


class Reciprocal(Step):
    """Multiplies by 32/31, truncated: 32/31 is the product of all 1 + 2^-(5 * 2^k).

    Two in a row multiply by 1024/961. The terms left out and the truncations of both lower the
    result by less than 1/1922, the least distance of an exact quotient from a rounding boundary.
    """

    FACTORS = (MAGNITUDE_BITS, 2 * MAGNITUDE_BITS, 4 * MAGNITUDE_BITS)

    def __init__(self, i: data.StructLayout) -> None:
        super().__init__(i, i, levels=36)

    def elaborate(self, platform: Any) -> Module:
        """Build one adder for each factor."""
        m = Module()
        value = self.i.quotient
        for factor in self.FACTORS:
            product = Signal(len(value), name=f"product{factor}")
            m.d.comb += product.eq(value + (value >> factor))
            value = product
        m.d.comb += [self.o.eq(self.i), self.o.quotient.eq(value)]
        return m


class RoundQuotient(Step):
    """The quotient as FP32. A tie cannot occur, so the bit below the last decides alone."""

    def __init__(self, i: data.StructLayout) -> None:
        super().__init__(i, fp32_layout, levels=16)

    def elaborate(self, platform: Any) -> Module:
        """Build the one-bit normalisation, the increment and the special values."""
        m = Module()
        carry = self.i.quotient[-1]
        units = self.i.quotient[FRACTION:]
        kept = Mux(carry, units[1:], units[:-1])
        round_up = Mux(carry, units[0], self.i.quotient[FRACTION - 1])
        pattern = rounded_pattern(m, self.i.base + carry, kept, round_up)
        m.d.comb += self.o.value.eq(special_or(self.i.nan, self.i.infinite, self.i.sign, pattern))
        return m


def division_steps() -> list[Step]:
    """The steps of the division by 961/1024, from `fp32_layout` to `fp32_layout`."""
    unpack = UnpackAccumulator()
    layout = unpack.o.shape()
    return [unpack, Reciprocal(layout), Reciprocal(layout), RoundQuotient(layout)]


def conversion_steps() -> list[Step]:
    """The steps from a block sum to FP32: sum * 2^(exponent - 264), rounded."""
    normalise = NormaliseSum()
    return [normalise, RoundSum(normalise.o.shape())]
