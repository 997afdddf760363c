"""OpenSTA beside the project's timing and ABC's: what differs is known, to the picosecond."""

import json
import os
import shutil
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

from axs6.hw.verilog import generate
from axs6.synth import sky130
from axs6.synth.cells import EDGES, cell_library
from axs6.synth.errors import SynthesisError
from axs6.synth.netlist import MappedDesign, compact_library, mapped_design
from axs6.synth.opensta import TimingTools, timing_tools

Cli = Callable[..., Any]

WITH_OPENSTA = pytest.mark.skipif(shutil.which("sta") is None, reason="sta is not on PATH")

WIRES = """
  wire_load ("long") { capacitance : 1; resistance : 0; slope : 5; fanout_length (1, 5); }
  default_wire_load : "long";
"""


def timed(unit: str, **options: Any) -> TimingTools:
    made = generate(unit, block=8, **options.pop("parameters", {}))
    return timing_tools(mapped_design(made.verilog, made.module, **options))


@WITH_OPENSTA
def test_all_tools_agree_but_for_the_driver_without_load() -> None:
    """SDC leaves out what the driving cell takes at no load, and so does ABC."""
    library = cell_library(sky130.liberty(), "sky130")
    (arc,) = library["sky130_fd_sc_hd__buf_1"].arcs
    unloaded = [arc.delay[edge].at(0.0, 0.0) for edge in EDGES]
    tools = timed("block_dot", target="sky130", optimise="speed")
    assert tools.abc_stime_ps == pytest.approx(tools.opensta_ps, abs=0.01)
    assert any(tools.axs6_ps - tools.opensta_ps == pytest.approx(t, abs=0.01) for t in unloaded)
    assert (tools.wire_load, tools.opensta_wire_load_ps) == (None, None)


@pytest.mark.slow  # paths of gates are compared in every run
@WITH_OPENSTA
def test_registers_and_adder_cells() -> None:
    """A path between registers has no driver before it."""
    parameters = {"stages": 3, "format": "mx4"}
    tools = timed("block_dot", target="sky130", adder_cells=True, parameters=parameters)
    assert tools.abc_stime_ps is None
    assert 0 <= tools.axs6_ps - tools.opensta_ps < 60


@pytest.mark.slow
@WITH_OPENSTA
def test_wire_load_of_the_library(tmp_path: Path) -> None:
    liberty = tmp_path / "wires.lib"
    liberty.write_text(compact_library().replace("  nom_voltage", f"{WIRES}  nom_voltage"))
    tools = timed("decoder", target="generic", liberty=liberty)
    plain = timed("decoder", target="sky130")
    assert tools.wire_load == "long"
    assert tools.opensta_ps == plain.opensta_ps
    assert tools.opensta_wire_load_ps is not None
    assert tools.opensta_wire_load_ps > tools.opensta_ps + 100


@WITH_OPENSTA
def test_command(main: Cli, tmp_path: Path) -> None:
    options = ("--target", "sky130", "--opensta", "--json", "figures.json")
    shown = main("area", "expander", "--block", "8", *options).succeeded()
    (report,) = json.loads((tmp_path / "figures.json").read_text())
    tools = report["timing_tools"]
    assert tools["axs6_ps"] == report["timing"]["delay_ps"]
    rows = {" ".join(line.split()) for line in shown.splitlines()}
    assert f"ABC stime {tools['abc_stime_ps']:,.1f}" in rows
    assert f"OpenSTA {tools['opensta_ps']:,.1f}" in rows


@pytest.fixture(scope="module")
def design() -> MappedDesign:
    source = "module chain(input a, output y); assign y = ~a; endmodule"
    return mapped_design(source, "chain", target="sky130")


@pytest.mark.parametrize(
    ("script", "message"),
    [
        ("", "OpenSTA failed: it gave no slack of the design"),
        ("exit 3", "OpenSTA failed: exit status 3"),
        ("echo no licence; exit 3", "OpenSTA failed: no licence"),
        ("echo Error: bad cell", "OpenSTA failed: Error: bad cell"),
        ("sleep 60", "OpenSTA did not finish within 1 s"),
    ],
)
def test_a_tool_that_fails(
    design: MappedDesign,
    tmp_path: Path,
    monkeypatch: pytest.MonkeyPatch,
    script: str,
    message: str,
) -> None:
    tool = tmp_path / "sta"
    tool.write_text(f"#!/bin/sh\nif [ $1 = -version ]; then exit 0; fi\n{script}\n")
    tool.chmod(0o755)
    monkeypatch.setenv("PATH", f"{tmp_path}{os.pathsep}{os.environ['PATH']}")
    with pytest.raises(SynthesisError) as caught:
        timing_tools(design, timeout=1)
    assert str(caught.value) == message


def test_without_opensta(main: Cli, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("PATH", str(tmp_path))
    line = main("area", "lfsr", "--target", "sky130", "--opensta").refused()
    assert line == "--opensta needs OpenSTA's sta on PATH (on Debian: apt install opensta)"
