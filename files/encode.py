"""Encoding the tensors of a file, in bounded memory."""

import math
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass, fields
from fnmatch import fnmatchcase
from itertools import chain
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import NDArray

from axs6.files.checkpoint import check_pair, pair_contents, pair_entries
from axs6.files.coding import Coding, Encoded, Piece, reduction
from axs6.files.container import container_metadata, encoded_before
from axs6.files.outer import Values, Whole
from axs6.files.stored import Stored
from axs6.files.tensors import FLOATS, Tensor, open_tensors
from axs6.files.writer import Entry, plain, writing
from axs6.golden.blocks import Blocks
from axs6.golden.decode import decode
from axs6.golden.encode import SATURATED
from axs6.golden.floats import fp32_bits
from axs6.golden.lfsr import Lfsr
from axs6.golden.metrics import ErrorSums
from axs6.golden.nonfinite import NonFinite, check_nonfinite_in
from axs6.golden.pack import pack
from axs6.golden.planar import check_checkpoint
from axs6.golden.rounding import Rounding
from axs6.replacing import check_apart


@dataclass(frozen=True, kw_only=True)
class Options(Coding):
    """Options of encoding, and the choice of tensors.

    Args:
        include, exclude: patterns of names (`*`, `?`, `[abc]`): floating-point tensors that one of
            `include` and none of `exclude` matches are encoded, others are copied unchanged.
        checkpoint: write an MXFP4 checkpoint in place of a container: pairs of tensors
            `NAME_blocks` and `NAME_scales`, along the last axis, without metadata.
        nonfinite: treatment of NaN and infinities, as in `axs6.encode`.

    Raises:
        ValueError: as `Coding`, checkpoints do not have such blocks, or NaN is to be propagated in
            a format without it.
    """

    include: Sequence[str] = ("*",)
    exclude: Sequence[str] = ()
    checkpoint: bool = False
    nonfinite: NonFinite = "error"

    def __post_init__(self) -> None:
        super().__post_init__()
        check_nonfinite_in(self.layout.format, self.nonfinite)
        if self.profile is not None and self.nonfinite != "error":
            raise ValueError(
                f"a profile has finite values only, so no nonfinite {self.nonfinite!r}"
            )
        if self.checkpoint:
            check_checkpoint(self.layout.format)
            if self.align > 1:
                raise ValueError("checkpoints have no padding, so align must be 1")

    def chosen(self, tensor: Tensor) -> bool:
        """Whether a tensor is encoded."""
        return (
            tensor.dtype in FLOATS
            and len(tensor.shape) > 0
            and any(fnmatchcase(tensor.name, pattern) for pattern in self.include)
            and not any(fnmatchcase(tensor.name, pattern) for pattern in self.exclude)
        )


@dataclass(frozen=True)
class TensorRow:
    """A line of the table of a file: a tensor, its bytes before and after, and its errors.

    Errors are those of the values that are finite before and after.
    """

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
) -> list[TensorRow]:
    """Encode the tensors of a file into a container.

    Args:
        source: a .safetensors, .npy or .npz file; encoded tensors of a container are kept.
        target: the container, a .safetensors file.
        options: by default every floating-point tensor is encoded.
        progress: called with the name of each tensor before it is encoded.

    Returns:
        A row for each tensor.

    Raises:
        OSError: a file cannot be read or written.
        ValueError: the file is damaged, holds Python objects, no tensor is chosen, or a value has
            no code; the message names the tensor. Or `target` is `source`.
    """
    options = options or Options()
    if target.suffix != ".safetensors":
        raise ValueError(f"{target} must end in .safetensors")
    check_apart([target], [source])
    with open_tensors(source) as (tensors, metadata):
        kinds = [
            _encoded(tensor, options) if options.chosen(tensor) else None for tensor in tensors
        ]
        if not any(kinds):
            raise ValueError(f"{source} has no floating-point tensor with an included name")
        encoded = encoded_before(source, tensors, metadata)
        if encoded and options.checkpoint:
            raise ValueError(f"{source} is a container of blocks, which cannot become a checkpoint")
        entries = [
            [_kept(tensor, encoded.get(tensor.name))]
            if kind is None
            else _entries(tensor, kind, options.checkpoint)
            for tensor, kind in zip(tensors, kinds, strict=True)
        ]
        every = list(chain(*entries))
        rows = []
        described = container_metadata(every, metadata)
        with writing(target, every, described) as writer:
            for tensor, kind, written in zip(tensors, kinds, entries, strict=True):
                if progress:
                    progress(tensor.name)
                errors = ErrorSums() if kind else None
                contents = _contents(tensor, kind, errors, options)
                lengths = [writer.add(*each) for each in zip(written, contents, strict=False)]
                before, after = tensor.nbytes, sum(lengths)
                shape = tensor.shape
                rows.append(TensorRow(tensor.name, tensor.dtype, shape, before, after, errors))
    return rows


