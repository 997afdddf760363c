"""From an exact integer under an exponent to FP32, rounded once to nearest even.

In units of the least FP32 subnormal it is sum * 2^D. The magnitude goes to the top of the
significand and comes back down where the result is subnormal: one of no more bits than the
significand can be rounded only there. Lower bits of a wider one become one, their or.
"""

from dataclasses import dataclass
from functools import partial
from typing import Any

from amaranth.hdl import Cat, Const, Module, Mux, Shape, Signal, Value, signed
from amaranth.lib import data

from axs6.golden.formats import FP32
from axs6.golden.formats.catalog import AXS6_SCALE
from axs6.hw.core.layouts import fp32_layout
from axs6.hw.core.pipeline import Step
from axs6.hw.core.structures import ArrayLayout, StructLayout
from axs6.hw.core.trees import leading_zeros, leading_zeros_of, zero_groups
from axs6.hw.fp32.common import (
    BYTE,
    FRACTION,
    MAGNITUDE,
    SIGNIFICAND,
    AddRounding,
    PackFp32,
    limited,
    pass_on,
    rounding_layout,
    shift_right_sticky,
)

LEAST_EXPONENT = FP32.bias - 1 + FRACTION
"""The least FP32 subnormal is 2 to minus this."""

NAN, PLUS, MINUS = 1, 2, 3
"""Values of `special`: NaN, and infinities of either sign."""

GUARD = 2
"""Bits below the significand; the lowest is the or of all that follow."""

WIDE = SIGNIFICAND + GUARD
DOWN = WIDE.bit_length()
COARSE = (4, 3)
FINE = (2, 1, 0)
"""Bits of the distance by which the two steps of the shift go."""
REST = BYTE.bit_length() - 1
"""Low bits of the leading zeros by which a wide magnitude moves up in a step of their own."""


@dataclass(frozen=True)
class Number:
    """The input of a conversion: a sign and a magnitude, times 2^(exponent + offset).

    Args:
        width: bits of the magnitude.
        exponent_bits: of the exponent; 0 where it is 0.
        offset: added to the exponent.
        special: whether there may be NaN or an infinity in its place.
    """

    width: int
    exponent_bits: int
    offset: int
    special: bool

    @property
    def top(self) -> int:
        """The exponent field less one of a magnitude without leading zeros, under exponent 0."""
        return self.offset + LEAST_EXPONENT + self.width - SIGNIFICAND

    @property
    def field(self) -> int:
        """Bits of that field with its sign, whatever the exponent and the leading zeros."""
        low, high = self.top - self.width, self.top + (1 << self.exponent_bits) - 1
        return max((~low).bit_length() if low < 0 else 0, high.bit_length(), 1) + 1

    @property
    def zeros(self) -> int:
        """Bits of a number of leading zeros."""
        return (self.width - 1).bit_length()

    def layout(self, **fields: Any) -> data.StructLayout:
        """A layout with the sign and what stands in the place of a number."""
        special = {"special": 2} if self.special else {}
        return StructLayout({"sign": 1, **fields, **special})

    @property
    def given(self) -> data.StructLayout:
        """Sign, magnitude and exponent."""
        exponent = {"exponent": self.exponent_bits} if self.exponent_bits else {}
        return self.layout(magnitude=self.width, **exponent)

    @property
    def named(self) -> data.StructLayout:
        """Sign and magnitude, and the exponent of its top bit's place."""
        return self.layout(magnitude=self.width, top=signed(self.field))

    @property
    def counted(self) -> data.StructLayout:
        """The same with the leading zeros of the magnitude."""
        return StructLayout({"zeros": self.zeros, **self.named.members})

    @property
    def grouped(self) -> data.StructLayout:
        """The same with the leading zeros of each byte, and whether a bit of it is set."""
        above, last = divmod(self.width - 1, BYTE)
        groups = {"zeros": ArrayLayout(REST, above), "some": above, "last": last.bit_length()}
        return StructLayout({**groups, **self.named.members})

    @property
    def placed(self) -> data.StructLayout:
        """A magnitude, its exponent field less one, and how far that is below 0."""
        bits = self.field
        return self.layout(magnitude=self.width, base=signed(bits), below=bits - 1)

    def top_of(self, i: data.View) -> Value:
        """The exponent of the top bit's place of what is given."""
        exponent = i.exponent if self.exponent_bits else Const(0, 1)
        return exponent - -self.top if self.top < 0 else exponent + self.top

    def pass_on(self, m: Module, step: Step, *names: str) -> None:
        """Connect members that a step leaves as they are, what stands in the place among them."""
        pass_on(m, step, "sign", *names, *["special"] * self.special)


