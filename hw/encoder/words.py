"""The encoder in words: the largest field by `>`, the product by `*`, distances by `>>`.

With M a significand of F + 1 bits and d the distance of its exponent from the block's, the largest
magnitude 2^N - 1 of a code times the value over the scale is (2^N - 1) M / 2^(F + 1 + d). Its R
bits behind the point, R = 1 unless rounding is stochastic, are added to a half, to nothing, or to a
random word. In a block of subnormals d goes down to minus `deepest_subnormal`, so that is what
distances count from.
"""

from abc import ABC, abstractmethod
from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass
from functools import partial
from typing import Any

from amaranth.hdl import Cat, Const, Module, Mux, Signal, ValueLike
from amaranth.lib import data, wiring
from amaranth.lib.wiring import In, Out

from axs6.golden.formats import Float, Mode, SignMagnitude
from axs6.golden.formats.catalog import AXS6_SCALE
from axs6.golden.rounding import Rounding
from axs6.hw.core.layouts import (
    code_layout_of,
    float_layout,
    lanes_layout,
    lanes_of,
    values_layout,
    words_layout,
)
from axs6.hw.core.pipeline import Step
from axs6.hw.core.rtlil import add_lanes
from axs6.hw.core.structures import ArrayLayout, StructLayout
from axs6.hw.core.trees import any_of, largest_of
from axs6.hw.encoder.fields import deepest_subnormal, exponent_offset, unused_exponent_bits
from axs6.hw.encoder.modes import add_rounding, lane_codes, rounded_bits, rounded_layout

SPECIAL = {"sign": 1, "infinite": 1, "nan": 1}
"""Sideband of a magnitude: its sign, and whether it counts as the largest or as 0."""


@dataclass(frozen=True)
class WordLane:
    """Parameters of a lane.

    Args:
        dtype: format of the values.
        code: format of the codes.
        rounding: how they are rounded.
        below: bits behind the point that rounding looks at.
    """

    dtype: Float
    code: SignMagnitude
    rounding: Rounding
    below: int

    @property
    def product_bits(self) -> int:
        """Bits of a product that some distance brings above the last bit that counts."""
        return self.shifted_bits + deepest_subnormal(self.dtype)

    @property
    def shifted_bits(self) -> int:
        """Bits of a magnitude before it is rounded."""
        return self.code.magnitude_bits + self.below

    @property
    def product_layout(self) -> data.StructLayout:
        """A product, by how much it goes down, and what a code has beside its magnitude."""
        return StructLayout({"product": self.product_bits, "down": AXS6_SCALE.bits, **SPECIAL})

    @property
    def shifted_layout(self) -> data.StructLayout:
        """A magnitude before it is rounded, and what a code has beside it."""
        return StructLayout({"shifted": self.shifted_bits, **SPECIAL})


def unpacked_layout(dtype: Float) -> data.StructLayout:
    """Fields of a value; subnormals and what is not finite have exponent field 1."""
    fields = {"significand": dtype.fraction_bits + 1, "field": dtype.exponent_bits}
    return StructLayout({**fields, **SPECIAL})


class UnpackFields(Step):
    """Fields of each value, and whether one is NaN or infinite."""

    verilog_name = "unpack"

    def __init__(self, block: int, dtype: Float) -> None:
        self._dtype = dtype
        lanes = ArrayLayout(unpacked_layout(dtype), block)
        o = StructLayout({"lanes": lanes, "invalid": 1})
        super().__init__(values_layout(block, dtype), o, levels=15)

    def elaborate(self, platform: Any) -> Module:
        """Build the tests for special values."""
        m = Module()
        special = []
        for value, lane in zip(self.i.values, self.o.lanes, strict=True):
            x = data.View(float_layout(self._dtype), value)
            beyond = x.exponent == self._dtype.exponent_special
            normal = x.exponent != 0
            special.append(beyond)
            whole = x.fraction == 0
            infinite = beyond & whole
            m.d.comb += [
                lane.significand.eq(Cat(x.fraction, normal)),
                lane.field.eq(Mux(normal & ~beyond, x.exponent, 1)),
                lane.sign.eq(x.sign & Mux(beyond, whole, normal | ~whole)),
                lane.infinite.eq(infinite),
                lane.nan.eq(beyond & ~whole),
            ]
        m.d.comb += self.o.invalid.eq(any_of(special))
        return m


