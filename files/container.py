"""The container of packed blocks: a safetensors file whose metadata say what its bytes are.

An encoded tensor is one of bytes, its blocks one after the other in index order. The metadata
`axs6` is JSON: the version, and for each encoded tensor its shape, dtype, and how it was encoded.
Other tensors are as they were.
"""

import json
import math
from collections.abc import Iterable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import asdict, dataclass
from pathlib import Path
from typing import Any, BinaryIO, NamedTuple

import numpy as np
from numpy.typing import NDArray

from axs6.files.tensors import FLOATS, Tensor, open_tensors
from axs6.golden.blocks import Blocks
from axs6.golden.lfsr import check_seed
from axs6.golden.pack import packed_bytes, unpack_some
from axs6.golden.spec import (
    RANDOM_BITS,
    RANDOM_SEED,
    Mode,
    Rounding,
    check_mode,
    check_random_bits,
    check_rounding,
    check_shape,
)
from axs6.replacing import replacing

VERSION = 1
FORMER_NAMES = {"block_size": "block"}
"""Entries of the metadata that files written earlier call otherwise."""
KEY = "axs6"


CHUNK = 1 << 20
"""Values handled at a time."""


class Piece(NamedTuple):
    """Rows of a tensor from `first_row` on, and of each so many values from `start` on."""

    first_row: int
    rows: int
    start: int
    values: int

    def blocks(self, block: int) -> int:
        """Blocks that hold the piece."""
        return self.rows * -(-self.values // block)

    def __str__(self) -> str:
        return f"rows from {self.first_row}, values from {self.start}"


@dataclass(frozen=True, kw_only=True)
class Coding:
    """How values become packed blocks.

    Args:
        block, rounding, mode, random_bits: as in `axs6.encode`.
        axis: along which blocks are taken.
        flatten: axes from this one on are flattened, in row-major order, and blocks are taken
            along the result. Where neither is given it depends on the tensor, `reduction`.
        align: bytes to a multiple of which blocks are padded.
        seed: of the random words of stochastic rounding, `axs6.golden.lfsr`, anew in each tensor.

    Raises:
        ValueError: one of them is out of range.
    """

    axis: int | None = None
    flatten: int | None = None
    block: int = 32
    align: int = 1
    mode: str = Mode.DENSE.label
    rounding: str = Rounding.NEAREST
    random_bits: int = RANDOM_BITS
    seed: int = RANDOM_SEED

    def __post_init__(self) -> None:
        if self.axis is not None and self.flatten is not None:
            raise ValueError("axis and flatten must not be given both")
        packed_bytes(self.block, self.align)
        check_mode(self.mode)
        check_rounding(self.rounding)
        check_random_bits(self.random_bits)
        check_seed(self.seed)


def reduction(axes: int) -> dict[str, Any]:
    """Where blocks of a tensor lie unless something else is asked for: as the hardware reduces.

    A product sums over all axes of a weight but the first: the input features of a linear layer,
    input channel and taps of a convolution. Vectors have one axis.

    Args:
        axes: how many the tensor has.

    Returns:
        `axis` or `flatten` of `Coding`.
    """
    return {"axis": -1} if axes < 3 else {"flatten": 1}


@dataclass(frozen=True, kw_only=True)
class Encoded(Coding):
    """How a tensor was encoded: the entry of its name in the metadata.

    Args:
        shape: of its values.
        dtype: of its values, as safetensors name it.

    Raises:
        ValueError: as `Coding`, there is neither axis nor flatten, or the shape has no such axis.
    """

    shape: tuple[int, ...]
    dtype: str

    def __post_init__(self) -> None:
        super().__post_init__()
        axes = len(check_shape(self.shape))
        if self.dtype not in FLOATS:
            raise ValueError(f"dtype must be one of {', '.join(FLOATS)}, not {self.dtype!r}")
        name, first = ("axis", self.axis) if self.flatten is None else ("flatten", self.flatten)
        if type(first) is not int or not -axes <= first < axes:
            raise ValueError(f"{name} must be one of {axes} axes, not {first!r}")

    @property
    def blocked_shape(self) -> tuple[int, ...]:
        """Shape of the values with those axes flattened that are; blocks lie along `along`."""
        if self.flatten is None:
            return self.shape
        first = self.flatten % len(self.shape)
        return (*self.shape[:first], math.prod(self.shape[first:]))

    @property
    def along(self) -> int:
        """Axis of `blocked_shape` along which blocks lie, from 0."""
        axes = len(self.blocked_shape)
        return axes - 1 if self.axis is None else self.axis % axes

    @property
    def in_order(self) -> bool:
        """Whether the values of the blocks, one after the other, are the tensor's in its order."""
        return self.along == len(self.blocked_shape) - 1

    def __str__(self) -> str:
        where = f"axis {self.axis}" if self.flatten is None else f"axes from {self.flatten} on"
        return f"{self.mode}, {self.rounding}, B = {self.block}, {where}"

    @property
    def rows(self) -> int:
        """Rows of values along the axis."""
        return math.prod(self.shape) // self.length if self.length else 0

    @property
    def length(self) -> int:
        """Values in a row."""
        return self.blocked_shape[self.along]

    @property
    def blocks(self) -> int:
        """Blocks of all rows."""
        return self.rows * -(-self.length // self.block)

    def pieces(self) -> Iterator["Piece"]:
        """The values in block order, in pieces of about `CHUNK` values or bytes."""
        chunk = CHUNK // max(1, packed_bytes(self.block, self.align) // self.block)
        blocks = -(-self.length // self.block)
        many = max(1, chunk // max(1, blocks * self.block))
        step = self.length
        if step > chunk:
            step = max(1, chunk // self.block) * self.block
        for first in range(0, self.rows, many):
            for start in range(0, self.length, step):
                rows = min(many, self.rows - first)
                yield Piece(first, rows, start, min(step, self.length - start))

    @property
    def least_bytes(self) -> int:
        """Bytes that its blocks have at least."""
        return self.blocks * packed_bytes(self.block, self.align, Mode.SPARSE)

    @property
    def most_bytes(self) -> int:
        """Bytes that its blocks have at most."""
        return self.blocks * packed_bytes(self.block, self.align)


def encoded_tensors(metadata: Mapping[str, str]) -> dict[str, Encoded]:
    """What the metadata of a container say of each encoded tensor.

    Raises:
        ValueError: they are not a container's, of another version, or wrong.
    """
    if KEY not in metadata:
        raise ValueError("it is no container of AXS-6 blocks: its metadata have no `axs6`")
    try:
        described = json.loads(metadata[KEY])
        version, tensors = described["version"], described["tensors"]
        items = list(tensors.items())
    except (ValueError, KeyError, TypeError, AttributeError, RecursionError) as error:
        raise ValueError(f"its metadata `axs6` cannot be read: {error!r}") from error
    if version != VERSION:
        raise ValueError(f"its version must be {VERSION}, not {version!r}")
    found = {}
    for name, entry in items:
        try:
            named = {FORMER_NAMES.get(key, key): value for key, value in entry.items()}
            found[name] = Encoded(**{**named, "shape": tuple(entry["shape"])})
        except (AttributeError, TypeError, KeyError, ValueError) as error:
            raise ValueError(f"tensor {name!r}: its metadata are wrong: {error}") from error
    return found


@contextmanager
def open_container(path: Path) -> Iterator[tuple[list[Tensor], dict[str, Encoded]]]:
    """The tensors of a container, and how those that were encoded were.

    Raises:
        OSError: the file cannot be read.
        ValueError: it is damaged, or no container. What is found later, by `blocks_of`, gets the
            file's name too.
    """
    if path.suffix != ".safetensors":
        raise ValueError(f"{path} must end in .safetensors")
    with open_tensors(path) as (tensors, metadata):
        try:
            encoded = encoded_tensors(metadata)
            held = {tensor.name: tensor for tensor in tensors}
            for name, how in encoded.items():
                _check_held(name, held.get(name), how)
            yield tensors, encoded
        except ValueError as error:
            raise ValueError(f"{path}: {error}") from error


def _check_held(name: str, tensor: Tensor | None, how: Encoded) -> None:
    if tensor is None:
        raise ValueError(f"tensor {name!r} is in its metadata and not in the file")
    if tensor.dtype != "U8" or tensor.array.ndim != 1:
        raise ValueError(f"tensor {name!r} must be bytes, not {tensor.dtype} {tensor.array.shape}")
    if not how.least_bytes <= len(tensor.array) <= how.most_bytes:
        raise ValueError(
            f"tensor {name!r}: {how.blocks} blocks have {how.least_bytes} to {how.most_bytes} "
            f"bytes, not {len(tensor.array)}"
        )


def blocks_of(tensor: Tensor, how: Encoded) -> Iterator[tuple[Piece, Blocks]]:
    """The blocks of an encoded tensor, piece by piece, as (blocks * B) values.

    Raises:
        ValueError: a block is wrong, or the bytes are not those of the blocks; the message names
            the tensor and the block.
    """
    longest = packed_bytes(how.block, how.align)
    first = offset = 0
    try:
        for piece in how.pieces():
            count = piece.blocks(how.block)
            data = tensor.array[offset : offset + count * longest]
            blocks, length = unpack_some(data, count, how.block, how.align, first)
            yield piece, blocks
            first, offset = first + count, offset + length
        if offset != len(tensor.array):
            raise ValueError(f"its {first} blocks have {offset} bytes, not {len(tensor.array)}")
    except ValueError as error:
        raise ValueError(f"tensor {tensor.name!r}: {error}") from error


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


def container_metadata(entries: Sequence[Entry], others: Mapping[str, str]) -> dict[str, str]:
    """Metadata of a container, beside those that the tensors had."""
    tensors = {each.name: asdict(each.encoded) for each in entries if each.encoded}
    return {**others, KEY: json.dumps({"version": VERSION, "tensors": tensors})}


def plain(array: NDArray[Any]) -> Iterator[bytes]:
    """The bytes of an array as safetensors have them, little-endian and in row order, in pieces."""
    pieces: Any = np.nditer(
        array,
        ["buffered", "external_loop", "zerosize_ok"],
        op_dtypes=[array.dtype.newbyteorder("<")],
        order="C",
        casting="equiv",
        buffersize=CHUNK,
    )
    for piece in pieces:
        yield piece.tobytes()
