"""Synthesised units on AXI4-Stream equal the golden model in the bench of their RTL."""

import json
import subprocess
import sys
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest

from axs6.hw.registry import BUS_UNITS
from axs6.hw.verilog import Generated, generate
from axs6.sim.regress import Regression, regress
from axs6.sim.tools import ToolError, check_simulator
from axs6.synth.mapped import mapped_netlist

SMALL: dict[str, dict[str, Any]] = {
    "axis_encoder": {"block": 8, "format": "bf16", "stages": 2},
    "axis_decoder": {"block": 8, "stages": 1, "align": 32},
    "axis_dot": {"block": 8, "stages": 1, "align": 32, "interleave": 2},
}
TARGETS = ("generic", "sky130", "ice40", "ecp5", "xc7")
QUICK = ("ice40", "axis_decoder")
WRITE = """
import sys
from pyosys import libyosys
design = libyosys.Design()
for command in sys.argv[1:]:
    libyosys.run_pass(command, design)
"""


def simulator() -> str:
    """Icarus, which builds in no time, where it is there."""
    try:
        check_simulator("icarus")
    except ToolError:
        return "verilator"
    return "icarus"


def as_verilog(netlist: str, made: Generated, folder: Path) -> Generated:
    """A unit whose Verilog is a netlist, gates as expressions."""
    read, written = folder / "netlist.json", folder / "netlist.v"
    read.write_text(netlist)
    commands = (f"read_json {read}", f"rename top {made.module}", f"write_verilog {written}")
    subprocess.run(
        [sys.executable, "-c", WRITE, *commands], check=True, capture_output=True, timeout=300
    )
    return replace(made, verilog=written.read_text())


def regressed(unit: str, netlist: str, folder: Path) -> Regression:
    made = as_verilog(netlist, generate(unit, **SMALL[unit]), folder)
    return regress(unit, SMALL[unit], simulator=simulator(), items=40, seed=1, generated=made)


def mapped(unit: str, target: str) -> str:
    made = generate(unit, **SMALL[unit])
    return mapped_netlist(made.verilog, made.module, target=target)


@pytest.mark.parametrize(
    ("target", "unit"),
    [
        pytest.param(target, unit, marks=() if (target, unit) == QUICK else pytest.mark.slow)
        for target in TARGETS
        for unit in BUS_UNITS
    ],
)
def test_mapped_units(target: str, unit: str, tmp_path: Path) -> None:
    outcome = regressed(unit, mapped(unit, target), tmp_path)
    assert outcome.failures == []
    assert outcome.tests


def test_a_wrong_gate_is_caught(tmp_path: Path) -> None:
    netlist = json.loads(mapped("axis_decoder", "generic"))
    cells = netlist["modules"]["top"]["cells"].values()
    gates = [cell for cell in cells if cell["type"] == "$_AND_"]
    gates[len(gates) // 2]["type"] = "$_OR_"
    outcome = regressed("axis_decoder", json.dumps(netlist), tmp_path)
    assert not outcome.passed
    assert any("the golden model gives" in text for _, text in outcome.failures)
