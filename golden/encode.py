"""Encoding arrays into AXS-6 blocks, in integer arithmetic only."""

from collections.abc import Iterator
from typing import Literal

import numpy as np
from numpy.typing import ArrayLike, NDArray

from axs6.golden.blocks import Blocks
from axs6.golden.floats import fp32_bits, wide
from axs6.golden.spec import (
    EXPONENT_BIAS,
    EXPONENT_MAX,
    FP32,
    MAGNITUDE_BITS,
    MAGNITUDE_MAX,
    SIGN_BIT,
    Rounding,
    check_block_size,
    check_rounding,
)

CHUNK_VALUES = 1 << 14
"""Values encoded at a time: their temporaries stay within a core's cache."""

NonFinite = Literal["error", "saturate"]


def encode(
    x: ArrayLike,
    block_size: int = 32,
    rounding: str = "nearest",
    *,
    nonfinite: NonFinite = "error",
) -> Blocks:
    """Encode values into dense AXS-6 blocks along their last axis.

    Args:
        x: values of shape (..., K): float32, float16, bfloat16 (an `ml_dtypes` array, or bit
            patterns in uint16), float64, or integers other than uint16. Each is taken at its
            exact value. K is padded with zeros to whole blocks.
        block_size: values that share an exponent: 8, 16 or 32.
        rounding: "nearest" or "toward_zero".
        nonfinite: what to do with NaN, infinities, and float64 values of magnitude 2^128 or more:
            "error" raises; "saturate" encodes NaN as +0, without a part in the block's maximum,
            and an infinity as the largest code of a block whose exponent is 255.

    Returns:
        Blocks whose exponent puts the largest magnitude in [1/2, 1) of the scale 2^(E - 127),
        except where E ends at 0. -0.0 becomes code 0; a negative value that rounds to zero keeps
        its sign (code 0x20).

    Raises:
        TypeError: the dtype is not one of the above.
        ValueError: a parameter is unknown, `x` has no axis, or a value is not finite; the message
            gives the index of the first.

    Source: AXS-6 specification, section 5; docs/format.md.
    """
    size = check_block_size(block_size)
    mode = check_rounding(rounding)
    if nonfinite not in ("error", "saturate"):
        raise ValueError(f"nonfinite must be one of error, saturate, not {nonfinite!r}")
    values = np.asarray(x)
    if values.ndim == 0:
        raise ValueError("values must have at least one axis, not shape ()")
    native = np.ascontiguousarray(values, values.dtype.newbyteorder("="))
    padded = _pad(native, size)
    blocks = padded.reshape(-1, size)
    exponents = np.empty(len(blocks), np.uint8)
    codes = np.empty(blocks.shape, np.uint8)
    encode_rows = _encode_wide if fp32_bits(padded[:0]) is None else _encode_fp32
    for rows in _chunks(len(blocks), size):
        infinite, nan = encode_rows(blocks[rows], mode, exponents[rows], codes[rows])
        if nonfinite == "error" and (infinite is not None or nan is not None):
            _refuse(values, padded.shape, rows.start, infinite, nan)
    n = padded.shape[-1] // size
    return Blocks(
        exponents=exponents.reshape(*values.shape[:-1], n),
        modes=np.zeros((*values.shape[:-1], n), np.uint8),
        codes=codes.reshape(*values.shape[:-1], n, size),
        shape=values.shape,
    )


def _pad(values: NDArray[np.generic], size: int) -> NDArray[np.generic]:
    missing = -values.shape[-1] % size
    if not missing:
        return values
    padded = np.zeros((*values.shape[:-1], values.shape[-1] + missing), values.dtype)
    padded[..., : values.shape[-1]] = values
    return padded


def _chunks(blocks: int, size: int) -> Iterator[slice]:
    """Rows of each chunk; one empty chunk of an empty array, whose dtype must be checked too."""
    step = CHUNK_VALUES // size
    for start in range(0, max(blocks, 1), step):
        yield slice(start, min(start + step, blocks))


Flags = tuple[NDArray[np.bool_] | None, NDArray[np.bool_] | None]


