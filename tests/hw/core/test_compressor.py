"""A certificate of the compressor tree: what its plan adds up to is the sum of the products.

An adder keeps a + b + c = sum + 2 carry, which is tried for every input. So the number that the
tree leaves is a linear form of its nodes, and going back adder by adder makes it one of its inputs.
"""

from collections.abc import Mapping
from dataclasses import replace

import pytest
from amaranth.hdl import Module, Signal
from amaranth.sim import Simulator

from axs6.golden.formats.modes import MODE_BLOCKS
from axs6.hw.core.compressor import ONE, Adder, Bit, Columns, Tree, add_bits
from axs6.hw.dot.block_dot import heaps, scaled
from axs6.hw.dot.heap import SumPlan
from axs6.hw.dot.lanes import Addend, Code, Multiplier, lane_plan
from axs6.hw.dot.shape import DotShape


class Form:
    """A sum of nodes, each times a number, and of a constant, modulo a power of two."""

    def __init__(self, columns: Columns, width: int) -> None:
        self.modulus = 1 << width
        self.constant = 0
        self.of: dict[int, int] = {}
        for weight, column in enumerate(columns):
            for bit in column:
                self.add(bit, 1 << weight)

    def add(self, bit: Bit, times: int) -> None:
        if bit.inverted or bit.node == ONE.node:
            self.constant = (self.constant + times) % self.modulus
        if bit.node != ONE.node:
            before = self.of.get(bit.node, 0)
            self.of[bit.node] = (before + (-times if bit.inverted else times)) % self.modulus

    def go_back(self, adder: Adder) -> None:
        """Write the operands in place of the sum and the carry."""
        total, carry = (self.of.pop(bit.node, 0) for bit in (adder.sum, adder.carry))
        assert carry == 2 * total % self.modulus, "sum and carry have their weights"
        for bit in adder.operands:
            self.add(bit, total)


def inputs_of(tree: Tree, columns: Columns, width: int) -> tuple[Mapping[int, int], int]:
    """What columns add up to: how often each input of the tree counts, and a constant."""
    form = Form(columns, width)
    for adder in reversed(tree.adders):
        form.go_back(adder)
    assert set(form.of) <= {bit.node for bit in tree.inputs}
    return {node: times for node, times in form.of.items() if times}, form.constant


def check_multiplier(plan: Multiplier, a: Code, b: Code) -> None:
    width = a.bits + b.bits
    columns = [[bit for weight, bit in plan.bits if weight == k] for k in range(width)]
    weights = [
        weight_of(a, x) * weight_of(b, y) % (1 << width)
        for x in range(a.bits)
        for y in range(b.bits)
    ]
    given = inputs_of(plan.tree, columns, width)
    assert given == (dict(enumerate(weights)), -plan.constant % (1 << width))


def weight_of(code: Code, bit: int) -> int:
    """What a bit of the integer of a code is worth."""
    return -1 << bit if code.negative and bit == code.bits - 1 else 1 << bit


def check_sum(plan: SumPlan, count: int, addend: Addend) -> None:
    """An addend with its sign set is worth so much less."""
    weights = [1 << weight for weight, _ in addend.bits]
    one = [*weights, *[-addend.sign % (1 << plan.width)] * bool(addend.sign)]
    constant = count * addend.constant % (1 << plan.width)
    assert inputs_of(plan.tree, plan.rows, plan.width) == (dict(enumerate(one * count)), constant)


def heaps_of(fmt: str, block: int | None = None) -> list[tuple[SumPlan, int, Addend]]:
    """The plans of a block dot product, with the number of addends and what they are."""
    shape = DotShape.of(fmt, block)
    plan = lane_plan(shape.a.element, shape.b.element, bool(shape.scalings))
    found, addend, size = [], plan.addend, 1
    for index, heap in enumerate(heaps(shape, plan)):
        found.append((heap.plan, heap.group // size, addend))
        if index < len(shape.scalings):
            addend, size = scaled(shape.scalings[index], heap.plan.width), heap.group
    assert 1 << found[-1][0].width - 1 > shape.bound, "every sum and its sign have room"
    return found


@pytest.mark.parametrize("size", [2, 3])
def test_an_adder_keeps_the_sum_of_its_operands(size: int) -> None:
    m, operands = Module(), Signal(size)
    total, carry = add_bits(m, list(operands))
    found = Signal(2)
    m.d.comb += found.eq(total + (carry << 1))

    async def every_input(ctx) -> None:  # type: ignore[no-untyped-def]
        for value in range(1 << size):
            ctx.set(operands, value)
            assert ctx.get(found) == value.bit_count()

    simulator = Simulator(m)
    simulator.add_testbench(every_input)
    simulator.run()


FORMATS = ("axs6", "mxint8", "mx9", "mxfp4", "mxfp8_e4m3", "axs6xmxint8", "mxint8xmxfp4", "vsq4")


@pytest.mark.parametrize("fmt", FORMATS)
def test_the_multiplier_adds_up_to_the_product(fmt: str) -> None:
    shape = DotShape.of(fmt)
    plan = lane_plan(shape.a.element, shape.b.element, bool(shape.scalings))
    check_multiplier(plan.multiplier, plan.a, plan.b)


@pytest.mark.parametrize("block", MODE_BLOCKS)
def test_the_tree_adds_up_to_the_sum_of_the_products(block: int) -> None:
    ((plan, count, addend),) = heaps_of("axs6", block)
    assert count == block
    weights = sum(1 << weight for weight, _ in addend.bits)
    assert addend.sign == weights, "a negative lane comes inverted"
    check_sum(plan, count, addend)


@pytest.mark.parametrize("fmt", FORMATS)
def test_the_trees_of_a_format_add_up(fmt: str) -> None:
    for plan, count, addend in heaps_of(fmt):
        check_sum(plan, count, addend)


def test_a_wrong_plan_has_no_certificate() -> None:
    lanes = lane_plan(DotShape.of("axs6").a.element, DotShape.of("axs6").b.element, False)
    for number in (0, 40, -1):
        plan = SumPlan(8, lanes.addend, 14)
        adder = plan.tree.adders[number]
        first, *rest = adder.operands
        plan.tree.adders[number] = replace(adder, operands=(first.complement(), *rest))
        with pytest.raises(AssertionError):
            check_sum(plan, 8, lanes.addend)
    plan = SumPlan(8, lanes.addend, 14)
    plan.rows[3], plan.rows[4] = plan.rows[4], plan.rows[3]
    with pytest.raises(AssertionError):
        check_sum(plan, 8, lanes.addend)
    wrong = Multiplier(lanes.a, lanes.b, 2)
    wrong.bits = [*wrong.bits[:-1], (wrong.bits[-1][0] - 1, wrong.bits[-1][1])]
    with pytest.raises(AssertionError):
        check_multiplier(wrong, lanes.a, lanes.b)
