"""How the batch simulator divides a design: into functions, and into what waits for a guard."""

import re
from typing import Any

import numpy as np

from axs6.hw.layouts import fields
from axs6.hw.registry import UNITS
from axs6.hw.rtlil import convert
from axs6.sim.batch.engine import component_source
from axs6.sim.batch.modules import with_functions
from axs6.sim.batch.netlist import Call, yosys_json
from axs6.sim.batch.read import read_netlist
from axs6.sim.batch.schedule import schedule

KEPT = r"^attribute \\keep_hierarchy 1\n(?:attribute .*\n)*module \\(\S+)"
TILE = {"block": 8, "rows": 2, "columns": 2, "interleave": 3}


def functions(unit: str, **parameters: Any) -> set[str]:
    """Modules that become functions."""
    text = convert(UNITS[unit].build(**parameters), "top")
    return set(re.findall(KEPT, with_functions(text, "top"), re.MULTILINE))


def netlist(unit: str, **parameters: Any) -> Any:
    component: Any = UNITS[unit].build(**parameters)
    ports = {name: fields(getattr(component, name[0]).payload.shape()) for name in PORTS}
    return read_netlist(yosys_json(component), ports)


PORTS = ("i__payload", "o__payload")


def test_the_lanes_of_a_tile_become_functions() -> None:
    kept = functions("matmul", **TILE)
    assert {"top.reduction.term", "top.reduction.divide"} < kept
    assert all(name.startswith("top.reduction.") for name in kept)


def test_the_lanes_of_a_dot_product_become_functions() -> None:
    assert functions("dot", block=8) == {"top.partial_lane", "top.product_lane"}


def test_calls_are_one_for_each_lane() -> None:
    design = netlist("matmul", **TILE)
    calls = [cell for cell in design.cells if isinstance(cell, Call)]
    for function in design.functions:
        assert sum(call.function is function for call in calls) == 4
    text = component_source(UNITS["matmul"].build(**TILE)).text
    assert len(re.findall(r"^static .* void f\d+\(", text, re.M)) == len(design.functions)


def test_divisions_wait_for_a_result() -> None:
    """Only a finished vector is divided; the additions go on in every cycle."""
    design = netlist("matmul", **TILE)
    groups = schedule(design, "o__payload", "o__valid")
    assert groups[0].guard is None
    shown = next(group for group in groups if group.outputs)
    assert shown.guard is not None
    divisions = [cell for cell in shown.cells if isinstance(cell, Call)]
    assert len(divisions) == 4
    assert sum(len(group.cells) for group in groups) == len(design.cells)
    assert sum(len(group.registers) for group in groups) == len(design.registers)


def test_a_cell_is_in_the_group_of_all_that_read_it() -> None:
    design = netlist("dot", block=8, stages=6)
    groups = schedule(design, "o__payload", "o__valid")
    place = {word: n for n, group in enumerate(groups) for c in group.cells for word in c.driven}
    for n, group in enumerate(groups):
        for cell in group.cells:
            assert all(place[word] in (0, n) for word in cell.read if word in place)
    assert len(groups) >= 3
    assert np.unique([id(group.guard) for group in groups]).size == len(groups)
