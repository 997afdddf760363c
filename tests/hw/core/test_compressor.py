"""A certificate of the compressor tree: what its plan adds up to is the sum of the products.

An adder keeps a + b + c = sum + 2 carry, which is tried for every input. So the number that the
tree leaves is a linear form of its nodes, and going back adder by adder makes it one of its inputs.
"""

from collections.abc import Mapping
from dataclasses import replace

import pytest
from amaranth.hdl import Module, Signal
from amaranth.sim import Simulator

from axs6.golden.spec import BLOCK_SIZES, MAGNITUDE_BITS, PRODUCT_MAX
from axs6.hw.core.compressor import ONE, Adder, Bit, Columns, Tree, add_bits
from axs6.hw.dot.block_dot import Multiplier, SumPlan, multiplier


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


def check_multiplier(plan: Multiplier) -> None:
    width = 2 * MAGNITUDE_BITS + 1
    columns = [[bit for weight, bit in plan.bits if weight == k] for k in range(width)]
    places = [x + y for x in range(MAGNITUDE_BITS) for y in range(MAGNITUDE_BITS)]
    expected = {node: 1 << place for node, place in enumerate(places)}
    assert inputs_of(plan.tree, columns, width) == (expected, 0)


def check_sum(plan: SumPlan, block: int) -> None:
    """A negative lane comes inverted, which is worth its product less the sum of all weights."""
    assert 1 << plan.width - 1 > block * PRODUCT_MAX, "every sum and its sign have room"
    weights = [1 << weight for weight, _ in multiplier.bits]
    lane = [*weights, -sum(weights) % (1 << plan.width)]
    assert inputs_of(plan.tree, plan.rows, plan.width) == (dict(enumerate(lane * block)), 0)


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


def test_the_multiplier_adds_up_to_the_product() -> None:
    check_multiplier(multiplier)


@pytest.mark.parametrize("block", BLOCK_SIZES)
def test_the_tree_adds_up_to_the_sum_of_the_products(block: int) -> None:
    check_sum(SumPlan(block), block)


def test_a_wrong_plan_has_no_certificate() -> None:
    for number in (0, 40, -1):
        plan = SumPlan(8)
        adder = plan.tree.adders[number]
        first, *rest = adder.operands
        plan.tree.adders[number] = replace(adder, operands=(first.complement(), *rest))
        with pytest.raises(AssertionError):
            check_sum(plan, 8)
    plan = SumPlan(8)
    plan.rows[3], plan.rows[4] = plan.rows[4], plan.rows[3]
    with pytest.raises(AssertionError):
        check_sum(plan, 8)
    wrong = Multiplier()
    wrong.bits = [*wrong.bits[:-1], (wrong.bits[-1][0] - 1, wrong.bits[-1][1])]
    with pytest.raises(AssertionError):
        check_multiplier(wrong)
