"""Dot product of vectors of blocks, accumulated in FP32."""

from typing import Any

from amaranth.hdl import Module
from amaranth.lib import data

from axs6.hw.layouts import fp32_layout, last_layout, pair_layout
from axs6.hw.reduction import Reduction, ReductionUnit


class Dot(ReductionUnit):
    """Dot product of two vectors, given as a stream of block pairs with `last` on the final one.

    With `interleave` above 1 that many vectors take turns: item n belongs to vector n modulo
    `interleave`, and the adder gets as many ranks of registers. The arithmetic is that of
    `Reduction`.

    Args:
        block: values in a block: 8, 16 or 32.
        stages: ranks of registers beside the accumulator, from 0.
        interleave: vectors that take turns, 1 to 14.

    Latency is `stages` + `interleave` cycles from the last pair to the result, interval 1.
    """

    def __init__(self, block: int = 32, stages: int = 0, interleave: int = 1) -> None:
        reduction = Reduction(block, 1, stages, interleave)
        items = data.StructLayout({**pair_layout(block).members, **last_layout.members})
        super().__init__(reduction, items, fp32_layout)

    def elaborate(self, platform: Any) -> Module:
        """Connect the one lane."""
        m = Module()
        self.handshake(m)
        pair = self.reduction.i.payload.data[0]
        m.d.comb += [
            pair.a.eq(self.i.payload.a),
            pair.b.eq(self.i.payload.b),
            self.o.payload.eq(self.reduction.o.payload[0]),
        ]
        return m
