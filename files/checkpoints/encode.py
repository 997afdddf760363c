"""Encoding values in a layout, by the block format that the layout has."""

import math
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import NDArray

from axs6.files.checkpoints.held import Coded, Held
from axs6.files.checkpoints.interleaved import InterleavedBlock
from axs6.files.checkpoints.layouts import WeightLayout
from axs6.files.checkpoints.recognise import grid
from axs6.files.checkpoints.weight import ScaleLevel
from axs6.files.coding import Encoded, Piece
from axs6.files.encode import exact
from axs6.files.outer import Values, Whole
from axs6.files.tensors import Tensor
from axs6.golden.blocks import Blocks
from axs6.golden.encode import encode
from axs6.golden.formats import BlockFormat
from axs6.golden.nonfinite import NonFinite
from axs6.golden.profile_scales import TensorNumbers

Rows = Callable[[int, int], Values]
"""Gives the values (count, K) of rows from a row on."""


@dataclass(frozen=True)
class Unencoded:
    """Values to be encoded.

    Args:
        name, shape: of the weight.
        rows: gives its values, float32 or float64.
        nonfinite: as in `axs6.encode`.
        format: with other rules of its scales than the layout's format has, or None.
        profile: a library whose steps are taken, as in `axs6.encode`, or None.
        dtype: of the values in the file, as safetensors name it; a profile looks at it.
    """

    name: str
    shape: tuple[int, ...]
    rows: Rows
    nonfinite: NonFinite = "error"
    format: BlockFormat | None = None
    profile: str | None = None
    dtype: str = "F32"


def rows_of(tensor: Tensor) -> Rows:
    """The values of rows of a tensor of a dtype of `FLOATS`, exactly."""
    length = tensor.shape[-1]

    def rows(first: int, count: int) -> Values:
        return exact(tensor.stored.items(first * length, count * length).reshape(count, length))

    return rows


def encoded(values: Unencoded, layout: WeightLayout) -> Held:
    """Values in a layout, which are encoded when they are written; codes and scales in memory.

    Raises:
        ValueError: the layout has no blocks for a row; when it is written, a value has no code.
            The message names the tensor.
    """
    part, length = layout.scales[0], values.shape[-1]
    if part.values and part.rows == 1 and length % part.values:
        raise ValueError(
            f"tensor {values.name!r}: {layout.name} has blocks of {part.values} values, and rows "
            f"of {length} are no whole blocks"
        )
    if layout.packed and length % 2:
        raise ValueError(
            f"tensor {values.name!r}: {layout.name} has two codes in a byte, and rows of {length} "
            "are no whole bytes"
        )
    if layout.interleaved:
        InterleavedBlock(layout).row_bytes(length)
    return Held(
        name=values.name,
        shape=values.shape,
        layout=layout,
        dtypes=tuple(next(iter(part.numbers)) for part in layout.scales),
        shared=tuple(not part.rows and not part.values for part in layout.scales),
        load=lambda: _encoded(values, layout),
        encoded_again=True,
    )


def _encoded(values: Unencoded, layout: WeightLayout) -> Coded:
    try:
        tiles = layout.scales[0].rows > 1
        codes, levels, tensor = (_in_tiles if tiles else _in_rows)(values, layout)
    except ValueError as error:
        raise ValueError(f"tensor {values.name!r}: {error}") from error
    scales = []
    for part, level in zip(layout.scales, levels, strict=True):
        number = next(iter(part.numbers.values()))
        matrices, tall, wide = grid(values.shape, part)
        if not part.rows and not part.values:
            matrices = 1
        shaped = level.astype(number.dtype).reshape(matrices, tall, wide)
        held = number.values(shaped)
        if part.inverse:
            with np.errstate(all="ignore"):
                held = np.float32(1) / held
        if tensor is not None and not part.rows and not part.values:
            held = np.full((1, 1, 1), tensor.inverse if part.inverse else tensor.scale)
        scales.append(ScaleLevel.of(number, number.codes(held)[0], part))
    return Coded(tuple(scales), lambda first, count: codes[first : first + count])


Found = tuple[NDArray[np.uint8], list[NDArray[Any]], TensorNumbers | None]
"""Codes (rows, K), the codes of scales, fine to coarse, and a tensor's scale under a profile."""


def _in_rows(values: Unencoded, layout: WeightLayout) -> Found:
    """Values in blocks along rows."""
    coding = Encoded(
        shape=values.shape,
        dtype=values.dtype,
        format=values.format or layout.format,
        axis=-1,
        profile=values.profile,
    )

    def read(piece: Piece) -> Values:
        rows = values.rows(piece.first_row, piece.rows)
        return rows[:, piece.start : piece.start + piece.values]

    whole = Whole(coding, read, values.nonfinite)
    codes = np.empty((math.prod(values.shape[:-1]), values.shape[-1]), np.uint8)
    found: list[list[NDArray[Any]]] = [[] for _ in layout.scales]
    for piece, blocks in _pieces(whole, coding):
        held = blocks.codes.reshape(piece.rows, -1)[:, : piece.values]
        end = piece.start + piece.values
        codes[piece.first_row : piece.first_row + piece.rows, piece.start : end] = held
        for level, scales, part in zip(found, blocks.scales[::-1], layout.scales, strict=True):
            # A scale of rows or of the tensor comes with every piece of them.
            if part.values or (part.rows and not piece.start) or not level:
                level.append(scales.reshape(-1))
    return codes, [_joined(level) for level in found], whole.under_profile


def _joined(parts: list[NDArray[Any]]) -> NDArray[Any]:
    return np.concatenate(parts) if parts else np.zeros(0, np.uint8)


def _pieces(whole: Whole, coding: Encoded) -> Iterator[tuple[Piece, Blocks]]:
    pieces = coding.pieces()
    for _, blocks in whole.encode(lambda _: None):
        yield next(pieces), blocks


def _in_tiles(values: Unencoded, layout: WeightLayout) -> Found:
    """Values in tiles of several rows, a row of tiles at a time; those at the edges are filled
    with zeros."""
    (part,) = layout.scales
    if values.profile is not None:
        raise ValueError(f"the profile {values.profile} has no scales of tiles")
    height = values.shape[-2] if len(values.shape) > 1 else 1
    length = values.shape[-1]
    wide = -(-length // part.values)
    codes = np.empty((math.prod(values.shape[:-1]), length), np.uint8)
    found = []
    for matrix in range(0, len(codes), height):
        for first in range(matrix, matrix + height, part.rows):
            count = min(part.rows, matrix + height - first)
            rows = values.rows(first, count)
            band = np.zeros((part.rows, wide * part.values), rows.dtype)
            band[:count, :length] = rows
            blocks = encode(band, values.format or layout.format, nonfinite=values.nonfinite)
            held = blocks.codes.reshape(part.rows, -1)
            codes[first : first + count] = held[:count, :length]
            found.append(blocks.scales[0].reshape(-1))
    return codes, [_joined(found)], None
