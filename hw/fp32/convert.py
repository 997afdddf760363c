"""From the sum of a block dot product to FP32: sum * 2^(exponent - 264), rounded once.

In units of the least FP32 subnormal that is sum * 2^D. The magnitude goes to the top of the
significand and comes back down where the result is subnormal: only there may it be rounded.
"""

from typing import Any

from amaranth.hdl import Cat, Const, Module, Mux, Signal, signed
from amaranth.lib import data

from axs6.golden.formats import FP32
from axs6.golden.spec import (
    ACCUMULATOR_SCALE,
    EXPONENT_BIAS,
    EXPONENT_BITS,
    EXPONENT_SUM_BITS,
    SUM_BITS,
)
from axs6.hw.core.layouts import fp32_layout
from axs6.hw.core.pipeline import Step
from axs6.hw.core.structures import StructLayout
from axs6.hw.core.trees import leading_zeros
from axs6.hw.fp32.common import (
    FRACTION,
    MAGNITUDE,
    SIGNIFICAND,
    limited,
    pass_on,
    shift_right_sticky,
)

LEAST_EXPONENT = FP32.bias - 1 + FRACTION
"""The least FP32 subnormal is 2 to minus this."""

UNIT = 2 * EXPONENT_BIAS + ACCUMULATOR_SCALE - LEAST_EXPONENT
"""The sum of exponents for which D is 0."""

GUARD = 2
"""Bits below the significand; the lowest is the or of all that follow."""

WIDE = SIGNIFICAND + GUARD
DOWN = WIDE.bit_length()
COARSE = (4, 3)
FINE = (2, 1, 0)
"""Bits of the distance by which the two steps of the shift go."""

ZEROS = (SUM_BITS - 1).bit_length()

magnitude_layout = StructLayout({"sign": 1, "magnitude": SUM_BITS, "exponent": EXPONENT_SUM_BITS})
counted_layout = StructLayout(
    {"zeros": ZEROS, "sign": 1, "magnitude": SUM_BITS, "top": signed(EXPONENT_SUM_BITS + 1)}
)
"""Leading zeros, and the exponent field less one of a magnitude that has none."""
placed_layout = StructLayout(
    {
        "sign": 1,
        "magnitude": SUM_BITS,
        "base": signed(EXPONENT_SUM_BITS + 1),
        "below": EXPONENT_SUM_BITS,
    }
)
"""The magnitude at the top of the significand, the exponent field less one, and its negation
without the lowest bit, which is that of the field."""
limited_layout = StructLayout(
    {"sign": 1, "magnitude": SUM_BITS, "down": DOWN, "base": EXPONENT_SUM_BITS}
)
"""The magnitude at the top, by how many bits it comes down, and the exponent field less one."""


def shifting_layout(down: int) -> data.StructLayout:
    """A significand that has still to come down by so many bits of a distance."""
    return StructLayout({"sign": 1, "significand": WIDE, "down": down, "base": EXPONENT_SUM_BITS})


shifted_layout = StructLayout(
    {"sign": 1, "significand": WIDE, "base": EXPONENT_BITS, "infinite": 1}
)


class Magnitude(Step):
    """Sign and magnitude of the sum."""

    def __init__(self, i: data.StructLayout) -> None:
        super().__init__(i, magnitude_layout, levels=12)

    def elaborate(self, platform: Any) -> Module:
        """Build the negation."""
        m = Module()
        negative = self.i.sum < 0
        m.d.comb += [
            self.o.sign.eq(negative),
            self.o.magnitude.eq(Mux(negative, -self.i.sum, self.i.sum)),
        ]
        pass_on(m, self, "exponent")
        return m


class Count(Step):
    """Leading zeros of the magnitude, and the exponent of its top bit's place."""

    def __init__(self) -> None:
        super().__init__(magnitude_layout, counted_layout, levels=10)

    def elaborate(self, platform: Any) -> Module:
        """Build the tree and the subtraction."""
        m = Module()
        m.d.comb += [
            self.o.zeros.eq(leading_zeros(m, self.i.magnitude)),
            self.o.top.eq(self.i.exponent - (UNIT + SIGNIFICAND - SUM_BITS)),
        ]
        pass_on(m, self, "sign", "magnitude")
        return m


