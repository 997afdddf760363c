"""From the format of an accumulator to FP32, and the NaN of a result."""

from typing import Any

from amaranth.hdl import Cat, Const, Module, Mux, Signal, Value
from amaranth.lib import data

from axs6.golden.formats import FP32, Float
from axs6.hw.core.layouts import float_layout, fp32_layout
from axs6.hw.core.pipeline import Step
from axs6.hw.core.structures import StructLayout
from axs6.hw.core.trees import leading_zeros


def widened(m: Module, dtype: Float, value: Value) -> Value:
    """The FP32 pattern of a value of a format all of whose values FP32 has."""
    below = Const(0, FP32.fraction_bits - dtype.fraction_bits)
    if dtype.exponent_bits == FP32.exponent_bits and dtype.bias == FP32.bias:
        return Cat(below, value)
    x = data.View(float_layout(dtype), value)
    normal, full = x.exponent.any(), x.exponent.all()
    zeros = Signal((dtype.fraction_bits).bit_length(), name="zeros")
    some = x.fraction.any()
    fraction = Signal(dtype.fraction_bits, name="widened_fraction")
    field = Signal(FP32.exponent_bits, name="widened_field")
    more = FP32.bias - dtype.bias
    m.d.comb += zeros.eq(leading_zeros(m, x.fraction))
    with m.If(full):
        m.d.comb += [fraction.eq(x.fraction), field.eq(FP32.exponent_special)]
    with m.Elif(normal):
        m.d.comb += [fraction.eq(x.fraction), field.eq(x.exponent + more)]
    with m.Elif(some):
        m.d.comb += [fraction.eq(x.fraction << (zeros + 1)), field.eq(more - zeros)]
    return Cat(below, fraction, field, x.sign)


class Widen(Step):
    """The FP32 pattern of a total."""

    def __init__(self, dtype: Float) -> None:
        self._dtype = dtype
        super().__init__(StructLayout({"value": dtype.width}), fp32_layout, levels=8)

    def elaborate(self, platform: Any) -> Module:
        """Build the conversion."""
        m = Module()
        m.d.comb += self.o.value.eq(widened(m, self._dtype, self.i.value))
        return m


class NanPattern(Step):
    """A result whose NaN has a pattern of its own."""

    def __init__(self, nan: int) -> None:
        self._nan = nan
        super().__init__(fp32_layout, fp32_layout, levels=7)

    def elaborate(self, platform: Any) -> Module:
        """Build the choice."""
        m = Module()
        x = data.View(float_layout(FP32), self.i.value)
        is_nan = x.exponent.all() & x.fraction.any()
        m.d.comb += self.o.value.eq(Mux(is_nan, self._nan, self.i.value))
        return m
