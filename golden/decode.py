"""Decoding AXS-6 blocks: one table lookup for each value, the tables made in exact integers."""

from functools import cache
from typing import Any

import numpy as np
from numpy.typing import NDArray

from axs6.golden.blocks import Blocks, check_blocks
from axs6.golden.spec import (
    BF16,
    DENSE_CODE,
    EXPONENT_BIAS,
    EXPONENT_MAX,
    FP32,
    FP64,
    CodeFormat,
    FloatFormat,
    Mode,
    code_formats,
)

CHUNK_VALUES = 1 << 15


def decode(blocks: Blocks, dtype: Any = np.float32) -> NDArray[Any]:
    """Decode blocks to values, each rounded once to nearest, ties to even.

    Args:
        blocks: what `encode` or `unpack` returned.
        dtype: np.float32, np.float64, in either byte order, or bfloat16: an `ml_dtypes.bfloat16`
            for an array of that dtype, or the string "bfloat16" for bit patterns in uint16.

    Returns:
        Values of shape `blocks.shape`. Subnormals are kept, a sign alone is -0.0, and the one
        value that is too large (the largest magnitude with exponent 255, 2^128) becomes the largest
        finite value, except in float64, which holds it.

    Raises:
        TypeError: another dtype, or `blocks` is not Blocks.

    Source: AXS-6 specification, section 6; docs/format.md.
    """
    check_blocks("blocks", blocks)
    fmt, result_dtype = _output(dtype)
    flat = blocks.codes.reshape(-1, blocks.block)
    exponents = blocks.exponents.reshape(-1, 1)
    out = _look_up(exponents, flat, fmt, DENSE_CODE)
    precise = blocks.modes.ravel() == Mode.HIGH_PRECISION
    if precise.any():
        for start, code in enumerate(code_formats(Mode.HIGH_PRECISION)):
            out[precise, start::2] = _look_up(
                exponents[precise], flat[precise, start::2], fmt, code
            )
    padded = out.reshape(*blocks.shape[:-1], blocks.exponents.shape[-1] * blocks.block)
    native = padded[..., : blocks.shape[-1]].view(result_dtype.newbyteorder("="))
    return native.astype(result_dtype, copy=False)


def _look_up(
    exponents: NDArray[np.uint8], codes: NDArray[np.uint8], fmt: FloatFormat, code: CodeFormat
) -> NDArray[Any]:
    """Bit patterns of codes (n, columns) under exponents (n, 1)."""
    table = decode_table(fmt, code)
    base = exponents.astype(np.intp) << code.width
    out = np.empty(codes.shape, table.dtype)
    step = CHUNK_VALUES // codes.shape[1]
    for start in range(0, len(codes), step):
        rows = slice(start, start + step)
        np.take(table, base[rows] | codes[rows], out=out[rows], mode="clip")
    return out


def _output(dtype: Any) -> tuple[FloatFormat, np.dtype[Any]]:
    if isinstance(dtype, str) and dtype == "bfloat16":
        return BF16, np.dtype(np.uint16)
    resolved = np.dtype(dtype)
    native = resolved.newbyteorder("=")
    if native == np.float32:
        return FP32, resolved
    if native == np.float64:
        return FP64, resolved
    if resolved.name == "bfloat16":
        return BF16, resolved
    raise TypeError(f"dtype must be float32, float64 or bfloat16, not {resolved}")


@cache
def decode_table(fmt: FloatFormat, code: CodeFormat = DENSE_CODE) -> NDArray[Any]:
    """Bit patterns of every block value in `fmt`, indexed by `exponent << code.width | code`."""
    unsigned = {16: np.uint16, 32: np.uint32, 64: np.uint64}[fmt.width]
    table = np.array(
        [
            decode_value(exponent, bits, fmt, code)
            for exponent in range(EXPONENT_MAX + 1)
            for bits in range(1 << code.width)
        ],
        unsigned,
    )
    table.flags.writeable = False
    return table


def decode_value(exponent: int, bits: int, fmt: FloatFormat, code: CodeFormat = DENSE_CODE) -> int:
    """Bit pattern of a code's value in `fmt`: m / (2^n - 1) * 2^(exponent - 127), rounded once.

    The quotient is never halfway between two values of `fmt`: it repeats the n bits of m for
    ever, so half up is nearest even.
    """
    sign = fmt.sign_bit if bits & code.sign_bit else 0
    magnitude = bits & code.largest
    if not magnitude:
        return sign
    # Exponent of the leading bit of the quotient, which is 0 for the largest magnitude alone.
    leading = magnitude.bit_length() - code.width if magnitude < code.largest else 0
    lowest = 1 - fmt.bias - fmt.fraction_bits
    ulp = max(exponent - EXPONENT_BIAS + leading - fmt.fraction_bits, lowest)
    doubled = (magnitude << (exponent - EXPONENT_BIAS - ulp + 1)) // code.largest
    pattern = (ulp - lowest << fmt.fraction_bits) + (doubled + 1 >> 1)
    return sign | min(pattern, fmt.max_finite)
