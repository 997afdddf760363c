"""Units on AXI4-Stream are proved, and faults of their buses are refuted."""

import pytest

from axs6.hw.verilog import generate
from axs6.proof.buses import BusProof
from axs6.proof.colours import Property
from axs6.proof.prove import Claim, Outcome

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


def test_two_buses_are_refused() -> None:
    with pytest.raises(ValueError, match="needs axis_encoder or axis_decoder, not axis_dot"):
        BusProof("axis_dot", {})
