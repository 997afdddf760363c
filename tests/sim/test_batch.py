"""The batch simulator equals the golden model on every bit, with and without stalls."""

import json
from typing import Any

import numpy as np
import pytest

from axs6.golden import fp32
from axs6.hw.registry import UNITS, find
from axs6.sim.batch.engine import BatchModel, Stall
from axs6.sim.batch.netlist import NetlistError
from axs6.sim.batch.read import read_netlist
from axs6.sim.tools import ToolError

DEEP = ("dot",)
"""Units over which g++ takes long when they have many stages; tests/hw has one in every run."""

ELSEWHERE = ("feedback_encoder", "stochastic_encoder", "matmul")
"""Units over which it takes long without, which every run has in test_vectors.py, tests/hw/encoder
and test_tile.py."""

JOINED = ("choice_encoder", "hadamard")
"""Units whose parts meet each value of a parameter: every run has their first combination."""

CASES = [
    pytest.param(name, {"block": 8, **combination}, most, marks=() if few else pytest.mark.slow)
    for name, unit in UNITS.items()
    for combinations in [unit.combinations({"block": 8})]
    for number, combination in enumerate(combinations)
    for most in ((False, True) if len(combinations) == 1 else (number % 2 == 1,))
    for earlier in [set().union(*(each.items() for each in combinations[:number]))]
    for new in [not number or (combination.items() - earlier and name not in JOINED)]
    for few in [new and name not in ELSEWHERE and not (most and name in DEEP)]
]
"""Combinations of parameters with no stages and the most, in turn; at once the first of each
unit, and those with a value that no combination before them has."""


def test_every_choice_is_tested_in_every_run() -> None:
    tested = [case.values[1] for case in CASES if not case.marks and case.values[0] == "encoder"]
    for name, default in UNITS["encoder"].defaults.items():
        if isinstance(default, str) and name != "format":
            every = {each[name] for each in UNITS["encoder"].combinations({"block": 8})}
            assert {each[name] for each in tested} == every


def assert_equal(model: BatchModel, unit: str, parameters: dict[str, Any], items: Any) -> None:
    expected = UNITS[unit].golden(items, parameters)
    for stall in (None, Stall(0.5, 0.5, seed=3), Stall(0.0, 0.9, seed=4)):
        outputs = model.run(items, stall, threads=2).outputs
        for name, values in expected.items():
            assert np.array_equal(outputs[name], values), (name, stall)


@pytest.mark.parametrize(("unit", "parameters", "most"), CASES)
def test_every_unit_equals_the_golden_model(
    unit: str, parameters: dict[str, Any], most: bool, request: pytest.FixtureRequest
) -> None:
    entry = UNITS[unit]
    last = {k: values[-1] for k, values in entry.samples.items() if entry.takes(k, parameters)}
    parameters = entry.parameters({**parameters, **last})
    parameters["stages"] = UNITS[unit].most_stages(parameters) if most else 0
    model = BatchModel(unit, **parameters)
    stimulus = find(unit)
    assert_equal(model, unit, parameters, stimulus.corners(parameters))
    rng = np.random.default_rng(2)
    count = 6_000 if request.node.get_closest_marker("slow") else 1_000
    assert_equal(model, unit, parameters, stimulus.random(parameters, rng, count))


@pytest.mark.optimised
@pytest.mark.parametrize(
    "unit", ["block_dot", *(pytest.param(x, marks=pytest.mark.slow) for x in ("encoder", "dot"))]
)
def test_full_blocks_equal_the_golden_model(unit: str) -> None:
    parameters = UNITS[unit].simulated({"stages": 2})
    items = find(unit).random(parameters, np.random.default_rng(3), 6_000)
    assert_equal(BatchModel(unit, **parameters), unit, parameters, items)


