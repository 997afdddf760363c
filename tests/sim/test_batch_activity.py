"""Changes of nets, against hand-made counts and against a netlist evaluated in NumPy."""

import json
from collections.abc import Mapping, Sequence
from itertools import product
from typing import Any

import numpy as np
import pytest
from numpy.typing import NDArray

from axs6.hw.core.layouts import Field
from axs6.sim.batch import activity
from axs6.sim.batch.activity import ActivityModel
from axs6.sim.batch.model import runtime
from axs6.sim.batch.netlist import NetlistError
from axs6.sim.control import StoppedError, workers
from axs6.sim.tools import ToolError

WIDTH = 6
CLK, RST, I_VALID, O_READY, FIRST_INPUT = 2, 3, 4, 5, 6
INPUTS = list(range(FIRST_INPUT, FIRST_INPUT + WIDTH))
FIRST_GATE = FIRST_INPUT + WIDTH
FIELD = Field("x", 0, WIDTH, False, ())
BIT = Field("y", 0, 1, False, ())

FUNCTIONS = {
    "$_AND_": lambda a, b: a & b,
    "$_OR_": lambda a, b: a | b,
    "$_XOR_": lambda a, b: a ^ b,
    "$_NOT_": lambda a: ~a,
}
Gates = list[tuple[str, list[int]]]


def gate_json(kind: str, read: list[int], driven: int) -> dict[str, Any]:
    if kind == "$_DFF_P_":
        connections = {"C": [CLK], "D": read, "Q": [driven]}
    else:
        connections = {**dict(zip("AB", ([bit] for bit in read), strict=False)), "Y": [driven]}
    directions = {port: "output" if port in "QY" else "input" for port in connections}
    return {
        "type": kind,
        "parameters": {},
        "port_directions": directions,
        "connections": connections,
    }


def netlist_json(gates: Gates, ready: int | str = O_READY) -> str:
    """A unit whose gate n drives net `FIRST_GATE + n`, the last one the output payload."""
    driven = {
        "i_ready": [ready],
        "o_valid": [I_VALID],
        "o_payload": [FIRST_GATE + len(gates) - 1],
    }
    given = {"clk": [CLK], "rst": [RST], "i_valid": [I_VALID], "o_ready": [O_READY]}
    ports = {name: {"direction": "output", "bits": bits} for name, bits in driven.items()}
    given["i_payload"] = INPUTS
    ports |= {name: {"direction": "input", "bits": bits} for name, bits in given.items()}
    cells = {f"g{n}": gate_json(*gate, FIRST_GATE + n) for n, gate in enumerate(gates)}
    return json.dumps({"modules": {"top": {"ports": ports, "cells": cells, "netnames": {}}}})


def model(gates: Gates, nets: list[int | str]) -> ActivityModel:
    return ActivityModel(netlist_json(gates), nets, [FIELD], [BIT], "test")


def items(rows: NDArray[Any]) -> dict[str, NDArray[Any]]:
    return {"x": rows.astype(np.uint8)}


def evaluated(
    gates: Gates, rows: NDArray[Any], settle: int
) -> tuple[NDArray[np.int64], NDArray[np.int64]]:
    """Changes of the inputs and of all gates, shape (sequences, nets): each cycle in its turn.

    And the cycles in which they are 1.
    """
    state = {n: np.zeros(len(rows), bool) for n, (kind, _) in enumerate(gates) if "DFF" in kind}
    history = []
    for cycle in range(rows.shape[1]):
        values: dict[int, NDArray[Any]] = {
            net: (rows[:, cycle] >> index & 1).astype(bool) for index, net in enumerate(INPUTS)
        }
        values |= {FIRST_GATE + n: value for n, value in state.items()}
        for n, (kind, read) in enumerate(gates):
            if n not in state:
                values[FIRST_GATE + n] = FUNCTIONS[kind](*(values[net] for net in read))
        state = {n: values[gates[n][1][0]] for n in state}
        history.append(
            [values[net] for net in (*INPUTS, *range(FIRST_GATE, FIRST_GATE + len(gates)))]
        )
    seen = np.array(history)
    changes = (seen[1:] != seen[:-1])[settle:].sum(axis=0).T
    return changes, seen[1 + settle :].sum(axis=0).T


def random_gates(
    rng: np.random.Generator, count: int, kinds: Sequence[str] = (*FUNCTIONS, "$_DFF_P_")
) -> Gates:
    """Gates that read earlier nets, and flip-flops that read any."""
    gates: Gates = []
    for n in range(count):
        kind = str(rng.choice(kinds))
        if kind == "$_DFF_P_":
            gates.append((kind, [int(rng.integers(FIRST_INPUT, FIRST_GATE + count))]))
            continue
        arity = 1 if kind == "$_NOT_" else 2
        gates.append((kind, rng.integers(FIRST_INPUT, FIRST_GATE + n, arity).tolist()))
    return gates


def test_changes_counted_by_hand() -> None:
    gates: Gates = [("$_XOR_", [INPUTS[0], INPUTS[1]]), ("$_DFF_P_", [FIRST_GATE])]
    nets: list[int | str] = [INPUTS[0], INPUTS[1], FIRST_GATE, FIRST_GATE + 1, I_VALID, "1"]
    rows = np.array([[0, 1, 3, 3, 0], [1, 0, 1, 0, 1]])
    # x0: 0 1 1 1 0 and 1 0 1 0 1; x1: 0 0 1 1 0 and zeros; their xor: 0 1 0 0 0 and 1 0 1 0 1;
    # the register, which starts at 0: 0 0 1 0 0 and 0 1 0 1 0
    run = model(gates, nets).run(items(rows))
    assert run.changes.tolist() == [[2, 2, 2, 2, 0, 0], [4, 0, 4, 4, 0, 0]]
    assert run.ones is None
    assert run.pairs == 4
    assert run.given.tolist() == [5, 5]
    assert run.outputs["y"].tolist() == [0, 0, 1, 0, 0, 0, 1, 0, 1, 0]
    settled = model(gates, nets).run(items(rows), settle=2, levels=True)
    assert settled.changes.tolist() == [[1, 1, 0, 1, 0, 0], [2, 0, 2, 2, 0, 0]]
    assert settled.ones is not None
    assert settled.ones.tolist() == [[1, 1, 0, 0, 2, 2], [1, 0, 1, 1, 2, 2]]
    assert settled.pairs == 2


