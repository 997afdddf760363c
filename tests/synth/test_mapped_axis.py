"""Synthesised units on AXI4-Stream equal the golden model in the bench of their RTL."""

import json
import shutil
from collections.abc import Callable
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest

from axs6.hw.registry import BUS_UNITS
from axs6.hw.verilog import Generated, generate
from axs6.sim.regress import Regression, regress
from axs6.synth.mapped import mapped_netlist

Form = Callable[[str], dict[str, Any]]
TARGETS = ("generic", "sky130", "ice40", "ecp5", "xc7")
SIMULATOR = "icarus" if shutil.which("iverilog") else "verilator"
"""Icarus builds in no time."""


AsVerilog = Callable[[str, Generated], Generated]


def mapped(made: Generated, target: str) -> str:
    return mapped_netlist(made.verilog, made.module, target=target)


@pytest.fixture
def as_verilog(pyosys: Any, tmp_path: Path) -> AsVerilog:
    """Gives a unit whose Verilog is a netlist, gates as expressions."""

    def written(netlist: str, made: Generated) -> Generated:
        source, file = tmp_path / "netlist.json", tmp_path / "netlist.v"
        source.write_text(netlist)
        pyosys(
            f"read_json {source}", f"rename top {made.module}", f"write_verilog {file}"
        ).succeeded()
        return replace(made, verilog=file.read_text())

    return written


def regressed(made: Generated, test: str | None = None) -> Regression:
    given = {"simulator": SIMULATOR, "items": 40, "seed": 1, "test": test}
    return regress(made.manifest["unit"], made.manifest["parameters"], generated=made, **given)


@pytest.mark.slow
@pytest.mark.parametrize("unit", BUS_UNITS)
@pytest.mark.parametrize("target", TARGETS)
def test_mapped_units(target: str, unit: str, as_verilog: AsVerilog, small_form: Form) -> None:
    made = generate(unit, **small_form(unit))
    outcome = regressed(as_verilog(mapped(made, target), made))
    assert outcome.failures == []
    assert outcome.tests


@pytest.mark.slow
def test_a_wrong_gate_is_caught(as_verilog: AsVerilog, small_form: Form) -> None:
    made = generate("axis_decoder", **small_form("axis_decoder"))
    netlist = json.loads(mapped(made, "generic"))
    cells = netlist["modules"]["top"]["cells"].values()
    gates = [cell for cell in cells if cell["type"] == "$_AND_"]
    gates[len(gates) // 2]["type"] = "$_OR_"
    outcome = regressed(as_verilog(json.dumps(netlist), made), "full_rate")
    assert not outcome.passed
    assert any("the golden model gives" in text for _, text in outcome.failures)
