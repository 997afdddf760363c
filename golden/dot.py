"""Dot products of blocks and of vectors of blocks, as the hardware defines them."""

from collections.abc import Iterable, Iterator

import numpy as np
from numpy.typing import NDArray

from axs6.golden import fp32, kulisch
from axs6.golden.blocks import Blocks, check_blocks
from axs6.golden.floats import INTEGER
from axs6.golden.spec import (
    ACCUMULATOR_SCALE,
    BLOCK_SIZES,
    CODE_BITS,
    EXPONENT_BIAS,
    EXPONENT_MAX,
    MAGNITUDE_MAX,
    PRODUCT_MAX,
    SIGN_BIT,
    Accumulate,
    Mode,
)

SIGNED_MAGNITUDES = np.array(
    [
        -(code & MAGNITUDE_MAX) if code & SIGN_BIT else code & MAGNITUDE_MAX
        for code in range(1 << CODE_BITS)
    ],
    np.int16,
)
"""Signed integer value of each code; codes 0x00 and 0x20 are both 0."""

MAX_SUM = max(BLOCK_SIZES) * PRODUCT_MAX
"""Largest magnitude of a block dot product."""

MATMUL_VALUES = 1 << 22
"""Outputs of `matmul` worked on at a time, to bound its memory; fewer where each has limbs."""


Product = tuple[NDArray[np.integer], NDArray[np.integer]]
"""Sums and exponents of block dot products."""


def block_dot(a: Blocks, b: Blocks) -> tuple[NDArray[np.int16], NDArray[np.uint16]]:
    """Integer dot product of each pair of blocks.

    Args:
        a, b: blocks of the same block size whose leading shapes broadcast.

    Returns:
        P, the sum of the 32 (or B) signed products of magnitudes, |P| <= B * 961, and the sum of
        the two exponents. The dot product is P / 961 * 2^(exponents - 254), exactly.

    Raises:
        TypeError: an operand is not Blocks.
        ValueError: the block sizes differ, the shapes do not broadcast, or a block is
            high-precision, which is for storage; the message names it.
    """
    check_operands(a, b)
    try:
        np.broadcast_shapes(a.exponents.shape, b.exponents.shape)
    except ValueError:
        raise ValueError(
            "a and b must have block shapes that broadcast, "
            f"not {a.exponents.shape} and {b.exponents.shape}"
        ) from None
    sums = np.einsum("...i,...i->...", SIGNED_MAGNITUDES[a.codes], SIGNED_MAGNITUDES[b.codes])
    return np.asarray(sums, np.int16), a.exponents.astype(np.uint16) + b.exponents


def accumulate(
    sums: NDArray[np.integer], exponents: NDArray[np.integer], how: str = "fp32"
) -> NDArray[np.float32]:
    """Combine the sums of successive blocks, along the last axis, into FP32 results.

    Args:
        sums: P of `block_dot`, shape (..., n).
        exponents: exponent sums of `block_dot`, shape (..., n).
        how: "fp32" adds fp32(P * 2^(e - 264)) to an FP32 accumulator in index order, from +0,
            and divides by 961/1024 at the end, each step rounded to nearest even; "exact" adds in
            one wide integer and rounds once.

    Returns:
        float32 of shape (...). Overflow gives infinity, and opposite infinities give the NaN
        0x7fc00000 (possible with "fp32" alone).

    Raises:
        TypeError: an array does not hold integers.
        ValueError: `how` is unknown, the shapes differ, or a value is not one of a block dot
            product.
    """
    method = check_accumulate(how)
    _check_integers("sums", sums, -MAX_SUM, MAX_SUM)
    _check_integers("exponents", exponents, 0, 2 * EXPONENT_MAX)
    if sums.shape != exponents.shape or not sums.ndim:
        raise ValueError(
            f"sums and exponents must have one shape (..., n), not {sums.shape}, {exponents.shape}"
        )
    products = ((sums[..., k], exponents[..., k]) for k in range(sums.shape[-1]))
    return _combined(products, sums.shape[:-1], method)


