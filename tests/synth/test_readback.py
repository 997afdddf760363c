"""Flip-flops and latency, read back from mapped netlists, are those that units promise."""

import json
import re
from collections.abc import Callable
from dataclasses import dataclass
from typing import Any

import numpy as np
import pytest

from axs6.hw.registry import UNITS, find, find_with_streams
from axs6.hw.verilog import generate
from axs6.sim.batch.engine import GateModel
from axs6.sim.tools import ToolError
from axs6.synth.mapped import mapped_netlist

Form = Callable[[str], dict[str, Any]]

FEW = [("generic", "decoder")]
REST = [
    (target, unit)
    for target in ("generic", "sky130", "ice40", "ecp5", "xc7")
    for unit in UNITS
    if (target, unit) not in FEW
]


FEW_BITS: dict[str, Any] = {"block": 8, "format": "mx4"}
"""A block dot product of small multipliers."""

_FLIP_FLOP = re.compile(r"\$_(S?DFF|ALDFF)\w*_")
_CYCLES = 1000
"""Cycles that are recorded, which is more than the latency of any unit."""


@dataclass(frozen=True)
class Pipeline:
    """Flip-flops of a unit, and cycles from taking an item to offering its result."""

    flip_flops: int
    latency: int


def read_back(unit: str, target: str = "generic", **parameters: Any) -> Pipeline:
    """Synthesise a unit, count the flip-flops of the netlist and simulate it for its latency."""
    made = generate(unit, **parameters)
    netlist = mapped_netlist(made.verilog, made.module, target=target)
    return measured(netlist, unit, **parameters)


def measured(netlist: str, unit: str, **parameters: Any) -> Pipeline:
    """Count the flip-flops of a mapped netlist and simulate it for its latency."""
    cells = json.loads(netlist)["modules"]["top"]["cells"].values()
    flip_flops = sum(bool(_FLIP_FLOP.fullmatch(cell["type"])) for cell in cells)
    settings = find_with_streams(unit).parameters(parameters)
    turns = settings.get("interleave", 1)
    items = {name: array[:turns] for name, array in find(unit).corners(settings).items()}
    if "last" in items:
        items["last"] = np.ones_like(items["last"])
    trace = GateModel(netlist, unit, **settings).run(items, trace=_CYCLES).trace
    taken, given = (
        trace.handshake[f"{side}_valid"] & trace.handshake[f"{side}_ready"] for side in "io"
    )
    copy = int(given.any(axis=0).argmax())
    latency = int(given[:, copy].argmax() - taken[:, copy].argmax())
    return Pipeline(flip_flops, latency)


def check(target: str, unit: str, parameters: dict[str, Any]) -> None:
    found = read_back(unit, target=target, **parameters)
    component: Any = find(unit).build(**parameters)
    assert found.latency == component.latency
    promised = getattr(component, "flip_flops", None)
    if promised is not None:
        spared = promised - found.flip_flops
        assert 0 <= spared <= promised // 50, "synthesis may only merge equal registers"


@pytest.mark.parametrize(("target", "unit"), FEW)
def test_promises_are_kept(target: str, unit: str, small_form: Form) -> None:
    check(target, unit, small_form(unit))


@pytest.mark.parametrize(
    "unit",
    [
        pytest.param(name, marks=[pytest.mark.slow] * (name != "block_dot"))
        for name in UNITS
        if "view" in UNITS[name].choices({}) and name != "feedback_encoder"
    ],
)
def test_promises_are_kept_in_words(unit: str, small_form: Form) -> None:
    check("generic", unit, {**small_form(unit), "view": "behaviour"})


@pytest.mark.slow
@pytest.mark.parametrize(("target", "unit"), REST)
def test_promises_are_kept_everywhere(target: str, unit: str, small_form: Form) -> None:
    check(target, unit, small_form(unit))


def test_a_missing_rank_is_found() -> None:
    """A unit whose pipeline has two ranks where three are promised."""
    made = generate("block_dot", **FEW_BITS, stages=2)
    netlist = mapped_netlist(made.verilog, made.module)
    wrong = measured(netlist, "block_dot", **FEW_BITS, stages=3)
    promised: Any = find("block_dot").build(**FEW_BITS, stages=3)
    assert (wrong.latency, promised.latency) == (2, 3)
    right = read_back("block_dot", **FEW_BITS, stages=3)
    assert right.latency == 3
    assert wrong.flip_flops != right.flip_flops


def test_no_registers_without_stages() -> None:
    found = read_back("block_dot", **FEW_BITS, stages=0)
    assert (found.flip_flops, found.latency) == (0, 0)


def test_a_unit_that_never_answers() -> None:
    made = generate("block_dot", **FEW_BITS, stages=0)
    mute = made.verilog.replace("assign o_valid = i_valid;", "assign o_valid = 1'b0;")
    assert mute != made.verilog
    with pytest.raises(ToolError, match="nothing moved"):
        measured(mapped_netlist(mute, made.module), "block_dot", **FEW_BITS, stages=0)
