"""Builds of simulations, and runs of them, whatever their folders are called."""

import os
import re
import subprocess
import sys
from pathlib import Path
from typing import Any

import pytest

from axs6.hw.verilog import generate
from axs6.sim import launcher
from axs6.sim.launcher import EMPTY, build
from axs6.sim.regress import regress
from axs6.sim.tools import ToolError, simulator_environment

ODD = "in ö/a'b\"c#d$HOME;touch x;`touch x`$(touch x)=%\\"


@pytest.mark.slow
def test_a_cache_may_have_any_path(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir(tmp_path)
    monkeypatch.setenv("AXS6_CACHE", ODD)
    for _ in range(2):
        outcome = regress("decoder", {"block": 8}, items=10)
        assert outcome.passed, outcome.failures
    assert not list(tmp_path.rglob("x"))


def test_builds_know_nothing_of_the_path_of_the_cache(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    def launched(log: Path, seconds: float, **request: Any) -> None:
        paths = [str(log), request["source"], request["folder"], *request["objects"]]
        for path in paths:
            assert re.fullmatch(r"[\w/.-]+", path)
            assert os.path.commonpath([path, request["folder"]]) == request["folder"]
        assert [Path(path).read_text() for path in request["objects"]] == (
            [] if request["module"] == EMPTY else ["object of axs6_empty"]
        )
        for name in ("top", "verilated.o"):
            Path(request["folder"], name).write_text(f"object of {request['module']}")

    monkeypatch.setattr(launcher, "_launch", launched)
    monkeypatch.chdir(tmp_path)
    monkeypatch.setenv("AXS6_CACHE", ODD)
    built = build(generate("decoder", block=8), "verilator")
    assert built.parent == tmp_path / ODD
    assert (built / "top").read_text() == "object of axs6_decoder"


def test_a_temporary_folder_is_plain(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("tempfile.tempdir", str(tmp_path / "a b"))
    (tmp_path / "a b").mkdir()
    monkeypatch.setenv("AXS6_CACHE", str(tmp_path / "cache"))
    with pytest.raises(ToolError, match=r"^the folder of temporary files \(TMPDIR\) must have a "):
        build(generate("decoder", block=8), "verilator")


def test_makefiles_of_verilator_call_this_python(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """A machine may have no `python`, or one of another version."""
    python = tmp_path / ODD / "bin" / "python"
    python.parent.mkdir(parents=True)
    python.write_text("#!/bin/sh\necho this one\n")
    python.chmod(0o755)
    (tmp_path / "python").write_text("#!/bin/sh\necho another one\n")
    (tmp_path / "python").chmod(0o755)
    (tmp_path / "Makefile").write_text("PYTHON3 = python\nall:\n\t@$(PYTHON3) script\n")
    monkeypatch.setenv("PATH", f"{tmp_path}:{os.environ['PATH']}")
    monkeypatch.setattr(sys, "executable", str(python))
    environments = [os.environ, simulator_environment("verilator")]
    printed = [
        subprocess.run(
            ["make", "--silent"],
            cwd=tmp_path,
            env=environment,
            check=True,
            capture_output=True,
            text=True,
        ).stdout.strip()
        for environment in environments
    ]
    assert printed == ["another one", "this one"]
