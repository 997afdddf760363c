"""An element times the factor of its scales, over its denominator 2^n - 1."""

from typing import Any

from amaranth.hdl import Cat, Const, Module, Mux, Signal
from amaranth.lib import data, wiring
from amaranth.lib.wiring import In, Out

from axs6.hw.core.structures import StructLayout
from axs6.hw.decoder.plan import DecoderPlan


def product_layout(plan: DecoderPlan, lane: data.StructLayout) -> data.StructLayout:
    """Fields of an element times its factor, the leading one on top if it is not 0."""
    x = (plan.x + plan.products).shape
    return StructLayout({**lane.members, "significand": plan.product, "x": x})


class TimesFactorLane(wiring.Component):
    """An element's significand times the factor of its group, the leading one on top."""

    verilog_name = "product_lane"

    def __init__(self, plan: DecoderPlan, i: data.StructLayout) -> None:
        self._plan = plan
        ports = {"group": In(plan.group.layout), "i": In(i), "o": Out(product_layout(plan, i))}
        super().__init__(ports)

    def elaborate(self, platform: Any) -> Module:
        """Build the product and its shift, by as many places at most as there are factors."""
        m = Module()
        plan, o = self._plan, self.o
        product, x = Signal(plan.product), self.i.x
        m.d.comb += product.eq(self.i.significand * self.group.factor)
        for _ in plan.factors:
            product, x = Mux(product[-1], product, product << 1)[: plan.product], x - ~product[-1]
        m.d.comb += [o[name].eq(self.i[name]) for name in o.shape().members]
        m.d.comb += [o.significand.eq(product), o.x.eq(x)]
        return m


def divided_layout(plan: DecoderPlan, lane: data.StructLayout) -> data.StructLayout:
    """Fields of a product over 2^n - 1, the leading one on top if it is not 0."""
    x = (plan.x + plan.products).shape
    return StructLayout({**lane.members, "significand": plan.word, "x": x})


def doublings(bits: int, n: int) -> int:
    """T, the factors that `DivideLane` needs for numbers of so many bits: the fewest that fit."""
    return next(t for t in range(1, bits) if n << t > bits + t.bit_length())


class DivideLane(wiring.Component):
    """A significand times 2^n / (2^n - 1), the leading one on top; the lowest bit is the or of all
    that follow.

    The highest bits X of the significand are enough, L = precision + 1 + n of them: 1 / (2^n - 1)
    is 0.(0...01) with its n bits for ever, so the quotient has a bit to round at, and the remainder
    and the bits below X say whether more follows.

    (X + 1) * 2^n / (2^n - 1) is the product of X + 1 and all 1 + 2^-s, s = n, 2n, 4n and so on. The
    quotient q and remainder r of X give 2^n * q + 2^n * (r + 1) / (2^n - 1), where r + 1 is between
    1 and 2^n - 1. So q is right where the factors lose something, and 1 at most. T of them with F
    bits of fraction, T < 2^F, lose less than T * 2^-F by truncation, and less than 2^-F by the
    factors left out if n * 2^T > L + F.

    X is 2^n * q - q + r, so r is X + q modulo 2^n.
    """

    def __init__(self, plan: DecoderPlan, i: data.StructLayout) -> None:
        self._plan = plan
        super().__init__({"i": In(i), "o": Out(divided_layout(plan, i))})

    def elaborate(self, platform: Any) -> Module:
        """Build the chain of sums, the remainder and the choice of the top."""
        m = Module()
        n, i, o = self._plan.divisor_bits, self.i, self.o
        bits = self._plan.precision + 1 + n
        given = Cat(Const(0, max(0, bits - len(i.significand))), i.significand)
        dividend, below = given[len(given) - bits :], given[: len(given) - bits]
        count = doublings(bits, n)
        fraction = count.bit_length()
        total = Cat(Const(0, fraction), dividend + 1)
        for number in range(count):
            following = Signal(bits + 1 + fraction, name=f"total{number}")
            m.d.comb += following.eq(total + (total >> (n << number)))
            total = following
        quotient = total[fraction + n :]
        rest = Signal(n)
        # truncates: less 2^n times the quotient it is a remainder below 2^n
        m.d.comb += rest.eq(dividend + quotient)
        more, high = rest.any() | below.any(), quotient[-1]
        m.d.comb += [o[name].eq(i[name]) for name in o.shape().members]
        m.d.comb += [
            o.significand.eq(
                Mux(high, Cat(more | quotient[0], quotient[1:]), Cat(more, quotient[:-1]))
            ),
            o.x.eq(i.x + high),
        ]
        return m
