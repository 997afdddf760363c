"""Encoder, decoder and dot product on AXI4-Stream, blocks in their packed bytes."""

import inspect
from collections.abc import Callable
from functools import partial
from typing import Any

from amaranth.hdl import Const, Module, Value
from amaranth.lib import data
from amaranth.lib.wiring import In, Out

from axs6.golden.formats import AXS6, BlockFormat, Mode, name_of
from axs6.golden.formats.floating import OUTPUT_DTYPES
from axs6.golden.rounding import DETERMINISTIC, check_rounding
from axs6.hw.axi_stream import AxiStream, beat_layout, marks_layout
from axs6.hw.core.layouts import PADDING, fp32_layout
from axs6.hw.core.parameters import (
    DEFAULT_ACCUMULATOR,
    STRUCTURE,
    block_format_of,
    float_dtype,
)
from axs6.hw.core.pipeline import Pipeline, Wrapper, viewed
from axs6.hw.core.structures import StructLayout
from axs6.hw.core.trees import any_of
from axs6.hw.decoder.decoder import packed_steps
from axs6.hw.dot.accumulated import dot_parts
from axs6.hw.dot.packed import PackedPairs
from axs6.hw.dot.reduction import Reduction
from axs6.hw.encoder.encoder import Encoder


def of_format(unit: str, component: Callable[..., Any], fmt: BlockFormat) -> Callable[..., Any]:
    """The constructor of a unit's component in a block format.

    Raises:
        ValueError: the unit takes no formats, and this is not the default one.
    """
    if "format" in inspect.signature(component).parameters:
        return partial(component, format=name_of(fmt))
    if fmt.has_modes and fmt == AXS6.with_block(fmt.block):
        return component
    raise ValueError(f"{unit} takes only {name_of(AXS6)}, not {name_of(fmt)}")


class AxisPipeline(Wrapper):
    """A pipeline between the AXI4-Streams `s_axis` and `m_axis`, whose marks travel with the data.

    Args:
        pipeline: what is between them.
        i, o: layouts of `tdata` on the two buses.

    Ports:
        s_axis (in, AXI4-Stream of `i`): a beat is an item of the pipeline.
        m_axis (out, AXI4-Stream of `o`): a beat is what becomes of it.

    Latency and interval are those of the pipeline. Source: docs/axis.md.
    """

    def __init__(self, pipeline: Pipeline, i: data.StructLayout, o: data.StructLayout) -> None:
        ports = {"s_axis": In(AxiStream(i)), "m_axis": Out(AxiStream(o))}
        super().__init__(pipeline.carrying(marks_layout), ports)

    def connect_marks(self, m: Module, flag: Value) -> None:
        """Connect all but the data; `flag` marks an output beat that was not marked before."""
        m.submodules.pipeline = inner = self.inner
        given, taken = inner.i.payload.carry, inner.o.payload.carry
        m.d.comb += [
            inner.i.valid.eq(self.s_axis.tvalid),
            self.s_axis.tready.eq(inner.i.ready),
            given.last.eq(self.s_axis.tlast),
            given.user.eq(self.s_axis.tuser),
            self.m_axis.tvalid.eq(inner.o.valid),
            inner.o.ready.eq(self.m_axis.tready),
            self.m_axis.tlast.eq(taken.last),
            self.m_axis.tuser.eq(taken.user | flag),
        ]


