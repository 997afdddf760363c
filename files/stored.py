"""Arrays in files, read in pieces.

They are read and not mapped: if another program truncates a mapped file, a read ends the process by
SIGBUS.
"""

import math
import os
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path
from typing import Any, BinaryIO

import numpy as np
from numpy.typing import NDArray

_PAGE = 64
"""Items that are read together where single ones are wanted."""

_WANTED = 8192
"""Single items read at a time."""


@dataclass(frozen=True)
class Stored:
    """An array in an open file.

    Args:
        path, file: where it is.
        start: the byte at which it begins.
        dtype: of its items, byte order included.
        shape: of the array.
        column_major: whether the first axis runs fastest in the file, and not the last.
    """

    path: Path
    file: BinaryIO
    start: int
    dtype: np.dtype[Any]
    shape: tuple[int, ...]
    column_major: bool = False

    @property
    def size(self) -> int:
        """Number of items."""
        return math.prod(self.shape)

    @property
    def nbytes(self) -> int:
        """Bytes in the file."""
        return self.size * self.dtype.itemsize

    def all(self) -> NDArray[Any]:
        """The array."""
        held = self._held(0, self.size)
        return held.reshape(self.shape[::-1]).T if self.column_major else held.reshape(self.shape)

    def items(self, first: int, count: int) -> NDArray[Any]:
        """`count` items (count,) from item `first` on, the last axis running fastest.

        Raises:
            OSError: the file cannot be read, or was made shorter; the message names it.
        """
        if self.column_major:
            return self.at(np.arange(first, first + count))
        return self._held(first, count)

    def at(self, numbers: NDArray[np.int64]) -> NDArray[Any]:
        """The items of these numbers, counted as `items` does: an array of their shape.

        Raises:
            OSError: as `items`.
        """
        if self.column_major:
            axes = np.unravel_index(numbers, self.shape)
            numbers = np.ravel_multi_index(axes[::-1], self.shape[::-1])
        found = np.empty(numbers.size, self.dtype)
        order = np.argsort(numbers, axis=None, kind="stable")
        sorted_numbers = numbers.ravel()[order]
        for first in range(0, numbers.size, _WANTED):
            some = slice(first, first + _WANTED)
            found[order[some]] = self._of_pages(sorted_numbers[some])
        return found.reshape(numbers.shape)

    def chunks(self, size: int) -> Iterator[NDArray[np.uint8]]:
        """All bytes as they are in the file, `size` at a time."""
        whole = Stored(self.path, self.file, self.start, np.dtype(np.uint8), (self.nbytes,))
        for first in range(0, self.nbytes, size):
            yield whole.items(first, min(size, self.nbytes - first))

    def _of_pages(self, wanted: NDArray[np.int64]) -> NDArray[Any]:
        """Items by their place in the file, in ascending order."""
        size = _PAGE * self.dtype.itemsize
        page_of = wanted // _PAGE
        new = np.diff(page_of, prepend=-1) > 0
        pages = page_of[new]
        held = np.empty((len(pages), size), np.uint8)
        data = held.reshape(-1).data
        firsts = np.flatnonzero(np.diff(pages, prepend=-2) > 1)
        runs = np.stack([pages[firsts], firsts, np.append(firsts[1:], len(pages))], axis=1) * size
        nbytes = self.nbytes
        for start, first, end in runs.tolist():
            self._fill(start, data[first : min(end, first + nbytes - start)])
        return held.view(self.dtype)[np.cumsum(new) - 1, wanted % _PAGE]

    def _held(self, first: int, count: int) -> NDArray[Any]:
        found = np.empty(count, self.dtype)
        self._fill(first * self.dtype.itemsize, found.view(np.uint8).data)
        return found

    def _fill(self, first: int, into: memoryview) -> None:
        """Read bytes, which follow each other in the file."""
        try:
            while into and (read := os.preadv(self.file.fileno(), [into], self.start + first)):
                into, first = into[read:], first + read
        except OSError as error:
            raise OSError(f"cannot read {self.path}: {error.strerror}") from error
        if into:
            raise OSError(f"cannot read {self.path}: it became shorter while it was read")
