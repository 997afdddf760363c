"""What Amaranth does not document is used in one module."""

import ast
import subprocess
from collections.abc import Iterator
from pathlib import Path

import pytest

ROOT = Path(__file__).parents[3]
ALLOWED = "hw/core/amaranth_internals.py"
DOCUMENTED = "amaranth.back.verilog"


def undocumented(text: str) -> Iterator[str]:
    """Names of Amaranth that a file imports though they are private, or of its back ends."""
    for node in ast.walk(ast.parse(text)):
        if isinstance(node, ast.Import):
            names = [alias.name for alias in node.names]
        elif isinstance(node, ast.ImportFrom) and not node.level:
            names = [f"{node.module}.{alias.name}" for alias in node.names]
        else:
            continue
        for name in names:
            root, *parts = name.split(".")
            private = any(part.startswith("_") for part in parts)
            backend = parts[:1] == ["back"] and not name.startswith(DOCUMENTED)
            if root == "amaranth" and (private or backend):
                yield name


def test_one_module_imports_what_amaranth_does_not_document() -> None:
    listed = subprocess.run(
        ["git", "ls-files", "*.py"], cwd=ROOT, check=True, capture_output=True, text=True
    ).stdout.split()
    paths = [ROOT / name for name in listed if (ROOT / name).exists()]
    found = {
        str(path.relative_to(ROOT)): names
        for path in paths
        if (names := list(undocumented(path.read_text(encoding="utf-8"))))
    }
    assert found.keys() == {ALLOWED}
    assert len(found[ALLOWED]) == 4


@pytest.mark.parametrize(
    "line",
    [
        "from amaranth._toolchain import yosys",
        "from amaranth.hdl import _ast",
        "import amaranth.hdl._ir",
        "from amaranth.back import rtlil",
        "import amaranth.back.cxxrtl",
    ],
)
def test_such_an_import_is_found(line: str) -> None:
    assert list(undocumented(f"def function():\n    {line}\n"))
    assert not list(undocumented("from amaranth.back import verilog\nfrom amaranth import Module"))
