"""Files that are written whole or not at all."""

import contextlib
import fcntl
import os
import secrets
import shutil
import stat
from collections.abc import Iterable, Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import BinaryIO

_PARTIAL = ".axs6-"
_PARTIAL_FOLDER = ".axs6-folder-"

_partial_files: set[Path] = set()
"""Partial files and folders that this process writes."""


def check_apart(outputs: Iterable[Path], inputs: Iterable[Path] = ()) -> None:
    """Raise ValueError for an output that is an input, or another output, under whatever name.

    Links are followed, and hard links are one file. A device or a pipe may be named twice.
    """
    taken = [("input", path) for path in inputs]
    for output in outputs:
        if output.exists() and not output.is_file():
            continue
        for what, other in taken:
            if _same_file(output, other):
                raise ValueError(f"output {output} must not be the same file as {what} {other}")
        taken.append(("output", output))


def _same_file(one: Path, other: Path) -> bool:
    if one.exists() and other.exists():
        return one.samefile(other)
    return one.resolve() == other.resolve()


@contextmanager
def replacing(path: Path) -> Iterator[BinaryIO]:
    """A file to write, which takes the place of `path` unless something fails.

    It has the permissions and, where the system lets it, the owner and group of the file that it
    replaces. A link is followed; a device or a pipe is written to, never replaced. What killed
    processes left in the folder is removed.

    Raises:
        OSError: it cannot be written; the message names it.
    """
    partial = None
    try:
        target = path.resolve()
        if target.exists() and not target.is_file():
            with target.open("wb") as file:
                yield file
            return
        _clear(target.parent)
        partial = target.parent / f"{_PARTIAL}{secrets.token_hex(8)}"
        _partial_files.add(partial)
        with _new(partial, target) as file:
            yield file
            file.flush()
            partial.replace(target)
    except OSError as error:
        if error.strerror is None:
            raise
        raise OSError(f"cannot write to {path}: {error.strerror}") from error
    finally:
        if partial is not None:
            partial.unlink(missing_ok=True)
            _partial_files.discard(partial)


@contextmanager
def replacing_folder(path: Path) -> Iterator[Path]:
    """A folder to fill, which gets the name `path` unless something fails.

    Raises:
        OSError: it cannot be written; the message names it.
        ValueError: `path` is a file, or a folder with files.
    """
    if path.exists() and not (path.is_dir() and not any(path.iterdir())):
        raise ValueError(f"{path} must not exist, or be an empty folder")
    make_folder(path.parent)
    _clear(path.parent)
    partial = path.parent / f"{_PARTIAL_FOLDER}{secrets.token_hex(8)}"
    try:
        _partial_files.add(partial)
        partial.mkdir()
        with _locked(partial):
            yield partial
            partial.replace(path)
    except OSError as error:
        if error.strerror is None:
            raise
        raise OSError(f"cannot write to {path}: {error.strerror}") from error
    finally:
        shutil.rmtree(partial, ignore_errors=True)
        _partial_files.discard(partial)


def remove_partial_files() -> None:
    """Remove what `replacing` has begun: for a process that ends without going on."""
    for partial in tuple(_partial_files):
        with contextlib.suppress(OSError):
            if partial.is_dir():
                shutil.rmtree(partial, ignore_errors=True)
            else:
                partial.unlink()


def _new(partial: Path, target: Path) -> BinaryIO:
    """A file that is locked as long as a process writes it, and like the target where it exists."""
    before = target.stat() if target.exists() else None

    def opened(path: str, flags: int) -> int:
        return os.open(path, flags, 0o666 if before is None else 0o600)

    while True:
        file = open(partial, "xb", opener=opened)  # noqa: SIM115  the caller closes it
        # Some file systems have no locks.
        with contextlib.suppress(OSError):
            fcntl.flock(file, fcntl.LOCK_EX)
        if os.fstat(file.fileno()).st_nlink:
            break
        # Another process cleared it before it was locked.
        file.close()
    if before is not None:
        # Who is not the superuser may give a file to one of their groups, and to nobody else.
        for owner, group in ((-1, before.st_gid), (before.st_uid, -1)):
            with contextlib.suppress(OSError):
                os.fchown(file.fileno(), owner, group)
        os.fchmod(file.fileno(), stat.S_IMODE(before.st_mode))
    return file


def _clear(folder: Path) -> None:
    """Remove files and folders that no process writes any more."""
    for left in folder.glob(_PARTIAL_FOLDER + "[0-9a-f]" * 16):
        with contextlib.suppress(OSError), _locked(left):
            shutil.rmtree(left, ignore_errors=True)
    for left in folder.glob(_PARTIAL + "[0-9a-f]" * 16):
        with contextlib.suppress(OSError), open(left, "rb", opener=_regular) as file:
            fcntl.flock(file, fcntl.LOCK_EX | fcntl.LOCK_NB)
            left.unlink()


@contextmanager
def _locked(folder: Path) -> Iterator[None]:
    """A folder of this user that nobody else locks, locked. Raises OSError for others."""
    handle = os.open(folder, os.O_RDONLY | os.O_DIRECTORY | os.O_NOFOLLOW)
    try:
        if os.fstat(handle).st_uid != os.geteuid():
            raise PermissionError(f"{folder} is another user's")
        fcntl.flock(handle, fcntl.LOCK_EX | fcntl.LOCK_NB)
        yield
    finally:
        os.close(handle)


def _regular(path: str, flags: int) -> int:
    """Open a file of this user, and nothing else that may have its name: a pipe would wait."""
    file = os.open(path, flags | os.O_NOFOLLOW | os.O_NONBLOCK)
    status = os.fstat(file)
    if stat.S_ISREG(status.st_mode) and status.st_uid == os.geteuid():
        return file
    os.close(file)
    raise FileNotFoundError(path)


def make_folder(folder: Path) -> None:
    """Make a folder and those above it where there are none.

    Raises:
        OSError: it cannot be made; the message names it.
    """
    try:
        folder.mkdir(parents=True, exist_ok=True)
    except OSError as error:
        raise OSError(f"cannot write to {folder}: {error.strerror}") from error
