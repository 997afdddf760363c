"""Dot product of vectors of blocks, accumulated in FP32."""

from typing import Any

from amaranth.hdl import Module
from amaranth.lib import data, stream, wiring
from amaranth.lib.wiring import In, Out, connect, flipped

from axs6.golden.spec import check_block_size
from axs6.hw.accumulator import Accumulator, last_layout
from axs6.hw.block_dot import block_dot_steps
from axs6.hw.fp32 import conversion_steps, division_steps
from axs6.hw.layouts import fp32_layout, pair_layout
from axs6.hw.pipeline import Pipeline, check_stages, deepest, place_registers


def split_stages(front: list[int], back: list[int], stages: int) -> tuple[int, int]:
    """How many of `stages` ranks go in front of the accumulator and behind it.

    The split whose deepest stretch is least, and of equal ones that with more in front.
    """
    check_stages(stages, len(front) + len(back) + 2)
    splits = [
        (n, stages - n)
        for n in range(stages, -1, -1)
        if n <= len(front) + 1 and stages - n <= len(back) + 1
    ]
    return min(
        splits,
        key=lambda split: max(
            deepest(levels, place_registers(levels, count))
            for levels, count in zip((front, back), split, strict=True)
        ),
    )


class Dot(wiring.Component):
    """Dot product of two vectors, given as a stream of block pairs with `last` on the final one.

    Each block sum becomes FP32 as P * 2^(Ea + Eb - 264) and is added, in order, to an FP32
    accumulator that starts at +0; the total is divided by 961/1024. Every step rounds once to
    nearest even. Overflow gives infinity, opposite infinities the NaN 0x7fc00000.

    Args:
        block: values in a block: 8, 16 or 32.
        stages: ranks of registers beside the accumulator, 0 to log2(block) + 9.

    Latency is `stages` + 1 cycles from the last pair to the result, interval 1 for each pair.
    Source: docs/format.md, "Vectors longer than a block".
    """

    def __init__(self, block: int = 32, stages: int = 0) -> None:
        block = check_block_size(block)
        front = [*block_dot_steps(block), *conversion_steps()]
        back = division_steps()
        before, after = split_stages(
            [step.levels for step in front], [step.levels for step in back], stages
        )
        self._term = Pipeline(front, before, carry=last_layout)
        self._accumulator = Accumulator()
        self._divide = Pipeline(back, after)
        pairs = data.StructLayout({**pair_layout(block).members, **last_layout.members})
        super().__init__(
            {"i": In(stream.Signature(pairs)), "o": Out(stream.Signature(fp32_layout))}
        )

    @property
    def most_stages(self) -> int:
        """The largest number of stages that the unit can have."""
        return self._term.most_stages + self._divide.most_stages

    @property
    def latency(self) -> int:
        """Cycles from taking the last pair of a vector to offering its result."""
        return self._term.latency + self._accumulator.latency + self._divide.latency

    @property
    def interval(self) -> int:
        """Cycles between block pairs, when nothing waits."""
        return 1

    def elaborate(self, platform: Any) -> Module:
        """Connect the three parts."""
        m = Module()
        m.submodules.term = term = self._term
        m.submodules.accumulator = accumulator = self._accumulator
        m.submodules.divide = divide = self._divide
        m.d.comb += [
            term.i.valid.eq(self.i.valid),
            self.i.ready.eq(term.i.ready),
            term.i.payload.data.a.eq(self.i.payload.a),
            term.i.payload.data.b.eq(self.i.payload.b),
            term.i.payload.carry.last.eq(self.i.payload.last),
        ]
        connect(m, term.o, accumulator.i)
        connect(m, accumulator.o, divide.i)
        connect(m, divide.o, flipped(self.o))
        return m
