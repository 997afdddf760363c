"""AXI4-Stream: the signals of a bus, and the data of its beats."""

from amaranth.hdl import unsigned
from amaranth.lib import data, wiring
from amaranth.lib.wiring import In, Out

from axs6.golden.formats import BlockFormat
from axs6.golden.pack import packed_bytes
from axs6.hw.core.layouts import filled_layout, packed_layout
from axs6.hw.core.structures import ArrayLayout, StructLayout


class AxiStream(wiring.Signature):
    """Signals of an AXI4-Stream, as its master has them.

    Args:
        tdata: layout of the data, byte 0 in the lowest bits.
        keep: whether there is a `tkeep`.

    Ports:
        tdata (out, `tdata`): the data of a beat.
        tvalid (out, 1 bit): whether there is a beat.
        tready (in, 1 bit): whether the slave takes it.
        tlast (out, 1 bit): whether the beat ends a packet.
        tuser (out, 1 bit): error flag: the data of this beat are invalid.
        tkeep (out, a bit for each byte of `tdata`): which bytes count.

    Source: docs/axis.md.
    """

    def __init__(self, tdata: data.StructLayout, *, keep: bool = False) -> None:
        self.tdata = tdata
        super().__init__(
            {
                "tdata": Out(tdata),
                "tvalid": Out(1),
                "tready": In(1),
                "tlast": Out(1),
                "tuser": Out(1),
                **({"tkeep": Out(tdata.size // 8)} if keep else {}),
            }
        )


marks_layout = StructLayout({"last": 1, "user": 1})
"""Sideband of a beat."""


def aligned_layout(block: int, align: int) -> data.StructLayout:
    """A packed block, and zeros that make its length a multiple of `align` bytes.

    Raises:
        ValueError: `align` is not an integer from 1 to 4096, or the block size is unknown.
    """
    padding = packed_bytes(block=block, align=align) - packed_bytes(block=block)
    more = {"padding": ArrayLayout(unsigned(8), padding)} if padding else {}
    return StructLayout({**packed_layout(block).members, **more})


def beat_layout(block: int, fmt: BlockFormat, align: int) -> data.StructLayout:
    """A packed block of a format, and zeros that make its length a multiple of `align` bytes.

    Raises:
        ValueError: `align` is not an integer from 1 to 4096.
    """
    return aligned_layout(block, align) if fmt.has_modes else filled_layout(block, fmt, align)
