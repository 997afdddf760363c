"""Terms of a step aligned to the largest of their exponents, and their sum.

An exponent is a *code* here: 0 for that of nothing, from 1 on for the others, all codes of a step
with the same distance to what they stand for.
"""

from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from functools import cached_property
from typing import Any

from amaranth.hdl import Cat, Const, Module, Mux, Signal, Value, signed, unsigned
from amaranth.lib import data

from axs6.golden.formats import FP32, Float
from axs6.golden.rounding import Rounding
from axs6.hw.core.parameters import STRUCTURE
from axs6.hw.core.pipeline import Past, Step
from axs6.hw.core.structures import ArrayLayout, StructLayout
from axs6.hw.dot.terms import TermPlan
from axs6.hw.fp32.common import limited, pass_on
from axs6.hw.fp32.normalise import SPECIAL, ScaledInteger


@dataclass(frozen=True)
class AlignPlan:
    """Widths and constants of the alignment of terms.

    Args:
        plan: the terms, whose accumulator has a fraction and an output.
    """

    plan: TermPlan

    @property
    def fraction(self) -> int:
        """Bits after the point that are kept."""
        return self.plan.terms.accumulator.fraction or 0

    @property
    def output(self) -> Float:
        """Format of what is rounded."""
        return self.plan.terms.accumulator.output or FP32

    @property
    def counts(self) -> bool:
        """Whether the accumulator has a code beside those of terms."""
        return self.plan.terms.accumulator.fused

    @property
    def fused(self) -> bool:
        """Whether the accumulator is one of the terms that are aligned together."""
        accumulator = self.plan.terms.accumulator
        joins = accumulator.fraction is None or accumulator.sum_fraction is not None
        return accumulator.fused and not joins

    @property
    def drop(self) -> int:
        """Bits of a term below those that are kept of the largest one; negative for zeros."""
        return self.plan.terms.point - self.fraction

    @property
    def kept(self) -> int:
        """Bits that are kept of the magnitude of a term."""
        return max(self.plan.magnitude_bits - self.drop, 1)

    @property
    def distance_bits(self) -> int:
        """Bits of a distance. All ones shift everything away."""
        return self.kept.bit_length()

    @property
    def _term_exponent(self) -> int:
        """Constant to add to the fields of a term for the exponent of its point."""
        return self.plan.terms.offset + self.plan.terms.point

    @property
    def base(self) -> int:
        """The exponent that a code of 0 would stand for.

        An accumulator other than 0 is a sum of terms, and so is no less than the last bit kept of
        the least one; that of 0 counts with its exponent where zeros do.
        """
        if not self.counts:
            return self._term_exponent - 1
        emin = self.output.emin
        least = (
            emin
            if self.plan.signed or not self.fused
            else max(emin, self._term_exponent - self.fraction)
        )
        return min(self._term_exponent, least) - 1

    @property
    def term_code(self) -> int:
        """Constant to add to the fields of a term for its code."""
        return self._term_exponent - self.base

    @property
    def own_code(self) -> int:
        """Constant to add to the exponent field of the accumulator, at least 1, for its code."""
        return self.output.emin - 1 - self.base

    @property
    def least_code(self) -> int:
        """The code of the lower limit of a step's largest exponent; 0 if all terms reach it."""
        least = self.plan.terms.accumulator.least
        return 0 if least is None or least <= self._term_exponent else least - self.base

    @cached_property
    def code_bound(self) -> int:
        """The largest code."""
        largest = self.plan.terms.largest_exponent + self.term_code
        own = self.output.exponent_special - 1 + self.own_code
        return max(largest, self.least_code, own if self.counts else 0)

    @property
    def code_bits(self) -> int:
        """Bits of a code."""
        return self.code_bound.bit_length()

    @property
    def own_bits(self) -> int:
        """Bits that are kept of the magnitude of the accumulator."""
        return self.fraction + 1

    @property
    def own_distance_bits(self) -> int:
        """Bits of its distance."""
        return self.own_bits.bit_length()

    @cached_property
    def sum_bound(self) -> int:
        """No sum has a larger magnitude."""
        bound = self.plan.terms.bound
        term = bound >> self.drop if self.drop > 0 else bound << -self.drop
        own = 1 << self.own_bits if self.fused else 0
        return self.plan.count * (term + self.plan.signed) + own

    @property
    def wide(self) -> ScaledInteger:
        """The sums, and how they are rounded: an exact one has the exponent of its term."""
        accumulator = self.plan.terms.accumulator
        toward_zero = (
            accumulator.output is not None and accumulator.rounding is Rounding.TOWARD_ZERO
        )
        bits, exponent = self.sum_bound.bit_length(), self.base - self.fraction
        if accumulator.fraction is None:
            bits, exponent = self.plan.magnitude_bits, self.base - self.plan.terms.point
        return ScaledInteger(bits, self.code_bound, exponent, self.output, toward_zero, self.fused)

    @property
    def special(self) -> dict[str, int]:
        """The field of NaN or an infinity, which passes unchanged."""
        return self.plan.special

    @property
    def values(self) -> dict[str, Any]:
        """The terms."""
        return {"values": ArrayLayout(self.plan.value_shape, self.plan.count)}

    @property
    def clustered_layout(self) -> data.StructLayout:
        """Local codes by cluster, beside the terms."""
        plan = self.plan
        return StructLayout(
            {**largest_layout(plan.clusters, plan.cluster, plan.code_bits), **plan.o.members}
        )

    @property
    def placed(self) -> dict[str, Any]:
        """Terms, how far each is below the largest of its cluster, and the codes of those."""
        plan = self.plan
        below = plan.code_bits if plan.cluster > 1 else 0  # the only term is the largest
        return {
            **self.values,
            "local": ArrayLayout(unsigned(below), plan.count),
            "tops": ArrayLayout(unsigned(self.code_bits), plan.clusters),
            **self.special,
        }

    @property
    def distances_layout(self) -> data.StructLayout:
        """Terms, their distances to the largest exponent, and its code."""
        distances = ArrayLayout(unsigned(self.distance_bits), self.plan.count)
        return StructLayout(
            {**self.values, "distances": distances, "top": self.code_bits, **self.special}
        )

    @property
    def aligned_layout(self) -> data.StructLayout:
        """Aligned terms, the accumulator among them in a fused step.

        In the structure a term whose magnitude was shifted is inverted where it is negative: it
        lacks a 1.
        """
        own = {"own": signed(self.own_bits + 1)} if self.fused else {}
        terms = ArrayLayout(signed(self.kept + 1), self.plan.count)
        return StructLayout({"terms": terms, **own, "top": self.code_bits, **SPECIAL})