class SplitMagnitude(Step):
    """Sign and magnitude of the sum, in the fields `sum` and, above it, `high`."""

    verilog_name = "magnitude"

    def __init__(self, number: Number, i: data.StructLayout) -> None:
        self._number = number
        super().__init__(i, number.given, levels=4 + 2 * (number.width - 1).bit_length())

    def elaborate(self, platform: Any) -> Module:
        """Build the negation."""
        m = Module()
        i = self.i
        total = Cat(i.sum, i.high).as_signed() if "high" in i.shape().members else i.sum
        negative = total < 0
        m.d.comb += [
            self.o.sign.eq(negative),
            self.o.magnitude.eq(Mux(negative, -total, total)),
        ]
        beside = [name for name in ("exponent", "special") if name in self.o.shape().members]
        pass_on(m, self, *beside)
        return m


class CountMagnitudeZeros(Step):
    """Leading zeros of the magnitude, and the exponent of its top bit's place."""

    verilog_name = "count"

    def __init__(self, number: Number) -> None:
        self._number = number
        super().__init__(number.given, number.counted, levels=2 + 2 * number.zeros)

    def elaborate(self, platform: Any) -> Module:
        """Build the tree and the subtraction."""
        m = Module()
        m.d.comb += [
            self.o.zeros.eq(leading_zeros(m, self.i.magnitude)),
            self.o.top.eq(self._number.top_of(self.i)),
        ]
        self._number.pass_on(m, self, "magnitude")
        return m


class CountMagnitudeByteZeros(Step):
    """Leading zeros of each byte of the magnitude, and the exponent of its top bit's place.

    The zeros of the last byte count only where all others are 0. A bit of it is set then, and the
    number of its zeros is less than that of its bits.
    """

    verilog_name = "count_groups"

    def __init__(self, number: Number) -> None:
        self._number = number
        super().__init__(number.given, number.grouped, levels=8)

    def elaborate(self, platform: Any) -> Module:
        """Build the trees and the subtraction."""
        m = Module()
        o = self.o
        groups = zero_groups(m, self.i.magnitude, BYTE)
        zeros, some = zip(*groups[: len(o.zeros)], strict=True)
        m.d.comb += [
            Value.cast(o.zeros).eq(Cat(zeros)),
            o.some.eq(Cat(some)),
            o.last.eq(groups[len(o.zeros)][0]),
            o.top.eq(self._number.top_of(self.i)),
        ]
        self._number.pass_on(m, self, "magnitude")
        return m


class JoinByteZeros(Step):
    """Leading zeros of the magnitude."""

    verilog_name = "join_groups"

    def __init__(self, number: Number) -> None:
        self._number = number
        super().__init__(number.grouped, number.counted, levels=2 + 2 * (number.zeros - REST))

    def elaborate(self, platform: Any) -> Module:
        """Build the rest of the tree."""
        m = Module()
        i = self.i
        last = Cat(i.last, Const(0, REST - len(i.last)))
        groups = [*zip(i.zeros, i.some, strict=True), (last, Const(1, 1))]
        below = (1 << self._number.zeros - REST) - len(groups)
        groups += [(Const(0, REST), Const(0, 1))] * below
        m.d.comb += self.o.zeros.eq(leading_zeros_of(m, groups))
        self._number.pass_on(m, self, "magnitude", "top")
        return m


class NormaliseMagnitude(Step):
    """The magnitude at the top, its exponent field less one, and how far that is below 0.

    The distance below 0 has no lowest bit: that of the exponent field serves. With `rest` above 0,
    `NormaliseRest` moves the magnitude by that many low bits of the leading zeros, and this step
    by the others.
    """

    verilog_name = "place"

    def __init__(self, number: Number, i: data.Layout, rest: int = 0) -> None:
        self._number, self._rest = number, rest
        o = StructLayout({**({"zeros": rest} if rest else {}), **number.placed.members})
        super().__init__(i, o, levels=4 + 2 * (number.zeros - rest))

    def elaborate(self, platform: Any) -> Module:
        """Build the shift and the subtractions."""
        m = Module()
        i, o, rest = self.i, self.o, self._rest
        zeros = Cat(Const(0, rest), i.zeros[rest:]) if rest else i.zeros
        m.d.comb += [
            o.magnitude.eq(i.magnitude << zeros),
            o.base.eq(i.top - i.zeros),
            o.below.eq((i.zeros - i.top)[1 : self._number.field]),
        ]
        if rest:
            m.d.comb += o.zeros.eq(i.zeros[:rest])
        self._number.pass_on(m, self)
        return m


class NormaliseRest(Step):
    """The magnitude moved up by the rest of its leading zeros."""

    verilog_name = "place_rest"

    def __init__(self, number: Number, i: data.Layout) -> None:
        self._number = number
        super().__init__(i, number.placed, levels=7)

    def elaborate(self, platform: Any) -> Module:
        """Build the shift."""
        m = Module()
        m.d.comb += self.o.magnitude.eq(self.i.magnitude << self.i.zeros)
        self._number.pass_on(m, self, "base", "below")
        return m


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

    `fine` ones move wide numbers to the top in four steps in place of two, and round them in three.
    """
    fine = fine and number.width >= SIGNIFICAND
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
