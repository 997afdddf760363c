"""A small share of what `python fuzz/run.py` does, and that it finds what is wrong."""

import subprocess
import sys
from pathlib import Path

import pytest

PROGRAM = Path(__file__).parents[1] / "fuzz/run.py"


def fuzz(*arguments: str, cwd: Path) -> subprocess.CompletedProcess[str]:
    return subprocess.run(
        [sys.executable, PROGRAM, *arguments],
        cwd=cwd,
        check=False,
        capture_output=True,
        text=True,
        timeout=300,
    )


@pytest.mark.parametrize("inputs", [100, pytest.param(10_000, marks=pytest.mark.slow)])
def test_inputs_are_treated_as_documented(inputs: int, tmp_path: Path) -> None:
    done = fuzz("--inputs", str(inputs), cwd=tmp_path)
    assert done.returncode == 0, done.stdout + done.stderr
    *targets, total = done.stdout.splitlines()
    names = ("unpack", "container", "checkpoint", "gguf", "onnx", "npy", "npz", "command")
    assert [line.split(":")[0] for line in targets] == [f"pass {name}" for name in names]
    assert ", 0 findings, " in total
    assert list(tmp_path.iterdir()) == []


def test_what_is_wrong_is_found(tmp_path: Path) -> None:
    """A wrong answer, a hang, memory without bound and a process that dies, each kept as it was."""
    found = {
        "lenient": "other bytes are the same blocks",
        "endless": "in endless",
        "boundless": "Unable to allocate",
        "dying": "the input is in",
    }
    names = [f"wrong-{name}" for name in found]
    done = fuzz(*names, "--inputs", "20000", cwd=tmp_path)
    assert done.returncode == 1, done.stderr
    assert ", 4 findings" in done.stdout
    parts = done.stdout.split("FAIL ")[1:]
    for name, part in zip(names, parts, strict=True):
        assert part.startswith(f"{name}: ")
        assert found[name.removeprefix("wrong-")] in part
        assert len(list(tmp_path.glob(f"fuzz-{name}-*.bin"))) == 1
    (kept,) = tmp_path.glob("fuzz-wrong-lenient-*.bin")
    again = fuzz("wrong-lenient", "--replay", str(kept), cwd=tmp_path)
    assert "AssertionError: other bytes are the same blocks" in again.stderr
    assert again.returncode == 1
    assert fuzz("unpack", "--replay", str(kept), cwd=tmp_path).stdout == "unpack: accepted: False\n"
