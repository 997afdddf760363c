"""The final division of an accumulator by 961/1024 or 31/32, correctly rounded."""

from typing import Any

from amaranth.hdl import Cat, Const, Module, Mux
from amaranth.lib import data

from axs6.hw.core.layouts import fp32_layout
from axs6.hw.core.pipeline import Step
from axs6.hw.core.structures import StructLayout
from axs6.hw.fp32.common import (
    FIELD,
    SIGNIFICAND,
    Pack,
    Round,
    layout,
    pass_on,
    rounding_layout,
    significand_of,
)

FRACTION = 11
"""Bits kept below the units."""

BALANCE = 1
"""Added to the fraction at first. It balances the truncations that follow: with it, and not
without, every quotient rounds as the exact one does, as enumeration of all significands shows."""

WIDTH = SIGNIFICAND + 1 + FRACTION

_NOTES = {"field": FIELD, "sign": 1, "infinite": 1, "nan": 1}
"""The exponent field, and what makes the result special."""


def quotient_layout(bits: int) -> data.StructLayout:
    """The bits of a quotient that are not known beforehand, and what else its result needs."""
    return StructLayout({"quotient": bits, **_NOTES})


class Unpack(Step):
    """Fields of an accumulator."""

    def __init__(self) -> None:
        super().__init__(fp32_layout, quotient_layout(SIGNIFICAND), levels=8)

    def elaborate(self, platform: Any) -> Module:
        """Split the fields."""
        m = Module()
        x = data.View(layout, self.i.value)
        special = x.exponent.all()
        m.d.comb += [
            self.o.quotient.eq(significand_of(x)),
            self.o.field.eq(x.exponent),
            self.o.sign.eq(x.sign),
            self.o.infinite.eq(special & ~x.fraction.any()),
            self.o.nan.eq(special & x.fraction.any()),
        ]
        return m


class Multiply(Step):
    """Multiplies by 1 plus some powers of two, each product truncated.

    Args:
        shifts: the powers of two, as distances to the right.
        fraction: bits below the units that come in; those below them are `BALANCE`.
        to: lowest bit of the result that is kept.
    """

    def __init__(self, shifts: tuple[int, ...], fraction: int, to: int) -> None:
        self._shifts = shifts
        self._known = FRACTION - fraction
        self._to = to
        whole = SIGNIFICAND + (fraction and fraction + 1)
        levels = 11 + 11 * len(shifts)
        super().__init__(quotient_layout(whole), quotient_layout(WIDTH - to), levels=levels)

    def elaborate(self, platform: Any) -> Module:
        """Build the adders."""
        m = Module()
        value = Cat(Const(BALANCE, self._known), self.i.quotient)
        total = value
        for shift in self._shifts:
            total = total + (value >> shift)
        m.d.comb += self.o.quotient.eq(total[self._to : WIDTH])
        pass_on(m, self, *_NOTES)
        return m


class Normalise(Step):
    """The quotient as exponent field and fraction, and whether to round up.

    A tie cannot occur, so the bit below the last decides alone.
    """

    def __init__(self) -> None:
        super().__init__(quotient_layout(SIGNIFICAND + 2), rounding_layout, levels=12)

    def elaborate(self, platform: Any) -> Module:
        """Build the one-bit shift and the increment of the field."""
        m = Module()
        i, o = self.i, self.o
        carry, units = i.quotient[-1], i.quotient[1:-1]
        larger = carry | (units[-1] & ~i.field.any())
        m.d.comb += [
            o.field.eq(i.field + larger),
            o.fraction.eq(Mux(carry, units[1:], units[:-1])),
            o.round_up.eq(Mux(carry, units[0], i.quotient[0])),
        ]
        pass_on(m, self, "sign", "infinite", "nan")
        return m


FACTORS = {961: ((4, 10), (9, 20), (19,)), 31: ((5,), (10,), (20,))}
"""By divisor: 32/31 is the product of all 1 + 2^-(5 * 2^k), and 1024/961 its square, the product of
1 + 2^-4 + 2^-10, 1 + 2^-9 + 2^-20 and 1 + 2^-19 + 2^-40, the last term left out. Enumeration of all
significands shows that every quotient is rounded as the exact one."""


def division_steps(divisor: int = 961) -> list[Step]:
    """The steps from `fp32_layout` to `fp32_layout`: divided by divisor / 2^n, from 1/2 to 1.

    The lowest bit of the first product is always 1, and the last one needs one bit of fraction.

    Raises:
        ValueError: there is no hardware for the divisor.
    """
    if divisor == 1:
        return []
    if divisor not in FACTORS:
        known = ", ".join(map(str, sorted(FACTORS)))
        raise ValueError(f"there is hardware for divisions by {known}, and not by {divisor}")
    first, second, third = FACTORS[divisor]
    return [
        Unpack(),
        Multiply(first, 0, to=1),
        Multiply(second, FRACTION - 1, to=0),
        Multiply(third, FRACTION, to=FRACTION - 1),
        Normalise(),
        Round(),
        Pack(),
    ]
