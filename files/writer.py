"""Writing safetensors files whose tensors come in pieces."""

import hashlib
import json
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path
from typing import Any, BinaryIO

from numpy.typing import NDArray

from axs6.files import coding
from axs6.files.coding import Encoded
from axs6.files.stored import Stored
from axs6.files.tensors import METADATA
from axs6.replacing import replacing

HEADER_BYTES = 100_000_000
"""The longest header that programs read: safetensors refuses longer ones."""

Describe = Callable[[Mapping[str, Any], Mapping[str, str]], Mapping[str, str]]
"""Returns the metadata of a file, from its header without them and the SHA-256 of each tensor."""

_NO_DIGEST = "0" * 64


@dataclass(frozen=True)
class Entry:
    """A tensor to be written: its dtype, its shape, and its maximum number of bytes."""

    name: str
    dtype: str
    shape: tuple[int, ...]
    most_bytes: int
    encoded: Encoded | None = None


class Writer:
    """Writes tensors one after the other, their bytes in pieces; see `writing`.

    With `digested=False` the metadata get no digests, and no time goes into them.
    """

    def __init__(
        self,
        file: BinaryIO,
        entries: Sequence[Entry],
        metadata: Describe,
        digested: bool = True,
    ) -> None:
        self._file = file
        self._digested = digested
        self._metadata = metadata
        self._header: dict[str, Any] = {}
        self._digests: dict[str, str] = {}
        limits: dict[str, Any] = {}
        start = 0
        for entry in entries:
            _check_name(entry.name, limits)
            limits[entry.name] = _described(entry, start, start + entry.most_bytes)
            start += entry.most_bytes
        self._room = -(-len(self._json(limits, dict.fromkeys(limits, _NO_DIGEST))) // 8) * 8
        if self._room > HEADER_BYTES:
            raise ValueError(
                f"the header of a safetensors file must have at most {HEADER_BYTES:,} bytes; that "
                f"of these {len(entries):,} tensors has {self._room:,}"
            )
        self._start = 0
        file.seek(8 + self._room)

    def _json(self, tensors: Mapping[str, Any], digests: Mapping[str, str]) -> bytes:
        metadata = self._metadata(tensors, digests)
        return json.dumps({METADATA: metadata, **tensors} if metadata else tensors).encode()

    def add(self, entry: Entry, pieces: Iterable[bytes]) -> int:
        """Write a tensor and return its length in bytes; encoded ones may be shorter than said."""
        length, digest = 0, hashlib.sha256()
        for piece in pieces:
            length += self._file.write(piece)
            if self._digested:
                digest.update(piece)
        assert length == entry.most_bytes or (entry.encoded and length < entry.most_bytes)
        self._header[entry.name] = _described(entry, self._start, self._start + length)
        if self._digested:
            self._digests[entry.name] = digest.hexdigest()
        self._start += length
        return length

    def finish(self) -> None:
        """Write the header, with spaces up to where the tensors begin."""
        self._file.seek(0)
        header = self._json(self._header, self._digests)
        self._file.write(self._room.to_bytes(8, "little") + header.ljust(self._room))


def _check_name(name: str, others: Mapping[str, Any]) -> None:
    """Raise ValueError for a name that a further tensor cannot have in a file that is read."""
    if name == METADATA:
        raise ValueError(f"a safetensors file cannot hold a tensor of the name {name!r}")
    if name in others:
        raise ValueError(f"two tensors would have the name {name!r}")
    try:
        name.encode()
    except UnicodeEncodeError:
        raise ValueError(f"the name of a tensor must be Unicode text, not {name!r}") from None


def _described(entry: Entry, start: int, end: int) -> dict[str, Any]:
    shape = [end - start] if entry.encoded else list(entry.shape)
    dtype = "U8" if entry.encoded else entry.dtype
    return {"dtype": dtype, "shape": shape, "data_offsets": [start, end]}


@contextmanager
def writing(path: Path, entries: Sequence[Entry], metadata: Describe) -> Iterator[Writer]:
    """A writer of a safetensors file; the file gets its name when it is complete.

    Raises:
        OSError: the file cannot be written.
        ValueError: there is no file of such tensors: of their names, or so many.
    """
    with replacing(path) as file:
        writer = Writer(file, entries, metadata)
        yield writer
        writer.finish()


def plain(stored: Stored) -> Iterator[bytes]:
    """The bytes of an array as safetensors have them, little-endian and in row order, in pieces."""
    for first in range(0, stored.size, coding.CHUNK):
        yield _little_endian(stored.items(first, min(coding.CHUNK, stored.size - first)))


def of_array(array: NDArray[Any]) -> Iterator[bytes]:
    """As `plain`, of an array in memory."""
    flat = array.reshape(-1)
    for first in range(0, flat.size, coding.CHUNK):
        yield _little_endian(flat[first : first + coding.CHUNK])


def _little_endian(values: NDArray[Any]) -> bytes:
    return values.astype(values.dtype.newbyteorder("<"), copy=False).tobytes()
