"""`axs6 study` as a user meets it."""

import json
import os
import subprocess
import sys
from pathlib import Path

import pytest

MODEL = """
import torch
from torch import nn

def model():
    torch.manual_seed(0)
    return nn.Linear(40, 3), torch.randn(9, 40), torch.arange(9) % 3

def key():
    return {}["weights"]
"""

WRONG_PRODUCT = """
from dataclasses import replace
from axs6.sim.torch.backends import Rtl
right = Rtl.product
def wrong(self, a, b):
    result = right(self, a, b)
    return replace(result, values=-result.values)
Rtl.product = wrong
"""

WITHOUT_TORCH = "import sys; sys.modules['torch'] = None"


def study(
    *arguments: str, cwd: Path, before: str = "", **environment: str
) -> subprocess.CompletedProcess[str]:
    """The command in a process that has run `before` first."""
    code = f"{before}\nimport sys\nsys.argv = {['axs6', 'study', *arguments]!r}\n"
    return subprocess.run(
        [sys.executable, "-c", f"{code}from axs6.cli import main\nmain()\n"],
        cwd=cwd,
        env={**os.environ, **environment},
        check=False,
        capture_output=True,
        text=True,
        timeout=300,
    )


@pytest.fixture
def folder(tmp_path: Path) -> Path:
    (tmp_path / "mine.py").write_text(MODEL)
    return tmp_path


def test_a_study_is_shown_and_written(folder: Path) -> None:
    arguments = ("accuracy", "mine.py:model", "--block", "8", "--samples", "6", "-o", "out")
    done = study(*arguments, "--rows", "1", "--columns", "1", "--json", "-", cwd=folder)
    assert done.returncode == 0, done.stderr
    figures = json.loads(done.stdout)
    assert figures == json.loads((folder / "out/study.json").read_text())
    assert (figures["samples"], figures["tile"]) == (6, {"rows": 1, "columns": 1})
    assert [run["backend"] for run in figures["runs"]] == ["fp32", "emulated", "rtl"]
    assert figures["runs"][2]["bits_different"] == 0
    assert "1,152 bits compared, 0 differ" in done.stderr
    assert {path.name for path in (folder / "out").iterdir()} == {
        "study.json",
        "accuracy.svg",
        "accuracy.png",
    }
    assert (folder / "out/accuracy.png").read_bytes().startswith(b"\x89PNG")


def test_a_difference_exits_with_1(folder: Path) -> None:
    arguments = ("accuracy", "mine.py:model", "--block", "8", "--json", "out.json")
    done = study(*arguments, cwd=folder, before=WRONG_PRODUCT)
    assert done.returncode == 1, done.stderr
    figures = json.loads((folder / "out.json").read_text())
    assert figures["runs"][2]["bits_different"] > 0


@pytest.mark.parametrize(
    ("arguments", "message"),
    [
        (["resnet"], "MODEL must be one of mlp, cnn, transformer or FILE.py:FUNCTION"),
        (["mlp", "--block", "9"], "block_size must be one of 8, 16, 32, not 9"),
        (["mlp", "--backend", "gpu"], "backend must be one of emulated, rtl, not 'gpu'"),
        (["mlp", "--rows", "0"], "rows must be"),
        (["mlp", "-o", "/proc/x"], "cannot write to /proc/x"),
        (["none.py:model"], "none.py: no such file"),
        (["mine.py:other"], "mine.py: no function 'other' in this file"),
        (["mine.py:key"], "mine.py:10: KeyError: 'weights'"),
    ],
)
def test_bad_input_is_one_line(arguments: list[str], message: str, folder: Path) -> None:
    done = study("accuracy", *arguments, cwd=folder)
    assert done.returncode == 2, done.stdout + done.stderr
    (line,) = done.stderr.splitlines()
    assert line.startswith("axs6: ")
    assert message in line


def test_a_missing_package_is_named_with_its_extra(folder: Path) -> None:
    done = study("accuracy", "mlp", cwd=folder, before=WITHOUT_TORCH)
    assert done.returncode == 2
    assert done.stderr == 'axs6: the package torch is missing: pip install "axs6[study]"\n'


def test_rounding_is_shown_as_in_the_docs(tmp_path: Path) -> None:
    done = study("rounding", "--json", "rows.json", cwd=tmp_path)
    assert done.returncode == 0, done.stderr
    page = (Path(__file__).parents[2] / "docs" / "rounding.md").read_text()
    assert done.stdout in page
    rows = json.loads((tmp_path / "rows.json").read_text())
    assert [row["random_bits"] for row in rows] == [None, 4, 8, 16]
    assert all(abs(row["bias"]["measured"]) < 0.04 for row in rows)


def test_rounding_refuses_widths(tmp_path: Path) -> None:
    done = study("rounding", "--bits", "33", cwd=tmp_path)
    assert done.returncode == 2
    assert done.stderr == "axs6: random_bits must be an integer from 1 to 32, not 33\n"
