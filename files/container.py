"""The container of packed blocks: a safetensors file whose metadata say what its bytes are.

An encoded tensor is one of bytes, those of `axs6.pack`: scales of the tensor and of channels, then
the blocks in index order. The metadata `axs6` is JSON: the version, and for each encoded tensor its
shape, dtype, and how it was encoded. Other tensors are as they were.
"""

import json
from collections.abc import Iterator, Mapping, Sequence
from contextlib import contextmanager
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import NDArray

from axs6.files.checkpoint import Pair, joined
from axs6.files.coding import Encoded, Piece
from axs6.files.tensors import Tensor, open_tensors
from axs6.files.writer import Entry
from axs6.golden.blocks import Blocks
from axs6.golden.formats import AXS6
from axs6.golden.unpack import unpack, unpack_some

VERSION = 2
BLOCKS_OF_AXS6 = 1
"""The version before: every tensor is AXS-6, with a block of its own."""
FORMER_NAMES = {"block_size": "block"}
"""Entries of the metadata that files written earlier call otherwise."""
KEY = "axs6"


def encoded_tensors(metadata: Mapping[str, str]) -> dict[str, Encoded]:
    """What the metadata of a container say of each encoded tensor.

    Raises:
        ValueError: they are not a container's, of another version, or wrong.
    """
    if KEY not in metadata:
        raise ValueError("it is no container of blocks: its metadata have no `axs6`")
    try:
        described = json.loads(metadata[KEY])
        version, tensors = described["version"], described["tensors"]
        items = list(tensors.items())
    except (ValueError, KeyError, TypeError, AttributeError, RecursionError) as error:
        raise ValueError(f"its metadata `axs6` cannot be read: {error!r}") from error
    if version not in (BLOCKS_OF_AXS6, VERSION):
        raise ValueError(f"its version must be {BLOCKS_OF_AXS6} or {VERSION}, not {version!r}")
    found = {}
    for name, entry in items:
        try:
            how = {**entry, "shape": tuple(entry["shape"])}
            found[name] = Encoded(**(_of_axs6(how) if version == BLOCKS_OF_AXS6 else _of_any(how)))
        except (AttributeError, TypeError, KeyError, ValueError) as error:
            raise ValueError(f"tensor {name!r}: its metadata are wrong: {error}") from error
    return found


def _of_axs6(entry: Mapping[str, Any]) -> dict[str, Any]:
    named = {FORMER_NAMES.get(key, key): value for key, value in entry.items()}
    return {**named, "format": AXS6.with_block(named.get("block", AXS6.block))}


def _of_any(entry: Mapping[str, Any]) -> dict[str, Any]:
    if "block" in entry:
        raise ValueError("block is a part of format")
    if not isinstance(entry["format"], str):
        raise TypeError(f"format must be a string, not {entry['format']!r}")
    return dict(entry)


@contextmanager
def open_container(
    path: Path, checkpoints: bool = False
) -> Iterator[tuple[list[Tensor], dict[str, Encoded]]]:
    """The tensors of a container, and how those that were encoded were.

    With `checkpoints` those of an MXFP4 checkpoint too, with a tensor for each of its pairs.

    Raises:
        OSError: the file cannot be read.
        ValueError: it is damaged, or no container. What is found later, by `blocks_of`, gets the
            file's name too.
    """
    if path.suffix != ".safetensors":
        raise ValueError(f"{path} must end in .safetensors")
    with open_tensors(path) as (tensors, metadata):
        try:
            if checkpoints and KEY not in metadata:
                found = joined(tensors)
                if found[1]:
                    yield found
                    return
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
        scales = f"its scales and {how.blocks} blocks" if how.outer() else f"{how.blocks} blocks"
        least = "" if how.least_bytes == how.most_bytes else f"{how.least_bytes} to "
        raise ValueError(
            f"tensor {name!r}: {scales} have {least}{how.most_bytes} bytes, not {len(tensor.array)}"
        )


def blocks_of(tensor: Tensor, how: Encoded) -> Iterator[tuple[Piece, Blocks]]:
    """The blocks of an encoded tensor, piece by piece: those of each row after each other.

    Raises:
        ValueError: a block is wrong, or the bytes are not those of the blocks; the message names
            the tensor and the block.
    """
    try:
        if isinstance(tensor, Pair):
            yield from tensor.blocks(how)
            return
        yield from (_with_outer if how.outer() else _alone)(tensor.array, how)
    except ValueError as error:
        raise ValueError(f"tensor {tensor.name!r}: {error}") from error


def _alone(data: NDArray[np.uint8], how: Encoded) -> Iterator[tuple[Piece, Blocks]]:
    """Blocks of a format without scales of channels or the tensor."""
    layout = how.layout
    longest = layout.bytes_of()
    first = offset = 0
    for piece in how.pieces():
        count = piece.blocks(how.size)
        blocks, length = unpack_some(data[offset : offset + count * longest], count, layout, first)
        yield piece, blocks
        first, offset = first + count, offset + length
    if offset != len(data):
        raise ValueError(f"its {first} blocks have {offset} bytes, not {len(data)}")


def _with_outer(data: NDArray[np.uint8], how: Encoded) -> Iterator[tuple[Piece, Blocks]]:
    """Blocks that lie behind scales of channels or the tensor: all of one length."""
    fmt, offset = how.layout.format, how.outer_bytes()
    for piece in how.pieces():
        end = offset + piece.blocks(how.size) * how.layout.bytes_of()
        packed = np.concatenate([*_outer_of(data, how, piece), data[offset:end]])
        try:
            shape = (piece.rows, piece.values)
            yield piece, unpack(packed.data, shape, fmt, align=how.align)
        except ValueError as error:
            raise ValueError(f"{piece}: {error}") from error
        offset = end


def _outer_of(data: NDArray[np.uint8], how: Encoded, piece: Piece) -> Iterator[NDArray[np.uint8]]:
    """Bytes of the scales and zero points that the rows of a piece have."""
    start = 0
    for size, count in how.outer():
        part = data[start : start + size * count]
        if count == how.channels:
            part = part[size * piece.first_row : size * (piece.first_row + piece.rows)]
        yield part
        start += size * count


def container_metadata(entries: Sequence[Entry], others: Mapping[str, str]) -> dict[str, str]:
    """Metadata of a container, beside those that the tensors had."""
    tensors = {each.name: each.encoded.metadata for each in entries if each.encoded}
    return {**others, KEY: json.dumps({"version": VERSION, "tensors": tensors})}
