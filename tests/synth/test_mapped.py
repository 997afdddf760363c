"""Synthesised units, simulated gate by gate, equal the golden model on every bit."""

import json
from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np
import pytest

from axs6.hw.registry import UNITS, find
from axs6.hw.verilog import generate
from axs6.sim.batch.engine import GateModel, Stall
from axs6.synth import flow, targets
from axs6.synth.errors import SynthesisError
from axs6.synth.mapped import mapped_netlist

Form = Callable[[str], dict[str, Any]]

FLOWS: dict[str, dict[str, Any]] = {
    "generic": {},
    "generic for speed": {"optimise": "speed"},
    "sky130": {"target": "sky130"},
    "sky130 for speed": {"target": "sky130", "optimise": "speed"},
    "adder cells": {"target": "sky130", "adder_cells": True},
    "ice40": {"target": "ice40"},
    "ecp5": {"target": "ecp5"},
    "xc7": {"target": "xc7"},
}
FEW_BITS = {"block": 8, "format": "mx4", "stages": 3}
"""A block dot product of small multipliers."""


def differences(netlist: str, unit: str, given: dict[str, Any], stall: Stall | None = None) -> int:
    parameters = UNITS[unit].parameters(given)
    model = GateModel(netlist, unit, **parameters)
    rng = np.random.default_rng(4)
    found = 0
    for items in (
        find(unit).corners(parameters),
        find(unit).random(parameters, rng, 10_000),
    ):
        outputs = model.run(items, stall).outputs
        for name, values in UNITS[unit].golden(items, parameters).items():
            found += int((outputs[name] != values).sum())
    return found


def check(mapping: str, unit: str, given: dict[str, Any]) -> None:
    made = generate(unit, **given)
    netlist = mapped_netlist(made.verilog, made.module, **FLOWS[mapping])
    assert differences(netlist, unit, given) == 0
    if given["stages"]:
        assert differences(netlist, unit, given, Stall(0.3, 0.3, seed=1)) == 0


SLOW = ("generic", "sky130 for speed", "xc7")
"""Flows of targets, and of a goal, that tests of areas and of clocks have in every run."""

ELSEWHERE = ("generic for speed", "sky130")
"""Flows whose parts every run has in others: each goal, each target."""


@pytest.mark.parametrize(
    "mapping",
    [
        pytest.param(mapping, marks=[pytest.mark.slow] * (mapping in SLOW))
        for mapping in FLOWS
        if mapping not in ELSEWHERE
    ],
)
def test_mapped_dot_products(mapping: str) -> None:
    check(mapping, "block_dot", FEW_BITS)


@pytest.mark.parametrize(
    ("unit", "mapping"),
    [pytest.param(unit, "xc7", marks=pytest.mark.slow) for unit in ("decoder", "expander")],
)
def test_mapped_units(unit: str, mapping: str, small_form: Form) -> None:
    check(mapping, unit, small_form(unit))


@pytest.mark.slow
@pytest.mark.parametrize("unit", UNITS)
@pytest.mark.parametrize("mapping", FLOWS)
def test_every_mapped_unit(mapping: str, unit: str, small_form: Form) -> None:
    check(mapping, unit, small_form(unit))


@pytest.mark.slow
@pytest.mark.parametrize("unit", UNITS)
@pytest.mark.parametrize("mapping", FLOWS)
def test_every_mapped_unit_without_registers(mapping: str, unit: str, small_form: Form) -> None:
    check(mapping, unit, {**small_form(unit), "stages": 0})


def test_gates_of_a_library(tiny: Path) -> None:
    made = generate("block_dot", **FEW_BITS)
    netlist = mapped_netlist(made.verilog, made.module, liberty=tiny)
    assert differences(netlist, "block_dot", FEW_BITS) == 0


def test_a_wrong_gate_is_caught() -> None:
    made = generate("block_dot", **FEW_BITS)
    netlist: dict[str, Any] = json.loads(mapped_netlist(made.verilog, made.module))
    cells = netlist["modules"]["top"]["cells"].values()
    gates = [cell for cell in cells if cell["type"] == "$_AND_"]
    gates[len(gates) // 2]["type"] = "$_OR_"
    assert differences(json.dumps(netlist), "block_dot", FEW_BITS) > 0


@pytest.mark.parametrize(
    ("target", "right", "wrong"),
    [
        ("ice40", "(I0 & I1) | (CI & (I0 | I1))", "(I0 & I1) | (CI & I0)"),
        pytest.param("ecp5", "C0 ? ALUT : BLUT", "C0 ? BLUT : ALUT", marks=pytest.mark.slow),
        pytest.param(
            "xc7", "S[k] ? carry[k] : DI[k]", "S[k] ? DI[k] : carry[k]", marks=pytest.mark.slow
        ),
    ],
)
def test_a_wrong_model_is_caught(
    target: str, right: str, wrong: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    model = targets.models(target)
    assert right in model
    monkeypatch.setattr(flow, "models", lambda name: model.replace(right, wrong))
    made = generate("block_dot", **FEW_BITS)
    netlist = mapped_netlist(made.verilog, made.module, target=target)
    assert differences(netlist, "block_dot", FEW_BITS) > 0


def test_a_cell_without_a_model() -> None:
    source = "module t(input [15:0] a, b, output [31:0] y); assign y = a * b; endmodule"
    with pytest.raises(SynthesisError, match="target ecp5 has no model of the cell MULT18X18D"):
        mapped_netlist(source, "t", target="ecp5")
