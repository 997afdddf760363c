"""The final division of an accumulator by 961/1024, correctly rounded."""

from itertools import pairwise
from typing import Any

from amaranth.hdl import Module, Mux, Signal
from amaranth.lib import data

from axs6.golden.spec import FP32
from axs6.hw.fp32 import FIELD, SIGNIFICAND, layout, rounded_pattern, significand_of, special_or
from axs6.hw.layouts import fp32_layout
from axs6.hw.pipeline import Step

FRACTION = 11
"""Bits kept below the units."""

BALANCE = 1
"""Added to the fraction at first. It balances the truncations that follow: with it, and not
without, every quotient rounds as the exact one does, as enumeration of all significands shows."""

_NOTES = {"base": FIELD, "sign": 1, "infinite": 1, "nan": 1}
"""The exponent field less one, and what makes the result special."""

unpacked_layout = data.StructLayout({"significand": SIGNIFICAND, **_NOTES})


def quotient_layout(fraction: int) -> data.StructLayout:
    """A quotient with so many bits below its units."""
    return data.StructLayout({"quotient": SIGNIFICAND + 1 + fraction, **_NOTES})


class Unpack(Step):
    """Fields of an accumulator."""

    def __init__(self) -> None:
        super().__init__(fp32_layout, unpacked_layout, levels=8)

    def elaborate(self, platform: Any) -> Module:
        """Split the fields."""
        m = Module()
        x = data.View(layout, self.i.value)
        special = x.exponent == FP32.exponent_special
        m.d.comb += [
            self.o.significand.eq(significand_of(x)),
            self.o.base.eq(x.exponent - x.exponent.any()),
            self.o.sign.eq(x.sign),
            self.o.infinite.eq(special & ~x.fraction.any()),
            self.o.nan.eq(special & x.fraction.any()),
        ]
        return m


class Multiply(Step):
    """Multiplies by 1 plus some powers of two, each product truncated.

    Args:
        shifts: the powers of two, as distances to the right.
        i, o: layouts before and after.
    """

    def __init__(self, shifts: tuple[int, ...], i: data.StructLayout, o: data.StructLayout) -> None:
        self._shifts = shifts
        super().__init__(i, o, levels=33)

    def elaborate(self, platform: Any) -> Module:
        """Build the adders; a significand first gets its fraction and the constant in it."""
        m = Module()
        if self.i.shape() == unpacked_layout:
            value = self.i.significand << FRACTION | BALANCE
        else:
            value = self.i.quotient
        total = value
        for shift in self._shifts:
            total = total + (value >> shift)
        m.d.comb += self.o.quotient.eq(total[: SIGNIFICAND + 1 + FRACTION][-len(self.o.quotient) :])
        m.d.comb += [getattr(self.o, name).eq(getattr(self.i, name)) for name in _NOTES]
        return m


class RoundQuotient(Step):
    """The quotient as FP32. A tie cannot occur, so the bit below the last decides alone."""

    def __init__(self) -> None:
        super().__init__(quotient_layout(1), fp32_layout, levels=27)

    def elaborate(self, platform: Any) -> Module:
        """Build the one-bit normalisation, the increment and the special values."""
        m = Module()
        i = self.i
        carry = i.quotient[-1]
        units = i.quotient[1:]
        kept = Mux(carry, units[1:], units[:-1])
        round_up = Mux(carry, units[0], i.quotient[0])
        base = Signal(FIELD)
        m.d.comb += base.eq(i.base + carry)
        pattern = rounded_pattern(m, base, kept, round_up)
        m.d.comb += self.o.value.eq(special_or(i.nan, i.infinite, i.sign, pattern))
        return m


FACTORS = ((4, 10), (9, 20), (19,))
"""1024/961 is the square of 32/31, the product of all 1 + 2^-(5 * 2^k); their squares are the
factors 1 + 2^-4 + 2^-10, 1 + 2^-9 + 2^-20 and 1 + 2^-19 + 2^-40, the last term left out."""


def division_steps() -> list[Step]:
    """The steps from `fp32_layout` to `fp32_layout`."""
    whole = quotient_layout(FRACTION)
    borders = pairwise([unpacked_layout, *[whole] * (len(FACTORS) - 1), quotient_layout(1)])
    multiply = [Multiply(shifts, i, o) for shifts, (i, o) in zip(FACTORS, borders, strict=True)]
    return [Unpack(), *multiply, RoundQuotient()]
