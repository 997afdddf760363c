"""A dot product is proved, and faults around its parts are not."""

from contextlib import suppress
from typing import Any

import pytest

from axs6.hw.verilog import generate
from axs6.proof import block_dot, dot, smt
from axs6.proof.dot import DotProof
from axs6.proof.equivalence import Comparison
from axs6.proof.netlists import verilog_design
from axs6.proof.prove import Outcome, UnitProof
from axs6.proof.steps import NotShownError

SMALL: dict[str, Any] = {"format": "mx4_t8"}

SCALED: dict[str, Any] = {"format": "int4", "block": 2}
"""Totals are multiplied by scales of channels or tensors."""


def shown(verilog: str, parameters: dict[str, Any] = SMALL) -> dict[str, bool]:
    """Whether each statement is shown of a dot product in Verilog, but those about its parts."""
    proof = UnitProof("dot", parameters).held(verilog_design(verilog).graph)
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
    assert [*shown(generate("dot", **SMALL).verilog).values()] == [True] * 4


TAKEN, KEPT, RESULT, CONTROL = (
    "an item that is taken is added to the total",
    "what waits stays as it is",
    "the result is what follows on the total of the last item",
    "a result is lost by no item, and no item by a result",
)


@pytest.mark.parametrize(
    ("old", "new", "wrong"),
    [
        ("first ? 32'd0 :", "first ? 32'd1 :", [TAKEN]),
        ("o__payload[32] ? o__ready_9 :", "o__payload[32] ? 1'h1 :", [KEPT, CONTROL]),
        ("_04_ = _03_[0];", "_04_ = 1'h0;", [TAKEN, CONTROL]),
        ("o__valid_7 = o__valid & o__payload[32];", "o__valid_7 = o__valid;", [RESULT]),
        ("first ? i__ready_6 : _08_;", "first ? i__ready_6 : 1'h0;", [KEPT, CONTROL]),
    ],
)
@pytest.mark.slow
def test_a_fault_of_the_accumulator_is_not_proved(old: str, new: str, wrong: list[str]) -> None:
    """A start at another total, a lost result, a vector without end, a total as a result, and no
    item but the first."""
    verilog = generate("dot", **SMALL).verilog
    assert verilog.count(old) == 1
    found = shown(verilog.replace(old, new))
    assert [text for text, right in found.items() if not right] == wrong


HELD = "_2_ = passed_38;\n    end"


@pytest.mark.parametrize(
    ("old", "new", "wrong"),
    [
        (
            "i__payload[96:64] = i__payload_11[64:32];",
            "i__payload[96:64] = "
            "{first ? i__payload_11[64:33] : o__payload[64:33], i__payload_11[32]};",
            [TAKEN],
        ),
        (HELD, f"{HELD}\n    _2_[64:33] = passed_38[64:33];", [KEPT]),
        (
            "o__payload_12[31:0] = o__payload[31:0];",
            "o__payload_12[31:0] = o__payload[31:0] ^ ~o__ready_9;",
            [RESULT],
        ),
        (
            "o__valid_7 = o__valid & o__payload[32];",
            "o__valid_7 = o__valid & o__payload[32] & o__payload[31:0] != 32'h12345678;",
            [RESULT],
        ),
    ],
)
@pytest.mark.slow
def test_a_fault_beside_scales_is_not_proved(old: str, new: str, wrong: list[str]) -> None:
    """The scale of the first item, one that is not held, a result that changes while it waits, and
    one total that never comes out."""
    verilog = generate("dot", **SCALED).verilog
    assert verilog.count(old) == 1
    found = shown(verilog.replace(old, new), SCALED)
    assert [text for text, right in found.items() if not right] == wrong


def test_a_fault_of_a_part_is_refuted_by_a_vector(monkeypatch: pytest.MonkeyPatch) -> None:
    """Without the proofs of the parts, which take minutes."""
    verilog = generate("dot", **SMALL).verilog.replace("first ? 32'd0 :", "first ? 32'd1 :")
    proof = UnitProof("dot", SMALL)
    monkeypatch.setattr(proof, "_reference", verilog_design(verilog))
    monkeypatch.setattr(DotProof, "_part_steps", lambda self: {})
    claims = {claim.text: claim for claim in proof.specification()}
    assert claims[TAKEN].outcome is Outcome.REFUTED
    item = claims[TAKEN].item
    assert item is not None
    assert item["last"].tolist() == [*[0] * (len(item["last"]) - 1), 1]


def test_each_question_has_the_limit_that_is_given(monkeypatch: pytest.MonkeyPatch) -> None:
    """Of comparisons, the SMT solver, and the SAT solver."""
    limits = []

    def compared(*graphs: Any, seconds: float, ways: Any = ()) -> Comparison:
        limits.append(seconds)
        return Comparison(None, "time is over")

    def asked(*question: Any) -> None:
        limits.append(question[-1])

    monkeypatch.setattr(dot, "compare", compared)
    monkeypatch.setattr(smt, "ask", asked)
    monkeypatch.setattr(block_dot, "never", asked)
    proof = UnitProof("dot", SMALL, seconds=321)
    for step in proof.held(proof._reference.graph).steps().values():
        with suppress(NotShownError):
            step()
    assert set(limits) == {321}
    assert len(limits) > 6


@pytest.mark.slow
@pytest.mark.parametrize("format", ["axs6", "mxfp4", "nvfp4", "int8", "mxfp8_e4m3"])
def test_a_whole_dot_product_is_proved(format: str) -> None:
    claims = [*UnitProof("dot", {"format": format}).specification()]
    assert {claim.outcome for claim in claims} == {Outcome.PROVED}
