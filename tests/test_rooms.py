"""Who may import whom: each room imports itself and the rooms below it."""

import ast
import os
from collections.abc import Iterator
from pathlib import Path

import pytest

ROOT = Path(__file__).parent.parent

BELOW = {
    "base": (),
    "golden": ("base",),
    "files": ("base", "golden"),
    "hw": ("base", "golden"),
    "sim": ("base", "golden", "hw"),
    "synth": ("base", "golden", "hw", "sim"),
    "proof": ("base", "golden", "hw", "sim", "synth"),
    "torch": ("base", "golden", "files", "hw", "sim"),
    "studies": ("base", "golden", "files", "hw", "sim", "synth", "torch"),
    "commands": ("base", "golden", "files", "hw", "sim", "synth", "proof", "torch", "studies"),
}
"""Each room, and the rooms that it may import; CONTRIBUTING.md draws them."""

BASE = ("damaged", "install", "replacing", "signals", "steps", "tables", "terminal")
"""Modules of `axs6` that import nothing of the project but each other."""


def room(module: str) -> str:
    """The room of a module: its folder, or `commands` for `axs6` itself and its other modules."""
    parts = module.split(".")
    if len(parts) > 1 and parts[1] in (*BASE, *BELOW):
        return "base" if parts[1] in BASE else parts[1]
    return "commands"


def modules() -> Iterator[tuple[str, Path]]:
    for folder, _, names in os.walk(ROOT / "axs6", followlinks=True):
        for name in names:
            if name.endswith(".py"):
                path = Path(folder) / name
                parts = path.relative_to(ROOT).with_suffix("").parts
                yield ".".join(parts).removesuffix(".__init__"), path


def imports(path: Path) -> Iterator[str]:
    """Modules of the project that a file names in imports, wherever they stand."""
    for node in ast.walk(ast.parse(path.read_text(encoding="utf-8"))):
        if isinstance(node, ast.Import):
            yield from (alias.name for alias in node.names if alias.name.startswith("axs6"))
        elif isinstance(node, ast.ImportFrom) and (node.module or "").startswith("axs6"):
            assert node.module is not None
            submodules = [f"{node.module}.{alias.name}" for alias in node.names]
            yield from submodules if node.module == "axs6" else (node.module,)


def upward(module: str, path: Path) -> list[str]:
    """Imports of a module from rooms that are not below its own."""
    own = room(module)
    return [name for name in imports(path) if room(name) not in (own, *BELOW[own])]


def test_every_room_imports_only_what_is_below_it() -> None:
    found = {module: names for module, path in modules() if (names := upward(module, path))}
    assert found == {}


@pytest.mark.parametrize(
    ("module", "line"),
    [
        ("axs6.golden.wrong", "from axs6.hw.registry import find"),
        ("axs6.hw.wrong", "    import axs6.sim.cache"),
        ("axs6.synth.wrong", "from axs6.studies.models import mlp"),
        ("axs6.sim.wrong", "from axs6 import torch"),
        ("axs6.replacing", "from axs6.golden import encode"),
    ],
)
def test_an_import_upwards_is_found(module: str, line: str, tmp_path: Path) -> None:
    path = tmp_path / "wrong.py"
    path.write_text(f"def function():\n    {line.strip()}\n")
    assert len(upward(module, path)) == 1


def test_every_folder_is_a_room() -> None:
    """`axs6/NAME` is a folder at the root, or lies in `axs6` itself."""
    links = {path.name: path.resolve() for path in (ROOT / "axs6").iterdir() if path.is_symlink()}
    assert set(links) == set(BELOW) - {"base", "commands"}
    assert all(folder.parent == ROOT for folder in links.values())
    assert {name for name in links if links[name].name != name} == {"torch"}
