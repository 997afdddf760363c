"""Encoding the tensors of a file, in bounded memory."""

import math
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass, fields
from fnmatch import fnmatchcase
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import NDArray

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
from axs6.golden.rounding import Rounding
from axs6.replacing import check_apart


@dataclass(frozen=True, kw_only=True)
class Options(Coding):
    """Options of encoding, and the choice of tensors.

    Args:
        include, exclude: patterns of names (`*`, `?`, `[abc]`): floating-point tensors that one of
            `include` and none of `exclude` matches are encoded, others are copied unchanged.
        nonfinite: treatment of NaN and infinities, as in `axs6.encode`.

    Raises:
        ValueError: as `Coding`, or NaN is to be propagated in a format without it.
    """

    include: Sequence[str] = ("*",)
    exclude: Sequence[str] = ()
    nonfinite: NonFinite = "error"

    def __post_init__(self) -> None:
        super().__post_init__()
        check_nonfinite_in(self.layout.format, self.nonfinite)
        if self.profile is not None and self.nonfinite != "error":
            raise ValueError(
                f"a profile has finite values only, so no nonfinite {self.nonfinite!r}"
            )

    def chosen(self, tensor: Tensor) -> bool:
        """Whether a tensor is encoded."""
        return (
            tensor.dtype in FLOATS
            and len(tensor.shape) > 0
            and matches(tensor.name, self.include, self.exclude)
        )


def matches(name: str, include: Sequence[str], exclude: Sequence[str]) -> bool:
    """Whether one of the patterns to include matches a name, and none of those to exclude."""
    included = any(fnmatchcase(name, pattern) for pattern in include)
    return included and not any(fnmatchcase(name, pattern) for pattern in exclude)


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
        entries = [
            _entry(tensor, kind, encoded.get(tensor.name))
            for tensor, kind in zip(tensors, kinds, strict=True)
        ]
        rows = []
        described = container_metadata(entries, metadata)
        with writing(target, entries, described) as writer:
            for tensor, kind, entry in zip(tensors, kinds, entries, strict=True):
                if progress:
                    progress(tensor.name)
                errors = ErrorSums() if kind else None
                after = writer.add(entry, _contents(tensor, kind, errors, options))
                before, shape = tensor.nbytes, tensor.shape
                rows.append(TensorRow(tensor.name, tensor.dtype, shape, before, after, errors))
    return rows


def _entry(tensor: Tensor, encoding: Encoded | None, before: Encoded | None) -> Entry:
    """What is written for a tensor: encoded, or copied; `before` is its encoding in the source."""
    size = tensor.nbytes if encoding is None else encoding.most_bytes
    return Entry(tensor.name, tensor.dtype, tensor.shape, size, encoding or before)


def _contents(
    tensor: Tensor, encoding: Encoded | None, errors: ErrorSums | None, options: Options
) -> Iterator[bytes]:
    """The bytes of the tensor that is written for one, in pieces."""
    if encoding is None or errors is None:
        yield from plain(tensor.stored)
        return
    whole = Whole(encoding, _reader(tensor, encoding), options.nonfinite)
    yield from _packed(tensor, whole, errors)


def _encoded(tensor: Tensor, options: Options) -> Encoded:
    shape = tensor.shape
    try:
        coding = {each.name: getattr(options, each.name) for each in fields(Coding)}
        if options.axis is None and options.flatten is None:
            coding |= reduction(len(shape))
        return Encoded(shape=shape, dtype=tensor.dtype, **coding)
    except ValueError as error:
        raise ValueError(f"tensor {tensor.name!r}: {error}") from error


def _reader(tensor: Tensor, encoding: Encoded) -> Callable[[Piece], Values]:
    """A function that returns the values of a piece."""

    def read(piece: Piece) -> Values:
        return exact(taken(tensor.stored, encoding, piece))

    return read


def exact(values: NDArray[Any]) -> Values:
    """Values of a dtype of `FLOATS` as float32, or float64 where float32 does not hold them."""
    bits = fp32_bits(values)
    return values.astype(np.float64) if bits is None else bits.view(np.float32)


def _packed(tensor: Tensor, whole: Whole, errors: ErrorSums) -> Iterator[bytes]:
    encoding = whole.encoding
    yield from whole.bytes_ahead()
    for blocks in _blocks(tensor, whole, errors):
        yield pack(blocks, encoding.align)[encoding.bytes_ahead(len(blocks.codes)) :]


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
