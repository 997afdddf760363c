"""Dot product of vectors of blocks, accumulated in FP32."""

from functools import partial
from typing import Any

from amaranth.hdl import Module

from axs6.hw.core.layouts import last_layout, pair_layout
from axs6.hw.core.parameters import BLOCK_FORMS, STRUCTURE, one_of
from axs6.hw.core.structures import StructLayout
from axs6.hw.dot.reduction import Reduction, ReductionUnit


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
        view: "structure" or "behaviour"; see `BlockDot`.

    Latency is `stages` + `interleave` cycles from the last pair to the result, interval 1.

    Raises:
        ValueError: a parameter is not what it must be.
    """

    def __init__(
        self,
        block: int = 32,
        blocks: str = "dense",
        stages: int = 0,
        interleave: int = 1,
        view: str = STRUCTURE,
    ) -> None:
        packed = one_of("blocks", blocks, BLOCK_FORMS) == "packed"
        make = partial(Reduction, block, stages, interleave, view, packed)
        pairs = pair_layout(block, packed=packed).members
        items = StructLayout({**pairs, **last_layout.members})
        super().__init__(make, 1, items, make().o.payload.shape())

    def elaborate(self, platform: Any) -> Module:
        """Connect the one lane."""
        m = Module()
        items, results = self.add_reductions(m, platform)
        m.d.comb += [
            items[0].data.a.eq(self.i.payload.a),
            items[0].data.b.eq(self.i.payload.b),
            self.o.payload.eq(results[0]),
        ]
        return m
