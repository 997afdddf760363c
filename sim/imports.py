"""The modules that some modules import, and digests of their code.

What depends on code is good as long as the code stays: figures, and results of proofs.
"""

import ast
import hashlib
import re
from collections.abc import Iterable
from functools import cache
from importlib.util import find_spec
from pathlib import Path


def code(file: Path) -> str:
    """The code of a file for its compiler or reader: the same for other layout and comments."""
    text = file.read_text(encoding="utf-8")
    if file.suffix == ".py":
        return _plain(_without_docstrings(ast.parse(text)))
    if file.suffix == ".hpp":
        text = re.sub(r"//[^\n]*", "", text)
    return " ".join(text.split())


def imported(
    modules: Iterable[str], packages: Iterable[str], without: Iterable[str] = ()
) -> list[str]:
    """Names of some modules and of what they import from some packages, at any depth, sorted.

    Args:
        modules: full names. packages: full names of those whose modules and inner packages are
            followed; they themselves, whose `__init__` may import all, are not. without: modules
            that are left out, with what they alone import.
    """
    within, left_out = tuple(packages), set(without)
    found: set[str] = set()
    waiting = list(modules)
    while waiting:
        name = waiting.pop()
        if name not in found and module_file(name):
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
        place = module_file(folder)
        for file in sorted(place.parent.iterdir()) if place else ():
            if file.suffix in (".hpp", ".v", ".csv"):
                digest.update(f"{folder}/{file.name}\n{code(file)}\n".encode())
    return digest.hexdigest()


def _is_in(name: str, packages: Iterable[str]) -> bool:
    return any(name.startswith(f"{each}.") for each in packages)


@cache
def module_file(name: str) -> Path | None:
    """The file of a module in Python, if there is one; nothing is imported but the top package."""
    top, *inner = name.split(".")
    spec = find_spec(top)
    for folder in (spec and spec.submodule_search_locations) or ():
        place = Path(folder).joinpath(*inner)
        file = place / "__init__.py" if place.is_dir() else place.with_suffix(".py")
        if file.is_file():
            return file
    return None


def _is_package(name: str) -> bool:
    path = module_file(name)
    return path is not None and path.name == "__init__.py"


@cache
def _module_code(name: str) -> str:
    path = module_file(name)
    return code(path) if path else ""


@cache
def _imports(name: str) -> frozenset[str]:
    """Full names of what a module imports: modules, or names in modules."""
    path = module_file(name)
    if path is None:
        return frozenset()
    found: set[str] = set()
    for node in ast.walk(ast.parse(path.read_text(encoding="utf-8"))):
        if isinstance(node, ast.Import):
            found |= {alias.name for alias in node.names}
        elif isinstance(node, ast.ImportFrom) and node.module:
            found |= {node.module, *(f"{node.module}.{alias.name}" for alias in node.names)}
    return frozenset(found)


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
