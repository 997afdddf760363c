"""A cache of builds on disk, keyed by everything that goes into them."""

import contextlib
import fcntl
import hashlib
import json
import logging
import os
import shutil
import stat
import tempfile
import threading
from collections.abc import Callable, Iterator, Sequence
from functools import cache
from importlib.resources import files
from importlib.resources.abc import Traversable
from pathlib import Path
from typing import Any, BinaryIO, TypeVar

T = TypeVar("T")

DIGESTS = "entry.json"
"""File of an entry with the SHA-256 of its key, and of each other file by path."""

_VALUE = "value.json"
_LOCK = "lock"
_PARTIAL = "-partial-"
_OTHERS_WRITE = stat.S_IWGRP | stat.S_IWOTH
_SUFFIXES = (".py", ".hpp", ".csv", ".v")

_log = logging.getLogger("axs6")
_own = threading.local()


class CacheError(OSError):
    """The cache is refused: another user may have written to it."""


def cache_folder() -> Path:
    """$AXS6_CACHE, or `axs6` in $XDG_CACHE_HOME or ~/.cache."""
    if folder := os.environ.get("AXS6_CACHE"):
        return Path(folder).absolute()
    base = os.environ.get("XDG_CACHE_HOME") or Path.home() / ".cache"
    return Path(base).absolute() / "axs6"


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
    return cache_folder() / f"{kind}-{_identity(kind, key)[:24]}"


def found(kind: str, key: Sequence[str]) -> Path | None:
    """The entry of a key, if intact; else None.

    A file is read again in the same process only if it was written to.

    Raises:
        CacheError: the cache or the entry is another user's, or others may write to it.
    """
    folder = entry(kind, key)
    check_cache()
    _check_own(folder)
    return folder if _intact(folder, _identity(kind, key)) else None


def check_cache() -> None:
    """Raise CacheError where the cache is another user's, or where others may write to it.

    What is in it runs as code of this user.
    """
    _check_own(cache_folder())


def _check_own(path: Path) -> os.stat_result | None:
    """`stat` of a path, None if missing. Raises CacheError as `found`."""
    try:
        status = path.stat()
    except (FileNotFoundError, NotADirectoryError):
        return None
    except OSError as error:
        raise CacheError(f"cannot read the cache {path}: {error.strerror}") from error
    if status.st_uid != os.geteuid():
        raise CacheError(
            f"the cache must be your own, but {path} is another user's: "
            "name another folder in AXS6_CACHE"
        )
    if status.st_mode & _OTHERS_WRITE:
        raise CacheError(
            f"only you may have write access to the cache, but others can write to {path}: "
            "remove their access (chmod -R go-w), or name another folder in AXS6_CACHE"
        )
    return status


def _identity(kind: str, key: Sequence[str]) -> str:
    return hashlib.sha256(json.dumps([DIGESTS, kind, *key]).encode()).hexdigest()


def _intact(folder: Path, identity: str) -> bool:
    try:
        _check_file(folder / DIGESTS)
        kept = json.loads((folder / DIGESTS).read_bytes())
        files = kept["files"].items()
        return kept["key"] == identity and all(_digest(folder / each) == it for each, it in files)
    except CacheError:
        raise
    except (OSError, ValueError, LookupError, TypeError, AttributeError):
        return False


def cached(kind: str, key: Sequence[str], build: Callable[[Path], None]) -> Path:
    """Folder with the outcome of `build`, made once for each key and again where it is damaged.

    The build runs in a folder of its own, which takes its final name when it is complete: a build
    that is interrupted leaves nothing under that name. If another process or thread is building the
    entry, the caller waits for it; if a build requests its own key, the first to end wins. The next
    build that has the cache to itself removes leftovers of killed builds.

    Args:
        kind: first part of the folder's name.
        key: texts that decide what the build makes.
        build: fills the folder it is given.

    Raises:
        OSError: the cache cannot be written, or is refused as `found` says; the message names its
            folder.
    """
    final, identity = entry(kind, key), _identity(kind, key)
    if found(kind, key):
        return final
    if final.is_dir():
        _log.warning("cache entry %s is damaged: making it again", final)
    with contextlib.ExitStack() as stack:
        try:
            final.parent.mkdir(mode=0o700, parents=True, exist_ok=True)
            check_cache()
            stack.enter_context(_building(final.parent))
            stack.enter_context(_alone(final))
            if _intact(final, identity):
                return final
            partial = Path(tempfile.mkdtemp(prefix=kind + _PARTIAL, dir=final.parent))
        except CacheError:
            raise
        except OSError as error:
            raise OSError(f"cannot write to the cache {final.parent}: {error.strerror}") from error
        stack.callback(shutil.rmtree, partial, ignore_errors=True)
        build(partial)
        _seal(partial, identity)
        _put(partial, final, identity)
    return final


