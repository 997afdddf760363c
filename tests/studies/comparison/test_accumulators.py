"""What the bits of an accumulator cost, and what they do to models."""

import json
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

from axs6.studies.accuracy import study_accuracy
from axs6.studies.comparison import hardware
from axs6.studies.comparison.accumulators import compare_accumulators
from axs6.studies.comparison.errors import accuracy
from axs6.studies.models import MODELS
from axs6.synth.sweep import sweep
from axs6.torch.policy import Policy

Cli = Callable[..., Any]
TINY = "int2_e4m0_t8"


@pytest.fixture(autouse=True)
def cache(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("AXS6_CACHE", str(tmp_path / "cache"))


@pytest.mark.slow
def test_areas_stand_beside_errors(main: Cli) -> None:
    chosen = ("--format", TINY, "--format", "uint8", "--accumulator", "paper", "--fraction", "4")
    chosen += ("--length", "64", "--columns", "dot")
    shown = main("study", "accumulators", *chosen).succeeded()
    assert "delay, ps" in shown
    assert "¹ uint8 has zero points, for which there is no hardware" in shown
    figures = json.loads(main("study", "accumulators", *chosen, "--json", "-").succeeded())
    tiny, missing = figures["series"]
    given = {"format": TINY, "accumulator": "fp32,reduction=64,fraction=4"}
    (same,) = sweep(["dot"], parameters=given, **hardware.options(None)).results
    assert same.cached
    assert same.measured is not None
    for column in ("area", "delay_ps"):
        assert tiny[column] == [same.measured.figures[column]]
        assert missing[column] == [None]
    assert list(missing["missing"]) == ["area", "delay_ps"]
    assert tiny["missing"] == {}
    single = (*chosen[:-1], "dot.area", "--json", "-")
    one, _ = json.loads(main("study", "accumulators", *single).succeeded())["series"]
    assert one["area"] == tiny["area"]
    assert "delay_ps" not in one


@pytest.mark.slow
def test_accuracies_are_those_of_a_policy() -> None:
    found = compare_accumulators([("mx4", "blackwell")], [2, 25], ["accuracy"])
    cells = found["mx4", "blackwell"]
    policy = Policy({"format": "mx4", "accumulator": "blackwell,fraction=2"})
    study = study_accuracy(
        "mlp", MODELS["mlp"](), formats=[], policies={"f = 2": policy}, backends=["emulated"]
    )
    assert (cells["mlp_accuracy"][0], cells["mlp_loss"][0]) == (
        study.runs[1].metric,
        study.runs[1].loss,
    )
    plain = {(name, column): cell for name, column, cell in accuracy(["mx4"])}
    assert cells["mlp_loss"][1] == plain["mx4", "mlp_loss"]
    assert cells["mlp_loss"][0] != cells["mlp_loss"][1]


def test_other_columns_are_refused_in_a_line(main: Cli) -> None:
    said = main("study", "accumulators", "--columns", "error").refused()
    assert "columns must be of dot, accuracy, not 'error'" in said
