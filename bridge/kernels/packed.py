"""Operands in the memory layout of the kernels."""

import ctypes
from math import prod
from typing import Any, NamedTuple

import numpy as np
from numpy.typing import NDArray

from axs6.golden import fp32
from axs6.golden.blocks import Blocks, check_blocks
from axs6.golden.formats import BlockFormat, Exponent, Integer, Level, Real, Shift
from axs6.golden.scaling import real_values
from axs6.torch.kernels.layout import Layout, layout
from axs6.torch.kernels.library import OperandAddresses, Shape, library
from axs6.torch.kernels.sums import FLOAT, LANES, converted, own_lanes

PANEL = 16
"""Columns that lie together in a right operand."""

LINE = 64
"""Bytes of a line of a cache."""

Arrays = tuple[NDArray[Any], ...]


class Panels(NamedTuple):
    """A right operand as the kernels read it.

    Args:
        words: lanes by panels of columns, int32 of shape (G, panels, words, PANEL). scales: factors
        in FP32, 1 for blocks of zeros. limits: of factors, or widths of integers. factors: those of
        all blocks, where FP32 does not hold them, else None.
    """

    words: NDArray[np.int32]
    scales: NDArray[np.float32]
    limits: NDArray[np.int32]
    factors: NDArray[np.float64] | None

    @property
    def addresses(self) -> tuple[int | None, ...]:
        """Of the arrays, in their order."""
        return tuple(None if x is None else x.ctypes.data for x in self)


