"""Dot product of vectors of blocks, added up by an accumulator."""

from functools import partial
from typing import Any

from amaranth.hdl import Module
from amaranth.lib import data

from axs6.hw.core.layouts import last_layout
from axs6.hw.core.parameters import BLOCK_FORMS, DEFAULT_ACCUMULATOR, STRUCTURE, one_of
from axs6.hw.dot.accumulated import dot_parts
from axs6.hw.dot.packed import PackedPairs
from axs6.hw.dot.reduction import Reduction, ReductionUnit


class Dot(ReductionUnit):
    """Dot product of two vectors, given as a stream of block pairs with `last` on the final one.

    With `interleave` above 1 that many vectors take turns: item n belongs to vector n modulo
    `interleave`, and the adder gets as many ranks of registers. The arithmetic is that of
    `Reduction`. Packed blocks are those that `PackedPairs` reads; the result of a vector with any
    other has `error` set, and such pairs count as 0.

    The accumulator says how the products become a number. With another one than "fp32" an item
    has the lanes of its `reduction`, one block if it has none: a part of a block, with the scales
    of the block; or several blocks, whose scales are arrays. A scaled accumulator multiplies each
    sum that it promotes, and what is left at the end of a vector, by the scales of its last item.

    Scales of channels and tensors multiply the result. Dense items have the product of both in
    FP32, `outer`; packed ones have each in its block. Those of the last item count.

    Args:
        block: values in a block; that of the format by default.
        blocks: what comes in: "dense", scales and codes, or "packed", the bytes of blocks.
        stages: ranks of registers beside the accumulator, from 0.
        interleave: vectors that take turns, 1 to 14.
        view: "structure" or "behaviour"; see `BlockDot`.
        accumulator: a name or string as `axs6.golden.accumulator.accumulator` reads it.
        format: block format, or those of a and b joined by `x`.

    Ports:
        i (in, stream): an item is a step of a vector: a pair of blocks, as a rule.
        i.a.exponent, i.a.scale, i.a.shifts, i.a.factor, i.a.outer (in, the bits of each scale):
            codes of the scales of a, those that the format has; an array where there are several.
            `outer` is there in packed blocks alone.
        i.a.codes (in, lanes x the bits of an element): the codes of a, lane 0 first.
        i.a.mode, i.a.reserved (in, 2 and 6 bits): header of a packed block of a.
        i.a.payload (in, bytes): what follows the header, in place of codes.
        i.a.unused (in, bits): what fills up the last byte of a packed block of a.
        i.b.exponent, i.b.scale, i.b.shifts, i.b.factor, i.b.outer (in, the bits of each scale):
            the same of b.
        i.b.codes (in, lanes x the bits of an element): of b.
        i.b.mode, i.b.reserved (in, 2 and 6 bits): of b.
        i.b.payload (in, bytes): of b.
        i.b.unused (in, bits): of b.
        i.last (in, 1 bit): whether the item is the last of its vector.
        i.outer (in, 32 bits): the product of the scales of channels and tensors in FP32; with dense
            blocks of formats that have such scales.
        o (out, stream): an item is a result, one for each vector.
        o.value (out, 32 bits): the dot product in FP32.
        o.error (out, 1 bit): whether a block of the vector could not be read; for packed blocks.

    Latency is `stages` + `interleave` cycles from the last pair to the result, interval 1.
    Source: docs/format.md, "Vectors longer than a block", and docs/formats.md.

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
        one_of("blocks", blocks, BLOCK_FORMS)
        parts = dot_parts(format, block, accumulator)
        packed = PackedPairs(parts) if blocks == "packed" else None
        make = partial(Reduction, parts, stages, interleave, view, packed)
        pair, outer = (packed.layout, {}) if packed else (parts.pair, parts.outer.members)
        items = data.StructLayout({**pair.members, **last_layout.members, **outer})
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
