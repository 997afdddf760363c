"""From an exact integer under an exponent to FP32, rounded once to nearest even.

In units of the least FP32 subnormal it is sum * 2^D. The magnitude goes to the top of the
significand and comes back down where the result is subnormal: one of no more bits than the
significand can be rounded only there. Lower bits of a wider one become one, their or.
"""

from functools import partial
from typing import Any

from amaranth.hdl import Cat, Const, Module, Mux, Shape, Signal, Value
from amaranth.lib import data

from axs6.golden.formats import FP32
from axs6.golden.formats.catalog import AXS6_SCALE
from axs6.hw.core.layouts import fp32_layout
from axs6.hw.core.pipeline import Step
from axs6.hw.fp32.common import (
    FRACTION,
    MAGNITUDE,
    SIGNIFICAND,
    AddRounding,
    PackFp32,
    limited,
    rounding_layout,
    shift_right_sticky,
)
from axs6.hw.fp32.magnitude import (
    CountMagnitudeByteZeros,
    CountMagnitudeZeros,
    JoinByteZeros,
    NormaliseMagnitude,
    NormaliseRest,
    SplitMagnitude,
)
from axs6.hw.fp32.number import NAN, REST, Number

GUARD = 2
"""Bits below the significand; the lowest is the or of all that follow."""

WIDE = SIGNIFICAND + GUARD
DOWN = WIDE.bit_length()
COARSE = (4, 3)
FINE = (2, 1, 0)
"""Bits of the distance by which the two steps of the shift go."""


class LimitSubnormal(Step):
    """Right shift of the magnitude, for subnormal results."""

    verilog_name = "limit"

    def __init__(self, number: Number, i: data.Layout) -> None:
        self._number = number
        o = number.layout(magnitude=number.width, down=DOWN, base=number.field - 1)
        super().__init__(i, o, levels=6)

    def elaborate(self, platform: Any) -> Module:
        """Build the limits of the distance and of the field."""
        m = Module()
        i, o = self.i, self.o
        subnormal = i.base < 0
        m.d.comb += [
            o.down.eq(limited(Cat(i.base[0], i.below), DOWN) & subnormal.replicate(DOWN)),
            o.base.eq(Mux(subnormal | ~i.magnitude[-1], 0, i.base)),
        ]
        self._number.pass_on(m, self, "magnitude")
        return m


class DenormaliseCoarse(Step):
    """The significand brought down by the high bits of its distance."""

    verilog_name = "shift_coarse"

    def __init__(self, number: Number, i: data.Layout) -> None:
        self._number = number
        o = number.layout(significand=WIDE, down=len(FINE), base=number.field - 1)
        super().__init__(i, o, levels=7)

    def elaborate(self, platform: Any) -> Module:
        """Build the shift."""
        m = Module()
        magnitude, more = self.i.magnitude, self._number.width - WIDE
        if more > 0:
            wide = Cat(magnitude[: more + 1].any(), magnitude[more + 1 :])
        else:
            wide = Cat(Const(0, -more), magnitude)
        m.d.comb += [
            self.o.significand.eq(shift_right_sticky(m, wide, self.i.down, COARSE)),
            self.o.down.eq(self.i.down),
        ]
        self._number.pass_on(m, self, "base")
        return m


class DenormaliseFine(Step):
    """The significand in its place, and whether the sum is too large for FP32.

    Where the exponent field less one is above 0 nothing was shifted down, so the field is that
    and one.
    """

    verilog_name = "shift_fine"

    def __init__(self, number: Number, i: data.Layout) -> None:
        self._number = number
        o = number.layout(significand=WIDE, base=AXS6_SCALE.bits, infinite=1)
        super().__init__(i, o, levels=7)

    def elaborate(self, platform: Any) -> Module:
        """Build the shift and the comparison."""
        m = Module()
        shifted = shift_right_sticky(m, self.i.significand, self.i.down, FINE)
        m.d.comb += [
            self.o.significand.eq(shifted),
            self.o.infinite.eq(self.i.base >= FP32.exponent_special - 1),
            self.o.base.eq(self.i.base[: AXS6_SCALE.bits]),
        ]
        self._number.pass_on(m, self)
        return m


