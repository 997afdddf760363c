"""Encoding and products by the kernels."""

import ctypes
import math
from dataclasses import dataclass
from functools import cache
from typing import Any, Final

import numpy as np
from numpy.typing import NDArray

from axs6.golden.accumulator import Accumulator
from axs6.golden.formats import BlockFormat
from axs6.golden.nonfinite import WITHOUT_NAN, NonFinite, check_nonfinite
from axs6.torch.kernels import stepped
from axs6.torch.kernels.layout import Layout, layout
from axs6.torch.kernels.library import OperandAddresses, Shape, chosen, library
from axs6.torch.kernels.packed import Packed, divisor_of, packs
from axs6.torch.kernels.rows import RowScales
from axs6.torch.kernels.sums import (
    DOUBLE_BITS,
    FLOAT,
    LANES,
    Factors,
    are_powers,
    block_bits,
    common_lanes,
    factors,
    integer_lanes,
    own_lanes,
    sum_bits,
)

FP32_SUMS: Final = Accumulator()
"""Exact sums of blocks, added in FP32."""

WIDE_BITS = 126
"""Bits of sums, at most."""


@cache
def takes(a: BlockFormat, b: BlockFormat, accumulator: Accumulator = FP32_SUMS) -> bool:
    """Whether the kernels multiply two formats as an accumulator says."""
    if not (packs(a) and packs(b)):
        return False
    if accumulator != FP32_SUMS:
        return stepped.steps(a, b, accumulator) is not None
    left, right = layout(a), layout(b)
    try:
        bits = sum_bits(left, right)
    except ValueError:
        return False
    if bits <= DOUBLE_BITS or (bits <= WIDE_BITS and are_powers(left, right)):
        return True
    return factors(left, right) is not None and FLOAT not in map(integer_lanes, (left, right))


def encodes(fmt: BlockFormat, scale: float | None = None) -> bool:
    """Whether the kernels encode a format, with a given scale if any. If so, `encode` and
    `fake_quantise` take both.
    """
    return _encodes(layout(fmt), scale)


def _encodes(held: Layout, scale: float | None) -> bool:
    if scale is None:
        return held.description is not None or held.real
    with np.errstate(over="ignore"):
        rounded = float(np.float32(scale))
    return bool(held.format.outer) and held.real and 0 < rounded < math.inf


@cache
def _takes(a: Layout, b: Layout, accumulator: Accumulator) -> bool:
    """As `takes`, with a faster look-up: a format's hash goes through all its levels."""
    return takes(a.format, b.format, accumulator)


def multiplies(a: Packed | None, b: Packed | None, accumulator: Accumulator = FP32_SUMS) -> bool:
    """Whether both operands exist, and the library multiplies them in an accumulator."""
    if a is None or b is None or chosen() is None:
        return False
    return _takes(a.layout, b.layout, accumulator)


