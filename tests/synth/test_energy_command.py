"""`axs6 area --energy`, as a user meets it."""

import json
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

Cli = Callable[..., Any]

AREA = ("area", "block_dot", "--block", "8")


def test_energy_is_shown_and_in_the_json(cli: Cli, tmp_path: Path) -> None:
    done = cli(*AREA, "--energy", "--stimulus", "random", "--json", "figures.json")
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


def test_without_energy_there_is_none(cli: Cli) -> None:
    done = cli(*AREA, "--json", "-")
    assert "energy" not in json.loads(done.stdout)[0]


@pytest.mark.parametrize(
    ("arguments", "message"),
    [
        (("--stimulus", "random"), "--stimulus is the data for --energy and needs it"),
        (("--energy", "--stimulus", "x"), "stimulus must be one of digits, random, not 'x'"),
        (("--energy", "--target", "ice40"), "energy is that of gates, generic, sky130 or"),
    ],
)
def test_bad_input_is_one_line(cli: Cli, arguments: tuple[str, ...], message: str) -> None:
    assert message in cli(*AREA, *arguments).refused()
