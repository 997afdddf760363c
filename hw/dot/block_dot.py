"""Block dot product: two dense blocks become one 16-bit sum and the sum of their exponents."""

from collections.abc import Iterator
from functools import cache, partial
from itertools import pairwise
from typing import Any

from amaranth.hdl import Cat, Const, Module, Signal, Value, signed
from amaranth.lib import data, wiring
from amaranth.lib.wiring import In, Out

from axs6.golden.spec import EXPONENT_SUM_BITS, MAGNITUDE_BITS, PRODUCT_MAX, SUM_BITS, check_block
from axs6.hw.core.compressor import ONE, Bit, Tree, value_of
from axs6.hw.core.layouts import code_layout, pair_layout, sum_layout
from axs6.hw.core.parameters import BEHAVIOUR, STRUCTURE
from axs6.hw.core.pipeline import Pipeline, Step, viewed
from axs6.hw.core.rtlil import add_lanes
from axs6.hw.core.structures import ArrayLayout, StructLayout
from axs6.hw.dot.words import block_dot_words

LEVELS_A_STEP = 3
"""Levels of the tree between two places for registers."""


class Multiplier:
    """Plan of a multiplier of magnitudes whose product stays two numbers.

    Registers may stand at half its depth, where `halfway` are the nodes alive.
    """

    def __init__(self) -> None:
        pairs = [(x, y) for x in range(MAGNITUDE_BITS) for y in range(MAGNITUDE_BITS)]
        self.tree = Tree([1] * len(pairs))
        columns: list[list[Bit]] = [[] for _ in range(2 * MAGNITUDE_BITS)]
        for (x, y), bit in zip(pairs, self.tree.inputs, strict=True):
            columns[x + y].append(bit)
        left = self.tree.compress(columns, rows=2)
        self.bits = [(weight, bit) for weight, column in enumerate(left) for bit in column]
        self.level = max(bit.level for _, bit in self.bits)
        self.half = (self.level + 1) // 2
        self.halfway = self.tree.alive(self.half, left)


multiplier = Multiplier()
partial_layout = StructLayout({"bits": len(multiplier.halfway), "sign": 1})
"""A product halfway through the multiplier, and its sign."""


class PartialLane(Step):
    """Partial products of two codes, and the first half of their compression."""

    def __init__(self) -> None:
        i = StructLayout({"a": code_layout, "b": code_layout})
        super().__init__(i, partial_layout, levels=1 + 2 * multiplier.half)

    def elaborate(self, platform: Any) -> Module:
        """Build the partial products and the adders."""
        m = Module()
        a, b = self.i.a, self.i.b
        partial = [x & y for x in a.magnitude for y in b.magnitude]
        nodes = multiplier.tree.build(m, dict(enumerate(partial)), 0, multiplier.half)
        m.d.comb += [
            self.o.bits.eq(Cat(nodes[node] for node in multiplier.halfway)),
            self.o.sign.eq(a.sign ^ b.sign),
        ]
        return m


class ProductLane(wiring.Component):
    """The second half of a product, as bits of known weights, all inverted if it is negative.

    The weights are those of `multiplier`; the inverted bits are worth the product less the sum of
    all weights.
    """

    def __init__(self) -> None:
        super().__init__({"i": In(partial_layout), "bits": Out(len(multiplier.bits))})

    def elaborate(self, platform: Any) -> Module:
        """Build the adders and the inversion."""
        m = Module()
        given = dict(zip(multiplier.halfway, self.i.bits, strict=True))
        nodes = multiplier.tree.build(m, given, multiplier.half, multiplier.level)
        inverted = (value_of(bit, nodes) ^ self.i.sign for _, bit in multiplier.bits)
        m.d.comb += self.bits.eq(Cat(inverted))
        return m


