"""Hadamard transform of a block of floating-point values, which goes before an encoder."""

from collections.abc import Iterator
from typing import Any

from amaranth.hdl import Cat, Const, Module, Mux, Signal, Value, signed
from amaranth.lib import data

from axs6.golden.formats import Float
from axs6.golden.formats.floating import INPUT_DTYPES
from axs6.golden.hadamard import GUARD_BITS, check_size, scale_exponent
from axs6.hw.core.layouts import float_layout, values_layout
from axs6.hw.core.parameters import float_dtype
from axs6.hw.core.pipeline import Pipeline, Step, in_lanes
from axs6.hw.core.structures import ArrayLayout, StructLayout
from axs6.hw.core.trees import any_of
from axs6.hw.encoder.largest import distances_layout, search_layout, search_steps
from axs6.hw.fp32.common import pass_on
from axs6.hw.fp32.normalise import ScaledInteger, normalising_steps


class TransformPlan:
    """Widths and layouts of a transform.

    Args:
        dtype: of the values.
        size: values of a block.
    """

    def __init__(self, dtype: Float, size: int) -> None:
        self.dtype, self.size = dtype, size
        self.kept = dtype.fraction_bits + 1 + GUARD_BITS
        self.distance_bits = (self.kept - 1).bit_length()
        self.stages = size.bit_length() - 1
        exponent = dtype.emin - 1 - dtype.fraction_bits - GUARD_BITS - scale_exponent(size)
        self.rounded = ScaledInteger(
            self.kept + self.stages, dtype.exponent_special - 1, exponent, dtype, toward_zero=False
        )

    @property
    def passing(self) -> data.StructLayout:
        """The fields that pass by the search for the largest exponent field."""
        lane = StructLayout({"significand": self.dtype.fraction_bits + 1, "sign": 1, "infinite": 1})
        return StructLayout({"values": ArrayLayout(lane, self.size), "nan": 1})

    def sums(self, stage: int) -> data.StructLayout:
        """Sums after a number of stages, and which of them take an infinity of either sign."""
        sums = ArrayLayout(signed(self.kept + stage + 1), self.size)
        infinities = {"plus": self.size, "minus": self.size}
        return StructLayout({"sums": sums, "top": self.dtype.exponent_bits, **infinities, "nan": 1})


class UnpackTransformed(Step):
    """Exponent fields and significands; subnormal values have field 1, as zeros do."""

    verilog_name = "unpack"

    def __init__(self, plan: TransformPlan) -> None:
        self._dtype = plan.dtype
        width = plan.dtype.exponent_bits
        o = search_layout(plan.size, width, width, plan.passing)
        super().__init__(values_layout(plan.size, plan.dtype), o, levels=6)

    def elaborate(self, platform: Any) -> Module:
        """Build the tests for special values."""
        m = Module()
        layout, rest = float_layout(self._dtype), self.o.rest
        nans = []
        for pattern, lane, value in zip(self.i.values, self.o.lanes, rest["values"], strict=True):
            x = data.View(layout, pattern)
            hidden, nonzero, special = x.exponent.any(), x.fraction.any(), x.exponent.all()
            nans.append(special & nonzero)
            m.d.comb += [
                lane.field.eq(Cat(x.exponent[0] | ~hidden, x.exponent[1:])),
                lane.equal.eq(1),
                value.significand.eq(Cat(x.fraction, hidden)),
                value.sign.eq(x.sign),
                value.infinite.eq(special & ~nonzero),
            ]
        m.d.comb += rest.nan.eq(any_of(nans))
        return m


class AlignTransformed(Step):
    """Integers under the largest exponent, what lies below them dropped."""

    verilog_name = "align"

    def __init__(self, plan: TransformPlan) -> None:
        self._plan = plan
        i = distances_layout(plan.size, plan.dtype.exponent_bits, plan.passing, plan.distance_bits)
        super().__init__(i, plan.sums(0), levels=3 * plan.distance_bits + 10)

    def elaborate(self, platform: Any) -> Module:
        """Build the shifts and the negations."""
        m = Module()
        rest, kept = self.i.rest, self._plan.kept
        infinite = Cat(value.infinite for value in rest["values"])
        signs = Cat(value.sign for value in rest["values"])
        m.d.comb += [
            self.o.top.eq(self.i.largest),
            self.o.plus.eq(infinite & ~signs),
            self.o.minus.eq(infinite & signs),
            self.o.nan.eq(rest.nan),
        ]
        lanes = zip(self.i.lanes, rest["values"], self.o.sums, strict=True)
        for index, (lane, value, total) in enumerate(lanes):
            moved = Signal(kept, name=f"moved{index}")
            whole = Cat(Const(0, GUARD_BITS), value.significand)
            m.d.comb += [
                moved.eq((whole >> lane.distance) & lane.close.replicate(kept)),
                total.eq(Mux(value.sign, -moved, moved)),
            ]
        return m


