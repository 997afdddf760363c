"""The decoder in words: the repeated magnitude by `*`, places by `<<`, rounding by `+`.

A magnitude m of n bits over the scale is m / (2^n - 1), 0.mmm... with the n bits of m for ever. In
a word of these places with a zero in front, the fraction of a value with z leading zeros starts
z + 2 bits from the top where it is normal, and as many as the exponent E where that is less.
"""

from collections.abc import Sequence
from functools import partial
from typing import Any

from amaranth.hdl import Cat, Module, Mux, Signal, Value
from amaranth.lib import data, wiring
from amaranth.lib.wiring import In, Out

from axs6.golden.formats import Float
from axs6.golden.formats.catalog import AXS6_SCALE
from axs6.hw.core.layouts import lanes_layout, lanes_of, values_layout
from axs6.hw.core.pipeline import Step
from axs6.hw.core.rtlil import add_lanes
from axs6.hw.core.structures import StructLayout
from axs6.hw.decoder.lane import LaneKind, aligned, with_narrow

START_BITS = 4
"""Bits of a place at which a fraction may start."""


def located_layout(kind: LaneKind) -> data.StructLayout:
    """A code, where its fraction starts, its exponent field, and whether it is narrow."""
    narrow = {"narrow": 1} if kind.narrow else {}
    return StructLayout(
        {**kind.layout.members, "start": START_BITS, "field": AXS6_SCALE.bits, **narrow}
    )


class LocateLane(wiring.Component):
    """The start of a fraction, and the exponent field before rounding.

    Args:
        kind: codes that the lane takes.
    """

    def __init__(self, kind: LaneKind) -> None:
        self._kind = kind
        ports = {"exponent": In(AXS6_SCALE.bits), "code": In(kind.layout)}
        narrow = {"narrow": In(1)} if kind.narrow else {}
        super().__init__({**ports, **narrow, "located": Out(located_layout(kind))})

    def elaborate(self, platform: Any) -> Module:
        """Build the search for the first one, and the comparison with the exponent."""
        m = Module()
        magnitude, located = self.code.magnitude, self.located
        first, normal = Signal(START_BITS), Signal()
        for zeros in range(self._kind.width):
            highest = magnitude[-1 - zeros]
            with m.If(highest) if zeros == 0 else m.Elif(highest):
                m.d.comb += first.eq(zeros + 2)
        m.d.comb += [
            normal.eq((self.exponent >= first) & magnitude.any()),
            located.start.eq(Mux(self.exponent >= first, first, self.exponent)),
            located.field.eq(Mux(normal, self.exponent + 1 - first, 0)),
            located.magnitude.eq(magnitude),
            located.sign.eq(self.code.sign),
        ]
        if self._kind.narrow:
            m.d.comb += located.narrow.eq(self.narrow)
        return m


class RoundFractionLane(wiring.Component):
    """The value, rounded to nearest even.

    The places go on for ever, so the next one decides, and there is no tie. The largest magnitude
    is all ones and rounds up to a power of two.

    Args:
        dtype: format of the value.
        kind: codes that the lane takes.
    """

    verilog_name = "round_lane"

    def __init__(self, dtype: Float, kind: LaneKind) -> None:
        self._dtype = dtype
        self._kind = kind
        super().__init__({"located": In(located_layout(kind)), "value": Out(dtype.width)})

    def elaborate(self, platform: Any) -> Module:
        """Build the product, the shifter and the adder."""
        m = Module()
        dtype, width, located = self._dtype, self._kind.width, self.located
        count = width + dtype.fraction_bits + 1
        repeated = _repeated(located.magnitude, count)
        if self._kind.narrow:
            narrow = _repeated(located.magnitude[1:], count)
            repeated = Mux(located.narrow, narrow, repeated)
        places, shifted = Signal(count), Signal(count + 1)
        pattern = Signal(dtype.width - 1)
        top = shifted[-dtype.fraction_bits - 1 :]
        m.d.comb += [
            places.eq(repeated),
            # truncates: copies above the first one of the number go out
            shifted.eq(places << located.start),
            pattern.eq(Cat(top[1:], located.field) + top[0]),
            self.value.eq(
                Cat(Mux(pattern == dtype.infinity, dtype.max_finite, pattern), located.sign)
            ),
        ]
        return m


def _repeated(magnitude: Value, count: int) -> Value:
    """The first places of a magnitude that is repeated for ever."""
    width = len(magnitude)
    times = -(-count // width)
    factor = sum(1 << width * index for index in range(times))
    return (magnitude * factor)[times * width - count : times * width]


class Locate(Step):
    """`LocateLane` for each lane."""

    def __init__(self, i: data.StructLayout, kinds: Sequence[LaneKind]) -> None:
        self._kinds = kinds
        self._every_mode = len(kinds) > 1
        block = i["codes"].shape.length
        lanes = lanes_layout([located_layout(kind) for kind in kinds], block)
        super().__init__(i, StructLayout({"lanes": lanes}), levels=18)

    def elaborate(self, platform: Any) -> Module:
        """Instantiate the lanes."""
        m = Module()
        codes = list(self.i.codes)
        if self._every_mode:
            codes = aligned(self._kinds, codes, self.i.high_precision)
        lanes = (
            {"exponent": self.i.exponent, "code": code, "located": located}
            for code, located in zip(codes, lanes_of(self.o.lanes), strict=True)
        )
        makes = [partial(LocateLane, kind) for kind in self._kinds]
        add_lanes(m, platform, makes, with_narrow(self._kinds, self.i, lanes))
        return m


class RoundFractions(Step):
    """`RoundFractionLane` for each lane."""

    verilog_name = "round"

    def __init__(self, dtype: Float, kinds: Sequence[LaneKind], i: data.StructLayout) -> None:
        self._dtype = dtype
        self._kinds = kinds
        block = len(i["lanes"].shape.members)
        super().__init__(i, values_layout(block, dtype), levels=30)

    def elaborate(self, platform: Any) -> Module:
        """Instantiate the lanes."""
        m = Module()
        pairs = zip(lanes_of(self.i.lanes), self.o.values, strict=True)
        lanes = ({"located": located, "value": value} for located, value in pairs)
        add_lanes(
            m,
            platform,
            [partial(RoundFractionLane, self._dtype, kind) for kind in self._kinds],
            lanes,
        )
        return m


def decode_words(i: data.StructLayout, dtype: Float, kinds: Sequence[LaneKind]) -> list[Step]:
    """The steps of `axs6.hw.decoder.decoder.turning_steps`, in words."""
    locate = Locate(i, kinds)
    return [locate, RoundFractions(dtype, kinds, locate.o.shape())]
