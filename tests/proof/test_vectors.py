"""Registers around totals are proved to be a queue of vectors, and faults in them are found."""

import pytest

from axs6.hw.verilog import generate
from axs6.proof.colours import Property
from axs6.proof.equivalence import compare
from axs6.proof.induction import INDUCTION
from axs6.proof.netlists import verilog_design
from axs6.proof.prove import Outcome, UnitProof
from axs6.proof.steps import NotShownError
from axs6.proof.vectors import Adding, VectorUnit

HEAD = """
module top (input clk, input rst, input [4:0] i_payload, input i_valid, output i_ready,
            output [3:0] o_payload, output o_valid, input o_ready);
  wire last = i_payload[4];
"""

FLAT = """
  reg [3:0] total;
  reg first, held, done;
  wire result = held & done;
  assign i_ready = !result | o_ready;
  wire add = i_valid & i_ready;
  assign o_valid = result;
  assign o_payload = total ^ 4'd5;
  always @(posedge clk) begin
    if (add) begin
      total <= (first ? 4'd0 : total) + (i_payload[3:0] ^ 4'd3);
      first <= last; done <= last; held <= 1;
    end else if (result & o_ready) held <= 0;
    if (rst) begin first <= 1; held <= 0; end
  end
endmodule
"""

RANKS = """
  reg [3:0] a, sum, r;
  reg v1, l1, begins, v2, done, v3;
  wire result = v2 & done;
  wire move3 = !v3 | o_ready;
  wire add = v1 & (!result | move3);
  wire move1 = !v1 | add;
  assign i_ready = move1;
  assign o_valid = v3;
  assign o_payload = r;
  always @(posedge clk) begin
    if (move1) begin v1 <= i_valid; a <= i_payload[3:0] ^ 4'd3; l1 <= last; end
    if (add) sum <= (begins ? 4'd0 : sum) + a;
    if (add) begin begins <= l1; done <= l1; v2 <= 1; end
    else if (result & move3) v2 <= 0;
    if (move3) begin v3 <= result; r <= sum ^ 4'd5; end
    if (rst) begin v1 <= 0; begins <= 1; v2 <= 0; v3 <= 0; end
  end
endmodule
"""
"""The same with a rank of registers in front of the total, and one behind it."""

LATENCY = 3


def unit(body: str, *changed: tuple[str, str]) -> VectorUnit:
    for old, new in changed:
        assert body.count(old) == 1
        body = body.replace(old, new)
    return VectorUnit(verilog_design(HEAD + body, "top").graph, ["i_payload[4]"], 30)


def violated(found: VectorUnit, latency: int = LATENCY) -> set[Adding | Property]:
    shown: dict[Adding | Property, bool | None] = {x: found.shows(x, latency).holds for x in Adding}
    shown |= {x: found.control().shows(x, latency, 30).holds for x in Property}
    assert None not in shown.values()
    return {each for each, holds in shown.items() if not holds}


def is_flat(found: VectorUnit) -> bool | None:
    return compare(unit(FLAT).function(), found.function(), seconds=30).equal


def test_sums_behind_a_queue_are_proved() -> None:
    found = unit(RANKS)
    assert not violated(found)
    assert not violated(unit(FLAT), 1)
    assert is_flat(found)
    assert violated(found, LATENCY - 1) == {Property.LATENCY}


def test_names_and_the_order_of_registers_do_not_matter() -> None:
    other = RANKS.replace("sum", "{s2, s0, s3, s1}").replace(
        "[3:0] a, {s2, s0, s3, s1}, r", "[3:0] a, r"
    )
    assert is_flat(unit(other.replace("reg v1", "reg s0, s1, s2, s3, v1")))


@pytest.mark.parametrize(
    ("old", "new", "wanted"),
    [
        ("wire move1 = !v1 | add;", "wire move1 = 1;", Adding.PROGRESS),
        ("add = v1 & (!result | move3)", "add = v1", Property.PROGRESS),
        ("add = v1 &", "add =", Adding.ONCE),
        ("if (add) sum", "if (add | result & !v1) sum", Property.ONCE),
        ("if (add) sum", "if (add | v2 & !done) sum", Adding.KEPT),
        ("if (add) sum", "if (add & !l1) sum", Adding.TAKEN),
        pytest.param("if (add) begin begins <= l1;", "if (add) begin begins <= begins & l1;",
                     Adding.PROGRESS, marks=pytest.mark.slow),
        pytest.param("begins <= l1;", "begins <= !l1;", Adding.BEGIN, marks=pytest.mark.slow),
        pytest.param("begins <= l1;", "begins <= last;", Adding.BEGIN, marks=pytest.mark.slow),
        ("if (move3) begin v3 <= result; r", "if (move3) v3 <= result; begin r", Property.HELD),
        pytest.param("if (move3) begin v3", "begin v3", Property.HELD, marks=pytest.mark.slow),
        pytest.param("done <= l1;", "done <= 1;", Property.ONCE, marks=pytest.mark.slow),
        ("l1 <= last;", "l1 <= l2; l2 <= last;", Adding.BEGIN),
        pytest.param("a <= i_payload", "a <= b; b <= i_payload", Adding.ONCE,
                     marks=pytest.mark.slow),
        pytest.param("v2 <= 0; v3 <= 0;", "v3 <= 0;", Property.ONCE, marks=pytest.mark.slow),
        pytest.param("v2 <= 0; v3 <= 0;", "v2 <= 0;", Property.ONCE, marks=pytest.mark.slow),
    ],
    ids=[
        *("a lost item", "a lost result", "an item from nothing", "an item added twice"),
        *("a total that changes", "a last item left out", "a vector without end"),
        *("vectors of one item", "the end of the next item", "a result that is not held"),
        *("a lost valid", "a result after the first item", "an end that comes late"),
        *("a value that comes late", "a total without reset", "a result without reset"),
    ],
)  # fmt: skip
def test_a_fault_is_found(old: str, new: str, wanted: Adding | Property) -> None:
    """For each property one fault that violates it in every run."""
    body = RANKS.replace("reg v1", "reg l2; reg [3:0] b; reg v1")
    try:
        assert wanted in violated(unit(body, (old, new)))
    except NotShownError as error:
        raise AssertionError(str(error)) from error


