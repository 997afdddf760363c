"""An accumulator that is added to another one in FP32 after some steps, and starts again at 0.

The sum of a segment of steps goes to the outer accumulator while the first term of the next one
comes, so that both are added side by side; the last sum of a vector is added behind the loop.

Where the accumulator is scaled, each term has a factor beside it, and the sum is multiplied by that
of the last term of its segment, in a fused multiply-add with the outer accumulator.
"""

from collections.abc import Sequence
from itertools import zip_longest
from typing import Any

from amaranth.hdl import Const, Module, Mux, Signal
from amaranth.lib import data

from axs6.golden.formats import FP32, Float
from axs6.hw.core.pipeline import Step, add_steps
from axs6.hw.core.structures import StructLayout
from axs6.hw.fp32.accumulator import SKIPPED
from axs6.hw.fp32.add import addition_steps
from axs6.hw.fp32.common import pass_on
from axs6.hw.fp32.multiply_add import multiply_add_steps
from axs6.hw.fp32.widen import widened

FACTOR = {"factor": FP32.width}
"""What a sum is multiplied by before it is added to the outer accumulator, in FP32."""

MINUS_ZERO = FP32.sign_bit
"""The product that leaves an addend as it is, zeros of either sign too."""


def factored(term: data.StructLayout) -> data.StructLayout:
    """A term with a factor beside it."""
    return StructLayout({**term.members, **FACTOR})


def sums_layout(dtype: Float, steps: int, factor: bool) -> data.StructLayout:
    """Both accumulators, the number of steps in the segment so far, and the last factor."""
    bits = steps.bit_length()
    members = {"value": dtype.width, "promoted": FP32.width, "count": bits}
    return StructLayout({**members, **(FACTOR if factor else {})})


def outer_steps(factor: bool, view: str) -> list[Step]:
    """The steps that add to the outer accumulator."""
    return multiply_add_steps(view) if factor else addition_steps()


class Begin(Step):
    """At the end of a segment, its sum becomes an addend of the outer accumulator, and the next
    segment starts at 0."""

    def __init__(
        self,
        inner: Step,
        outer: Step,
        dtype: Float,
        steps: int,
        term: data.StructLayout,
        skips: bool,
    ) -> None:
        self._dtype, self._steps, self._skips = dtype, steps, skips
        self._factor = "factor" in term.members
        sums = sums_layout(dtype, steps, self._factor)
        o = {"inner": inner.i.shape(), "outer": outer.i.shape()}
        o |= {name: sums[name].shape for name in beside(sums)}
        skipped = SKIPPED.members if skips else {}
        i = StructLayout({"total": sums, "term": term, **skipped})
        super().__init__(i, StructLayout(o), levels=8)

    def elaborate(self, platform: Any) -> Module:
        """Build the comparison and the choices."""
        m = Module()
        total, o = self.i.total, self.o
        over = Signal()
        before = Mux(over, 0, total.value)
        full, more = total.count == self._steps, Const(1, 1)
        if self._skips:
            more = ~self.i.skipped
            full = full & more
            if "skipped" in o.inner.shape().members:
                m.d.comb += o.inner.skipped.eq(self.i.skipped)
        m.d.comb += [
            over.eq(full),
            o.count.eq(Mux(over, 1, total.count + more)),
        ]
        value = widened(m, self._dtype, total.value)
        if self._factor:
            m.d.comb += [
                o.outer.a.eq(Mux(over, value, MINUS_ZERO)),
                o.outer.b.eq(Mux(over, total.factor, 0)),
                o.outer.c.eq(total.promoted),
                o.factor.eq(Mux(more, self.i.term.factor, total.factor)),
            ]
        else:
            m.d.comb += [o.outer.a.eq(total.promoted), o.outer.b.eq(Mux(over, value, 0))]
        if "total" in o.inner.shape().members:
            term = o.inner.term
            names = term.shape().members
            given = [term[name].eq(self.i.term[name]) for name in names]
            m.d.comb += [
                o.inner.total.eq(before),
                *(given if self._factor else [term.eq(self.i.term)]),
            ]
        else:
            m.d.comb += [o.inner.a.eq(before), o.inner.b.eq(self.i.term.value)]
        return m