def largest_layout(clusters: int, size: int, bits: int) -> dict[str, Any]:
    """Codes by cluster, from which the largest are found."""
    return {"largest": ArrayLayout(ArrayLayout(unsigned(bits), size), clusters)}


class LargestPairs(Step):
    """One level of a tree: the larger of every two codes of a cluster.

    Args:
        clusters: number of clusters.
        size: codes of each.
        bits: of a code.
    """

    def __init__(self, clusters: int, size: int, bits: int) -> None:
        i, o = (StructLayout(largest_layout(clusters, n, bits)) for n in (size, (size + 1) // 2))
        super().__init__(i, o, levels=4 + 2 * bits.bit_length())

    def elaborate(self, platform: Any) -> Module:
        """Build the comparisons."""
        m = Module()
        for codes, larger in zip(self.i.largest, self.o.largest, strict=True):
            for index, result in enumerate(larger):
                first = codes[2 * index]
                m.d.comb += result.eq(first)
                if 2 * index + 1 < len(codes):
                    second = codes[2 * index + 1]
                    m.d.comb += result.eq(Mux(first < second, second, first))
        return m


def largest_steps(
    clusters: int, size: int, bits: int, passing: Mapping[str, Any]
) -> Iterator[Step]:
    """The levels of the tree, with what passes by; none where codes have no bits."""
    while size > 1 and bits:
        yield Past(LargestPairs(clusters, size, bits), StructLayout(dict(passing)))
        size = (size + 1) // 2


class Cluster(Step):
    """The local codes of a step by cluster."""

    def __init__(self, align: AlignPlan) -> None:
        super().__init__(align.plan.o, align.clustered_layout, levels=0)

    def elaborate(self, platform: Any) -> Module:
        """Connect the codes twice."""
        m = Module()
        m.d.comb += self.o.largest.as_value().eq(self.i.codes.as_value())
        pass_on(m, self, *self.i.shape().members)
        return m


class ClusterCodes(Step):
    """The code of the largest exponent of each cluster, and how far its terms are below it."""

    def __init__(self, align: AlignPlan) -> None:
        self._align = align
        plan = align.plan
        largest = largest_layout(plan.clusters, 1, plan.code_bits)
        codes = largest_layout(1, plan.clusters, align.code_bits)
        i = StructLayout({**largest, **plan.o.members})
        super().__init__(i, StructLayout({**codes, **align.placed}), levels=14)

    def elaborate(self, platform: Any) -> Module:
        """Build the additions and subtractions."""
        m = Module()
        align, plan = self._align, self._align.plan
        for index in range(plan.clusters):
            (largest,) = self.i.largest[index]
            total = largest + self.i.scales[index] + (align.term_code - plan.gated)
            code = Mux(largest.any(), total, 0) if plan.gated else total
            m.d.comb += [self.o.tops[index].eq(code), self.o.largest[0][index].eq(code)]
            for term in range(index * plan.cluster, (index + 1) * plan.cluster):
                m.d.comb += self.o.local[term].eq(largest - self.i.codes[term])
        pass_on(m, self, *align.values, *align.special)
        return m


class Distances(Step):
    """How far each term is below the largest exponent of the step."""

    def __init__(self, align: AlignPlan) -> None:
        self._align = align
        i = StructLayout({**largest_layout(1, 1, align.code_bits), **align.placed})
        super().__init__(i, align.distances_layout, levels=18)

    def elaborate(self, platform: Any) -> Module:
        """Build the subtractions and the limits."""
        m = Module()
        align, plan = self._align, self._align.plan
        ((top,),) = self.i.largest
        if align.least_code:
            largest, top = top, Signal(align.code_bits, name="least_top")
            m.d.comb += top.eq(Mux(largest < align.least_code, align.least_code, largest))
        m.d.comb += self.o.top.eq(top)
        for index in range(plan.clusters):
            below = Signal(align.code_bits, name=f"below{index}")
            m.d.comb += below.eq(top - self.i.tops[index])
            for term in range(index * plan.cluster, (index + 1) * plan.cluster):
                local = self.i.local[term]
                alone = plan.clusters == 1 and not align.least_code
                total = local if alone else local + below
                m.d.comb += self.o.distances[term].eq(limited(total, align.distance_bits))
        pass_on(m, self, *align.values, *align.special)
        return m


class OneTerm(Step):
    """The only term of a step as its sum."""

    def __init__(self, align: AlignPlan) -> None:
        self._align = align
        super().__init__(align.plan.o, align.wide.sum_layout, levels=8)

    def elaborate(self, platform: Any) -> Module:
        """Build the code of the exponent."""
        m = Module()
        (total,), (scale,) = self.i["values"], self.i.scales
        m.d.comb += [self.o.sum.eq(total), self.o.top.eq(scale + self._align.term_code)]
        pass_on(m, self, *self._align.special)
        return m


def distance_steps(align: AlignPlan) -> list[Step]:
    """The steps from the terms of a step to their distances."""
    plan = align.plan
    return [
        Cluster(align),
        *largest_steps(plan.clusters, plan.cluster, plan.code_bits, plan.o.members),
        ClusterCodes(align),
        *largest_steps(1, plan.clusters, align.code_bits, align.placed),
        Distances(align),
    ]


def shifted(m: Module, align: AlignPlan, value: Value, distance: Value, inverted: bool) -> Value:
    """A term over a power of two, in two's complement, or `inverted` where it is negative."""
    plan, drop = align.plan, align.drop
    if plan.signed:
        placed = value.as_signed() >> drop if drop > 0 else Cat(Const(0, -drop), value)
        return placed.as_signed() >> distance
    magnitude, negative = value[: plan.magnitude_bits], value[plan.magnitude_bits]
    placed = magnitude[drop:] if drop > 0 else Cat(Const(0, -drop), magnitude)
    moved = Signal(align.kept, name="moved")
    m.d.comb += moved.eq(placed >> distance)
    return signed_value(moved, negative, inverted)


def signed_value(magnitude: Value, negative: Value, inverted: bool) -> Value:
    """A number in two's complement, or `inverted` where it is negative: it then lacks a 1."""
    if inverted:
        return Cat(magnitude ^ negative.replicate(len(magnitude)), negative)
    return Mux(negative, -magnitude, magnitude)


class AlignTerms(Step):
    """The terms on one exponent, of a step that the accumulator is not part of."""

    verilog_name = "shift"

    def __init__(self, align: AlignPlan, view: str) -> None:
        self._align, self._inverted = align, view == STRUCTURE
        levels = 3 * align.distance_bits + 2
        super().__init__(align.distances_layout, align.aligned_layout, levels=levels)

    def elaborate(self, platform: Any) -> Module:
        """Build the shifts."""
        m = Module()
        for value, distance, term in zip(
            self.i.values, self.i.distances, self.o.terms, strict=True
        ):
            moved = shifted(m, self._align, Value.cast(value), distance, self._inverted)
            m.d.comb += Value.cast(term).eq(moved)
        pass_on(m, self, "top", *self._align.special)
        return m
