"""SAIF of a mapped netlist: what its Verilog does in another simulator, and by OpenSTA."""

import re
import shutil
from collections.abc import Callable
from functools import cache
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from icarus import values_of
from switching_counts import counted, differing

from axs6.hw.registry import UNITS
from axs6.hw.verilog import Generated, generate
from axs6.sim.saif import SaifInstance, Switching, clock_net, saif
from axs6.sim.words import readmemh
from axs6.synth.energy import energy, stimulus_items
from axs6.synth.energy_stimulus import RANDOM
from axs6.synth.mapped import mapped_netlist
from axs6.synth.netlist import MappedDesign, mapped_design
from axs6.synth.opensta_power import power_tools, with_states
from axs6.synth.switching import switching_file

Cli = Callable[..., Any]

WITH_ICARUS = pytest.mark.skipif(shutil.which("iverilog") is None, reason="iverilog is not on PATH")
WITH_OPENSTA = pytest.mark.skipif(shutil.which("sta") is None, reason="sta is not on PATH")

UNIT, PARAMETERS = (
    "decoder",
    UNITS["decoder"].parameters({"block": 8, "dtype": "bf16", "format": "mxfp4", "stages": 1}),
)
ITEMS = 40


@cache
def made() -> Generated:
    """The unit, when a test needs it."""
    return generate(UNIT, **PARAMETERS)


@pytest.fixture(scope="module")
def design() -> MappedDesign:
    return mapped_design(made().verilog, made().module, target="sky130", adder_cells=True)


@pytest.fixture(scope="module")
def netlist() -> str:
    return mapped_netlist(made().verilog, made().module, target="sky130", adder_cells=True)


def random_items() -> dict[str, Any]:
    return UNITS[UNIT].random(PARAMETERS, np.random.default_rng(0), ITEMS)


def switching(design: MappedDesign, netlist: str, items: dict[str, Any]) -> str:
    sequence = {name: array[None] for name, array in items.items()}
    return switching_file(design, netlist, UNITS[UNIT].build(**PARAMETERS), sequence, "random")


@WITH_ICARUS
def test_counts_are_those_of_the_netlist_in_icarus(
    design: MappedDesign, netlist: str, tmp_path: Path
) -> None:
    items = random_items()
    found = counted(switching(design, netlist, items))
    words = readmemh(items, made().inputs)
    seen = values_of(tmp_path, made(), design.verilog + design.models, words)
    assert len(found) > 2 * len(design.module["cells"])
    assert sum(toggles for toggles, _ in found.values()) > 1000
    # The pipeline of one stage is full in the second cycle.
    assert differing(found, seen[1:], design.period_ps) == []
    assert found["clk"] == (2 * (ITEMS - 2), round((ITEMS - 2) * design.period_ps / 2))

    wrong = design.verilog.replace("_nand2_1 ", "_nor2_1 ", 1)
    assert wrong != design.verilog
    seen = values_of(tmp_path / "wrong", made(), wrong + design.models, words)
    assert differing(found, seen[1:], design.period_ps)


@pytest.mark.slow  # Icarus counts the same changes in every run
@WITH_OPENSTA
def test_opensta_finds_the_same_energy(design: MappedDesign, netlist: str) -> None:
    """The compact library has nothing but capacitances: OpenSTA's power is that of its nets."""
    options = {"target": "sky130", "adder_cells": True}
    parts = energy(UNIT, PARAMETERS, stimulus=RANDOM, **options).measured.parts
    items = stimulus_items(UNIT, PARAMETERS, RANDOM)
    text = switching_file(design, netlist, UNITS[UNIT].build(**PARAMETERS), items, "random")
    own = parts["gates"] + parts["flip_flops"]
    tools = power_tools(design, text, own)
    assert tools.opensta.switching == tools.opensta.total == pytest.approx(own, rel=1e-4)
    assert tools.opensta_default.total != pytest.approx(own, rel=0.05)
    twice = re.sub(r"\(TC (\d+)\)", lambda match: f"(TC {2 * int(match[1])})", text)
    assert power_tools(design, twice, own).opensta.total == pytest.approx(2 * own, rel=1e-4)


def test_outputs_of_gates_become_states() -> None:
    gate = 'cell ("G") { pin ("A") { direction : input; } pin (Y) { function : "!A"; } }'
    register = 'cell (R) { ff (IQ, IQN) { next_state : "D"; } pin (Q) { function : "IQ"; } }'
    start, *cells = with_states(f"library (l) {{ {gate}\n{register}\n}}").split("cell")
    assert start == "library (l) { "
    assert 'ff (axs6_Y, axs6_Y_n) { next_state : "axs6_Y"; clocked_on : "axs6_Y"; }' in cells[0]
    assert 'pin (Y) { function : "axs6_Y"; }' in cells[0]
    assert f"cell{cells[1]}" == f"{register}\n}}"


def test_saif_by_hand() -> None:
    top = SaifInstance("top", {"clk": clock_net(4), "a[1]": Switching(3, 1)})
    top.within(("u", "$v")).nets["y"] = Switching(0, 4)
    text = saif(top, cycles=4, period=2500.4, design="top, by hand")
    body = text[text.index("(DURATION") :].splitlines()
    assert body == [
        "(DURATION 10002)",
        "(INSTANCE top",
        "(NET",
        "(clk (T0 5001) (T1 5001) (TX 0) (TC 8) (IG 0))",
        "(a\\[1\\] (T0 7502) (T1 2500) (TX 0) (TC 3) (IG 0))",
        ")",
        "(INSTANCE u",
        "(INSTANCE \\$v",
        "(NET",
        "(y (T0 0) (T1 10002) (TX 0) (TC 0) (IG 0))",
        *[")"] * 5,
    ]
    assert text.count("(") == text.count(")")


def test_command(main: Cli, tmp_path: Path) -> None:
    options = ("--target", "sky130", "--energy", "--stimulus", "random")
    main("area", "expander", "--block", "8", *options, "--saif", "e.saif", "--netlist", "e.v")
    nets = counted((tmp_path / "e.saif").read_text())
    verilog = (tmp_path / "e.v").read_text()
    wires = re.findall(r"^  wire (\w+);", verilog, re.M)
    instances = re.findall(r"^  sky130_fd_sc_hd__\w+ (\w+) \(", verilog, re.M)
    assert {*wires} <= nets.keys()
    assert {*instances} == {name.partition(".")[0] for name in nets if "." in name}


@pytest.mark.parametrize(
    ("arguments", "message"),
    [
        (("--saif", "x"), "--saif needs --energy"),
        (("--saif", "x", "--energy", "--target", "generic"), "a netlist for timing needs a cell"),
        (
            ("--saif", "x", "--energy", "--target", "sky130", "--netlist", "x"),
            "output x must not be the same file as output x",
        ),
    ],
)
def test_bad_input_is_one_line(main: Cli, arguments: tuple[str, ...], message: str) -> None:
    assert message in main("area", "block_dot", "--block", "8", *arguments).refused()
