"""Files for LibreLane, OpenROAD-flow-scripts and Vivado, as far as each can be held to its tool."""

import json
import subprocess
import venv
from pathlib import Path
from typing import Any

import pytest

from axs6.commands.output import write_generated
from axs6.hw.verilog import generate

MODULE = "my_dot"
PERIOD_PS = 2500.0


@pytest.fixture
def folder(tmp_path: Path) -> Path:
    made = generate("dot", name=MODULE, block=8, stages=2, reset="async-low")
    write_generated(tmp_path / "rtl", made, PERIOD_PS)
    return tmp_path / "rtl"


def test_make_finds_the_files_of_the_design(folder: Path, tmp_path: Path) -> None:
    makefile = "include $(DESIGN_CONFIG)\nall:\n\t@echo $$DESIGN_NAME $$VERILOG_FILES $$SDC_FILE\n"
    (tmp_path / "Makefile").write_text(makefile)
    done = subprocess.run(
        ["make", "-s", "--no-print-directory", f"DESIGN_CONFIG=rtl/{MODULE}.mk"],
        cwd=tmp_path,
        check=True,
        capture_output=True,
        text=True,
    )
    name, *files = done.stdout.split()
    assert name == MODULE
    assert [Path(file) for file in files] == [folder / f"{MODULE}.{end}" for end in ("v", "sdc")]
    assert all(Path(file).is_file() for file in files)


@pytest.mark.parametrize("part", ["", "xcku040"])
def test_tcl_runs_the_steps_of_vivado(folder: Path, part: str) -> None:
    tkinter = pytest.importorskip("tkinter")
    tcl: Any = tkinter.Tcl()
    called: list[tuple[str, ...]] = []

    def command(name: str) -> None:
        tcl.createcommand(name, lambda *words: called.append((name, *words)) or "")

    steps = ("opt_design", "place_design", "route_design")
    reports = ("report_utilization", "report_timing_summary")
    for name in ("read_verilog", "synth_design", "create_clock", *steps, *reports):
        command(name)
    tcl.createcommand("get_ports", lambda name: f"port {name}")
    tcl.eval(f"set argc {int(bool(part))}; set argv {{{part}}}")
    tcl.call("source", str(folder / f"{MODULE}.tcl"))
    read, synthesised, clock, *others = called
    assert read == ("read_verilog", str(folder / f"{MODULE}.v"))
    chosen = part or "xc7a100tcsg324-1"
    assert synthesised[:5] == ("synth_design", "-top", MODULE, "-part", chosen)
    assert clock == ("create_clock", "-name", "clk", "-period", "2.5", "port clk")
    assert [name for (name,) in others] == [*steps, *reports]


CHECK = """
import sys
from librelane.config import Config
from librelane.flows import Flow
variables = {}
for step in Flow.factory.get("Classic").Steps:
    for each in step.get_all_config_variables():
        variables.setdefault(each.name, each)
own = [each for each in variables.values() if not each.pdk or each.name == "STD_CELL_LIBRARY"]
path, root = sys.argv[1:]
found, _ = Config.load(path, own, pdk="sky130A", pdk_root=root)
print(found["DESIGN_NAME"], found["CLOCK_PERIOD"], *found["VERILOG_FILES"], found["PNR_SDC_FILE"])
"""


@pytest.mark.slow
def test_librelane_accepts_the_configuration(folder: Path, tmp_path: Path) -> None:
    """In an environment of its own: its packages and this project's exclude each other.

    The PDK has only the name of its cells, so variables that only a PDK gives are left out.
    """
    venv.create(tmp_path / "venv", with_pip=True)
    python = tmp_path / "venv/bin/python"
    install = [python, "-m", "pip", "install", "-q", "librelane==3.0.17"]
    subprocess.run(install, check=True, timeout=900)
    pdk = tmp_path / "sky130A/libs.tech/librelane"
    (pdk / "sky130_fd_sc_hd").mkdir(parents=True)
    (pdk / "config.tcl").write_text("set ::env(STD_CELL_LIBRARY) sky130_fd_sc_hd\n")
    (pdk / "sky130_fd_sc_hd/config.tcl").touch()
    path = folder / f"{MODULE}.librelane.json"

    def check() -> subprocess.CompletedProcess[str]:
        return subprocess.run(
            [python, "-c", CHECK, path, tmp_path], check=False, capture_output=True, text=True
        )

    done = check()
    assert done.returncode == 0, done.stderr
    files = [str(folder / f"{MODULE}.{end}") for end in ("v", "sdc")]
    assert done.stdout.split() == [MODULE, "2.5", *files]
    wrong = json.loads(path.read_text())
    wrong["CLOK_PORT"] = wrong.pop("CLOCK_PORT")
    path.write_text(json.dumps(wrong))
    assert "Unknown key 'CLOK_PORT'" in check().stderr
