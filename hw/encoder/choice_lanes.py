"""Lanes of encoders that choose the scale of a block: values in fixed point, codes and merits.

A value over a candidate's scale is a fixed-point number in units of the element, with
`MERIT_FRACTION` bits after the point, as `axs6.golden.choice` has it.
"""

from typing import Any

from amaranth.hdl import Cat, Const, Module, Mux, Signal, Value
from amaranth.lib import data, wiring
from amaranth.lib.wiring import In, Out

from axs6.golden.formats import Element
from axs6.golden.formats.block_format import MERIT_FRACTION
from axs6.hw.core.structures import StructLayout
from axs6.hw.encoder.lane_numbers import floor_log2


def fixed_bits(element: Element) -> int:
    """Bits of a value over its scale: up to twice the power of two above the largest element."""
    return element.integer_bits + 1 + MERIT_FRACTION


def fixed_layout(bits: int) -> data.StructLayout:
    """A magnitude; `sticky` says that bits below it are dropped, `over` that it is larger."""
    return StructLayout({"fixed": bits, "sticky": 1, "over": 1})


def term_bits(element: Element) -> int:
    """Bits of a lane's part of a merit."""
    return 2 * element.integer_bits + 2 + MERIT_FRACTION


def moved(m: Module, kept: Value, sticky: Value, right: Value, close: Value, o: Any) -> None:
    """Drive a fixed-point number from a significand.

    Args:
        m: the module.
        kept: the highest bits of the significand, as many as the number has.
        sticky: whether there are more.
        right: places by which it goes to the right, signed; `over` where that is below 0.
        close: whether the value counts; it is 0 otherwise.
        o: the fields of `fixed_layout`.
    """
    bits = len(kept)
    drop = Signal(range(bits + 1), name="drop")
    m.d.comb += drop.eq(Mux(right < 0, 0, Mux(right > bits, bits, right)))
    word, lost = kept, [sticky]
    for k in reversed(range(len(drop))):
        lost.append(word[: 1 << k].any() & drop[k])
        shifted = Signal(bits, name=f"shifted{k}")
        m.d.comb += shifted.eq(Mux(drop[k], word >> (1 << k), word))
        word = shifted
    m.d.comb += [
        o.fixed.eq(Mux(close, word, 0)),
        o.sticky.eq(close & Cat(lost).any()),
        o.over.eq(close & (right < 0)),
    ]


class RateLane(wiring.Component):
    """The magnitude of the nearest code, ties as the element has them, and its part of the merit.

    Args:
        element: the element, without NaN and with a power of two as its unit.
    """

    def __init__(self, element: Element) -> None:
        self._element = element
        super().__init__(
            {
                "value": In(fixed_layout(fixed_bits(element))),
                "magnitude": Out(element.width - 1),
                "term": Out(term_bits(element)),
            }
        )

    def elaborate(self, platform: Any) -> Module:
        """Build the rounding of each binade, the selection, and the product."""
        m = Module()
        element, x = self._element, self.value
        kept, binades = element.fraction_bits + 1, 1
        if element.fixed:
            kept = element.integer_bits
        else:
            binades += floor_log2(element.largest) - element.emin
        whole = x.fixed[MERIT_FRACTION:]
        beyond = x.over | whole[kept + binades - 1 :].any()
        code = Signal(element.width + 1)
        for binade in range(binades):
            last = MERIT_FRACTION + binade
            base, half = x.fixed[last : last + kept], x.fixed[last - 1]
            rounded = Signal(kept + 1, name=f"rounded{binade}")
            rest = x.fixed[: last - 1].any() | x.sticky
            up = half if element.ties_away else half & (rest | base[0])
            m.d.comb += rounded.eq(base + up)
            with m.If(whole[kept + binade - 1 :].any() if binade else Const(1, 1)):
                m.d.comb += code.eq(rounded + (binade << element.fraction_bits))
        most = beyond | (code > element.largest_code)
        m.d.comb += self.magnitude.eq(Mux(most, element.largest_code, code))
        significand, places = self._integer(binades)
        integer = Signal(element.integer_bits)
        fixed = Signal(len(x.fixed))
        double = Signal(len(fixed) + 1)
        product = Signal(len(significand) + len(double))
        m.d.comb += [
            integer.eq(significand << places),
            fixed.eq(x.fixed | x.over.replicate(len(fixed))),
            double.eq((fixed << 1) - (integer << MERIT_FRACTION)),
            product.eq(significand * double),
            self.term.eq(product << places),
        ]
        return m

    def _integer(self, binades: int) -> tuple[Value, Value]:
        """The magnitude in units of the element: a significand, and places to the left."""
        bits = self._element.fraction_bits
        if binades == 1:
            return self.magnitude, Const(0, 1)
        field = self.magnitude[bits:]
        normal = field.any()
        return Cat(self.magnitude[:bits], normal), (field - normal)[: (binades - 1).bit_length()]