class SumPlan:
    """Plan of the sum of signed products.

    Input nodes are the bits of lane 0, its sign, the bits of lane 1, and so on. An inverted lane
    is worth its product less the sum W of its weights, and a count of the negative lanes times W
    makes up for that: one tree counts them, and multiples of the count enter the other. No bit of
    a lane counts as ready before the multiplier's registers: what follows them is no deeper for
    the bits that are. Sums are modulo 2^width, the least width that holds every sum with its sign.

    Args:
        block: lanes.
    """

    def __init__(self, block: int) -> None:
        lane = [max(bit.level, multiplier.half) + 1 for _, bit in multiplier.bits]
        self.tree = tree = Tree([*lane, 1] * block)
        self.level = multiplier.level + 1
        size = len(lane) + 1
        signs = tree.inputs[len(lane) :: size]
        width = block.bit_length()
        negative = [
            bit for (bit,) in tree.compress([signs, *([] for _ in range(width - 1))], rows=1)
        ]
        self.width = (block * PRODUCT_MAX).bit_length() + 1
        columns: list[list[Bit]] = [[] for _ in range(self.width)]
        for first in range(0, block * size, size):
            bits = tree.inputs[first : first + len(lane)]
            for (weight, _), bit in zip(multiplier.bits, bits, strict=True):
                columns[weight].append(bit)
        constant = 0
        for shift, subtract in _signed_digits(-sum(1 << weight for weight, _ in multiplier.bits)):
            for column, bit in zip(columns[shift:], negative, strict=False):
                column.append(bit.complement() if subtract else bit)
            constant += (1 - (1 << width) << shift) * subtract
        for weight, column in enumerate(columns):
            column += [ONE] * (constant >> weight & 1)
        self.rows = tree.compress(columns, rows=2)
        self.deepest = max(bit.level for column in self.rows for bit in column)

    def alive(self, level: int) -> list[int]:
        """Nodes of the tree that the levels above one need, or that are left at its end."""
        return self.tree.alive(level, self.rows)


@cache
def sum_plan(block: int) -> SumPlan:
    """The plan for a number of lanes."""
    return SumPlan(block)


def _signed_digits(number: int) -> Iterator[tuple[int, bool]]:
    """Powers of two that add up to `number` modulo 2^16, as exponents and whether subtracted."""
    for shift in range(SUM_BITS):
        if number & 1:
            subtract = number & 3 == 3
            yield shift, subtract
            number += 1 if subtract else -1
        number >>= 1


def tree_layout(plan: SumPlan, level: int) -> data.StructLayout:
    """The nodes of a plan that are alive at a level, and the exponent of the sum."""
    bits = len(plan.alive(level))
    return StructLayout({"bits": bits, "exponent": EXPONENT_SUM_BITS})


def products_layout(block: int) -> data.StructLayout:
    """Products halfway, and the exponent of the sum."""
    products = ArrayLayout(partial_layout, block)
    return StructLayout({"products": products, "exponent": EXPONENT_SUM_BITS})


class TreeStep(Step):
    """A step that ends at a level of the plan."""

    def __init__(self, plan: SumPlan, i: data.StructLayout, level: int, *, levels: int) -> None:
        self._plan = plan
        self._level = level
        super().__init__(i, tree_layout(plan, level), levels=levels)

    def compress(self, m: Module, nodes: dict[int, Value], after: int) -> None:
        """Build the adders up to the level, and drive the output with what is alive there."""
        values = self._plan.tree.build(m, nodes, after, self._level)
        m.d.comb += self.o.bits.eq(Cat(values[node] for node in self._plan.alive(self._level)))


class PartialProducts(Step):
    """`PartialLane` for each pair of codes, and the sum of the exponents."""

    def __init__(self, block: int) -> None:
        super().__init__(pair_layout(block), products_layout(block), levels=PartialLane().levels)

    def elaborate(self, platform: Any) -> Module:
        """Instantiate the lanes."""
        m = Module()
        m.d.comb += self.o.exponent.eq(self.i.a.exponent + self.i.b.exponent)
        lanes = (
            {"i": Cat(a, b), "o": product}
            for a, b, product in zip(self.i.a.codes, self.i.b.codes, self.o.products, strict=True)
        )
        add_lanes(m, platform, [PartialLane], lanes)
        return m


