"""Decoding a container, in bounded memory."""

import math
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import NDArray

from axs6.files.checkpoints.decode import decode_checkpoint
from axs6.files.checkpoints.source import is_checkpoint
from axs6.files.coding import Encoded
from axs6.files.container import blocks_of, container_metadata, open_container
from axs6.files.scratch import scratch_array
from axs6.files.tensors import DTYPES, Tensor
from axs6.files.writer import Entry, of_array, plain, writing
from axs6.golden.decode import decode
from axs6.replacing import check_apart, replacing

DECODED = {"F64": "F64", "F32": "F32", "F16": "F32", "BF16": "BF16"}
"""The dtype of decoded values by the original dtype."""

GOLDEN: dict[str, Any] = {"F64": np.float64, "F32": np.float32, "BF16": "bfloat16"}


def decode_file(
    source: Path, target: Path, progress: Callable[[str], object] | None = None
) -> list[str]:
    """Decode a container or a checkpoint.

    Values of a container get their original dtype, but float16 becomes float32; those of a
    checkpoint become bfloat16, as `decode_checkpoint` says.

    Args:
        source: a container that `encode_file` wrote, or a checkpoint.
        target: a .safetensors file for all tensors, or a .npy file for the only one.
        progress: called with the name of each tensor before it is decoded.

    Returns:
        The names of the tensors.

    Raises:
        OSError: a file cannot be read or written.
        ValueError: the container is damaged; the message names the tensor and the block. Or
            `target` is `source`, neither kind of file, or a .npy file for several tensors.
    """
    if is_checkpoint(source):
        return decode_checkpoint(source, target, progress)
    if target.suffix not in (".safetensors", ".npy"):
        raise ValueError(f"{target} must end in .safetensors or .npy")
    check_apart([target], [source])
    with open_container(source) as (tensors, encoded, metadata):
        entries = [_entry(tensor, encoded.get(tensor.name)) for tensor in tensors]
        pieces = [_pieces(tensor, encoded.get(tensor.name)) for tensor in tensors]
        if target.suffix == ".npy":
            if len(tensors) != 1:
                raise ValueError(f"{len(tensors)} tensors must be written as .safetensors")
            if progress:
                progress(tensors[0].name)
            _write_npy(target, entries[0], pieces[0])
            return [tensors[0].name]
        with writing(target, entries, container_metadata(entries, metadata)) as writer:
            for entry, each in zip(entries, pieces, strict=True):
                if progress:
                    progress(entry.name)
                writer.add(entry, each)
    return [tensor.name for tensor in tensors]


def _entry(tensor: Tensor, encoding: Encoded | None) -> Entry:
    if encoding is None:
        return Entry(tensor.name, tensor.dtype, tensor.shape, tensor.nbytes)
    dtype = DECODED[encoding.dtype]
    size = np.dtype(DTYPES[dtype]).itemsize * math.prod(encoding.shape)
    return Entry(tensor.name, dtype, encoding.shape, size)


def _write_npy(target: Path, entry: Entry, pieces: Iterator[bytes]) -> None:
    with replacing(target) as file:
        dtype = np.dtype(DTYPES[entry.dtype])
        described = {"descr": dtype.str, "fortran_order": False, "shape": entry.shape}
        np.lib.format.write_array_header_1_0(file, described)
        for piece in pieces:
            file.write(piece)


def _pieces(tensor: Tensor, encoding: Encoded | None) -> Iterator[bytes]:
    """The bytes of a decoded tensor in the order of its shape."""
    if encoding is None:
        yield from plain(tensor.stored)
    elif encoding.in_order:
        yield from (values.tobytes() for values, _ in _decoded(tensor, encoding))
    else:
        yield from _turned(tensor, encoding)


def _decoded(tensor: Tensor, encoding: Encoded) -> Iterator[tuple[NDArray[Any], Any]]:
    for piece, blocks in blocks_of(tensor, encoding):
        values = decode(blocks, GOLDEN[DECODED[encoding.dtype]])
        yield values.reshape(piece.rows, -1)[:, : piece.values], piece


def _turned(tensor: Tensor, encoding: Encoded) -> Iterator[bytes]:
    """Rows along another axis than the last are reordered in a temporary file."""
    dtype = np.dtype(DTYPES[DECODED[encoding.dtype]])
    if 0 in encoding.shape:
        return
    with scratch_array(encoding.shape, dtype) as whole:
        rows = np.moveaxis(whole, encoding.along, -1)
        for values, piece in _decoded(tensor, encoding):
            numbers = np.arange(piece.first_row, piece.first_row + piece.rows)
            where: tuple[Any, ...] = np.unravel_index(numbers, rows.shape[:-1])
            rows[(*where, slice(piece.start, piece.start + piece.values))] = values
        yield from of_array(whole)
