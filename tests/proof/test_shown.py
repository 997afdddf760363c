"""What was shown of a part holds in later runs, as long as its gates stay."""

from pathlib import Path

import pytest

from axs6.hw.core.parameters import STRUCTURE
from axs6.hw.fp32 import multiply
from axs6.proof.cores import Core, Statement
from axs6.proof.shown import part_steps
from axs6.proof.steps import NotShownError, Steps


@pytest.fixture(autouse=True)
def _empty_cache(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("AXS6_CACHE", str(tmp_path / "cache"))


def _steps(
    asked: list[str], part: str = "addition", count: int = 1, shown: bool = True, beside: int = 1
) -> Steps:
    # Those behind the multiplier: of some hundred gates.
    steps = multiply.multiplication_steps(STRUCTURE)[1:]
    core, other = (Core(steps[:each], 60) for each in (count, beside))

    def show() -> None:
        asked.append(part)
        if not shown:
            raise NotShownError("it is not")

    statements = {
        "it is right": Statement(core, show, lambda item: None),
        "so is another": Statement(other, lambda: None, lambda item: None),
    }
    found = part_steps({part: statements})
    return {text: step for text, step in found.items() if "it is right" in text}


def _run(steps: Steps) -> list[str]:
    for step in steps.values():
        step()
    return [*steps]


def test_a_part_of_fp32_is_shown_once() -> None:
    asked: list[str] = []
    assert _run(_steps(asked)) == ["addition: it is right"]
    assert _run(_steps(asked)) == ["addition: it is right, as an earlier run has shown"]
    assert asked == ["addition"]


def test_other_gates_are_shown_again() -> None:
    asked: list[str] = []
    _run(_steps(asked))
    assert _run(_steps(asked, count=2)) == ["addition: it is right"]
    assert len(asked) == 2


def test_a_change_in_another_statement_of_the_part_counts() -> None:
    """One statement may be about the gates of several."""
    asked: list[str] = []
    _run(_steps(asked))
    assert _run(_steps(asked, beside=2)) == ["addition: it is right"]
    assert len(asked) == 2


def test_parts_that_depend_on_formats_are_shown_again() -> None:
    asked: list[str] = []
    for _ in range(2):
        _run(_steps(asked, "conversion"))
    assert len(asked) == 2


def test_what_was_not_shown_is_not_kept() -> None:
    asked: list[str] = []
    for _ in range(2):
        with pytest.raises(NotShownError):
            _run(_steps(asked, shown=False))
    assert len(asked) == 2
