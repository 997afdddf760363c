"""Hadamard transform of blocks of floating-point values, as hardware computes it.

It spreads outliers over a block before the block is quantised. A block is aligned to its largest
exponent, added exactly, and each result is rounded once.
"""

from typing import Final

import numpy as np
from numpy.typing import NDArray

from axs6.golden.floats import fp32_bits, round_to_float, split
from axs6.golden.formats import Float
from axs6.golden.formats.floating import BF16, FP16, FP32

SIZES: Final = (8, 16, 32, 64, 128)
"""Values of a block."""

GUARD_BITS: Final = 8
"""Bits that are kept below the last significand bit of a block's largest value."""


def check_size(size: int, name: str = "size") -> int:
    """The size of a block, if there is such a block.

    Args:
        size: values of the block.
        name: of the argument, for the error.

    Raises:
        ValueError: there is no such block.
    """
    if isinstance(size, bool) or size not in SIZES:
        raise ValueError(f"{name} must be one of {', '.join(map(str, SIZES))}, not {size!r}")
    return size


def scale_exponent(size: int) -> int:
    """Results are sums of `size` values times 2 to minus this.

    That makes the transform orthonormal where `size` is a power of four, and larger by the square
    root of 2 elsewhere. Its inverse is then the transform over `size`, times 4 to this.

    Raises:
        ValueError: there is no such block.
    """
    return (check_size(size).bit_length() - 1) // 2


def hadamard(x: NDArray[np.generic], size: int) -> NDArray[np.generic]:
    """Multiply blocks of the last axis by the Hadamard matrix of Sylvester, in `hadamard_bits`.

    Args:
        x: float32, float16 or bfloat16 values (bfloat16 of ml_dtypes, or bit patterns in uint16),
            of shape (..., K).
        size: values of a block, one of `SIZES`, which divides K.

    Returns:
        Values of the dtype and shape of `x`.

    Raises:
        TypeError: values have another dtype.
        ValueError: there is no such block, or it does not divide K.
    """
    if fp32_bits(x[:0]) is None:
        raise TypeError(f"values must be float32, float16 or bfloat16, not {x.dtype}")
    scale_exponent(size)
    if x.ndim == 0 or x.shape[-1] % size:
        raise ValueError(f"the last axis must be blocks of {size}, not of shape {x.shape}")
    dtype = {"float32": FP32, "float16": FP16}.get(x.dtype.name, BF16)
    unsigned = np.dtype(f"u{x.dtype.itemsize}")
    rows = np.ascontiguousarray(x).view(unsigned).reshape(-1, size)
    return hadamard_bits(rows, dtype).astype(unsigned).view(x.dtype).reshape(x.shape)


def hadamard_bits(patterns: NDArray[np.unsignedinteger], dtype: Float) -> NDArray[np.uint64]:
    """The transform of rows of bit patterns.

    Each value keeps the bits down to 2^-GUARD_BITS of the last significand bit that a value with
    the row's largest exponent has; the rest of its magnitude is dropped. Sums are exact. Each is
    rounded to nearest even, with subnormals and with infinity on overflow. A row with a NaN gives
    NaN; infinities count as in any sum, NaN where opposite ones meet. A sum of 0 is +0.

    Args:
        patterns: of shape (rows, size).
        dtype: of the values.

    Returns:
        Patterns of that dtype and shape; every NaN is the positive quiet one.
    """
    magnitude = patterns.astype(np.uint64) & np.uint64(dtype.sign_bit - 1)
    negative = patterns.astype(np.uint64) >= np.uint64(dtype.sign_bit)
    finite = magnitude < dtype.infinity
    _, significand, exponent = split(dtype, np.where(finite, magnitude, 0))
    top = exponent.max(axis=1, keepdims=True)
    distance = np.minimum(top - exponent, 63).astype(np.uint64)
    kept = (significand << np.uint64(GUARD_BITS) >> distance).astype(np.int64)
    sums = _butterflies(np.where(negative, -kept, kept))
    size = patterns.shape[1]
    found = round_to_float(
        dtype,
        sums < 0,
        np.abs(sums).astype(np.uint64),
        np.broadcast_to(top - GUARD_BITS - scale_exponent(size), sums.shape),
    )
    return _with_specials(found, dtype, magnitude, negative)


def _butterflies(x: NDArray[np.int64]) -> NDArray[np.int64]:
    """Sums and differences of rows, stage by stage."""
    step, size = 1, x.shape[1]
    while step < size:
        pairs = x.reshape(len(x), -1, 2, step)
        a, b = pairs[:, :, 0], pairs[:, :, 1]
        x = np.stack([a + b, a - b], axis=2).reshape(len(x), size)
        step *= 2
    return x


def _with_specials(
    found: NDArray[np.uint64],
    dtype: Float,
    magnitude: NDArray[np.uint64],
    negative: NDArray[np.bool_],
) -> NDArray[np.uint64]:
    """Results with those of rows in which a value is NaN or infinite."""
    infinite = magnitude == dtype.infinity
    signs = np.where(infinite, np.where(negative, -1, 1), 0)
    total, count = _butterflies(signs), infinite.sum(axis=1, keepdims=True)
    signed = np.where(total > 0, dtype.infinity, dtype.infinity | dtype.sign_bit)
    invalid = (magnitude > dtype.infinity).any(axis=1, keepdims=True) | (np.abs(total) < count)
    found = np.where(count > 0, signed.astype(np.uint64), found)
    return np.where(invalid, np.uint64(dtype.quiet_nan), found)
