"""The comparison of formats, from Python and on the command line."""

import json
import os
import signal
import subprocess
import sys
import time
from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np
import pytest

from axs6.golden import block_format, qsnr
from axs6.golden.metrics import qsnr_bound
from axs6.studies.comparison import errors, hardware
from axs6.studies.comparison.compare import compare
from axs6.studies.comparison.table import FormatComparison
from axs6.studies.distributions import DISTRIBUTIONS, draw
from axs6.studies.qsnr import measure
from axs6.synth.energy_stimulus import RANDOM
from axs6.synth.sweep import store, sweep

Cli = Callable[..., Any]

SMALL, REFUSED = "int2_e8m0_t8", "e2m1_e8m0_t1"
CHEAP = ["bits", "qsnr"]


@pytest.fixture(scope="module")
def folder(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """The cache of all comparisons below."""
    return tmp_path_factory.mktemp("cache")


@pytest.fixture(autouse=True)
def cache(folder: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("AXS6_CACHE", str(folder))


@pytest.fixture(scope="module")
def found(folder: Path) -> FormatComparison:
    """A small format, and one without hardware: each value has a scale of its own."""
    with pytest.MonkeyPatch.context() as patch:
        patch.setenv("AXS6_CACHE", str(folder))
        return compare([SMALL, REFUSED], [*CHEAP, "cost"], vectors=3)


def test_bits_and_qsnr_are_those_of_the_format(found: FormatComparison) -> None:
    for name, row in found.rows.items():
        bits = [row[f"{x}bits"] for x in ("", "packed_", "memory_")]
        assert bits == [float(x) for x in block_format(name).bits_a_value]
        for each in DISTRIBUTIONS:
            (x,) = draw(3, 0, each)
            assert row[f"{each}_db"] == pytest.approx(qsnr(x, name))
    assert found.rows[SMALL]["bound_db"] == qsnr_bound(SMALL)


def test_areas_are_those_of_axs6_area(found: FormatComparison) -> None:
    row = found.rows[SMALL]
    how = {"optimise": None, "adder_cells": False, "fmax": False, "liberty": None}
    for unit, given in (("block_dot", {}), ("encoder", {"dtype": "bf16"})):
        (same,) = sweep(
            [unit], parameters={"format": SMALL, **given}, target="sky130", **how
        ).results
        assert same.cached
        assert same.measured is not None
        column = "dot_area" if unit == "block_dot" else f"{unit}_area"
        assert row[column] == same.measured.figures["area"] > 100
    assert row["mac_area"] == row["dot_area"] / 8
    assert row["value_area"] == row["encoder_area"] / 8
    assert 0.2 < row["of_bound"] < 1
    assert row["delay_ps"] > 500


@pytest.mark.slow
def test_formats_that_choose_scales_have_encoders_that_do() -> None:
    names = [f"{SMALL}_mse", SMALL]
    found = compare(names, ["cost"])
    how = {"optimise": None, "adder_cells": False, "fmax": False, "liberty": None}
    for unit, name in zip(("choice_encoder", "encoder"), names, strict=True):
        (same,) = sweep(
            [unit], parameters={"format": name, "dtype": "bf16"}, target="sky130", **how
        ).results
        assert same.cached
        assert same.measured is not None
        assert found.rows[name]["encoder_area"] == same.measured.figures["area"] > 100


def test_what_cannot_be_had_says_why(found: FormatComparison) -> None:
    row = found.rows[REFUSED]
    assert row["dot_area"] == "block must be a power of two from 2 to 128 here, not 1"
    assert row["dot_area"] == row["of_bound"] == row["lanes"]
    assert row["encoder_area"] == "block must be one of 8, 16, 32, 64, 128, not 1"
    assert row["value_area"] == row["encoder_area"]
    assert str(row["bound_db"]).startswith("Theorem 1 is of elements with a fixed point")
    notes = found.notes()
    assert len(notes) == 4
    cell = found.table().texts[1][1 + [x.name for x in found.columns].index("encoder_area")]
    assert cell == "-³"
    assert notes[2] == f"³ {row['encoder_area']}"


def test_matrices_smaller_than_a_tile_say_so(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(
        errors, "_matrices", lambda: {key: [np.ones((10, 64))] for key in errors.KINDS}
    )
    (cell, *_) = errors.recorded(["int4_e8m0_t16x128"])
    assert str(cell[2]).endswith(
        "tiles of 16 x 128 values, which need as many rows or columns, not a matrix of 10 x 64"
    )


def test_what_was_measured_is_not_measured_again(
    found: FormatComparison, monkeypatch: pytest.MonkeyPatch
) -> None:
    def never(*given: Any, **named: Any) -> None:
        raise AssertionError("measured again")

    monkeypatch.setattr(store, "area", never)
    monkeypatch.setattr("axs6.studies.qsnr.measure", never)
    again = compare([SMALL, REFUSED], [*CHEAP, "cost"], vectors=3)
    assert again.to_dict() == found.to_dict()
    with pytest.raises(AssertionError, match="measured again"):
        compare([SMALL], ["qsnr"], vectors=4)


def test_an_interrupted_comparison_goes_on_where_it_was(monkeypatch: pytest.MonkeyPatch) -> None:
    done: list[str] = []

    def counted(*given: Any, distribution: str) -> Any:
        done.append(distribution)
        return measure(*given, distribution=distribution)

    def interrupt(line: str, number: int, total: int) -> None:
        if number == 2:
            raise KeyboardInterrupt

    monkeypatch.setattr("axs6.studies.qsnr.measure", counted)
    with pytest.raises(KeyboardInterrupt):
        compare(["mx6"], ["qsnr"], vectors=5, progress=interrupt)
    assert done == ["paper", "gauss"]
    row = compare(["mx6"], ["qsnr"], vectors=5).rows["mx6"]
    assert done == list(DISTRIBUTIONS)
    (x,) = draw(5, 0, "outliers")
    assert row["outliers_db"] == pytest.approx(qsnr(x, "mx6"))


def test_progress_counts_up_to_all_cells() -> None:
    seen: list[tuple[int, int]] = []
    compare(["mxfp4", "axs6"], CHEAP, vectors=1, progress=lambda *x: seen.append(x[1:]))
    assert seen == [(number, 20) for number in range(1, 21)]


@pytest.mark.slow
def test_energy_is_that_of_axs6_area(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(hardware, "DIGITS", RANDOM)
    row = compare([SMALL], ["energy"]).rows[SMALL]
    how = {**hardware.options(None), "stimulus": RANDOM}
    (same,) = sweep(["block_dot"], parameters={"format": SMALL}, **how).results
    assert same.cached
    assert same.measured is not None
    assert same.measured.energy is not None
    assert row["mac_fj"] == same.measured.energy.measured.per_operation > 1


@pytest.mark.slow
def test_accuracy_is_that_of_the_study(monkeypatch: pytest.MonkeyPatch) -> None:
    from axs6.studies.accuracy import study_accuracy
    from axs6.studies.models import mlp

    monkeypatch.setattr(errors, "BUILT_IN", ("mlp",))
    cells = {(name, column): cell for name, column, cell in errors.accuracy(["int2_e8m0_t8"])}
    study = study_accuracy("mlp", mlp(), formats=["int2_e8m0_t8"], backends=["emulated"])
    for name, run in zip((errors.FP32, "int2_e8m0_t8"), study.runs, strict=True):
        assert cells[name, "mlp_accuracy"] == run.metric
        assert cells[name, "mlp_loss"] == run.loss
    assert cells["int2_e8m0_t8", "mlp_loss"] > cells["fp32", "mlp_loss"] > 0


def test_the_command_writes_all_files(main: Cli, tmp_path: Path) -> None:
    files = ("--markdown", "a.md", "--html", "a.html", "--json", "-")
    done = main("compare", "mx4,mx4", "uint8", "--columns", "qsnr,bits", "--vectors", "2", *files)
    figures = json.loads(done.succeeded())
    assert [row["format"] for row in figures["formats"]] == ["mx4", "uint8"]
    assert figures["formats"][1]["bound_db"] is None
    assert figures["formats"][1]["missing"]["bound_db"].startswith("Theorem 1 is of")
    assert figures["columns"] == ["bits", "qsnr"]
    assert figures["random_vectors"] == 2
    for name in ("a.md", "a.html"):
        text = (tmp_path / name).read_text()
        assert "axs6 compare mx4,mx4 uint8" in text
        assert f"{figures['formats'][0]['paper_db']:.2f}" in text
        assert "¹ Theorem 1 is of" in text


def test_single_columns_are_chosen(main: Cli) -> None:
    """The table and JSON have these columns alone, in the usual order."""
    chosen = ("mx4", "--columns", "qsnr.bound_db,qsnr.gauss_db,bits.bits", "--vectors", "2")
    (row,) = json.loads(main("compare", *chosen, "--json", "-").succeeded())["formats"]
    assert list(row) == ["format", "string", "bits", "gauss_db", "bound_db", "missing"]
    whole = ("mx4", "--columns", "qsnr.bound_db,bits,qsnr", "--vectors", "2")
    (every,) = json.loads(main("compare", *whole, "--json", "-").succeeded())["formats"]
    assert len(every) == 13
    assert row.items() <= every.items()


@pytest.mark.parametrize(
    ("arguments", "message"),
    [
        (("mx5", "--columns", "bits"), "'mx5' is no block format"),
        (("--columns", "bits,bits."), "columns of bits must be of bits, packed_bits, memory_bits"),
        (("--columns", "bits,area"), "columns must be of bits, qsnr, recorded, cost, energy"),
        (
            ("--columns", "qsnr", "--vectors", "0"),
            "vectors must be an integer of at least 1, not 0",
        ),
        (("--columns", "bits", "--html", "."), "cannot write to ."),
        (("--columns", "cost", "--jobs", "0"), "jobs must be an integer of at least 1, not 0"),
    ],
)
def test_wrong_requests_are_refused_in_a_line(
    main: Cli, arguments: tuple[str, ...], message: str
) -> None:
    assert main("compare", *arguments).refused().startswith(message)


def test_a_killed_command_leaves_what_it_measured(folder: Path, tmp_path: Path) -> None:
    command = [sys.executable, "-m", "axs6", "compare", "mx4", "mx6", "--columns", "qsnr"]
    command += ["--vectors", "5000"]
    before = set(folder.glob("qsnr-*"))
    run = subprocess.Popen(command, cwd=tmp_path, stdout=subprocess.DEVNULL, env=os.environ)
    deadline = time.monotonic() + 120
    while not set(folder.glob("qsnr-????????????????????????")) - before:
        assert run.poll() is None
        assert time.monotonic() < deadline
        time.sleep(0.05)
    run.send_signal(signal.SIGKILL)
    run.wait()
    left = set(folder.glob("qsnr-????????????????????????")) - before
    assert 1 <= len(left) < 12
