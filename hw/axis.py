"""Encoder, decoder and dot product on AXI4-Stream, blocks in their packed bytes."""

import inspect
from collections.abc import Callable, Sequence
from functools import partial
from typing import Any

from amaranth.hdl import Cat, Const, Module, Mux, Signal, Value
from amaranth.lib import data
from amaranth.lib.fifo import SyncFIFO
from amaranth.lib.wiring import In, Out

from axs6.golden.formats import AXS6, BlockFormat, Mode, name_of
from axs6.golden.spec import DENSE_CODE, DETERMINISTIC, OUTPUT_DTYPES, check_rounding
from axs6.hw.axi_stream import AxiStream, beat_layout, marks_layout
from axs6.hw.core.layouts import block_layout, fp32_layout
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
from axs6.hw.decoder.packed import Check
from axs6.hw.dot.dot import Dot
from axs6.hw.encoder.encoder import Encoder


def of_format(unit: str, component: Callable[..., Any], fmt: BlockFormat) -> Callable[..., Any]:
    """What makes the component of a unit in a block format.

    Raises:
        ValueError: the unit takes no formats, and this is not the default one.
    """
    if "format" in inspect.signature(component).parameters:
        return partial(component, format=name_of(fmt))
    if fmt.has_modes and fmt.element == DENSE_CODE:
        return component
    raise ValueError(f"{unit} takes {name_of(AXS6)} alone, not {name_of(fmt)}")


class AxisPipeline(Wrapper):
    """A pipeline between the AXI4-Streams `s_axis` and `m_axis`, whose marks travel with the data.

    Args:
        pipeline: what is between them.
        i, o: layouts of `tdata` on the two buses.
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
        how = check_rounding(rounding, DETERMINISTIC)
        make = of_format("encoder", Encoder, fmt)
        encoder = make(lanes, dtype, how, mode, stages=stages, view=view)
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
            _read(m, self.s_axis.tdata, i, [])
        else:
            m.d.comb += i.eq(self.s_axis.tdata)
        m.d.comb += self.m_axis.tdata.values.eq(o.values)
        return m


class AxisDot(Wrapper):
    """`Dot` on AXI4-Stream: packed blocks on `s_axis_a` and `s_axis_b` become FP32 on `m_axis`.

    The two are joined beat by beat, and `tlast` ends a vector; each result is a packet of one beat.
    Its `tuser` is set where a beat of the vector had `tuser`, a block that cannot be read or
    padding that is not zero, or where `tlast` came on one side alone, which ends the vector too.
    Such pairs of blocks count as 0.

    Args:
        block, interleave, view, accumulator, format: those of `Dot`. A step of the accumulator
            must be one block.
        align: bytes that a beat of blocks is a multiple of; zeros follow a block.
        stages: ranks of registers beside the accumulator, from 0.

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
        self._formats, lanes = dot_formats(format, block)
        self._lanes, self._align = lanes, align
        a, b = (In(AxiStream(beat_layout(lanes, x, align))) for x in self._formats)
        ports = {"s_axis_a": a, "s_axis_b": b, "m_axis": Out(AxiStream(fp32_layout))}
        self._marked = self._formats[0].has_modes
        blocks = "packed" if self._marked else "dense"
        dot = Dot(lanes, blocks, stages, interleave, view, accumulator, format)
        if not self._marked and dot.i.payload.a.shape() != block_layout(lanes, self._formats[0]):
            raise ValueError(f"axis_dot needs steps of a block, which {accumulator} has not")
        self._turns, self._depth = interleave, 2 * (stages + interleave) + 8
        super().__init__(dot, ports)

    @property
    def flip_flops(self) -> int:
        """Registers of the unit."""
        if self._marked:
            return super().flip_flops
        pointers = 2 * (self._depth - 1).bit_length() + self._depth.bit_length()
        return super().flip_flops + self._turns + self._depth + pointers

    def elaborate(self, platform: Any) -> Module:
        """Join the two sides."""
        m = Module()
        m.submodules.dot = dot = self.inner
        a, b, o = self.s_axis_a, self.s_axis_b, self.m_axis
        i = dot.i.payload
        if self._marked:
            _read(m, a.tdata, i.a, [a.tuser, a.tlast ^ b.tlast])
            _read(m, b.tdata, i.b, [b.tuser])
            error = dot.o.payload.error
        else:
            error = self._checked(m)
        m.d.comb += [
            dot.i.valid.eq(a.tvalid & b.tvalid),
            a.tready.eq(b.tvalid & dot.i.ready),
            b.tready.eq(a.tvalid & dot.i.ready),
            i.last.eq(a.tlast | b.tlast),
            o.tvalid.eq(dot.o.valid),
            dot.o.ready.eq(o.tready),
            o.tdata.value.eq(dot.o.payload.value),
            o.tlast.eq(1),
            o.tuser.eq(error),
        ]
        return m

    def _checked(self, m: Module) -> Value:
        """Connect checked blocks, zeros for a wrong pair; the error of the vector that comes out.

        The errors of vectors wait in a queue, which has room for as many as the unit holds.
        """
        dot, a, b = self.inner, self.s_axis_a, self.s_axis_b
        wrong = Signal()
        errors = [a.tuser, b.tuser, a.tlast ^ b.tlast]
        sides = zip("ab", self._formats, (a, b), (dot.i.payload.a, dot.i.payload.b), strict=True)
        for name, fmt, bus, given in sides:
            m.submodules[f"check_{name}"] = check = Check(fmt, self._lanes, self._align)
            errors.append(check.o.error)
            m.d.comb += check.i.eq(bus.tdata)
            for field in given.shape().members:
                m.d.comb += given[field].eq(Mux(wrong, 0, Value.cast(check.o[field])))
        m.submodules.errors = queue = SyncFIFO(width=1, depth=self._depth)
        turns, taken = Signal(self._turns), Signal()
        seen, last = turns[0] | wrong, dot.i.payload.last
        m.d.comb += [
            wrong.eq(any_of(errors)),
            taken.eq(dot.i.valid & dot.i.ready),
            queue.w_en.eq(taken & last),
            queue.w_data.eq(seen),
            queue.r_en.eq(dot.o.valid & dot.o.ready),
        ]
        with m.If(taken):
            m.d.sync += turns.eq(Cat(turns[1:], seen & ~last))
        return queue.r_data


def dot_formats(format: str, block: int | None) -> tuple[list[BlockFormat], int]:
    """The formats of both sides of a dot product on a bus, and its lanes.

    Raises:
        ValueError: there is no such format, or its blocks have no form on a bus of their own.
    """
    parts = format.split(",")
    sized = [block_format_of(part, block) for part in (parts[0], parts[-1])]
    formats = [fmt for fmt, _ in sized]
    for fmt in formats:
        if fmt.outer:
            raise ValueError(f"axis_dot has no input for the outer scale of {name_of(fmt)}")
        if fmt.has_modes and (len({*formats}) > 1 or fmt.element != DENSE_CODE):
            raise ValueError(f"axis_dot takes {name_of(AXS6)} with itself alone, not {format}")
    return formats, sized[0][1]


def _read(m: Module, tdata: data.View, packed: data.View, wrong: Sequence[Value]) -> None:
    """Connect a block from a bus; one that is wrong gets a header that no block may have."""
    if "padding" in tdata.shape().members:
        wrong = [*wrong, tdata.padding.as_value().any()]
    same = [name for name in packed.shape().members if name != "reserved"]
    m.d.comb += [
        *(packed[name].eq(tdata[name]) for name in same),
        packed.reserved.eq(any_of([tdata.reserved, *wrong])),
    ]
