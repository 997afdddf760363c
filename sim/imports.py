"""The modules that some modules import, and digests of their code.

What depends on code is good as long as the code stays: figures, and results of proofs.
"""

import ast
import hashlib
import re
from collections.abc import Iterable, Iterator
from functools import cache
from importlib.resources import files
from importlib.resources.abc import Traversable
from importlib.util import find_spec
from pathlib import Path


def code(file: Traversable) -> str:
    """The code of a file for its compiler or reader: the same for other layout and comments."""
    text = file.read_text(encoding="utf-8")
    if file.name.endswith(".py"):
        return _plain(_without_docstrings(ast.parse(text)))
    if file.name.endswith(".hpp"):
        text = re.sub(r"//[^\n]*", "", text)
    return " ".join(text.split())


def imported(
    modules: Iterable[str], packages: Iterable[str], without: Iterable[str] = ()
) -> list[str]:
    """Names of some modules and of what they import of some packages, at any depth, sorted.

    Args:
        modules: full names. packages: full names; imports of others are not followed. without:
            modules that are left out, with what they alone import.
    """
    within, left_out = tuple(packages), set(without)
    found: set[str] = set()
    waiting = list(modules)
    while waiting:
        name = waiting.pop()
        if name not in found:
            found.add(name)
            waiting += [x for x in _imports(name) if _is_in(x, within) and x not in left_out]
    return sorted(found)


@cache
def code_digest(
    modules: tuple[str, ...], packages: tuple[str, ...], without: tuple[str, ...] = ()
) -> str:
    """Digest of the code of `imported` modules, and of all other files beside them.

    The other files are sources in C++ and Verilog, and tables.
    """
    digest = hashlib.sha256()
    names = imported(modules, packages, without)
    for name in names:
        digest.update(f"{name}\n{_module_code(name)}\n".encode())
    folders = {name if _is_package(name) else name.rpartition(".")[0] for name in names}
    for folder in sorted(folders):
        for file in sorted(files(folder).iterdir(), key=lambda file: file.name):
            if file.name.endswith((".hpp", ".v", ".csv")):
                digest.update(f"{folder}/{file.name}\n{code(file)}\n".encode())
    return digest.hexdigest()


def _is_in(name: str, packages: Iterable[str]) -> bool:
    return any(name == each or name.startswith(f"{each}.") for each in packages)


@cache
def _path(name: str) -> Path | None:
    """The file of a module, if it is one in Python."""
    try:
        spec = find_spec(name)
    except ModuleNotFoundError:
        return None
    return Path(spec.origin) if spec and spec.origin and spec.origin.endswith(".py") else None


def _is_package(name: str) -> bool:
    path = _path(name)
    return path is not None and path.name == "__init__.py"


@cache
def _module_code(name: str) -> str:
    path = _path(name)
    return code(path) if path else ""


@cache
def _imports(name: str) -> frozenset[str]:
    """Full names of the modules that a module imports, and of their packages."""
    path = _path(name)
    if path is None:
        return frozenset()
    found: set[str] = set()
    for node in ast.walk(ast.parse(path.read_text(encoding="utf-8"))):
        if isinstance(node, ast.Import):
            found |= {x for alias in node.names for x in _with_packages(alias.name)}
        elif isinstance(node, ast.ImportFrom) and node.module:
            found |= set(_with_packages(node.module))
            inner = [f"{node.module}.{alias.name}" for alias in node.names]
            if _is_package(node.module):
                found |= {each for each in inner if _path(each)}
    return frozenset(found)


def _with_packages(name: str) -> Iterator[str]:
    """A module and the packages that it is in."""
    while name:
        yield name
        name = name.rpartition(".")[0]


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
