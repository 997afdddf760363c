"""Units in a design of your own: two block dot products side by side, their sums added.

Writes the Verilog of the design to stdout.
"""

import sys
from typing import Any

from amaranth.hdl import Module, signed
from amaranth.lib import data, stream, wiring
from amaranth.lib.wiring import In, Out

from axs6.hw.core.layouts import pair_layout
from axs6.hw.dot.block_dot import BlockDot
from axs6.hw.dot.shape import DotShape
from axs6.hw.verilog import convert

BLOCK = 16


class PairOfDots(wiring.Component):
    """Sums of two block dot products whose blocks share their exponents."""

    def __init__(self, stages: int) -> None:
        self._dots = [BlockDot(BLOCK, stages) for _ in range(2)]
        self.latency = self._dots[0].latency
        pairs = data.ArrayLayout(pair_layout(BLOCK), 2)
        total = data.StructLayout({"sum": signed(DotShape.of("axs6", BLOCK).width + 1)})
        super().__init__(
            {"i": In(stream.Signature(pairs)), "o": Out(stream.Signature(total))},
        )

    def elaborate(self, platform: Any) -> Module:
        m = Module()
        for index, dot in enumerate(self._dots):
            m.submodules[f"dot{index}"] = dot
            m.d.comb += [
                dot.i.payload.eq(self.i.payload[index]),
                dot.i.valid.eq(self.i.valid),
                dot.o.ready.eq(self.o.ready),
            ]
        first, second = (dot.o for dot in self._dots)
        m.d.comb += [
            # The two are alike and see the same handshakes, so they move in step.
            self.i.ready.eq(self._dots[0].i.ready),
            self.o.valid.eq(first.valid),
            self.o.payload.sum.eq(first.payload.sum + second.payload.sum),
        ]
        return m


if __name__ == "__main__":
    sys.stdout.write(convert(PairOfDots(stages=3), "pair_of_dots"))
