"""Digests of what figures are measured on: designs and sources, whatever their layout."""

import ast
import re
from functools import cache
from pathlib import Path

from axs6.sim.designs import digest

ROOT = Path(__file__).parent.parent


@cache
def of_files(pattern: str) -> str:
    """Digest of the code of the files that match a pattern, relative to the repository's root.

    Comments, docstrings and layout do not count.

    Raises:
        ValueError: no file matches.
    """
    paths = sorted(ROOT.glob(pattern))
    if not paths:
        raise ValueError(f"a figure's source must be a file of the project, not {pattern}")
    return digest("\0".join(f"{path.relative_to(ROOT)}\0{code(path)}" for path in paths))


def code(path: Path) -> str:
    """The code of a file for its compiler or reader: the same for other layout and comments."""
    text = path.read_text(encoding="utf-8")
    if path.suffix == ".py":
        return _plain(_without_docstrings(ast.parse(text)))
    if path.suffix == ".hpp":
        text = re.sub(r"//[^\n]*", "", text)
    return " ".join(text.split())


@cache
def of_package(name: str) -> str:
    """Version of a package with which figures are measured: the one in constraints.txt.

    Raises:
        ValueError: constraints.txt does not have it.
    """
    for line in (ROOT / "constraints.txt").read_text().splitlines():
        package, _, version = line.partition("==")
        if package == name:
            return version.strip()
    raise ValueError(f"a figure's package must be in constraints.txt, which lacks {name}")


def _without_docstrings(tree: ast.AST) -> ast.AST:
    for node in ast.walk(tree):
        body = getattr(node, "body", None)
        if isinstance(body, list):
            kept = [statement for statement in body if not _is_constant(statement)]
            node.body = kept  # type: ignore[attr-defined]
    return tree


def _is_constant(statement: ast.stmt) -> bool:
    return isinstance(statement, ast.Expr) and isinstance(statement.value, ast.Constant)


def _plain(node: object) -> str:
    """A syntax tree as text, the same in every version of Python that reads it the same."""
    if isinstance(node, ast.AST):
        fields = [
            f"{name}={_plain(value)}"
            for name, value in ast.iter_fields(node)
            if value is not None and value != []
        ]
        return f"{type(node).__name__}({','.join(fields)})"
    if isinstance(node, list):
        return f"[{','.join(map(_plain, node))}]"
    return repr(node)
