"""Figures go to files as JSON, CSV and LaTeX, of every command that has a table."""

import csv
import io
import json
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

from axs6.cli import command_line
from axs6.cli import commands as known_commands

Main = Callable[..., Any]

QUICK = [
    ("list",),
    ("list", "--formats"),
    ("list", "--accumulators"),
    ("info", "mxfp4"),
    ("compare", "mxfp8_e4m3", "mx9", "--columns", "bits,qsnr", "--vectors", "10"),
    ("study", "qsnr", "--format", "mxfp8_e4m3", "--vectors", "10"),
    ("study", "rounding", "--values", "320"),
    ("study", "scales", "--format", "mxfp4", "--vectors", "10"),
    ("study", "accumulators", "--format", "mx9", "--fraction", "9", "--length", "64"),
    pytest.param(
        ("validate", "--samples", "1", "--format", "e2m1fn_e8m0_t1"), marks=pytest.mark.slow
    ),
]
"""Commands that take no files and a few seconds at most."""


def rows_of(text: str) -> list[dict[str, str]]:
    return [*csv.DictReader(io.StringIO(text))]


@pytest.mark.parametrize("words", QUICK, ids=" ".join)
def test_tables_are_written_as_csv_and_latex(
    words: tuple[str, ...], main: Main, tmp_path: Path
) -> None:
    files = ("--csv", "t.csv", "--latex", "t.tex", "--json", "t.json")
    plain = main(*words).succeeded()
    assert main(*words, *files).succeeded() == plain
    rows = rows_of((tmp_path / "t.csv").read_text())
    assert rows
    assert all(None not in row for row in rows)
    header = (tmp_path / "t.csv").read_text().splitlines()[0].split(",")
    assert len(set(header)) == len(header)
    latex = (tmp_path / "t.tex").read_text().splitlines()
    assert latex[0].startswith(r"\begin{tabular}{l")
    body = latex[latex.index(r"\midrule") + 1 : latex.index(r"\bottomrule")]
    assert len(body) == len(rows)
    assert all(line.endswith(r" \\") for line in body)


def test_csv_has_the_numbers_of_json(main: Main, tmp_path: Path) -> None:
    asked = ("compare", "mxfp8_e4m3", "mx9", "--columns", "bits,qsnr", "--vectors", "10")
    text = main(*asked, "--csv", "-", "--json", "t.json").stdout
    formats = json.loads((tmp_path / "t.json").read_text())["formats"]
    for row, known in zip(rows_of(text), formats, strict=True):
        assert row["format"] == known["format"]
        assert float(row["gauss_db"]) == known["gauss_db"]
        assert row["bound_db"] == ("" if known["bound_db"] is None else str(known["bound_db"]))
    assert r"mxfp8\_e4m3 &" in main(*asked, "--latex", "-").stdout


def test_area_has_a_row_for_each_unit_or_point(main: Main, tmp_path: Path) -> None:
    main("area", "lfsr", "expander", "--block", "8", "--csv", "t.csv").succeeded()
    rows = rows_of((tmp_path / "t.csv").read_text())
    assert [row["unit"] for row in rows] == ["lfsr", "expander"]
    assert all(float(row["gate_equivalents"]) > 0 for row in rows)
    asked = ("area", "lfsr", "--sweep", "block=8 stages=0,1", "--csv", "s.csv")
    main(*asked, "--latex", "s.tex").succeeded()
    points = rows_of((tmp_path / "s.csv").read_text())
    assert [(row["block"], row["stages"]) for row in points] == [("8", "0"), ("8", "1")]
    assert json.loads(points[0]["parameters"])["block"] == 8


@pytest.mark.parametrize(
    ("files", "message"),
    [
        (("--csv", "x", "--json", "x"), "output x must not be the same file as output x"),
        (("--csv", "x", "--latex", "./x"), "output x must not be the same file as output x"),
        (("--csv", "-", "--json", "-"), "one option may name stdout, not both --json and --csv"),
        (("--csv", "/proc/no/t.csv"), "cannot write to /proc/no/t.csv: "),
        (("--latex", "."), "cannot write to .: it is a directory or in a protected directory"),
    ],
)
def test_files_that_cannot_be_written_are_refused_at_once(
    files: tuple[str, ...], message: str, main: Main
) -> None:
    for words in (("study", "qsnr", "--vectors", "10"), ("list",)):
        assert message in main(*words, *files).refused()


@pytest.mark.parametrize("option", ["--csv", "--latex"])
def test_texts_have_no_table(option: str, main: Main) -> None:
    said = main("info", "mxfp4", "--profile", "torchao", option, "x").refused()
    assert said == f"--profile is text: do not give {option} with it"


def test_every_command_with_figures_has_all_forms() -> None:
    tool: Any = command_line(known_commands())
    seen = 0
    stack = [tool]
    while stack:
        each = stack.pop()
        stack += getattr(each, "commands", {}).values()
        options = {name for parameter in each.params for name in parameter.opts}
        if "--json" in options:
            seen += 1
            assert {"--csv", "--latex"} <= options, each.name
    assert seen > 20
