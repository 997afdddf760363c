"""`axs6 area --energy`, as a user meets it."""

import json
import re
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

Cli = Callable[..., Any]

AREA = ("area", "block_dot", "--block", "8", "--format", "mx4")


def test_energy_is_shown_and_in_the_json(main: Cli, tmp_path: Path) -> None:
    done = main(*AREA, "--energy", "--stimulus", "random", "--json", "figures.json")
    assert done.returncode == 0, done.stderr
    (report,) = json.loads((tmp_path / "figures.json").read_text())
    used = report["energy"]
    assert used["stimulus"] == "random"
    assert used["operations"] == used["reference"]["lanes"] == 8
    lines = {" ".join(line.split()) for line in done.stdout.splitlines()}
    assert f"relative {used['relative']:.3f} ± {used['relative_error']:.3f} 1" in lines
    shown = (f"{each['per_operation']:,.1f}" for each in (used, used["reference"]))
    assert f"a MAC {' '.join(shown)}" in lines
    assert max(map(len, done.stdout.splitlines()[-14:-2])) <= 80


def test_pages_have_the_energy_as_the_terminal_shows_it(main: Cli, tmp_path: Path) -> None:
    files = ("--html", "page.html", "--markdown", "page.md")
    done = main(*AREA, "--energy", "--stimulus", "random", *files)
    assert done.returncode == 0, done.stderr
    lines = [line.strip() for line in done.stdout.splitlines()]
    start = next(i for i, line in enumerate(lines) if line.startswith("Energy in NAND2 inputs, "))
    end = next(i for i, line in enumerate(lines) if line.startswith("Not counted: glitches"))
    rows = [re.split(r" {2,}", line) for line in lines[start + 2 : end] if line and line[0] != "─"]
    assert [row[0] for row in rows][:4] == ["block_dot", "an item", "a MAC", "relative"]
    text = (tmp_path / "page.md").read_text()
    shown = text[text.index("### Energy of block\\_dot on generic\n") :]
    assert f"\n{lines[start]}.\n" in shown
    assert f"\n{lines[end]}\n" in shown
    for row in rows[1:]:
        assert f"\n| {' | '.join(row)} |\n" in shown
        assert all(f">{cell}</td>" in (tmp_path / "page.html").read_text() for cell in row)


def test_without_energy_there_is_none(main: Cli) -> None:
    done = main(*AREA, "--json", "-")
    assert "energy" not in json.loads(done.stdout)[0]


@pytest.mark.parametrize(
    ("arguments", "message"),
    [
        (("--stimulus", "random"), "--stimulus needs --energy"),
        (("--energy", "--stimulus", "x"), "stimulus must be one of digits, random, not 'x'"),
        (("--energy", "--target", "ice40"), "energy needs gates, of generic, sky130 or"),
    ],
)
def test_bad_input_is_one_line(main: Cli, arguments: tuple[str, ...], message: str) -> None:
    assert message in main(*AREA, *arguments).refused()


@pytest.mark.parametrize(
    ("unit", "arguments", "message"),
    [
        ("block_dot", ("--stimulus", "x"), "stimulus must be one of digits, random, not 'x'"),
        (
            "block_dot",
            ("--target", "ecp5"),
            "energy needs gates, of generic, sky130 or a library, not ecp5",
        ),
        ("axis_dot", (), "axis_dot is on AXI4-Stream; unit must be one of block_dot, "),
    ],
)
def test_what_has_no_energy_is_refused_before_any_synthesis(
    cli: Cli, unit: str, arguments: tuple[str, ...], message: str, tmp_path: Path
) -> None:
    # A synthesis would exceed this limit, and say so.
    done = cli("area", unit, "--energy", "--timeout", "0.001", "--html", "page.html", *arguments)
    assert done.refused().startswith(message)
    assert done.stdout == ""
    assert list(tmp_path.iterdir()) == []


def test_a_missing_compiler_is_named_before_any_synthesis(cli: Cli) -> None:
    arguments = ("--energy", "--stimulus", "random", "--timeout", "0.001")
    assert cli(*AREA, *arguments, PATH="/none").refused() == "the batch simulator needs g++ on PATH"