def significand_items(significands: np.ndarray, block: int) -> dict[str, np.ndarray]:
    """Dot product items, two for each vector, whose accumulators have these significands."""
    parts = np.stack([significands >> 12, significands & 0xFFF], axis=1).ravel()
    whole, rest = np.divmod(parts, 961)
    lane = np.arange(block)
    full = lane < whole[:, None]
    at_whole, after = lane == whole[:, None], lane == whole[:, None] + 1
    a = np.where(full | at_whole, 31, np.where(after, (rest % 31)[:, None], 0))
    b = np.where(full, 31, np.where(at_whole, (rest // 31)[:, None], np.where(after, 1, 0)))
    return {
        "a.exponent": np.tile(np.uint8([132, 120]), len(significands)),
        "a.codes": a.astype(np.uint8),
        "b.exponent": np.full(len(parts), 132, np.uint8),
        "b.codes": b.astype(np.uint8),
        "last": np.tile(np.uint8([0, 1]), len(significands)),
    }


@pytest.mark.slow
def test_the_division_is_right_for_every_significand() -> None:
    """All 2^24 significands, normal and shorter, through the whole dot product."""
    model = BatchModel("dot", block=8)
    step = 1 << 20
    for start in range(0, 1 << 24, step):
        significands = np.arange(start, start + step)
        values = model.run(significand_items(significands, 8), threads=2).outputs["value"]
        exact = fp32.round_to_fp32(
            np.zeros(step, bool), significands.astype(np.uint64), np.full(step, -12)
        )
        assert np.array_equal(values, fp32.divide_by_scale(exact, 961))


def test_two_runs_are_the_same() -> None:
    parameters = UNITS["dot"].parameters({"block": 8, "stages": 4})
    items = find("dot").random(parameters, np.random.default_rng(5), 3000)
    model = BatchModel("dot", **parameters)
    first, second = (model.run(items, Stall(0.3, 0.3, seed=9)) for _ in range(2))
    assert first.cycles == second.cycles
    assert np.array_equal(first.outputs["value"], second.outputs["value"])
    assert model.run(items, Stall(0.3, 0.3, seed=10)).cycles != first.cycles


def test_cycles_without_stalls_are_items_and_latency() -> None:
    parameters = UNITS["block_dot"].parameters({"block": 8, "stages": 4})
    items = find("block_dot").random(parameters, np.random.default_rng(5), 1)
    assert BatchModel("block_dot", **parameters).run(items).cycles == 1 + 4


@pytest.mark.parametrize("count", [0, 1, 127, 128, 129, 255, 256, 257, 511, 512, 513, 2000])
def test_any_number_of_items(count: int) -> None:
    """Around the number of copies of every instruction set, too."""
    parameters = UNITS["block_dot"].parameters({"block": 8})
    items = find("block_dot").random(parameters, np.random.default_rng(1), count)
    outputs = BatchModel("block_dot", block=8).run(items, threads=2).outputs
    assert np.array_equal(outputs["sum"], UNITS["block_dot"].golden(items, parameters)["sum"])


def test_a_missing_compiler_is_named(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("PATH", "")
    with pytest.raises(ToolError, match=r"the batch simulator needs g\+\+ on PATH"):
        BatchModel("block_dot", block=8)


def netlist_json(bits: list[int], kind: str = "$not") -> str:
    """A design of one cell of two bits, whose operand is `bits`: 2, 3 input, 4, 5 output."""
    cell = {
        "type": kind,
        "parameters": {},
        "port_directions": {"A": "input", "Y": "output"},
        "connections": {"A": bits, "Y": [4, 5]},
    }
    ports = {
        "a": {"direction": "input", "bits": [2, 3]},
        "y": {"direction": "output", "bits": [4, 5]},
    }
    return json.dumps(
        {"modules": {"top": {"ports": ports, "cells": {"cell": cell}, "netnames": {}}}}
    )


def test_a_netlist_is_read_bit_by_bit() -> None:
    netlist = read_netlist(netlist_json([3, 2]))
    low, high = netlist.inputs["a"]
    assert netlist.outputs["y"] == [high ^ 1, low ^ 1]


def test_a_combinational_loop_is_named() -> None:
    with pytest.raises(NetlistError, match=r"there is a combinational loop through cell"):
        read_netlist(netlist_json([5, 4]))


def test_a_cell_that_is_not_handled_is_named() -> None:
    with pytest.raises(NetlistError, match=r"cell cell: a \$lut cell is not handled"):
        read_netlist(netlist_json([2, 3], "$lut"))