def _kept(tensor: Tensor, encoding: Encoded | None) -> Entry:
    """A tensor that is copied; `encoding` is its encoding, if it is encoded already."""
    return Entry(tensor.name, tensor.dtype, tensor.shape, tensor.nbytes, encoding)


def _entries(tensor: Tensor, encoding: Encoded, checkpoint: bool) -> list[Entry]:
    """The tensors that are written for one that is encoded."""
    if checkpoint:
        return pair_entries(tensor.name, encoding)
    return [Entry(tensor.name, tensor.dtype, tensor.shape, encoding.most_bytes, encoding)]


def _contents(
    tensor: Tensor, encoding: Encoded | None, errors: ErrorSums | None, options: Options
) -> Iterator[Iterator[bytes]]:
    """The bytes of each of the tensors that are written for one, in pieces."""
    if encoding is None or errors is None:
        yield plain(tensor.stored)
        return
    whole = Whole(encoding, _reader(tensor, encoding), options.nonfinite)
    if options.checkpoint:
        yield from pair_contents(_blocks(tensor, whole, errors))
    else:
        yield _packed(tensor, whole, errors)


def _encoded(tensor: Tensor, options: Options) -> Encoded:
    shape = tensor.shape
    try:
        coding = {each.name: getattr(options, each.name) for each in fields(Coding)}
        if options.axis is None and options.flatten is None:
            coding |= {"axis": -1} if options.checkpoint else reduction(len(shape))
        encoded = Encoded(shape=shape, dtype=tensor.dtype, **coding)
        if options.checkpoint:
            check_pair(encoded)
        return encoded
    except ValueError as error:
        raise ValueError(f"tensor {tensor.name!r}: {error}") from error


def _reader(tensor: Tensor, encoding: Encoded) -> Callable[[Piece], Values]:
    """A function that returns the exact values of a piece."""

    def read(piece: Piece) -> Values:
        values = taken(tensor.stored, encoding, piece)
        bits = fp32_bits(values)
        return values.astype(np.float64) if bits is None else bits.view(np.float32)

    return read


def _packed(tensor: Tensor, whole: Whole, errors: ErrorSums) -> Iterator[bytes]:
    encoding = whole.encoding
    yield from whole.outer_bytes()
    for blocks in _blocks(tensor, whole, errors):
        yield pack(blocks, encoding.align)[encoding.outer_bytes(len(blocks.codes)) :]


def _blocks(tensor: Tensor, whole: Whole, errors: ErrorSums) -> Iterator[Blocks]:
    """The blocks of a tensor, piece by piece; the errors are added up."""
    encoding, source = whole.encoding, None
    if encoding.rounding == Rounding.STOCHASTIC:
        source = Lfsr(encoding.size, encoding.seed, encoding.random_bits)

    def random(piece: Piece) -> NDArray[Any] | None:
        if source is None:
            return None
        words = source.draw(piece.blocks(encoding.size))
        return words.reshape(piece.rows, -1)[:, : piece.values]

    options = {
        "rounding": encoding.rounding,
        "mode": encoding.mode,
        "random_bits": encoding.random_bits,
    }
    try:
        for values, blocks in whole.encode(random, **options):
            _add_errors(errors, values, decode(blocks, np.float64))
            yield blocks
    except ValueError as error:
        raise ValueError(f"tensor {tensor.name!r}, {error}") from error


def _add_errors(errors: ErrorSums, values: Values, decoded: NDArray[np.float64]) -> None:
    """Count the values that are finite, before and after."""
    known = np.isfinite(values) & np.isfinite(decoded)
    if values.dtype == np.float64:
        known &= np.abs(values) < SATURATED
    if known.all():
        errors.add(values.astype(np.float64), decoded)
    else:
        errors.add(values[known].astype(np.float64), decoded[known])


def taken(stored: Stored, encoding: Encoded, piece: Piece) -> NDArray[Any]:
    """The values (rows, values) of a piece of an array."""
    if encoding.in_order:
        values = stored.items(piece.first(encoding), piece.rows * piece.values)
        return values.reshape(piece.rows, piece.values)
    shape, along = encoding.blocked_shape, encoding.along
    steps = [math.prod(shape[axis + 1 :]) for axis in range(len(shape))]
    columns = np.arange(piece.start, piece.start + piece.values) * steps[along]
    rows = np.arange(piece.first_row, piece.first_row + piece.rows)
    others = [axis for axis in range(len(shape)) if axis != along]
    places = np.unravel_index(rows, [shape[axis] for axis in others])
    first = np.stack(places, axis=-1) @ np.array([steps[axis] for axis in others])
    return stored.at(first[:, None] + columns)
