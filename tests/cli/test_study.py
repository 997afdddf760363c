"""`axs6 study` as a user meets it."""

import json
from collections.abc import Callable
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest

from axs6.golden.blocks import Blocks
from axs6.install import install_command
from axs6.torch.backends import ProductBatch, Rtl

Cli = Callable[..., Any]

MODEL = """
import torch
from torch import nn

def model():
    torch.manual_seed(0)
    return nn.Linear(40, 3), torch.randn(9, 40), torch.arange(9) % 3

def key():
    return {}["weights"]
"""

WITHOUT_TORCH = "import sys; sys.modules['torch'] = None"


@pytest.fixture
def folder(tmp_path: Path) -> Path:
    (tmp_path / "mine.py").write_text(MODEL)
    return tmp_path


def test_a_study_is_shown_and_written(main: Cli, folder: Path) -> None:
    arguments = ("accuracy", "mine.py:model", "--block", "8", "--samples", "6", "-o", "out")
    done = main("study", *arguments, "--rows", "1", "--columns", "1", "--json", "-")
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


def test_formats_and_a_policy(main: Cli, folder: Path) -> None:
    (folder / "p.toml").write_text('format = "mx9"\n[[layers]]\nname = "*"\nweights = "mx6"\n')
    arguments = ("--format", "mx6,mx9", "--format", "int8", "--policy", "p.toml", "--json", "-")
    figures = json.loads(main("study", "accuracy", "mine.py:model", *arguments).succeeded())
    assert [run["format"] for run in figures["runs"]] == [None, "mx6", "mx9", "int8", "p.toml"]
    assert {run["backend"] for run in figures["runs"][1:]} == {"emulated"}


