"""SAIF of units before synthesis: what their Verilog does in another simulator."""

import shutil
from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from icarus import values_of
from switching_counts import counted, differing

from axs6.hw.registry import UNITS
from axs6.hw.verilog import generate
from axs6.sim.batch.switching import PERIOD, switching_file
from axs6.sim.words import readmemh

Cli = Callable[..., Any]

WITH_ICARUS = pytest.mark.skipif(shutil.which("iverilog") is None, reason="iverilog is not on PATH")
ITEMS = 30
DRAWN = {"block": 8, "rounding": "stochastic", "random_bits": 4}


@WITH_ICARUS
@pytest.mark.parametrize(
    ("unit", "parameters"),
    [
        pytest.param("dot", {"block": 8, "stages": 2, "interleave": 2}, marks=pytest.mark.slow),
        ("encoder", {**DRAWN, "dtype": "bf16", "stages": 3}),
        pytest.param("encoder", {**DRAWN, "stages": 1}, marks=pytest.mark.slow),
        pytest.param("encoder", {"block": 8, "dtype": "bf16", "stages": 3}, marks=pytest.mark.slow),
    ],
)
def test_counts_are_those_of_the_verilog_in_icarus(
    unit: str, parameters: dict[str, Any], tmp_path: Path
) -> None:
    settings = UNITS[unit].parameters(parameters)
    made = generate(unit, **settings)
    items = UNITS[unit].random(settings, np.random.default_rng(0), ITEMS)
    found = counted(switching_file(UNITS[unit].build(**settings), made.module, items))
    words = readmemh(items, made.inputs)
    filled = made.manifest["latency"]
    seen = values_of(tmp_path, made, made.verilog, words)[filled:]
    assert differing(found, seen, PERIOD) == []
    cycles = ITEMS - 1 - filled
    assert found["clk"] == (2 * cycles, cycles * PERIOD // 2)
    toggling = [name for name, (toggles, _) in found.items() if toggles]
    assert len(toggling) > 300
    assert any(name.count(".") > 1 for name in toggling)

    if unit == "encoder":  # one unit shows that other items have other counts
        other = readmemh({name: array[::-1] for name, array in items.items()}, made.inputs)
        seen = values_of(tmp_path / "other", made, made.verilog, other)[filled:]
        assert differing(found, seen, PERIOD)


def test_command(main: Cli, tmp_path: Path) -> None:
    np.save(tmp_path / "x.npy", np.random.default_rng(0).standard_normal((20, 8), np.float32))
    command = ("simulate", "encoder", "--block", "8", "--input", "x.npy", "--output", "y.npz")
    shown = main(*command, "--saif", "e.saif").succeeded()
    assert "wrote e.saif" in shown
    settings = UNITS["encoder"].parameters({"block": 8})
    items = {"values": np.load(tmp_path / "x.npy").view(np.uint32)}
    text = switching_file(UNITS["encoder"].build(**settings), "axs6_encoder", items)
    assert (tmp_path / "e.saif").read_text() == text
    assert main(*command, "--saif", "e.saif", "--vcd", "e.vcd").refused() == (
        "--saif needs --engine batch, not cxxrtl"
    )
    np.save(tmp_path / "x.npy", np.zeros((1, 8), np.float32))
    assert "must have more than 1 items" in main(*command, "--saif", "e.saif").refused()
