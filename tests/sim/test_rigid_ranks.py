"""Pipelines with rigid ranks pass every item once and in order, whatever waits."""

import inspect
from itertools import pairwise
from typing import Any

import numpy as np
import pytest
from amaranth.hdl import Cat, Module

from axs6.hw.core import ranks
from axs6.hw.core.pipeline import Pipeline, Step
from axs6.hw.core.structures import ArrayLayout, StructLayout
from axs6.sim.batch.engine import ComponentModel, component_source
from axs6.sim.compiled import Stall
from axs6.sim.tools import ToolError

STALLS = (None, Stall(0.5, 0.5, seed=3), Stall(0.0, 0.9, seed=4), Stall(0.9, 0.0, seed=5))
ITEMS = np.arange(2_000) * 31 % 65_536
COPIES = (1, 9, 9, 20, 20, 20, 20, 9, 1, 1)
"""Copies of an item in front of each step, and after the last: ranks narrow and wide."""


class Copy(Step):
    """Copies of an item become others, which are wrong if those differ."""

    def __init__(self, given: int, made: int) -> None:
        i, o = (StructLayout({"items": ArrayLayout(16, copies)}) for copies in (given, made))
        super().__init__(i, o, levels=1)

    def elaborate(self, platform: Any) -> Module:
        m = Module()
        first, *others = self.i["items"]
        differ = Cat(other != first for other in others).any()
        m.d.comb += [copy.eq(first ^ differ) for copy in self.o["items"]]
        return m


def unit() -> Pipeline:
    return Pipeline([Copy(*copies) for copies in pairwise(COPIES)], len(COPIES) - 1, rigid=True)


def wrong_runs() -> int:
    """How many of the runs give other items, or wait for some that never come."""
    model = ComponentModel(component_source(unit()), "rigid", 1)
    wrong = 0
    for stall in STALLS:
        try:
            found = model.run({"items": ITEMS[:, None]}, stall).outputs["items"][:, 0]
        except ToolError:
            wrong += 1
        else:
            wrong += not np.array_equal(found, ITEMS)
    return wrong


def test_all_items_pass_in_order() -> None:
    assert wrong_runs() == 0


FAULTS = {
    "forgotten": ("(free & ~valid) | moved", "~valid | moved"),
    "kept_twice": ("(free & ~valid) | moved", "~valid & (free | moved)"),
    "overwritten": ("with m.If(free):", "with m.If(valid):"),
    "passed_over": ("Mux(free, part", "Mux(free | ~valid, part"),
    "dropped": ("held.eq(valid | ~room[0])", "held.eq(valid)"),
    "shared": ("moves[copy * len(moves) // len(room)]", "moves[0] & (copy % 2 == 0)"),
    "misplaced": ("room[part.number * len(room) // parts]", "room[0] | (part.number == 0)"),
    "full": ("init=(1 << len(ready)) - 1", "init=0"),
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
