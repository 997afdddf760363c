"""The command line as a user meets it: each command is a process of its own."""

import json
import os
import shutil
import subprocess
import sys
import xml.etree.ElementTree as ET
from pathlib import Path

import pytest

from axs6.cli import COMMANDS


def axs6(*arguments: str, cwd: Path, **environment: str) -> subprocess.CompletedProcess[str]:
    return subprocess.run(
        [sys.executable, "-m", "axs6", *arguments],
        cwd=cwd,
        env={**os.environ, "COLUMNS": "120", **environment},
        check=False,
        capture_output=True,
        text=True,
        timeout=600,
    )


def refused(done: subprocess.CompletedProcess[str]) -> str:
    """The one line of a command that was given something wrong."""
    assert done.returncode == 2, done.stdout + done.stderr
    (line,) = done.stderr.splitlines()
    assert line.startswith("axs6: ")
    return line.removeprefix("axs6: ")


@pytest.mark.parametrize("command", COMMANDS)
def test_every_command_has_help_with_an_example(command: str, tmp_path: Path) -> None:
    done = axs6(command, "--help", cwd=tmp_path)
    assert done.returncode == 0
    assert f"Example: axs6 {command}" in " ".join(done.stdout.split())


def test_list_shows_every_unit(tmp_path: Path) -> None:
    done = axs6("list", "--json", "-", cwd=tmp_path)
    units = {each["unit"]: each for each in json.loads(done.stdout)}
    assert set(units) == {"encoder", "decoder", "block_dot", "dot"}
    assert units["dot"]["parameters"] == {"block": 32, "stages": 0}


def test_generate_writes_verilog_and_manifest(tmp_path: Path) -> None:
    done = axs6(
        *("generate", "encoder", "--block", "8", "--format", "bf16", "--stages", "2"),
        *("-o", "new/rtl"),
        cwd=tmp_path,
    )
    assert done.returncode == 0, done.stderr
    assert sorted(p.name for p in (tmp_path / "new/rtl").iterdir()) == [
        "axs6_encoder.json",
        "axs6_encoder.v",
    ]
    manifest = json.loads((tmp_path / "new/rtl/axs6_encoder.json").read_text())
    assert manifest["latency"] == 2
    assert manifest["streams"][0]["width"] == 8 * 16
    assert "module axs6_encoder(" in (tmp_path / "new/rtl/axs6_encoder.v").read_text()


@pytest.mark.parametrize(
    ("arguments", "message"),
    [
        (["generate", "divider", "-o", "x"], "unit must be one of encoder, "),
        (["generate", "dot", "--block", "9", "-o", "x"], "block_size must be one of 8, 16, 32"),
        (["generate", "dot", "--stages", "99", "-o", "x"], "stages must be an integer from 0 to"),
        (["generate", "dot", "--format", "fp32", "-o", "x"], "dot has no parameter 'format'"),
        (["generate", "encoder", "--format", "fp8", "-o", "x"], "format must be one of fp32,"),
        (["regress", "divider"], "unit must be one of encoder, "),
        (["regress", "dot", "--simulator", "vcs"], "simulator must be one of verilator, icarus"),
        (["regress", "dot", "--items", "0"], "items must be at least 1, not 0"),
        (["validate", "--blocks", "0"], "blocks must be at least 1, not 0"),
        (["area", "dot", "--target", "asic"], "target must be one of"),
        (["area", "dot", "--liberty", "no.lib"], "no.lib"),
        (["demo", "--simulator", "vcs"], "simulator must be one of verilator, icarus"),
    ],
)
def test_bad_input_is_one_line_and_leaves_nothing(
    arguments: list[str], message: str, tmp_path: Path
) -> None:
    assert message in refused(axs6(*arguments, cwd=tmp_path))
    assert list(tmp_path.iterdir()) == []


def test_a_folder_that_cannot_be_written_is_named(tmp_path: Path) -> None:
    (tmp_path / "file").write_text("kept")
    line = refused(axs6("generate", "block_dot", "--block", "8", "-o", "file/rtl", cwd=tmp_path))
    assert line == "cannot write to file/rtl: Not a directory"
    assert (tmp_path / "file").read_text() == "kept"


