"""Reduction: dot products of vectors of blocks, accumulated in FP32, many side by side."""

from collections.abc import Callable
from typing import Any

from amaranth.hdl import Module, Signal
from amaranth.lib import data, stream
from amaranth.lib.wiring import In, Out, connect, flipped

from axs6.hw.core.layouts import error_layout, last_layout
from axs6.hw.core.pipeline import (
    NOTHING,
    Pipeline,
    Step,
    UnitSeries,
    Wrapper,
    most_split_stages,
    past,
    split_stages,
    viewed,
)
from axs6.hw.core.rtlil import add_lanes
from axs6.hw.core.structures import ArrayLayout, StructLayout
from axs6.hw.dot.packed import PackedPairs
from axs6.hw.dot.parts import Parts


class Reduction(UnitSeries):
    """Dot products of vectors of blocks.

    For the accumulator "fp32" each block sum becomes FP32 (for AXS-6 as P * 2^(Ea + Eb - 264)) and
    is added, in order, to an FP32 accumulator that starts at +0; the total is divided by what units
    of elements are divided by (for AXS-6 by 961/1024), and multiplied by the scales of channels and
    tensors that come with the last block. Every step rounds once to nearest even. Overflow gives
    infinity, opposite infinities the NaN 0x7fc00000. Other accumulators have their own steps: see
    `TermParts`.

    Args:
        parts: the steps.
        stages: ranks of registers beside the accumulator, from 0.
        interleave: vectors that take turns, 1 to 14; see `Loop`.
        view: "structure" or "behaviour"; see `BlockDot`.
        packed: pairs of packed blocks, where items have such in place of dense ones. Each result
            has an `error` then, whether there was one among its pairs. Dense pairs of formats whose
            channels or tensors have scales come with the product of both, `outer`.

    Ports:
        i (in, stream of `data` and `carry`): `data` is a pair of blocks, `carry` has `last`, and
            `outer` in formats with scales of channels or tensors.
        o (out, stream): the result of a vector, `value`, beside `error` if `packed`.

    Latency is `stages` + `interleave` cycles from the last pair to the result, interval 1.
    Source: docs/format.md, "Vectors longer than a block".

    Raises:
        ValueError: a parameter is out of range.
    """

    def __init__(
        self,
        parts: Parts,
        stages: int,
        interleave: int,
        view: str,
        packed: PackedPairs | None = None,
    ) -> None:
        passing, outer = NOTHING, parts.outer
        if packed:
            passing = StructLayout({**packed.scales.members, **error_layout.members})
            outer = NOTHING
        given = StructLayout({**last_layout.members, **outer.members})

        def front_of(steps: list[Step]) -> list[Step]:
            read = packed.steps() if packed else []
            return [*read, *past(steps, passing)]

        front, like = viewed(lambda view: front_of(parts.front(view)), view)
        carry = StructLayout({**given.members, **passing.members})
        self._accumulator = parts.loop(interleave, view, carry)
        back = parts.back(view)
        if packed:
            scale = packed.outer_steps(self._accumulator.total, view)
            back = past([*scale, *back], error_layout)
        fine = front_of(parts.fine_front())
        self.most_stages = _most_stages(fine, back)
        many = stages > _most_stages(like, back)
        if many:
            front, like = (fine if front is like else front), fine
        before, after = split_stages(like, back, stages) if back else (stages, 0)
        self._term = Pipeline(front, before, carry=given, rigid=many, like=like)
        self._result = Pipeline(back, after) if back else None
        units: list[Any] = [self._term, self._accumulator]
        units += [self._result] if back else []
        super().__init__(units, units[0].i, units[-1].o)

    def elaborate(self, platform: Any) -> Module:
        """Connect the three parts."""
        m = Module()
        m.submodules.term = term = self._term
        m.submodules.accumulator = accumulator = self._accumulator
        connect(m, flipped(self.i), term.i)
        found, taken = term.o.payload, accumulator.i.payload
        m.d.comb += [accumulator.i.valid.eq(term.o.valid), term.o.ready.eq(accumulator.i.ready)]
        m.d.comb += [taken.data[name].eq(found.data[name]) for name in taken.data.shape().members]
        for name in taken.carry.shape().members:
            source = found.carry if name in found.carry.shape().members else found.data
            m.d.comb += taken.carry[name].eq(source[name])
        result: Any = accumulator
        if self._result is not None:
            m.submodules.result = result = self._result
            connect(m, accumulator.o, result.i)
        connect(m, result.o, flipped(self.o))
        return m


def _most_stages(front: list[Step], back: list[Step]) -> int:
    """The most ranks for the steps in front of an accumulator and behind it."""
    return most_split_stages(front, back) if back else len(front) + 1


class ReductionUnit(Wrapper):
    """A stream unit around dot products side by side, all of them at the same block.

    Each lane is a `Reduction` with a handshake of its own. They see the same, so they are always
    in the same state, and nothing has to reach the registers of all lanes within a cycle.

    Args:
        make: gives a lane, a new one in each call.
        lanes: number of them.
        i: layout of the input payload, with `last`.
        o: layout of the output payload.

    Ports:
        i (in, stream of `i`): an item has what every lane gets.
        o (out, stream of `o`): an item has the results of all lanes.

    Latency and interval are those of a lane.
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
                "i_payload": items[lane],
                "i_valid": self.i.valid,
                "i_ready": ready[lane],
                "o_payload": results[lane],
                "o_valid": valid[lane],
                "o_ready": self.o.ready,
            }
            for lane in range(self._lanes)
        )
        add_lanes(m, platform, [self._make], lanes, clocked=True)
        m.d.comb += [self.i.ready.eq(ready[0]), self.o.valid.eq(valid[0])]
        m.d.comb += [item.carry.last.eq(self.i.payload.last) for item in items]
        return items, results
