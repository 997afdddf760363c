"""Temporary files, with errors that say where there is no room."""

import os
import tempfile
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import NDArray


@contextmanager
def naming_folder(folder: Path | None = None) -> Iterator[None]:
    """A context that writes temporary files; its errors name their folder, or the system's.

    Raises:
        OSError: they cannot be written.
    """
    try:
        yield
    except OSError as error:
        if error.strerror is None:
            raise
        where = folder or tempfile.gettempdir()
        raise OSError(
            f"cannot write temporary files to {where} (TMPDIR sets it): {error.strerror}"
        ) from error


@contextmanager
def scratch_array(shape: tuple[int, ...], dtype: np.dtype[Any]) -> Iterator[NDArray[Any]]:
    """An array of a shape without zeros that is in a temporary file and not in memory.

    Raises:
        OSError: there is no room for it; the message names the folder.
    """
    with tempfile.TemporaryFile() as file:
        with naming_folder():
            # A mapped file that finds no room when it is written to would end the process.
            os.posix_fallocate(file.fileno(), 0, int(np.prod(shape, dtype=object)) * dtype.itemsize)
        yield np.memmap(file, dtype, "r+", 0, shape)