def kept(kind: str, key: Sequence[str], shape: type[T], make: Callable[[], T]) -> T:
    """The value under a key, made and written if it is not there or damaged.

    Args:
        kind, key: as of `cached`.
        shape: type of the value: numbers, texts, dataclasses, lists, tuples and dictionaries.
        make: gives the value, which is kept as JSON.

    Raises:
        OSError: as of `cached`.
    """

    def build(folder: Path) -> None:
        plain = _adapter(shape).dump_python(make(), mode="json")
        (folder / _VALUE).write_text(json.dumps(plain))

    return _value(cached(kind, key, build), shape)


def recalled(kind: str, key: Sequence[str], shape: type[T]) -> T | None:
    """The value that `kept` has under a key; None if there is none, or it is damaged.

    Raises:
        CacheError: as of `found`.
    """
    folder = found(kind, key)
    return _value(folder, shape) if folder else None


def _value(folder: Path, shape: type[T]) -> T:
    value: T = _adapter(shape).validate_python(json.loads((folder / _VALUE).read_text()))
    return value


def _adapter(shape: Any) -> Any:
    """A converter of values of a type to plain data and back."""
    from pydantic import TypeAdapter

    return TypeAdapter(shape)


@contextlib.contextmanager
def _building(folder: Path) -> Iterator[None]:
    """Share the lock of the cache while building; whoever has it alone first clears the cache."""
    with _lock_file(folder / _LOCK) as lock:
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
    with _lock_file(path) as lock:
        fcntl.flock(lock, fcntl.LOCK_EX)
        building.add(final)
        try:
            yield
        finally:
            building.discard(final)
            path.unlink(missing_ok=True)


def _lock_file(path: Path) -> BinaryIO:
    """A file to lock; links and pipes are refused.

    Raises:
        CacheError: it is something else than a file.
    """
    flags = os.O_RDWR | os.O_CREAT | os.O_NOFOLLOW | os.O_NONBLOCK | os.O_CLOEXEC
    try:
        file = os.fdopen(os.open(path, flags, 0o600), "r+b", buffering=0)
    except OSError:
        if path.is_symlink() or (path.exists() and not path.is_file()):
            raise _no_lock(path) from None
        raise
    if not stat.S_ISREG(os.fstat(file.fileno()).st_mode):
        file.close()
        raise _no_lock(path)
    return file


def _no_lock(path: Path) -> CacheError:
    return CacheError(f"the lock {path} of the cache must be a plain file: remove what is there")


def _put(partial: Path, final: Path, identity: str) -> None:
    """Give a build its final name, in place of a damaged entry; an intact one stays."""
    if _intact(final, identity):
        return
    damaged = partial.with_name(f"{partial.name}-damaged")
    with contextlib.suppress(FileNotFoundError):
        final.rename(damaged)
    try:
        partial.rename(final)
    except OSError:
        if not _intact(final, identity):
            raise
    shutil.rmtree(damaged, ignore_errors=True)


def _seal(folder: Path, identity: str) -> None:
    """Write what an entry is, and let nobody else write to it, whatever the umask is."""
    (folder / DIGESTS).touch()
    files = [path for path in sorted(folder.rglob("*")) if path.is_file()]
    for path in files:
        path.chmod(path.stat().st_mode & ~_OTHERS_WRITE)
    built = (path for path in files if path.name != DIGESTS)
    digests = {path.relative_to(folder).as_posix(): _digest(path) for path in built}
    (folder / DIGESTS).write_text(json.dumps({"key": identity, "files": digests}, indent=1))


def _check_file(path: Path) -> os.stat_result:
    """The `stat` of a file. Raises CacheError as `found`, ValueError if there is none."""
    status = _check_own(path)
    if status is None or not stat.S_ISREG(status.st_mode):
        raise ValueError(f"{path} is not a file")
    return status


def _digest(path: Path) -> str:
    status = _check_file(path)
    return _digest_of(path, status.st_size, status.st_mtime_ns, status.st_ino)


@cache
def _digest_of(path: Path, *unchanged: int) -> str:
    """SHA-256 of a file; `unchanged` are figures of its state that change when it is written to."""
    with path.open("rb") as file:
        return hashlib.file_digest(file, "sha256").hexdigest()
