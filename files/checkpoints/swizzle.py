"""The order in which cuBLAS and CUTLASS read scales of blocks: tiles of 128 rows x 4 scales.

In a tile, the scale of row r and column c is number (r mod 32) * 16 + (r div 32) * 4 + c. Tiles
follow each other along the rows' scales first. Rows and columns that fill the last tiles are 0.
Source: cuBLAS documentation, "1D Block Scaling Factors Layout".
"""

import math
from dataclasses import replace
from typing import Any

import numpy as np
from numpy.typing import NDArray

from axs6.files.checkpoints.layouts import WeightLayout

ROWS, SCALES = 128, 4
"""Of a tile."""

_ROWS = 32
"""Rows whose scales are 16 items apart."""


def padded(rows: int, columns: int) -> tuple[int, int]:
    """Rows and columns of whole tiles."""
    return -(-rows // ROWS) * ROWS, -(-columns // SCALES) * SCALES


def swizzled(scales: NDArray[Any]) -> NDArray[Any]:
    """Scales (..., rows, columns) in this order: (..., items), each matrix by itself.

    Raises:
        ValueError: there are fewer than two axes.
    """
    if scales.ndim < 2:
        raise ValueError(f"scales must have two axes or more, not the shape {scales.shape}")
    *outer, rows, columns = scales.shape
    tall, wide = padded(rows, columns)
    whole = np.zeros((*outer, tall, wide), scales.dtype)
    whole[..., :rows, :columns] = scales
    matrices = math.prod(outer)
    tiles = whole.reshape(matrices, tall // ROWS, ROWS // _ROWS, _ROWS, wide // SCALES, SCALES)
    return tiles.transpose(0, 1, 4, 3, 2, 5).reshape(*outer, tall * wide)


def unswizzled(flat: NDArray[Any], shape: tuple[int, ...]) -> NDArray[Any]:
    """Scales of a shape (..., rows, columns) from items in this order, of any shape.

    Raises:
        ValueError: the shape has fewer than two axes, or other items than there are.
    """
    if len(shape) < 2:
        raise ValueError(f"scales must have two axes or more, not the shape {shape}")
    *outer, rows, columns = shape
    tall, wide = padded(rows, columns)
    if flat.size != math.prod((*outer, tall, wide)):
        raise ValueError(
            f"scales of shape {shape} have {math.prod((*outer, tall, wide))} items in tiles of "
            f"{ROWS} x {SCALES}, not {flat.size}"
        )
    matrices = math.prod(outer)
    tiles = flat.reshape(matrices, tall // ROWS, wide // SCALES, _ROWS, ROWS // _ROWS, SCALES)
    whole = tiles.transpose(0, 1, 4, 3, 2, 5).reshape(*outer, tall, wide)
    return np.ascontiguousarray(whole[..., :rows, :columns])


def with_swizzled_scales(layout: WeightLayout) -> WeightLayout:
    """A layout with its finest scales in this order; itself if they are not those of blocks.

    They are scales of blocks if they are in a tensor of their own, several in a row.
    """
    part, *coarse = layout.scales
    if layout.interleaved or part.rows != 1 or not part.values:
        return layout
    scales = (replace(part, swizzled=True), *coarse)
    return replace(layout, name=f"{layout.name}-swizzled", scales=scales)
