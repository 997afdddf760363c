"""Payload fields as NumPy arrays that compiled simulators read and write."""

import ctypes
from collections.abc import Sequence
from typing import Any

import numpy as np
from numpy.typing import NDArray

from axs6.hw.layouts import Field


def element_type(field: Field) -> np.dtype[Any]:
    """The smallest integer dtype that holds a field's elements, of the field's signedness."""
    size = next(size for size in (8, 16, 32, 64) if size >= field.width)
    return np.dtype(f"{'i' if field.signed else 'u'}{size // 8}")


def column(array: NDArray[Any], field: Field) -> NDArray[Any]:
    """Items of a field, contiguous and in its element type."""
    return np.ascontiguousarray(array, element_type(field))


def room(rows: int, field: Field) -> NDArray[Any]:
    """An array for `rows` items of a field, not filled in."""
    return np.empty(rows if field.count is None else (rows, field.count), element_type(field))


def pointers(arrays: Sequence[NDArray[Any]]) -> ctypes.Array[ctypes.c_void_p]:
    """Addresses of arrays, as C takes them; the arrays must be kept while they are in use."""
    return (ctypes.c_void_p * len(arrays))(*(array.ctypes.data for array in arrays))
