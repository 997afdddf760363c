"""A cache of builds on disk, keyed by everything that goes into them."""

import contextlib
import fcntl
import hashlib
import json
import logging
import os
import pickle
import shutil
import tempfile
import threading
from collections.abc import Callable, Iterator, Sequence
from functools import cache
from importlib.resources import files
from importlib.resources.abc import Traversable
from pathlib import Path
from typing import Any, TypeVar

T = TypeVar("T")

DIGESTS = "digests.json"
"""File of an entry with the SHA-256 of each other file, by path."""

_VALUE = "value.pickle"
_LOCK = "lock"
_PARTIAL = "-partial-"
_SUFFIXES = (".py", ".hpp", ".csv", ".v")

_log = logging.getLogger("axs6")
_own = threading.local()


def cache_folder() -> Path:
    """$AXS6_CACHE, or `axs6` in $XDG_CACHE_HOME or ~/.cache."""
    if folder := os.environ.get("AXS6_CACHE"):
        return Path(folder)
    base = os.environ.get("XDG_CACHE_HOME") or Path.home() / ".cache"
    return Path(base) / "axs6"


@cache
def sources(*packages: str) -> str:
    """Digest of the source files of packages and of the folders in them.

    What they generate is theirs as long as it stays.
    """
    digest = hashlib.sha256()
    for package in packages:
        for path, file in _source_files(package, files(package)):
            digest.update(f"{path}\n".encode() + file.read_bytes())
    return digest.hexdigest()


def _source_files(path: str, folder: Traversable) -> Iterator[tuple[str, Traversable]]:
    for file in sorted(folder.iterdir(), key=lambda file: file.name):
        if file.is_dir():
            yield from _source_files(f"{path}/{file.name}", file)
        elif file.name.endswith(_SUFFIXES):
            yield f"{path}/{file.name}", file


def entry(kind: str, key: Sequence[str]) -> Path:
    """Folder that `cached` fills for a key, whether it is there yet or not."""
    digest = hashlib.sha256("\0".join([DIGESTS, *key]).encode()).hexdigest()[:24]
    return cache_folder() / f"{kind}-{digest}"


def intact(folder: Path) -> bool:
    """Whether an entry is there, with every file as it was built.

    A file is read again in the same process only if it was written to.
    """
    try:
        digests = json.loads((folder / DIGESTS).read_bytes())
        return all(_digest(folder / name) == digest for name, digest in digests.items())
    except (OSError, ValueError, AttributeError):
        return False


def cached(kind: str, key: Sequence[str], build: Callable[[Path], None]) -> Path:
    """Folder with the outcome of `build`, made once for each key and again where it is damaged.

    The build runs in a folder of its own, which takes its final name when it is complete: a build
    that is interrupted leaves nothing under that name. Who wants what another process or thread is
    building waits for it; where a build asks for its own key, the first to end wins. What a killed
    build leaves behind is removed by the next one that has the cache to itself.

    Args:
        kind: first part of the folder's name.
        key: texts that decide what the build makes.
        build: fills the folder it is given.

    Raises:
        OSError: the cache cannot be written; the message names its folder.
    """
    final = entry(kind, key)
    if intact(final):
        return final
    if final.is_dir():
        _log.warning("cache entry %s is damaged: making it again", final)
    with contextlib.ExitStack() as stack:
        try:
            final.parent.mkdir(parents=True, exist_ok=True)
            stack.enter_context(_building(final.parent))
            stack.enter_context(_alone(final))
            if intact(final):
                return final
            partial = Path(tempfile.mkdtemp(prefix=kind + _PARTIAL, dir=final.parent))
        except OSError as error:
            raise OSError(f"cannot write to the cache {final.parent}: {error.strerror}") from error
        stack.callback(shutil.rmtree, partial, ignore_errors=True)
        build(partial)
        _write_digests(partial)
        _put(partial, final)
    return final


def kept(kind: str, key: Sequence[str], make: Callable[[], T]) -> T:
    """The value under a key, made and written if it is not there or damaged; never None.

    Args:
        kind, key: as of `cached`.
        make: gives the value, which is kept as a pickle.

    Raises:
        OSError: the cache cannot be written; the message names its folder.
    """
    found: T | None = recalled(kind, key)
    if found is not None:
        return found
    made: list[T] = []

    def build(folder: Path) -> None:
        made.append(make())
        (folder / _VALUE).write_bytes(pickle.dumps(made[0]))

    folder = cached(kind, key, build)
    value: T | None = made[0] if made else _value(folder)
    return make() if value is None else value


def recalled(kind: str, key: Sequence[str]) -> Any:
    """The value that `kept` has under a key; None if there is none, or it is damaged."""
    return _value(entry(kind, key))


def _value(folder: Path) -> Any:
    return pickle.loads((folder / _VALUE).read_bytes()) if intact(folder) else None


@contextlib.contextmanager
def _building(folder: Path) -> Iterator[None]:
    """Share the lock of the cache while building; whoever has it alone first clears the cache."""
    with (folder / _LOCK).open("w") as lock:
        with contextlib.suppress(BlockingIOError):
            fcntl.flock(lock, fcntl.LOCK_EX | fcntl.LOCK_NB)
            for left in folder.glob(f"*{_PARTIAL}*"):
                shutil.rmtree(left, ignore_errors=True)
            for left in folder.glob(f"{_LOCK}-*"):
                left.unlink(missing_ok=True)
        fcntl.flock(lock, fcntl.LOCK_SH)
        yield


@contextlib.contextmanager
def _alone(final: Path) -> Iterator[None]:
    """Wait until nobody else builds an entry; a build inside one of the same entry goes ahead.

    The lock is a file, which is removed at the end: whoever has waited for it looks for the entry
    first, so that at worst one that failed is built by two.
    """
    building: set[Path] = _own.__dict__.setdefault("building", set())
    if final in building:
        yield
        return
    path = final.with_name(f"{_LOCK}-{final.name}")
    with path.open("w") as lock:
        fcntl.flock(lock, fcntl.LOCK_EX)
        building.add(final)
        try:
            yield
        finally:
            building.discard(final)
            path.unlink(missing_ok=True)


def _put(partial: Path, final: Path) -> None:
    """Give a build its final name, in place of a damaged entry; an intact one stays."""
    if intact(final):
        return
    damaged = partial.with_name(f"{partial.name}-damaged")
    with contextlib.suppress(FileNotFoundError):
        final.rename(damaged)
    try:
        partial.rename(final)
    except OSError:
        if not intact(final):
            raise
    shutil.rmtree(damaged, ignore_errors=True)


def _write_digests(folder: Path) -> None:
    built = (path for path in sorted(folder.rglob("*")) if path.is_file())
    digests = {path.relative_to(folder).as_posix(): _digest(path) for path in built}
    (folder / DIGESTS).write_text(json.dumps(digests, indent=1))


def _digest(path: Path) -> str:
    status = path.stat()
    return _digest_of(path, status.st_size, status.st_mtime_ns, status.st_ino)


@cache
def _digest_of(path: Path, *unchanged: int) -> str:
    """SHA-256 of a file; `unchanged` are figures of its state that change when it is written to."""
    with path.open("rb") as file:
        return hashlib.file_digest(file, "sha256").hexdigest()