class Place(Step):
    """The magnitude at the top, its exponent field less one, and how far that is below 0."""

    def __init__(self) -> None:
        super().__init__(counted_layout, placed_layout, levels=12)

    def elaborate(self, platform: Any) -> Module:
        """Build the shift and the subtractions."""
        m = Module()
        i, o = self.i, self.o
        m.d.comb += [
            o.magnitude.eq(i.magnitude << i.zeros),
            o.base.eq(i.top - i.zeros),
            o.below.eq((i.zeros - i.top)[1 : EXPONENT_SUM_BITS + 1]),
        ]
        pass_on(m, self, "sign")
        return m


class Limit(Step):
    """How far the magnitude comes down, which it does where it is subnormal."""

    def __init__(self) -> None:
        super().__init__(placed_layout, limited_layout, levels=6)

    def elaborate(self, platform: Any) -> Module:
        """Build the limits of the distance and of the field."""
        m = Module()
        i, o = self.i, self.o
        subnormal = i.base < 0
        m.d.comb += [
            o.down.eq(limited(Cat(i.base[0], i.below), DOWN) & subnormal.replicate(DOWN)),
            o.base.eq(Mux(subnormal | ~i.magnitude[-1], 0, i.base)),
        ]
        pass_on(m, self, "sign", "magnitude")
        return m


class ShiftCoarse(Step):
    """The significand brought down by the high bits of its distance."""

    def __init__(self) -> None:
        super().__init__(limited_layout, shifting_layout(len(FINE)), levels=7)

    def elaborate(self, platform: Any) -> Module:
        """Build the shift."""
        m = Module()
        wide = Cat(Const(0, WIDE - SUM_BITS), self.i.magnitude)
        m.d.comb += [
            self.o.significand.eq(shift_right_sticky(m, wide, self.i.down, COARSE)),
            self.o.down.eq(self.i.down),
        ]
        pass_on(m, self, "sign", "base")
        return m


class ShiftFine(Step):
    """The significand in its place, and whether the sum is too large for FP32.

    Where the exponent field less one is above 0 nothing was shifted down, so the field is that
    and one.
    """

    def __init__(self) -> None:
        super().__init__(shifting_layout(len(FINE)), shifted_layout, levels=7)

    def elaborate(self, platform: Any) -> Module:
        """Build the shift and the comparison."""
        m = Module()
        shifted = shift_right_sticky(m, self.i.significand, self.i.down, FINE)
        m.d.comb += [
            self.o.significand.eq(shifted),
            self.o.infinite.eq(self.i.base >= FP32.exponent_special - 1),
            self.o.base.eq(self.i.base[:EXPONENT_BITS]),
        ]
        pass_on(m, self, "sign")
        return m


class RoundSum(Step):
    """The FP32 pattern. Only a result below 2^16 units is rounded."""

    def __init__(self) -> None:
        super().__init__(shifted_layout, fp32_layout, levels=14)

    def elaborate(self, platform: Any) -> Module:
        """Build the rounding and the choice of infinity."""
        m = Module()
        significand, guard = self.i.significand[GUARD:], self.i.significand[:GUARD]
        units = significand[:SUM_BITS]
        round_up = guard[-1] & (guard[:-1].any() | units[0])
        low = Signal(SUM_BITS)
        field = Signal(EXPONENT_BITS)
        m.d.comb += [low.eq(units + round_up), field.eq(self.i.base + significand[-1])]
        exact = Cat(low, significand[SUM_BITS:-1], field)[:MAGNITUDE]
        pattern = Mux(self.i.infinite, FP32.infinity, exact)
        m.d.comb += self.o.value.eq(Cat(pattern[:MAGNITUDE], self.i.sign))
        return m


def conversion_steps(i: data.StructLayout) -> list[Step]:
    """The steps from the result `i` of a block dot product to `fp32_layout`."""
    return [Magnitude(i), Count(), Place(), Limit(), ShiftCoarse(), ShiftFine(), RoundSum()]
