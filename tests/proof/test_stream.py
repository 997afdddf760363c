"""Registers and handshakes are proved to be a queue, and faults in them are found."""

import pytest

from axs6.proof.aig import TRUE
from axs6.proof.colours import Property
from axs6.proof.induction import INDUCTION
from axs6.proof.netlists import verilog_design
from axs6.proof.steps import NotShownError
from axs6.proof.stream import PipelinedUnit

HEAD = """
module top (input clk, input rst, input [3:0] i_payload, input i_valid, output i_ready,
            output [3:0] o_payload, output o_valid, input o_ready);
"""

QUEUE = """
  reg first, second;
  reg [3:0] a, b;
  wire move = !second | o_ready;
  assign i_ready = !first | move;
  assign o_valid = second;
  assign o_payload = b ^ 4'd5;
  always @(posedge clk) begin
    if (i_ready) first <= i_valid;
    if (move) second <= first;
    if (i_ready) a <= i_payload + 4'd1;
    if (move) b <= a;
    if (rst) begin first <= 0; second <= 0; end
  end
endmodule
"""

SWAP = """
  reg [1:0] count;
  reg [3:0] a, b;
  assign i_ready = count != 2;
  assign o_valid = count != 0;
  assign o_payload = count == 2 ? b : a;
  wire push = i_valid & i_ready, pop = o_valid & o_ready;
  always @(posedge clk) begin
    if (push & (count == 0 | pop)) a <= i_payload;
    if (push & count == 1 & !pop) b <= i_payload;
    count <= rst ? 0 : count + push - pop;
  end
endmodule
"""
"""The last item comes out first."""


def unit(body: str, *changed: tuple[str, str]) -> PipelinedUnit:
    for old, new in changed:
        assert body.count(old) == 1
        body = body.replace(old, new)
    return PipelinedUnit(verilog_design(HEAD + body, "top").graph)


def violated(found: PipelinedUnit, latency: int = 2) -> set[Property]:
    shown = {each: found.control().shows(each, latency, 30).holds for each in Property}
    assert None not in shown.values()
    return {each for each, holds in shown.items() if not holds}


def test_a_queue_is_proved() -> None:
    found = unit(QUEUE)
    assert found.sizes == {"registers": 10, "control registers": 2, "banks": 2}
    assert not violated(found)
    assert violated(found, latency=1) == {Property.LATENCY}
    function = found.function()
    payload = {each >> 1 for name, each in function.inputs.items() if name.startswith("i_payload")}
    assert function.leaves(function.outputs.values()) == payload


@pytest.mark.parametrize(
    ("changed", "wanted"),
    [
        (("if (move) b <= a;", "b <= a;"), Property.HELD),
        (("if (move) second <= first;", "second <= first;"), Property.HELD),
        (("assign i_ready = !first | move;", "assign i_ready = 1;"), Property.PROGRESS),
        (("if (i_ready) first <= i_valid;", "if (i_ready) first <= 1;"), Property.ONCE),
        (("if (i_ready) a", "if (1) a"), Property.ONCE),
        (("if (move) b <= a;", "if (move) b <= {a[3:1], i_payload[0]};"), Property.WHOLE),
    ],
    ids=lambda each: each[1] if isinstance(each, tuple) else None,
)
def test_a_fault_is_found(changed: tuple[str, str], wanted: Property) -> None:
    """A register that is not held, a lost item, one from nothing, and parts of two items."""
    assert wanted in violated(unit(QUEUE, changed))


def test_valid_that_waits_for_ready_is_found() -> None:
    """No item is offered until the receiver has been ready for a cycle."""
    found = unit(
        QUEUE,
        ("reg first, second;", "reg first, second, seen;"),
        ("wire move = !second | o_ready;", "wire move = !second | seen & o_ready;"),
        ("assign o_valid = second;", "assign o_valid = second & seen;"),
        ("if (move) b <= a;", "if (move) b <= a; seen <= seen ? !o_ready : second & o_ready;"),
        ("second <= 0;", "second <= 0; seen <= 0;"),
    )
    assert violated(found, latency=4) == {Property.VALID, Property.RATE}


