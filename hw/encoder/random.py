"""Stochastic rounding: the steps of an encoder whose magnitudes are rounded by random words.

With n the largest magnitude of a code of N bits, n |x| / scale is (2^N - 1) M / 2^(F + 1 + d) for a
significand M of F + 1 bits at distance d below the shared exponent. Its R bits behind the point are
added to a word of R bits, and a carry rounds up.
"""

from collections.abc import Sequence
from dataclasses import dataclass
from functools import partial
from typing import Any

from amaranth.hdl import Cat, Const, Module, Signal, Value
from amaranth.lib import data, wiring
from amaranth.lib.wiring import In, Out

from axs6.golden.formats import Float, Mode, SignMagnitude
from axs6.golden.formats.catalog import AXS6_SCALE
from axs6.hw.core.layouts import code_layout_of, lanes_layout, lanes_of, words_layout
from axs6.hw.core.pipeline import Step
from axs6.hw.core.rtlil import add_lanes
from axs6.hw.core.structures import StructLayout
from axs6.hw.core.trees import chosen
from axs6.hw.encoder.fields import unused_exponent_bits
from axs6.hw.encoder.front import BlockExponent, UnpackFloats, passing_layout
from axs6.hw.encoder.largest import distances_layout, search_steps
from axs6.hw.encoder.modes import (
    add_rounding,
    held_bits,
    lane_codes,
    rounded_bits,
    rounded_layout,
)


@dataclass(frozen=True)
class Significand:
    """A lane that keeps its significand; see `axs6.hw.encoder.front.Kept`."""

    dtype: Float
    code: SignMagnitude
    random_bits: int

    @property
    def layout(self) -> data.StructLayout:
        """The significand, the hidden bit highest."""
        return StructLayout({"significand": self.dtype.fraction_bits + 1})

    def build(self, m: Module, significand: Value) -> Value:
        """Add nothing."""
        return significand

    @property
    def scaled_bits(self) -> int:
        """Bits of a magnitude before it is rounded: those of a code and R behind the point."""
        return self.code.magnitude_bits + self.random_bits


def distance_bits(kinds: Sequence[Significand]) -> int:
    """Bits of the distances at which a value has a bit that is not 0."""
    width = kinds[0].dtype.exponent_bits
    return min(width, (max(kind.scaled_bits for kind in kinds) - 1).bit_length())


_SPECIAL = ("sign", "infinite")
"""Sideband of a lane's magnitude."""


class NormaliseBlock(Step):
    """The block's exponent, and significands of a block of subnormals raised to the top."""

    def __init__(self, block: int, dtype: Float, kinds: Sequence[Significand]) -> None:
        self._dtype = dtype
        bits = distance_bits(kinds)
        fields = {**kinds[0].layout.members, "distance": bits, "sign": 1, "infinite": 1}
        lanes = lanes_layout([StructLayout(fields)], block)
        o = StructLayout({"exponent": AXS6_SCALE.bits, "lanes": lanes, "invalid": 1})
        rest = passing_layout(block, dtype, kinds)
        i = distances_layout(block, dtype.exponent_bits, rest, bits)
        super().__init__(i, o, levels=9, held=o.size - unused_exponent_bits(dtype))

    def elaborate(self, platform: Any) -> Module:
        """Build a selection among the shifts of a block of subnormals in each lane."""
        m = Module()
        exponent = BlockExponent(m, self._dtype, self.i)
        m.d.comb += [
            self.o.exponent.eq(exponent.value),
            self.o.invalid.eq(self.i.rest.invalid),
        ]
        passing, lanes = lanes_of(self.i.rest.lanes), lanes_of(self.o.lanes)
        for index, (lane, passed, o) in enumerate(zip(self.i.lanes, passing, lanes, strict=True)):
            significand = passed.kept.significand
            width = len(significand)
            raised = [(significand << depth)[:width] for depth in range(len(exponent.uses))]
            uses = Signal(len(raised), name=f"uses{index}")
            m.d.comb += [
                uses.eq(Cat(use & lane.close for use in exponent.uses)),
                o.significand.eq(chosen(list(uses), raised)),
                o.distance.eq(lane.distance),
                o.sign.eq(passed.sign),
                o.infinite.eq(passed.infinite),
            ]
        return m


class ScaleSignificandLane(wiring.Component):
    """The product with a code's largest magnitude, as far as R bits behind the point reach."""

    verilog_name = "scale_lane"

    def __init__(self, kind: Significand) -> None:
        self._kind = kind
        super().__init__(
            {"significand": In(kind.dtype.fraction_bits + 1), "scaled": Out(kind.scaled_bits)}
        )

    def elaborate(self, platform: Any) -> Module:
        """Build the subtracter."""
        m = Module()
        bits, random_bits = self._kind.code.magnitude_bits, self._kind.random_bits
        point = len(self.significand)
        product = Signal(point + bits)
        m.d.comb += product.eq((self.significand << bits) - self.significand)
        below = max(0, random_bits - point)
        m.d.comb += self.scaled.eq(Cat(Const(0, below), product[max(0, point - random_bits) :]))
        return m


class ShiftScaledLane(wiring.Component):
    """The magnitude with R bits behind the point: the product at the lane's distance."""

    verilog_name = "shift_lane"

    def __init__(self, kind: Significand, bits: int) -> None:
        super().__init__(
            {
                "scaled": In(kind.scaled_bits),
                "distance": In(bits),
                "shifted": Out(kind.scaled_bits),
            }
        )

    def elaborate(self, platform: Any) -> Module:
        """Build the shifter."""
        m = Module()
        m.d.comb += self.shifted.eq(self.scaled >> self.distance)
        return m