def test_a_constant_input_changes_nothing() -> None:
    gates = random_gates(np.random.default_rng(0), 40, list(FUNCTIONS))
    nets = [*INPUTS, *range(FIRST_GATE, FIRST_GATE + len(gates))]
    run = model(gates, nets).run(items(np.full((3, 9), 37)))
    assert not run.changes.any()


@pytest.mark.parametrize(
    ("sequences", "cycles", "settle"), [(1, 2, 0), (150, 300, 0), (64, 600, 7)]
)
def test_random_netlists_equal_their_evaluation(sequences: int, cycles: int, settle: int) -> None:
    rng = np.random.default_rng(sequences)
    gates = random_gates(rng, 200)
    rows = rng.integers(0, 1 << WIDTH, (sequences, cycles))
    nets = [*INPUTS, *range(FIRST_GATE, FIRST_GATE + len(gates))]
    run = model(gates, nets).run(items(rows), settle, levels=True)
    changes, ones = evaluated(gates, rows, settle)
    assert np.array_equal(run.changes, changes)
    assert run.ones is not None
    assert np.array_equal(run.ones, ones)
    assert run.pairs == cycles - 1 - settle


MUTATIONS = (
    ("cycle > settle", "cycle >= settle"),  # counts from before anything was seen
    ("++counted == Counter::MOST", "false"),  # the bytes overflow
    ("ones.add(n, model.nets[n])", "ones.add(n, before[n])"),  # levels of a cycle too early
    ("+ cycle;", "+ (cycle ^ 1);"),  # items out of their order
)


@pytest.mark.parametrize("mutation", MUTATIONS)
def test_wrong_counts_are_caught(
    mutation: tuple[str, str], monkeypatch: pytest.MonkeyPatch
) -> None:
    wrong = runtime()["activity.hpp"].replace(*mutation)
    assert wrong != runtime()["activity.hpp"]
    changed: Mapping[str, str] = {**runtime(), "activity.hpp": wrong}
    monkeypatch.setattr(activity, "runtime", lambda: changed)
    with pytest.raises(AssertionError):
        test_random_netlists_equal_their_evaluation(3, 600, 0)


def test_a_wrong_gate_is_caught() -> None:
    rng = np.random.default_rng(5)
    gates = random_gates(rng, 50)
    rows = rng.integers(0, 1 << WIDTH, (4, 40))
    nets = [*INPUTS, *range(FIRST_GATE, FIRST_GATE + len(gates))]
    place = next(n for n, (kind, _) in enumerate(gates) if kind == "$_AND_")
    wrong: Gates = [*gates[:place], ("$_OR_", gates[place][1]), *gates[place + 1 :]]
    run = model(wrong, nets).run(items(rows))
    assert not np.array_equal(run.changes, evaluated(gates, rows, 0)[0])


def test_the_count_does_not_depend_on_how_sequences_are_run() -> None:
    rng = np.random.default_rng(6)
    gates = random_gates(rng, 50)
    rows = rng.integers(0, 1 << WIDTH, (70, 20))
    made = model(gates, list(range(FIRST_GATE, FIRST_GATE + 50)))
    together = made.run(items(rows)).changes
    alone = np.concatenate([made.run(items(row[None])).changes for row in rows])
    assert np.array_equal(together, alone)


def test_the_clock_is_refused() -> None:
    with pytest.raises(NetlistError, match="clk cannot be counted"):
        model([("$_NOT_", [INPUTS[0]])], [CLK])


@pytest.mark.parametrize(("settle", "cycles"), [(0, 1), (3, 4), (-1, 5)])
def test_too_few_items_are_refused(settle: int, cycles: int) -> None:
    with pytest.raises(ValueError, match="must have more than"):
        model([("$_NOT_", [INPUTS[0]])], [FIRST_GATE]).run(items(np.zeros((1, cycles))), settle)


def test_values_beyond_a_field_are_refused() -> None:
    with pytest.raises(ValueError, match="input 'x' must be in 0 to 63"):
        model([("$_NOT_", [INPUTS[0]])], [FIRST_GATE]).run(items(np.full((1, 3), 64)))


def test_a_unit_that_waits_is_refused() -> None:
    text = netlist_json([("$_NOT_", [INPUTS[0]])], ready=INPUTS[1])
    waiting = ActivityModel(text, [FIRST_GATE], [FIELD], [BIT], "waiting")
    assert waiting.run(items(np.full((1, 3), 2))).pairs == 2
    for row in product([0, 2], repeat=3):
        if row != (2, 2, 2):
            with pytest.raises(ToolError, match="waiting must take an item in each cycle"):
                waiting.run(items(np.array([row])))


def test_a_run_that_nobody_waits_for_ends() -> None:
    stopped = model([("$_NOT_", [INPUTS[0]])], [FIRST_GATE])
    rows = items(np.zeros((1, 1000)))
    assert stopped.run(rows).pairs == 999
    with workers(1) as pool:
        pool.control.stop = 1
        with pytest.raises(StoppedError):
            pool.submit(stopped.run, rows).result()
