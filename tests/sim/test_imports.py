"""What modules import, and digests of their code."""

from pathlib import Path

import pytest

from axs6.sim.imports import _imports, _module_code, code_digest, imported, module_file

FILES = {
    "__init__.py": "",
    "start.py": "import json\nfrom somepackage.inner import deep\nfrom somepackage import side\n",
    "side.py": "def f():\n    from somepackage.late import X\n",
    "late.py": "X = 1\n",
    "alone.py": "X = 1\n",
    "inner/__init__.py": "",
    "inner/deep.py": '"""Text."""\nimport somepackage.start  # again\n',
    "inner/table.csv": "1,2\n",
}


@pytest.fixture
def package(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    root = tmp_path / "somepackage"
    (root / "inner").mkdir(parents=True)
    for name, text in FILES.items():
        (root / name).write_text(text)
    monkeypatch.syspath_prepend(tmp_path)
    return root


def fresh_digest() -> str:
    for each in (code_digest, _imports, _module_code, module_file):
        each.cache_clear()
    return code_digest(("somepackage.start",), ("somepackage",))


def test_imports_are_followed_at_any_depth_within_packages(package: Path) -> None:
    fresh_digest()
    names = [".inner", ".inner.deep", ".late", ".side", ".start"]
    start = ["somepackage.start"]
    assert imported(start, ["somepackage"]) == [f"somepackage{name}" for name in names]
    found = imported(start, ["somepackage.inner"])
    assert found == ["somepackage.inner.deep", "somepackage.start"]
    without = imported(start, ["somepackage"], ["somepackage.side"])
    assert "somepackage.late" not in without


@pytest.mark.parametrize(
    ("name", "text", "same"),
    [
        ("inner/deep.py", '"""Other text."""\nimport  somepackage.start\n', True),
        ("alone.py", "X = 2\n", True),
        ("late.py", "X = 2\n", False),
        ("inner/table.csv", "1,3\n", False),
    ],
)
def test_the_digest_is_of_code_that_is_imported(
    package: Path, name: str, text: str, same: bool
) -> None:
    before = fresh_digest()
    (package / name).write_text(text)
    assert (fresh_digest() == before) is same
