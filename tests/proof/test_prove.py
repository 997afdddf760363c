"""`axs6 prove`: netlists of synthesis are proved, and changed ones refuted."""

import json
import re
from pathlib import Path
from typing import Any

import pytest

from axs6.hw.registry import UNITS
from axs6.hw.verilog import generate
from axs6.proof.colours import Property
from axs6.proof.prove import Outcome, UnitProof
from axs6.sim.tools import ToolError
from axs6.synth.netlist import compact_library, mapped_design

SMALL: dict[str, Any] = {"format": "mx4_t4"}


@pytest.fixture(scope="module")
def small() -> UnitProof:
    return UnitProof("block_dot", SMALL)


@pytest.fixture(scope="module")
def cells() -> str:
    made = generate("block_dot", **SMALL)
    return mapped_design(made.verilog, made.module, target="sky130").verilog


def changed(text: str, old: str, new: str, number: int) -> str:
    """The text with the occurrence of a pattern with this number changed."""
    at = [*re.finditer(old, text)][number]
    return text[: at.start()] + new + text[at.end() :]


@pytest.mark.parametrize(
    "options",
    [{"target": "generic", "optimise": "speed"}, {"target": "sky130", "adder_cells": True}],
    ids=str,
)
def test_what_synthesis_gives_is_proved(small: UnitProof, options: dict[str, Any]) -> None:
    assert [claim.outcome for claim in small.mapped(**options)] == [Outcome.PROVED]


def test_a_netlist_of_cells_is_proved(small: UnitProof, cells: str) -> None:
    (claim,) = small.netlist("cells.v", cells, compact_library())
    assert (claim.design, claim.outcome) == ("cells.v", Outcome.PROVED)


@pytest.mark.parametrize("number", [0, 7, -1])
def test_a_netlist_with_one_gate_changed_is_refuted(
    small: UnitProof, cells: str, number: int
) -> None:
    """The item that shows it has been run through the changed netlist."""
    wrong = changed(cells, r"\bsky130_fd_sc_hd__nand2_1\b", "sky130_fd_sc_hd__nor2_1", number)
    (claim,) = small.netlist("wrong.v", wrong, compact_library())
    assert claim.outcome is Outcome.REFUTED
    assert claim.item is not None
    assert claim.item["a.codes"].shape == (1, 4)
    assert json.loads(json.dumps(claim.to_dict()))["item"]["a.codes"]


def test_registers_are_proved_and_one_that_is_not_held_is_seen_with_stalls() -> None:
    proof = UnitProof("block_dot", {**SMALL, "stages": 2})
    claims = [*proof.rtl(), *proof.mapped(target="sky130", optimise="area")]
    assert len(claims) == 2 * (1 + len(Property))
    assert {claim.outcome for claim in claims} == {Outcome.PROVED}
    text = generate("block_dot", **SMALL, stages=2).verilog
    held = r"= o__payload;\n    if \(ready1\)"
    other = changed(text, held, "= o__payload;\n    if (1)", 0)
    found = {claim.text: claim for claim in proof.netlist("wrong.v", other)}
    wrong = {text for text, claim in found.items() if claim.outcome is Outcome.REFUTED}
    assert Property.HELD in wrong
    assert "in simulation with stalls of seed 0: " in found[Property.HELD].reason


ALONE = [
    name
    for name, unit in UNITS.items()
    if not unit.remembers and "last" not in unit.corners(unit.parameters({}))
]
"""Units whose outputs depend on one item each."""


@pytest.mark.slow
@pytest.mark.parametrize("unit", ALONE)
@pytest.mark.parametrize("stages", [1, 3])
def test_every_unit_with_registers_is_a_queue(unit: str, stages: int) -> None:
    claims = [*UnitProof(unit, {"block": 8, "stages": stages}).rtl()]
    assert {claim.text: claim.outcome for claim in claims} == {
        claim.text: Outcome.PROVED for claim in claims
    }
    assert len(claims) == 1 + len(Property)


def test_control_that_no_queue_has_is_refuted() -> None:
    """A `valid` that a bit of the payload hides: some items never come out."""
    proof = UnitProof("block_dot", {**SMALL, "stages": 2})
    text = generate("block_dot", **SMALL, stages=2).verilog
    wrong = changed(text, r"= i_valid;", "= i_valid & i_payload[3];", 0)
    (claim,) = proof.netlist("wrong.v", wrong)
    assert claim.outcome is Outcome.REFUTED
    assert "valid and ready depend on 1 bits of the payload" in claim.reason


INSIDE = """
module around(input clk, rst, i_valid, o_ready, input [43:0] i_payload,
              output i_ready, o_valid, output [19:0] o_payload);
  wire valid, ready;
  wire [19:0] payload;
  wire take = 1;
  axs6_block_dot_mx4_t4 inside (.clk(clk), .rst(rst), .i_valid(i_valid & take),
    .i_ready(ready), .i_payload(i_payload), .o_valid(valid), .o_ready(o_ready),
    .o_payload(payload));
  assign i_ready = ready & take;
  assign o_valid = valid;
  assign o_payload = payload;
endmodule
"""
"""Another module around the unit."""


