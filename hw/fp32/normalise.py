"""From a wide integer under an exponent to a floating-point number, rounded once.

The integer has a sign; its exponent is `top` plus a constant. A magnitude with z leading zeros has
the exponent field F - z, F being the field of one without any, and moves up by z places. Where
that field would be below 1 the result is subnormal, and the magnitude moves to where field 1 has
its hidden bit: up, or down where even F is below 1.
"""

from dataclasses import dataclass
from functools import cached_property
from typing import Any

from amaranth.hdl import Cat, Const, Module, Mux, Signal, signed, unsigned
from amaranth.lib import data

from axs6.golden.formats import Float
from axs6.hw.core.pipeline import Step
from axs6.hw.core.structures import StructLayout
from axs6.hw.core.trees import leading_zeros
from axs6.hw.fp32.common import pass_on

SPECIAL = {"nan": 1, "infinite": 1, "negative": 1}
"""Whether a result is NaN or infinite, and the sign of an infinity."""


@dataclass(frozen=True)
class ScaledInteger:
    """Integers that are rounded: integer * 2^(top + exponent).

    Args:
        bits: width of the magnitudes.
        top_bound: the largest `top`; the least that goes with an integer other than 0 is 1. 0
            where there is no `top`, which then counts as 0.
        exponent: what is added to it.
        dtype: of the results.
        toward_zero: whether they are rounded toward zero, or to nearest even.
        plus_zero: whether a negative one that becomes 0 becomes +0.
        guard: bits below the last place that decide how it is rounded; those below are dropped
            toward minus infinity. None for all bits.
    """

    bits: int
    top_bound: int
    exponent: int
    dtype: Float
    toward_zero: bool
    plus_zero: bool = False
    guard: int | None = None

    @property
    def padding(self) -> int:
        """Zeros below a magnitude, so that bits to be dropped are below those of the result."""
        return max(0, self.dtype.fraction_bits + 3 - self.bits)

    @property
    def width(self) -> int:
        """Bits of a magnitude with its padding."""
        return self.bits + self.padding

    @property
    def field(self) -> int:
        """The exponent field of a magnitude without leading zeros, where `top` is 0."""
        lowest = self.exponent - self.padding
        return lowest + self.width - self.dtype.emin

    @property
    def least_field(self) -> int:
        """The least such field."""
        return self.field + (self.top_bound > 0)

    @property
    def down(self) -> int:
        """Places that a magnitude moves down at most; below them nothing is left to round up."""
        return min(max(0, 1 - self.least_field), self.dtype.fraction_bits + 2)

    @property
    def always_normal(self) -> bool:
        """Whether no result is subnormal."""
        return self.least_field - (self.width - 1) >= 1

    @cached_property
    def field_bits(self) -> int:
        """Bits of a field with its sign."""
        largest = self.field + self.top_bound
        return max(abs(self.least_field - self.width), abs(largest) + 1).bit_length() + 1

    @property
    def zeros_bits(self) -> int:
        """Bits of a number of leading zeros."""
        return (self.width - 1).bit_length()

    @property
    def amount_bits(self) -> int:
        """Bits of the places that a magnitude moves up, from `down` below."""
        return (self.width - 1 + self.down).bit_length()

    @property
    def increments(self) -> bool:
        """Whether a result may be the next magnitude: rounded to nearest, or by what is dropped
        before."""
        return not self.toward_zero or self.guard is not None

    @property
    def special(self) -> data.StructLayout:
        """The field of NaN or an infinity, which passes unchanged."""
        return StructLayout(SPECIAL)

    @property
    def top_bits(self) -> int:
        """Bits of `top`."""
        return self.top_bound.bit_length()

    @property
    def sum_layout(self) -> data.StructLayout:
        """An integer in two's complement, and `top`."""
        return StructLayout(
            {"sum": signed(self.bits + 1), "top": unsigned(self.top_bits), **SPECIAL}
        )

    @property
    def magnitude_layout(self) -> data.StructLayout:
        """Sign and magnitude."""
        return StructLayout(
            {"magnitude": self.bits, "sign": 1, "top": unsigned(self.top_bits), **SPECIAL}
        )

    @property
    def counted_layout(self) -> data.StructLayout:
        """Leading zeros, and the field of a magnitude without any."""
        return StructLayout(
            {
                "magnitude": self.bits,
                "zeros": self.zeros_bits,
                "field": signed(self.field_bits),
                "sign": 1,
                **SPECIAL,
            }
        )

    @property
    def limited_layout(self) -> data.StructLayout:
        """How far a magnitude moves, and its field, which counts if its top bit is then set."""
        return StructLayout(
            {
                "magnitude": self.bits,
                "amount": self.amount_bits,
                "field": signed(self.field_bits),
                "sign": 1,
                **SPECIAL,
            }
        )

    @property
    def rounding_layout(self) -> data.StructLayout:
        """A result before it is rounded up."""
        dtype = self.dtype
        return StructLayout(
            {
                "fraction": dtype.fraction_bits,
                "field": dtype.exponent_bits,
                "round_up": int(self.increments),
                "sign": 1,
                "infinite": 1,
                "nan": 1,
            }
        )


class IntegerMagnitude(Step):
    """Sign and magnitude of a sum."""

    verilog_name = "magnitude"

    def __init__(self, wide: ScaledInteger) -> None:
        super().__init__(wide.sum_layout, wide.magnitude_layout, levels=12)

    def elaborate(self, platform: Any) -> Module:
        """Build the negation."""
        m = Module()
        total = self.i.sum
        m.d.comb += [
            self.o.sign.eq(total[-1]),
            self.o.magnitude.eq(Mux(total[-1], -total, total)),
        ]
        pass_on(m, self, "top", *SPECIAL)
        return m


