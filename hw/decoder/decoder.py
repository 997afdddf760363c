"""Decoder: a block becomes floating-point values."""

from collections.abc import Sequence
from functools import partial
from typing import Any

from amaranth.hdl import Cat, Module
from amaranth.lib import data

from axs6.golden.formats import BlockFormat, Float, SignMagnitude, name_of
from axs6.golden.formats import Exponent as ExponentScale
from axs6.golden.formats.catalog import AXS6_SCALE
from axs6.golden.formats.floating import OUTPUT_DTYPES
from axs6.hw.core.layouts import (
    block_layout,
    error_layout,
    lanes_layout,
    lanes_of,
    scaled_layout,
    values_layout,
)
from axs6.hw.core.parameters import (
    BEHAVIOUR,
    BLOCK_FORMS,
    STRUCTURE,
    block_format_of,
    float_dtype,
    one_of,
)
from axs6.hw.core.pipeline import Pipeline, Step, past, viewed
from axs6.hw.core.rtlil import add_lanes
from axs6.hw.core.structures import StructLayout
from axs6.hw.decoder.expander import expand_steps
from axs6.hw.decoder.lane import (
    LOW_BITS,
    LaneKind,
    RoundTurnedLane,
    TurnLane,
    aligned,
    ends_layout,
    lane_kinds,
    places_of,
    repeated_bits,
    scale_layout,
    with_narrow,
)
from axs6.hw.decoder.packed import SplitChecked
from axs6.hw.decoder.plan import DecoderPlan
from axs6.hw.decoder.value import value_steps
from axs6.hw.decoder.words import decode_words


class ScaleTables(Step):
    """The tables of `scale_layout` from the shared exponent, and the codes of each lane.

    With two kinds of lanes, `high_precision` says which codes a block has.
    """

    verilog_name = "scale"

    def __init__(self, i: data.StructLayout, kinds: Sequence[LaneKind]) -> None:
        self._kinds = kinds
        self._places = places_of(kinds)
        self._every_mode = len(kinds) > 1
        mode = {"high_precision": 1} if self._every_mode else {}
        block = i["codes"].shape.length
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
        highest = AXS6_SCALE.largest_code == E
        m.d.comb += [
            scale.ends.lowest.eq(E == 0),
            scale.ends.highest.eq(highest),
            scale.reaches.eq(Cat(place < E for place in range(1, self._places))),
            scale.high.eq(E[LOW_BITS:]),
            scale.high_less_one.eq(E[LOW_BITS:] - 1),
            scale.low[0].eq(E[:LOW_BITS] - highest),
            scale.borrow.eq(Cat(E[:LOW_BITS] < place for place in range(1, self._places))),
        ]
        # truncates: low bits of a difference, whose borrow is found beside
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


class RoundTurned(Step):
    """`RoundTurnedLane` for each lane."""

    verilog_name = "round"

    def __init__(self, dtype: Float, kinds: Sequence[LaneKind], i: data.StructLayout) -> None:
        self._dtype = dtype
        self._kinds = kinds
        block = len(i["lanes"].shape.members)
        # Places repeat within a fraction, but for the lowest and the highest, where n is fixed.
        repeated = dtype.fraction_bits - 1 - 2 * kinds[0].width if len(kinds) == 1 else 0
        held = block * (dtype.width - max(0, repeated))
        super().__init__(i, values_layout(block, dtype), levels=10, held=held)

    def elaborate(self, platform: Any) -> Module:
        """Instantiate the lanes."""
        m = Module()
        lanes = (
            {"ends": self.i.ends, "turned": turned, "value": value}
            for turned, value in zip(lanes_of(self.i.lanes), self.o.values, strict=True)
        )
        makes = [partial(RoundTurnedLane, self._dtype, kind) for kind in self._kinds]
        add_lanes(m, platform, makes, with_narrow(self._kinds, self.i, lanes))
        return m


def turning_steps(i: data.StructLayout, dtype: Float, kinds: Sequence[LaneKind]) -> list[Step]:
    """Steps from a block to `values_layout`, by lanes that turn its magnitudes.

    Args:
        i: layout of a block; with two kinds of lanes, of one that may be high-precision, as an
            input of one bit then says.
        dtype: of the values.
        kinds: of the lanes.
    """
    scale = ScaleTables(i, kinds)
    turn = Turn(kinds, scale.o.shape())
    return [scale, turn, RoundTurned(dtype, kinds, turn.o.shape())]


def turning_kind(fmt: BlockFormat, dtype: Float) -> LaneKind | None:
    """The lanes that turn magnitudes, if they take a format; see `axs6.hw.decoder.lane`.

    Its elements must be over 2^n - 1, and its one scale a power of two of 8 bits without NaN.
    """
    element, scales = fmt.element, [level.scale for level in fmt.levels]
    fits = (
        isinstance(element, SignMagnitude)
        and element.full_scale
        and element.unit_exponent == 0
        and element.magnitude_bits < dtype.fraction_bits
        and len(scales) == 1
        and isinstance(scales[0], ExponentScale)
        and scales[0].bits == AXS6_SCALE.bits
        and not scales[0].nan
    )
    return LaneKind(element) if fits and isinstance(element, SignMagnitude) else None


