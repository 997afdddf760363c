"""The assertions beside a unit's Verilog: units hold them, wrong ones do not."""

import subprocess
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest

from axs6.hw.assertions import assertions
from axs6.hw.core.parameters import BEHAVIOUR
from axs6.hw.verilog import Generated, generate
from axs6.sim.regress import regress
from axs6.sim.tools import simulator_environment

WRONG = """
module {module}(
  input clk, input rst, input {i[valid]}, output {i[ready]}, input [{i_last}:0] {i[payload]},
  output {o[valid]}, input {o[ready]}, output [{o_last}:0] {o[payload]});
  reg full = 0, drop, change, keep;
  reg [{o_last}:0] held = 0;
  reg [1:0] n = 0;
  initial begin
    drop = $test$plusargs("drop");
    change = $test$plusargs("change");
    keep = $test$plusargs("keep");
  end
  assign {i[ready]} = !full || {o[ready]};
  assign {o[valid]} = full && !(drop && n == 3);
  assign {o[payload]} = held ^ (change && n == 3);
  always @(posedge clk) begin
    n <= n + 1;
    if ({i[ready]}) full <= {i[valid]};
    if ({i[ready]}) held <= {i[payload]}[{o_last}:0];
    if (rst && !keep) full <= 0;
  end
endmodule
"""
"""A register of an item, with faults in its handshake."""

BENCH = """
module bench;
  bit clk = 0, rst = 1, impatient;
  bit valid = 0, ready = 0;
  wire taken;
  bit [{i_last}:0] payload = 0;
  {module} dut(
    .clk, .rst, .{i[valid]}(valid), .{i[ready]}(taken), .{i[payload]}(payload),
    .{o[valid]}(), .{o[ready]}(ready), .{o[payload]}());
  always #5 clk = ~clk;
  initial begin
    impatient = $test$plusargs("impatient") != 0;
    for (int n = 0; n < 400; n++) begin
      @(negedge clk);
      rst = n < 2 || n == 200;
      ready = $urandom_range(3) == 0;
      #1;
      if (!valid || taken_before || impatient) begin
        valid = $urandom_range(3) != 0;
        payload = {{8{{$urandom}}}};
      end
    end
    $finish;
  end
  bit taken_before;
  always @(posedge clk) taken_before <= valid && taken;
endmodule
"""


@pytest.fixture(scope="module")
def made() -> Generated:
    return generate("hadamard", block=8, dtype="bf16", stages=1)


@pytest.fixture(scope="module")
def program(made: Generated, tmp_path_factory: pytest.TempPathFactory) -> Path:
    """The wrong unit with the assertions, compiled by Verilator."""
    folder = tmp_path_factory.mktemp("wrong")
    i, o = made.manifest["streams"]
    names: dict[str, Any] = {"i": i, "o": o, "module": made.module}
    names |= {"i_last": i["width"] - 1, "o_last": o["width"] - 1}
    (folder / "bench.sv").write_text(BENCH.format(**names) + WRONG.format(**names))
    (folder / "sva.sv").write_text(assertions(made))
    command = ["verilator", "--binary", "--assert", "--timescale", "1ns/1ps", "-Wno-fatal"]
    subprocess.run(
        [*command, "-CFLAGS", "-O0 -std=c++20", "--top-module", "bench", "bench.sv", "sva.sv"],
        env=simulator_environment("verilator"),
        cwd=folder,
        check=True,
        capture_output=True,
    )
    return folder / "obj_dir" / "Vbench"


@pytest.mark.parametrize(
    ("fault", "assertion"),
    [
        ("drop", "o_valid_stays"),
        ("change", "o_payload_stays"),
        ("keep", "o_valid_after_reset"),
        ("impatient", "i_payload_stays"),
        (None, None),
    ],
)
def test_a_wrong_handshake_is_caught(
    program: Path, fault: str | None, assertion: str | None
) -> None:
    done = subprocess.run(
        [program, f"+{fault}"], cwd=program.parent, check=False, capture_output=True, text=True
    )
    said = done.stdout + done.stderr
    if assertion is None:
        assert done.returncode == 0, said
    else:
        assert done.returncode != 0
        assert f"_sva_bound.{assertion}: {assertion}\n" in said, said


@pytest.mark.parametrize(
    ("unit", "parameters"),
    [
        ("decoder", {"block": 8, "dtype": "bf16", "stages": 3, "view": BEHAVIOUR}),
        *(
            pytest.param(
                "dot", {"block": 8, "stages": 9, "interleave": 2, **given}, marks=pytest.mark.slow
            )
            for given in ({"view": BEHAVIOUR}, {})
        ),
        pytest.param("decoder", {"block": 8, "stages": 0}, marks=pytest.mark.slow),
        pytest.param("stochastic_encoder", {"block": 8}, marks=pytest.mark.slow),
        pytest.param("axis_dot", {"block": 8, "stages": 2}, marks=pytest.mark.slow),
    ],
)
def test_units_hold_the_assertions(unit: str, parameters: dict[str, Any]) -> None:
    made = generate(unit, **parameters)
    checked = replace(made, verilog=made.verilog + assertions(made))
    outcome = regress(unit, parameters, items=300, generated=checked)
    assert outcome.passed, outcome.failures
    # The same run stops at an assertion that does not hold.
    never = checked.verilog.replace("|=> $stable(", "|=> !$stable(")
    assert never != checked.verilog
    faulty = replace(made, verilog=never)
    outcome = regress(unit, parameters, items=10, generated=faulty, test="random_stalls")
    assert "the simulation ended prematurely" in str(outcome.failures)
