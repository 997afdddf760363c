"""Files that are written whole or not at all."""

import contextlib
import fcntl
import os
import secrets
from collections.abc import Iterable, Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import BinaryIO

_PARTIAL = ".axs6-"


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
                raise ValueError(f"output {output} must be another file than {what} {other}")
        taken.append(("output", output))


def _same_file(one: Path, other: Path) -> bool:
    if one.exists() and other.exists():
        return one.samefile(other)
    return one.resolve() == other.resolve()


@contextmanager
def replacing(path: Path) -> Iterator[BinaryIO]:
    """A file to write, which takes the place of `path` unless something fails.

    A link is followed; a device or a pipe is written to, never replaced. What killed processes
    left in the folder is removed.

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
        with _new(target.parent) as file:
            partial = Path(file.name)
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


def _new(folder: Path) -> BinaryIO:
    """A file that is locked as long as a process writes it."""
    while True:
        file = (folder / f"{_PARTIAL}{secrets.token_hex(8)}").open("xb")
        # Some file systems have no locks.
        with contextlib.suppress(OSError):
            fcntl.flock(file, fcntl.LOCK_EX)
        if os.fstat(file.fileno()).st_nlink:
            return file
        # Another process cleared it before it was locked.
        file.close()


def _clear(folder: Path) -> None:
    """Remove files of `_new` that no process writes any more."""
    for left in folder.glob(_PARTIAL + "[0-9a-f]" * 16):
        with contextlib.suppress(OSError), left.open("rb") as file:
            fcntl.flock(file, fcntl.LOCK_EX | fcntl.LOCK_NB)
            left.unlink()


def make_folder(folder: Path) -> None:
    """Make a folder and those above it where there are none.

    Raises:
        OSError: it cannot be made; the message names it.
    """
    try:
        folder.mkdir(parents=True, exist_ok=True)
    except OSError as error:
        raise OSError(f"cannot write to {folder}: {error.strerror}") from error
