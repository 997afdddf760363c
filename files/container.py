"""The container of packed blocks: a safetensors file whose metadata describe its bytes.

An encoded tensor is one of bytes, those of `axs6.pack`: scales of the tensor and of channels, then
the blocks in index order. The metadata `axs6` is JSON: the version, and for each encoded tensor its
shape, dtype, and how it was encoded. Other tensors are unchanged. SHA-256 digests of each tensor
and of the header detect changes of the file.
"""

import hashlib
import json
from collections.abc import Iterator, Mapping, Sequence
from contextlib import contextmanager
from pathlib import Path
from typing import Any, NamedTuple

import numpy as np
from numpy.typing import NDArray

from axs6.files.coding import CHUNK, Encoded, Piece
from axs6.files.stored import Stored
from axs6.files.tensors import Tensor, open_tensors
from axs6.files.writer import Describe, Entry
from axs6.golden.blocks import Blocks
from axs6.golden.formats import AXS6
from axs6.golden.unpack import unpack, unpack_some

VERSION = 3
WITHOUT_DIGESTS = 2
"""The version before: there are no digests."""
BLOCKS_OF_AXS6 = 1
"""The version before that: every tensor is AXS-6, with a block of its own."""
FORMER_NAMES = {"block_size": "block"}
"""Entries of the metadata that files written earlier call otherwise."""
KEY = "axs6"
HEADER_DIGEST = "axs6.sha256"


class Container(NamedTuple):
    """The tensors of a file, how those that are encoded were, and the metadata of the source."""

    tensors: list[Tensor]
    encoded: dict[str, Encoded]
    metadata: dict[str, str]


def _described(metadata: Mapping[str, str]) -> tuple[dict[str, Encoded], dict[str, str] | None]:
    """The encoding of each encoded tensor, and the digest of every tensor, from a container's
    metadata.

    Raises:
        ValueError: they are not a container's, of another version, or wrong.
    """
    if KEY not in metadata:
        raise ValueError("it is not a container of blocks: its metadata have no `axs6`")
    try:
        described = json.loads(metadata[KEY])
        version, tensors = described["version"], described["tensors"]
        items = list(tensors.items())
        digests = dict(described["sha256"]) if version == VERSION else None
    except (ValueError, KeyError, TypeError, AttributeError, RecursionError) as error:
        raise ValueError(f"its metadata `axs6` cannot be read: {error!r}") from error
    if version not in (BLOCKS_OF_AXS6, WITHOUT_DIGESTS, VERSION):
        raise ValueError(f"its version must be {BLOCKS_OF_AXS6} to {VERSION}, not {version!r}")
    found = {}
    for name, entry in items:
        try:
            encoding = {**entry, "shape": tuple(entry["shape"])}
            found[name] = Encoded(
                **(_of_axs6(encoding) if version == BLOCKS_OF_AXS6 else _of_any(encoding))
            )
        except (AttributeError, TypeError, KeyError, ValueError) as error:
            raise ValueError(f"tensor {name!r}: its metadata are wrong: {error}") from error
    return found, digests


def _of_axs6(entry: Mapping[str, Any]) -> dict[str, Any]:
    named = {FORMER_NAMES.get(key, key): value for key, value in entry.items()}
    return {**named, "format": AXS6.with_block(named.get("block", AXS6.block))}


def _of_any(entry: Mapping[str, Any]) -> dict[str, Any]:
    if "block" in entry:
        raise ValueError("the entry block belongs in format")
    if not isinstance(entry["format"], str):
        raise TypeError(f"format must be a string, not {entry['format']!r}")
    return dict(entry)


@contextmanager
def open_container(path: Path) -> Iterator[Container]:
    """A container.

    Raises:
        OSError: the file cannot be read.
        ValueError: it is damaged, or no container. What is found later, by `blocks_of`, gets the
            file's name too.
    """
    if path.suffix != ".safetensors":
        raise ValueError(f"{path} must end in .safetensors")
    with open_tensors(path) as (tensors, metadata):
        try:
            yield Container(tensors, _checked(tensors, metadata), metadata)
        except ValueError as error:
            raise ValueError(f"{path}: {error}") from error


def encoded_before(
    path: Path, tensors: Sequence[Tensor], metadata: Mapping[str, str]
) -> dict[str, Encoded]:
    """Encodings of the tensors of a file; none if it is no container.

    Raises:
        OSError: the file cannot be read.
        ValueError: it is a damaged container.
    """
    try:
        return _checked(tensors, metadata) if KEY in metadata else {}
    except ValueError as error:
        raise ValueError(f"{path}: {error}") from error


def _checked(tensors: Sequence[Tensor], metadata: Mapping[str, str]) -> dict[str, Encoded]:
    """Encodings of the tensors of a container. Raises ValueError if it is damaged."""
    encoded, digests = _described(metadata)
    held = {tensor.name: tensor for tensor in tensors}
    if digests is not None:
        _check_digests(held, digests, metadata)
    for name, encoding in encoded.items():
        _check_held(name, held.get(name), encoding)
    return encoded