class CountIntegerZeros(Step):
    """Leading zeros of the magnitude, and the field that it would have without them."""

    verilog_name = "count_zeros"

    def __init__(self, wide: ScaledInteger) -> None:
        self._wide = wide
        levels = 2 * wide.zeros_bits
        super().__init__(wide.magnitude_layout, wide.counted_layout, levels=levels)

    def elaborate(self, platform: Any) -> Module:
        """Build the tree and the addition."""
        m = Module()
        wide = self._wide
        padded = Cat(Const(0, wide.padding), self.i.magnitude)
        m.d.comb += [
            self.o.zeros.eq(leading_zeros(m, padded)),
            self.o.field.eq(self.i.top + wide.field),
        ]
        pass_on(m, self, "magnitude", "sign", *SPECIAL)
        return m


class LimitShift(Step):
    """How far the magnitude moves: to its top bit, but not below exponent field 1."""

    def __init__(self, wide: ScaledInteger) -> None:
        self._wide = wide
        super().__init__(wide.counted_layout, wide.limited_layout, levels=14)

    def elaborate(self, platform: Any) -> Module:
        """Build the subtraction and the limits."""
        m = Module()
        wide, i, o = self._wide, self.i, self.o
        field = Signal(signed(wide.field_bits))
        m.d.comb += [field.eq(i.field - i.zeros), o.field.eq(field)]
        if wide.always_normal:
            m.d.comb += o.amount.eq(i.zeros)
        else:
            normal = field > 0
            place = i.field + (wide.down - 1)
            if 1 - wide.least_field > wide.down:
                place = Mux(place < 0, 0, place)
            m.d.comb += o.amount.eq(Mux(normal, i.zeros + wide.down, place)[: len(o.amount)])
        pass_on(m, self, "magnitude", "sign", *SPECIAL)
        return m


class Move(Step):
    """The significand in its place, its field, and what follows from the bits below it."""

    def __init__(self, wide: ScaledInteger) -> None:
        self._wide = wide
        levels = 3 * wide.amount_bits + 6
        super().__init__(wide.limited_layout, wide.rounding_layout, levels=levels)

    def elaborate(self, platform: Any) -> Module:
        """Build the shift, the decision to nearest even, and the choice of the field."""
        m = Module()
        wide, i, o = self._wide, self.i, self.o
        dtype = wide.dtype
        width = wide.width + wide.down
        moved = Signal(width)
        m.d.comb += moved.eq(Cat(Const(0, wide.padding), i.magnitude) << i.amount)
        fraction = moved[-1 - dtype.fraction_bits : -1]
        rest = moved[: -1 - dtype.fraction_bits]
        if wide.increments:
            up = Const(0) if wide.toward_zero else rest[-1] & (rest[:-1].any() | fraction[0])
            if wide.guard is not None and wide.guard < len(rest):
                # truncates: the highest bits are read beside
                kept = rest[-wide.guard :] + (rest[: -wide.guard].any() & i.sign)
                half = kept[wide.guard - 1]
                more = kept[: wide.guard - 1].any() | fraction[0]
                up = kept[wide.guard]
                if not wide.toward_zero:
                    up = up | (half & more)
            m.d.comb += o.round_up.eq(up)
        normal = moved[-1]
        overflow = normal & (i.field >= dtype.exponent_special)
        m.d.comb += [
            o.fraction.eq(fraction),
            o.field.eq(i.field[: dtype.exponent_bits] & normal.replicate(dtype.exponent_bits)),
            o.infinite.eq(i.infinite | overflow),
            o.nan.eq(i.nan),
            o.sign.eq(Mux(i.infinite, i.negative, i.sign)),
        ]
        return m


class RoundUp(Step):
    """The pattern: rounded, or infinite, or NaN."""

    def __init__(self, wide: ScaledInteger) -> None:
        self._wide = wide
        levels = 26 if wide.increments else 5
        o = StructLayout({"value": wide.dtype.width})
        super().__init__(wide.rounding_layout, o, levels=levels)

    def elaborate(self, platform: Any) -> Module:
        """Build the increment and the selection."""
        m = Module()
        dtype, i = self._wide.dtype, self.i
        bits = dtype.width - 1
        magnitude = Cat(i.fraction, i.field)
        infinite = i.infinite
        if self._wide.increments:
            rounded = Signal(bits + 1)
            m.d.comb += rounded.eq(magnitude + i.round_up)
            magnitude = rounded[:bits]
            infinite = infinite | magnitude[dtype.fraction_bits :].all()
        sign = i.sign
        if self._wide.plus_zero and not self._wide.always_normal:
            sign = i.sign & (infinite | magnitude.any())
        number = Cat(Mux(infinite, dtype.infinity, magnitude)[:bits], sign)
        m.d.comb += self.o.value.eq(Mux(i.nan, dtype.quiet_nan, number))
        return m


def normalising_steps(wide: ScaledInteger) -> list[Step]:
    """The steps from `ScaledInteger.sum_layout` to the pattern of a result, `value`."""
    return [
        IntegerMagnitude(wide),
        CountIntegerZeros(wide),
        LimitShift(wide),
        Move(wide),
        RoundUp(wide),
    ]