def matmul(a: Blocks, b: Blocks, accumulate: str = "fp32") -> NDArray[np.float32]:
    """Product of two matrices in blocks along K: y[m, n] = sum over k of a[m, k] * b[n, k].

    Args:
        a: blocks of shape (M, K).
        b: blocks of shape (N, K): the transpose of the usual right-hand side.
        accumulate: as `how` of `axs6.golden.dot.accumulate`.

    Returns:
        float32 of shape (M, N); K = 0 gives +0.

    Raises:
        TypeError: an operand is not Blocks.
        ValueError: shapes or block sizes do not fit, a block is high-precision, or `accumulate` is
            unknown.
    """
    method = check_accumulate(accumulate)
    check_product(a, b)
    y = np.empty((a.shape[0], b.shape[0]), np.float32)
    values = MATMUL_VALUES // (kulisch.LIMBS if method is Accumulate.EXACT else 1)
    rows = max(1, values // max(1, b.shape[0]))
    for start in range(0, a.shape[0], rows):
        part = slice(start, start + rows)
        products = _products(a.codes[part], a.exponents[part], b)
        y[part] = _combined(products, y[part].shape, method)
    return y


def _products(
    codes: NDArray[np.uint8], exponents: NDArray[np.uint8], b: Blocks
) -> Iterator[Product]:
    """Sums and exponents, (M, N), of each block along K."""
    left = SIGNED_MAGNITUDES[codes].astype(np.int32)
    right = SIGNED_MAGNITUDES[b.codes].astype(np.int32)
    for k in range(codes.shape[1]):
        e = exponents[:, k, None].astype(np.int64) + b.exponents[:, k]
        yield left[:, k] @ right[:, k].T, e


def _combined(
    products: Iterable[Product], shape: tuple[int, ...], method: Accumulate
) -> NDArray[np.float32]:
    """FP32 results of sums and exponents that come one block after the other."""
    if method is Accumulate.EXACT:
        wide = kulisch.Accumulator(shape)
        for sums, exponents in products:
            wide.add(sums, exponents)
        return wide.result().view(np.float32)
    total = np.zeros(shape, np.uint32)
    for sums, exponents in products:
        total = add_block(total, sums, exponents)
    return fp32.divide_by_scale(total).view(np.float32)


def _check_integers(name: str, values: NDArray[np.integer], low: int, high: int) -> None:
    """Raise TypeError or ValueError unless an array holds integers from `low` to `high`."""
    if not isinstance(values, np.ndarray) or values.dtype.kind not in INTEGER:
        kind = values.dtype if isinstance(values, np.ndarray) else type(values).__name__
        raise TypeError(f"{name} must be an array of integers, not {kind}")
    wrong = np.argwhere((values < low) | (values > high))
    if wrong.size:
        index = tuple(int(i) for i in wrong[0])
        raise ValueError(f"{name} must be in {low} to {high}: element {index} is {values[index]}")


def add_block(
    total: fp32.Bits, sums: NDArray[np.integer], exponents: NDArray[np.integer]
) -> fp32.Bits:
    """One step of the FP32 accumulation: total + fp32(sums * 2^(exponents - 264)), rounded."""
    scale = 2 * EXPONENT_BIAS + ACCUMULATOR_SCALE
    return fp32.add(total, fp32.from_integer(sums, exponents.astype(np.int64) - scale))


def check_operands(a: Blocks, b: Blocks) -> None:
    """Raise TypeError unless both are Blocks, ValueError unless of one block size with products."""
    for name, blocks in (("a", a), ("b", b)):
        check_blocks(name, blocks)
        precise = np.flatnonzero(blocks.modes == Mode.HIGH_PRECISION)
        if precise.size:
            raise ValueError(
                f"block {int(precise[0])} of {name} is high-precision, which has no dot product: "
                "decode it, or encode it dense"
            )
    if a.block != b.block:
        raise ValueError(f"a and b must have the same block, not {a.block} and {b.block}")


def check_product(a: Blocks, b: Blocks) -> None:
    """Raise TypeError or ValueError unless a and b are matrices in blocks along one K."""
    check_operands(a, b)
    if len(a.shape) != 2 or len(b.shape) != 2 or a.shape[1] != b.shape[1]:
        raise ValueError(f"a and b must have shapes (M, K) and (N, K), not {a.shape} and {b.shape}")


def check_accumulate(how: str) -> Accumulate:
    """Return `how` as an `Accumulate`, or raise ValueError naming the known ones."""
    try:
        return Accumulate(how)
    except ValueError:
        known = ", ".join(Accumulate)
        raise ValueError(f"accumulate must be one of {known}, not {how!r}") from None
