"""Mutants of sums over vectors: what no vector can show is equal, and what one shows is found."""

from typing import Any

import numpy as np
import pytest

from axs6.hw.core.layouts import Field
from axs6.proof import cycles
from axs6.proof.aig import TRUE, Graph
from axs6.proof.cycles import killed_in_cycles
from axs6.proof.mutants import SELECTOR_BITS, Mutants
from axs6.proof.netlists import verilog_design
from axs6.proof.same_queue import SameVectors
from axs6.proof.verdicts import Decision, Verdict

SUMS = """
module top (input clk, input rst, input [8:0] mutant, input [4:0] i_payload, input i_valid,
            output i_ready, output [3:0] o_payload, output o_valid, input o_ready);
  reg [3:0] total;
  reg first, held, done;
  wire last = i_payload[4];
  wire result = held & done;
  wire waits = mutant == 5 & !first & !i_valid & held;
  assign i_ready = (!result | o_ready) & !(mutant == 6 & tired);
  wire add = i_valid & i_ready;
  reg tired;
  assign o_valid = result;
  assign o_payload = total ^ (mutant == 2 & total == 4'b1010);
  wire marked = mutant == 3 & i_payload[3];
  wire odd = mutant == 1 & total == 15 & !first;
  wire [3:0] sum = (first ? 4'd0 : total) + i_payload[2:0] + odd + marked;

  always @(posedge clk) begin
    tired <= !add;
    if (add) begin
      total <= sum == 15 ? 4'd14 : sum;
      first <= last; done <= last; held <= 1;
    end else if (waits) total <= total + 4'd5;
    else if (result & (o_ready | mutant == 4)) held <= 0;
    if (rst) begin first <= 1; held <= 0; tired <= 0; end
  end
endmodule
"""
"""No total is 15. The highest bit of an item's number is 1 in no valid code."""

ERRORS = """
module top (input clk, input rst, input [8:0] mutant, input [4:0] i_payload, input i_valid,
            output i_ready, output [3:0] o_payload, output o_valid, input o_ready);
  reg [1:0] total, kind;
  reg error, first, held, done;
  assign o_valid = held & done;
  assign i_ready = !o_valid | o_ready;
  assign o_payload = error ? (kind[1] ? 14 : 15) : total;
  wire wrong = i_payload[3:0] == 9;
  wire errs = wrong | !first & error & (mutant != 3 | kind[0]);
  wire [1:0] kinds = mutant == 1 ? 0 : mutant == 2 ? 2 : mutant == 3 ? 0 : 1;

  always @(posedge clk) begin
    if (i_valid & i_ready) begin
      total <= errs ? 2'd0 : (first ? 2'd0 : total) + i_payload[1:0];
      error <= errs;
      kind <= !first & error ? kind : kinds;
      first <= i_payload[4]; done <= i_payload[4]; held <= 1;
    end else if (o_valid & o_ready) held <= 0;
    if (rst) begin first <= 1; held <= 0; end
  end
endmodule
"""
"""A total with an error, of the kinds 0 and 1, gives 15 whatever follows. The unit has kind 1."""

INPUTS = [Field("x", 0, 4, False, ()), Field("last", 4, 1, False, ())]


@pytest.fixture(scope="module")
def graph() -> Graph:
    return verilog_design(SUMS, "top").graph


def outputs_of(graph: Graph, number: int) -> dict[str, int]:
    bits = {graph.inputs[f"mutant[{k}]"]: number >> k & 1 for k in range(SELECTOR_BITS)}
    found = graph.cofactor([*graph.outputs.values()], bits)
    return dict(zip(graph.outputs, found, strict=True))


def decided(graph: Graph, number: int, codes: int) -> Decision:
    same = SameVectors(graph, outputs_of(graph, 0), INPUTS, codes, 1, 20)
    return same.decide(outputs_of(graph, number))


def sum_of(items: Any) -> int:
    total = 0
    for x in items["x"].tolist():
        total = (total + x % 8) % 16
        total -= total == 15
    return total


def test_a_mutant_that_differs_for_totals_that_no_vector_has_is_equal(graph: Graph) -> None:
    assert decided(graph, 1, TRUE).verdict is Verdict.EQUAL


def test_a_mutant_that_differs_for_one_total_is_told_apart_by_a_vector(graph: Graph) -> None:
    found = decided(graph, 2, TRUE)
    assert found.verdict is Verdict.DIFFERENT
    assert found.item is not None
    assert found.item["last"].tolist()[-1] == 1
    assert not found.item["last"][:-1].any()
    assert sum_of(found.item) == 10


def test_codes_that_are_not_valid_do_not_count(graph: Graph) -> None:
    valid = graph.inputs["i_payload[3]"] ^ 1
    assert decided(graph, 3, valid).verdict is Verdict.EQUAL
    found = decided(graph, 3, TRUE)
    assert found.item is not None
    assert (found.item["x"] >> 3).any()


def test_totals_that_differ_and_are_alike_are_equal() -> None:
    errors = verilog_design(ERRORS, "top").graph
    assert decided(errors, 1, TRUE).verdict is Verdict.EQUAL
    for number in (2, 3):  # a kind that shows, and one that the mutant takes for another total
        found = decided(errors, number, TRUE)
        assert found.verdict is Verdict.DIFFERENT
        assert found.item is not None
        assert (found.item["x"] == 9).any()


def test_a_result_that_is_lost_in_a_stall_is_not_equal(graph: Graph) -> None:
    assert decided(graph, 4, TRUE).verdict is Verdict.OPEN


def test_a_total_that_changes_between_items_is_not_equal(graph: Graph) -> None:
    assert decided(graph, 5, TRUE).verdict is Verdict.OPEN


def test_a_mutant_that_takes_nothing_after_a_pause_is_killed_by_that_alone(
    graph: Graph, monkeypatch: pytest.MonkeyPatch
) -> None:
    made = Mutants("dot", {}, [], _Source(INPUTS), graph)  # type: ignore[arg-type]
    items = {"x": np.arange(40) % 16, "last": (np.arange(40) % 3 == 2).astype(int)}
    dead = killed_in_cycles(made, items, 1, 1)
    assert dead[4:7].all()
    assert not dead[:2].any()
    monkeypatch.setattr(cycles._Run, "kill_slower", lambda self: None)
    assert not killed_in_cycles(made, items, 1, 1)[6]


class _Source:
    """Fields of a unit with its selector."""

    def __init__(self, inputs: list[Field]) -> None:
        self.inputs = [*inputs, Field("mutant", 5, SELECTOR_BITS, False, ())]
