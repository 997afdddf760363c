"""Lines on stderr while a command works."""

import os
import pty
import subprocess
import sys
from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np
import pytest

Cli = Callable[..., Any]


ITEMS = {
    f"{side}.{field}": np.zeros(shape, np.uint8)
    for side in "ab"
    for field, shape in (("exponent", (4,)), ("codes", (4, 8)))
}


@pytest.fixture
def arguments(tmp_path: Path) -> list[str]:
    """A simulation whose model must be compiled, the test's folder being the cache."""
    np.savez(tmp_path / "x.npz", **ITEMS)  # type: ignore[arg-type]
    return ["simulate", "block_dot", "--block", "8", "--input", "x.npz"]


def test_each_build_and_step_is_a_line(cli: Cli, arguments: list[str], tmp_path: Path) -> None:
    done = cli(*arguments, AXS6_CACHE=str(tmp_path))
    assert done.stderr.splitlines() == [
        "compiling a model for the batch simulator",
        "simulating",
    ]
    assert [line.split()[0] for line in done.succeeded().splitlines()] == ["unit", "block_dot"]
    assert cli(*arguments, AXS6_CACHE=str(tmp_path)).stderr == "simulating\n"
    (model,) = tmp_path.glob("batch-*/model.so")
    os.truncate(model, 0)
    warning, *steps = cli(*arguments, AXS6_CACHE=str(tmp_path)).stderr.splitlines()
    assert warning == f"axs6: cache entry {model.parent} is damaged: making it again"
    assert steps == done.stderr.splitlines()


def test_a_terminal_shows_progress_in_their_place(arguments: list[str], tmp_path: Path) -> None:
    terminal, end = pty.openpty()
    command = [sys.executable, "-m", "axs6", *arguments]
    done = subprocess.run(
        command, cwd=tmp_path, check=True, stdout=subprocess.PIPE, stderr=end, timeout=60
    )
    os.write(end, b"end")
    assert os.read(terminal, 1000) == b"end"
    os.close(terminal)
    os.close(end)
    assert b"block_dot" in done.stdout


def test_the_library_is_silent(tmp_path: Path) -> None:
    script = (
        "from axs6.hw.registry import find\n"
        "from axs6.sim.simulate import simulate\n"
        "unit = find('block_dot')\n"
        "simulate('block_dot', unit.corners(unit.parameters({'block': 8})), block=8)\n"
    )
    done = subprocess.run(
        [sys.executable, "-c", script],
        env={**os.environ, "AXS6_CACHE": str(tmp_path)},
        check=True,
        capture_output=True,
        timeout=60,
    )
    assert (done.stdout, done.stderr) == (b"", b"")
    assert list(tmp_path.glob("batch-*"))


@pytest.mark.parametrize(
    ("command", "steps"),
    [
        (["generate", "lfsr", "-o", "rtl"], ["writing the Verilog of lfsr"]),
        pytest.param(
            ["area", "lfsr", "--block", "8"],
            ["writing the Verilog of lfsr", "synthesising lfsr on generic"],
            marks=pytest.mark.slow,
        ),
        pytest.param(
            ["study", "accuracy", "mlp", "--block", "8", "--samples", "8", "--backend", "emulated"],
            [
                *("preparing the model", "running fp32", "running emulated, axs6_t8"),
                "compiling a model for the kernels of torch's emulation",
            ],
            marks=pytest.mark.slow,
        ),
    ],
    ids=["generate", "area", "study"],
)
def test_steps_of_other_commands(
    cli: Cli, command: list[str], steps: list[str], tmp_path: Path
) -> None:
    done = cli(*command, AXS6_CACHE=str(tmp_path))
    assert done.succeeded()
    assert done.stderr.splitlines() == steps