class ShareExponent(Step):
    """The block's exponent, from the largest field; in a block of subnormals, from its first one.

    A block of zeros has exponent 0, one with an infinity 255.
    """

    verilog_name = "share"

    def __init__(self, block: int, dtype: Float) -> None:
        self._dtype = dtype
        i = StructLayout({"lanes": ArrayLayout(unpacked_layout(dtype), block), "invalid": 1})
        o = StructLayout({**i.members, "exponent": AXS6_SCALE.bits})
        levels = 10 * (block - 1).bit_length() + 10
        super().__init__(i, o, levels=levels, held=o.size - unused_exponent_bits(dtype))

    def elaborate(self, platform: Any) -> Module:
        """Build the tree of maxima, and the selection among depths."""
        m = Module()
        lanes = self.i.lanes
        largest = Signal(self._dtype.exponent_bits)
        ones = Signal(self._dtype.fraction_bits + 1)
        m.d.comb += [
            largest.eq(largest_of(m, [x.field for x in lanes])),
            ones.eq(any_of([Mux(x.nan, 0, x.significand) for x in lanes])),
            self.o.lanes.eq(lanes),
            self.o.invalid.eq(self.i.invalid),
        ]
        offset = exponent_offset(self._dtype)
        with m.If(any_of([x.infinite for x in lanes])):
            m.d.comb += self.o.exponent.eq(AXS6_SCALE.largest_code)
        for depth in range(deepest_subnormal(self._dtype) + 1):
            with m.Elif(ones[-1 - depth]):
                m.d.comb += self.o.exponent.eq(largest + (offset - depth))
        return m


class TimesLargestLane(wiring.Component):
    """The product with a code's largest magnitude as far as rounding looks, and the distance."""

    verilog_name = "multiply_lane"

    def __init__(self, lane: WordLane) -> None:
        self._lane = lane
        super().__init__(
            {
                "unpacked": In(unpacked_layout(lane.dtype)),
                "exponent": In(AXS6_SCALE.bits),
                "multiplied": Out(lane.product_layout),
            }
        )

    def elaborate(self, platform: Any) -> Module:
        """Build the multiplier and the subtracter."""
        m = Module()
        lane, x, o = self._lane, self.unpacked, self.multiplied
        bits = lane.code.magnitude_bits
        product = Signal(len(x.significand) + bits)
        missing = lane.product_bits - len(product)
        least = exponent_offset(lane.dtype) - deepest_subnormal(lane.dtype)
        m.d.comb += [
            product.eq(x.significand * ((1 << bits) - 1)),
            o.product.eq(Cat(Const(0, max(0, missing)), product[max(0, -missing) :])),
            o.down.eq(self.exponent - least - x.field),
            o.sign.eq(x.sign),
            o.infinite.eq(x.infinite),
            o.nan.eq(x.nan),
        ]
        return m


class ShiftProductLane(wiring.Component):
    """The product at the lane's distance."""

    verilog_name = "shift_lane"

    def __init__(self, lane: WordLane) -> None:
        super().__init__(
            {"multiplied": In(lane.product_layout), "shifted": Out(lane.shifted_layout)}
        )

    def elaborate(self, platform: Any) -> Module:
        """Build the shifter."""
        m = Module()
        i, o = self.multiplied, self.shifted
        m.d.comb += [
            o.shifted.eq(i.product >> i.down),
            o.sign.eq(i.sign),
            o.infinite.eq(i.infinite),
            o.nan.eq(i.nan),
        ]
        return m


class RoundProductLane(wiring.Component):
    """The code: a half, nothing or the random word added, and the bits in front of the point.

    To nearest the only tie is at half the scale, where up is even.
    """

    verilog_name = "round_lane"

    def __init__(self, lane: WordLane) -> None:
        self._lane = lane
        ports = {"shifted": In(lane.shifted_layout), "code": Out(code_layout_of(lane.code))}
        random = lane.rounding is Rounding.STOCHASTIC
        super().__init__(ports | ({"random": In(lane.below)} if random else {}))

    def elaborate(self, platform: Any) -> Module:
        """Build the adder."""
        m = Module()
        lane, x = self._lane, self.shifted
        total = Signal(lane.shifted_bits)
        more = self.random if lane.rounding is Rounding.STOCHASTIC else _half(lane.rounding)
        largest = (1 << lane.code.magnitude_bits) - 1
        m.d.comb += [
            total.eq(x.shifted + more),
            self.code.magnitude.eq(Mux(x.infinite, largest, Mux(x.nan, 0, total >> lane.below))),
            self.code.sign.eq(x.sign),
        ]
        return m


