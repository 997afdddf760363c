"""Writing safetensors files whose tensors come in pieces."""

import json
from collections.abc import Iterable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path
from typing import Any, BinaryIO

import numpy as np
from numpy.typing import NDArray

from axs6.files import coding
from axs6.files.coding import Encoded
from axs6.replacing import replacing


@dataclass(frozen=True)
class Entry:
    """A tensor to be written: its dtype and shape, and at most how many bytes it will have."""

    name: str
    dtype: str
    shape: tuple[int, ...]
    most_bytes: int
    encoded: Encoded | None = None


class Writer:
    """Writes tensors one after the other, their bytes in pieces; see `writing`."""

    def __init__(self, file: BinaryIO, entries: Sequence[Entry], metadata: Mapping[str, str]):
        self._file = file
        self._metadata = dict(metadata)
        self._header: dict[str, Any] = {}
        limits, start = {}, 0
        for entry in entries:
            limits[entry.name] = _described(entry, start, start + entry.most_bytes)
            start += entry.most_bytes
        self._room = -(-len(self._json(limits)) // 8) * 8
        self._start = 0
        file.seek(8 + self._room)

    def _json(self, tensors: Mapping[str, Any]) -> bytes:
        return json.dumps({"__metadata__": self._metadata, **tensors}).encode()

    def add(self, entry: Entry, pieces: Iterable[bytes]) -> int:
        """Write a tensor and return its length in bytes; encoded ones may be shorter than said."""
        length = sum(self._file.write(piece) for piece in pieces)
        assert length == entry.most_bytes or (entry.encoded and length < entry.most_bytes)
        self._header[entry.name] = _described(entry, self._start, self._start + length)
        self._start += length
        return length

    def finish(self) -> None:
        """Write the header, with spaces up to where the tensors begin."""
        self._file.seek(0)
        header = self._json(self._header)
        self._file.write(self._room.to_bytes(8, "little") + header.ljust(self._room))


def _described(entry: Entry, start: int, end: int) -> dict[str, Any]:
    shape = [end - start] if entry.encoded else list(entry.shape)
    dtype = "U8" if entry.encoded else entry.dtype
    return {"dtype": dtype, "shape": shape, "data_offsets": [start, end]}


@contextmanager
def writing(
    path: Path, entries: Sequence[Entry], metadata: Mapping[str, str] | None = None
) -> Iterator[Writer]:
    """A writer of a safetensors file, which takes its name when all is written.

    Raises:
        OSError: the file cannot be written.
    """
    with replacing(path) as file:
        writer = Writer(file, entries, metadata or {})
        yield writer
        writer.finish()


def plain(array: NDArray[Any]) -> Iterator[bytes]:
    """The bytes of an array as safetensors have them, little-endian and in row order, in pieces."""
    pieces: Any = np.nditer(
        array,
        ["buffered", "external_loop", "zerosize_ok"],
        op_dtypes=[array.dtype.newbyteorder("<")],
        order="C",
        casting="equiv",
        buffersize=coding.CHUNK,
    )
    for piece in pieces:
        yield piece.tobytes()
