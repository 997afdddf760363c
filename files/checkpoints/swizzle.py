"""The order in which cuBLAS and CUTLASS keep scales of blocks: in tiles of 128 rows x 4 scales."""

from typing import Any

import numpy as np
from numpy.typing import NDArray

ROWS, SCALES = 128, 4
"""Size of a tile."""


def unswizzled(flat: NDArray[Any], shape: tuple[int, int]) -> NDArray[Any]:
    """Scales (rows, columns) of an array in the order of cuBLAS, padded to whole tiles."""
    rows, columns = shape
    tall, wide = -(-rows // ROWS), -(-columns // SCALES)
    tiles = flat.reshape(tall, wide, 32, 4, SCALES).transpose(0, 3, 2, 1, 4)
    return np.ascontiguousarray(tiles.reshape(tall * ROWS, wide * SCALES)[:rows, :columns])


def swizzled(scales: NDArray[Any]) -> NDArray[Any]:
    """Scales (rows, columns) in the order of cuBLAS, flat and padded with zeros to whole tiles."""
    rows, columns = scales.shape
    tall, wide = -(-rows // ROWS), -(-columns // SCALES)
    whole = np.zeros((tall * ROWS, wide * SCALES), scales.dtype)
    whole[:rows, :columns] = scales
    return whole.reshape(tall, 4, 32, wide, SCALES).transpose(0, 3, 2, 1, 4).reshape(-1)
