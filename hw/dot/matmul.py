"""Matrix product tile: R x C dot products side by side, each of a row and a column."""

from functools import partial
from typing import Any

from amaranth.hdl import Module, unsigned

from axs6.golden.arguments import check_integer
from axs6.golden.formats import FP32
from axs6.hw.core.layouts import last_layout, many_layout, plural
from axs6.hw.core.parameters import DEFAULT_ACCUMULATOR, STRUCTURE
from axs6.hw.core.structures import ArrayLayout, StructLayout
from axs6.hw.dot.accumulated import dot_parts
from axs6.hw.dot.reduction import Reduction, ReductionUnit

MOST_SIDE = 64
"""Rows and columns that a tile may have: more lanes than 64 x 64 take hours to generate."""


class Matmul(ReductionUnit):
    """An output-stationary tile: each cycle takes a block of R rows of A and of C columns of B.

    Output (r, c) of a tile is the dot product of row r and column c, given as a stream of blocks
    with `last` on the final ones; its arithmetic is that of `Dot` with the same accumulator, and so
    is what an item has of each row and column. `interleave` tiles take turns, so that the
    accumulators may have as many ranks of registers: item n belongs to tile n modulo `interleave`.
    The order of additions within an output is the order of its items.

    Args:
        block: values in a block; the format's own by default.
        rows: rows of A in a tile, R, 1 to 64.
        columns: columns of B in a tile, C, 1 to 64.
        stages: ranks of registers beside the accumulators, from 0.
        interleave: tiles that take turns, 1 to 14.
        view: "structure" or "behaviour"; see `BlockDot`.
        accumulator: a name or string as `axs6.golden.accumulator.accumulator` reads it.
        format: block format, or two of the same groups joined by `x`.

    Ports:
        i (in, stream): an item is a step of R rows of A and C columns of B.
        i.a.exponents, i.a.scales, i.a.shifts, i.a.factors (in, R x the bits of each scale): codes
            of the scales of the rows' blocks, those that the format has.
        i.a.codes (in, R x lanes x the bits of an element): the codes of the rows, lane 0 first.
        i.b.exponents, i.b.scales, i.b.shifts, i.b.factors (in, C x the bits of each scale): of the
            columns.
        i.b.codes (in, C x lanes x the bits of an element): of the columns.
        i.last (in, 1 bit): whether the item is the last of its tile.
        i.outer (in, R x C x 32 bits): for each output the product of the scales of channels and
            tensors in FP32, in formats that have such scales.
        o (out, stream): an item is a tile of outputs.
        o.values (out, R x C x 32 bits): the outputs in FP32, row by row.

    Latency is `stages` + `interleave` cycles from the last blocks to the results, interval 1.
    Source: docs/format.md, "Vectors longer than a block", and docs/hardware.md.
    An (M, K) by (K, N) product has T = ceil(M / R) * ceil(N / C) tiles and takes
    ceil(T / I) * I * ceil(K / step) + latency cycles with I = interleave; a step has the lanes of
    an item, a block unless the accumulator says otherwise. The utilisation is
    M * N * K / (cycles * R * C * step).

    Raises:
        ValueError: a parameter is not what it must be, or there is no hardware for the formats and
            the accumulator.
    """

    def __init__(
        self,
        block: int | None = None,
        rows: int = 4,
        columns: int = 4,
        stages: int = 0,
        interleave: int = 4,
        view: str = STRUCTURE,
        accumulator: str = DEFAULT_ACCUMULATOR,
        format: str = "axs6",
    ) -> None:
        parts = dot_parts(format, block, accumulator)
        self._rows = check_integer("rows", rows, 1, MOST_SIDE)
        self._columns = check_integer("columns", columns, 1, MOST_SIDE)
        make = partial(Reduction, parts, stages, interleave, view)
        sides = {
            side: many_layout(parts.pair[side].shape, count)
            for side, count in (("a", self._rows), ("b", self._columns))
        }
        row = ArrayLayout(unsigned(FP32.width), columns)
        outer = {"outer": ArrayLayout(row, rows)} if parts.scaled else {}
        items = StructLayout({**sides, **last_layout.members, **outer})
        values = StructLayout({"values": ArrayLayout(row, rows)})
        super().__init__(make, rows * columns, items, values)

    def elaborate(self, platform: Any) -> Module:
        """Give each lane its row and its column."""
        m = Module()
        items, results = self.add_reductions(m, platform)
        a, b = self.i.payload.a, self.i.payload.b
        for r in range(self._rows):
            for c in range(self._columns):
                lane = r * self._columns + c
                pair = items[lane].data
                for to, blocks, index in ((pair.a, a, r), (pair.b, b, c)):
                    names = to.shape().members
                    m.d.comb += [to[name].eq(blocks[plural(name)][index]) for name in names]
                m.d.comb += self.o.payload.values[r][c].eq(results[lane].value)
                if "outer" in self.i.payload.shape().members:
                    m.d.comb += items[lane].carry.outer.eq(self.i.payload.outer[r][c])
        return m
