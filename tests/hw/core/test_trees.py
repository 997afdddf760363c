"""Trees of least and largest values, in a simulator, and the number of their comparisons."""

import random

import pytest
from amaranth.back import verilog
from amaranth.hdl import Module, Shape, Signal, Value, signed, unsigned
from amaranth.sim import Simulator

from axs6.hw.core.trees import largest_of, least_in_groups, least_of

LANES = 16
SIZES = (8, 2)


def tree(shape: Shape) -> tuple[Module, list[Signal], list[Value]]:
    """A module, its inputs, and the largest, the least and the least values of groups."""
    m = Module()
    values = [Signal(shape, name=f"value{k}") for k in range(LANES)]
    groups = least_in_groups(m, values, SIZES)
    trees = [largest_of(m, values), least_of(m, values), *groups[0], *groups[1]]
    results = [Signal(shape, name=f"result{k}") for k in range(len(trees))]
    m.d.comb += [result.eq(found) for result, found in zip(results, trees, strict=True)]
    return m, values, list(results)


@pytest.mark.parametrize("shape", [unsigned(3), signed(5)], ids=str)
def test_trees_find_the_least_and_the_largest_values(shape: Shape) -> None:
    m, values, results = tree(shape)
    low = -(1 << shape.width - 1) if shape.signed else 0
    draw = random.Random(6)

    async def check(ctx) -> None:  # type: ignore[no-untyped-def]
        for _ in range(200):
            given = [draw.randrange(low, low + (1 << shape.width)) for _ in values]
            for signal, value in zip(values, given, strict=True):
                ctx.set(signal, value)
            groups = [min(given[k : k + size]) for size in SIZES for k in range(0, LANES, size)]
            assert [ctx.get(x) for x in results] == [max(given), min(given), *groups]

    simulator = Simulator(m)
    simulator.add_testbench(check)
    simulator.run()


def test_a_comparison_is_built_once_and_those_of_fine_groups_serve_coarse_ones() -> None:
    m, values, results = tree(unsigned(3))
    text = verilog.convert(m, ports=[*values, *map(Value.cast, results)])
    assert text.count(" > ") == LANES - 1
    least, groups = LANES - 1, LANES - LANES // SIZES[0]
    assert text.count(" < ") == least + groups
