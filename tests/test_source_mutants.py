"""Mutants of Python sources: which there are, and that a copy with a fault fails its tests."""

import ast
import difflib
import subprocess
from collections.abc import Callable
from pathlib import Path

import mutants
import pytest
from digests import ROOT
from mutations import mutations

SOURCE = '''"""Not 1 + 2."""
from typing import TYPE_CHECKING, Final

if TYPE_CHECKING:
    import os
    NOT_RUN = 1 < 2

__all__ = ["f"[0:]]
WIDTH: Final[tuple[int, 3]] = (7)

@cache(size=3)
def f(a: 1 + 1, b=True) -> 2 + 2:
    """Not 3."""
    if (a) <= (  # not <
        b
    ) and not a:
        raise ValueError(f"{a + 1} must be below {-1}")
    assert a + 1
    for _ in zip(a, b, strict=True):
        g(a) if isinstance(a, A | B) else None
        a <<= -b
        continue
    say("x")
    return min(a) if a.any() else x not in y


async def h():
    return None
'''

CHANGES = {
    ("WIDTH: Final[tuple[int, 3]] = (7)", "WIDTH: Final[tuple[int, 3]] = (8)"),
    ("WIDTH: Final[tuple[int, 3]] = (7)", "WIDTH: Final[tuple[int, 3]] = (6)"),
    ("def f(a: 1 + 1, b=True) -> 2 + 2:", "def f(a: 1 + 1, b=False) -> 2 + 2:"),
    ("if (a) <= (  # not <", "if (a) < (  # not <"),
    (") and not a:", ") or not a:"),
    (") and not a:", ") and  a:"),
    ('raise ValueError(f"{a + 1} must be below {-1}")', "pass"),
    (
        "g(a) if isinstance(a, A | B) else None",
        "g(a) if (not (isinstance(a, A | B))) else None",
    ),
    ("a <<= -b", "a >>= -b"),
    ("a <<= -b", "a <<= b"),
    ("continue", "break"),
    ('say("x")', "pass"),
    ("return min(a) if a.any() else x not in y", "return None"),
    ("return min(a) if a.any() else x not in y", "return max(a) if a.any() else x not in y"),
    ("return min(a) if a.any() else x not in y", "return min(a) if a.all() else x not in y"),
    ("return min(a) if a.any() else x not in y", "return min(a) if a.any() else x in y"),
    (
        "return min(a) if a.any() else x not in y",
        "return min(a) if (not (a.any())) else x not in y",
    ),
}


def test_every_fault_is_made_and_nothing_else() -> None:
    found = set()
    for mutation in mutations(SOURCE):
        wrong = mutation.applied(SOURCE)
        ast.parse(wrong)
        lines = list(difflib.ndiff(SOURCE.splitlines(), wrong.splitlines()))
        old, new = ([x[2:].strip() for x in lines if x.startswith(sign)] for sign in "-+")
        assert len(old) == len(new) == 1
        assert SOURCE.splitlines()[mutation.line - 1].strip() == old[0]
        found.add((old[0], new[0]))
    assert found == CHANGES


@pytest.mark.parametrize("name", ["golden/fp32.py", "golden/formats/names.py", "proof/aig.py"])
def test_mutants_of_sources_have_other_code_and_keys_of_their_own(name: str) -> None:
    source = (ROOT / name).read_text(encoding="utf-8")
    found = mutations(source)
    assert len({each.key for each in found}) == len(found) > 100
    plain = ast.dump(ast.parse(source))
    assert all(ast.dump(ast.parse(each.applied(source))) != plain for each in found[::60])


def test_keys_do_not_depend_on_lines() -> None:
    moved = SOURCE.replace("\n@cache", "\n# More.\n\n@cache")
    assert [x.key for x in mutations(moved)] == [x.key for x in mutations(SOURCE)]
    assert mutants.chosen("a", SOURCE, 20)[:5] == mutants.chosen("a", SOURCE, 5)
    assert mutants.chosen("a", SOURCE, 5) != mutants.chosen("b", SOURCE, 5)


