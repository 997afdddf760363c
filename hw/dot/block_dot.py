"""Block dot product: two dense blocks become one exact sum and the sum of their exponents."""

from collections.abc import Sequence
from functools import partial
from itertools import pairwise
from typing import Any

from amaranth.hdl import Cat, Const, Module, Signal, Value, signed
from amaranth.lib import data

from axs6.hw.core.compressor import two_rows, value_of
from axs6.hw.core.parameters import BEHAVIOUR, STRUCTURE
from axs6.hw.core.pipeline import Pipeline, Step, viewed
from axs6.hw.core.rtlil import add_lanes
from axs6.hw.core.structures import ArrayLayout, StructLayout
from axs6.hw.dot.beside import add_beside
from axs6.hw.dot.heap import Heap, sum_plan
from axs6.hw.dot.lanes import (
    Addend,
    CompressProductLane,
    LanePlan,
    PartialProductLane,
    lane_plan,
    shifted,
)
from axs6.hw.dot.products import product_steps
from axs6.hw.dot.shape import DotShape, GroupScaling, passed, result
from axs6.hw.dot.words import block_dot_words

LEVELS_A_STEP = 3
"""Levels of the tree between two places for registers."""


class PartialProducts(Step):
    """`PartialProductLane` for each pair of codes, and what goes along with the products."""

    def __init__(self, shape: DotShape, plan: LanePlan) -> None:
        self._shape, self._plan = shape, plan
        products = ArrayLayout(plan.partial, shape.block)
        o = StructLayout({"products": products, **shape.beside(shape.scalings)})
        super().__init__(shape.pair, o, levels=PartialProductLane(plan).levels)

    def elaborate(self, platform: Any) -> Module:
        """Instantiate the lanes."""
        m = Module()
        add_beside(m, self._shape, self.i, self.o)
        lanes = (
            {"i": Cat(a, b), "o": product}
            for a, b, product in zip(*self._shape.lane_codes(self.i), self.o.products, strict=True)
        )
        add_lanes(m, platform, [partial(PartialProductLane, self._plan)], lanes)
        return m


class TreeStep(Step):
    """A step that ends at a level of the plan."""

    def __init__(self, heap: Heap, i: data.StructLayout, level: int, *, levels: int) -> None:
        self._heap = heap
        self._level = level
        super().__init__(i, heap.layout(level), levels=levels)

    def compress(self, m: Module, inputs: Sequence[dict[int, Value]], after: int) -> None:
        """Build the adders of each sum up to the level; drive the output with what is alive."""
        plan = self._heap.plan
        for nodes, bits in zip(inputs, self.o.bits, strict=True):
            values = plan.tree.build(m, nodes, after, self._level)
            m.d.comb += bits.eq(Cat(values[node] for node in plan.alive(self._level)))


