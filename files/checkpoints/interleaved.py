"""Codes and scales in the blocks of one tensor."""

import math
from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import NDArray

from axs6.files.checkpoints.layouts import WeightLayout
from axs6.files.checkpoints.weight import ScaleLevel, bands
from axs6.files.stored import Stored
from axs6.golden.planar import joined


@dataclass(frozen=True)
class InterleavedBlock:
    """The bytes of a block of an interleaved layout."""

    layout: WeightLayout

    def __post_init__(self) -> None:
        assert self.layout.interleaved

    @property
    def group(self) -> int:
        """Values of a scale."""
        return self.layout.scales[0].values

    @property
    def scales(self) -> int:
        """Scales of a block."""
        assert self.layout.interleaved
        return self.layout.interleaved.scales

    @property
    def values(self) -> int:
        """Values of a block."""
        return self.group * self.scales

    @property
    def dtype(self) -> np.dtype[Any]:
        """Of the codes of scales."""
        (number,) = self.layout.scales[0].numbers.values()
        return number.dtype

    @property
    def ahead(self) -> int:
        """Bytes of the scales."""
        return self.scales * self.dtype.itemsize

    @property
    def nbytes(self) -> int:
        """Bytes of the block."""
        return self.ahead + self.values * self.layout.element.width // 8

    def row_bytes(self, length: int) -> int:
        """Bytes of a row of `length` values.

        Raises:
            ValueError: they are no whole blocks.
        """
        if length % self.values:
            raise ValueError(
                f"{self.layout.name} has blocks of {self.values} values, and rows of {length} are "
                "no whole blocks"
            )
        return length // self.values * self.nbytes

    def join(self, codes: NDArray[np.uint8], scales: NDArray[Any]) -> NDArray[np.uint8]:
        """The bytes of rows (count, bytes) from their codes (count, K) and scales."""
        count, length = codes.shape
        whole = np.empty((count, length // self.values, self.nbytes), np.uint8)
        ahead = np.ascontiguousarray(scales.astype(self.dtype)).view(np.uint8)
        whole[..., : self.ahead] = ahead.reshape(*whole.shape[:2], self.ahead)
        if self.layout.packed:
            halves = codes.reshape(count, -1, 2, self.group // 2)
            codes = joined(halves[:, :, 0], halves[:, :, 1])
        whole[..., self.ahead :] = codes.reshape(*whole.shape[:2], -1)
        return whole.reshape(count, -1)

    def split(self, rows: NDArray[np.uint8]) -> tuple[NDArray[np.uint8], NDArray[Any]]:
        """The codes (count, K) and scales (count, K / group) of rows of bytes."""
        held = rows.reshape(len(rows), -1, self.nbytes)[..., self.ahead :]
        if self.layout.packed:
            nibbles = held.reshape(len(rows), -1, self.group // 2)
            held = np.empty((*nibbles.shape[:2], 2, self.group // 2), np.uint8)
            np.bitwise_and(nibbles, 15, out=held[:, :, 0])
            np.right_shift(nibbles, 4, out=held[:, :, 1])
        return held.reshape(len(rows), -1), self.scales_of(rows)

    def scales_of(self, rows: NDArray[np.uint8]) -> NDArray[Any]:
        """The scales (count, K / group) of rows of bytes."""
        ahead = rows.reshape(len(rows), -1, self.nbytes)[..., : self.ahead]
        return np.ascontiguousarray(ahead).view(self.dtype).reshape(len(rows), -1)


@dataclass(frozen=True)
class Interleaving:
    """A tensor of blocks.

    Args:
        name: of the weight.
        layout: what a block has.
        shape: of the values.
        stored: the bytes.
    """

    name: str
    layout: WeightLayout
    shape: tuple[int, ...]
    stored: Stored

    @property
    def _block(self) -> InterleavedBlock:
        return InterleavedBlock(self.layout)

    def _rows(self, first: int, count: int) -> NDArray[np.uint8]:
        length = self._block.row_bytes(self.shape[-1])
        return self.stored.items(first * length, count * length).reshape(count, length)

    def codes(self, first: int, count: int) -> NDArray[np.uint8]:
        """The codes (count, K) of rows."""
        return self._block.split(self._rows(first, count))[0]

    def scales(self) -> ScaleLevel:
        """The scales of all blocks."""
        part = self.layout.scales[0]
        (number,) = part.numbers.values()
        return ScaleLevel(number, self._scale_codes, 1, part.values)

    def _scale_codes(self) -> NDArray[Any]:
        """Their codes.

        Raises:
            ValueError: one is 2^128, which float32 does not have.
        """
        part = self.layout.scales[0]
        (number,) = part.numbers.values()
        rows, length = math.prod(self.shape[:-1]), self.shape[-1]
        codes = np.empty((rows, length // part.values), number.dtype)
        for first, count in bands(rows, length):
            codes[first : first + count] = self._block.scales_of(self._rows(first, count))
        if np.isinf(number.values(codes)).any():
            raise ValueError(
                f"tensor {self.name!r}: a scale is 2^128 or infinite, which float32 does not have"
            )
        return codes.reshape(math.prod(self.shape[:-2]), -1, codes.shape[-1])
