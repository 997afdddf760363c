"""Payload fields as NumPy arrays that compiled simulators read and write."""

import ctypes
from collections.abc import Sequence
from functools import cache
from typing import Any

import numpy as np
from numpy.typing import NDArray

from axs6.hw.core.layouts import Field


@cache
def element_type(field: Field) -> np.dtype[Any]:
    """The smallest integer dtype that holds a field's elements, of the field's signedness."""
    size = next(size for size in (8, 16, 32, 64) if size >= field.width)
    return np.dtype(f"{'i' if field.signed else 'u'}{size // 8}")


def room(rows: int, field: Field) -> NDArray[Any]:
    """An array for `rows` items of a field, not filled in."""
    return np.empty((rows, *field.shape), element_type(field))


def pointers(arrays: Sequence[NDArray[Any] | None]) -> ctypes.Array[ctypes.c_void_p]:
    """Addresses of arrays as C takes them, which must be kept while in use; None is a null."""
    addresses = [None if array is None else array.ctypes.data for array in arrays]
    return (ctypes.c_void_p * len(arrays))(*addresses)