@pytest.mark.parametrize(
    ("old", "new", "said"),
    [
        ("wire take = 1;", "reg take; "
         "always @(posedge clk) take <= rst | take & (o_ready | ~valid);",
         "while the receiver is ready, an item is taken in every cycle"),
        ("= payload;", "= s ? ~payload : payload; reg s; always @(posedge clk) s <= s;", "open"),
        ("= payload;", "= s ? ~payload : payload; reg s; always @(posedge clk) if (rst) s <= s;"
         " else if (~o_ready) s <= 0;", "a register that takes a constant may start with another"),
    ],
)  # fmt: skip
def test_registers_around_the_unit_are_found(old: str, new: str, said: str) -> None:
    """A unit that takes nothing more after a stall, and registers that are never set."""
    proof = UnitProof("block_dot", {**SMALL, "stages": 2})
    text = generate("block_dot", **SMALL, stages=2).verilog + INSIDE
    assert text.count(old) == 1
    claims = [*proof.netlist("around.v", text.replace(old, new))]
    assert any(
        said in f"{claim.outcome} {claim.text} {claim.reason}"
        for claim in claims
        if claim.outcome is not Outcome.PROVED
    )


@pytest.mark.parametrize(
    ("old", "new", "said"),
    [
        ("= payload;", "= s ? ~payload : payload; wire s;", "around.v must drive all nets"),
        ("= payload;", "= i_payload[3] ? payload : 20'bx;", "around.v must drive all nets"),
        ("= valid;", "= late; reg late; always @(negedge clk) late <= valid;", "the rising edge"),
        ("= valid;", "= valid; assign o_valid = i_valid & i_payload[0];", "one driver for each"),
        ("rst,", "rst, scan,", "must have the ports of axs6_block_dot_mx4_t4; not scan[0]"),
    ],
)
def test_netlists_that_tools_read_in_other_ways_are_refused(old: str, new: str, said: str) -> None:
    """Nets without drivers, other clocks, and ports that the unit does not have."""
    proof = UnitProof("block_dot", {**SMALL, "stages": 2})
    text = generate("block_dot", **SMALL, stages=2).verilog + INSIDE.replace(old, new, 1)
    with pytest.raises((ValueError, ToolError), match=re.escape(said)):
        list(proof.netlist("around.v", text))


def test_the_command_says_what_is_proved(main: Any, cells: str, tmp_path: Path) -> None:
    (tmp_path / "cells.v").write_text(cells)
    netlist = ("--netlist", str(tmp_path / "cells.v"))
    options = ("--format", "mx4_t4", *netlist, "--target", "sky130")
    done = main("prove", "block_dot", *options, "--json", "proof.json")
    assert done.returncode == 0, done.stderr
    assert "proved   RTL: the sum is that of all products (" in done.stdout
    found = json.loads(Path("proof.json").read_text())
    assert found["unit"] == "block_dot"
    assert {claim["outcome"] for claim in found["claims"]} == {"proved"}
    assert found["claims"][-1]["design"] == "cells.v"


def test_the_command_proves_arithmetic_inside_of_units(main: Any) -> None:
    done = main("prove", "fp32_convert", "--format", "nvfp4", "--json", "proof.json")
    assert done.returncode == 0, done.stderr
    assert "proved   RTL: every sum and exponent gives the nearest FP32 number" in done.stdout
    assert len(json.loads(Path("proof.json").read_text())["claims"]) == 2


def test_the_command_shows_what_refutes(main: Any, cells: str, tmp_path: Path) -> None:
    wrong = changed(cells, r"\bsky130_fd_sc_hd__nand2_1\b", "sky130_fd_sc_hd__nor2_1", 3)
    (tmp_path / "cells.v").write_text(wrong)
    netlist = ("--netlist", str(tmp_path / "cells.v"))
    options = ("--format", "mx4_t4", *netlist, "--target", "sky130")
    done = main("prove", "block_dot", *options)
    assert done.returncode == 1
    assert "refuted  cells.v: outputs are those of the RTL without registers (" in done.stdout
    assert "shown by a.exponent = " in done.stdout


@pytest.mark.parametrize(
    ("arguments", "said"),
    [
        (("axis_dot", "--interleave", "2"), "registers needs interleave 1, not 2"),
        (("matmul",), "needs outputs of one item each, and those of matmul depend on several"),
        (("dot", "--stages", "1", "--interleave", "2"), "registers needs interleave 1, not 2"),
        (("dot", "--interleave", "2"), "a proof of a dot product needs interleave 1"),
        (("fp32_add", "--target", "sky130"), "fp32_add is a part of units, and netlists are"),
        (("fp32_divide", "--format", "mxfp4"), "mxfp4 has no denominator, so nothing is divided"),
        (("fp32_add", "--stages", "1"), "fp32_add has no parameter stages; it has none"),
        (("hadamard",), "hadamard has no specification to prove; these have: block_dot, decoder"),
        (("block_dot", "--format", "int3_u12_t4_float32_t0"), "all scales of groups of one size"),
        (("block_dot", "--netlist", "none.v"), "none.v"),
        (("block_dot", "--target", "ice40"), "target must be generic or sky130 here, not 'ice40'"),
    ],
)
def test_bad_arguments_are_one_line(main: Any, arguments: tuple[str, ...], said: str) -> None:
    done = main("prove", *arguments)
    assert done.returncode == 2
    assert said in done.stderr
    assert done.stderr.strip().splitlines()[-1].startswith("axs6: ")


def test_a_netlist_with_other_ports_is_refused(main: Any, tmp_path: Path) -> None:
    path = tmp_path / "other.v"
    path.write_text(
        "module other(input i_valid, output o_valid);\nassign o_valid = i_valid;\nendmodule\n"
    )
    done = main("prove", "block_dot", "--format", "mx4_t4", "--netlist", str(path))
    assert done.returncode == 2
    assert "other.v must have the ports of axs6_block_dot_mx4_t4; no i_payload[0]" in done.stderr
