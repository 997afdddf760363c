"""The final division of an accumulator by the denominator of its elements, correctly rounded."""

from dataclasses import dataclass
from itertools import product
from typing import Any

from amaranth.hdl import Cat, Const, Module, Mux
from amaranth.lib import data

from axs6.hw.core.layouts import fp32_layout
from axs6.hw.core.pipeline import Step
from axs6.hw.core.structures import StructLayout
from axs6.hw.fp32.common import (
    FIELD,
    SIGNIFICAND,
    AddRounding,
    PackFp32,
    layout,
    pass_on,
    rounding_layout,
    significand_of,
)

_DENOMINATOR_BITS = range(2, 9)
"""n of the denominators 2^n - 1 that there are dividers for."""


@dataclass(frozen=True)
class Reciprocal:
    """1 over a divisor D as a chain of shifts and additions, whose results round as the quotients.

    With d = 2^n - 1, D is d or d^2, and numbers are divided by D / 2^b, where b are the bits of D.
    2^n / d is the product of 1 + 2^-s for s = n, 2n, 4n and so on. The factors of its square are
    1 + 2^-(s - 1) + 2^-2s.

    The quotient of a significand M is M * 2^b / D. Results round to halves of a unit at the finest,
    and the quotient is at least 1 / 2D from every odd multiple of 1/2, where rounding changes:
    it is such a multiple nowhere, as D is odd, so that a quotient without remainder is a multiple
    of 2^b. Above 2^24 rounding changes at odd units, which are as far. So a chain is right whose
    errors are less than 1 / 2D either way.

    With F bits of fraction, each of T truncations takes less than 2^-F off. A balance of half as
    much, added at first, leaves errors of about T/2 * 2^-F at most. For those to be less than
    1 / 2D, F has to be the bits of D and log2 T more. They do not all occur at once: log2 T rounded
    down is enough, as enumeration of all significands shows (`tests/hw/fp32/test_divide.py`).

    Args:
        bits: n.
        power: 1 or 2, of d.
    """

    bits: int
    power: int

    @property
    def divisor(self) -> int:
        """D."""
        return int((1 << self.bits) - 1) ** self.power

    @property
    def factors(self) -> tuple[tuple[int, ...], ...]:
        """The terms of each factor beside 1: powers of two, as right shifts.

        Those that add less than 1 / 2^b to every number are left out.
        """
        least = SIGNIFICAND + 1 + self.bits * self.power
        starts = (self.bits << k for k in range(least.bit_length()))
        whole = ((s,) if self.power == 1 else (s - 1, 2 * s) for s in starts)
        kept = (tuple(shift for shift in shifts if shift < least) for shifts in whole)
        return tuple(shifts for shifts in kept if shifts)

    @property
    def truncations(self) -> int:
        """T. The first factor's products are exact."""
        return sum(map(len, self.factors[1:]))

    @property
    def balance(self) -> int:
        """Number added to the fraction at the start."""
        return self.truncations // 2

    @property
    def known(self) -> int:
        """Bits of the first factor's result that do not depend on the number: log2 T of d^2."""
        return Reciprocal(self.bits, 2).truncations.bit_length() - 1

    @property
    def fraction(self) -> int:
        """F: enough for d^2, and more than enough for d."""
        return 2 * self.bits + self.known

    @property
    def width(self) -> int:
        """Bits of a number with its fraction."""
        return SIGNIFICAND + 1 + self.fraction


RECIPROCALS = {
    each.divisor: each for each in (Reciprocal(*x) for x in product(_DENOMINATOR_BITS, (1, 2)))
}
"""By divisor."""

_NOTES = {"field": FIELD, "sign": 1, "infinite": 1, "nan": 1}
"""The exponent field, and what makes the result special."""


def quotient_layout(bits: int) -> data.StructLayout:
    """The bits of a quotient that are not known beforehand, and what else its result needs."""
    return StructLayout({"quotient": bits, **_NOTES})


class UnpackDividend(Step):
    """Fields of an accumulator."""

    verilog_name = "unpack"

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


class MultiplyFactors(Step):
    """Multiplies by 1 plus some powers of two, each product truncated.

    Args:
        shifts: the powers of two, as distances to the right.
        below: the lowest bits of the number, which do not come in.
        bits: of the number, those included.
        kept: bits of the product that are kept.
    """

    verilog_name = "multiply"

    def __init__(self, shifts: tuple[int, ...], below: Const, bits: int, kept: slice) -> None:
        self._shifts, self._below, self._kept = shifts, below, kept
        levels = 11 + 11 * len(shifts)
        o = len(range(kept.stop)[kept])
        super().__init__(quotient_layout(bits - len(below)), quotient_layout(o), levels=levels)

    def elaborate(self, platform: Any) -> Module:
        """Build the adders."""
        m = Module()
        value = Cat(self._below, self.i.quotient)
        total = value
        for shift in self._shifts:
            total = total + (value >> shift)
        m.d.comb += self.o.quotient.eq(total[self._kept])
        pass_on(m, self, *_NOTES)
        return m


def chain(reciprocal: Reciprocal) -> list[Step]:
    """The multiplications of a significand, from an integer to one bit of fraction."""
    first, *middle, last = reciprocal.factors
    fraction, width, known = reciprocal.fraction, reciprocal.width, reciprocal.known
    low = reciprocal.balance + sum(reciprocal.balance >> shift for shift in first)
    below = Const(reciprocal.balance, fraction)
    steps = [MultiplyFactors(first, below, width - 1, slice(known, width))]
    below = Const(low % (1 << known), known)
    for shifts in middle:
        steps.append(MultiplyFactors(shifts, below, width, slice(0, width)))
        below = Const(0, 0)
    return [*steps, MultiplyFactors(last, below, width, slice(fraction - 1, width))]


class NormaliseQuotient(Step):
    """The quotient as exponent field and fraction, and whether to round up.

    A tie cannot occur, so the bit below the last decides alone.
    """

    verilog_name = "normalise"

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


def division_steps(divisor: int = 961) -> list[Step]:
    """The steps from `fp32_layout` to `fp32_layout`: divided by divisor / 2^b, from 1/2 to 1.

    Raises:
        ValueError: there is no hardware for the divisor.
    """
    if divisor == 1:
        return []
    if divisor not in RECIPROCALS:
        known = ", ".join(map(str, sorted(RECIPROCALS)))
        raise ValueError(f"there is hardware for divisions by {known}, not by {divisor}")
    return [
        UnpackDividend(),
        *chain(RECIPROCALS[divisor]),
        NormaliseQuotient(),
        AddRounding(),
        PackFp32(),
    ]
