"""Spaces of fused accumulators: every accumulator with every pair of terms, at every distance."""

from typing import Any

import numpy as np
from amaranth.hdl import Module
from amaranth.lib import data

from axs6.golden import fp32
from axs6.golden.accumulator import Accumulator, Alignment
from axs6.golden.formats import FP16, Float, block_format
from axs6.golden.operands import Operand
from axs6.golden.rounding import Rounding
from axs6.golden.sums import after_step
from axs6.hw.core.parameters import STRUCTURE
from axs6.hw.core.pipeline import Past, Pipeline, Step
from axs6.hw.core.structures import StructLayout
from axs6.hw.dot.align import AlignPlan, distance_steps
from axs6.hw.dot.fused import fused_steps, loop_layout
from axs6.hw.dot.terms import MakeTerms, TermPlan, step_terms
from axs6.hw.fp32.widen import Widen
from axs6.hw.units.accumulate import step_of
from axs6.hw.units.blocks import blocks_of
from axs6.sim.exhaustive.space import Design, Items, Space, named

FORMAT = block_format("e2m1fn_e4m0_t2")
"""Two elements of four bits under an exponent of four: their products reach beyond a total."""

TOTAL = Float(5, 2)
"""The accumulator: the upper byte of FP16, infinities and NaN among its patterns."""

FRACTION = 4
CHUNK = 1 << 20
ONE = 2
"""Code of 1."""


def fused_spaces(view: str = STRUCTURE) -> list[Space]:
    """Every accumulator, with two products whose second has a factor of 1: by either alignment."""
    return [fused_space(alignment, view) for alignment in Alignment]


def fused_space(alignment: Alignment, view: str = STRUCTURE) -> Space:
    """The space of one alignment; that toward zero rounds toward zero too."""
    zero = alignment is Alignment.ZERO
    rounding = Rounding.TOWARD_ZERO if zero else Rounding.NEAREST
    sums = Accumulator(2, FRACTION, alignment, fused=True, output=TOTAL, rounding=rounding)
    terms = step_terms(FORMAT, FORMAT, sums)

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
            "total": field(0, 8),
        }

    def golden(items: Items) -> Items:
        a, b = (
            Operand.of(blocks_of(items, form.format, f"{name}."), form)
            for name, form in (("a", terms.a), ("b", terms.b))
        )
        total = (items["total"].astype(np.uint16) << FP16.width - TOTAL.width).view(np.float16)
        with np.errstate(invalid="ignore"):
            before = total.astype(np.float32).view(np.uint32)
        value = after_step(terms, step_of(a, b, terms), before)
        return {"value": np.where(fp32.is_nan(value), np.uint32(sums.nan), value)}

    def build() -> Pipeline:
        return _core(AlignPlan(TermPlan(terms)), view)

    return Space(
        name=named(f"fused-{alignment}", view),
        formula="2^8 accumulators x 2^8 exponents x 2^12 codes",
        cases=1 << 28,
        chunks=(1 << 28) // CHUNK,
        design=Design(
            f"fused accumulator, {alignment}", lambda: _core(AlignPlan(TermPlan(terms)), view)
        ),
        inputs=inputs,
        references={"golden model": golden},
    )


class Enter(Step):
    """The accumulator and the terms of a step as operands of the loop."""

    def __init__(self, align: AlignPlan) -> None:
        i = StructLayout({**align.distances_layout.members, **_total(align).members})
        super().__init__(i, loop_layout(align), levels=0)

    def elaborate(self, platform: Any) -> Module:
        """Connect the fields."""
        m = Module()
        m.d.comb += self.o.total.eq(self.i.total)
        m.d.comb += [self.o.term[name].eq(self.i[name]) for name in self.o.term.shape().members]
        return m


def _total(align: AlignPlan) -> data.StructLayout:
    return StructLayout({"total": align.output.width})


def _core(align: AlignPlan, view: str) -> Pipeline:
    """One turn of the loop, from the lanes of a step and the accumulator to an FP32 value."""
    front = [MakeTerms(align.plan, view), *distance_steps(align)]
    entered = [Past(step, _total(align)) for step in front]
    steps = [*entered, Enter(align), *fused_steps(align, view), Widen(align.output)]
    return Pipeline(steps, 0)
