"""Dot products of vectors in steps whose terms an accumulator aligns and truncates."""

from dataclasses import replace

from amaranth.lib import data

from axs6.golden.accumulator import Accumulator
from axs6.golden.accumulator import accumulator as accumulator_of
from axs6.golden.formats import FP32, Float
from axs6.golden.rounding import Rounding
from axs6.golden.terms import Terms
from axs6.hw.core.layouts import fp32_layout
from axs6.hw.core.parameters import block_format_of, block_of, formats_of_operands
from axs6.hw.core.pipeline import Step, past, viewed
from axs6.hw.dot.align import AlignPlan, AlignTerms, OneTerm, distance_steps
from axs6.hw.dot.aligned_sum import sum_steps
from axs6.hw.dot.exact import AddWide, ExactPlan, PlaceSum, PlaceTerms, rounding_steps
from axs6.hw.dot.fused import fused_steps
from axs6.hw.dot.joined import JoinPlan, joining_steps, keeping_sign, number_steps
from axs6.hw.dot.pairwise import pairwise_steps
from axs6.hw.dot.pairwise import sum_steps as sum_steps_of_pairs
from axs6.hw.dot.parts import BlockParts, Parts, finishing_steps
from axs6.hw.dot.promote import factored, last_steps, promoting_steps
from axs6.hw.dot.scales import BlockScales, with_factors
from axs6.hw.dot.shape import DotShape
from axs6.hw.dot.terms import MakeTerms, TermPlan, step_layout, step_terms
from axs6.hw.fp32.accumulator import Fp32Accumulator as Fp32Accumulator
from axs6.hw.fp32.accumulator import Loop
from axs6.hw.fp32.add import adding_steps
from axs6.hw.fp32.divide import RECIPROCALS
from axs6.hw.fp32.normalise import normalising_steps
from axs6.hw.fp32.widen import NanPattern, Widen


def check_hardware(terms: Terms) -> Terms:
    """Return terms for whose accumulator there is hardware.

    Raises:
        ValueError: there is none; the message says what it lacks.
    """
    accumulator = terms.accumulator
    if accumulator.fraction is None and accumulator.fused and terms.step > 1:
        raise ValueError(
            f"{accumulator} has no hardware for these formats: its steps must have one exponent, "
            f"not {terms.step}"
        )
    if accumulator.pairwise and terms.step & terms.step - 1:
        raise ValueError(
            f"{accumulator} has no hardware: lanes added in pairs must be a power of two, not "
            f"{terms.step}"
        )
    plan = TermPlan(terms)
    if accumulator.groups > 1 and plan.cluster % accumulator.groups:
        raise ValueError(
            f"{accumulator} has no hardware for these formats: groups must divide the "
            f"{plan.cluster} lanes with the same scales, not {accumulator.groups}"
        )
    if accumulator.fraction is not None and terms.aligned_bits > ALIGNED_MAX:
        raise ValueError(
            f"{accumulator} has no hardware for these formats: it needs terms of "
            f"{terms.aligned_bits} bits, and {ALIGNED_MAX} is the most"
        )
    output = accumulator.output or FP32
    if not accumulator.fused and (output.exponent_bits, output.bias) != EXPONENTS:
        raise ValueError(
            f"{accumulator} has no hardware: what is not fused needs an output with the exponents "
            "of fp32"
        )
    if accumulator.output is not None and terms.divisor not in (1, *RECIPROCALS):
        raise ValueError(f"{accumulator} has no hardware for a division by {terms.divisor}")
    return terms


EXPONENTS = (FP32.exponent_bits, FP32.bias)

ALIGNED_MAX = 62
"""Bits of the sum of aligned terms, at most: what simulations were compared on."""


