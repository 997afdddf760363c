"""A dot product whose accumulator aligns terms is proved, and faults around its parts are not."""

from typing import Any

import numpy as np
import pytest

from axs6.hw.registry import UNITS
from axs6.hw.verilog import generate
from axs6.proof.dot import placed
from axs6.proof.dot_terms import TermDotProof
from axs6.proof.mutants import SELECTOR, SELECTOR_BITS, MutantModel, mutants
from axs6.proof.netlists import verilog_design
from axs6.proof.prove import Outcome, UnitProof
from axs6.proof.steps import NotShownError

SMALL: dict[str, Any] = {"accumulator": "volta,reduction=2", "format": "mxfp4", "block": 8}

ADDED: dict[str, Any] = {"accumulator": "paper,reduction=2", "format": "mxfp4", "block": 8}


def shown(verilog: str, parameters: dict[str, Any]) -> dict[str, bool]:
    """Whether each statement is shown of a dot product in Verilog, but those about its parts."""
    proof = UnitProof("dot", parameters).held(verilog_design(verilog).graph)
    assert isinstance(proof, TermDotProof)
    found = {}
    for text, step in proof.steps().items():
        if ":" not in text:
            try:
                step()
                found[text] = True
            except NotShownError:
                found[text] = False
    return found


def test_a_dot_product_is_made_of_its_parts() -> None:
    assert [*shown(generate("dot", **SMALL).verilog, SMALL).values()] == [True] * 4


@pytest.mark.slow
@pytest.mark.parametrize(
    "parameters",
    [
        ADDED,
        {**SMALL, "view": "behaviour"},
        {"accumulator": "paper,reduction=8", "format": "axs6", "block": 8},
        {"accumulator": "turing", "format": "int4", "block": 8},
        {"accumulator": "hopper_fp8,reduction=8", "format": "fp8_e5m2", "block": 8},
        {"accumulator": "ampere_to_fp16", "format": "mx9"},
        {"accumulator": "cdna3_xf32", "format": "axs6"},
        {"accumulator": "cdna3_fp8", "format": "fp8_e4m3"},
    ],
    ids=str,
)
def test_other_dot_products_are_made_of_their_parts(parameters: dict[str, Any]) -> None:
    assert [*shown(generate("dot", **parameters).verilog, parameters).values()] == [True] * 4


TAKEN, KEPT, RESULT, CONTROL = (
    "an item that is taken is added to the total",
    "what waits stays as it is",
    "the result is what follows on the total of the last item",
    "a result is lost by no item, and no item by a result",
)


@pytest.mark.slow
@pytest.mark.parametrize(
    ("old", "new", "wrong"),
    [
        ("first ? 32'd0 :", "first ? 32'd1 :", [TAKEN]),
        ("o__valid & o__payload[32]", "o__valid", [RESULT]),
    ],
)
def test_a_fault_of_the_accumulator_is_not_proved(old: str, new: str, wrong: list[str]) -> None:
    """A start at another total, and a total as a result."""
    verilog = generate("dot", **SMALL).verilog
    assert verilog.count(old) == 1
    found = shown(verilog.replace(old, new), SMALL)
    assert [text for text, right in found.items() if not right] == wrong


@pytest.mark.slow
@pytest.mark.parametrize("accumulator", ["volta", "hopper_fp8", "blackwell_fp4", "cdna3"])
def test_a_whole_dot_product_is_proved(accumulator: str) -> None:
    parameters = {"accumulator": accumulator, "format": "mxfp4"}
    claims = [*UnitProof("dot", parameters).specification()]
    assert {claim.outcome for claim in claims} == {Outcome.PROVED}


def test_bits_of_a_total_are_in_order_whatever_their_names() -> None:
    assert placed(["a[2]", "a[3]", "b[5]", "b[6]"]) == ["b[5]", "b[6]", "a[2]", "a[3]"]


@pytest.mark.parametrize(
    ("parameters", "said"),
    [
        ({"accumulator": "cdna2"}, "cdna2 aligns no terms"),
        ({"accumulator": "hopper_fp8,promote=4"}, "rounded in each step, and not promoted"),
        ({"accumulator": "paper,rounding=toward_zero"}, "added in FP32 to nearest"),
        ({"accumulator": "volta", "interleave": 2}, "needs interleave 1"),
    ],
)
def test_what_is_not_covered_is_refused(parameters: dict[str, Any], said: str) -> None:
    assert said in UnitProof("dot", {"format": "mxfp4", **parameters}).unspecified


@pytest.mark.slow
@pytest.mark.optimised
def test_no_mutant_that_differs_is_proved() -> None:
    """Vectors of items show which mutants differ; parts are proved apart, and are not mutated."""
    made = mutants("dot", SMALL, 20, seed=5)
    items = UNITS["dot"].random(made.settings, np.random.default_rng(0), 2000)
    dead = np.flatnonzero(MutantModel(made).killed(items)).tolist()
    assert len(dead) > 9

    def proved(number: int) -> bool:
        bits = {
            made.graph.inputs[f"{SELECTOR}[{k}]"]: number >> k & 1 for k in range(SELECTOR_BITS)
        }
        outputs = made.graph.outputs
        found = made.graph.cofactor([*outputs.values()], bits)
        graph = made.graph.with_outputs(dict(zip(outputs, found, strict=True)))
        proof = UnitProof("dot", made.settings, 20).held(graph)
        try:
            for text, step in proof.steps().items():
                if ":" not in text:
                    step()
        except NotShownError:
            return False
        return True

    assert proved(0)
    assert [number for number in dead if proved(number)] == []