def dense_steps(fmt: BlockFormat, lanes: int, dtype: Float, view: str) -> list[Step]:
    """Steps from `scaled_layout` to `values_layout`.

    Raises:
        ValueError: the format has no decoder.
    """
    kind = turning_kind(fmt, dtype)
    if kind is None:
        return value_steps(DecoderPlan(fmt, lanes, dtype))
    kinds = [kind]
    i = StructLayout(dict(scaled_layout(lanes, fmt).members))
    return decode_words(i, dtype, kinds) if view == BEHAVIOUR else turning_steps(i, dtype, kinds)


def packed_steps(
    fmt: BlockFormat, lanes: int, dtype: Float, view: str, align: int = 1
) -> list[Step]:
    """Steps from the bytes of a block to values, zeros for errors, and `error`.

    Args:
        fmt: the block format.
        lanes: values in a block.
        dtype: of the values.
        view: of the lanes.
        align: bytes to a multiple of which blocks of formats without modes are padded.

    Raises:
        ValueError: the format has no decoder.
    """
    if not fmt.has_modes:
        steps = dense_steps(fmt, lanes, dtype, view)
        return [SplitChecked(fmt, lanes, align), *past(steps, error_layout)]
    if turning_kind(fmt, dtype) is None:
        raise ValueError(
            f"packed blocks with modes have a decoder only in axs6, not {name_of(fmt)}"
        )
    kinds = lane_kinds(every_mode=True)
    i = StructLayout({**block_layout(lanes).members, "high_precision": 1})
    words = decode_words(i, dtype, kinds) if view == BEHAVIOUR else turning_steps(i, dtype, kinds)
    return [*expand_steps(lanes, high_precision=True), *past(words, error_layout)]


class Decoder(Pipeline):
    """Decodes a block in each cycle, each value rounded once to nearest even.

    Subnormals are kept, a sign alone gives -0.0, and a value that is too large becomes the largest
    finite one (2^128, the largest magnitude of AXS-6 with exponent 255). NaN is the positive quiet
    NaN; all values of a group are, whose scale is NaN, or no code of a real scale. Infinite
    elements stay infinite. Scales of the tensor and of channels come with each block.

    Packed blocks of AXS-6 may be of any mode; one that cannot be read raises `error` and gives
    zeros (see `Expander`).

    Args:
        block: values in a block; None for the format's own. 8, 16 or 32 where it has modes, up to
            128 elsewhere.
        dtype: of the values: "fp32" or "bf16".
        blocks: what comes in: "dense", scales and codes, or "packed", the bytes of a block.
        stages: ranks of registers, from 0.
        view: "structure" or "behaviour"; see `axs6.hw.dot.block_dot.BlockDot`. They differ for
            elements over 2^n - 1 under one power of two alone.
        format: the block format, a name or a string.

    Ports:
        i (in, stream): an item is a block.
        i.outer, i.outer_tensor, i.outer_channel (in, the bits of each scale): codes of the scales
            of tensor and channel that the format has; `outer` where there is but one.
        i.exponent, i.scale, i.shifts, i.factor (in, the bits of each scale): codes of the scales
            within the block, as of `Encoder`.
        i.zero_point (in, the bits of an element): the code of 0, where elements have no sign.
        i.codes (in, `block` x the bits of an element): the codes, lane 0 first.
        i.mode, i.reserved (in, 2 and 6 bits): header of a packed block of a format with modes.
        i.payload (in, bytes): what follows the header, in place of codes.
        i.unused (in, bits): what fills up the last byte of a packed block; must be 0.
        o (out, stream): an item is the values.
        o.values (out, `block` x the bits of `dtype`): the values as bit patterns, lane 0 first.
        o.error (out, 1 bit): whether the block cannot be read; for packed blocks alone.

    Latency is `stages` cycles, interval 1. Source: specification sections 4 and 6, docs/format.md
    and docs/hardware.md.

    Raises:
        ValueError: a parameter is not what it must be, or the format has no decoder.
    """

    def __init__(
        self,
        block: int | None = None,
        dtype: str = "fp32",
        blocks: str = "dense",
        stages: int = 0,
        view: str = STRUCTURE,
        format: str = "axs6",
    ) -> None:
        fmt, lanes = block_format_of(format, block)
        values = float_dtype(dtype, OUTPUT_DTYPES)
        packed = one_of("blocks", blocks, BLOCK_FORMS) == "packed"

        def steps_of(view: str) -> list[Step]:
            make = packed_steps if packed else dense_steps
            return make(fmt, lanes, values, view)

        steps, like = viewed(steps_of, view)
        super().__init__(steps, stages, like=like)
