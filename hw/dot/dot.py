"""Dot product of vectors of blocks, added up by an accumulator."""

from functools import partial
from typing import Any

from amaranth.hdl import Module
from amaranth.lib import data

from axs6.golden.formats import AXS6, name_of
from axs6.hw.core.layouts import last_layout, pair_layout
from axs6.hw.core.parameters import BLOCK_FORMS, DEFAULT_ACCUMULATOR, STRUCTURE, one_of
from axs6.hw.dot.accumulated import AccumulatedReduction, dot_terms
from axs6.hw.dot.reduction import Reduction, ReductionUnit, carry_layout
from axs6.hw.dot.shape import Shape
from axs6.hw.dot.terms import step_layout

AXS6_NAME = name_of(AXS6)


class Dot(ReductionUnit):
    """Dot product of two vectors, given as a stream of block pairs with `last` on the final one.

    With `interleave` above 1 that many vectors take turns: item n belongs to vector n modulo
    `interleave`, and the adder gets as many ranks of registers. The arithmetic is that of
    `Reduction`. Packed blocks may be dense or sparse; the result of a vector with any other has
    `error` set, and such blocks count as 0.

    The accumulator says how the products become a number. With another one than "fp32" an item
    has the lanes of its `reduction`, one block if it has none: a part of a block, with the scales
    of the block; or several blocks, whose scales are arrays. Its arithmetic is that of
    `AccumulatedReduction`.

    Args:
        block: values in a block; that of the format by default.
        blocks: what comes in: "dense", scales and codes, or "packed", the bytes of AXS-6 blocks.
        stages: ranks of registers beside the accumulator, from 0.
        interleave: vectors that take turns, 1 to 14.
        view: "structure" or "behaviour"; see `BlockDot`.
        accumulator: a name or string as `axs6.golden.accumulator.accumulator` reads it.
        format: block format, or those of a and b with a comma between.

    Latency is `stages` + `interleave` cycles from the last pair to the result, interval 1.

    Raises:
        ValueError: a parameter is not what it must be, or there is no hardware for the formats and
            the accumulator.
    """

    def __init__(
        self,
        block: int | None = None,
        blocks: str = "dense",
        stages: int = 0,
        interleave: int = 1,
        view: str = STRUCTURE,
        accumulator: str = DEFAULT_ACCUMULATOR,
        format: str = "axs6",
    ) -> None:
        packed = one_of("blocks", blocks, BLOCK_FORMS) == "packed"
        terms = dot_terms(format, block, accumulator)
        if terms is None:
            shape = Shape.of(format, block)
            if packed and not (shape.a.has_modes and shape.b.has_modes):
                raise ValueError(f"packed blocks are for {AXS6_NAME}, not {format}")
            make: Any = partial(Reduction, shape, stages, interleave, view, packed)
            pairs = pair_layout(shape.block, packed=True) if packed else shape.pair
            carry = carry_layout(shape)
        else:
            if packed:
                raise ValueError(f"packed blocks are for {AXS6_NAME} and {DEFAULT_ACCUMULATOR}")
            make = partial(AccumulatedReduction, terms, stages, interleave, view)
            pairs, carry = step_layout(terms), last_layout
        items = data.StructLayout({**pairs.members, **carry.members})
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
        if "outer" in self.i.payload.shape().members:
            m.d.comb += items[0].carry.outer.eq(self.i.payload.outer)
        return m
