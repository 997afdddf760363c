"""`Weight`: a weight of a checkpoint as element codes and scales, whatever tensors hold it."""

import math
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from functools import cached_property
from typing import Any

import numpy as np
from numpy.typing import NDArray

from axs6.files import coding
from axs6.files.checkpoints.layouts import ScalePart, WeightLayout
from axs6.files.checkpoints.numbers import ScaleNumber, element_table, pair_table


def bands(rows: int, length: int) -> Iterator[tuple[int, int]]:
    """First row and number of rows of pieces of about `CHUNK` values; none of empty rows.

    A file of a few bytes can say that it has 2^62 rows without values.
    """
    step = max(1, coding.CHUNK // max(1, length))
    for first in range(0, rows if length else 0, step):
        yield first, min(step, rows - first)


@dataclass(frozen=True, eq=False)
class ScaleLevel:
    """A level of scales, which is read when it is looked at, and kept until `release`.

    Args:
        number: what the codes stand for.
        load: gives the codes, of shape (matrices, tiles of rows, tiles of values); 1 in place of
            `matrices` where all matrices of the weight share the scales.
        rows, values: of the weight in a tile; 0 stands for all.
        inverse: whether the finer scale is divided by it.
        dtype: of the tensor in the file, as safetensors name it; empty if there is none.
    """

    number: ScaleNumber
    load: Callable[[], NDArray[Any]]
    rows: int
    values: int
    inverse: bool = False
    dtype: str = ""

    @classmethod
    def of(cls, number: ScaleNumber, codes: NDArray[Any], part: ScalePart) -> "ScaleLevel":
        """Scales in memory, in the tiles of a part."""
        return cls(number, lambda: codes, part.rows, part.values, part.inverse)

    @cached_property
    def codes(self) -> NDArray[Any]:
        """The codes."""
        return self.load()

    @cached_property
    def factors(self) -> NDArray[np.float32]:
        """The numbers, in the shape of the codes."""
        return self.number.values(self.codes)

    def release(self) -> None:
        """Forget what was read."""
        for name in ("codes", "factors"):
            self.__dict__.pop(name, None)


@dataclass(frozen=True, eq=False)
class Weight:
    """A weight of shape (..., N, K), or (K,).

    Args:
        name: its name; `layout`: how it was held.
        shape: of the values.
        scales: fine to coarse.
        read: gives the codes (count, K), uint8, of `count` rows from a row on.
        raw: gives their bytes as the file has them, where `layout` has two codes in a byte in the
            usual order, or one; None in other layouts.
        nbytes: in the file.
        files: names of its tensors in the file.
        input: the scale of the module's activations, if the checkpoint has one.
    """

    name: str
    layout: WeightLayout
    shape: tuple[int, ...]
    scales: tuple[ScaleLevel, ...]
    read: Callable[[int, int], NDArray[np.uint8]]
    raw: Callable[[int, int], NDArray[np.uint8]] | None
    nbytes: int
    files: tuple[str, ...]
    input: ScaleLevel | None = None

    def check(self) -> None:
        """Raise ValueError for an infinite or NaN scale of a dtype of 16 bits or more, and for an
        inverse that is 0."""
        for level in self.scales:
            if level.number.dtype.itemsize == 1:
                continue
            factors = level.factors
            wrong = ~np.isfinite(factors) | (factors == 0 if level.inverse else False)
            if wrong.any():
                raise ValueError(f"tensor {self.name!r}: a scale is {factors[wrong].flat[0]:g}")

    def release(self) -> None:
        """Forget the scales that were read."""
        for level in (*self.scales, *((self.input,) if self.input else ())):
            level.release()

    @property
    def length(self) -> int:
        """K: values in a row."""
        return self.shape[-1]

    @property
    def rows(self) -> int:
        """Rows of all matrices."""
        return math.prod(self.shape[:-1])

    @property
    def height(self) -> int:
        """N: rows of a matrix."""
        return self.shape[-2] if len(self.shape) > 1 else 1

    def bands(self) -> Iterator[tuple[int, int]]:
        """First row and number of rows of pieces of about `CHUNK` values."""
        return bands(self.rows, self.length)

    def factors(self, first: int, count: int) -> tuple[NDArray[np.float32], int]:
        """The factors of rows, (count, tiles), and the values of a tile, the last perhaps fewer.

        Each is the product of the scales in float32, rounded after every one.
        """
        numbers = np.arange(first, first + count)
        matrix, row = numbers // self.height, numbers % self.height
        size = self.scales[0].values or max(1, self.length)
        columns = np.arange(-(-self.length // size))
        found: NDArray[np.float32] | None = None
        with np.errstate(all="ignore"):
            for level in self.scales:
                matrices, tall, _ = level.codes.shape
                rows = level.factors[
                    matrix if matrices > 1 else 0, row // level.rows if tall > 1 else 0
                ]
                where = columns * size // level.values if level.values else columns * 0
                each = rows[..., where] if rows.shape[-1] > 1 else rows
                if found is None:
                    found = np.broadcast_to(each, (count, len(columns)))
                else:
                    found = found / each if level.inverse else found * each
        assert found is not None
        return found, size

    def elements(self, first: int, count: int) -> NDArray[np.float32]:
        """The elements (count, K) of rows, before their scales."""
        if self.raw and self.layout.packed:
            pairs = np.take(pair_table(self.layout.element), self.raw(first, count))
            return pairs.view(np.float32)
        return np.take(element_table(self.layout.element), self.read(first, count))

    def values(self, first: int, count: int) -> NDArray[np.float32]:
        """The values (count, K) of rows, rounded to float32 after each product."""
        elements = self.elements(first, count)
        factors, size = self.factors(first, count)
        whole = self.length // size * size
        tiles = elements[:, :whole].reshape(count, -1, size)
        with np.errstate(all="ignore"):
            tiles *= factors[:, : whole // size, None]
            elements[:, whole:] *= factors[:, whole // size :]
        return elements
