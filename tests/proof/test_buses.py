"""Units on AXI4-Stream are proved, and faults of their buses are refuted."""

from collections.abc import Mapping
from typing import Any

import pytest

from axs6.hw.verilog import generate
from axs6.proof.buses import BusProof
from axs6.proof.colours import Property
from axs6.proof.prove import Claim, Outcome
from axs6.proof.vector_buses import RESULTS, TOGETHER, VectorBusProof
from axs6.proof.vectors import Adding

SMALL = {"format": "mxfp4", "block": 8, "dtype": "bf16", "stages": 2}


def claims_of(*changed: tuple[str, str]) -> dict[str, Claim]:
    verilog = generate("axis_encoder", **SMALL).verilog
    for old, new in changed:
        assert verilog.count(old) == 1, old
        verilog = verilog.replace(old, new)
    claims = BusProof("axis_encoder", SMALL).netlist("wrong.v", verilog)
    return {claim.text: claim for claim in claims}


def test_an_encoder_on_a_bus_is_proved() -> None:
    claims = [*BusProof("axis_encoder", SMALL).rtl()]
    assert {claim.outcome for claim in claims} == {Outcome.PROVED}
    assert len(claims) == 1 + len(Property)


@pytest.mark.parametrize("format", [pytest.param("axs6", marks=pytest.mark.slow), "mxfp4"])
def test_a_decoder_with_padding_is_proved(format: str) -> None:
    proof = BusProof("axis_decoder", {"format": format, "block": 8, "align": 32})
    claims = [*proof.specification()]
    assert [claim.outcome for claim in claims] == [Outcome.PROVED] * 2


WAITS = "valid depends on ready in the same cycle"
"""Nothing is lost by it in a simulation, whose receivers do not wait."""

HELD = "    if (ready1) begin\n      _52_ ="


@pytest.mark.parametrize(
    ("old", "new", "wanted"),
    [
        ("i__payload[128] = s_axis_tlast", "i__payload[128] = s_axis_tuser", BusProof.same),
        pytest.param(
            "i__payload[127:0] = s_axis_tdata",
            "i__payload[127:0] = {s_axis_tdata[111:0], s_axis_tdata[127:112]}",
            BusProof.same,
            marks=pytest.mark.slow,
        ),
        pytest.param(
            "m_axis_tlast = o__payload[41];",
            "m_axis_tlast = s_axis_tlast;",
            Property.WHOLE,
            marks=pytest.mark.slow,
        ),
        pytest.param(
            "assign i__ready = _00_ | ready1;",
            "assign i__ready = 1'h1;",
            Property.PROGRESS,
            marks=pytest.mark.slow,
        ),
        pytest.param(HELD, HELD.replace("ready1", "1"), Property.ONCE, marks=pytest.mark.slow),
        (
            "m_axis_tvalid = m_axis__tvalid;",
            "m_axis_tvalid = m_axis__tvalid & m_axis_tready;",
            "a function behind a queue",
        ),
    ],
    ids=["tlast", "slices", "early tlast", "lost beat", "beat not held", "tvalid waits"],
)
def test_a_fault_is_found(old: str, new: str, wanted: str) -> None:
    claim = claims_of((old, new))[wanted]
    if "tvalid" in old:
        assert (claim.outcome, claim.reason) == (Outcome.OPEN, WAITS)
    else:
        assert claim.outcome is Outcome.REFUTED
        assert claim.item is not None or "in simulation with stalls" in claim.reason


DOT = {"format": "mxfp4", "block": 8, "align": 8}
"""With padding, and without registers beside the accumulator: each name in its Verilog is once."""


def dot_claims(old: str, new: str) -> dict[str, Claim]:
    verilog = generate("axis_dot", **DOT).verilog
    assert verilog.count(old) == 1, old
    claims = VectorBusProof("axis_dot", DOT).netlist("wrong.v", verilog.replace(old, new))
    return {claim.text: claim for claim in claims}


@pytest.mark.parametrize(
    "given",
    [
        DOT,
        pytest.param({"block": 8, "stages": 2}, marks=pytest.mark.slow),
        pytest.param({"format": "fp8_e4m3", "block": 8}, marks=pytest.mark.slow),
        pytest.param(
            {"format": "mxfp4", "block": 8, "accumulator": "turing"}, marks=pytest.mark.slow
        ),
    ],
    ids=["padding", "stages", "real scales", "accumulator"],
)
def test_a_dot_product_on_buses_is_proved(given: Mapping[str, Any]) -> None:
    proof = VectorBusProof("axis_dot", given)
    claims = [*(proof.rtl() if "stages" in given else proof.specification())]
    assert {claim.outcome for claim in claims} == {Outcome.PROVED}
    assert [claim.text for claim in claims][:2] == [TOGETHER, RESULTS]
    assert len(claims) == 2 + len(Adding) + len(Property)


@pytest.mark.parametrize(
    ("old", "new", "wanted"),
    [
        ("s_axis_a_tlast ^ s_axis_b_tlast", "1'h0", RESULTS),
        ("s_axis_a_tlast | s_axis_b_tlast", "s_axis_b_tlast", Adding.BEGIN),
        pytest.param(
            "s_axis_a_tuser | s_axis_b_tuser",
            "s_axis_a_tuser & s_axis_b_tuser",
            RESULTS,
            marks=pytest.mark.slow,
        ),
        pytest.param(
            "m_axis_tlast = 1'h1", "m_axis_tlast = m_axis_tuser", RESULTS, marks=pytest.mark.slow
        ),
    ],
    ids=["tlast alone", "tlast of one", "tuser", "packet without end"],
)
def test_a_fault_of_two_buses_is_found(old: str, new: str, wanted: str) -> None:
    claim = dot_claims(old, new)[wanted]
    assert claim.outcome is Outcome.REFUTED
    assert claim.item is not None or "in simulation with stalls" in claim.reason


@pytest.mark.parametrize(
    ("old", "new"),
    [
        ("= s_axis_b_tvalid & i__ready", "= i__ready"),
        pytest.param(
            "= s_axis_a_tvalid & s_axis_b_tvalid", "= s_axis_a_tvalid", marks=pytest.mark.slow
        ),
    ],
    ids=["taken alone", "valid alone"],
)
def test_a_beat_that_is_taken_alone_is_seen(old: str, new: str) -> None:
    assert dot_claims(old, new)[TOGETHER].outcome is Outcome.OPEN


def test_vectors_that_take_turns_are_refused() -> None:
    with pytest.raises(ValueError, match="a proof of registers needs interleave 1, not 2"):
        VectorBusProof("axis_dot", {"interleave": 2})
