"""Quotients of two positive numbers, digit by digit: exact, with remainders.

With significands a and b of n and d bits, the highest one set in both, a/b = q / 2^(digits - 1)
times a power of two, with q from 2^(digits - 2) to 2^digits. The remainder starts with the d - 1
highest bits of a, which are less than b; each digit doubles it, takes the next bit of a in, and
subtracts b where it can.
"""

from dataclasses import dataclass
from fractions import Fraction
from typing import Any

from amaranth.hdl import Cat, Const, Module, Mux, Signal, Value
from amaranth.lib import data

from axs6.golden.formats import FP32
from axs6.hw.core.layouts import fp32_layout
from axs6.hw.core.pipeline import Step
from axs6.hw.core.structures import StructLayout
from axs6.hw.fp32.common import SIGNIFICAND, pass_on
from axs6.hw.fp32.convert import rounding_steps
from axs6.hw.fp32.number import Number

FP32_DIGITS = SIGNIFICAND + 2
"""Digits from which FP32 can be rounded, with the remainder: the highest of them may be 0."""

DIGITS_A_STEP = 2


@dataclass(frozen=True)
class Normal:
    """Representation of positive numbers: significand / 2^(bits - 1) * 2^(place - bias), or 0.

    The highest bit of the significand is set, or all are 0.

    Args:
        bits: of the significand.
        place_bits: of the place.
        bias: of the place.
    """

    bits: int
    place_bits: int
    bias: int

    @property
    def layout(self) -> data.StructLayout:
        """Significand and place."""
        return StructLayout({"significand": self.bits, "place": self.place_bits})


ONE = Normal(1, 1, 0)
"""The number 1, as a significand of 1 at the place 0."""

FP32_NORMAL = Normal(SIGNIFICAND, FP32.exponent_bits + 1, FP32.bias + (1 << FP32.exponent_bits))
"""FP32 numbers, also subnormal ones; see `axs6.hw.fp32.normal`."""


def odd_of(x: Fraction) -> int:
    """An integer over a power of two without all its powers of two."""
    return x.numerator // (x.numerator & -x.numerator)


@dataclass(frozen=True)
class Quotient:
    """The numbers of a division.

    Args:
        dividend: its numbers; it may be 0.
        divisor: those of the divisor, or the one divisor: an integer over a power of two.
        digits: of the quotient.
    """

    dividend: Normal
    divisor: Normal | Fraction
    digits: int = FP32_DIGITS

    @property
    def odd(self) -> int:
        """The only divisor without its power of two; 0 where there are many."""
        if isinstance(self.divisor, Normal):
            return 0
        return odd_of(self.divisor)

    @property
    def divisor_bits(self) -> int:
        """Bits of the divisor's significand."""
        return self.divisor.bits if isinstance(self.divisor, Normal) else self.odd.bit_length()

    @property
    def low(self) -> int:
        """Bits of the dividend's significand that the remainder does not start with."""
        return max(0, self.dividend.bits - (self.divisor_bits - 1))

    @property
    def farthest(self) -> int:
        """The largest place of a divisor, from which exponents count; 0 where there is one."""
        return (1 << self.divisor.place_bits) - 1 if isinstance(self.divisor, Normal) else 0

    @property
    def exponent_bits(self) -> int:
        """Bits of an exponent."""
        return ((1 << self.dividend.place_bits) - 1 + self.farthest).bit_length()

    @property
    def base(self) -> int:
        """Constant to add to an exponent for the exponent of the quotient's highest digit."""
        if isinstance(self.divisor, Normal):
            bias = self.divisor.bias
        else:
            twos = self.divisor / self.odd
            exponent = twos.numerator.bit_length() - twos.denominator.bit_length()
            bias = 1 - self.odd.bit_length() - exponent
        return bias - self.dividend.bias - self.farthest

    @property
    def operands(self) -> data.StructLayout:
        """The operands."""
        divisor = {"divisor": self.divisor.layout} if isinstance(self.divisor, Normal) else {}
        return StructLayout({"dividend": self.dividend.layout, **divisor})

    def state(self, digits: int) -> data.StructLayout:
        """A division of which some digits are known."""
        fields: dict[str, Any] = {"rest": self.divisor_bits, "exponent": self.exponent_bits}
        if digits:
            fields["quotient"] = digits
        if self.low > digits:
            fields["low"] = self.low - digits
        if not self.odd:
            fields["divisor"] = self.divisor_bits
        return StructLayout(fields)

    @property
    def number(self) -> Number:
        """The quotient, its remainder in the lowest bit: 1 where there is one."""
        offset = self.base - self.digits
        return Number(self.digits + 1, self.exponent_bits, offset, special=False, most_zeros=1)


