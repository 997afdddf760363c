"""`Held`: a weight in the layout in which it is to be written, and the tensors that hold it."""

import math
from collections.abc import Callable, Iterator
from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from axs6.files.checkpoints.interleaved import InterleavedBlock
from axs6.files.checkpoints.layouts import ScalePart, WeightLayout
from axs6.files.checkpoints.recognise import part_name, stored_shape
from axs6.files.checkpoints.swizzle import swizzled
from axs6.files.checkpoints.weight import ScaleLevel, bands
from axs6.files.writer import Entry
from axs6.golden.planar import pairs_of

Bytes = Iterator[bytes]
Rows = Callable[[int, int], NDArray[np.uint8]]
"""Gives bytes (count, n) of `count` rows from a row on."""


@dataclass(frozen=True, eq=False)
class Coded:
    """Codes and scales of a weight.

    Args:
        scales: fine to coarse, in the grids of the layout.
        codes: gives the codes (count, K) of rows.
        raw: gives them as bytes of the tensor, if there is a shorter way.
    """

    scales: tuple[ScaleLevel, ...]
    codes: Rows
    raw: Rows | None = None


@dataclass(frozen=True, eq=False)
class Held:
    """A weight in a layout.

    Args:
        name, shape: of the weight.
        layout: how it is held.
        dtypes: of the tensors of its levels of scales, fine to coarse.
        shared: for each level, whether all matrices share the scales.
        load: gives the codes and scales, which are not kept.
        input: the scale of activations, and its dtype.
        rounded: whether the values are those before in bfloat16 and not in float32.
        encoded_again: whether the values are others.
    """

    name: str
    shape: tuple[int, ...]
    layout: WeightLayout
    dtypes: tuple[str, ...]
    shared: tuple[bool, ...]
    load: Callable[[], Coded]
    input: tuple[ScaleLevel, str] | None = None
    rounded: bool = False
    encoded_again: bool = False

    def entries(self) -> list[Entry]:
        """The tensors that hold it: of codes, of scales fine to coarse, of the activations'."""
        inner = len(self.layout.scales) - len(self.layout.parts)
        levels = zip(self.layout.parts, self.dtypes[inner:], self.shared[inner:], strict=True)
        found = [self._codes_entry(), *(self._scales_entry(*level) for level in levels)]
        if self.input and self.layout.input:
            scales, dtype = self.input
            shape = (scales.codes.size,) if scales.codes.size > 1 or self.layout.input.axes else ()
            name = part_name(self.layout.input.names[0], self.name)
            found.append(Entry(name, dtype, shape, scales.codes.nbytes))
        return found

    def contents(self) -> Iterator[Bytes]:
        """The bytes of each of these tensors, in pieces."""
        coded = self.load()
        yield self._blocks(coded) if self.layout.interleaved else self._bytes(coded)
        inner = len(self.layout.scales) - len(self.layout.parts)
        levels = list(zip(coded.scales[inner:], self.layout.parts, strict=True))
        if self.input and self.layout.input:
            levels.append((self.input[0], self.layout.input))
        for level, part in levels:
            codes = swizzled(level.codes) if part.swizzled else level.codes
            yield iter([codes.astype(codes.dtype.newbyteorder("<"), copy=False).tobytes()])

    def _codes_entry(self) -> Entry:
        layout, shape = self.layout, self.shape
        name = part_name(layout.codes.names[0], self.name)
        if layout.interleaved:
            size = InterleavedBlock(layout).row_bytes(shape[-1]) * math.prod(shape[:-1])
            return Entry(name, layout.codes.dtype, shape, size)
        size = math.prod(shape) * layout.element.width // 8
        if layout.pairs:
            shape = (*shape[:-1], shape[-1] // 2)
        if block := layout.codes.block:
            shape = (*shape[:-1], shape[-1] // block, block)
        return Entry(name, layout.codes.dtype, shape, size)

    def _scales_entry(self, part: ScalePart, dtype: str, shared: bool) -> Entry:
        shape = stored_shape(self.shape, part)
        if shared and not part.rows and not part.values:
            shape = (1,) if part.axes else ()
        size = part.numbers[dtype].dtype.itemsize * math.prod(shape)
        return Entry(part_name(part.names[0], self.name), dtype, shape, size)

    def _bands(self) -> Iterator[tuple[int, int]]:
        """First row and number of rows of pieces, as `Weight.bands` has them."""
        return bands(math.prod(self.shape[:-1]), self.shape[-1])

    def _bytes(self, coded: Coded) -> Bytes:
        for first, count in self._bands():
            if coded.raw:
                yield coded.raw(first, count).tobytes()
            else:
                codes = coded.codes(first, count)
                yield (pairs_of(codes) if self.layout.packed else codes).tobytes()

    def _blocks(self, coded: Coded) -> Bytes:
        block, fine = InterleavedBlock(self.layout), coded.scales[0].codes
        rows = fine.reshape(-1, fine.shape[-1])
        for first, count in self._bands():
            yield block.join(coded.codes(first, count), rows[first : first + count]).tobytes()
