"""Reduction: dot products of vectors of blocks, accumulated in FP32, many side by side."""

from collections.abc import Callable
from typing import Any

from amaranth.hdl import Module, Signal
from amaranth.lib import data, stream
from amaranth.lib.wiring import In, Out, connect, flipped

from axs6.hw.core.layouts import error_layout, last_layout, outer_layout
from axs6.hw.core.pipeline import (
    NOTHING,
    Pipeline,
    Series,
    Step,
    Wrapper,
    most_split_stages,
    past,
    split_stages,
    viewed,
)
from axs6.hw.core.rtlil import add_lanes
from axs6.hw.core.structures import ArrayLayout, StructLayout
from axs6.hw.decoder.expander import expand_pair_steps
from axs6.hw.dot.block_dot import block_dot_steps
from axs6.hw.dot.shape import Shape
from axs6.hw.fp32.accumulator import Accumulator
from axs6.hw.fp32.convert import conversion_steps
from axs6.hw.fp32.divide import division_steps
from axs6.hw.fp32.multiply import multiplication_steps


class Reduction(Series):
    """Dot products of vectors of blocks.

    Each block sum becomes FP32 (for AXS-6 as P * 2^(Ea + Eb - 264)) and is added, in order, to an
    FP32 accumulator that starts at +0; the total is divided by what units of elements are divided
    by (for AXS-6 by 961/1024), and multiplied by the scales of channels and tensors, `outer`, that
    come with the last block. Every step rounds once to nearest even. Overflow gives infinity,
    opposite infinities the NaN 0x7fc00000.

    Args:
        shape: the block dot product.
        stages: ranks of registers beside the accumulator, from 0.
        interleave: vectors that take turns, 1 to 14; see `Accumulator`.
        packed: whether blocks come as their bytes, of any mode; those that `Expander` refuses
            count as 0, and each result has an `error`, whether there was one among its blocks.
        view: of the block dot product; see `BlockDot`.

    Latency is `stages` + `interleave` cycles from the last pair to the result, interval 1.
    Source: docs/format.md, "Vectors longer than a block".
    """

    def __init__(
        self, shape: Shape, stages: int, interleave: int, view: str, packed: bool = False
    ) -> None:
        passing = error_layout if packed else NOTHING
        carry = carry_layout(shape)

        def steps_of(view: str) -> list[Step]:
            expand = expand_pair_steps(shape.block) if packed else []
            convert = conversion_steps(shape.sum, shape.offset)
            return [*expand, *past([*block_dot_steps(shape, view), *convert], passing)]

        front, like = viewed(steps_of, view)
        back = past(division_steps(shape.divisor), passing)
        if shape.scaled:
            back = [*past(division_steps(shape.divisor), outer_layout), *multiplication_steps(view)]
        before, after = split_stages(like, back, stages) if back else (stages, 0)
        self.most_stages = most_split_stages(like, back) if back else len(like) + 1
        self._term = Pipeline(front, before, carry=carry, like=like)
        self._accumulator = Accumulator(interleave, errors=packed, carry=carry)
        self._divide = Pipeline(back, after) if back else None
        parts: list[Any] = [self._term, self._accumulator]
        parts += [self._divide] if back else []
        super().__init__(parts, parts[0].i, parts[-1].o)

    def elaborate(self, platform: Any) -> Module:
        """Connect the three parts."""
        m = Module()
        m.submodules.term = term = self._term
        m.submodules.accumulator = accumulator = self._accumulator
        divide: Any = self._divide
        if divide:
            m.submodules.divide = divide
        connect(m, flipped(self.i), term.i)
        connect(m, term.o, accumulator.i)
        if divide:
            connect(m, accumulator.o, divide.i)
        connect(m, (divide or accumulator).o, flipped(self.o))
        return m


def carry_layout(shape: Shape) -> data.StructLayout:
    """What goes along with a pair of blocks: `last`, and `outer` where there are such scales."""
    outer = outer_layout.members if shape.scaled else {}
    return StructLayout({**last_layout.members, **outer})


class ReductionUnit(Wrapper):
    """A stream unit around dot products side by side, all of them at the same block.

    Each lane is a `Reduction` with a handshake of its own. They see the same, so they are always
    in the same state, and nothing has to reach the registers of all lanes within a cycle.

    Args:
        make: gives a lane, a new one in each call.
        lanes: number of them.
        i: layout of the input payload, with `last`.
        o: layout of the output payload.
    """

    def __init__(
        self,
        make: Callable[[], Reduction],
        lanes: int,
        i: data.StructLayout,
        o: data.StructLayout,
    ) -> None:
        self._make = make
        self._lanes = lanes
        ports = {"i": In(stream.Signature(i)), "o": Out(stream.Signature(o))}
        super().__init__(make(), ports)

    @property
    def flip_flops(self) -> int:
        """Registers of all lanes."""
        return self._lanes * super().flip_flops

    def add_reductions(self, m: Module, platform: Any) -> tuple[data.View, data.View]:
        """Add the lanes and connect `valid`, `ready` and `last`; return their pairs and results."""
        one = self.inner
        items = Signal(ArrayLayout(one.i.payload.shape(), self._lanes))
        results = Signal(ArrayLayout(one.o.payload.shape(), self._lanes))
        ready, valid = Signal(self._lanes), Signal(self._lanes)
        lanes = (
            {
                "i__payload": items[lane],
                "i__valid": self.i.valid,
                "i__ready": ready[lane],
                "o__payload": results[lane],
                "o__valid": valid[lane],
                "o__ready": self.o.ready,
            }
            for lane in range(self._lanes)
        )
        add_lanes(m, platform, [self._make], lanes, clocked=True)
        m.d.comb += [self.i.ready.eq(ready[0]), self.o.valid.eq(valid[0])]
        m.d.comb += [item.carry.last.eq(self.i.payload.last) for item in items]
        return items, results
