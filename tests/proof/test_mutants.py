"""Mutants of units: the right ones are killed, and the solver is right about the others."""

import json
from dataclasses import replace
from pathlib import Path
from typing import Any

import numpy as np
import pytest

from axs6.hw.registry import UNITS
from axs6.proof import mutants as module
from axs6.proof import score
from axs6.proof.aig import UNDRIVEN
from axs6.proof.cycles import killed_in_cycles
from axs6.proof.mutants import MOST, SELECTOR, SELECTOR_BITS, MutantModel, Mutants, mutants
from axs6.proof.score import mutation_score
from axs6.proof.survivors import Judge
from axs6.proof.verdicts import Verdict
from axs6.sim.tools import ToolError

SMALL: dict[str, Any] = {"block": 8, "dtype": "bf16"}

pytestmark = pytest.mark.optimised
"""All mutants run all corner cases."""


@pytest.fixture(scope="module")
def made() -> Mutants:
    return mutants("decoder", SMALL, 200, 3)


@pytest.fixture(scope="module")
def model(made: Mutants) -> MutantModel:
    return MutantModel(made)


def few(made: Mutants, count: int) -> Any:
    return UNITS["decoder"].random(made.settings, np.random.default_rng(0), count)


def test_mutants_are_listed(made: Mutants) -> None:
    assert [each.number for each in made.mutations] == list(range(1, 201))
    assert {each.mode for each in made.mutations} == {"inv", "const0", "const1", "cnot0", "cnot1"}
    assert str(made.mutations[0]).startswith(f"{made.mutations[0].mode} at ")


def test_a_multiplexer_that_selects_two_inputs_is_the_same_in_simulator_and_graph() -> None:
    """Reciprocals of `hif4` are a table of eight cases; selecting none or two is in no source."""
    made = mutants("encoder", {"format": "hif4", "block": 16, "dtype": "bf16"}, MOST, 1)
    assert not [name for name in made.graph.inputs if name.startswith(UNDRIVEN)]
    at_select = [x for x in made.mutations if "procmux" in x.cell and x.port == "S"]
    assert at_select
    values = UNITS["encoder"].random(made.settings, np.random.default_rng(0), 64)
    dead = MutantModel(made).killed(values)
    right = outputs(made, values["values"], 0)
    for each in at_select:
        assert dead[each.number] == (outputs(made, values["values"], each.number) != right)


