"""Decoder: a block becomes floating-point values."""

from collections.abc import Sequence
from functools import partial
from typing import Any

from amaranth.hdl import Cat, Module
from amaranth.lib import data

from axs6.golden.formats import Float
from axs6.golden.spec import EXPONENT_MAX, OUTPUT_DTYPES, check_block
from axs6.hw.core.layouts import (
    block_layout,
    error_layout,
    lanes_layout,
    lanes_of,
    values_layout,
)
from axs6.hw.core.parameters import BEHAVIOUR, BLOCK_FORMS, STRUCTURE, float_dtype, one_of
from axs6.hw.core.pipeline import Pipeline, Step, past, viewed
from axs6.hw.core.rtlil import add_lanes
from axs6.hw.core.structures import StructLayout
from axs6.hw.decoder.expander import expand_steps
from axs6.hw.decoder.lane import (
    LOW_BITS,
    LaneKind,
    RoundLane,
    TurnLane,
    aligned,
    ends_layout,
    lane_kinds,
    places_of,
    repeated_bits,
    scale_layout,
    with_narrow,
)
from axs6.hw.decoder.words import decode_words


class Scale(Step):
    """The tables of `scale_layout` from the shared exponent, and the codes of each lane.

    With two kinds of lanes, `high_precision` says which codes a block has.
    """

    def __init__(self, block: int, kinds: Sequence[LaneKind]) -> None:
        self._kinds = kinds
        self._places = places_of(kinds)
        self._every_mode = len(kinds) > 1
        mode = {"high_precision": 1} if self._every_mode else {}
        i = StructLayout({**block_layout(block).members, **mode})
        o = {
            "scale": scale_layout(self._places),
            "lanes": lanes_layout([kind.layout for kind in kinds], block),
        }
        held = StructLayout(o | mode)
        super().__init__(i, held, levels=9, held=held.size - repeated_bits(self._places))

    def elaborate(self, platform: Any) -> Module:
        """Build the subtracters, the comparisons and the choice of codes."""
        m = Module()
        E, scale = self.i.exponent, self.o.scale
        highest = E == EXPONENT_MAX
        m.d.comb += [
            scale.ends.lowest.eq(E == 0),
            scale.ends.highest.eq(highest),
            scale.reaches.eq(Cat(place < E for place in range(1, self._places))),
            scale.high.eq(E[LOW_BITS:]),
            scale.high_less_one.eq(E[LOW_BITS:] - 1),
            scale.low[0].eq(E[:LOW_BITS] - highest),
            scale.borrow.eq(Cat(E[:LOW_BITS] < place for place in range(1, self._places))),
        ]
        m.d.comb += [scale.low[k].eq(E[:LOW_BITS] - k) for k in range(1, self._places)]
        lanes = lanes_of(self.o.lanes)
        codes = list(self.i.codes)
        if self._every_mode:
            m.d.comb += self.o.high_precision.eq(self.i.high_precision)
            codes = aligned(self._kinds, codes, self.i.high_precision)
        m.d.comb += [lane.eq(code) for lane, code in zip(lanes, codes, strict=True)]
        return m


class Turn(Step):
    """`TurnLane` for each lane."""

    def __init__(self, kinds: Sequence[LaneKind], i: data.StructLayout) -> None:
        self._kinds = kinds
        block = len(i["lanes"].shape.members)
        lanes = lanes_layout([kind.turned_layout for kind in kinds], block)
        rest = {name: i[name].shape for name in i.members if name not in ("scale", "lanes")}
        o = StructLayout({"ends": ends_layout, "lanes": lanes, **rest})
        super().__init__(i, o, levels=12)

    def elaborate(self, platform: Any) -> Module:
        """Instantiate the lanes."""
        m = Module()
        rest = [name for name in self.o.shape().members if name not in ("ends", "lanes")]
        m.d.comb += self.o.ends.eq(self.i.scale.ends)
        m.d.comb += [self.o[name].eq(self.i[name]) for name in rest]
        lanes = (
            {"scale": self.i.scale, "code": code, "turned": turned}
            for code, turned in zip(lanes_of(self.i.lanes), lanes_of(self.o.lanes), strict=True)
        )
        makes = [partial(TurnLane, kind, places_of(self._kinds)) for kind in self._kinds]
        add_lanes(m, platform, makes, with_narrow(self._kinds, self.i, lanes))
        return m


class Round(Step):
    """`RoundLane` for each lane."""

    def __init__(self, fmt: Float, kinds: Sequence[LaneKind], i: data.StructLayout) -> None:
        self._fmt = fmt
        self._kinds = kinds
        block = len(i["lanes"].shape.members)
        # Places repeat within a fraction, but for the lowest and the highest, where n is fixed.
        repeated = fmt.fraction_bits - 1 - 2 * kinds[0].width if len(kinds) == 1 else 0
        held = block * (fmt.width - max(0, repeated))
        super().__init__(i, values_layout(block, fmt), levels=10, held=held)

    def elaborate(self, platform: Any) -> Module:
        """Instantiate the lanes."""
        m = Module()
        lanes = (
            {"ends": self.i.ends, "turned": turned, "value": value}
            for turned, value in zip(lanes_of(self.i.lanes), self.o.values, strict=True)
        )
        makes = [partial(RoundLane, self._fmt, kind) for kind in self._kinds]
        add_lanes(m, platform, makes, with_narrow(self._kinds, self.i, lanes))
        return m


def decode_steps(block: int, fmt: Float, every_mode: bool, view: str = STRUCTURE) -> list[Step]:
    """Steps from the fields of a `block_layout` to `values_layout`.

    Args:
        block: values in a block.
        fmt: format of the values.
        every_mode: whether blocks may be high-precision, as an input of one bit then says.
        view: of the lanes.
    """
    kinds = lane_kinds(every_mode)
    if view == BEHAVIOUR:
        return decode_words(block, fmt, kinds)
    scale = Scale(block, kinds)
    turn = Turn(kinds, scale.o.shape())
    return [scale, turn, Round(fmt, kinds, turn.o.shape())]


class Decoder(Pipeline):
    """Decodes a block in each cycle, each value rounded once to nearest even.

    Subnormals are kept, the code of -0 gives -0.0, and 2^128 (the largest magnitude with exponent
    255) becomes the largest finite value. Packed blocks may be of any mode; one that cannot be
    read raises `error` and gives zeros (see `Expander`).

    Args:
        block: values in a block: 8, 16 or 32.
        dtype: of the values: "fp32" or "bf16".
        blocks: what comes in: "dense", an exponent and codes, or "packed", the bytes of a block.
        stages: ranks of registers, from 0.
        view: "structure" or "behaviour"; see `axs6.hw.dot.block_dot.BlockDot`.

    Latency is `stages` cycles, interval 1. Source: specification sections 4 and 6, docs/format.md.

    Raises:
        ValueError: a parameter is not what it must be.
    """

    def __init__(
        self,
        block: int = 32,
        dtype: str = "fp32",
        blocks: str = "dense",
        stages: int = 0,
        view: str = STRUCTURE,
    ) -> None:
        block = check_block(block)
        fmt = float_dtype(dtype, OUTPUT_DTYPES)
        packed = one_of("blocks", blocks, BLOCK_FORMS) == "packed"

        def steps_of(view: str) -> list[Step]:
            steps = decode_steps(block, fmt, packed, view)
            if not packed:
                return steps
            return [*expand_steps(block, high_precision=True), *past(steps, error_layout)]

        steps, like = viewed(steps_of, view)
        super().__init__(steps, stages, like=like)
