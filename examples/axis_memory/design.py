"""A complete design: a memory, readers as of a DMA engine, encoders and a dot product.

Words of the memory hold `block` FP32 values. A command names two vectors in it; two readers send
them as packets on AXI4-Stream, encoders make blocks of them, and `m_axis` gives their dot product.
"""

from typing import Any

from amaranth.hdl import Cat, Module, Signal, unsigned
from amaranth.lib import stream, wiring
from amaranth.lib.memory import Memory
from amaranth.lib.wiring import In, Out, connect, flipped

from axs6.hw.axi_stream import AxiStream
from axs6.hw.axis import AxisDot, AxisEncoder
from axs6.hw.core.structures import ArrayLayout, StructLayout
from axs6.hw.keep_ports import KeepPorts
from axs6.hw.verilog import LINT, Generated, convert, describe_streams

NAME = "axis_memory"

WORDS = 256
"""Words of the memory."""

FOLDER = "AXIS_MEMORY_FOLDER"
"""Environment variable with the folder of the file that the test bench reads."""

DATA = "data.npz"

ADDRESS = unsigned((WORDS - 1).bit_length())
LENGTH = unsigned(16)


def word_layout(block: int) -> StructLayout:
    """A word of the memory, and the data of a beat."""
    return StructLayout({"values": ArrayLayout(unsigned(32), block)})


class Reader(wiring.Component):
    """Reads vectors from a memory, a word in each cycle, and sends each as a packet.

    In the last beat of a vector, `tkeep` is 0 for the values behind its end.

    Args:
        block: values of a word.

    Ports:
        command (in, stream of `address` and `length`): the first word of a vector, and its number
            of values, which is not 0.
        address, enable (out), data (in): the memory's read port, with data in the next cycle.
        m_axis (out, AXI4-Stream with `tkeep`): the values.
    """

    def __init__(self, block: int) -> None:
        self._block = block
        super().__init__(
            {
                "command": In(
                    stream.Signature(StructLayout({"address": ADDRESS, "length": LENGTH}))
                ),
                "address": Out(ADDRESS),
                "enable": Out(1),
                "data": In(word_layout(block)),
                "m_axis": Out(AxiStream(word_layout(block), keep=True)),
            }
        )

    def elaborate(self, platform: Any) -> Module:
        m = Module()
        beat, left = self.m_axis, Signal(LENGTH)
        last = left <= self._block
        # The memory's output is a stage of the pipeline, which holds while a beat waits.
        m.d.comb += [
            self.enable.eq(~beat.tvalid | beat.tready),
            self.command.ready.eq(left == 0),
            beat.tdata.eq(self.data),
        ]
        with m.If(self.enable):
            keep = Cat((left > lane).replicate(4) for lane in range(self._block))
            m.d.sync += [beat.tvalid.eq(left != 0), beat.tlast.eq(last), beat.tkeep.eq(keep)]
            with m.If(left != 0):
                m.d.sync += [
                    self.address.eq(self.address + 1),
                    left.eq(left - self._block),
                ]
                with m.If(last):
                    m.d.sync += left.eq(0)
        with m.If(self.command.valid & self.command.ready):
            m.d.sync += [
                self.address.eq(self.command.payload.address),
                left.eq(self.command.payload.length),
            ]
        return m


class AxisMemory(wiring.Component):
    """Dot products of vectors in a memory, computed in a block format.

    Args:
        block: values of a block and of a word.
        format: block format.

    Raises:
        ValueError: the format has a scale of the tensor or channel, which the memory does not hold.

    Ports:
        write (in, stream of `address` and `values`): words to write, one per cycle.
        command (in, stream of `a`, `b` and `length`): the first words of two vectors, and how many
            values each has, which is not 0.
        m_axis (out, AXI4-Stream): a dot product in FP32 for each command.
    """

    def __init__(self, block: int, format: str) -> None:
        self._readers = Reader(block), Reader(block)
        self._encoders = tuple(
            KeepPorts(AxisEncoder(block, stages=3, format=format)) for _ in range(2)
        )
        if word_layout(block).size != self._encoders[0].s_axis.tdata.shape().size:
            raise ValueError(f"format must have no scale of tensors or channels, unlike {format}")
        self._dot = AxisDot(block, stages=6, format=format)
        word = word_layout(block)
        self._memory = Memory(shape=word, depth=WORDS, init=[])
        written = StructLayout({"address": ADDRESS, **word.members})
        vectors = StructLayout({"a": ADDRESS, "b": ADDRESS, "length": LENGTH})
        super().__init__(
            {
                "write": In(stream.Signature(written)),
                "command": In(stream.Signature(vectors)),
                "m_axis": self._dot.signature.members["m_axis"],
            }
        )

    def elaborate(self, platform: Any) -> Module:
        m = Module()
        m.submodules.memory = memory = self._memory
        m.submodules.dot = dot = self._dot
        port = memory.write_port()
        m.d.comb += [
            self.write.ready.eq(1),
            port.en.eq(self.write.valid),
            port.addr.eq(self.write.payload.address),
            port.data.values.eq(self.write.payload.values),
        ]
        both_ready = self._readers[0].command.ready & self._readers[1].command.ready
        m.d.comb += self.command.ready.eq(both_ready)
        sides = zip("ab", self._readers, self._encoders, strict=True)
        for side, reader, encoder in sides:
            m.submodules[f"reader_{side}"] = reader
            m.submodules[f"encoder_{side}"] = encoder
            read = memory.read_port()
            m.d.comb += [
                read.addr.eq(reader.address),
                read.en.eq(reader.enable),
                reader.data.eq(read.data),
                reader.command.valid.eq(self.command.valid & both_ready),
                reader.command.payload.address.eq(self.command.payload[side]),
                reader.command.payload.length.eq(self.command.payload.length),
            ]
            connect(m, reader.m_axis, encoder.s_axis)
            bus = getattr(dot, f"s_axis_{side}")
            m.d.comb += [
                getattr(bus, name).eq(getattr(encoder.m_axis, name))
                for name in ("tdata", "tvalid", "tlast", "tuser")
            ]
            m.d.comb += encoder.m_axis.tready.eq(bus.tready)
        connect(m, dot.m_axis, flipped(self.m_axis))
        return m


def generated(block: int, format: str) -> Generated:
    """Its Verilog, and what the simulator's launcher must know of its ports."""
    top = AxisMemory(block, format)
    manifest = {"clock": "clk", "reset": "rst", "streams": describe_streams(top)}
    return Generated(NAME, LINT + convert(top, NAME), manifest)
