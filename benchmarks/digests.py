"""Digests of what figures are measured on: designs and sources, whatever their layout."""

from functools import cache
from pathlib import Path

from axs6.sim.designs import digest
from axs6.sim.imports import code

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
