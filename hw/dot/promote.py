"""An accumulator that is added to another one in FP32 after some steps, and starts again at 0.

The sum of a segment of steps goes to the outer accumulator while the first term of the next one
comes, so that both are added side by side; the last sum of a vector is added behind the loop.
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
from axs6.hw.fp32.add import addition_steps, operands_layout
from axs6.hw.fp32.common import pass_on
from axs6.hw.fp32.widen import widened


def sums_layout(dtype: Float, steps: int) -> data.StructLayout:
    """Both accumulators, and the number of steps in the segment so far."""
    bits = steps.bit_length()
    return StructLayout({"value": dtype.width, "promoted": FP32.width, "count": bits})


class Begin(Step):
    """At the end of a segment, its sum becomes an addend of the outer accumulator, and the next
    segment starts at 0."""

    def __init__(
        self, inner: Step, dtype: Float, steps: int, term: data.StructLayout, skips: bool
    ) -> None:
        self._dtype, self._steps, self._skips = dtype, steps, skips
        sums = sums_layout(dtype, steps)
        o = {"inner": inner.i.shape(), "outer": operands_layout, "count": sums["count"].shape}
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
            o.outer.a.eq(total.promoted),
            o.outer.b.eq(Mux(over, widened(m, self._dtype, total.value), 0)),
        ]
        if "total" in o.inner.shape().members:
            m.d.comb += [o.inner.total.eq(before), o.inner.term.eq(self.i.term)]
        else:
            m.d.comb += [o.inner.a.eq(before), o.inner.b.eq(self.i.term.value)]
        return m


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
        pass_on(m, self, "count")
        return m


class End(Step):
    """Both accumulators after a step."""

    def __init__(self, i: data.StructLayout, dtype: Float, steps: int) -> None:
        super().__init__(i, sums_layout(dtype, steps), levels=0)

    def elaborate(self, platform: Any) -> Module:
        """Connect the results."""
        m = Module()
        m.d.comb += [
            self.o.value.eq(self.i.inner.value),
            self.o.promoted.eq(self.i.outer.value),
        ]
        pass_on(m, self, "count")
        return m


def promoting_steps(
    inner: Sequence[Step], dtype: Float, steps: int, term: data.StructLayout, skips: bool = False
) -> list[Step]:
    """The steps of a loop around those of an accumulator, which is promoted after some terms.

    Args:
        inner: from a total and a term to a total.
        dtype: of the total.
        steps: terms of a segment.
        term: layout of the terms.
        skips: whether there is a field `skipped`; see `Loop`.
    """
    found: list[Step] = [Begin(inner[0], dtype, steps, term, skips)]
    for one, other in zip_longest(inner, addition_steps()):
        found.append(Both(one, other, found[-1].o.shape()))
    return [*found, End(found[-1].o.shape(), dtype, steps)]


class Promote(Step):
    """Both accumulators as operands of the last addition."""

    def __init__(self, dtype: Float, steps: int) -> None:
        self._dtype = dtype
        super().__init__(sums_layout(dtype, steps), operands_layout, levels=4)

    def elaborate(self, platform: Any) -> Module:
        """Connect the operands."""
        m = Module()
        m.d.comb += [
            self.o.a.eq(self.i.promoted),
            self.o.b.eq(widened(m, self._dtype, self.i.value)),
        ]
        return m
