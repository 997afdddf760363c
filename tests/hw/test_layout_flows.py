"""Configurations of layout flows: what they say, by make and by LibreLane's own check."""

import json
import shutil
import subprocess
from pathlib import Path

import pytest

from axs6.commands.output import write_generated
from axs6.hw.verilog import generate

LIBRELANE = shutil.which("librelane")

CHECK = """
import pathlib
import sys
from librelane.config import Config, universal_flow_config_variables
from librelane.flows import Flow

flow = Flow.factory.get("Classic")
steps = (each for step in flow.Steps for each in step.config_vars)
known = {each.name: each for each in (*universal_flow_config_variables, *flow.config_vars, *steps)}
# Variables of the process come with it: here a process has the name of its cells alone.
cells = "STD_CELL_LIBRARY"
own = [each for each in known.values() if not each.pdk or each.name == cells]
folder = pathlib.Path("process/sky130A/libs.tech/librelane")
(folder / "cells").mkdir(parents=True, exist_ok=True)
(folder / "config.tcl").write_text(f"set ::env({cells}) cells\\n")
(folder / "cells" / "config.tcl").touch()
found, _ = Config.load(sys.argv[1], own, pdk="sky130A", pdk_root="process")
print(found["DESIGN_NAME"], found["CLOCK_PERIOD"], found["PNR_SDC_FILE"])
"""


@pytest.fixture
def files(tmp_path: Path) -> Path:
    write_generated(tmp_path / "rtl", generate("lfsr", name="words", block=8), 2500.0)
    return tmp_path / "rtl"


def test_what_librelane_is_told(files: Path) -> None:
    content = json.loads((files / "words.librelane.json").read_text())
    assert content.pop("meta") == {"version": 3, "flow": "Classic"}
    assert content == {
        "DESIGN_NAME": "words",
        "VERILOG_FILES": ["dir::words.v"],
        "CLOCK_PORT": "clk",
        "CLOCK_PERIOD": 2.5,
        "PNR_SDC_FILE": "dir::words.sdc",
        "SIGNOFF_SDC_FILE": "dir::words.sdc",
    }


@pytest.mark.skipif(LIBRELANE is None, reason="librelane is not on PATH")
def test_librelane_takes_its_configuration(files: Path) -> None:
    python = Path(str(LIBRELANE)).read_text().splitlines()[0].removeprefix("#!")
    path = files / "words.librelane.json"

    def check() -> subprocess.CompletedProcess[str]:
        command = [python, "-c", CHECK, str(path)]
        return subprocess.run(
            command, cwd=files.parent, check=False, capture_output=True, text=True
        )

    done = check()
    assert done.stdout.split()[-3:] == ["words", "2.5", str(files / "words.sdc")], done.stderr
    right = path.read_text()
    for wrong in (right.replace("CLOCK_PERIOD", "CLOCK"), right.replace("2.5", '"2.5ns"')):
        assert wrong != right
        path.write_text(wrong)
        assert "InvalidConfig" in check().stderr


def test_make_reads_what_openroad_is_told(files: Path) -> None:
    shown = "$(DESIGN_NAME) $(VERILOG_FILES) $(SDC_FILE) $(PLATFORM)"
    (files.parent / "Makefile").write_text(f"include rtl/words.mk\nall:\n\t@echo {shown}\n")
    done = subprocess.run(
        ["make", "-s", "PLATFORM=ihp-sg13g2"],
        cwd=files.parent,
        check=True,
        capture_output=True,
        text=True,
    )
    expected = ["words", str(files / "words.v"), str(files / "words.sdc"), "ihp-sg13g2"]
    assert done.stdout.split() == expected
    assert (files / "words.sdc").exists()