def encode(
    x: NDArray[np.float32],
    fmt: BlockFormat,
    nonfinite: NonFinite = "error",
    threads: int = 1,
    scale: float | None = None,
) -> Packed | None:
    """Encode matrices along their last axis, to nearest, as an operand of products.

    Args:
        x: float32 of shape (G, R, K), contiguous.
        fmt: a format that `encodes` accepts.
        nonfinite: "error" or "saturate", as `axs6.encode` has them.
        threads: threads that share the work.
        scale: of the tensor or of every row, instead of those that follow from the values.

    Returns:
        The operand, or None where `nonfinite` is "error" and a value is not finite.

    Raises:
        ValueError: the kernels do not encode the format, or not under this scale, or `nonfinite`
            is unknown.
    """
    held = layout(fmt)
    _check(held, nonfinite, scale)
    if held.real:
        return _encode_real(x, held, nonfinite, threads, scale)
    assert held.description is not None
    batches, rows, length = x.shape
    blocks = -(-length // held.block)
    lanes = np.empty((batches, rows, blocks * held.block), own_lanes(held))
    factors = np.empty((batches, rows, blocks))
    codes = np.empty((batches, rows, blocks), np.uint8)
    sizes = (batches * rows, length, threads, LANES.index(lanes.dtype))
    out = (each.ctypes.data for each in (lanes, factors, codes))
    bad = library().axs6_encode(ctypes.byref(held.description), x.ctypes.data, *sizes, *out)
    if bad and nonfinite == "error":
        return None
    return Packed(held, lanes, factors, codes)


def _encode_real(
    x: NDArray[np.float32],
    held: Layout,
    nonfinite: NonFinite,
    threads: int,
    scale: float | None,
) -> Packed | None:
    """As `encode`, for real or integer scales."""
    fmt = held.format
    found = RowScales.find(x, fmt, nonfinite, threads, scale)
    if found is None:
        return None
    batches, rows, length = x.shape
    blocks = -(-length // held.block)
    lanes = np.empty((batches, rows, blocks * held.block), own_lanes(held))
    factors = np.empty((batches, rows, blocks))
    library().axs6_encode_real(
        *found.arguments(fmt, threads),
        *(LANES.index(lanes.dtype), lanes.ctypes.data, factors.ctypes.data),
    )
    outer = found.scales.reshape(batches, rows) if fmt.outer else None
    return Packed(held, lanes, factors, None, outer)


def fake_quantise(
    x: NDArray[np.float32],
    fmt: BlockFormat,
    nonfinite: NonFinite = "error",
    threads: int = 1,
    scale: float | None = None,
) -> NDArray[np.float32] | None:
    """Encode along the last axis, to nearest, and decode.

    Args:
        x: float32 of shape (..., K), contiguous.
        fmt, nonfinite, threads, scale: as of `encode`.

    Returns:
        float32 of the shape of `x`, as `axs6.decode(axs6.encode(x, fmt))` gives it, or None where
        `nonfinite` is "error" and a value is not finite.

    Raises:
        ValueError: as `encode`.
    """
    held = layout(fmt)
    _check(held, nonfinite, scale)
    out = np.empty(x.shape, np.float32)
    if held.real:
        found = RowScales.find(x, fmt, nonfinite, threads, scale)
        if found is None:
            return None
        library().axs6_fake_quantise_real(*found.arguments(fmt, threads), out.ctypes.data)
        return out
    assert held.description is not None
    sizes = (x.size // max(1, x.shape[-1]), x.shape[-1], threads)
    bad = library().axs6_fake_quantise(
        *(ctypes.byref(held.description), x.ctypes.data, *sizes, out.ctypes.data)
    )
    return None if bad and nonfinite == "error" else out


def _check(held: Layout, nonfinite: NonFinite, scale: float | None) -> None:
    check_nonfinite(nonfinite, WITHOUT_NAN)
    if not _encodes(held, scale):
        under = "" if scale is None else f" under {scale}"
        raise ValueError(f"no kernel encodes {held.format}{under}")


def matmul(
    a: Packed,
    b: Packed,
    accumulator: Accumulator = FP32_SUMS,
    threads: int = 1,
    bias: NDArray[np.float32] | None = None,
) -> NDArray[np.float32]:
    """y[g, m, n] = sum over k of a[g, m, k] * b[g, n, k], as `axs6.matmul` defines it.

    Args:
        a, b: operands of shapes (G, M, K) and (G, N, K).
        accumulator: how products become one number. `takes` says whether it and the formats are
            among those that the kernels have.
        threads: threads that share the work; they change no bit.
        bias: float32 of shape (G, N), contiguous, which is added in FP32 to the rounded products;
            for exact blocks added in FP32 alone.

    Returns:
        float32 of shape (G, M, N). Subnormals are kept, overflow gives infinity, and a NaN is
        always the accumulator's.

    Raises:
        ValueError: the kernels do not have the formats or the accumulator, or not with a bias, or
            the bias has another shape.
    """
    if bias is not None:
        _check_bias(bias, b, accumulator)
    if not _takes(a.layout, b.layout, accumulator):
        raise ValueError(
            f"no kernel multiplies {a.layout.format} and {b.layout.format} in {accumulator}"
        )
    batches, rows, blocks = a.shape
    columns, block = b.shape[1], a.layout.block
    y = np.empty((batches, rows, columns), np.float32)
    if not y.size:
        return y
    if accumulator != FP32_SUMS:
        stepped.multiply(a, b, accumulator, y, threads)
        return y
    way = _way(a.layout, b)
    outer = stepped.outer_scales(a, b)
    arrays = (a.in_lanes(way.lanes), a.factors, *outer, bias)
    operands = OperandAddresses(
        *way.addresses, *(None if x is None else x.ctypes.data for x in arrays)
    )
    library().axs6_multiply(
        LANES.index(way.lanes),
        ctypes.byref(operands),
        ctypes.byref(Shape(batches, rows, columns, blocks, block, threads)),
        *way.sums,
        y.ctypes.data,
    )
    return y


def fuses(fmt: BlockFormat, b: Packed) -> bool:
    """Whether `encode_matmul` takes a left operand in a format beside this right one."""
    return _way(layout(fmt), b).fused


def encode_matmul(
    x: NDArray[np.float32],
    fmt: BlockFormat,
    b: Packed,
    nonfinite: NonFinite = "error",
    threads: int = 1,
    bias: NDArray[np.float32] | None = None,
) -> NDArray[np.float32] | None:
    """The result of `matmul` for `x` encoded, in one call.

    Args:
        x: float32 of shape (G, M, K), contiguous.
        fmt: a format that `fuses` accepts.
        b: operand of shape (G, N, K).
        nonfinite, threads: as of `encode`.
        bias: as of `matmul`.

    Returns:
        float32 of shape (G, M, N), or None where `nonfinite` is "error" and a value is not finite.

    Raises:
        ValueError: `fuses` refuses the format, or the bias has another shape.
    """
    if bias is not None:
        _check_bias(bias, b, FP32_SUMS)
    held = layout(fmt)
    way = _way(held, b)
    if not way.fused:
        raise ValueError(f"no kernel encodes and multiplies {fmt} and {b.layout.format}")
    assert held.description is not None
    batches, rows, length = x.shape
    _, columns, blocks = b.shape
    y = np.empty((batches, rows, columns), np.float32)
    if not y.size:
        return None if encode(x, fmt, nonfinite, threads) is None else y
    operands = OperandAddresses(*way.addresses)
    operands.bias = None if bias is None else bias.ctypes.data
    bad = library().axs6_encode_multiply(
        *(ctypes.byref(held.description), x.ctypes.data, length, nonfinite == "error"),
        *(LANES.index(way.lanes), ctypes.byref(operands)),
        ctypes.byref(Shape(batches, rows, columns, blocks, held.block, threads)),
        *way.sums,
        y.ctypes.data,
    )
    return None if bad and nonfinite == "error" else y


def _check_bias(bias: NDArray[np.float32], b: Packed, accumulator: Accumulator) -> None:
    if accumulator != FP32_SUMS:
        raise ValueError(f"bias is for the accumulator {FP32_SUMS}, not {accumulator}")
    if bias.shape != b.shape[:2]:
        raise ValueError(f"bias must have shape {b.shape[:2]}, not {bias.shape}")


@dataclass(frozen=True, eq=False)
class Way:
    """A way to multiply left operands of a layout by a right operand.

    Args:
        lanes: dtype of the lanes of both.
        sums: bits of sums, what factors are, and the divisor.
        addresses: of what the library reads of the right operand, which keeps it.
        fused: whether the library encodes the left one too.
    """

    lanes: np.dtype[Any]
    sums: tuple[int, Factors, float]
    addresses: tuple[int | None, ...]
    fused: bool


def _way(a: Layout, b: Packed) -> Way:
    """The way; cached for each form of the library, since weights are reused."""
    key = (a, library())
    found = b.ways.get(key)
    if found is None:
        found = b.ways[key] = _find_way(a, b)
    return found


def _find_way(a: Layout, b: Packed) -> Way:
    dtype = common_lanes(a, b.layout)
    bits = sum_bits(a, b.layout) if dtype == FLOAT else block_bits(a, b.layout)
    # Integers in float32 have a zero of either sign.
    fused = a.description is not None and b.outer is None and dtype in (own_lanes(a), *LANES[:3])
    found = factors(a, b.layout)
    if found is None:
        found = Factors.POWERS if are_powers(a, b.layout) else Factors.SHORT
    return Way(dtype, (bits, found, divisor_of(a, b.layout)), b.panels(dtype).addresses, fused)
