"""The sum of aligned terms: one compressor tree, or in words a tree of additions."""

from functools import cache
from itertools import pairwise
from typing import Any

from amaranth.hdl import Cat, Module, Value, signed
from amaranth.lib import data

from axs6.hw.core.compressor import ONE, Bit, Tree, two_rows
from axs6.hw.core.parameters import STRUCTURE
from axs6.hw.core.pipeline import Step
from axs6.hw.core.structures import ArrayLayout, StructLayout
from axs6.hw.dot.align import AlignPlan
from axs6.hw.fp32.common import pass_on
from axs6.hw.fp32.normalise import SPECIAL

LEVELS_A_STEP = 3
"""Levels of the tree between two places for registers."""


class HeapPlan:
    """Plan of the sum of aligned terms.

    A term of n bits below its sign s is worth them less s * 2^n, which is (1 - s) * 2^n - 2^n: the
    inverted sign enters the tree, and a constant makes up for it. A term that is inverted where it
    is negative gets the 1 that it lacks: s itself. Input nodes are the bits of the first term, and
    so on; sums are modulo 2^width.

    Args:
        align: widths of the terms.
    """

    def __init__(self, align: AlignPlan) -> None:
        widths = [align.kept] * align.plan.count + [align.own_bits] * align.fused
        self.tree = tree = Tree([0] * sum(width + 1 for width in widths))
        self.width = align.wide.bits + 1
        columns: list[list[Bit]] = [[] for _ in range(self.width)]
        node, constant = 0, 0
        for width in widths:
            *bits, sign = tree.inputs[node : node + width + 1]
            node += width + 1
            for column, bit in zip(columns, bits, strict=False):
                column.append(bit)
            if not align.plan.signed:
                columns[0].append(sign)
            if width < self.width:
                columns[width].append(sign.complement())
                constant -= 1 << width
        for weight, column in enumerate(columns):
            column += [ONE] * (constant >> weight & 1)
        self.rows = tree.compress(columns, rows=2)
        self.deepest = max(bit.level for column in self.rows for bit in column)

    def alive(self, level: int) -> list[int]:
        """Nodes of the tree that the levels above one need, or that are left at its end."""
        return self.tree.alive(level, self.rows) if level else list(range(len(self.tree.inputs)))


@cache
def heap_plan(align: AlignPlan) -> HeapPlan:
    """The plan for some widths."""
    return HeapPlan(align)


def heap_layout(align: AlignPlan, level: int) -> data.StructLayout:
    """The nodes that are alive at a level of the plan, and what passes by."""
    if not level:
        return align.aligned_layout
    bits = len(heap_plan(align).alive(level))
    return StructLayout({"bits": bits, "top": align.code_bits, **SPECIAL})


def _nodes(align: AlignPlan, view: data.View, level: int) -> dict[int, Value]:
    """Values of the nodes that are alive at a level."""
    if level:
        bits = list(view.bits)
    else:
        # Bits of each term: Amaranth would go through all terms for every bit of one `Cat`.
        terms = [*view.terms, *([view.own] if align.fused else [])]
        bits = [bit for term in terms for bit in Value.cast(term)]
    return dict(zip(heap_plan(align).alive(level), bits, strict=True))


class CompressTerms(Step):
    """Some levels of the tree."""

    def __init__(self, align: AlignPlan, after: int, to: int) -> None:
        self._align, self._after, self._to = align, after, to
        layouts = (heap_layout(align, level) for level in (after, to))
        super().__init__(*layouts, levels=2 * (to - after))

    def elaborate(self, platform: Any) -> Module:
        """Build the adders."""
        m = Module()
        plan = heap_plan(self._align)
        nodes = _nodes(self._align, self.i, self._after)
        values = plan.tree.build(m, nodes, self._after, self._to)
        m.d.comb += self.o.bits.eq(Cat(values[node] for node in plan.alive(self._to)))
        pass_on(m, self, "top", *SPECIAL)
        return m


class AddTermRows(Step):
    """The two numbers that the tree leaves become one."""

    def __init__(self, align: AlignPlan) -> None:
        self._align = align
        plan = heap_plan(align)
        i, o = heap_layout(align, plan.deepest), align.wide.sum_layout
        super().__init__(i, o, levels=14)

    def elaborate(self, platform: Any) -> Module:
        """Build the adder."""
        m = Module()
        plan = heap_plan(self._align)
        nodes = _nodes(self._align, self.i, plan.deepest)
        first, second = two_rows(plan.rows, nodes)
        # truncates: the rows are the sum modulo a power of two, and it fits
        m.d.comb += self.o.sum.eq((first + second)[: plan.width].as_signed())
        pass_on(m, self, "top", *SPECIAL)
        return m


def terms_layout(align: AlignPlan, count: int, width: int) -> data.StructLayout:
    """Numbers that are still to be added, the accumulator aside."""
    members = dict(align.aligned_layout.members)
    return StructLayout({**members, "terms": ArrayLayout(signed(width), count)})


class AddTermPairs(Step):
    """One level of the tree in words: half as many terms, one bit wider."""

    def __init__(self, align: AlignPlan, count: int, width: int) -> None:
        self._align = align
        layouts = ((count, width), ((count + 1) // 2, width + 1))
        i, o = (terms_layout(align, *each) for each in layouts)
        super().__init__(i, o, levels=8)

    def elaborate(self, platform: Any) -> Module:
        """Build the adders."""
        m = Module()
        terms = self.i.terms
        for index, total in enumerate(self.o.terms):
            pair = [terms[k] for k in range(2 * index, min(2 * index + 2, len(terms)))]
            m.d.comb += total.eq(sum(pair[1:], pair[0]))
        pass_on(m, self, *(name for name in self.i.shape().members if name != "terms"))
        return m


class AddOwn(Step):
    """The last term becomes the sum, with the accumulator if it is one of the terms."""

    def __init__(self, align: AlignPlan, width: int) -> None:
        self._align = align
        super().__init__(terms_layout(align, 1, width), align.wide.sum_layout, levels=9)

    def elaborate(self, platform: Any) -> Module:
        """Build the adder."""
        m = Module()
        (term,) = self.i.terms
        m.d.comb += self.o.sum.eq(term + self.i.own if self._align.fused else term)
        pass_on(m, self, "top", *SPECIAL)
        return m


def sum_steps(align: AlignPlan, view: str = STRUCTURE) -> list[Step]:
    """The steps from aligned terms to their sum."""
    if view == STRUCTURE:
        plan = heap_plan(align)
        cuts = [*range(0, plan.deepest, LEVELS_A_STEP), plan.deepest]
        return [*(CompressTerms(align, *cut) for cut in pairwise(cuts)), AddTermRows(align)]
    steps: list[Step] = []
    count, width = align.plan.count, align.kept + 1
    while count > 1:
        steps.append(AddTermPairs(align, count, width))
        count, width = (count + 1) // 2, width + 1
    return [*steps, AddOwn(align, width)]
