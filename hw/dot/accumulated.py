"""Dot products of vectors in steps whose terms an accumulator aligns and truncates."""

from typing import Any

from amaranth.hdl import Module
from amaranth.lib.wiring import connect, flipped

from axs6.golden.accumulator import Accumulator
from axs6.golden.accumulator import accumulator as accumulator_of
from axs6.golden.formats import FP32, Float, block_format
from axs6.golden.spec import PRODUCT_MAX, Rounding
from axs6.golden.terms import Terms
from axs6.hw.core.layouts import fp32_layout, last_layout
from axs6.hw.core.pipeline import Pipeline, Series, Step, most_split_stages, split_stages, viewed
from axs6.hw.dot.align import AlignPlan, OneTerm, Shift, distance_steps
from axs6.hw.dot.aligned_sum import sum_steps
from axs6.hw.dot.exact import AddWide, ExactPlan, PlaceSum, PlaceTerms, rounding_steps
from axs6.hw.dot.fused import fused_steps
from axs6.hw.dot.promote import Promote, promoting_steps
from axs6.hw.dot.terms import Products, TermPlan, sized, step_terms
from axs6.hw.fp32.accumulator import Accumulator as Fp32Accumulator
from axs6.hw.fp32.accumulator import Loop
from axs6.hw.fp32.add import addition_steps
from axs6.hw.fp32.add_to import adding_steps
from axs6.hw.fp32.divide import division_steps
from axs6.hw.fp32.normalise import normalising_steps
from axs6.hw.fp32.widen import NanPattern, Widen


def check_hardware(terms: Terms) -> Terms:
    """Return terms for whose accumulator there is hardware.

    Raises:
        ValueError: there is none; the message says what it lacks.
    """
    how = terms.accumulator
    if how.fraction is None and how.fused:
        raise ValueError(f"{how} has no hardware: what is fused needs a fraction")
    output = how.output or FP32
    if not how.fused and (output.exponent_bits, output.bias) != EXPONENTS:
        raise ValueError(
            f"{how} has no hardware: what is not fused needs an output with the exponents of fp32"
        )
    if how.output is not None and terms.divisor not in (1, PRODUCT_MAX):
        raise ValueError(f"{how} has no hardware for a division by {terms.divisor}")
    return terms


EXPONENTS = (FP32.exponent_bits, FP32.bias)


def dot_terms(format: str, block: int | None, accumulator: str) -> Terms | None:
    """The terms of a dot product; None for the default accumulator.

    Raises:
        ValueError: a parameter is not what it must be, they do not fit each other, or there is no
            hardware for them.
    """
    formats = [block_format(each) for each in format.split(",")]
    if len(formats) > 2:
        raise ValueError(f"a dot product has one format or two, not {len(formats)}")
    how = accumulator_of(accumulator)
    if how == Accumulator():
        return None
    lanes = formats[0].block if block is None else block
    a, b = sized(formats[0], lanes), sized(formats[-1], lanes)
    return check_hardware(step_terms(a, b, how))


class AccumulatedReduction(Series):
    """Dot products of vectors, a step of lanes at a time, as an accumulator says.

    The terms of a step are aligned to the largest exponent among them, and to that of the
    accumulator where that is one of them: then the alignment, the sum and its rounding are the
    loop that holds the accumulator, and as many vectors take turns as it has ranks of registers.
    Otherwise each step becomes a number, which is added.

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
        parts = Parts(check_hardware(terms))
        front, like = viewed(parts.front, view)
        back = parts.back()
        self.most_stages = most_split_stages(like, back)
        before, after = split_stages(like, back, stages)
        self._term = Pipeline(front, before, carry=last_layout, like=like)
        self._accumulator = parts.accumulator(interleave, view)
        self._result = Pipeline(back, after)
        units = (self._term, self._accumulator, self._result)
        super().__init__(units, self._term.i, self._result.o)

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


class Parts:
    """The steps of a dot product.

    Args:
        terms: of the formats and the accumulator, for which there is hardware.
    """

    def __init__(self, terms: Terms) -> None:
        self._how = terms.accumulator
        self._divisor = terms.divisor
        self._align = AlignPlan(TermPlan(terms))
        self._exact = ExactPlan(self._align)
        self._output = self._align.output
        self._total = self._output if self._how.fused else FP32

    def front(self, view: str) -> list[Step]:
        """From the lanes of a step to its terms and their distances, or to its result in FP32."""
        align = self._align
        steps: list[Step] = [Products(align.plan)]
        wide = align.wide
        if self._how.fraction is not None:
            steps += distance_steps(align)
            if self._how.fused:
                return steps
            steps += [Shift(align, view), *sum_steps(align, view)]
            steps += [PlaceSum(self._exact)] if self._how.output is None else []
        elif align.plan.count > 1 or self._how.output is None:
            steps.append(PlaceTerms(self._exact))
            wide = self._exact.wide()
        else:
            steps.append(OneTerm(align))
        if self._how.output is None:
            return steps
        return [*steps, *normalising_steps(wide), *self._widen(self._output)]

    def accumulator(self, interleave: int, view: str) -> Loop:
        """The loop that holds the accumulator."""
        how = self._how
        if how.output is None:
            return Loop([AddWide(self._exact)], interleave, self._exact.wide().sum_layout)
        if how.promote is None and not how.fused:
            return Fp32Accumulator(interleave, adder=self._adder())
        term = self._align.distances_layout if how.fused else fp32_layout

        def steps_of(view: str) -> list[Step]:
            steps = fused_steps(self._align, view) if how.fused else self._adder()
            if how.promote is None:
                return steps
            return promoting_steps(steps, self._total, how.promote, term)

        loop, like = viewed(steps_of, view)
        return Loop(loop, interleave, term, like)

    def _adder(self) -> list[Step]:
        return adding_steps(self._output, self._how.rounding is Rounding.TOWARD_ZERO)

    def back(self) -> list[Step]:
        """From the accumulator to the result."""
        how = self._how
        if how.output is None:
            return [*rounding_steps(self._exact), NanPattern(how.nan)]
        steps: list[Step] = self._widen(self._total)
        if how.promote is not None:
            steps = [Promote(self._total, how.promote), *addition_steps()]
        divide = division_steps() if self._divisor > 1 else []
        return [*steps, *divide, NanPattern(how.nan)]

    def _widen(self, dtype: Float) -> list[Step]:
        return [] if dtype == FP32 else [Widen(dtype)]
