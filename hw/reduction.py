"""Reduction: dot products of vectors of blocks, many side by side, accumulated in FP32."""

from typing import Any

from amaranth.hdl import Module
from amaranth.lib import data, stream, wiring
from amaranth.lib.wiring import In, Out, connect, flipped

from axs6.golden.spec import check_block_size
from axs6.hw.accumulator import Accumulator
from axs6.hw.block_dot import block_dot_steps
from axs6.hw.fp32 import conversion_steps, division_steps
from axs6.hw.layouts import fp32_layout, last_layout, pair_layout
from axs6.hw.pipeline import (
    Pipeline,
    Step,
    check_stages,
    deepest,
    in_lanes,
    place_registers,
)


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


class Reduction(wiring.Component):
    """Dot products of vectors of blocks in `lanes` lanes, all of them at the same block.

    Each block sum becomes FP32 as P * 2^(Ea + Eb - 264) and is added, in order, to an FP32
    accumulator that starts at +0; the total is divided by 961/1024. Every step rounds once to
    nearest even. Overflow gives infinity, opposite infinities the NaN 0x7fc00000.

    Args:
        block: values in a block: 8, 16 or 32.
        lanes: dot products side by side.
        stages: ranks of registers beside the accumulator, 0 to log2(block) + 9.
        interleave: vectors that take turns in each lane, 1 to 4; see `Accumulator`.

    Latency is `stages` + `interleave` cycles from the last pairs to the results, interval 1.
    Source: docs/format.md, "Vectors longer than a block".
    """

    def __init__(self, block: int, lanes: int, stages: int, interleave: int) -> None:
        block = check_block_size(block)

        def front() -> list[Step]:
            return [*block_dot_steps(block), *conversion_steps()]

        levels, back = ([step.levels for step in each] for each in (front(), division_steps()))
        self.most_stages = len(levels) + len(back) + 2
        before, after = split_stages(levels, back, stages)
        self._term = Pipeline(in_lanes(front, lanes, before), before, carry=last_layout)
        self._accumulator = Accumulator(lanes, interleave)
        self._divide = Pipeline(in_lanes(division_steps, lanes, after), after)
        pairs = data.ArrayLayout(pair_layout(block), lanes)
        items = data.StructLayout({"data": pairs, "carry": last_layout})
        values = data.ArrayLayout(fp32_layout, lanes)
        super().__init__({"i": In(stream.Signature(items)), "o": Out(stream.Signature(values))})

    @property
    def latency(self) -> int:
        """Cycles from taking the last pairs of a vector to offering its results."""
        return self._term.latency + self._accumulator.latency + self._divide.latency

    @property
    def interval(self) -> int:
        """Cycles between items, when nothing waits."""
        return 1

    def elaborate(self, platform: Any) -> Module:
        """Connect the three parts."""
        m = Module()
        m.submodules.term = term = self._term
        m.submodules.accumulator = accumulator = self._accumulator
        m.submodules.divide = divide = self._divide
        connect(m, flipped(self.i), term.i)
        connect(m, term.o, accumulator.i)
        connect(m, accumulator.o, divide.i)
        connect(m, divide.o, flipped(self.o))
        return m


class ReductionUnit(wiring.Component):
    """A stream unit around a `Reduction`, kept as `reduction`.

    Args:
        reduction: the datapath.
        i: layout of the input payload.
        o: layout of the output payload.
    """

    def __init__(self, reduction: Reduction, i: data.StructLayout, o: data.StructLayout) -> None:
        self.reduction = reduction
        super().__init__({"i": In(stream.Signature(i)), "o": Out(stream.Signature(o))})

    @property
    def most_stages(self) -> int:
        """The largest number of stages that the unit can have."""
        return self.reduction.most_stages

    @property
    def latency(self) -> int:
        """Cycles from taking the last item of a vector to offering its result."""
        return self.reduction.latency

    @property
    def interval(self) -> int:
        """Cycles between items, when nothing waits."""
        return self.reduction.interval

    def handshake(self, m: Module) -> None:
        """Add the reduction and connect `valid` and `ready` on both sides."""
        m.submodules.reduction = inner = self.reduction
        m.d.comb += [
            inner.i.valid.eq(self.i.valid),
            self.i.ready.eq(inner.i.ready),
            self.o.valid.eq(inner.o.valid),
            inner.o.ready.eq(self.o.ready),
            inner.i.payload.carry.last.eq(self.i.payload.last),
        ]
