"""Files that are written whole or not at all."""

import secrets
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import BinaryIO


@contextmanager
def replacing(path: Path) -> Iterator[BinaryIO]:
    """A file to write, which takes the place of `path` unless something fails.

    A link is followed; a device or a pipe is written to, never replaced.

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
        partial = target.with_name(f".axs6-{secrets.token_hex(8)}")
        with partial.open("xb") as file:
            yield file
        partial.replace(target)
    except OSError as error:
        if error.strerror is None:
            raise
        raise OSError(f"cannot write to {path}: {error.strerror}") from error
    finally:
        if partial is not None:
            partial.unlink(missing_ok=True)


def make_folder(folder: Path) -> None:
    """Make a folder and those above it where there are none.

    Raises:
        OSError: it cannot be made; the message names it.
    """
    try:
        folder.mkdir(parents=True, exist_ok=True)
    except OSError as error:
        raise OSError(f"cannot write to {folder}: {error.strerror}") from error
