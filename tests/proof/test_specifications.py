"""No mutant that differs is ever proved; expanders, which have no formats, are proved."""

from typing import Any

import numpy as np
import pytest

from axs6.hw.registry import UNITS
from axs6.proof.aig import Graph
from axs6.proof.mutants import SELECTOR, SELECTOR_BITS, MutantModel, Mutants, mutants
from axs6.proof.prove import Outcome, UnitProof
from axs6.proof.steps import NotShownError

SECONDS = 60.0
"""Limit of a question."""


def graph_of(made: Mutants, number: int) -> Graph:
    """The graph of one mutant, or with 0 of the unit."""
    graph = made.graph
    bits = {graph.inputs[f"{SELECTOR}[{k}]"]: number >> k & 1 for k in range(SELECTOR_BITS)}
    found = graph.cofactor(list(graph.outputs.values()), bits)
    return graph.with_outputs(dict(zip(graph.outputs, found, strict=True)))


def proved(made: Mutants, number: int) -> bool:
    proof = UnitProof(made.unit, made.settings, SECONDS).held(graph_of(made, number))
    try:
        for step in proof.steps().values():
            step()
    except NotShownError:
        return False
    return True


@pytest.mark.parametrize(
    ("unit", "parameters"),
    [
        ("block_dot", {"format": "mx4_t4"}),
        pytest.param("decoder", {"format": "mxfp4_t8"}, marks=pytest.mark.slow),
        pytest.param("encoder", {"block": 8, "dtype": "fp16"}, marks=pytest.mark.slow),
        pytest.param(
            "encoder", {"format": "mx4", "block": 8, "dtype": "fp16"}, marks=pytest.mark.slow
        ),
        pytest.param("expander", {"block": 8}, marks=pytest.mark.slow),
        pytest.param("block_dot", {"format": "mxfp8_e5m2_t8"}, marks=pytest.mark.slow),
        pytest.param("block_dot", {"format": "nvfp4"}, marks=pytest.mark.slow),
        pytest.param("block_dot", {"block": 8, "view": "behaviour"}, marks=pytest.mark.slow),
        pytest.param("decoder", {"format": "mx9", "dtype": "bf16"}, marks=pytest.mark.slow),
        pytest.param(
            "decoder", {"format": "int4", "block": 8, "dtype": "bf16"}, marks=pytest.mark.slow
        ),
        pytest.param("decoder", {"format": "e2m1fn_e4m3fn_t8_float32"}, marks=pytest.mark.slow),
    ],
)
def test_no_mutant_that_differs_is_proved(unit: str, parameters: dict[str, Any]) -> None:
    """Items show which mutants differ; the unit itself is proved from the same netlist."""
    made, entry = mutants(unit, parameters, 60, seed=5), UNITS[unit]
    model = MutantModel(made)
    dead = model.killed(entry.random(made.settings, np.random.default_rng(0), 2000))
    dead |= model.killed(entry.corners(made.settings))
    assert dead.sum() > 25
    assert proved(made, 0)
    assert [number for number in np.flatnonzero(dead).tolist() if proved(made, number)] == []


@pytest.mark.parametrize(
    "block", [8, pytest.param(16, marks=pytest.mark.slow), pytest.param(32, marks=pytest.mark.slow)]
)
def test_an_expander_is_proved(block: int) -> None:
    claims = [*UnitProof("expander", {"block": block}).specification()]
    assert [claim.outcome for claim in claims] == [Outcome.PROVED, Outcome.PROVED]