@pytest.mark.parametrize("tool", ["g++", "perl", "make"])
def test_a_missing_tool_is_named(tool: str, tmp_path: Path) -> None:
    programs = tmp_path / "bin"
    programs.mkdir()
    for each in {"g++", "perl", "make", "sh"} - {tool}:
        found = shutil.which(each)
        assert found is not None
        (programs / each).symlink_to(found)
    done = axs6("regress", "block_dot", "--block", "8", cwd=tmp_path, PATH=str(programs))
    assert refused(done) == f"verilator needs {tool} on PATH"


def test_icarus_that_is_not_there_is_named(tmp_path: Path) -> None:
    done = axs6("regress", "dot", "--simulator", "icarus", cwd=tmp_path, PATH=str(tmp_path))
    assert refused(done) == "icarus needs iverilog and vvp on PATH"


def test_a_cache_that_cannot_be_written_is_named(tmp_path: Path) -> None:
    (tmp_path / "file").write_text("")
    done = axs6("regress", "dot", cwd=tmp_path, AXS6_CACHE=str(tmp_path / "file"))
    assert refused(done).startswith(f"cannot write to the cache {tmp_path / 'file'}")


def test_a_wrong_option_exits_with_2(tmp_path: Path) -> None:
    done = axs6("generate", "dot", "--blocks", "8", "-o", "x", cwd=tmp_path)
    assert done.returncode == 2
    assert "No such option: --blocks" in done.stderr


def test_regress_reports_json_and_junit(tmp_path: Path) -> None:
    done = axs6(
        *("regress", "block_dot", "--block", "8", "--stages", "1", "--items", "100"),
        *("--seed", "3", "--junit", "report.xml", "--json", "-"),
        cwd=tmp_path,
    )
    assert done.returncode == 0, done.stderr
    (outcome,) = json.loads(done.stdout)
    assert outcome["passed"]
    assert outcome["seed"] == 3
    assert outcome["items"] > 100
    assert "1 passed, 0 failed" in done.stderr
    suite = ET.parse(tmp_path / "report.xml").getroot().find("testsuite")
    assert suite is not None
    assert suite.get("failures") == "0"


def test_validate_reports_every_check(tmp_path: Path) -> None:
    done = axs6("validate", "--blocks", "1", "--json", "figures.json", cwd=tmp_path)
    assert done.returncode == 0, done.stderr
    checks = json.loads((tmp_path / "figures.json").read_text())
    assert len(checks) == 10
    assert sum(check["mismatches"] for check in checks) == 0
    total = sum(check["cases"] for check in checks)
    assert f"{total:,} cases compared, 0 differ" in done.stdout


@pytest.mark.parametrize("target", ["generic", "ice40", "ecp5", "xc7"])
def test_area_reports_json(target: str, tmp_path: Path) -> None:
    done = axs6(
        *("area", "block_dot", "--block", "8", "--stages", "1"),
        *("--target", target, "--json", "-"),
        cwd=tmp_path,
    )
    assert done.returncode == 0, done.stderr
    (report,) = json.loads(done.stdout)
    assert report["target"] == target
    assert report["parameters"] == {"block": 8, "stages": 1}
    # 8 products of 10 bits make a sum of 14, the exponents one of 9, and there is `valid`.
    assert report["total"]["figures"]["flip_flops"] == 14 + 9 + 1
    assert "axs6_block_dot" in done.stderr


def test_demo_equals_the_golden_model_on_every_bit(tmp_path: Path) -> None:
    done = axs6("demo", "-o", "out", cwd=tmp_path)
    assert done.returncode == 0, done.stdout + done.stderr
    figures = json.loads((tmp_path / "out/demo.json").read_text())
    assert figures["outputs_equal"]
    assert set(figures["bits_different"].values()) == {0}
    assert min(figures["bits_compared"].values()) > 100_000
    accuracy = figures["accuracy"]
    assert accuracy["axs6_rtl"] == accuracy["axs6_golden"] > 0.9
    names = {path.name for path in (tmp_path / "out").iterdir()}
    assert {"axs6_dot.v", "axs6_encoder.json", "axs6_decoder.v", "demo.json"} <= names