class Prepare(Step):
    """The first remainder, and the exponent."""

    def __init__(self, quotient: Quotient) -> None:
        self._quotient = quotient
        super().__init__(quotient.operands, quotient.state(0), levels=10)

    def elaborate(self, platform: Any) -> Module:
        """Build the subtraction of the places."""
        m = Module()
        quotient, i, o = self._quotient, self.i, self.o
        significand = i.dividend.significand
        missing = max(0, quotient.divisor_bits - 1 - len(significand))
        m.d.comb += o.rest.eq(Cat(Const(0, missing), significand[quotient.low :]))
        if quotient.low:
            m.d.comb += o.low.eq(significand[: quotient.low])
        place: Value = i.dividend.place
        if not quotient.odd:
            m.d.comb += o.divisor.eq(i.divisor.significand)
            place = place + ~i.divisor.place  # the farthest place less its own
        m.d.comb += o.exponent.eq(place)
        return m


class QuotientDigits(Step):
    """Some more digits."""

    verilog_name = "digits"

    def __init__(self, quotient: Quotient, known: int, more: int) -> None:
        self._quotient = quotient
        self._more = more
        bits = quotient.divisor_bits
        levels = more * (4 + 2 * bits.bit_length())
        super().__init__(quotient.state(known), quotient.state(known + more), levels=levels)

    def elaborate(self, platform: Any) -> Module:
        """Build a subtracter for each digit."""
        m = Module()
        quotient, i, o = self._quotient, self.i, self.o
        divisor: Value = Const(quotient.odd, quotient.divisor_bits)
        if not quotient.odd:
            divisor = i.divisor
            m.d.comb += o.divisor.eq(divisor)
        members = i.shape().members
        low: Value = i.low if "low" in members else Cat()
        found: Value = i.quotient if "quotient" in members else Cat()
        rest: Value = i.rest
        for digit in range(self._more):
            twice = Cat(low[-1] if len(low) else Const(0, 1), rest)
            low = low[:-1]
            less, rest = Signal(len(twice) + 1, name=f"less{digit}"), Signal.like(rest)
            m.d.comb += [less.eq(twice - divisor), rest.eq(Mux(less[-1], twice, less))]
            found = Cat(~less[-1], found)
        m.d.comb += [o.rest.eq(rest), o.quotient.eq(found)]
        if len(low):
            m.d.comb += o.low.eq(low)
        pass_on(m, self, "exponent")
        return m


class Collect(Step):
    """The quotient as a number that is to be rounded."""

    def __init__(self, quotient: Quotient) -> None:
        i, o = quotient.state(quotient.digits), quotient.number.given
        super().__init__(i, o, levels=5, held=o.size - 1)

    def elaborate(self, platform: Any) -> Module:
        """Build the test of the remainder."""
        m = Module()
        m.d.comb += self.o.magnitude.eq(Cat(self.i.rest.any(), self.i.quotient))
        pass_on(m, self, "exponent")
        return m


def digit_steps(quotient: Quotient) -> list[Step]:
    """The steps from `Quotient.operands` to the state with all digits."""
    digits = quotient.digits
    starts = range(0, digits, DIGITS_A_STEP)
    each = [QuotientDigits(quotient, start, min(DIGITS_A_STEP, digits - start)) for start in starts]
    return [Prepare(quotient), *each]


def quotient_steps(quotient: Quotient) -> list[Step]:
    """The steps from `Quotient.operands` to `fp32_layout`: the quotient, rounded to nearest even.

    One that is too large is infinite, 0 stays 0.
    """
    steps = [*digit_steps(quotient), Collect(quotient), *rounding_steps(quotient.number)]
    assert steps[-1].o.shape() == fp32_layout
    return steps