class AxisEncoder(AxisPipeline):
    """`Encoder` on AXI4-Stream: each beat of values on `s_axis` becomes a packed block on `m_axis`.

    `tlast` and `tuser` travel with their beat; NaN and infinities set `tuser` too where the format
    cannot keep them.

    Args:
        block, dtype, mode, view, format: those of `Encoder`.
        rounding: "nearest" or "toward_zero".
        align: bytes that a beat of `m_axis` is a multiple of; zeros follow the block.
        stages: ranks of registers, from 0.

    Ports:
        s_axis (in, AXI4-Stream): a beat is a block of values.
        s_axis.values (in, `block` x the bits of `dtype`): the values, lane 0 first.
        s_axis.outer (in, 32 bits): the scale of the tensor or channel in FP32, where there is one.
        m_axis (out, AXI4-Stream): a beat is the bytes of a packed block.
        m_axis.outer, m_axis.exponent, m_axis.scale, m_axis.shifts, m_axis.factor (out, the bits of
            each scale): codes of the scales that the format has.
        m_axis.codes (out, `block` x the bits of an element): the codes, lane 0 first.
        m_axis.mode, m_axis.reserved (out, 2 and 6 bits): header, in formats with modes.
        m_axis.payload (out, bytes): what follows the header, in place of codes.
        m_axis.unused, m_axis.padding (out, bits and bytes): zeros that fill up the beat.

    Latency is `stages` cycles, interval 1. Source: docs/axis.md.

    Raises:
        ValueError: a parameter is not what it must be, or the format has no encoder.
    """

    def __init__(
        self,
        block: int | None = None,
        dtype: str = "fp32",
        rounding: str = "nearest",
        mode: str = "dense",
        align: int = 1,
        stages: int = 0,
        view: str = STRUCTURE,
        format: str = "axs6",
    ) -> None:
        fmt, lanes = block_format_of(format, block)
        rounding_mode = check_rounding(rounding, DETERMINISTIC)
        make = of_format("encoder", Encoder, fmt)
        encoder = make(lanes, dtype, rounding_mode, mode, stages=stages, view=view)
        super().__init__(encoder, encoder.i.payload.shape(), beat_layout(lanes, fmt, align))

    def elaborate(self, platform: Any) -> Module:
        """Connect the data."""
        m = Module()
        i, o = self.inner.i.payload.data, self.inner.o.payload.data
        invalid = o.invalid if "invalid" in o.shape().members else Const(0, 1)
        self.connect_marks(m, invalid)
        m.d.comb += i.eq(self.s_axis.tdata)
        packed = self.m_axis.tdata
        dense, header = "codes" in o.block.shape().members, "mode" in packed.shape().members
        if dense and header:
            m.d.comb += [
                packed.mode.eq(Mode.DENSE),
                packed.exponent.eq(o.block.exponent),
                packed.payload.as_value().eq(o.block.codes.as_value()),
            ]
        else:
            m.d.comb += [packed[name].eq(o.block[name]) for name in o.block.shape().members]
        return m


class AxisDecoder(AxisPipeline):
    """`Decoder` on AXI4-Stream: each packed block on `s_axis` becomes a beat of values on `m_axis`.

    A beat is what `pack` makes of its block alone: scales of the tensor and of channels, where the
    format has them, come before it. `tlast` and `tuser` travel with their beat. A block that cannot
    be read, or with padding that is not zero, sets `tuser` too and gives zeros.

    Args:
        block, dtype, view, format: those of `Decoder`.
        align: bytes that a beat of `s_axis` is a multiple of; zeros follow the block.
        stages: ranks of registers, from 0.

    Ports:
        s_axis (in, AXI4-Stream): a beat is the bytes of a packed block.
        s_axis.outer, s_axis.outer_tensor, s_axis.outer_channel (in, whole bytes): codes of the
            scales of tensor and channel that the format has.
        s_axis.exponent, s_axis.scale, s_axis.shifts, s_axis.factor (in, the bits of each scale):
            codes of those within the block.
        s_axis.zero_point (in, a byte): the code of 0, where elements have no sign.
        s_axis.codes (in, `block` x the bits of an element): the codes, lane 0 first.
        s_axis.mode, s_axis.reserved (in, 2 and 6 bits): header, in formats with modes.
        s_axis.payload (in, bytes): what follows the header, in place of codes.
        s_axis.unused, s_axis.padding (in, bits and bytes): what fills up the beat, which must be 0.
        m_axis (out, AXI4-Stream): a beat is the values of the block.
        m_axis.values (out, `block` x the bits of `dtype`): the values, lane 0 first.

    Latency is `stages` cycles, interval 1. Source: docs/axis.md.

    Raises:
        ValueError: a parameter is not what it must be, or the format has no decoder.
    """

    def __init__(
        self,
        block: int | None = None,
        dtype: str = "fp32",
        align: int = 1,
        stages: int = 0,
        view: str = STRUCTURE,
        format: str = "axs6",
    ) -> None:
        fmt, lanes = block_format_of(format, block)
        values, beats = float_dtype(dtype, OUTPUT_DTYPES), beat_layout(lanes, fmt, align)
        steps, like = viewed(partial(packed_steps, fmt, lanes, values, align=align), view)
        decoder = Pipeline(steps, stages, like=like)
        given = StructLayout({"values": decoder.o.payload.shape()["values"].shape})
        super().__init__(decoder, beats, given)

    def elaborate(self, platform: Any) -> Module:
        """Connect the data."""
        m = Module()
        i, o = self.inner.i.payload.data, self.inner.o.payload.data
        self.connect_marks(m, o.error)
        if "reserved" in i.shape().members:
            _read(m, self.s_axis.tdata, i)
        else:
            m.d.comb += i.eq(self.s_axis.tdata)
        m.d.comb += self.m_axis.tdata.values.eq(o.values)
        return m