def beside(layout: data.StructLayout) -> list[str]:
    """The fields that pass by the steps of both accumulators."""
    return [name for name in layout.members if name in ("count", "factor")]


class Both(Step):
    """A step of either accumulator side by side; None for one that is done."""

    def __init__(self, inner: Step | None, outer: Step | None, i: data.StructLayout) -> None:
        self._inner, self._outer = inner, outer
        members: dict[str, Any] = dict(i.members)
        for name, step in (("inner", inner), ("outer", outer)):
            if step is not None:
                members[name] = step.o.shape()
        levels = max(step.levels for step in (inner, outer) if step is not None)
        super().__init__(i, StructLayout(members), levels=levels)

    def elaborate(self, platform: Any) -> Module:
        """Connect the two steps."""
        m = Module()
        add_steps(m, [step for step in (self._inner, self._outer) if step is not None])
        for name, step in (("inner", self._inner), ("outer", self._outer)):
            if step is None:
                pass_on(m, self, name)
            else:
                m.d.comb += [step.i.eq(self.i[name]), self.o[name].eq(step.o)]
        pass_on(m, self, *beside(self.i.shape()))
        return m


class End(Step):
    """Both accumulators after a step."""

    def __init__(self, i: data.StructLayout, dtype: Float, steps: int) -> None:
        super().__init__(i, sums_layout(dtype, steps, "factor" in i.members), levels=0)

    def elaborate(self, platform: Any) -> Module:
        """Connect the results."""
        m = Module()
        m.d.comb += [
            self.o.value.eq(self.i.inner.value),
            self.o.promoted.eq(self.i.outer.value),
        ]
        pass_on(m, self, *beside(self.i.shape()))
        return m


def promoting_steps(
    inner: Sequence[Step],
    dtype: Float,
    steps: int,
    term: data.StructLayout,
    skips: bool,
    view: str,
) -> list[Step]:
    """The steps of a loop around those of an accumulator, which is promoted after some terms.

    Args:
        inner: from a total and a term to a total.
        dtype: of the total.
        steps: terms of a segment.
        term: layout of the terms, with `factor` where the accumulator is scaled.
        skips: whether there is a field `skipped`; see `Loop`.
        view: "structure" or "behaviour".
    """
    outer = outer_steps("factor" in term.members, view)
    found: list[Step] = [Begin(inner[0], outer[0], dtype, steps, term, skips)]
    for one, other in zip_longest(inner, outer):
        found.append(Both(one, other, found[-1].o.shape()))
    return [*found, End(found[-1].o.shape(), dtype, steps)]


class Promote(Step):
    """Both accumulators as operands of the last addition, with the factor if there is one."""

    def __init__(self, outer: Step, dtype: Float, steps: int, factor: bool) -> None:
        self._dtype, self._factor = dtype, factor
        super().__init__(sums_layout(dtype, steps, factor), outer.i.shape(), levels=4)

    def elaborate(self, platform: Any) -> Module:
        """Connect the operands."""
        m = Module()
        i, o = self.i, self.o
        value = widened(m, self._dtype, i.value)
        if self._factor:
            m.d.comb += [o.a.eq(value), o.b.eq(i.factor), o.c.eq(i.promoted)]
        else:
            m.d.comb += [o.a.eq(i.promoted), o.b.eq(value)]
        return m


def last_steps(dtype: Float, steps: int, factor: bool, view: str) -> list[Step]:
    """The steps behind the loop, from both accumulators to their sum in FP32."""
    outer = outer_steps(factor, view)
    return [Promote(outer[0], dtype, steps, factor), *outer]
