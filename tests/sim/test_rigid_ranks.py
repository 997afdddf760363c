"""Pipelines with rigid ranks pass every item once and in order, whatever waits."""

import inspect
from typing import Any

import numpy as np
import pytest

from axs6.hw.core import ranks
from axs6.hw.core.pipeline import Pipeline
from axs6.hw.core.structures import StructLayout
from axs6.hw.fp32.accumulator import Hold
from axs6.sim.batch.engine import ComponentModel, component_source
from axs6.sim.stall import Stall
from axs6.sim.tools import ToolError

STALLS = (None, Stall(0.5, 0.5, seed=3), Stall(0.0, 0.9, seed=4), Stall(0.9, 0.0, seed=5))
ITEMS = np.arange(2_000) * 31 % 65_536
STAGES = 12


def unit() -> Any:
    layout = StructLayout({"value": 16})
    return Pipeline([Hold(layout) for _ in range(STAGES)], STAGES, rigid=True)


def wrong_runs() -> int:
    """How many of the runs give other items, or wait for some that never come."""
    model = ComponentModel(component_source(unit()), "rigid", 1)
    wrong = 0
    for stall in STALLS:
        try:
            found = model.run({"value": ITEMS}, stall).outputs["value"]
        except ToolError:
            wrong += 1
        else:
            wrong += not np.array_equal(found, ITEMS)
    return wrong


def test_all_items_pass_in_order() -> None:
    assert wrong_runs() == 0


FAULTS = {
    "forgotten": ("(valid | waiting) & ~moves", "valid & ~moves"),
    "kept_twice": ("(valid | waiting) & ~moves", "valid | (waiting & ~moves)"),
    "overwritten": ("with m.If(ready):", "with m.If(valid):"),
    "passed_over": ("Mux(waiting, spare, item)", "Mux(waiting & valid, spare, item)"),
    "dropped": ("held.eq(valid | waiting)", "held.eq(valid)"),
}
"""Expressions of a rigid rank with a spare register, and faults in place of them."""


@pytest.mark.parametrize(
    "fault", [pytest.param(x, marks=[pytest.mark.slow] * (x != "passed_over")) for x in FAULTS]
)
def test_faults_of_a_rigid_rank_are_found(fault: str, monkeypatch: pytest.MonkeyPatch) -> None:
    source = inspect.getsource(ranks.add_rigid_rank_with_spare)
    assert FAULTS[fault][0] in source
    planted: dict[str, Any] = {}
    exec(source.replace(*FAULTS[fault]), vars(ranks), planted)
    monkeypatch.setitem(ranks.ADD_RANK, (True, True), planted["add_rigid_rank_with_spare"])
    assert wrong_runs()
