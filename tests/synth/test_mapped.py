"""Synthesised units, simulated gate by gate, equal the golden model on every bit."""

import json
from collections import Counter
from pathlib import Path
from typing import Any

import numpy as np
import pytest

from axs6.hw.registry import UNITS
from axs6.hw.verilog import generate
from axs6.sim.batch.engine import GateModel, Stall
from axs6.sim.stimulus import STIMULI
from axs6.synth.errors import SynthesisError
from axs6.synth.mapped import mapped_netlist

SMALL = {
    "encoder": {"block": 8, "stages": 2},
    "decoder": {"block": 8, "stages": 1},
    "block_dot": {"block": 8, "stages": 3},
    "dot": {"block": 8, "stages": 4, "interleave": 2},
    "matmul": {"block": 8, "rows": 1, "columns": 2, "interleave": 3},
}


def test_every_unit_has_a_small_form() -> None:
    assert set(SMALL) == set(UNITS)


def differences(netlist: str, unit: str, stall: Stall | None = None) -> int:
    parameters = UNITS[unit].parameters(SMALL[unit])
    model = GateModel(netlist, unit, **parameters)
    rng = np.random.default_rng(4)
    found = 0
    for items in (
        STIMULI[unit].corners(parameters),
        STIMULI[unit].random(parameters, rng, 10_000),
    ):
        outputs = model.run(items, stall).outputs
        for name, values in UNITS[unit].golden(items, parameters).items():
            found += int((outputs[name] != values).sum())
    return found


@pytest.mark.parametrize("unit", UNITS)
def test_generic_gates(unit: str) -> None:
    made = generate(unit, **SMALL[unit])
    netlist = mapped_netlist(made.verilog, made.module)
    assert differences(netlist, unit) == 0
    assert differences(netlist, unit, Stall(0.3, 0.3, seed=1)) == 0


def test_gates_of_a_library(tiny: Path) -> None:
    made = generate("block_dot", **SMALL["block_dot"])
    assert differences(mapped_netlist(made.verilog, made.module, liberty=tiny), "block_dot") == 0


def test_a_wrong_gate_is_caught() -> None:
    made = generate("block_dot", **SMALL["block_dot"])
    netlist: dict[str, Any] = json.loads(mapped_netlist(made.verilog, made.module))
    cells = netlist["modules"]["top"]["cells"].values()
    gate = next(cell for cell in cells if cell["type"] == "$_AND_")
    gate["type"] = "$_OR_"
    assert differences(json.dumps(netlist), "block_dot") > 0


def test_an_fpga_is_refused() -> None:
    made = generate("block_dot", **SMALL["block_dot"])
    with pytest.raises(SynthesisError, match="must be of gates to be simulated, not of ecp5"):
        mapped_netlist(made.verilog, made.module, target="ecp5")


def test_no_gate_drives_hundreds() -> None:
    source = """
    module wide(input [7:0] a, input [199:0] b, output [199:0] y);
      assign y = {200{&a}} ^ b;
    endmodule
    """
    module = json.loads(mapped_netlist(source, "wide", target="sky130"))["mapped"]
    cells = module["cells"].values()
    pins = Counter(bit for cell in cells for bits in cell["connections"].values() for bit in bits)
    assert max(pins.values()) <= 33  # the driver and 32 readers
