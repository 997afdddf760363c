"""Lanes of an encoder of any format whose scales are real numbers and integers, in words."""

from amaranth.hdl import Cat, Const, Module, Mux, Signal, Value
from amaranth.lib import data, wiring
from amaranth.lib.wiring import In, Out

from axs6.hw.core.layouts import float_layout
from axs6.hw.core.structures import StructLayout
from axs6.hw.encoder.format_lanes import (
    align,
    aligned_lane,
    keep,
    passing_lane,
    sides,
    special_names,
)
from axs6.hw.encoder.scaled import Scaled
from axs6.hw.fp32.common import SIGNIFICAND
from axs6.hw.fp32.normal import normalised


def value_lane(scheme: Scaled) -> StructLayout:
    """A value before it is scaled; one that is no number is 0."""
    return StructLayout({**scheme.value.layout.members, **sides(scheme)})


def product_lane(scheme: Scaled) -> StructLayout:
    """A scaled value; `some` says that it is not 0, `up` that its significand is rounded up."""
    product = {"significand": SIGNIFICAND, "up": 1, "place": scheme.place_bits, "some": 1}
    return StructLayout({**product, **sides(scheme)})


class UnpackNumberLane(wiring.Component):
    """Significand and place of one value, and what it is if it is no number.

    `lost` says that it has no code: neither in the element, nor as a number.
    """

    verilog_name = "unpack_lane"

    def __init__(self, scheme: Scaled) -> None:
        self._scheme = scheme
        super().__init__(
            {
                "bits": In(scheme.dtype.width),
                "value": Out(value_lane(scheme)),
                "special": Out(1),
                "lost": Out(1),
            }
        )

    def elaborate(self, platform: object) -> Module:
        """Build the normaliser and the tests."""
        m = Module()
        scheme, o = self._scheme, self.value
        x = data.View(float_layout(scheme.dtype), self.bits)
        special, fraction = x.exponent.all(), x.fraction.any()
        specials = {"nan": special & fraction, "infinite": special & ~fraction}
        kept = special_names(scheme)
        lost = [each for name, each in specials.items() if name not in kept]
        significand, place = normalised(m, x, scheme.depth)
        m.d.comb += [
            o.significand.eq(Mux(special, 0, significand)),
            o.place.eq(Mux(special, 0, place)),
            o.sign.eq(x.sign & ~specials["nan"]),
            *(o[name].eq(specials[name]) for name in kept),
            self.special.eq(special),
            self.lost.eq(Cat(lost).any()),
        ]
        return m


class TimesReciprocalLane(wiring.Component):
    """A value times the reciprocal of its scales; it is 0 where `lost` is set."""

    verilog_name = "multiply_lane"

    def __init__(self, scheme: Scaled) -> None:
        self._scheme = scheme
        super().__init__(
            {
                "value": In(value_lane(scheme)),
                "reciprocal": In(scheme.reciprocal.layout),
                "lost": In(1),
                "product": Out(product_lane(scheme)),
            }
        )

    def elaborate(self, platform: object) -> Module:
        """Build the multiplier, and the decision to nearest even."""
        m = Module()
        scheme, x, r, o = self._scheme, self.value, self.reciprocal, self.product
        product = Signal(scheme.value.bits + SIGNIFICAND)
        wide = Signal.like(product)
        rest = len(wide) - SIGNIFICAND
        m.d.comb += [
            product.eq(x.significand * r.significand),
            wide.eq(Mux(product[-1], product, product << 1)),
            o.significand.eq(wide[rest:]),
            o.up.eq(wide[rest - 1] & (wide[: rest - 1].any() | wide[rest])),
            o.place.eq(x.place + r.place + product[-1]),
            o.some.eq(product[-2:].any() & ~self.lost),
            *(o[name].eq(x[name] & ~self.lost) for name in sides(scheme)),
        ]
        return m


def round_product(m: Module, scheme: Scaled, x: data.View) -> tuple[data.View, Value]:
    """A product rounded to nearest even as in FP32: the fields of `passing_lane`, and its distance
    from the place of the largest element's exponent."""
    rounded = Signal(SIGNIFICAND + 1)
    passed = Signal(StructLayout(passing_lane(scheme)))
    m.d.comb += rounded.eq(x.significand + x.up)
    carry = rounded[-1]
    keep(m, scheme, Cat(rounded[: SIGNIFICAND - 1], rounded[-2] | carry), passed)
    m.d.comb += [passed[name].eq(x[name]) for name in sides(scheme)]
    return passed, Const(scheme.top_place) - (x.place + carry)


class PlaceProductLane(wiring.Component):
    """A product rounded to nearest even as in FP32, and where its significand goes.

    Where FP32 would be subnormal nothing is left of it in a code, and where it would overflow the
    code is the largest, so the exponent is not held to FP32's.
    """

    verilog_name = "place_lane"

    def __init__(self, scheme: Scaled) -> None:
        self._scheme = scheme
        super().__init__(
            {"product": In(product_lane(scheme)), "aligned": Out(aligned_lane(scheme))}
        )

    def elaborate(self, platform: object) -> Module:
        """Build the rounding, the subtraction and the comparisons."""
        m = Module()
        scheme, x = self._scheme, self.product
        passed, total = round_product(m, scheme, x)
        align(m, scheme, total, x.some, passed, self.aligned)
        return m