class AxisDot(Wrapper):
    """`Dot` on AXI4-Stream: packed blocks on `s_axis_a` and `s_axis_b` become FP32 on `m_axis`.

    The two are joined beat by beat, and `tlast` ends a vector; each result is a packet of one beat.
    Its `tuser` is set where a beat of the vector had `tuser`, a block that cannot be read or
    padding that is not zero, or where `tlast` came on one side alone, which ends the vector too.
    Such pairs of blocks count as 0. Scales of channels and tensors come in every beat; the result
    is multiplied by those of the last ones.

    Args:
        block, interleave, view, accumulator, format: those of `Dot`. A step of the accumulator
            must be one block.
        align: bytes that a beat of blocks is a multiple of; zeros follow a block.
        stages: ranks of registers beside the accumulator, from 0.

    Ports:
        s_axis_a (in, AXI4-Stream): a beat is the bytes of a packed block of a.
        s_axis_a.outer, s_axis_a.exponent, s_axis_a.scale, s_axis_a.shifts,
            s_axis_a.factor (in, the bits of each scale): codes of the scales that the format has.
        s_axis_a.codes (in, `block` x the bits of an element): the codes, lane 0 first.
        s_axis_a.mode, s_axis_a.reserved (in, 2 and 6 bits): header, in formats with modes.
        s_axis_a.payload (in, bytes): what follows the header, in place of codes.
        s_axis_a.unused, s_axis_a.padding (in, bits and bytes): what fills up the beat.
        s_axis_b (in, AXI4-Stream): a beat is the bytes of a packed block of b.
        s_axis_b.outer, s_axis_b.exponent, s_axis_b.scale, s_axis_b.shifts,
            s_axis_b.factor (in, the bits of each scale): codes of the scales.
        s_axis_b.codes (in, `block` x the bits of an element): the codes, lane 0 first.
        s_axis_b.mode, s_axis_b.reserved (in, 2 and 6 bits): header, in formats with modes.
        s_axis_b.payload (in, bytes): what follows the header, in place of codes.
        s_axis_b.unused, s_axis_b.padding (in, bits and bytes): what fills up the beat.
        m_axis (out, AXI4-Stream): a beat is the result of a vector.
        m_axis.value (out, 32 bits): the dot product in FP32.

    Latency is `stages` + `interleave` cycles from the last beats to the result, interval 1.
    Source: docs/axis.md.

    Raises:
        ValueError: a parameter is not what it must be, or there is no hardware for the formats.
    """

    def __init__(
        self,
        block: int | None = None,
        align: int = 1,
        stages: int = 0,
        interleave: int = 1,
        view: str = STRUCTURE,
        accumulator: str = DEFAULT_ACCUMULATOR,
        format: str = "axs6",
    ) -> None:
        parts = dot_parts(format, block, accumulator)
        pairs = PackedPairs(parts, marked=True)
        a, b = (In(AxiStream(beat_layout(pairs.lanes, x, align))) for x in pairs.formats)
        ports = {"s_axis_a": a, "s_axis_b": b, "m_axis": Out(AxiStream(fp32_layout))}
        super().__init__(Reduction(parts, stages, interleave, view, pairs), ports)

    def elaborate(self, platform: Any) -> Module:
        """Join the two sides."""
        m = Module()
        m.submodules.dot = dot = self.inner
        a, b, o = self.s_axis_a, self.s_axis_b, self.m_axis
        pair = dot.i.payload.data
        wrong = [a.tuser, b.tuser, a.tlast ^ b.tlast]
        for bus, given in ((a, pair.a), (b, pair.b)):
            names = bus.tdata.shape().members
            m.d.comb += [given[name].eq(bus.tdata[name]) for name in names if name != PADDING]
            wrong += [bus.tdata[PADDING].as_value().any()] if PADDING in names else []
        m.d.comb += [
            pair.error.eq(any_of(wrong)),
            dot.i.valid.eq(a.tvalid & b.tvalid),
            a.tready.eq(b.tvalid & dot.i.ready),
            b.tready.eq(a.tvalid & dot.i.ready),
            dot.i.payload.carry.last.eq(a.tlast | b.tlast),
            o.tvalid.eq(dot.o.valid),
            dot.o.ready.eq(o.tready),
            o.tdata.value.eq(dot.o.payload.value),
            o.tlast.eq(1),
            o.tuser.eq(dot.o.payload.error),
        ]
        return m


def _read(m: Module, tdata: data.View, packed: data.View) -> None:
    """Connect a block from a bus; with wrong padding it gets an invalid header."""
    wrong = [tdata[PADDING].as_value().any()] if PADDING in tdata.shape().members else []
    same = [name for name in packed.shape().members if name != "reserved"]
    m.d.comb += [
        *(packed[name].eq(tdata[name]) for name in same),
        packed.reserved.eq(any_of([tdata.reserved, *wrong])),
    ]