class RoundRandomlyLane(wiring.Component):
    """The code: the magnitude, plus one where the random word carries."""

    verilog_name = "round_lane"

    def __init__(self, kind: Significand) -> None:
        self._kind = kind
        super().__init__(
            {
                "shifted": In(kind.scaled_bits),
                "random": In(kind.random_bits),
                "sign": In(1),
                "infinite": In(1),
                "code": Out(code_layout_of(kind.code)),
            }
        )

    def elaborate(self, platform: Any) -> Module:
        """Build the adder."""
        m = Module()
        total = Signal(self._kind.scaled_bits)
        magnitude = total[self._kind.random_bits :]
        m.d.comb += [
            total.eq(self.shifted + self.random),
            self.code.magnitude.eq(magnitude | self.infinite.replicate(len(magnitude))),
            self.code.sign.eq(self.sign),
        ]
        return m


def magnitudes_layout(
    block: int, kinds: Sequence[Significand], name: str, *, distances: bool
) -> data.StructLayout:
    """A block whose lanes have a field of the bits of a magnitude that is not yet rounded."""
    more = {"distance": distance_bits(kinds)} if distances else {}
    lanes = [
        StructLayout({name: kind.scaled_bits, **more, "sign": 1, "infinite": 1}) for kind in kinds
    ]
    return StructLayout(
        {"exponent": AXS6_SCALE.bits, "lanes": lanes_layout(lanes, block), "invalid": 1}
    )


class ScaleSignificands(Step):
    """`ScaleSignificandLane` for each lane."""

    verilog_name = "scale"

    def __init__(
        self, block: int, dtype: Float, kinds: Sequence[Significand], i: data.StructLayout
    ) -> None:
        self._kinds = kinds
        o = magnitudes_layout(block, kinds, "scaled", distances=True)
        super().__init__(i, o, levels=22, held=held_bits(o, dtype))

    def elaborate(self, platform: Any) -> Module:
        """Instantiate the lanes."""
        m = Module()
        m.d.comb += [self.o.exponent.eq(self.i.exponent), self.o.invalid.eq(self.i.invalid)]
        lanes = []
        for i, o in zip(lanes_of(self.i.lanes), lanes_of(self.o.lanes), strict=True):
            lanes.append({"significand": i.significand, "scaled": o.scaled})
            m.d.comb += [getattr(o, name).eq(getattr(i, name)) for name in ("distance", *_SPECIAL)]
        add_lanes(m, platform, [partial(ScaleSignificandLane, kind) for kind in self._kinds], lanes)
        return m


class ShiftScaled(Step):
    """`ShiftScaledLane` for each lane."""

    verilog_name = "shift"

    def __init__(
        self, block: int, dtype: Float, kinds: Sequence[Significand], i: data.StructLayout
    ) -> None:
        self._kinds = kinds
        o = magnitudes_layout(block, kinds, "shifted", distances=False)
        super().__init__(i, o, levels=3 * distance_bits(kinds), held=held_bits(o, dtype))

    def elaborate(self, platform: Any) -> Module:
        """Instantiate the lanes."""
        m = Module()
        m.d.comb += [self.o.exponent.eq(self.i.exponent), self.o.invalid.eq(self.i.invalid)]
        lanes = []
        for i, o in zip(lanes_of(self.i.lanes), lanes_of(self.o.lanes), strict=True):
            lanes.append({"scaled": i.scaled, "distance": i.distance, "shifted": o.shifted})
            m.d.comb += [getattr(o, name).eq(getattr(i, name)) for name in _SPECIAL]
        bits = distance_bits(self._kinds)
        add_lanes(
            m, platform, [partial(ShiftScaledLane, kind, bits) for kind in self._kinds], lanes
        )
        return m


class RoundRandomly(Step):
    """`RoundRandomlyLane` for each lane, with the random words as a field of the input."""

    def __init__(
        self,
        block: int,
        dtype: Float,
        mode: Mode,
        kinds: Sequence[Significand],
        i: data.StructLayout,
    ) -> None:
        self._kinds = kinds
        self._mode = mode
        words = words_layout(block, kinds[0].random_bits)
        super().__init__(
            StructLayout({**i.members, **words.members}),
            rounded_layout(block, mode),
            levels=18,
            held=rounded_bits(block, mode, dtype),
        )

    def elaborate(self, platform: Any) -> Module:
        """Instantiate the lanes."""
        m = Module()
        lanes = (
            {"shifted": i.shifted, "random": random, "sign": i.sign, "infinite": i.infinite}
            for i, random in zip(lanes_of(self.i.lanes), self.i.random, strict=True)
        )
        makes = [partial(RoundRandomlyLane, kind) for kind in self._kinds]
        add_rounding(m, platform, self, self._mode, makes, lanes)
        return m


def random_steps(block: int, dtype: Float, mode: Mode, random_bits: int) -> tuple[list[Step], Step]:
    """Steps from `values_layout`, and the one that takes the random words to `rounded_layout`."""
    kinds = [Significand(dtype, code, random_bits) for code in lane_codes(mode)]
    rest = passing_layout(block, dtype, kinds)
    search = search_steps(block, dtype.exponent_bits, rest, distance_bits(kinds))
    normalise = NormaliseBlock(block, dtype, kinds)
    scale = ScaleSignificands(block, dtype, kinds, normalise.o.shape())
    shift = ShiftScaled(block, dtype, kinds, scale.o.shape())
    front = [UnpackFloats(block, dtype, kinds), *search, normalise, scale, shift]
    return front, RoundRandomly(block, dtype, mode, kinds, shift.o.shape())
