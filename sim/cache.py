"""A cache of builds on disk, keyed by everything that goes into them."""

import hashlib
import os
import shutil
import tempfile
from collections.abc import Callable, Sequence
from functools import cache
from importlib.resources import files
from pathlib import Path


def cache_folder() -> Path:
    """$AXS6_CACHE, or `axs6` in $XDG_CACHE_HOME or ~/.cache."""
    if folder := os.environ.get("AXS6_CACHE"):
        return Path(folder)
    base = os.environ.get("XDG_CACHE_HOME") or Path.home() / ".cache"
    return Path(base) / "axs6"


@cache
def sources(*packages: str) -> str:
    """Digest of the source files of packages: what they generate is theirs as long as it stays."""
    digest = hashlib.sha256()
    for package in packages:
        for file in sorted(files(package).iterdir(), key=lambda file: file.name):
            if file.name.endswith((".py", ".hpp", ".csv")):
                digest.update(f"{package} {file.name}\n".encode() + file.read_bytes())
    return digest.hexdigest()


def entry(kind: str, key: Sequence[str]) -> Path:
    """Folder that `cached` fills for a key, whether it is there yet or not."""
    digest = hashlib.sha256("\0".join(key).encode()).hexdigest()[:24]
    return cache_folder() / f"{kind}-{digest}"


def cached(kind: str, key: Sequence[str], build: Callable[[Path], None]) -> Path:
    """Folder with the outcome of `build`, made at most once for each key.

    The build runs in a folder of its own, which takes its final name when it is complete: a build
    that is interrupted leaves nothing under that name, and of two at once the first one wins.

    Args:
        kind: first part of the folder's name.
        key: texts that decide what the build makes.
        build: fills the folder it is given.

    Raises:
        OSError: the cache cannot be written; the message names its folder.
    """
    final = entry(kind, key)
    if final.is_dir():
        return final
    try:
        final.parent.mkdir(parents=True, exist_ok=True)
        partial = Path(tempfile.mkdtemp(prefix=f"{kind}-partial-", dir=final.parent))
    except OSError as error:
        raise OSError(f"cannot write to the cache {final.parent}: {error.strerror}") from error
    try:
        build(partial)
        try:
            partial.rename(final)
        except OSError:
            if not final.is_dir():
                raise
    finally:
        shutil.rmtree(partial, ignore_errors=True)
    return final
