"""From the sum of a block dot product to FP32: sum * 2^(exponent - 264), rounded once.

In units of the least FP32 subnormal that is sum * 2^D. Where D is below 0 the result is a few of
those units and the only rounding takes place; elsewhere the result is exact or infinite.
"""

from typing import Any

from amaranth.hdl import Cat, Module, Mux, Signal, signed
from amaranth.lib import data

from axs6.golden.spec import (
    ACCUMULATOR_SCALE,
    EXPONENT_BIAS,
    EXPONENT_SUM_BITS,
    FP32,
    SUM_BITS,
)
from axs6.hw.fp32 import MAGNITUDE, SIGNIFICAND, shift_right_sticky
from axs6.hw.layouts import fp32_layout, sum_layout
from axs6.hw.pipeline import Step
from axs6.hw.trees import leading_zeros

LEAST_EXPONENT = FP32.bias - 1 + FP32.fraction_bits
"""The least FP32 subnormal is 2 to minus this."""

UNIT = 2 * EXPONENT_BIAS + ACCUMULATOR_SCALE - LEAST_EXPONENT
"""The sum of exponents for which D is 0."""

GUARD = 2
"""Bits below the units in a shift to the right; the lowest is the or of all that follow."""

magnitude_layout = data.StructLayout(
    {"sign": 1, "magnitude": SUM_BITS, "exponent": EXPONENT_SUM_BITS}
)
placed_layout = data.StructLayout(
    {
        "sign": 1,
        "magnitude": SUM_BITS,
        "left": range(SIGNIFICAND),
        "right": range(SUM_BITS + GUARD),
        "base": EXPONENT_SUM_BITS,
    }
)
"""How far the magnitude moves to the left or to the right, and the exponent field less one."""

shifted_layout = data.StructLayout(
    {"sign": 1, "significand": SIGNIFICAND, "guard": GUARD, "base": EXPONENT_SUM_BITS}
)


class Magnitude(Step):
    """Sign and magnitude of the sum."""

    def __init__(self) -> None:
        super().__init__(sum_layout, magnitude_layout, levels=12)

    def elaborate(self, platform: Any) -> Module:
        """Build the negation."""
        m = Module()
        negative = self.i.sum < 0
        m.d.comb += [
            self.o.sign.eq(negative),
            self.o.magnitude.eq(Mux(negative, -self.i.sum, self.i.sum)),
            self.o.exponent.eq(self.i.exponent),
        ]
        return m


class Place(Step):
    """Where the magnitude goes in the significand: to its top, but not below the least unit."""

    def __init__(self) -> None:
        super().__init__(magnitude_layout, placed_layout, levels=20)

    def elaborate(self, platform: Any) -> Module:
        """Build the leading-zero count and the limits of both shifts."""
        m = Module()
        i, o = self.i, self.o
        most = SUM_BITS + GUARD - 1
        distance = Signal(signed(EXPONENT_SUM_BITS + 1))
        free = Signal(range(SIGNIFICAND))
        nonzero = i.magnitude.any()
        m.d.comb += [
            distance.eq(i.exponent - UNIT),
            free.eq(leading_zeros(m, i.magnitude) + SIGNIFICAND - SUM_BITS),
            o.sign.eq(i.sign),
            o.magnitude.eq(i.magnitude),
        ]
        with m.If(distance < -most):
            m.d.comb += o.right.eq(most)
        with m.Elif(distance < 0):
            m.d.comb += o.right.eq(-distance)
        with m.Elif(distance < free):
            m.d.comb += o.left.eq(distance)
        with m.Elif(nonzero):
            m.d.comb += [o.left.eq(free), o.base.eq(distance - free)]
        return m


class Shift(Step):
    """The significand, and what a shift to the right leaves behind."""

    def __init__(self) -> None:
        super().__init__(placed_layout, shifted_layout, levels=12)

    def elaborate(self, platform: Any) -> Module:
        """Build the two shifters."""
        m = Module()
        i, o = self.i, self.o
        right = shift_right_sticky(m, i.magnitude << GUARD, i.right)
        m.d.comb += [
            o.sign.eq(i.sign),
            o.base.eq(i.base),
            o.guard.eq(right[:GUARD]),
            o.significand.eq(Mux(i.right.any(), right[GUARD:], i.magnitude << i.left)),
        ]
        return m


class Pack(Step):
    """The FP32 pattern."""

    def __init__(self) -> None:
        super().__init__(shifted_layout, fp32_layout, levels=15)

    def elaborate(self, platform: Any) -> Module:
        """Build the rounding of the few units that a shift to the right leaves, and the limit."""
        m = Module()
        i = self.i
        units = i.significand[:SUM_BITS]
        round_up = i.guard[-1] & (i.guard[:-1].any() | units[0])
        low = Signal(SUM_BITS)
        field = Signal(EXPONENT_SUM_BITS)
        m.d.comb += [low.eq(units + round_up), field.eq(i.base + i.significand[-1])]
        exact = Cat(low, i.significand[SUM_BITS:-1], field)[:MAGNITUDE]
        pattern = Mux(field >= FP32.exponent_special, FP32.infinity, exact)
        m.d.comb += self.o.value.eq(Cat(pattern[:MAGNITUDE], i.sign))
        return m


def conversion_steps() -> list[Step]:
    """The steps from `sum_layout` to `fp32_layout`."""
    return [Magnitude(), Place(), Shift(), Pack()]
