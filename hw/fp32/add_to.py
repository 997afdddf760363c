"""FP32 addition whose sum is rounded to fewer bits, or toward zero."""

from typing import Any

from amaranth.hdl import Cat, Const, Module, Mux, Signal

from axs6.golden.formats import FP32, Float
from axs6.hw.core.pipeline import Step
from axs6.hw.fp32.add import WIDE, addition_steps, normal_layout
from axs6.hw.fp32.common import PackFp32, packing_layout, pass_on


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
