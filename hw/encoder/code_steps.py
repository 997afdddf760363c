"""The last steps of an encoder in words: from aligned significands to the codes of a block."""

from functools import partial
from typing import Any, Generic, TypeVar

from amaranth.hdl import Module
from amaranth.lib import data

from axs6.golden.rounding import Rounding
from axs6.hw.core.layouts import encoded_layout, words_layout
from axs6.hw.core.pipeline import Step
from axs6.hw.core.rtlil import add_lanes
from axs6.hw.core.structures import ArrayLayout, StructLayout
from axs6.hw.encoder.format_lanes import RoundMagnitudeLane, ShiftSignificandLane, shifted_lane
from axs6.hw.encoder.lane_numbers import LaneNumbers
from axs6.hw.encoder.table_lanes import RoundTableLane


def scales_layout(scheme: LaneNumbers) -> data.StructLayout:
    """The scales of a block, as in the output."""
    block = encoded_layout(scheme.lanes, fmt=scheme.fmt)["block"].shape
    scales = {name: shape for name, shape in block.members.items() if name != "codes"}
    return StructLayout(scales)


Numbers = TypeVar("Numbers", bound=LaneNumbers)


class LaneSteps(Step, Generic[Numbers]):
    """A step with a component for each lane; the scales and `invalid` pass."""

    def __init__(self, scheme: Numbers, i: data.StructLayout, lane: Any, levels: int) -> None:
        self._scheme = scheme
        lanes = {"lanes": ArrayLayout(lane, scheme.lanes), "invalid": 1}
        o = StructLayout({**scales_layout(scheme).members, **lanes})
        super().__init__(i, o, levels=levels)

    def pass_scales(self, m: Module) -> None:
        """Connect what passes."""
        names = [*scales_layout(self._scheme).members, "invalid"]
        m.d.comb += [self.o[name].eq(self.i[name]) for name in names]


class ShiftSignificands(LaneSteps[LaneNumbers]):
    """`ShiftSignificandLane` for each lane."""

    verilog_name = "shift"

    def __init__(self, scheme: LaneNumbers, i: data.StructLayout) -> None:
        levels = 4 * scheme.farthest.bit_length() + 2
        super().__init__(scheme, i, shifted_lane(scheme), levels=levels)

    def elaborate(self, platform: Any) -> Module:
        """Instantiate the lanes."""
        m = Module()
        self.pass_scales(m)
        pairs = zip(self.i.lanes, self.o.lanes, strict=True)
        lanes = [{"aligned": i.as_value(), "shifted": o.as_value()} for i, o in pairs]
        add_lanes(m, platform, [partial(ShiftSignificandLane, self._scheme)], lanes)
        return m


class RoundMagnitudes(Step):
    """`RoundMagnitudeLane` for each lane, or `RoundTableLane` where elements are a table.

    Random words, if any, are a field of the input.
    """

    verilog_name = "round"

    def __init__(self, scheme: LaneNumbers, i: data.StructLayout) -> None:
        self._scheme = scheme
        self._random = scheme.rounding is Rounding.STOCHASTIC
        block = scheme.lanes
        words = words_layout(block, scheme.random_bits).members if self._random else {}
        o = encoded_layout(block, fmt=scheme.fmt)
        super().__init__(StructLayout({**i.members, **words}), o, levels=20)

    def elaborate(self, platform: Any) -> Module:
        """Instantiate the lanes."""
        m = Module()
        block = self.o.block
        names = scales_layout(self._scheme).members
        m.d.comb += [block[name].eq(self.i[name]) for name in names]
        m.d.comb += self.o.invalid.eq(self.i.invalid)
        lanes = []
        for index, lane in enumerate(self.i.lanes):
            word = {"random": self.i.random[index]} if self._random else {}
            lanes.append({"shifted": lane.as_value(), **word, "code": block.codes[index]})
        make = RoundTableLane if self._scheme.element.listed else RoundMagnitudeLane
        add_lanes(m, platform, [partial(make, self._scheme)], lanes)
        return m
