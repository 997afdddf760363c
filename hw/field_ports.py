"""A unit with a port for each field of its payloads."""

from typing import Any

from amaranth.hdl import Module, Shape, Value
from amaranth.lib import wiring
from amaranth.lib.wiring import In, Out

from axs6.hw.core.layouts import Field, fields
from axs6.hw.core.pipeline import Wrapper


def port_of(field: Field) -> str:
    """Name of a field's port within its stream: `a_codes` for `a.codes`."""
    return field.name.replace(".", "_")


class FieldPorts(Wrapper):
    """A unit whose streams have a port for each field in place of `payload`.

    Element i of an array lies at bit i * width of its port. Handshake and timing are the unit's.

    Args:
        unit: a component with streams `i` and `o`.

    Ports:
        i (in, `valid`, `ready` and a port for each field): the unit's input stream.
        o (out, `valid`, `ready` and a port for each field): the unit's output stream.

    Latency and interval are the unit's. Source: docs/hardware.md.
    """

    def __init__(self, unit: Any) -> None:
        super().__init__(unit, {"i": In(_signature(unit.i)), "o": Out(_signature(unit.o))})

    def elaborate(self, platform: Any) -> Module:
        """Connect each port with its bits of the payload."""
        m = Module()
        m.submodules.inner = inner = self.inner
        m.d.comb += [
            inner.i.valid.eq(self.i.valid),
            self.i.ready.eq(inner.i.ready),
            self.o.valid.eq(inner.o.valid),
            inner.o.ready.eq(self.o.ready),
        ]
        m.d.comb += [part.eq(port) for part, port in _connections(inner.i, self.i)]
        m.d.comb += [port.eq(part) for part, port in _connections(inner.o, self.o)]
        return m


def _signature(stream: Any) -> wiring.Signature:
    ports = {
        port_of(field): Out(Shape(field.count * field.width, field.signed))
        for field in fields(stream.payload.shape())
    }
    return wiring.Signature({"valid": Out(1), "ready": In(1), **ports})


def _connections(stream: Any, outer: Any) -> list[tuple[Value, Value]]:
    """For each field its bits in the payload, and its port."""
    payload = Value.cast(stream.payload)
    return [
        (
            payload[field.offset : field.offset + field.count * field.width],
            getattr(outer, port_of(field)),
        )
        for field in fields(stream.payload.shape())
    ]
