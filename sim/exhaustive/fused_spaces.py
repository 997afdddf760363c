"""Spaces of loops of accumulators: every accumulator with every pair of products."""

from collections.abc import Sequence
from typing import Any

import numpy as np
from amaranth.hdl import Module, Value
from amaranth.lib import data
from numpy.typing import NDArray

from axs6.golden import fp32
from axs6.golden.accumulator import Accumulator, Alignment
from axs6.golden.formats import FP16, Float, block_format
from axs6.golden.operands import Operand
from axs6.golden.rounding import Rounding
from axs6.golden.sums import after_step
from axs6.golden.terms import Terms, flushed
from axs6.hw.core.parameters import STRUCTURE
from axs6.hw.core.pipeline import Chain, Pipeline, Step
from axs6.hw.core.structures import StructLayout
from axs6.hw.dot.align import AlignPlan, distance_steps
from axs6.hw.dot.fused import fused_steps, loop_layout
from axs6.hw.dot.joined import JoinPlan, joining_steps, number_steps
from axs6.hw.dot.pairwise import pairwise_steps, sum_steps
from axs6.hw.dot.terms import MakeTerms, TermPlan, step_terms
from axs6.hw.fp32.widen import Widen
from axs6.hw.units.accumulate import step_of
from axs6.hw.units.blocks import blocks_of
from axs6.sim.exhaustive.space import Design, Items, Space, named

FORMAT = block_format("e2m1fn_e4m0_t2")
"""Two elements of four bits under an exponent of four: their products reach beyond a total."""

TOTAL = Float(5, 2)
"""The accumulator: the upper byte of FP16, infinities and NaN among its patterns."""

LOOPS = {
    "fused-floor": Accumulator(2, 4, Alignment.FLOOR, fused=True, output=TOTAL),
    "fused-zero": Accumulator(
        2, 4, Alignment.ZERO, fused=True, output=TOTAL, rounding=Rounding.TOWARD_ZERO
    ),
    "fused-exact": Accumulator(2, fused=True, output=TOTAL, minus_zero=True),
    "fused-twice": Accumulator(
        *(2, 4, Alignment.ZERO),
        fused=True,
        output=TOTAL,
        minus_zero=True,
        sum_fraction=5,
        groups=2,
        reach=3,
    ),
    "pairs": Accumulator(2, output=Float(8, 2), pairwise=True, flush=-3),
}
"""Accumulators of every kind of loop: aligned with the terms by either alignment, added to an exact
sum, aligned in a second place, and added to the sum of pairs."""

CHUNK = 1 << 20
ONE = 2
"""Code of 1."""


def fused_spaces(view: str = STRUCTURE) -> list[Space]:
    """Every accumulator, with two products whose second has a factor of 1, in each kind of loop.

    The hardware of pairs has no views.
    """
    kinds = [kind for kind, sums in LOOPS.items() if sums.fused or view == STRUCTURE]
    return [loop_space(kind, view) for kind in kinds]


def loop_space(kind: str, view: str = STRUCTURE) -> Space:
    """The space of one of `LOOPS`. An accumulator is a code of `TOTAL`, or beside pairs in FP32."""
    sums = LOOPS[kind]
    terms = step_terms(FORMAT, FORMAT, sums)
    totals = _totals()

    def inputs(chunk: int) -> Items:
        number = np.arange(chunk * CHUNK, (chunk + 1) * CHUNK)

        def field(low: int, bits: int) -> Any:
            return (number >> low & (1 << bits) - 1).astype(np.uint8)

        lanes = [field(8, 4), field(12, 4)]
        return {
            "a.exponent": field(16, 4),
            "a.codes": np.stack(lanes, axis=1),
            "b.exponent": field(20, 4),
            "b.codes": np.stack([field(24, 4), np.full(CHUNK, ONE, np.uint8)], axis=1),
            "total": field(0, 8) if sums.fused else totals[field(0, 8)],
        }

    def golden(items: Items) -> Items:
        a, b = (
            flushed(Operand.of(blocks_of(items, form.format, f"{name}."), form), terms)
            for name, form in (("a", terms.a), ("b", terms.b))
        )
        before = totals[items["total"]] if sums.fused else items["total"]
        value = after_step(terms, step_of(a, b, terms), before)
        return {"value": np.where(fp32.is_nan(value), np.uint32(sums.nan), value)}

    return Space(
        name=named(kind, view),
        formula="2^8 accumulators x 2^8 exponents x 2^12 codes",
        cases=1 << 28,
        chunks=(1 << 28) // CHUNK,
        design=Design(f"accumulator, {kind}", lambda: _core(terms, view)),
        inputs=inputs,
        references={"golden model": golden},
    )


def _totals() -> NDArray[np.uint32]:
    """FP32 patterns of all codes of `TOTAL`."""
    codes = np.arange(1 << TOTAL.width, dtype=np.uint16) << FP16.width - TOTAL.width
    with np.errstate(invalid="ignore"):
        return codes.view(np.float16).astype(np.float32).view(np.uint32)


class Enter(Step):
    """An accumulator, and the lanes of a step made what is added to it.

    Args:
        front: from the lanes to what is added.
        loop: layout of the accumulator and that.
    """

    def __init__(self, front: Sequence[Step], loop: data.StructLayout) -> None:
        self._front = Chain(front)
        self._total = next(iter(loop.members))
        lanes = self._front.i.shape().members
        total = loop.members[self._total]
        super().__init__(StructLayout({**lanes, "total": total}), loop, levels=0)

    def elaborate(self, platform: Any) -> Module:
        """Connect the fields."""
        m = Module()
        m.submodules.front = front = self._front
        m.d.comb += [front.i[name].eq(self.i[name]) for name in front.i.shape().members]
        (term,) = (name for name in self.o.shape().members if name != self._total)
        m.d.comb += [
            Value.cast(self.o[self._total]).eq(self.i.total),
            Value.cast(self.o[term]).eq(Value.cast(front.o)),
        ]
        return m


class LoopTurn(Chain):
    """The steps of a turn as one core: so none has the name of a module that lanes share."""


def _core(terms: Terms, view: str) -> Pipeline:
    """One turn of the loop, from the lanes of a step and the accumulator to an FP32 value."""
    align = AlignPlan(TermPlan(terms))
    made, widen = MakeTerms(align.plan, view), Widen(align.output)
    if terms.accumulator.pairwise:
        steps = sum_steps(align)
        steps = [Enter(pairwise_steps(align), steps[0].i.shape()), *steps]
    elif align.fused:
        front = [made, *distance_steps(align)]
        steps = [Enter(front, loop_layout(align)), *fused_steps(align, view), widen]
    else:
        join = JoinPlan(align)
        front = [made, *number_steps(join, view)]
        steps = [Enter(front, join.loop), *joining_steps(join, False), widen]
    return Pipeline([LoopTurn(steps)], 0)