def test_a_difference_exits_with_1(
    main: Cli, folder: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    right = Rtl.product

    def wrong(self: Rtl, a: Blocks, b: Blocks) -> ProductBatch:
        result = right(self, a, b)
        return replace(result, values=-result.values)

    monkeypatch.setattr(Rtl, "product", wrong)
    arguments = ("accuracy", "mine.py:model", "--block", "8", "--samples", "6")
    tile = ("--rows", "1", "--columns", "1")
    done = main("study", *arguments, *tile, "--json", "out.json")
    assert done.returncode == 1, done.stderr
    figures = json.loads((folder / "out.json").read_text())
    assert figures["runs"][2]["bits_different"] > 0


@pytest.mark.parametrize(
    ("arguments", "message"),
    [
        (["resnet"], "MODEL must be one of mlp, cnn, transformer or FILE.py:FUNCTION"),
        (["mlp", "--format", "mx9,mx8"], "'mx8' is no block format"),
        (["mine.py:model", "--policy", "none.toml"], "none.toml"),
        (["mine.py:model", "--policy", "mine.py"], "mine.py: "),
        (["mlp", "--block", "9"], "block must be one of 8, 16, 32, not 9"),
        (["mlp", "--backend", "gpu"], "backend must be one of emulated, rtl, not 'gpu'"),
        (["mlp", "--rows", "0"], "rows must be"),
        (["mlp", "-o", "/proc/x"], "cannot write to /proc/x"),
        (["none.py:model"], "none.py: no such file"),
        (["mine.py:other"], "mine.py: no function 'other' in this file"),
        (["mine.py:key"], "mine.py:10: KeyError: 'weights'"),
    ],
)
def test_bad_input_is_one_line(main: Cli, arguments: list[str], message: str, folder: Path) -> None:
    assert message in main("study", "accuracy", *arguments).refused()


def test_a_missing_package_is_named_with_its_extra(cli: Cli, folder: Path) -> None:
    done = cli("study", "accuracy", "mlp", before=WITHOUT_TORCH)
    assert done.refused() == f"the package torch is missing: {install_command('study')}"


def test_rounding_is_shown_as_in_the_docs(main: Cli, tmp_path: Path) -> None:
    printed = main("study", "rounding", "--json", "rows.json").succeeded()
    page = (Path(__file__).parents[2] / "docs" / "rounding.md").read_text()
    assert printed in page
    rows = json.loads((tmp_path / "rows.json").read_text())
    assert [row["random_bits"] for row in rows] == [None, 4, 8, 16]
    assert all(abs(row["bias"]["measured"]) < 0.04 for row in rows)


def test_rounding_refuses_widths(main: Cli) -> None:
    line = main("study", "rounding", "--bits", "33").refused()
    assert line == "random_bits must be an integer from 1 to 32, not 33"


def test_qsnr_is_measured_without_torch(cli: Cli, tmp_path: Path) -> None:
    arguments = ("--format", "mx9", "--format", "int8_e8m0_t16", "--vectors", "20")
    done = cli("study", "qsnr", *arguments, "--json", "out.json", before=WITHOUT_TORCH)
    first, _, *table = done.succeeded().splitlines()
    assert first == "20 vectors of 1,024 values, N(0, |N(0, 1)|), seed 0"
    figures = json.loads((tmp_path / "out.json").read_text())
    assert [row["format"] for row in figures["rows"]] == ["mx9", "mxint8_t16"]
    shown = [
        [row["format"], f"{row['bits']:g}", f"{row['qsnr_db']:.2f}"] for row in figures["rows"]
    ]
    assert [line.split() for line in table] == [["format", "bits", "QSNR", "dB"], *shown]


def test_qsnr_shows_the_differences_of_the_paper(main: Cli) -> None:
    printed = main("study", "qsnr", "--vectors", "5").succeeded()
    (line,) = [line for line in printed.splitlines() if line.startswith("mx9 - msfp16")]
    assert line.split()[-1] == "3.6"
    assert "int3_e8m0_t16s2o2 - mx4" in printed


@pytest.mark.parametrize(
    ("arguments", "message"),
    [
        (["--format", "mx99"], "'mx99' is no block format"),
        (["--vectors", "0"], "vectors must be an integer of at least 1, not 0"),
        (["--vectors", "5", "--json", "/proc/x"], "cannot write to /proc/x"),
    ],
)
def test_qsnr_refuses(main: Cli, arguments: list[str], message: str) -> None:
    assert message in main("study", "qsnr", *arguments).refused()


def test_a_training_study_is_shown_and_written(main: Cli, folder: Path) -> None:
    arguments = ("vit", "--recipe", "axs6", "--seeds", "1", "--steps", "2", "-o", "out")
    done = main("study", "training", *arguments, "--checkpoints", "runs", "--json", "-")
    assert done.returncode == 0, done.stderr
    figures = json.loads(done.stdout)
    assert figures == json.loads((folder / "out/study.json").read_text())
    assert [row["recipe"] for row in figures["rows"]] == ["fp32", "axs6"]
    assert "running vit-axs6-0-tuned" in done.stderr.splitlines()
    assert {path.name for path in (folder / "out").iterdir()} == {
        "study.json",
        "training.svg",
        "training.png",
    }
    assert (folder / "runs/vit-fp32-0.pt").exists()
    (folder / "runs/vit-fp32-0.pt").write_text("no checkpoint")
    again = main("study", "training", *arguments, "--checkpoints", "runs")
    assert again.refused() == "runs/vit-fp32-0.pt: not a checkpoint of a training run"


@pytest.mark.parametrize(
    ("arguments", "message"),
    [
        (["bert"], "NAME must be one of gpt, vit, gpt_1m, not 'bert'"),
        (
            ["gpt", "--recipe", "x"],
            "recipe must be one of fp32, mx9, mx6, mxfp8, mxfp4, nvfp4, mxfp4_rotated, "
            "nvfp4_rotated, axs6, axs6_stochastic, mxfp8_hopper, mxfp8_promoted, not 'x'",
        ),
        (["gpt", "--seeds", "0"], "seeds must be an integer of at least 1, not 0"),
        (["gpt", "--steps", "1"], "steps must be an integer of at least 2, not 1"),
        (["gpt", "-o", "/proc/x"], "cannot write to /proc/x"),
        (["gpt", "--checkpoints", "/proc/x"], "cannot write to /proc/x"),
    ],
)
def test_bad_requests_for_training_are_refused(
    main: Cli, arguments: list[str], message: str
) -> None:
    assert message in main("study", "training", *arguments).refused()


def test_accumulators_are_shown_without_torch(cli: Cli, tmp_path: Path) -> None:
    arguments = ("--format", "mx9", "--accumulator", "paper", "--fraction", "8", "--length", "64")
    done = cli("study", "accumulators", *arguments, "--json", "out.json", before=WITHOUT_TORCH)
    first, head, row = done.succeeded().splitlines()
    assert first == "256 dot products of 64 products, seed 0; dB"
    assert head.split()[-3:] == ["f", "=", "8"]
    (series,) = json.loads((tmp_path / "out.json").read_text())["series"]
    errors = (series["format_db"], *series["error_db"])
    assert row.split() == ["mx9", "paper", *(f"{x:.1f}" for x in errors)]
