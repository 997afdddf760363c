"""What a user's own design takes from the project: names, ports, instances, packages, stimulus."""

import re
import shutil
import subprocess
import sys
from collections.abc import Callable
from dataclasses import replace
from pathlib import Path

import numpy as np
import pytest

import axs6
from axs6.commands.output import write_generated
from axs6.hw.integration import template
from axs6.hw.registry import find
from axs6.hw.systemverilog import package
from axs6.hw.verilog import Generated, fields_of, generate
from axs6.sim.tools import simulator_environment
from axs6.sim.words import block_items, readmemh

WITH_ICARUS = pytest.mark.skipif(shutil.which("iverilog") is None, reason="iverilog is not on PATH")
SMALL = {"block": 8, "stages": 1}


def lint(top: str, *files: Path) -> subprocess.CompletedProcess[str]:
    """What Verilator says of a design."""
    return subprocess.run(
        ["verilator", "--lint-only", "-Wno-fatal", "--top-module", top, *files],
        env=simulator_environment("verilator"),
        cwd=files[0].parent,
        check=False,
        capture_output=True,
        text=True,
    )


def design_of_two(folder: Path, *pair: Generated) -> list[Path]:
    """The files of a design that has both units, each from its template."""
    folder.mkdir()
    for made in pair:
        write_generated(folder, made)
    includes = "".join(f'`include "{made.module}.vh"\n' for made in pair)
    (folder / "top.v").write_text(f"module top(input clk, input rst);\n{includes}endmodule\n")
    return [folder / "top.v", *(folder / f"{made.module}.v" for made in pair)]


@pytest.mark.parametrize("period", [pytest.param(None, marks=pytest.mark.slow), 2500.0])
def test_fusesoc_reads_the_core_file_and_runs_verilator(
    tmp_path: Path, period: float | None
) -> None:
    write_generated(tmp_path / "rtl", generate("lfsr", name="words", block=8), period)
    core = "axs6:generated:words"
    command = [sys.executable, "-m", "fusesoc.main", "--cores-root", "rtl"]
    environment = simulator_environment("verilator") | {"XDG_CONFIG_HOME": str(tmp_path)}

    def fusesoc(*arguments: str) -> subprocess.CompletedProcess[str]:
        return subprocess.run(
            [*command, *arguments],
            env=environment,
            cwd=tmp_path,
            check=False,
            capture_output=True,
            text=True,
        )

    shown = fusesoc("core", "show", core)
    assert shown.returncode == 0, shown.stderr
    assert "lint" in shown.stdout
    done = fusesoc("run", "--target", "lint", core)
    assert done.returncode == 0, done.stderr
    (tmp_path / "rtl/words.v").write_text("module words(input clk)")
    assert fusesoc("run", "--target", "lint", core).returncode != 0


def test_two_configurations_live_in_one_design(tmp_path: Path, pyosys: Callable[..., None]) -> None:
    pair = [generate("dot", name=f"dot{block}", block=block) for block in (8, 16)]
    modules = [set(re.findall(r"^module (\S+?) ?\(", made.verilog, re.M)) for made in pair]
    assert not modules[0] & modules[1]
    for made, names in zip(pair, modules, strict=True):
        assert all(re.match(rf"{made.module}(_|$)", name) for name in names)
    files = design_of_two(tmp_path / "two", *pair)
    done = lint("top", *files)
    assert (done.returncode, done.stderr) == (0, "")
    read = [f"read_verilog -I{tmp_path / 'two'} {file}" for file in files]
    assert pyosys(*read, "hierarchy -check -top top").returncode == 0

    renamed = replace(pair[1], verilog=pair[1].verilog.replace("dot16", "dot8"))
    second = tmp_path / "same"
    files = design_of_two(second, pair[0], replace(renamed, module="other"))
    assert "Duplicate declaration" in lint("top", *files).stderr


