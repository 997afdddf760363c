from pathlib import Path

import pytest

from axs6.studies.user import load

MODEL = """
import torch
from torch import nn
from beside import METRIC

def model():
    return nn.Linear(8, 3), torch.ones(4, 8), torch.zeros(4, dtype=torch.int64), METRIC

def number():
    return 3

def two():
    return 1, 2

def strings():
    return "a", "b", "c"

def key():
    return {}["weights"]

def leave():
    raise SystemExit(3)
"""


@pytest.fixture
def path(tmp_path: Path) -> Path:
    (tmp_path / "beside.py").write_text("METRIC = 'cross_entropy'\n")
    (tmp_path / "mine.py").write_text(MODEL)
    return tmp_path / "mine.py"


def test_a_function_gives_a_workload(path: Path) -> None:
    workload = load(path, "model")
    assert workload.samples == 4
    assert workload.metric == "cross_entropy"


@pytest.mark.parametrize(
    ("function", "message"),
    [
        ("missing", "mine.py: no function 'missing' in this file"),
        ("number", "number must return .* not int"),
        ("two", "two must return .* not tuple of 2"),
        ("strings", "mine.py: model must be a torch.nn.Module, not str"),
        ("key", "mine.py:19: KeyError: 'weights'"),
        ("leave", "mine.py:22: SystemExit: 3"),
    ],
)
def test_bad_functions_are_refused(path: Path, function: str, message: str) -> None:
    with pytest.raises(ValueError, match=message):
        load(path, function)


def test_bad_files_are_refused(tmp_path: Path) -> None:
    with pytest.raises(FileNotFoundError, match=r"none.py: no such file"):
        load(tmp_path / "none.py", "model")
    (tmp_path / "text.txt").write_text("")
    with pytest.raises(ValueError, match=r"text.txt: the name must end in .py"):
        load(tmp_path / "text.txt", "model")
    (tmp_path / "broken.py").write_text("def model(:\n")
    with pytest.raises(ValueError, match=r"broken.py: SyntaxError: .*line 1"):
        load(tmp_path / "broken.py", "model")
    (tmp_path / "needs.py").write_text("\nimport no_such_module\n")
    with pytest.raises(ValueError, match=r"needs.py:2: ModuleNotFoundError: .*no_such_module"):
        load(tmp_path / "needs.py", "model")
