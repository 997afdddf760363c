"""A unit on AXI4-Stream with `tkeep`."""

from typing import Any

from amaranth.hdl import Cat, Module, Value
from amaranth.lib.wiring import In

from axs6.hw.axi_stream import AxiStream
from axs6.hw.core.pipeline import Wrapper


class KeepPorts(Wrapper):
    """A unit whose AXI4-Streams have `tkeep`: a byte that does not count is taken as 0.

    A partial beat of values thus ends in zeros. All bytes of the beats that the unit gives count.
    Handshake and timing are the unit's.

    Args:
        unit: a component whose ports are AXI4-Streams.

    Ports:
        s_axis (in, AXI4-Stream with `tkeep`): the bus of a unit that takes one.
        s_axis_a, s_axis_b (in, AXI4-Stream with `tkeep`): the buses of a unit that takes two.
        m_axis (out, AXI4-Stream with `tkeep`): the bus of what the unit gives.

    Latency and interval are the unit's. Source: AMBA AXI-Stream Protocol Specification
    (IHI 0051B), byte qualifiers; docs/axis.md.
    """

    def __init__(self, unit: Any) -> None:
        ports = {
            name: member.flow(AxiStream(getattr(unit, name).tdata.shape(), keep=True))
            for name, member in unit.signature.members.items()
        }
        super().__init__(unit, ports)

    def elaborate(self, platform: Any) -> Module:
        """Connect the buses, and mask the bytes of those that the unit takes."""
        m = Module()
        m.submodules.inner = inner = self.inner
        for name, member in self.signature.members.items():
            own, bus = getattr(self, name), getattr(inner, name)
            slave = member.flow == In
            source, target = (own, bus) if slave else (bus, own)
            m.d.comb += [
                source.tready.eq(target.tready),
                *(getattr(target, s).eq(getattr(source, s)) for s in ("tvalid", "tlast", "tuser")),
            ]
            data = Value.cast(source.tdata)
            if slave:
                data &= Cat(bit.replicate(8) for bit in own.tkeep)
            else:
                m.d.comb += own.tkeep.eq(~0)
            m.d.comb += Value.cast(target.tdata).eq(data)
        return m