class Butterflies(Step):
    """One stage: sums and differences of values `2^stage` lanes apart."""

    def __init__(self, plan: TransformPlan, stage: int) -> None:
        self._pairs = list(pairs(plan.size, 1 << stage))
        levels = 4 + 2 * (plan.kept + stage).bit_length()
        super().__init__(plan.sums(stage), plan.sums(stage + 1), levels=levels)

    def elaborate(self, platform: Any) -> Module:
        """Build an adder and a subtracter for each pair."""
        m = Module()
        i, o = self.i, self.o
        pass_on(m, self, "top", "nan")
        for a, b in self._pairs:
            m.d.comb += [
                o.sums[a].eq(i.sums[a] + i.sums[b]),
                o.sums[b].eq(i.sums[a] - i.sums[b]),
                o.plus[a].eq(i.plus[a] | i.plus[b]),
                o.plus[b].eq(i.plus[a] | i.minus[b]),
                o.minus[a].eq(i.minus[a] | i.minus[b]),
                o.minus[b].eq(i.minus[a] | i.plus[b]),
            ]
        return m


def pairs(size: int, distance: int) -> Iterator[tuple[int, int]]:
    """Lanes that are a power of two apart, each in one pair."""
    return ((lane, lane + distance) for lane in range(size) if not lane & distance)


class SumLanes(Step):
    """Each sum with its exponent and what stands in its place."""

    def __init__(self, plan: TransformPlan) -> None:
        lanes = ArrayLayout(plan.rounded.sum_layout, plan.size)
        super().__init__(plan.sums(plan.stages), lanes, levels=2)

    def elaborate(self, platform: Any) -> Module:
        """Connect the lanes."""
        m = Module()
        i = self.i
        for total, plus, minus, lane in zip(i.sums, i.plus, i.minus, self.o, strict=True):
            m.d.comb += [
                lane.sum.eq(total),
                lane.top.eq(i.top),
                lane.nan.eq(i.nan | (plus & minus)),
                lane.infinite.eq(plus | minus),
                lane.negative.eq(minus),
            ]
        return m


class Transformed(Step):
    """The results of all lanes as values."""

    def __init__(self, plan: TransformPlan, i: data.Layout) -> None:
        super().__init__(i, values_layout(plan.size, plan.dtype), levels=0)

    def elaborate(self, platform: Any) -> Module:
        """Connect them."""
        m = Module()
        lanes: list[Any] = list(self.i)
        results: list[Value] = [lane.value for lane in lanes]
        m.d.comb += [value.eq(x) for value, x in zip(self.o["values"], results, strict=True)]
        return m


class Hadamard(Pipeline):
    """Multiplies a block of values by the Hadamard matrix of Sylvester in each cycle.

    Values are aligned to the largest exponent of the block, with 8 bits below the last significand
    bit of that; lower bits are dropped. Sums are exact: each stage of butterflies adds a bit. Each
    result is rounded once to nearest even, with subnormals, and is infinite on overflow. A block
    with a NaN gives NaN; opposite infinities that meet in a result do too.

    Results are sums times 2 to minus half the number of stages, rounded down. That makes the matrix
    orthonormal for blocks of 16 and 64, and larger by the square root of 2 for 8, 32 and 128. The
    other operand takes the inverse, once, where it is a weight.

    Args:
        block: values of a block: 8, 16, 32, 64 or 128.
        dtype: of the values: "fp32", "bf16" or "fp16".
        stages: ranks of registers, from 0.

    Ports:
        i (in, stream): an item is a block of values.
        i.values (in, `block` x the bits of `dtype`): the values as bit patterns, lane 0 first.
        o (out, stream): an item is the results.
        o.values (out, `block` x the bits of `dtype`): the results as bit patterns, lane 0 first.

    Latency is `stages` cycles, interval 1. Source: docs/hardware.md and `axs6.golden.hadamard`.

    Raises:
        ValueError: a parameter is not what it must be.
    """

    def __init__(self, block: int = 32, dtype: str = "fp32", stages: int = 0) -> None:
        plan = TransformPlan(float_dtype(dtype, INPUT_DTYPES), check_size(block, "block"))
        width = plan.dtype.exponent_bits
        rounding = in_lanes(lambda: normalising_steps(plan.rounded), block)
        steps = [
            UnpackTransformed(plan),
            *search_steps(block, width, plan.passing, plan.distance_bits),
            AlignTransformed(plan),
            *(Butterflies(plan, stage) for stage in range(plan.stages)),
            SumLanes(plan),
            *rounding,
            Transformed(plan, rounding[-1].o.shape()),
        ]
        super().__init__(steps, stages)
