"""The terms of steps: those of the structure are those in words, bit for bit, unless NaN."""

import numpy as np
import pytest
from amaranth.hdl import Module, Signal
from amaranth.sim import Simulator

from axs6.golden.accumulator import accumulator
from axs6.golden.formats import operand_formats
from axs6.hw.core.parameters import VIEWS
from axs6.hw.dot.terms import MakeTerms, TermPlan, step_terms

STEPS = (
    ("mx6", "paper,reduction=16"),
    ("axs6_t8xsm5_e8m0_t8", "paper,reduction=8"),
    ("int4_u4_t8_float32_t0", "exact,reduction=16"),
    ("e2m1fn_e4m3fn_t8_float32", "blackwell_fp4,reduction=16,term=8"),
    ("mxfp6_e2m3_t8", "exact,reduction=8"),
    ("int3_float32", "paper,reduction=8"),
)
"""Formats and accumulators whose terms have several lanes."""


@pytest.mark.parametrize(("formats", "how"), STEPS)
def test_terms_in_structure_and_in_words_are_equal(formats: str, how: str) -> None:
    a, *others = operand_formats(formats)
    plan = TermPlan(step_terms(a, (others or [a])[0], accumulator(how)))
    found = [MakeTerms(plan, view) for view in VIEWS]
    assert plan.terms.lanes > 1
    m = Module()
    m.submodules += found
    i = Signal(plan.i.size)
    m.d.comb += [each.i.as_value().eq(i) for each in found]
    rng = np.random.default_rng(0)
    pairs: list[tuple[int, ...]] = []

    def result(context, each):  # type: ignore[no-untyped-def]
        if "nan" in plan.special and context.get(each.o.nan):
            return -1
        return context.get(each.o["values"].as_value())

    async def run(context):  # type: ignore[no-untyped-def]
        for k in range(60):
            value = int.from_bytes(rng.bytes(-(-plan.i.size // 8))) & (1 << plan.i.size) - 1
            context.set(i, (0, (1 << plan.i.size) - 1, value)[min(k, 2)])
            await context.delay(1e-9)
            pairs.append(tuple(result(context, each) for each in found))

    simulator = Simulator(m)
    simulator.add_testbench(run)
    simulator.run()
    assert len(set(pairs)) > 2
    assert [x for x in pairs if x[0] != x[1]] == []