class Packed:
    """A batch of matrices as an operand of products.

    Once it has been a right operand, it keeps its panels alone, from which lanes are read again.

    Args:
        layout: how values are held.
        lanes: an integer for each value, of shape (G, R, n * B), zeros at the end: int8, int16, or,
            with NaN and infinities, float32 or the upper halves of it.
        factors: factor of the integers of each block, without a divisor such as AXS-6's 31 over 32;
        float64 of shape (G, R, n), exact, NaN where the scale is. codes: codes of the exponents,
        uint8 of shape (G, R, n); None without exponents. outer: scales of rows, which multiply the
        results at the end, float32 of shape (G, R).
    """

    def __init__(
        self,
        layout: Layout,
        lanes: NDArray[Any],
        factors: NDArray[np.float64],
        codes: NDArray[np.uint8] | None = None,
        outer: NDArray[np.float32] | None = None,
    ) -> None:
        self.layout, self.codes, self.outer = layout, codes, outer
        self.shape: tuple[int, int, int] = factors.shape
        self.dtype = lanes.dtype
        self._lanes: NDArray[Any] | None = lanes
        self._factors: NDArray[Any] | None = factors
        self._panels: dict[np.dtype[Any], Panels] = {}
        self.stepped: dict[tuple[int | None, ...], tuple[Arrays, Arrays]] = {}
        """Right operands of products by steps, by what the accumulator needs of them."""
        self.ways: dict[Any, Any] = {}
        """How the operand is multiplied on the right, by layouts of left ones and libraries."""

    @property
    def lanes(self) -> NDArray[Any]:
        """The integers."""
        if self._lanes is not None:
            return self._lanes
        dtype, panels = next(iter(self._panels.items()))
        return converted(self._read(dtype, panels.words), self.dtype)

    def _read(self, dtype: np.dtype[Any], words: NDArray[np.int32]) -> NDArray[Any]:
        """The lanes of panels."""
        batches, rows, _ = self.shape
        apart = np.ascontiguousarray(words.swapaxes(-1, -2)).view(dtype)
        if dtype == LANES[0]:
            apart ^= np.int8(-128)
        return np.ascontiguousarray(apart.reshape(batches, -1, apart.shape[-1])[:, :rows])

    @property
    def factors(self) -> NDArray[np.float64]:
        """The factors."""
        if self._factors is None:
            assert self.layout.exponent is not None
            assert self.codes is not None
            return 2.0**self.layout.offset * _factor(self.layout.exponent, self.codes)
        return self._factors.astype(np.float64, copy=False)

    @property
    def exponents(self) -> NDArray[np.int32]:
        """The codes as int32."""
        assert self.codes is not None
        return self.codes.astype(np.int32)

    def in_lanes(self, dtype: np.dtype[Any]) -> NDArray[Any]:
        """The integers in other lanes."""
        return converted(self.lanes, dtype)

    def panels(self, dtype: np.dtype[Any]) -> Panels:
        """The operand as a right one, with lanes of a dtype."""
        if dtype not in self._panels:
            self._panels[dtype] = self._packed(dtype)
            self._lanes = None
        return self._panels[dtype]

    def _packed(self, dtype: np.dtype[Any]) -> Panels:
        batches, rows, blocks = self.shape
        lanes, factors = self.in_lanes(dtype), self.factors
        panels, words = -(-rows // PANEL), lanes.shape[-1] * lanes.itemsize // 4
        single = factors.astype(np.float32)
        exact = np.array_equal(single, factors, equal_nan=True)
        out = Panels(
            _in_lines((batches, panels, words, PANEL), np.int32),
            _in_lines((batches, panels, blocks, PANEL), np.float32),
            np.empty((batches, panels, blocks if dtype == FLOAT else 2), np.int32),
            None if exact else factors,
        )
        sizes = Shape(batches, 0, rows, blocks, self.layout.block, 1)
        library().axs6_pack(
            *(LANES.index(dtype), lanes.ctypes.data, factors.ctypes.data),
            *(ctypes.byref(sizes), ctypes.byref(OperandAddresses(*out.addresses))),
        )
        if exact:
            self._factors = single if self.layout.exponent is None else None
        return out


def _in_lines(shape: tuple[int, ...], dtype: type) -> NDArray[Any]:
    """An array that begins with a line of a cache, so that no vector lies in two."""
    size = prod(shape) * np.dtype(dtype).itemsize
    memory = np.empty(size + LINE, np.uint8)
    first = -memory.ctypes.data % LINE
    return memory[first : first + size].view(dtype).reshape(shape)


def pack(blocks: Blocks) -> Packed:
    """The operand of matrices that are encoded already.

    Args:
        blocks: of shape (G, R, K) or (R, K), in dense or sparse blocks along the last axis, of a
            format that `packs` accepts.
    """
    held = layout(blocks.format.untiled)
    lanes, factors, codes, outer = held_blocks(blocks)
    batches, rows, count, size = lanes.shape
    flat = lanes.reshape(batches, rows, count * size)
    return Packed(
        held, np.ascontiguousarray(converted(flat, own_lanes(held))), factors, codes, outer
    )


def held_blocks(
    blocks: Blocks,
) -> tuple[NDArray[Any], NDArray[np.float64], NDArray[np.uint8] | None, NDArray[np.float32] | None]:
    """The lanes of `pack` as int64 or float32 (G, R, n, B), its factors, codes and outer scales."""
    check_blocks("blocks", blocks)
    blocks = blocks.untiled
    fmt, held = blocks.format, layout(blocks.format)
    lanes: NDArray[Any] = _integers(blocks)
    if fmt.element.has_nan:
        lanes = lanes.astype(np.float32)
        lanes[fmt.element.nan_codes[blocks.codes]] = np.nan
        infinite = fmt.element.infinite_codes[blocks.codes]
        lanes[infinite != 0] = infinite[infinite != 0] * np.float32(np.inf)
    factors, codes, outer = np.full(lanes.shape[:-1], 2.0**held.offset), None, None
    for level, found in zip(fmt.levels[::-1], blocks.scales, strict=True):
        scale = level.scale
        if not level.blocked:
            assert isinstance(scale, Real)
            scales = np.broadcast_to(real_values(scale.dtype, found), lanes.shape[:-2])
            outer = scales.copy().reshape(prod(lanes.shape[:-3]), -1)
        elif not isinstance(scale, Shift):
            factors *= _factor(scale, found).reshape(factors.shape)
        if isinstance(scale, Exponent):
            codes = found
    shape = (prod(lanes.shape[:-3]), *lanes.shape[-3:])
    codes = None if codes is None else codes.reshape(shape[:-1])
    return lanes.reshape(shape), factors.reshape(shape[:-1]), codes, outer


def _integers(blocks: Blocks) -> NDArray[np.int64]:
    """The integer of each value, shifts and zero points among them, (..., n, B)."""
    fmt = blocks.format
    integers = fmt.element.integers[blocks.element_codes]
    if blocks.zero_points is not None:
        integers = integers - _of_values(blocks.zero_points, fmt.levels[0], blocks)
    for level, found in zip(fmt.levels[::-1], blocks.scales, strict=True):
        if isinstance(level.scale, Shift):
            integers = integers << level.scale.largest_code - _of_values(found, level, blocks)
    return integers


def _of_values(codes: NDArray[Any], level: Level, blocks: Blocks) -> NDArray[np.int64]:
    """Codes of groups for each value, broadcast to (..., n, B)."""
    wide = codes.astype(np.int64)
    if not level.blocked:
        return wide[..., None, None]
    size = int(level.group)
    return np.repeat(wide, size, axis=-1).reshape(*blocks.leading, blocks.count, blocks.block)


def _factor(scale: Exponent | Integer | Real, codes: NDArray[Any]) -> NDArray[np.float64]:
    """Factors of blocks, without the exponent's bias, which is in the offset."""
    if isinstance(scale, Exponent):
        powers = np.ldexp(1.0, codes.astype(np.int32))
        return np.where(codes == scale.nan_code, np.nan, powers)
    if isinstance(scale, Integer):
        return codes.astype(np.float64)
    return real_values(scale.dtype, scale.number(codes)).astype(np.float64)


def packs(fmt: BlockFormat) -> bool:
    """Whether the kernels hold a format: each block of it has one factor, each row one scale, and
    FP32 holds its integers."""
    integers = fmt.element.integers
    if (integers != integers.astype(np.float32)).any():
        return False
    apart = [x for x in fmt.blocked if not isinstance(x.scale, Shift) and x.group != fmt.block]
    outer = [x.scale for x in fmt.outer]
    whole = all(isinstance(x, Real) for x in outer) and len(outer) <= 1
    return not apart and whole and fmt.block % 4 == 0


def divisor_of(a: Layout, b: Layout) -> float:
    """Divisor of sums at the end."""
    divisor = a.format.element.divisor * b.format.element.divisor
    return divisor / (1 << fp32.scale_bits(divisor))