def chain(ranks: int, stuck: int = -1, again: int = -1) -> str:
    """Ranks of registers behind each other, of which one that is stuck moves on only if there is an
    item behind it, and one is valid again when its item left."""
    lines = [f"assign i_ready = ready0; wire ready{ranks} = o_ready;"]
    moves = []
    offered, item = "i_valid", "i_payload"
    for k in range(ranks):
        valid = f"{offered} | valid{k}" if k == again else offered
        moves.append(f"if (ready{k}) begin valid{k} <= {valid}; item{k} <= {item}; end")
        moves.append(f"if (rst) valid{k} <= 0;")
        offered, item = f"valid{k} & valid{k - 1}" if k == stuck else f"valid{k}", f"item{k}"
        moved = f"ready{k + 1} & {offered}"
        lines.append(f"reg valid{k}; reg [3:0] item{k}; wire ready{k} = !valid{k} | {moved};")
    out = f"assign o_valid = valid{ranks - 1}; assign o_payload = item{ranks - 1};"
    return "\n".join([*lines, out, "always @(posedge clk) begin", *moves, "end", "endmodule"])


def test_a_long_queue_is_proved_by_induction() -> None:
    control = unit(chain(24)).control()
    for each in Property:
        assert control.shows(each, 24, 60) == (True, INDUCTION)


COPIED = (
    ("reg first, second;", "reg first, second, copy;"),
    ("assign i_ready = !first | move;", "assign i_ready = !first | moves;"),
    ("wire move =", "wire moves = !copy | o_ready; wire move ="),
    ("if (move) b <= a;", "if (moves) begin b <= a; copy <= first; end"),
    ("second <= 0;", "second <= 0; copy <= 0;"),
)
"""The register `second` has a copy, which says when items move."""


def test_a_copy_of_a_control_register_is_that_register() -> None:
    found = unit(QUEUE, *COPIED)
    assert found.sizes == {"registers": 10, "control registers": 2, "banks": 2}
    assert not violated(found)


@pytest.mark.parametrize(
    ("changed", "wanted"),
    [
        (("copy <= first;", "copy <= first & second;"), Property.HELD),
        (("copy <= 0;", "copy <= 1;"), Property.ONCE),
    ],
    ids=["takes another value", "starts with another value"],
)
def test_a_copy_that_differs_is_found(changed: tuple[str, str], wanted: Property) -> None:
    found = unit(QUEUE, *COPIED, changed)
    assert found.sizes["control registers"] == 3
    assert wanted in violated(found)


@pytest.mark.parametrize(
    ("fault", "wanted"),
    [
        ({"stuck": 3}, {Property.PROGRESS, Property.VALID, Property.LATENCY}),
        ({"again": 3}, {Property.ONCE}),
    ],
    ids=["stuck", "again"],
)
def test_a_rank_that_is_wrong_is_found(fault: dict[str, int], wanted: set[Property]) -> None:
    """One rank holds its item until another item comes; one offers its item again and again."""
    assert wanted <= violated(unit(chain(6, **fault)), latency=6)


def test_items_in_another_order_are_found() -> None:
    assert Property.ORDER in violated(unit(SWAP))


@pytest.mark.parametrize(
    ("changed", "said"),
    [
        (("if (rst) begin first <= 0; second <= 0; end", ""), "reset leaves 2 control registers"),
        (("assign o_valid = second;", "assign o_valid = second & o_ready;"), "valid depends"),
        (("first <= i_valid;", "first <= i_valid & !i_payload[2];"), "1 bits of the payload"),
    ],
    ids=["no reset", "valid waits", "payload"],
)
def test_control_that_is_wrong_is_refused(changed: tuple[str, str], said: str) -> None:
    with pytest.raises(NotShownError, match=said):
        unit(QUEUE, changed)


def test_a_register_that_takes_a_constant_in_every_cycle_is_that_constant() -> None:
    found = unit(QUEUE, ("if (move) b <= a;", "b[3] <= 1; if (move) b[2:0] <= a[2:0];"))
    assert not violated(found)
    assert found.function().outputs["o_payload[3]"] == TRUE


@pytest.mark.parametrize("when", ["!rst", "!move"])
def test_a_register_that_takes_a_constant_in_some_cycles_may_start_with_another(when: str) -> None:
    changed = f"if ({when}) b[3] <= 1; if (move) b[2:0] <= a[2:0];"
    with pytest.raises(NotShownError, match="may start with another value"):
        unit(QUEUE, ("if (move) b <= a;", changed)).function()
