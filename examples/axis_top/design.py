"""A complete design on AXI4-Stream: two encoders and a dot product.

A packet of values on `s_axis_a` and one on `s_axis_b` are two vectors; `m_axis` gives their dot
product.
"""

from typing import Any

from amaranth.hdl import Module
from amaranth.lib import wiring
from amaranth.lib.wiring import connect, flipped

from axs6.hw.axis import AxisDot, AxisEncoder
from axs6.hw.verilog import LINT, Generated, convert, describe_streams

NAME = "axis_top"
BUSES = ("s_axis_a", "s_axis_b", "m_axis")
SIGNALS = ("tvalid", "tready", "tlast")

FOLDER = "AXIS_TOP_FOLDER"
"""Environment variable with the folder of the files that the test bench reads and writes."""

DATA, HANDSHAKES = "data.npz", "handshakes.npz"


class AxisTop(wiring.Component):
    """Dot products of vectors of FP32 values, computed in AXS-6."""

    def __init__(self, block: int, encoder_stages: int = 3, dot_stages: int = 6) -> None:
        self._a, self._b = (AxisEncoder(block, stages=encoder_stages) for _ in range(2))
        self._dot = AxisDot(block, stages=dot_stages)
        super().__init__(
            {
                "s_axis_a": self._a.signature.members["s_axis"],
                "s_axis_b": self._b.signature.members["s_axis"],
                "m_axis": self._dot.signature.members["m_axis"],
            }
        )

    def elaborate(self, platform: Any) -> Module:
        m = Module()
        m.submodules.encoder_a = self._a
        m.submodules.encoder_b = self._b
        m.submodules.dot = self._dot
        connect(m, flipped(self.s_axis_a), self._a.s_axis)
        connect(m, flipped(self.s_axis_b), self._b.s_axis)
        connect(m, self._a.m_axis, self._dot.s_axis_a)
        connect(m, self._b.m_axis, self._dot.s_axis_b)
        connect(m, self._dot.m_axis, flipped(self.m_axis))
        return m


def generated(block: int) -> Generated:
    """Its Verilog, and what the simulator's launcher must know of its ports."""
    top = AxisTop(block)
    manifest = {"clock": "clk", "reset": "rst", "streams": describe_streams(top)}
    return Generated(NAME, LINT + convert(top, NAME), manifest)
