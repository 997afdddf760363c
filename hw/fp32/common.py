"""Common parts of the FP32 units: fields, sticky shifts, and the last steps of each result.

Every FP32 result has one rounding to nearest even; subnormals are kept, overflow gives infinity,
and a NaN is always the positive quiet one.
"""

from collections.abc import Iterable
from typing import Any

from amaranth.hdl import Cat, Const, Module, Mux, Signal, Value
from amaranth.lib import data

from axs6.golden.formats import FP32
from axs6.hw.core.layouts import float_layout, fp32_layout
from axs6.hw.core.pipeline import Step
from axs6.hw.core.structures import StructLayout

FIELD = FP32.exponent_bits
FRACTION = FP32.fraction_bits
SIGNIFICAND = FRACTION + 1
MAGNITUDE = FP32.width - 1
BYTE = 8
"""Bits whose leading zeros are counted in a step, where numbers are wide."""

layout = float_layout(FP32)

rounding_layout = StructLayout(
    {
        "fraction": FRACTION,
        "field": FIELD,
        "round_up": 1,
        "sign": 1,
        "infinite": 1,
        "nan": 1,
    }
)
"""A result before rounding, and its special value, if any."""

packing_layout = StructLayout({"magnitude": MAGNITUDE + 1, "sign": 1, "infinite": 1, "nan": 1})
"""A rounded result, one bit wider for a carry, and what replaces it."""


def pass_on(m: Module, step: Step, *names: str) -> None:
    """Connect members that a step leaves as they are."""
    m.d.comb += [getattr(step.o, name).eq(getattr(step.i, name)) for name in names]


def significand_of(x: data.View) -> Value:
    """Fraction with its hidden bit."""
    return Cat(x.fraction, x.exponent.any())


def field_of(x: data.View) -> Value:
    """Exponent field of a number, at least 1."""
    return Cat(x.exponent[0] | ~x.exponent.any(), x.exponent[1:])


def add_with_carry(a: Value, b: Value, carry: Value) -> Value:
    """The sum of two numbers and a carry, as one addition."""
    # truncates: subtractions add a complement, and drop the carry of it
    return (Cat(Const(1, 1), a) + Cat(carry, b))[1:]


def limited(distance: Value, bits: int) -> Value:
    """A distance in so many bits: all ones, which shift everything away, where it has more."""
    return distance[:bits] | distance[bits:].any().replicate(bits)


def shift_right_sticky(m: Module, value: Value, distance: Value, bits: Iterable[int]) -> Value:
    """Shift to the right by some bits of a distance.

    The lowest bit of the result is or-ed with all that falls off.
    """
    for bit in bits:
        amount = 1 << bit
        shifted = Signal(len(value), name=f"shifted{bit}")
        lost = value[: min(amount + 1, len(value))].any()
        kept = value[amount + 1 :] if amount + 1 < len(value) else Cat()
        m.d.comb += shifted.eq(Mux(distance[bit], Cat(lost, kept), value))
        value = shifted
    return value


class AddRounding(Step):
    """Adds the rounding; a carry out of the fraction adds one to the field."""

    verilog_name = "round"

    def __init__(self) -> None:
        super().__init__(rounding_layout, packing_layout, levels=20)

    def elaborate(self, platform: Any) -> Module:
        """Build the increment."""
        m = Module()
        magnitude = Cat(self.i.fraction, self.i.field)
        m.d.comb += self.o.magnitude.eq(magnitude + self.i.round_up)
        pass_on(m, self, "sign", "infinite", "nan")
        return m


class PackFp32(Step):
    """The FP32 pattern: infinity where the result is too large."""

    verilog_name = "pack"

    def __init__(self) -> None:
        super().__init__(packing_layout, fp32_layout, levels=9)

    def elaborate(self, platform: Any) -> Module:
        """Build the selection of special values."""
        m = Module()
        i = self.i
        infinite = i.infinite | i.magnitude[-1] | i.magnitude[FRACTION:MAGNITUDE].all()
        finite = i.magnitude[:MAGNITUDE]
        number = Cat(Mux(infinite, FP32.infinity, finite)[:MAGNITUDE], i.sign)
        m.d.comb += self.o.value.eq(Mux(i.nan, FP32.quiet_nan, number))
        return m