def outputs(made: Mutants, values: Any, number: int) -> list[int]:
    """All payloads that the graph of a mutant gives, as one number each."""
    graph, width = made.graph, 16
    given = {
        graph.inputs[f"i_payload[{k}]"]: np.where(values[:, k // width] >> k % width & 1, 1, 0)
        for k in range(values.shape[1] * width)
    }
    given |= {graph.inputs[f"{SELECTOR}[{k}]"]: number >> k & 1 for k in range(SELECTOR_BITS)}
    words = {
        literal: np.packbits(np.broadcast_to(bits, 64).astype(np.uint8)).view(np.uint64)
        for literal, bits in given.items()
    }
    names = [name for name in graph.outputs if name.startswith("o_payload")]
    found = graph.values([graph.outputs[name] for name in names], words)
    return [int(each[0]) for each in found]


def test_killed_mutants_are_not_equal_and_what_the_solver_finds_kills(
    made: Mutants, model: MutantModel
) -> None:
    """Of 3 items, few of which kill: both sides of every verdict are run."""
    dead = model.killed(few(made, 3))
    assert 20 < dead.sum() < 180
    verdicts, judge = set(), Judge(made.graph, made.inputs, made.source.outputs)
    for mutation in made.mutations[:60]:
        found = judge.decide(mutation.number)
        verdicts.add(found.verdict)
        if dead[mutation.number]:
            assert found.verdict is Verdict.DIFFERENT
        if found.item is not None:
            assert model.killed(found.item)[mutation.number]
        else:
            assert not model.killed(few(made, 2000))[mutation.number]
    assert verdicts == {Verdict.EQUAL, Verdict.DIFFERENT}


def test_a_unit_that_is_wrong_itself_is_refused(
    made: Mutants, model: MutantModel, monkeypatch: pytest.MonkeyPatch
) -> None:
    unit = UNITS["decoder"]

    def wrong(items: Any, settings: Any) -> Any:
        return {name: x ^ np.array(1, x.dtype) for name, x in unit.golden(items, settings).items()}

    monkeypatch.setattr(module, "find_with_streams", lambda name: replace(unit, golden=wrong))
    with pytest.raises(ToolError, match="decoder differs from the golden model before any mutat"):
        model.killed(few(made, 10))


def test_an_item_of_the_solver_that_does_not_kill_is_a_fault(
    made: Mutants, model: MutantModel
) -> None:
    zeros = {name: np.zeros_like(array[:1]) for name, array in few(made, 1).items()}
    alive = int(np.flatnonzero(~model.killed(zeros))[1])
    with pytest.raises(ToolError, match=r"an item that was to kill the mutant .* does not"):
        score._check_kills(model, made.mutations[alive - 1], zeros)


@pytest.mark.parametrize(
    ("unit", "parameters"),
    [
        pytest.param(*("decoder", SMALL), marks=pytest.mark.slow),
        pytest.param("expander", {"block": 8}, marks=pytest.mark.slow),
        pytest.param("decoder", {"block": 8, "format": "nvfp4"}, marks=pytest.mark.slow),
        pytest.param("decoder", {**SMALL, "format": "nvfp4"}, marks=pytest.mark.slow),
        pytest.param("decoder", {**SMALL, "format": "vsq8"}, marks=pytest.mark.slow),
        pytest.param("encoder", SMALL, marks=pytest.mark.slow),
        pytest.param("encoder", {"block": 8}, marks=pytest.mark.slow),
        pytest.param("encoder", {**SMALL, "mode": "sparse"}, marks=pytest.mark.slow),
        pytest.param("encoder", {**SMALL, "mode": "high_precision"}, marks=pytest.mark.slow),
        pytest.param("encoder", {**SMALL, "rounding": "toward_zero"}, marks=pytest.mark.slow),
        pytest.param("encoder", {**SMALL, "format": "mxfp4"}, marks=pytest.mark.slow),
        pytest.param("encoder", {**SMALL, "format": "mxfp8_e4m3"}, marks=pytest.mark.slow),
        pytest.param("encoder", {"format": "mx9", "dtype": "bf16"}, marks=pytest.mark.slow),
        pytest.param("decoder", {"format": "mx9"}, marks=pytest.mark.slow),
        pytest.param("decoder", {"format": "mxfp8_e5m2", **SMALL}, marks=pytest.mark.slow),
        pytest.param("expander", {"block": 16}, marks=pytest.mark.slow),
        pytest.param("block_dot", {"block": 8}, marks=pytest.mark.slow),
        pytest.param("block_dot", {"format": "mxfp4"}, marks=pytest.mark.slow),
        pytest.param("block_dot", {"format": "mx9"}, marks=pytest.mark.slow),
    ],
)
def test_every_mutant_that_is_not_equal_is_killed(unit: str, parameters: dict[str, Any]) -> None:
    found = mutation_score(unit, parameters, items=4000)
    assert found.killed > 400
    assert [
        str(each.mutation) for each in found.survivors if each.decision.verdict != "equal"
    ] == []
    assert found.score == 1


@pytest.mark.parametrize(
    ("unit", "parameters", "count"),
    [
        ("expander", {"block": 8, "stages": 2}, 150),
        *(
            pytest.param(*each, MOST, marks=pytest.mark.slow)
            for each in [
                ("expander", {"block": 8, "stages": 2}),
                ("decoder", {"block": 8, "stages": 3}),
                ("encoder", {"block": 8, "dtype": "bf16", "stages": 2}),
                ("block_dot", {"format": "mx4", "stages": 4}),
                ("dot", {"format": "mx4", "block": 8, "stages": 2}),
                ("dot", {"format": "axs6", "block": 8}),
            ]
        ),
    ],
)
def test_mutants_with_registers_are_killed_or_the_same_queue(
    unit: str, parameters: dict[str, Any], count: int
) -> None:
    found = mutation_score(unit, parameters, count=count, items=3000)
    assert found.killed > 3 * count // 4
    assert [str(x.mutation) for x in found.survivors if x.decision.verdict != "equal"] == []


@pytest.mark.slow  # scores with registers are in every run
def test_a_receiver_that_waits_and_a_reset_in_flight_kill_others(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    """A `ready` that waits for the receiver's, and a register that reset leaves as it is."""
    made = mutants("expander", {"block": 8, "stages": 2}, 511, 1)
    entry, rng = UNITS["expander"], np.random.default_rng(1)
    model = MutantModel(made)
    dead = model.killed(entry.random(made.settings, rng, 3000))
    dead |= model.killed(entry.random(made.settings, rng, 1000), score.STALL)
    few = entry.random(made.settings, rng, score.IN_CYCLES)
    in_cycles = killed_in_cycles(made, few, 2, 1)
    assert not in_cycles[0]
    assert 50 < in_cycles.sum() < 511
    only = [str(made.mutations[k - 1]) for k in np.flatnonzero(in_cycles & ~dead).tolist()]
    assert any("$not" in each for each in only)


@pytest.mark.slow
def test_mutants_with_registers_that_stop_are_killed() -> None:
    found = mutation_score("dot", {"block": 8, "stages": 2}, count=60, items=300)
    assert found.total == 60
    assert found.score > 0.9
    assert found.having(Verdict.DIFFERENT) == []


def test_a_hole_in_the_items_is_found(
    main: Any, monkeypatch: pytest.MonkeyPatch, tmp_path: Path
) -> None:
    """Without corner cases and with one random item, survivors are shown with what kills them."""
    unit = replace(UNITS["decoder"], corners=lambda p: UNITS["decoder"].random(p, RNG, 1))
    monkeypatch.setattr(score, "find_with_streams", lambda name: unit)
    options = ("--block", "8", "--mutants", "60", "--items", "1", "--json", "found.json")
    done = main("mutate", "decoder", *options)
    assert done.returncode == 1
    found = json.loads(Path("found.json").read_text())
    different = [each for each in found["survivors"] if each["verdict"] == "different"]
    assert different
    assert set(different[0]["item"]) == {"exponent", "codes"}
    assert done.stdout.count("killed by exponent = ") == len(different)
    assert f"score {100 * found['score']:.1f} %" in done.stdout


RNG = np.random.default_rng(0)


@pytest.mark.parametrize(
    ("arguments", "said"),
    [
        (("axis_dot",), "axis_dot is on AXI4-Stream"),
        (("decoder", "--mutants", "512"), "count must be an integer from 1 to 511, not 512"),
        (("decoder", "--items", "0"), "items must be an integer of at least 1, not 0"),
        (("decoder", "--format", "mx10"), "mx10"),
    ],
)
def test_bad_arguments_are_one_line(main: Any, arguments: tuple[str, ...], said: str) -> None:
    done = main("mutate", *arguments)
    assert done.returncode == 2
    assert said in done.stderr
    assert done.stderr.count("\n") == 1