@pytest.mark.parametrize("unit", ["dot", "axis_dot"])
def test_the_package_has_the_numbers_of_the_manifest(unit: str, tmp_path: Path) -> None:
    made = generate(unit, block=8)
    numbers = {"latency": made.manifest["latency"], "interval": made.manifest["interval"]}
    for stream in made.manifest["streams"]:
        numbers[f"{stream['name']}_width"] = stream["width"]
        for field in fields_of(stream):
            name = f"{stream['name']}_{field.name}".replace(".", "_")
            numbers |= {f"{name}_offset": field.offset, f"{name}_width": field.width}
            if field.shape:
                numbers[f"{name}_count"] = field.count
    # The fault is one of the numbers.
    for fault in ({}, {"latency": made.manifest["latency"] + 1}):
        checks = "".join(
            f'  if ({made.module}_pkg::{name.upper()} != {value}) $error("{name}");\n'
            for name, value in {**numbers, **fault}.items()
        )
        (tmp_path / "pkg.sv").write_text(package(made))
        (tmp_path / "top.sv").write_text(f"module top;\n{checks}endmodule\n")
        done = lint("top", tmp_path / "pkg.sv", tmp_path / "top.sv")
        assert re.findall(r"USERERROR: .*: (.*)", done.stderr) == list(fault), done.stderr
        assert "%Error" not in done.stderr


def test_ports_of_fields_are_named_and_instantiated() -> None:
    made = generate("dot", ports="fields", block=8)
    assert "i_a_codes" in made.ports
    assert "i_payload" not in made.ports
    assert "wire [47:0] axs6_dot_i_a_codes;" in template(made)
    assert ".i_last(axs6_dot_i_last)" in template(made)


@pytest.mark.parametrize(
    ("given", "message"),
    [
        ({"name": "8dot"}, "name must be letters, digits and _, no digit first, not '8dot'"),
        ({"ports": "wide"}, "ports must be one of packed, fields, keep, not 'wide'"),
    ],
)
def test_wrong_names_and_ports_are_refused(given: dict[str, str], message: str) -> None:
    with pytest.raises(ValueError, match=message):
        generate("dot", **given)
    with pytest.raises(ValueError, match="axis_dot is on AXI4-Stream: its ports cannot be fields"):
        generate("axis_dot", ports="fields")
    with pytest.raises(ValueError, match=r"^dot is not on AXI4-Stream: its ports cannot be keep"):
        generate("dot", ports="keep")


TESTBENCH = """
module testbench;
  reg [IN - 1:0] given [0:COUNT - 1];
  reg [OUT - 1:0] expected [0:COUNT - 1];
  reg [IN - 1:0] payload;
  wire [OUT - 1:0] sum;
  integer n;
  axs6_block_dot unit(.clk(1'b0), .rst(1'b0), .i_valid(1'b1), .i_payload(payload),
                      .o_ready(1'b1), .o_payload(sum));
  initial begin
    $readmemh("given.hex", given);
    $readmemh("expected.hex", expected);
    for (n = 0; n < COUNT; n = n + 1) begin
      payload = given[n];
      #1 if (sum !== expected[n]) $display("%0d differs", n);
    end
    $display("%0d compared", n);
  end
endmodule
"""


@WITH_ICARUS
@pytest.mark.parametrize("fault", [0, 1])
def test_a_verilog_testbench_reads_blocks(fault: int, tmp_path: Path) -> None:
    rng = np.random.default_rng(3)
    a, b = (axs6.encode(rng.standard_normal((5, 16)), block=8) for _ in range(2))
    items = {**block_items(a, "a."), **block_items(b, "b.")}
    made = generate("block_dot", block=8, stages=0)
    expected = dict(find("block_dot").golden(items, made.manifest["parameters"]))
    expected["sum"] = expected["sum"] + fault * (np.arange(10) == 7)
    (tmp_path / "given.hex").write_text(readmemh(items, made.inputs))
    (tmp_path / "expected.hex").write_text(readmemh(expected, made.outputs))
    (tmp_path / "unit.v").write_text(made.verilog)
    text = TESTBENCH.replace("COUNT", "10").replace("IN -", "112 -").replace("OUT -", "25 -")
    (tmp_path / "testbench.v").write_text(text)
    command = ["iverilog", "-g2005", "-o", "run", "unit.v", "testbench.v"]
    subprocess.run(command, cwd=tmp_path, check=True)
    done = subprocess.run(["vvp", "run"], cwd=tmp_path, check=True, capture_output=True, text=True)
    assert done.stdout.splitlines() == ["7 differs"] * fault + ["10 compared"]


def test_blocks_that_are_not_dense_are_refused() -> None:
    blocks = axs6.encode(np.zeros((1, 8)), block=8, mode="sparse")
    with pytest.raises(ValueError, match="blocks must be dense here"):
        block_items(blocks)