class Products(TreeStep):
    """`ProductLane` for each product, and the levels of the tree that are as early."""

    def __init__(self, plan: SumPlan, block: int) -> None:
        levels = 2 * (plan.level - multiplier.half)
        super().__init__(plan, products_layout(block), plan.level, levels=levels)

    def elaborate(self, platform: Any) -> Module:
        """Instantiate the lanes and build the adders."""
        m = Module()
        m.d.comb += self.o.exponent.eq(self.i.exponent)
        products = self.i.products
        inverted = Signal(ArrayLayout(len(multiplier.bits), len(products)))
        lanes = ({"i": i, "bits": bits} for i, bits in zip(products, inverted, strict=True))
        add_lanes(m, platform, [ProductLane], lanes)
        bits = [
            bit
            for lane, product in zip(inverted, products, strict=True)
            for bit in (*lane, product.sign)
        ]
        self.compress(m, dict(enumerate(bits)), 0)
        return m


class Compress(TreeStep):
    """Some levels of the compressor tree."""

    def __init__(self, plan: SumPlan, after: int, to: int) -> None:
        self._after = after
        super().__init__(plan, tree_layout(plan, after), to, levels=2 * (to - after))

    def elaborate(self, platform: Any) -> Module:
        """Build the adders."""
        m = Module()
        m.d.comb += self.o.exponent.eq(self.i.exponent)
        nodes = dict(zip(self._plan.alive(self._after), self.i.bits, strict=True))
        self.compress(m, nodes, self._after)
        return m


class AddRows(Step):
    """The two numbers that the tree leaves become one."""

    def __init__(self, plan: SumPlan) -> None:
        self._plan = plan
        held = EXPONENT_SUM_BITS + plan.width
        super().__init__(tree_layout(plan, plan.deepest), sum_layout, levels=14, held=held)

    def elaborate(self, platform: Any) -> Module:
        """Build the adder."""
        m = Module()
        plan = self._plan
        nodes = dict(zip(plan.alive(plan.deepest), self.i.bits, strict=True))
        columns = [[value_of(bit, nodes) for bit in column] for column in plan.rows]
        first, second = (
            Cat(column[row] if row < len(column) else Const(0, 1) for column in columns)
            for row in range(2)
        )
        total = Signal(signed(plan.width))
        m.d.comb += [
            total.eq(first + second),
            self.o.sum.eq(total),
            self.o.exponent.eq(self.i.exponent),
        ]
        return m


def block_dot_steps(block: int, view: str = STRUCTURE) -> list[Step]:
    """The steps of a block dot product, from a pair of blocks to `sum_layout`."""
    if view == BEHAVIOUR:
        return block_dot_words(block)
    plan = sum_plan(block)
    cuts = [*range(plan.level, plan.deepest, LEVELS_A_STEP), plan.deepest]
    compress = [Compress(plan, after, to) for after, to in pairwise(cuts)]
    return [PartialProducts(block), Products(plan, block), *compress, AddRows(plan)]


class BlockDot(Pipeline):
    """Multiplies a pair of dense blocks in each cycle; the result is exact and cannot overflow.

    The products and their sum are one compressor tree, with the signs folded in as inversions and
    one adder at its end; in the behaviour view they are `*` and a balanced tree of `+`.

    Args:
        block: values in a block: 8, 16 or 32.
        stages: ranks of registers, from 0.
        view: "structure", the gates that synthesis is to map, or "behaviour", words; equal in
            every cycle.

    Latency is `stages` cycles, interval 1. Source: docs/format.md, "Block dot product".

    Raises:
        ValueError: a parameter is not what it must be.
    """

    def __init__(self, block: int = 32, stages: int = 0, view: str = STRUCTURE) -> None:
        steps, like = viewed(partial(block_dot_steps, check_block(block)), view)
        super().__init__(steps, stages, like=like)
