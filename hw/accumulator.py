"""Accumulator: adds a stream of FP32 terms in order, one vector after the other."""

from typing import Any

from amaranth.hdl import Module, Mux, Signal
from amaranth.lib import data, stream, wiring
from amaranth.lib.wiring import In, Out

from axs6.golden.spec import FP32
from axs6.hw.fp32 import addition_steps
from axs6.hw.layouts import fp32_layout
from axs6.hw.pipeline import cascade

last_layout = data.StructLayout({"last": 1})
"""Marks the last item of a vector."""


class Accumulator(wiring.Component):
    """Adds terms to an FP32 accumulator that starts each vector at +0.

    `i` carries an FP32 term and `last`; `o` gives the total of each vector, `latency` cycles
    after its last term, in an output register. The adder is combinational, so the accumulator
    takes a term in every cycle, except while a total waits to be taken.
    """

    latency = 1
    interval = 1

    def __init__(self) -> None:
        terms = data.StructLayout({"data": fp32_layout, "carry": last_layout})
        super().__init__(
            {"i": In(stream.Signature(terms)), "o": Out(stream.Signature(fp32_layout))}
        )

    def elaborate(self, platform: Any) -> Module:
        """Build the adder, the accumulator and the output register."""
        m = Module()
        first = Signal(init=1)
        total = Signal(FP32.width, reset_less=True)
        waiting = Signal()
        operands = Signal(data.StructLayout({"a": FP32.width, "b": FP32.width}))
        m.d.comb += [operands.a.eq(Mux(first, 0, total)), operands.b.eq(self.i.payload.data.value)]
        added = cascade(m, addition_steps(), operands)
        m.d.comb += [
            self.i.ready.eq(~waiting | self.o.ready),
            self.o.valid.eq(waiting),
            self.o.payload.value.eq(total),
        ]
        with m.If(self.i.ready):
            m.d.sync += waiting.eq(self.i.valid & self.i.payload.carry.last)
            with m.If(self.i.valid):
                m.d.sync += [total.eq(added.value), first.eq(self.i.payload.carry.last)]
        return m