def _half(rounding: Rounding) -> int:
    return int(rounding is Rounding.NEAREST)


class _Lanes(Step, ABC):
    """A step that has a component for each lane; the exponent and `invalid` pass."""

    def __init__(
        self,
        makes: Sequence[Callable[[], wiring.Component]],
        lanes: data.StructLayout,
        dtype: Float,
        i: data.StructLayout,
        levels: int,
    ) -> None:
        self._makes = makes
        o = StructLayout({"exponent": AXS6_SCALE.bits, "lanes": lanes, "invalid": 1})
        super().__init__(i, o, levels=levels, held=o.size - unused_exponent_bits(dtype))

    @abstractmethod
    def connections(self) -> Iterable[Mapping[str, ValueLike]]:
        """Connections of each lane's ports."""

    def elaborate(self, platform: Any) -> Module:
        """Instantiate the lanes."""
        m = Module()
        m.d.comb += [self.o.exponent.eq(self.i.exponent), self.o.invalid.eq(self.i.invalid)]
        add_lanes(m, platform, self._makes, self.connections())
        return m


class TimesLargest(_Lanes):
    """`TimesLargestLane` for each lane."""

    verilog_name = "multiply"

    def __init__(self, block: int, kinds: Sequence[WordLane], i: data.StructLayout) -> None:
        lanes = lanes_layout([kind.product_layout for kind in kinds], block)
        makes = [partial(TimesLargestLane, kind) for kind in kinds]
        super().__init__(makes, lanes, kinds[0].dtype, i, levels=22)

    def connections(self) -> Iterable[Mapping[str, ValueLike]]:
        """Each unpacked value, the exponent, and the lane's product."""
        for i, o in zip(self.i.lanes, lanes_of(self.o.lanes), strict=True):
            yield {"unpacked": i.as_value(), "exponent": self.i.exponent, "multiplied": o}


class ShiftProducts(_Lanes):
    """`ShiftProductLane` for each lane."""

    verilog_name = "shift"

    def __init__(self, block: int, kinds: Sequence[WordLane], i: data.StructLayout) -> None:
        lanes = lanes_layout([kind.shifted_layout for kind in kinds], block)
        makes = [partial(ShiftProductLane, kind) for kind in kinds]
        super().__init__(makes, lanes, kinds[0].dtype, i, levels=15)

    def connections(self) -> Iterable[Mapping[str, ValueLike]]:
        """Each product, and what is left of it."""
        for i, o in zip(lanes_of(self.i.lanes), lanes_of(self.o.lanes), strict=True):
            yield {"multiplied": i, "shifted": o}


class RoundProducts(Step):
    """`RoundProductLane` for each lane; random words, if any, are a field of the input."""

    verilog_name = "round"

    def __init__(
        self, block: int, mode: Mode, kinds: Sequence[WordLane], i: data.StructLayout
    ) -> None:
        self._kinds = kinds
        self._mode = mode
        self._random = kinds[0].rounding is Rounding.STOCHASTIC
        words = words_layout(block, kinds[0].below).members if self._random else {}
        held = rounded_bits(block, mode, kinds[0].dtype)
        super().__init__(
            StructLayout({**i.members, **words}), rounded_layout(block, mode), levels=12, held=held
        )

    def elaborate(self, platform: Any) -> Module:
        """Instantiate the lanes."""
        m = Module()
        lanes = [{"shifted": lane} for lane in lanes_of(self.i.lanes)]
        if self._random:
            lanes = [
                {**lane, "random": word} for lane, word in zip(lanes, self.i.random, strict=True)
            ]
        makes = [partial(RoundProductLane, kind) for kind in self._kinds]
        add_rounding(m, platform, self, self._mode, makes, lanes)
        return m


def encode_words(
    block: int, dtype: Float, rounding: Rounding, mode: Mode, below: int = 1
) -> tuple[list[Step], Step]:
    """Steps from `values_layout`, and the one that rounds, to `rounded_layout`.

    Args:
        block: values in a block.
        dtype: their format.
        rounding: how they are rounded; if stochastically, the last step takes the words too.
        mode: of the block.
        below: bits of the words.
    """
    kinds = [WordLane(dtype, code, rounding, below) for code in lane_codes(mode)]
    share = ShareExponent(block, dtype)
    multiply = TimesLargest(block, kinds, share.o.shape())
    shift = ShiftProducts(block, kinds, multiply.o.shape())
    front = [UnpackFields(block, dtype), share, multiply, shift]
    return front, RoundProducts(block, mode, kinds, shift.o.shape())
