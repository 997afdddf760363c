"""Operands as the kernels hold them, and products of them."""

import ctypes
from dataclasses import dataclass
from functools import cached_property
from typing import Any

import numpy as np
from numpy.typing import NDArray

from axs6.golden.blocks import Blocks
from axs6.golden.formats import BlockFormat
from axs6.golden.spec import WITHOUT_NAN, NonFinite, check_nonfinite
from axs6.sim.kernels.layout import Layout, layout
from axs6.sim.kernels.library import Operands, Shape, chosen

PANEL = 16
"""Columns that lie together in a right operand."""

EXACT_BITS = 24
"""Bits of sums that FP32 holds."""


@dataclass(frozen=True, eq=False)
class Packed:
    """A batch of matrices as an operand of products.

    Args:
        layout: how values are held.
        lanes: an integer for each value, int8 or int16 of shape (G, R, n * B), zeros at the end.
        factors: what the integers of a block are multiplied by, with the divisor of AXS-6's kind
            over its power of two left out; float64 of shape (G, R, n), exact.
        codes: codes of the exponents, uint8 of shape (G, R, n), where `encode` made them.
        outer: what a row's results are multiplied by at the end, float32 of shape (G, R).
    """

    layout: Layout
    lanes: NDArray[Any]
    factors: NDArray[np.float64]
    codes: NDArray[np.uint8] | None = None
    outer: NDArray[np.float32] | None = None

    @property
    def exponents(self) -> NDArray[np.int32]:
        """The codes as int32."""
        assert self.codes is not None
        return self.codes.astype(np.int32)

    @cached_property
    def panels(self) -> tuple[NDArray[np.int32], NDArray[np.float32], NDArray[np.int32]]:
        """The lanes in the order of a right operand, factors in FP32, and their limits."""
        batches, rows, blocks = self.factors.shape
        panels, words = -(-rows // PANEL), self.lanes.shape[-1] * self.lanes.itemsize // 4
        out = (
            np.empty((batches, panels, words, PANEL), np.int32),
            np.empty((batches, panels, blocks, PANEL), np.float32),
            np.empty((batches, panels, 2), np.int32),
        )
        sizes = Shape(batches, 0, rows, blocks, self.layout.format.block, 1)
        inputs = (self.lanes.ctypes.data, self.factors.ctypes.data, ctypes.byref(sizes))
        library = _library()
        library.axs6_pack(self.lanes.itemsize, *inputs, *(x.ctypes.data for x in out))
        return out


def _library() -> ctypes.CDLL:
    library = chosen()
    if library is None:
        raise RuntimeError("there are no compiled kernels: `axs6.sim.kernels.chosen` tells")
    return library


def takes(a: BlockFormat, b: BlockFormat) -> bool:
    """Whether there is a kernel for products of two formats in the "fp32" accumulation."""
    lanes = [_lane_dtype(layout(x)) for x in (a, b)]
    if None in lanes or [x.group for x in a.blocked] != [x.group for x in b.blocked]:
        return False
    bound = a.block * layout(a).bound * layout(b).bound
    return a.block % 4 == 0 and bound.bit_length() <= EXACT_BITS


def _lane_dtype(held: Layout) -> Any:
    """The dtype of the lanes of a format."""
    if held.format.element.has_nan:
        return None
    for dtype in (np.int8, np.int16)[not _library().axs6_has_8_bit() :]:
        if np.iinfo(dtype).min <= held.low and held.high <= np.iinfo(dtype).max:
            return dtype
    return None


def encode(
    x: NDArray[np.float32],
    fmt: BlockFormat,
    nonfinite: NonFinite = "error",
    threads: int = 1,
) -> Packed | None:
    """Encode matrices along their last axis, to nearest, as an operand of products.

    Args:
        x: float32 of shape (G, R, K), contiguous.
        fmt: a format with an exponent for each block, and integers of at most 16 bits.
        nonfinite: "error" or "saturate", as `axs6.encode` has them.
        threads: threads that share the work.

    Returns:
        The operand, or None where `nonfinite` is "error" and a value is not finite.

    Raises:
        ValueError: the kernels do not take the format, or `nonfinite` is unknown.
    """
    held = layout(fmt)
    check_nonfinite(nonfinite, WITHOUT_NAN)
    described = held.description
    dtype = _lane_dtype(held)
    if described is None or dtype is None:
        raise ValueError(f"no kernel encodes {fmt}")
    batches, rows, length = x.shape
    blocks = -(-length // fmt.block)
    lanes = np.empty((batches, rows, blocks * fmt.block), dtype)
    factors = np.empty((batches, rows, blocks))
    codes = np.empty((batches, rows, blocks), np.uint8)
    sizes = (batches * rows, length, threads, lanes.itemsize)
    bad = _library().axs6_encode(
        ctypes.byref(described),
        x.ctypes.data,
        *sizes,
        *(each.ctypes.data for each in (lanes, factors, codes)),
    )
    if bad and nonfinite == "error":
        return None
    return Packed(held, lanes, factors, codes)


def pack(blocks: Blocks) -> Packed:
    """The operand of matrices that are encoded already, (G, R, K) or (R, K).

    Args:
        blocks: of a format that `takes` accepts, in dense or sparse blocks along the last axis.
    """
    fmt = blocks.format
    held = layout(fmt)
    integers = held.format.element.integers[blocks.codes]
    codes = blocks.exponents.reshape(-1, *blocks.exponents.shape[-2:])
    lanes = integers.reshape(*codes.shape[:2], -1).astype(_lane_dtype(held))
    return Packed(held, lanes, np.ldexp(1.0, codes.astype(np.int32) + held.offset), codes)


def multiplies(a: Packed, b: Packed) -> bool:
    """Whether the library at hand multiplies two operands, which one in another form may have
    made."""
    library = chosen()
    if library is None or a.lanes.dtype != b.lanes.dtype:
        return False
    return a.lanes.itemsize > 1 or bool(library.axs6_has_8_bit())


def fake_quantise(
    x: NDArray[np.float32], fmt: BlockFormat, nonfinite: NonFinite = "error", threads: int = 1
) -> NDArray[np.float32] | None:
    """Encode along the last axis, to nearest, and decode.

    Args:
        x: float32 of shape (..., K), contiguous.
        fmt, nonfinite, threads: as of `encode`; integers may have any width.

    Returns:
        float32 of the shape of `x`, as `axs6.decode(axs6.encode(x, fmt))` gives it, or None where
        `nonfinite` is "error" and a value is not finite.

    Raises:
        ValueError: the kernels do not take the format, or `nonfinite` is unknown.
    """
    described = layout(fmt).description
    check_nonfinite(nonfinite, WITHOUT_NAN)
    if described is None:
        raise ValueError(f"no kernel encodes {fmt}")
    out = np.empty(x.shape, np.float32)
    sizes = (x.size // max(1, x.shape[-1]), x.shape[-1], threads)
    bad = _library().axs6_fake_quantise(
        ctypes.byref(described), x.ctypes.data, *sizes, out.ctypes.data
    )
    return None if bad and nonfinite == "error" else out


def matmul(a: Packed, b: Packed, threads: int = 1) -> NDArray[np.float32]:
    """y[g, m, n] = sum over k of a[g, m, k] * b[g, n, k], as `axs6.matmul` defines it.

    Args:
        a, b: operands of shapes (G, M, K) and (G, N, K), of formats that `takes` accepts.
        threads: threads that share the work; they change no bit.

    Returns:
        float32 of shape (G, M, N). Subnormals are kept, overflow gives infinity, and a NaN is
        always 0x7fc00000.
    """
    batches, rows, blocks = a.factors.shape
    columns, block = b.factors.shape[1], a.layout.format.block
    y = np.empty((batches, rows, columns), np.float32)
    if not y.size:
        return y
    outer: list[NDArray[np.float32] | None] = [a.outer, b.outer]
    if any(x is not None for x in outer):
        ones = (np.ones(x.factors.shape[:2], np.float32) for x in (a, b))
        outer = [own if given is None else given for given, own in zip(outer, ones, strict=True)]
    arrays = (a.lanes, b.lanes, a.factors, b.factors, *outer, *b.panels)
    divisor = a.layout.format.element.divisor * b.layout.format.element.divisor
    _library().axs6_multiply(
        a.lanes.itemsize,
        ctypes.byref(Operands(*(None if x is None else x.ctypes.data for x in arrays))),
        ctypes.byref(Shape(batches, rows, columns, blocks, block, threads)),
        (block * a.layout.bound * b.layout.bound).bit_length(),
        divisor / (1 << (divisor - 1).bit_length()),
        y.ctypes.data,
    )
    return y