@pytest.mark.parametrize(
    ("old", "new"),
    [
        ("begins ? 4'd0 :", "begins ? 4'd1 :"),
        ("r <= sum ^ 4'd5", "r <= sum ^ 4'd7"),
        ("i_payload[3:0] ^ 4'd3", "{i_payload[2], i_payload[3], i_payload[1:0]} ^ 4'd3"),
        ("sum) + a", "sum) - a"),
    ],
    ids=["start", "result", "slices", "sum"],
)
def test_another_sum_is_found(old: str, new: str) -> None:
    assert is_flat(unit(RANKS, (old, new))) is False


@pytest.mark.parametrize(
    ("old", "new", "said"),
    [
        ("(begins ? 4'd0 : sum)", "sum", "0 registers say that a vector begins"),
        ("begins <= 1; v2", "v2", "0 registers say that a vector begins"),
        ("assign o_valid = v3;", "assign o_valid = v3 & o_ready;", "valid depends on ready"),
        ("v1 <= i_valid;", "v1 <= i_valid & !i_payload[2];", "on 1 bits of the payload"),
    ],
    ids=["not cleared", "no reset", "valid waits", "payload"],
)
def test_control_that_is_wrong_is_refused(old: str, new: str, said: str) -> None:
    with pytest.raises(NotShownError, match=said):
        unit(RANKS, (old, new))


def test_vectors_behind_many_registers_are_proved_by_induction() -> None:
    """Of an empty unit with a total, control is in another state than after a reset.

    After a stall more items wait in front of the total than the latency has cycles.
    """
    made = generate("dot", format="mx4_t8", block=8, stages=8)
    ends = [
        f"i_payload[{field['offset']}]"
        for field in made.manifest["streams"][0]["fields"]
        if field["name"] == "last"
    ]
    found = VectorUnit(verilog_design(made.verilog).graph, ends, 60)
    latency = made.manifest["latency"]
    shown = {x: found.shows(x, latency) for x in Adding}
    alone = {x: found.control().shows(x, latency, 60) for x in Property}
    assert all(answer.holds for answer in (*shown.values(), *alone.values()))
    assert {x for x, answer in shown.items() if answer.by != INDUCTION} == {
        Adding.TAKEN,
        Adding.KEPT,
    }
    assert {answer.by for answer in alone.values()} == {INDUCTION}


SMALL = {"format": "mx4_t8", "stages": 2}


@pytest.mark.slow
def test_a_dot_product_with_registers_is_proved() -> None:
    claims = [*UnitProof("dot", SMALL).rtl()]
    assert {claim.outcome for claim in claims} == {Outcome.PROVED}
    assert len(claims) == 1 + len(Adding) + len(Property)


@pytest.mark.slow  # test_dot.py has a fault of a part in every run
@pytest.mark.parametrize(
    ("old", "new", "wanted"),
    [
        ("    if (ready1) begin\n      _11_", "    if (1) begin\n      _11_", Adding.ONCE),
        pytest.param(
            "_04_ = _03_[0];",
            "_04_ = 1'h1;",
            "sums of vectors behind a queue",
            marks=pytest.mark.slow,
        ),
        pytest.param(
            "first ? 32'd0 :",
            "first ? 32'd1 :",
            "totals and results are those of the RTL",
            marks=pytest.mark.slow,
        ),
    ],
    ids=["a register that is not held", "vectors of one item", "another start"],
)
def test_a_wrong_dot_product_is_refuted_and_seen(old: str, new: str, wanted: str) -> None:
    """It is seen in the batch simulator, with a vector or with stalls."""
    verilog = generate("dot", **SMALL).verilog
    assert verilog.count(old) == 1
    claims = UnitProof("dot", SMALL).netlist("wrong.v", verilog.replace(old, new))
    claim = next(claim for claim in claims if claim.text.startswith(wanted))
    assert claim.outcome is Outcome.REFUTED
    assert claim.item is not None or "in simulation" in claim.reason


def test_vectors_that_take_turns_are_refused() -> None:
    with pytest.raises(ValueError, match="registers needs interleave 1, not 2"):
        list(UnitProof("dot", {**SMALL, "interleave": 2}).rtl())


@pytest.mark.slow
@pytest.mark.parametrize("stages", [0, 3])
def test_netlists_of_a_dot_product_are_proved(stages: int) -> None:
    proof = UnitProof("dot", {**SMALL, "stages": stages})
    claims = [*proof.mapped(target="sky130", adder_cells=True, optimise="area")]
    assert {claim.outcome for claim in claims} == {Outcome.PROVED}
