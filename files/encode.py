"""Encoding the tensors of a file, in bounded memory."""

import math
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass, fields
from fnmatch import fnmatchcase
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import NDArray

from axs6.files.container import (
    Coding,
    Encoded,
    Entry,
    Piece,
    container_metadata,
    plain,
    reduction,
    writing,
)
from axs6.files.errors import ErrorSums
from axs6.files.tensors import FLOATS, Tensor, open_tensors
from axs6.golden.decode import decode
from axs6.golden.encode import encode
from axs6.golden.floats import fp32_bits
from axs6.golden.lfsr import Lfsr
from axs6.golden.pack import pack
from axs6.golden.spec import Rounding
from axs6.replacing import check_apart


@dataclass(frozen=True, kw_only=True)
class Options(Coding):
    """How tensors are encoded, and which.

    Args:
        include, exclude: patterns of names (`*`, `?`, `[abc]`): floating-point tensors that one of
            `include` and none of `exclude` matches are encoded, the others kept as they are.
    """

    include: Sequence[str] = ("*",)
    exclude: Sequence[str] = ()

    def chosen(self, tensor: Tensor) -> bool:
        """Whether a tensor is encoded."""
        return (
            tensor.dtype in FLOATS
            and tensor.array.ndim > 0
            and any(fnmatchcase(tensor.name, pattern) for pattern in self.include)
            and not any(fnmatchcase(tensor.name, pattern) for pattern in self.exclude)
        )


@dataclass(frozen=True)
class Row:
    """A line of the table of a file: a tensor, its bytes before and after, and its errors."""

    name: str
    dtype: str
    shape: tuple[int, ...]
    bytes_before: int
    bytes_after: int
    errors: ErrorSums | None

    @property
    def bits(self) -> float:
        """Bits a value."""
        return 8 * self.bytes_after / max(1, math.prod(self.shape))


def encode_file(
    source: Path,
    target: Path,
    options: Options | None = None,
    progress: Callable[[str], object] | None = None,
) -> list[Row]:
    """Encode the tensors of a file into a container.

    Args:
        source: a .safetensors, .npy or .npz file.
        target: the container, a .safetensors file.
        options: how; those by default take every floating-point tensor.
        progress: called with the name of each tensor before it is encoded.

    Returns:
        A row for each tensor.

    Raises:
        OSError: a file cannot be read or written.
        ValueError: the file is damaged, holds Python objects, no tensor is chosen, or a value has
            no code; the message names the tensor. Or `target` is `source`.
    """
    how = options or Options()
    if target.suffix != ".safetensors":
        raise ValueError(f"{target} must end in .safetensors")
    check_apart([target], [source])
    with open_tensors(source) as (tensors, metadata):
        entries = [_entry(tensor, how) for tensor in tensors]
        if not any(entry.encoded for entry in entries):
            raise ValueError(f"{source} has no floating-point tensor of a name that is included")
        rows = []
        with writing(target, entries, container_metadata(entries, metadata)) as writer:
            for tensor, entry in zip(tensors, entries, strict=True):
                if progress:
                    progress(tensor.name)
                errors = ErrorSums() if entry.encoded else None
                if entry.encoded and errors:
                    length = writer.add(entry, _packed(tensor, entry.encoded, errors))
                else:
                    length = writer.add(entry, plain(tensor.array))
                before = tensor.array.nbytes
                shape = tensor.array.shape
                rows.append(Row(tensor.name, tensor.dtype, shape, before, length, errors))
    return rows


def _entry(tensor: Tensor, how: Options) -> Entry:
    shape = tensor.array.shape
    if not how.chosen(tensor):
        return Entry(tensor.name, tensor.dtype, shape, tensor.array.nbytes)
    try:
        coding = {each.name: getattr(how, each.name) for each in fields(Coding)}
        if how.axis is None and how.flatten is None:
            coding |= reduction(len(shape))
        encoded = Encoded(shape=shape, dtype=tensor.dtype, **coding)
    except ValueError as error:
        raise ValueError(f"tensor {tensor.name!r}: {error}") from error
    return Entry(tensor.name, tensor.dtype, shape, encoded.most_bytes, encoded)


def _packed(tensor: Tensor, how: Encoded, errors: ErrorSums) -> Iterator[bytes]:
    source = None
    if how.rounding == Rounding.STOCHASTIC:
        source = Lfsr(how.block, how.seed, how.random_bits)
    for piece in how.pieces():
        values = taken(tensor.array, how, piece)
        random = None
        if source:
            words = source.draw(piece.blocks(how.block))
            random = words.reshape(piece.rows, -1)[:, : piece.values]
        try:
            encoded = encode(
                values,
                how.block,
                how.rounding,
                how.mode,
                random=random,
                random_bits=how.random_bits,
            )
        except ValueError as error:
            raise ValueError(f"tensor {tensor.name!r}, {piece}: {error}") from error
        bits = fp32_bits(values)
        exact = values if bits is None else bits.view(np.float32)
        errors.add(exact.astype(np.float64), decode(encoded, np.float64))
        yield pack(encoded, how.align)


def taken(array: NDArray[Any], how: Encoded, piece: Piece) -> NDArray[Any]:
    """The values (rows, values) of a piece of an array."""
    columns = slice(piece.start, piece.start + piece.values)
    numbers = np.arange(piece.first_row, piece.first_row + piece.rows)
    if how.flatten is not None and not array.flags.c_contiguous:
        # A view with flat axes there is not, and a copy may be larger than memory.
        flat = numbers[:, None] * how.length + np.arange(columns.start, columns.stop)
        return array[np.unravel_index(flat, array.shape)]
    rows = np.moveaxis(array.reshape(how.blocked_shape), how.along, -1)
    if rows.ndim == 1:
        return np.ascontiguousarray(rows[None, columns])
    where: tuple[Any, ...] = np.unravel_index(numbers, rows.shape[:-1])
    return np.ascontiguousarray(rows[(*where, columns)])
