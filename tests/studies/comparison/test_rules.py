"""Rules of exponent scales compared."""

import json
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

from axs6.studies.comparison import hardware
from axs6.studies.scales import study_scales
from axs6.synth.sweep import sweep

Cli = Callable[..., Any]


@pytest.fixture(autouse=True)
def cache(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("AXS6_CACHE", str(tmp_path / "cache"))


def test_rows_are_those_of_the_study(main: Cli) -> None:
    chosen = ("--format", "mxfp4", "--format", "mx9-ceil", "--vectors", "3", "--json", "-")
    figures = json.loads(main("study", "scales", *chosen).succeeded())
    rows = study_scales(["mxfp4", "mx9"], 3).rows
    names = [f"{x.format}-{x.rule}".removesuffix("-floor") for x in rows]
    assert [row["format"] for row in figures["formats"]] == names
    for row, same in zip(figures["formats"], rows, strict=True):
        assert (row["qsnr_db"], row["saturated"]) == (same.qsnr_db, same.saturated)


@pytest.mark.slow
def test_encoders_are_those_of_axs6_area() -> None:
    names = ["int2_e4m0_t8", "int2_e4m0-rceil_t8"]
    how, columns = hardware.options(None), {"encoder_area": "area", "encoder_ps": "delay_ps"}
    told: list[str] = []
    found = list(hardware.encoder(names, how, told.append, columns))
    given = {"format": names[1], "dtype": "bf16"}
    (same,) = sweep(["encoder"], parameters=given, **how).results
    assert same.cached
    assert same.measured is not None
    for name, figure in columns.items():
        assert (names[1], name, same.measured.figures[figure]) in found
    assert len({figure for _, column, figure in found if column == "encoder_area"}) == len(names)
    assert told == [f"encoder format={name} ({i} of 2)" for i, name in enumerate(names, 1)]


@pytest.mark.parametrize(
    ("arguments", "message"),
    [
        (("--format", "int8"), "int8_float32_t0 has no exponent scale"),
        (("--columns", "encoder.area"), "columns of encoder must be of encoder_area, encoder_ps"),
        (("--columns", "cost"), "columns must be of qsnr, encoder, accuracy, not 'cost'"),
    ],
)
def test_wrong_requests_are_refused_in_a_line(
    main: Cli, arguments: tuple[str, ...], message: str
) -> None:
    assert message.partition(" ")[2] in main("study", "scales", *arguments).refused()