class RoundSum(Step):
    """The FP32 pattern. Of a magnitude no wider than the significand only the low bits are rounded:
    a result that is cut has no more than the magnitude."""

    def __init__(self, number: Number, i: data.Layout) -> None:
        self._number = number
        low = min(number.width, MAGNITUDE)
        super().__init__(i, fp32_layout, levels=6 + 2 * (low - 1).bit_length())

    def elaborate(self, platform: Any) -> Module:
        """Build the rounding and the choice of infinity."""
        m = Module()
        significand, guard = self.i.significand[GUARD:], self.i.significand[:GUARD]
        field = Signal(AXS6_SCALE.bits)
        round_up = guard[-1] & (guard[:-1].any() | significand[0])
        infinite = self.i.infinite
        if self._number.width < SIGNIFICAND:
            low = Signal(self._number.width)
            m.d.comb += [
                low.eq(significand[: len(low)] + round_up),
                field.eq(self.i.base + significand[-1]),
            ]
            exact = Cat(low, significand[len(low) : -1], field)[:MAGNITUDE]
        else:
            # truncates: an infinite number, whose field is not read
            m.d.comb += field.eq(self.i.base + significand[-1])
            exact = (Cat(significand[:-1], field) + round_up)[:MAGNITUDE]
            infinite = infinite | exact[FRACTION:].all()
        m.d.comb += self.o.value.eq(self._chosen(exact, infinite))
        return m

    def _chosen(self, exact: Value, infinite: Value) -> Value:
        """The pattern, or what stands in the place of a number."""
        if not self._number.special:
            pattern = Mux(infinite, FP32.infinity, exact)
            return Cat(pattern[:MAGNITUDE], self.i.sign)
        special = self.i.special
        pattern = Mux(infinite | special[1], FP32.infinity, exact)
        sign = Mux(special[1], special[0], self.i.sign)
        return Mux(special == NAN, FP32.quiet_nan, Cat(pattern[:MAGNITUDE], sign))


class Decide(Step):
    """Whether to round up, the exponent field before that, and what is in place of a number."""

    def __init__(self, number: Number, i: data.Layout) -> None:
        self._number = number
        super().__init__(i, rounding_layout, levels=8)

    def elaborate(self, platform: Any) -> Module:
        """Build the decision and the field."""
        m = Module()
        i, o = self.i, self.o
        significand, guard = i.significand[GUARD:], i.significand[:GUARD]
        m.d.comb += [
            o.fraction.eq(significand[:-1]),
            o.field.eq(i.base + significand[-1]),
            o.round_up.eq(guard[-1] & (guard[:-1].any() | significand[0])),
            o.infinite.eq(i.infinite),
            o.sign.eq(i.sign),
        ]
        if self._number.special:
            m.d.comb += [
                o.infinite.eq(i.infinite | i.special[1]),
                o.sign.eq(Mux(i.special[1], i.special[0], i.sign)),
                o.nan.eq(i.special == NAN),
            ]
        return m


def rounding_steps(number: Number, *, fine: bool = False) -> list[Step]:
    """The steps from `Number.given` to `fp32_layout`.

    `fine` ones move wide numbers that may have any number of leading zeros to the top in four steps
    in place of two, and round them in three.
    """
    fine = fine and number.width >= SIGNIFICAND and number.most_zeros is None
    steps: list[Step] = (
        [CountMagnitudeByteZeros(number), JoinByteZeros(number)]
        if fine
        else [CountMagnitudeZeros(number)]
    )
    place = (
        (partial(NormaliseMagnitude, rest=REST), NormaliseRest) if fine else (NormaliseMagnitude,)
    )
    for make in (*place, LimitSubnormal, DenormaliseCoarse, DenormaliseFine):
        steps.append(make(number, steps[-1].o.shape()))
    shifted = steps[-1].o.shape()
    if fine:
        return [*steps, Decide(number, shifted), AddRounding(), PackFp32()]
    return [*steps, RoundSum(number, shifted)]


def conversion_steps(i: data.StructLayout, offset: int, *, fine: bool = False) -> list[Step]:
    """The steps from an integer to `fp32_layout`.

    Args:
        i: its fields: `sum`, in two's complement; `high`, its bits above those; `exponent`, a
            power of two; and `special`, NaN or an infinity in its place.
        offset: added to the exponent.
        fine: whether there are places for many registers.
    """
    members = i.members
    width = sum(Shape.cast(members[name]).width for name in ("sum", "high") if name in members)
    exponent = Shape.cast(members["exponent"]).width if "exponent" in members else 0
    number = Number(width, exponent, offset, "special" in members)
    return [SplitMagnitude(number, i), *rounding_steps(number, fine=fine)]
