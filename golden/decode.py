"""Decoding AXS-6 blocks: one table lookup for each value, the tables made in exact integers."""

from functools import cache
from typing import Any

import numpy as np
from numpy.typing import NDArray

from axs6.golden.blocks import Blocks, check_blocks
from axs6.golden.spec import (
    BF16,
    CODE_BITS,
    EXPONENT_BIAS,
    EXPONENT_MAX,
    FP32,
    MAGNITUDE_MAX,
    SIGN_BIT,
    FloatFormat,
)

CHUNK_VALUES = 1 << 15
FLOAT64 = FloatFormat("fp64", 11, 52)


def decode(blocks: Blocks, dtype: Any = np.float32) -> NDArray[Any]:
    """Decode blocks to values, each rounded once to nearest, ties to even.

    Args:
        blocks: what `encode` or `unpack` returned.
        dtype: np.float32, np.float64, or bfloat16: an `ml_dtypes.bfloat16` for an array of that
            dtype, or the string "bfloat16" for bit patterns in uint16.

    Returns:
        Values of shape `blocks.shape`. Subnormals are kept, code 0x20 is -0.0, and the one value
        that is too large (magnitude 31 with exponent 255, 2^128) becomes the largest finite
        value, except in float64, which holds it.

    Raises:
        TypeError: another dtype.

    Source: AXS-6 specification, section 6; docs/format.md.
    """
    check_blocks("blocks", blocks)
    fmt, result_dtype = _output(dtype)
    table = decode_table(fmt)
    flat = blocks.codes.reshape(-1, blocks.block_size)
    base = blocks.exponents.reshape(-1, 1).astype(np.intp) << CODE_BITS
    out = np.empty(flat.shape, table.dtype)
    step = CHUNK_VALUES // blocks.block_size
    for start in range(0, len(flat), step):
        rows = slice(start, start + step)
        np.take(table, base[rows] | flat[rows], out=out[rows], mode="clip")
    padded = out.reshape(*blocks.shape[:-1], blocks.exponents.shape[-1] * blocks.block_size)
    return padded[..., : blocks.shape[-1]].view(result_dtype)


def _output(dtype: Any) -> tuple[FloatFormat, Any]:
    if isinstance(dtype, str) and dtype == "bfloat16":
        return BF16, np.uint16
    resolved = np.dtype(dtype)
    if resolved == np.float32:
        return FP32, np.float32
    if resolved == np.float64:
        return FLOAT64, np.float64
    if resolved.name == "bfloat16":
        return BF16, resolved
    raise TypeError(f"dtype must be float32, float64 or bfloat16, not {resolved}")


@cache
def decode_table(fmt: FloatFormat) -> NDArray[Any]:
    """Bit patterns of every block value in `fmt`, indexed by `exponent << 6 | code`."""
    unsigned = {16: np.uint16, 32: np.uint32, 64: np.uint64}[fmt.width]
    table = np.array(
        [
            decode_value(exponent, code, fmt)
            for exponent in range(EXPONENT_MAX + 1)
            for code in range(1 << CODE_BITS)
        ],
        unsigned,
    )
    table.flags.writeable = False
    return table


def decode_value(exponent: int, code: int, fmt: FloatFormat) -> int:
    """Bit pattern of one value in `fmt`: m / 31 * 2^(exponent - 127), rounded once.

    The quotient is never halfway between two values of `fmt`: m / 31 repeats the five bits of m
    for ever, so half up is nearest even.
    """
    sign = fmt.sign_bit if code & SIGN_BIT else 0
    magnitude = code & MAGNITUDE_MAX
    if not magnitude:
        return sign
    # Exponent of the leading bit of m / 31, which is 0 for m = 31 alone.
    leading = magnitude.bit_length() - 6 if magnitude < MAGNITUDE_MAX else 0
    lowest = 1 - fmt.bias - fmt.fraction_bits
    ulp = max(exponent - EXPONENT_BIAS + leading - fmt.fraction_bits, lowest)
    doubled = (magnitude << (exponent - EXPONENT_BIAS - ulp + 1)) // MAGNITUDE_MAX
    pattern = (ulp - lowest << fmt.fraction_bits) + (doubled + 1 >> 1)
    return sign | min(pattern, fmt.max_finite)
