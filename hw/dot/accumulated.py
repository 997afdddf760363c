"""Dot products of vectors in steps whose terms an accumulator aligns and truncates."""

from typing import Any

from amaranth.hdl import Module
from amaranth.lib.wiring import connect, flipped

from axs6.golden.accumulator import Accumulator
from axs6.golden.accumulator import accumulator as accumulator_of
from axs6.golden.formats import AXS6, FP32, block_format
from axs6.golden.spec import PRODUCT_MAX, Rounding
from axs6.golden.terms import Terms
from axs6.hw.core.layouts import last_layout
from axs6.hw.core.pipeline import Pipeline, Series, Step, most_split_stages, split_stages, viewed
from axs6.hw.dot.align import AlignPlan, Shift, distance_steps
from axs6.hw.dot.aligned_sum import sum_steps
from axs6.hw.dot.fused import fused_steps
from axs6.hw.dot.terms import Products, TermPlan, sized, step_terms
from axs6.hw.fp32.accumulator import Accumulator as Fp32Accumulator
from axs6.hw.fp32.accumulator import Loop
from axs6.hw.fp32.divide import division_steps
from axs6.hw.fp32.normalise import normalising_steps
from axs6.hw.fp32.widen import NanPattern, Widen


def check_hardware(terms: Terms) -> Terms:
    """Return terms for whose accumulator there is hardware.

    Raises:
        ValueError: there is none; the message says what it lacks.
    """
    how = terms.accumulator
    if how.fraction is None or how.output is None or how.promote is not None:
        raise ValueError(
            f"{how} has no hardware: an accumulator needs a fraction and an output, and no promote"
        )
    if not how.fused and (how.output != FP32 or how.rounding is not Rounding.NEAREST):
        raise ValueError(f"{how} has no hardware: what is not fused is added in FP32 to nearest")
    if terms.divisor not in (1, PRODUCT_MAX):
        raise ValueError(f"{how} has no hardware for a division by {terms.divisor}")
    return terms


def dot_terms(format: str, block: int | None, accumulator: str) -> Terms | None:
    """The terms of a dot product; None for AXS-6 and the default accumulator.

    Raises:
        ValueError: a parameter is not what it must be, they do not fit each other, or there is no
            hardware for them.
    """
    formats = [block_format(each) for each in format.split(",")]
    if len(formats) > 2:
        raise ValueError(f"a dot product has one format or two, not {len(formats)}")
    how = accumulator_of(accumulator)
    if how == Accumulator() and {*formats} == {AXS6}:
        return None
    lanes = formats[0].block if block is None else block
    a, b = sized(formats[0], lanes), sized(formats[-1], lanes)
    return check_hardware(step_terms(a, b, how))


class AccumulatedReduction(Series):
    """Dot products of vectors, a step of lanes at a time, as an accumulator says.

    The terms of a step are aligned to the largest exponent among them, and to that of the
    accumulator where that is one of them: then the alignment, the sum and its rounding are the
    loop that holds the accumulator, and as many vectors take turns as it has ranks of registers.
    Otherwise each step becomes a number, which is added in FP32.

    Args:
        terms: of the formats and the accumulator; see `step_terms`.
        stages: ranks of registers beside the accumulator, from 0.
        interleave: vectors that take turns, 1 to 14; see `Loop`.
        view: "structure" or "behaviour".

    Latency is `stages` + `interleave` cycles from the last step to the result, interval 1.
    Source: docs/format.md, "Other accumulators".

    Raises:
        ValueError: there is no hardware for the accumulator, or a parameter is out of range.
    """

    def __init__(self, terms: Terms, stages: int, interleave: int, view: str) -> None:
        check_hardware(terms)
        align = AlignPlan(TermPlan(terms))
        front, like = viewed(lambda view: _front(align, view), view)
        back = _back(terms, align)
        self.most_stages = most_split_stages(like, back)
        before, after = split_stages(like, back, stages)
        self._term = Pipeline(front, before, carry=last_layout, like=like)
        self._accumulator = _accumulator(align, interleave, view)
        self._result = Pipeline(back, after)
        parts = (self._term, self._accumulator, self._result)
        super().__init__(parts, self._term.i, self._result.o)

    def elaborate(self, platform: Any) -> Module:
        """Connect the three parts."""
        m = Module()
        m.submodules.term = term = self._term
        m.submodules.accumulator = accumulator = self._accumulator
        m.submodules.result = result = self._result
        connect(m, flipped(self.i), term.i)
        connect(m, term.o, accumulator.i)
        connect(m, accumulator.o, result.i)
        connect(m, result.o, flipped(self.o))
        return m


def _front(align: AlignPlan, view: str) -> list[Step]:
    """From the lanes of a step to its terms and their distances, or to its result."""
    steps = [Products(align.plan), *distance_steps(align)]
    if align.fused:
        return steps
    return [*steps, Shift(align, view), *sum_steps(align, view), *normalising_steps(align.wide)]


def _accumulator(align: AlignPlan, interleave: int, view: str) -> Loop:
    if not align.fused:
        return Fp32Accumulator(interleave)
    loop, like = viewed(lambda view: fused_steps(align, view), view)
    return Loop(loop, interleave, align.distances_layout, like)


def _back(terms: Terms, align: AlignPlan) -> list[Step]:
    """From the accumulator to the result."""
    divide = division_steps() if terms.divisor > 1 else []
    return [Widen(align.output), *divide, NanPattern(terms.accumulator.nan)]
