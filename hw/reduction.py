"""Reduction: dot products of vectors of blocks, many side by side, accumulated in FP32."""

from typing import Any

from amaranth.hdl import Module
from amaranth.lib import data, stream, wiring
from amaranth.lib.wiring import In, Out, connect, flipped

from axs6.golden.spec import check_block_size
from axs6.hw.accumulator import Accumulator
from axs6.hw.block_dot import block_dot_steps
from axs6.hw.expander import expand_pair_steps
from axs6.hw.fp32_convert import conversion_steps
from axs6.hw.fp32_divide import division_steps
from axs6.hw.layouts import error_layout, fp32_layout, last_layout, pair_layout
from axs6.hw.pipeline import NOTHING, Pipeline, Step, Wrapper, in_lanes, past, split_stages


class Reduction(wiring.Component):
    """Dot products of vectors of blocks in `lanes` lanes, all of them at the same block.

    Each block sum becomes FP32 as P * 2^(Ea + Eb - 264) and is added, in order, to an FP32
    accumulator that starts at +0; the total is divided by 961/1024. Every step rounds once to
    nearest even. Overflow gives infinity, opposite infinities the NaN 0x7fc00000.

    Args:
        block: values in a block: 8, 16 or 32.
        lanes: dot products side by side.
        stages: ranks of registers beside the accumulator, from 0.
        interleave: vectors that take turns in each lane, 1 to 14; see `Accumulator`.
        packed: whether blocks come as their bytes, of any mode; those that `Expander` refuses
            count as 0, and each result has an `error`, whether there was one among its blocks.

    Latency is `stages` + `interleave` cycles from the last pairs to the results, interval 1.
    Source: docs/format.md, "Vectors longer than a block".
    """

    def __init__(
        self, block: int, lanes: int, stages: int, interleave: int, packed: bool = False
    ) -> None:
        block = check_block_size(block)
        passing = error_layout if packed else NOTHING

        def front() -> list[Step]:
            expand = expand_pair_steps(block) if packed else []
            return [*expand, *past([*block_dot_steps(block), *conversion_steps()], passing)]

        def back() -> list[Step]:
            return past(division_steps(), passing)

        steps, last_steps = front(), back()
        self.most_stages = len(steps) + len(last_steps) + 2
        before, after = split_stages(steps, last_steps, stages)
        self._term = Pipeline(in_lanes(front, lanes, before), before, carry=last_layout)
        self._accumulator = Accumulator(lanes, interleave, errors=packed)
        self._divide = Pipeline(in_lanes(back, lanes, after), after)
        self._parts = (self._term, self._accumulator, self._divide)
        pairs = data.ArrayLayout(pair_layout(block, packed=packed), lanes)
        items = data.StructLayout({"data": pairs, "carry": last_layout})
        value = data.StructLayout({**fp32_layout.members, **passing.members})
        values = data.ArrayLayout(value, lanes)
        super().__init__({"i": In(stream.Signature(items)), "o": Out(stream.Signature(values))})

    @property
    def latency(self) -> int:
        """Cycles from taking the last pairs of a vector to offering its results."""
        return sum(part.latency for part in self._parts)

    @property
    def flip_flops(self) -> int:
        """Registers of all three parts."""
        return sum(part.flip_flops for part in self._parts)

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


class ReductionUnit(Wrapper):
    """A stream unit around a `Reduction`.

    Args:
        reduction: the datapath.
        i: layout of the input payload.
        o: layout of the output payload.
    """

    def __init__(self, reduction: Reduction, i: data.StructLayout, o: data.StructLayout) -> None:
        ports = {"i": In(stream.Signature(i)), "o": Out(stream.Signature(o))}
        super().__init__(reduction, ports)

    def handshake(self, m: Module) -> None:
        """Add the reduction and connect `valid` and `ready` on both sides."""
        m.submodules.reduction = inner = self.inner
        m.d.comb += [
            inner.i.valid.eq(self.i.valid),
            self.i.ready.eq(inner.i.ready),
            self.o.valid.eq(inner.o.valid),
            inner.o.ready.eq(self.o.ready),
            inner.i.payload.carry.last.eq(self.i.payload.last),
        ]