def _check_digests(
    held: Mapping[str, Tensor], digests: Mapping[str, str], metadata: Mapping[str, str]
) -> None:
    kinds = {name: (tensor.dtype, tensor.shape) for name, tensor in held.items()}
    if metadata.get(HEADER_DIGEST) != _digest_of_header(kinds, metadata):
        raise ValueError("its header has changed since it was written: its SHA-256 is different")
    for name, tensor in held.items():
        digest = hashlib.sha256()
        for piece in tensor.stored.chunks(CHUNK):
            digest.update(piece.data)
        if digest.hexdigest() != digests.get(name):
            raise ValueError(
                f"tensor {name!r} has changed since it was written: its SHA-256 is different"
            )


def _digest_of_header(
    kinds: Mapping[str, tuple[str, Sequence[int]]], metadata: Mapping[str, str]
) -> str:
    """SHA-256 of the dtypes and shapes of the tensors, and of the metadata of AXS-6.

    It does not cover the metadata of other programs, which may change them.
    """
    own = {
        name: text
        for name, text in metadata.items()
        if name.partition(".")[0] == KEY and name != HEADER_DIGEST
    }
    return hashlib.sha256(json.dumps([kinds, own], sort_keys=True).encode()).hexdigest()


def _check_held(name: str, tensor: Tensor | None, encoding: Encoded) -> None:
    if tensor is None:
        raise ValueError(f"tensor {name!r} is in its metadata but not in the file")
    if tensor.dtype != "U8" or len(tensor.shape) != 1:
        raise ValueError(f"tensor {name!r} must be bytes, not {tensor.dtype} {tensor.shape}")
    if not encoding.least_bytes <= tensor.nbytes <= encoding.most_bytes:
        scales = (
            f"its scales and {encoding.blocks} blocks"
            if encoding.ahead
            else f"{encoding.blocks} blocks"
        )
        least = "" if encoding.least_bytes == encoding.most_bytes else f"{encoding.least_bytes} to "
        raise ValueError(
            f"tensor {name!r}: {scales} have {least}{encoding.most_bytes} bytes, not "
            f"{tensor.nbytes}"
        )


def blocks_of(tensor: Tensor, encoding: Encoded) -> Iterator[tuple[Piece, Blocks]]:
    """The blocks of an encoded tensor, piece by piece: those of each row after each other.

    Raises:
        ValueError: a block is wrong, or the bytes are not those of the blocks; the message names
            the tensor and the block.
    """
    try:
        yield from (_behind_scales if encoding.ahead else _alone)(tensor.stored, encoding)
    except ValueError as error:
        raise ValueError(f"tensor {tensor.name!r}: {error}") from error


def _alone(data: Stored, encoding: Encoded) -> Iterator[tuple[Piece, Blocks]]:
    """Blocks of a format without scales before the blocks."""
    layout = encoding.layout
    longest = layout.bytes_of()
    first = offset = 0
    for piece in encoding.pieces():
        count = piece.blocks(encoding.size)
        held = data.items(offset, min(count * longest, data.size - offset))
        blocks, length = unpack_some(held, count, layout, first)
        yield piece, blocks
        first, offset = first + count, offset + length
    if offset != data.size:
        raise ValueError(f"its {first} blocks have {offset} bytes, not {data.size}")


def _behind_scales(data: Stored, encoding: Encoded) -> Iterator[tuple[Piece, Blocks]]:
    """Blocks that lie behind scales of the tensor, channels or tiles: all of one length."""
    fmt, offset = encoding.layout.format, encoding.bytes_ahead()
    for piece in encoding.pieces():
        length = piece.blocks(encoding.size) * encoding.layout.bytes_of()
        packed = np.concatenate([*_scales_of(data, encoding, piece), data.items(offset, length)])
        try:
            shape = (piece.rows, piece.values)
            yield piece, unpack(packed.data, shape, fmt, align=encoding.align)
        except ValueError as error:
            raise ValueError(f"{piece}: {error}") from error
        offset += length


def _scales_of(data: Stored, encoding: Encoded, piece: Piece) -> Iterator[NDArray[np.uint8]]:
    """Bytes of the scales and zero points that the rows of a piece have."""
    start = 0
    for each in encoding.ahead:
        first, count = each.span(piece.first_row, piece.rows)
        yield data.items(start + first, count)
        start += each.span(0, encoding.channels)[1]


def container_metadata(entries: Sequence[Entry], others: Mapping[str, str]) -> Describe:
    """Metadata of a file, beside those that its tensors had; those alone if none is encoded."""
    kept = {name: text for name, text in others.items() if name not in (KEY, HEADER_DIGEST)}
    tensors = {each.name: each.encoded.metadata for each in entries if each.encoded}

    def describe(header: Mapping[str, Any], digests: Mapping[str, str]) -> dict[str, str]:
        if not tensors:
            return kept
        described = {"version": VERSION, "tensors": tensors, "sha256": dict(digests)}
        metadata = {**kept, KEY: json.dumps(described)}
        kinds = {name: (entry["dtype"], entry["shape"]) for name, entry in header.items()}
        return {**metadata, HEADER_DIGEST: _digest_of_header(kinds, metadata)}

    return describe