class TermParts(Parts):
    """Dot products whose terms an accumulator aligns and truncates, or adds exactly.

    The terms of a step are aligned to the largest exponent among them, and to that of the
    accumulator where that is one of them: then the alignment, the sum and its rounding are the
    loop that holds the accumulator, and as many vectors take turns as it has ranks of registers.
    Otherwise each step becomes a number, which is added.

    Args:
        terms: of the formats and the accumulator; see `step_terms`.
        lanes: values of a block, of which a step may have a part, or several.

    Source: docs/format.md, "Other accumulators".

    Raises:
        ValueError: there is no hardware for the accumulator.
    """

    def __init__(self, terms: Terms, lanes: int) -> None:
        check_hardware(terms)
        formats = (terms.a.format, terms.b.format)
        super().__init__(formats, lanes, step_layout(terms), terms.accumulator)
        self._accumulator = terms.accumulator
        self._divisor = terms.divisor
        self._align = AlignPlan(TermPlan(terms))
        self._exact = ExactPlan(self._align)
        self._output = self._align.output
        self._total = self._output if self._accumulator.fused else FP32
        joins = self._accumulator.fused and not self._align.fused
        self._join = JoinPlan(self._align) if joins else None

    def front(self, view: str) -> list[Step]:
        """From the lanes of a step to its terms and their distances, or to its result in FP32."""
        steps = self._terms(view)
        if not self._accumulator.scaled:
            return steps
        return with_factors(steps, BlockScales(self.formats), view)

    def _terms(self, view: str) -> list[Step]:
        align = self._align
        if self._accumulator.pairwise:
            return pairwise_steps(align)
        steps: list[Step] = [MakeTerms(align.plan, view)]
        if self._join:
            return [*steps, *number_steps(self._join, view)]
        wide = align.wide
        if self._accumulator.fraction is not None:
            steps += distance_steps(align)
            if self._accumulator.fused:
                return steps
            steps += [AlignTerms(align, view), *sum_steps(align, view)]
            steps += [PlaceSum(self._exact)] if self._accumulator.output is None else []
        elif align.plan.count > 1 or self._accumulator.output is None:
            steps.append(PlaceTerms(self._exact))
            wide = self._exact.wide()
        else:
            steps.append(OneTerm(align))
        if self._accumulator.output is None:
            return steps
        return [*steps, *normalising_steps(wide), *self._widen(self._output)]

    def loop(self, interleave: int, view: str, carry: data.StructLayout) -> Loop:
        """The loop that holds the accumulator."""
        accumulator = self._accumulator
        if accumulator.output is None:
            layout = self._exact.wide().sum_layout
            return Loop([AddWide(self._exact)], interleave, layout, carry=carry)
        skips = interleave > 1
        if accumulator.promote is None and not accumulator.fused:
            return Fp32Accumulator(interleave, self._adder(skips), carry)
        term = self._align.distances_layout if accumulator.fused else fp32_layout
        if self._join:
            term = self._join.term
        if accumulator.scaled:
            term = factored(term)

        def steps_of(view: str) -> list[Step]:
            if self._join:
                steps = joining_steps(self._join, skips)
            elif accumulator.fused:
                steps = fused_steps(self._align, view, skips)
            else:
                steps = self._adder(skips)
            if accumulator.promote is None:
                return steps
            return promoting_steps(steps, self._total, accumulator.promote, term, skips, view)

        loop, like = viewed(steps_of, view)
        return Loop(loop, interleave, term, like, carry)

    def _adder(self, skips: bool) -> list[Step]:
        if self._accumulator.pairwise:
            steps = sum_steps_of_pairs(self._align)
            return keeping_sign(steps, "a", FP32.width) if skips else steps
        return adding_steps(self._output, self._accumulator.rounding is Rounding.TOWARD_ZERO)

    def back(self, view: str) -> list[Step]:
        """From the accumulator to the result."""
        accumulator = self._accumulator
        if accumulator.output is None:
            return [*rounding_steps(self._exact, self.outer, view), NanPattern(accumulator.nan)]
        steps: list[Step] = self._widen(self._total)
        if accumulator.promote is not None:
            scaled = accumulator.scaled
            steps = last_steps(self._total, accumulator.promote, scaled, view)
        finish = finishing_steps(self._divisor, self.outer, view)
        return [*past(steps, self.outer), *finish, NanPattern(accumulator.nan)]

    def _widen(self, dtype: Float) -> list[Step]:
        return [] if dtype == FP32 else [Widen(dtype)]


def dot_terms(format: str, block: int | None, accumulator: str) -> Terms | None:
    """The terms of a dot product; None for the default accumulator.

    A format without blocks has steps of `block` lanes, where the accumulator names no other.

    Raises:
        ValueError: a parameter is not what it must be, they do not fit each other, or there is no
            hardware for them.
    """
    formats = formats_of_operands(format)
    parsed = accumulator_of(accumulator)
    if parsed == Accumulator():
        return None
    lanes = block_of(formats, block)
    first, second = (block_format_of(each, lanes)[0] for each in (formats[0], formats[-1]))
    if not first.blocked and parsed.reduction is None:
        parsed = replace(parsed, reduction=lanes)
    return check_hardware(step_terms(first, second, parsed))


def dot_parts(format: str, block: int | None, accumulator: str) -> Parts:
    """The parts of a dot product.

    Raises:
        ValueError: as of `dot_terms`.
    """
    terms = dot_terms(format, block, accumulator)
    if terms is None:
        return BlockParts(DotShape.of(format, block))
    return TermParts(terms, block_of(formats_of_operands(format), block))