class CompressProducts(TreeStep):
    """`CompressProductLane` for each product, and the levels of the tree that are as early."""

    verilog_name = "products"

    def __init__(self, heap: Heap, plan: LanePlan, i: data.StructLayout) -> None:
        self._plan = plan
        levels = 2 * (heap.plan.level - plan.multiplier.half) + 2 * plan.shift_bits
        super().__init__(heap, i, heap.plan.level, levels=levels)

    def elaborate(self, platform: Any) -> Module:
        """Instantiate the lanes and build the adders."""
        m = Module()
        m.d.comb += passed(self.i, self.o)
        products = self.i.products
        inverted = Signal(ArrayLayout(len(self._plan.addend.bits), len(products)))
        lanes = ({"i": i, "bits": bits} for i, bits in zip(products, inverted, strict=True))
        add_lanes(m, platform, [partial(CompressProductLane, self._plan)], lanes)
        signed = self._plan.addend.sign != 0
        inputs: list[list[Value]] = [[] for _ in range(self._heap.groups)]
        for index, (each, product) in enumerate(zip(inverted, products, strict=True)):
            inputs[index // self._heap.group] += [*each, product.sign] if signed else [*each]
        self.compress(m, [dict(enumerate(each)) for each in inputs], 0)
        return m


class CompressColumns(TreeStep):
    """Some levels of the compressor tree."""

    verilog_name = "compress"

    def __init__(self, heap: Heap, after: int, to: int) -> None:
        self._after = after
        super().__init__(heap, heap.layout(after), to, levels=2 * (to - after))

    def elaborate(self, platform: Any) -> Module:
        """Build the adders."""
        m = Module()
        m.d.comb += passed(self.i, self.o)
        alive = self._heap.plan.alive(self._after)
        inputs = [dict(zip(alive, bits, strict=True)) for bits in self.i.bits]
        self.compress(m, inputs, self._after)
        return m


def scaled(scaling: GroupScaling, width: int) -> Addend:
    """The bits of a number of some width with a sign, times its scales."""
    width += scaling.shift
    factor = scaling.factor.bit_length()
    bits = tuple((x + y, 0) for x in range(width) for y in range(factor))
    return Addend(bits, -sum(1 << width - 1 + y for y in range(factor)))


class ScaleGroupSums(Step):
    """The sums of groups times their scales, as the bits of `scaled`."""

    verilog_name = "scale"

    def __init__(self, heap: Heap, scaling: GroupScaling, following: Heap) -> None:
        self._heap, self._scaling = heap, scaling
        levels = 2 * scaling.shift.bit_length() + 1
        after = heap.layout(heap.plan.deepest)
        super().__init__(after, following.layout(0), levels=levels)

    def elaborate(self, platform: Any) -> Module:
        """Build the shifts and the partial products."""
        m = Module()
        m.d.comb += passed(self.i, self.o)
        plan, scaling = self._heap.plan, self._scaling
        found: list[Value] = []
        for index, alive in enumerate(self.i.bits):
            nodes = dict(zip(plan.alive(plan.deepest), alive, strict=True))
            bits = [value_of(c[0], nodes) if c else Const(0, 1) for c in plan.rows]
            if scaling.shift:
                amount = self.i[f"shift{scaling.group}"][index]
                bits = shifted(m, bits, amount)
            bits = bits[: plan.width + scaling.shift]
            factor = Const(1, 1)
            if scaling.factor > 1:
                factor = self.i[f"factor{scaling.group}"][index]
            for place, bit in enumerate(bits):
                last = place == len(bits) - 1
                found += [~(bit & each) if last else bit & each for each in factor]
        m.d.comb += Value.cast(self.o.bits).eq(Cat(found))
        return m


class AddRows(Step):
    """The two numbers that the tree leaves become one."""

    def __init__(self, heap: Heap) -> None:
        self.heap = heap
        o = heap.shape.sum
        levels = 6 + 2 * (heap.plan.width - 1).bit_length()
        super().__init__(heap.layout(heap.plan.deepest), o, levels=levels)

    def elaborate(self, platform: Any) -> Module:
        """Build the adder."""
        m = Module()
        plan = self.heap.plan
        nodes = dict(zip(plan.alive(plan.deepest), self.i.bits[0], strict=True))
        first, second = two_rows(plan.rows, nodes)
        total = Signal(signed(plan.width))
        # truncates: the rows are the sum modulo a power of two, and it fits
        m.d.comb += [total.eq(first + second), *result(total, self.i, self.o)]
        return m


def heaps(shape: DotShape, plan: LanePlan) -> list[Heap]:
    """The sums of a block dot product, of the smallest groups first."""
    found = []
    addend, size, bound = plan.addend, 1, shape.bound // shape.block
    for scaling in shape.scalings:
        bound //= scaling.factor << scaling.shift
    for index, scaling in enumerate(shape.scalings):
        count = scaling.group // size
        bound *= count
        summed = sum_plan(count, addend, bound.bit_length() + 1, 1)
        found.append(Heap(shape, scaling.group, summed, shape.scalings[index:]))
        addend, size = scaled(scaling, summed.width), scaling.group
        bound *= scaling.factor << scaling.shift
    last = sum_plan(shape.block // size, addend, shape.width)
    return [*found, Heap(shape, shape.block, last, ())]


def block_dot_steps(shape: DotShape, view: str = STRUCTURE, *, fine: bool = False) -> list[Step]:
    """The steps of a block dot product, from a pair of blocks to `DotShape.sum`.

    Args:
        shape: the block dot product.
        view: "structure" or "behaviour".
        fine: whether the products have places for many registers.
    """
    if view == BEHAVIOUR:
        return block_dot_words(shape)
    plan = lane_plan(shape.a.element, shape.b.element, bool(shape.scalings))
    first, *others = heaps(shape, plan)
    steps: list[Step] = product_steps(first, plan) if fine else []
    if not fine:
        steps.append(PartialProducts(shape, plan))
        steps.append(CompressProducts(first, plan, steps[-1].o.shape()))
    steps += _compress(first, first.plan.level)
    for before, scaling, heap in zip([first, *others], shape.scalings, others, strict=False):
        steps += [ScaleGroupSums(before, scaling, heap), *_compress(heap, 0)]
    return [*steps, AddRows([first, *others][-1])]


def _compress(heap: Heap, level: int) -> list[Step]:
    """The adders of a heap above a level."""
    cuts = [*range(level, heap.plan.deepest, LEVELS_A_STEP), heap.plan.deepest]
    return [CompressColumns(heap, after, to) for after, to in pairwise(cuts)]


class BlockDot(Pipeline):
    """Multiplies a pair of dense blocks in each cycle; the result is exact and cannot overflow.

    The products and their sum are one compressor tree, with the signs folded in as inversions and
    one adder at its end; in the behaviour view they are `*`, `<<` and a balanced tree of `+`.

    The result is `sum` * 2^`exponent` times a constant of the formats, which
    `axs6.golden.dot.block_dot_unit` gives. Sums of more than 64 bits have the higher ones in
    `high`. For formats that may hold NaN, `special` is 1 where the products add up to NaN, 2 for
    +Inf, 3 for -Inf, and 0 for a number; where it is not 0, `sum` is. Where blocks have no
    exponents there is no `exponent`. Scales of channels and tensors take no part.

    Args:
        block: values in a block; the format's own by default.
        stages: ranks of registers, from 0.
        view: "structure", the gates that synthesis is to map, or "behaviour", words; equal in
            every cycle.
        format: block format, or two of the same groups joined by `x`.

    Ports:
        i (in, stream): an item is a pair of blocks, a and b.
        i.a.exponent, i.a.scale, i.a.shifts, i.a.factor (in, the bits of each scale): codes of the
            scales of a, those that the format has.
        i.a.codes (in, `block` x the bits of an element): the codes of a, lane 0 first.
        i.b.exponent, i.b.scale, i.b.shifts, i.b.factor (in, the bits of each scale): of b.
        i.b.codes (in, `block` x the bits of an element): the codes of b.
        o (out, stream): an item is the sum of the products.
        o.sum (out, the bits that no sum exceeds): an integer in two's complement.
        o.high (out, bits above 64): the high bits of a sum of more than 64 bits, with its sign.
        o.exponent (out, the bits of the sum of both): exponent fields of a and b, added.
        o.special (out, 2 bits): 0 for a number, 1 for NaN, 2 for +Inf, 3 for -Inf.

    Latency is `stages` cycles, interval 1. Source: docs/format.md, "Block dot product".

    Raises:
        ValueError: a parameter is not what it must be.
    """

    def __init__(
        self,
        block: int | None = None,
        stages: int = 0,
        view: str = STRUCTURE,
        format: str = "axs6",
    ) -> None:
        shape = DotShape.of(format, block)
        steps, like = viewed(partial(block_dot_steps, shape), view)
        super().__init__(steps, stages, like=like)