LOWEST = """
def lowest(values, place=0):
    found = values[place]
    while place < len(values):
        found = min(found, values[place])
        place += 1
    return found
"""
TEST = """
from axs6.golden.one import lowest

def test_lowest():
    assert lowest([3, 1, 2]) == 1
"""
MORE = "    assert lowest([1, 2]) == 1\n"
KEY = "0 becomes 1 (1)"
EQUAL = {("0 becomes -1 (1)", "def lowest(values, place=0):"): "the last value comes twice"}


@pytest.fixture
def project(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """A project with one source and one test, which misses one fault."""
    files = {
        "golden/one.py": LOWEST,
        "tests/test_one.py": TEST,
        "axs6/__init__.py": "",
        "axs6/golden/__init__.py": "",
        "benchmarks/forks.py": (ROOT / "benchmarks" / "forks.py").read_text(encoding="utf-8"),
    }
    for name, text in files.items():
        (tmp_path / name).parent.mkdir(parents=True, exist_ok=True)
        (tmp_path / name).write_text(text, encoding="utf-8")
    (tmp_path / "axs6" / "golden" / "one.py").symlink_to("../../golden/one.py")
    subprocess.run(["git", "init", "-q"], cwd=tmp_path, check=True)
    monkeypatch.setattr(mutants, "ROOT", tmp_path)
    monkeypatch.setattr(mutants, "SPARE", 1)
    monkeypatch.setattr(mutants, "TESTS", {"golden/one.py": ("tests/test_one.py",)})
    monkeypatch.setattr(mutants, "EQUAL", {"golden/one.py": EQUAL})
    return tmp_path


@pytest.fixture
def report(project: Path, capsys: pytest.CaptureFixture[str]) -> Callable[..., str]:
    """Runs the program in the project and gives what it prints: what it ran and the table."""

    def run(*options: str, status: int = 0) -> str:
        assert mutants.main(["--state", str(project / "state.json"), *options]) == status
        printed = capsys.readouterr()
        return printed.out + printed.err

    return run


def test_outcomes_are_kept_as_long_as_the_code_is(project: Path, report) -> None:
    row = "| golden/one.py | 8 | 6 | 1 | 1 | 1 | 85.7% |"
    alive = (
        f"golden/one.py:2: {KEY}\n"
        "  - def lowest(values, place=0):\n  + def lowest(values, place=1):\n"
    )
    printed = report(status=1)
    assert "golden/one.py: 7 mutants" in printed
    assert row in printed
    assert printed.endswith(alive)
    assert (project / "golden/one.py").read_text() == LOWEST

    (project / "golden/one.py").write_text(f"# The lowest.{LOWEST}")
    printed = report(status=1)
    assert printed.startswith("| source")
    assert row in printed

    (project / "tests/test_one.py").write_text(TEST + MORE)
    assert "| golden/one.py | 1 | 0 | 0 | 1 | 0 | - |" in report("--report")
    assert "golden/one.py: 1 mutants" in report("--added")
    assert "| golden/one.py | 8 | 7 | 1 | 1 | 0 | 100.0% |" in report("--report")


def test_tests_that_cannot_judge_are_refused(project: Path, report) -> None:
    (project / "tests/test_one.py").write_text(TEST.replace("== 1", "== 2"))
    assert "axs6: tests of golden/one.py must pass on it; they gave" in report(status=2)
    (project / "tests/test_one.py").write_text("def test_nothing():\n    pass\n")
    message = "axs6: tests of golden/one.py must import it; they pass without it"
    assert message in report(status=2)
    assert "axs6: --only must be part of a source's name, not ['two']" in report(
        *("--only", "two"), status=2
    )
    (project / "state.json").write_text("{}")
    assert "state.json must be a file of this program" in report(status=2)


def test_every_source_has_tests_and_equal_mutants_are_there() -> None:
    for tests in mutants.TESTS.values():
        assert all((ROOT / each.partition("::")[0]).is_file() for each in tests)
    for name, reasons in mutants.EQUAL.items():
        source = (ROOT / name).read_text(encoding="utf-8")
        lines = source.splitlines()
        found = {(x.key, lines[x.line - 1].strip()) for x in mutations(source)}
        assert set(reasons) <= found
