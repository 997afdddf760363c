"""Dot product of vectors of blocks, accumulated in FP32."""

from typing import Any

from amaranth.hdl import Module
from amaranth.lib import data

from axs6.hw.layouts import last_layout, pair_layout
from axs6.hw.parameters import BLOCK_FORMS, one_of
from axs6.hw.reduction import Reduction, ReductionUnit


class Dot(ReductionUnit):
    """Dot product of two vectors, given as a stream of block pairs with `last` on the final one.

    With `interleave` above 1 that many vectors take turns: item n belongs to vector n modulo
    `interleave`, and the adder gets as many ranks of registers. The arithmetic is that of
    `Reduction`. Packed blocks may be dense or sparse; the result of a vector with any other has
    `error` set, and such blocks count as 0.

    Args:
        block: values in a block: 8, 16 or 32.
        blocks: what comes in: "dense", exponents and codes, or "packed", the bytes of blocks.
        stages: ranks of registers beside the accumulator, from 0.
        interleave: vectors that take turns, 1 to 14.

    Latency is `stages` + `interleave` cycles from the last pair to the result, interval 1.
    """

    def __init__(
        self, block: int = 32, blocks: str = "dense", stages: int = 0, interleave: int = 1
    ) -> None:
        packed = one_of("blocks", blocks, BLOCK_FORMS) == "packed"
        reduction = Reduction(block, 1, stages, interleave, packed)
        pairs = pair_layout(block, packed=packed).members
        items = data.StructLayout({**pairs, **last_layout.members})
        super().__init__(reduction, items, reduction.o.payload.shape().elem_shape)

    def elaborate(self, platform: Any) -> Module:
        """Connect the one lane."""
        m = Module()
        self.handshake(m)
        pair = self.inner.i.payload.data[0]
        m.d.comb += [
            pair.a.eq(self.i.payload.a),
            pair.b.eq(self.i.payload.b),
            self.o.payload.eq(self.inner.o.payload[0]),
        ]
        return m