def _encode_fp32(
    values: NDArray[np.generic],
    rounding: Rounding,
    exponents: NDArray[np.uint8],
    codes: NDArray[np.uint8],
) -> Flags:
    """Encode rows that widen to FP32; return the infinite and NaN masks where there are any.

    With e the exponent field (at least 1) and M the significand, |x| / scale = M / 2^(23 + E - e).
    """
    bits = fp32_bits(values)
    assert bits is not None
    magnitude = bits & np.uint32(FP32.sign_bit - 1)
    largest = _row_max(magnitude)
    infinite = nan = None
    if largest.size and int(largest.max()) >= FP32.infinity:
        infinite, nan = magnitude == FP32.infinity, magnitude > FP32.infinity
        bits = np.where(nan, np.uint32(0), bits)
        magnitude = np.where(nan, 0, np.minimum(magnitude, FP32.max_finite)).astype(np.uint32)
        largest = _row_max(magnitude)
    # A block of subnormals has exponent 1 where its top fraction bit is set, else 0.
    subnormal = largest >> np.uint32(FP32.fraction_bits - 1)
    exponent = np.where(subnormal > 1, (largest >> FP32.fraction_bits) + 1, subnormal)
    exponents[:] = exponent
    field = np.maximum(magnitude >> np.uint32(FP32.fraction_bits), np.uint32(1))
    significand = magnitude - ((field - np.uint32(1)) << np.uint32(FP32.fraction_bits))
    shift = exponent.astype(np.uint32)[:, None] + np.uint32(FP32.fraction_bits) - field
    # 31 * M is below 2^29, so a shift by 30 rounds to 0 as every larger one does.
    rounded = _shift_rounded(
        significand * np.uint32(MAGNITUDE_MAX), np.minimum(shift, np.uint32(30)), rounding
    )
    negative = bits > np.uint32(FP32.sign_bit)
    codes[:] = rounded
    codes |= negative.view(np.uint8) << np.uint8(MAGNITUDE_BITS)
    if infinite is not None:
        _saturate(infinite, negative, exponents, codes)
    return (infinite, nan)


def _encode_wide(
    values: NDArray[np.generic],
    rounding: Rounding,
    exponents: NDArray[np.uint8],
    codes: NDArray[np.uint8],
) -> Flags:
    """Encode rows of float64 or integers; return the infinite and NaN masks where there are any.

    Significands reach 64 bits, so floor(31 * M / 2^5) stands for 31 * M: the five bits that it
    drops lie below the rounding bit, because M / 2^shift < 1 makes every shift 64 or more.
    """
    x = wide(values)
    saturated = x.infinite.any(axis=1)
    top = np.where(x.significand != 0, x.exponent + 63, -EXPONENT_BIAS - 1).max(
        axis=1, initial=-200
    )
    exponent = np.clip(top + EXPONENT_BIAS + 1, 0, EXPONENT_MAX)
    exponent[saturated] = EXPONENT_MAX
    exponents[:] = exponent
    shift = (exponent - EXPONENT_BIAS)[:, None] - x.exponent
    low = x.significand & np.uint64(31)
    scaled = np.uint64(31) * (x.significand >> np.uint64(5)) + (np.uint64(31) * low >> np.uint64(5))
    rounded = _shift_rounded(scaled, np.clip(shift - 5, 1, 64).astype(np.uint64), rounding)
    magnitude = np.where(shift > 69, np.uint64(0), rounded)
    negative = x.negative & (x.significand != 0)
    codes[:] = magnitude
    codes |= negative.view(np.uint8) << np.uint8(MAGNITUDE_BITS)
    if not (x.infinite.any() or x.nan.any()):
        return (None, None)
    _saturate(x.infinite, x.negative, exponents, codes)
    return (x.infinite, x.nan)


def _row_max(x: NDArray[np.uint32]) -> NDArray[np.uint32]:
    """Largest value of each row, by halves: NumPy reduces short rows slowly."""
    width = x.shape[1]
    while width > 1:
        width //= 2
        x = np.maximum(x[:, :width], x[:, width : 2 * width])
    return x[:, 0]


def _shift_rounded(x: NDArray, shift: NDArray, rounding: Rounding) -> NDArray:
    """x / 2^shift rounded. Half up is right for nearest: docs/format.md shows the only tie."""
    one = x.dtype.type(1)
    doubled = x >> (shift - one)
    if rounding is Rounding.NEAREST:
        doubled += one
    return doubled >> one


def _saturate(
    infinite: NDArray[np.bool_],
    negative: NDArray[np.bool_],
    exponents: NDArray[np.uint8],
    codes: NDArray[np.uint8],
) -> None:
    exponents[infinite.any(axis=1)] = EXPONENT_MAX
    codes[infinite] = MAGNITUDE_MAX
    codes[infinite & negative] = MAGNITUDE_MAX | SIGN_BIT


def _refuse(
    values: NDArray[np.generic],
    padded_shape: tuple[int, ...],
    first_row: int,
    infinite: NDArray[np.bool_] | None,
    nan: NDArray[np.bool_] | None,
) -> None:
    """Raise the error that names the first value without a code."""
    bad = np.zeros_like(infinite if infinite is not None else nan)
    for mask in (infinite, nan):
        if mask is not None:
            bad |= mask
    position = int(np.flatnonzero(bad)[0]) + first_row * bad.shape[1]
    index = tuple(int(i) for i in np.unravel_index(position, padded_shape))
    value = values[index]
    text = f"bits {int(value):#06x}" if values.dtype.kind == "u" else str(value)
    raise ValueError(
        f"values must be finite and below 2^128: element {index} is {text} "
        '(nonfinite="saturate" encodes it as the hardware does)'
    )
