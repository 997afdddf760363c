"""Dot products of blocks and of vectors of blocks, as the hardware defines them."""

from collections.abc import Iterator
from fractions import Fraction
from math import isqrt
from typing import Any, Final

import numpy as np
from numpy.typing import NDArray

from axs6.golden.accumulator import Accumulator
from axs6.golden.accumulator import accumulator as accumulator_of
from axs6.golden.blocks import Blocks, check_blocks
from axs6.golden.floats import INTEGER
from axs6.golden.formats import AXS6, BlockFormat, Mode, block_format, name_of
from axs6.golden.operands import Operand
from axs6.golden.scale_factor import ScaleFactor
from axs6.golden.sums import combined
from axs6.golden.terms import ProductSteps, StepTerms, Terms, digits_of

TILE_TERMS: Final = 1 << 15
"""Terms of `matmul` processed at a time, so that they fit in a processor's cache."""

TILE_PRODUCTS: Final = 1 << 18
"""Size of a matrix product above which OpenBLAS starts threads."""

DTYPES: Final = (np.int16, np.int32, np.int64)
"""Dtypes of sums: the first wide enough, else Python's integers."""

Pair = tuple[str | BlockFormat, str | BlockFormat]


def block_dot(a: Blocks, b: Blocks) -> tuple[NDArray[Any], NDArray[np.uint16]]:
    """Integer dot product of each pair of blocks.

    Args:
        a, b: blocks of formats whose blocked levels have the same groups, and whose shapes
            broadcast without the blocked axis. Scales of channels and tensors take no part.

    Returns:
        P, the sum of the products of the elements as integers, times the block's scales without
        their exponents, and e, the sum of the exponent fields of the scales. The dot product is P *
        2^e * `block_dot_unit` of the formats, exactly: P / 961 * 2^(e - 254) for AXS-6, where |P|
        <= B * 961. P is int16, int32, int64 or, if wider, an array of Python integers; e is uint16;
        their shape is (..., n). If parts of a block have their own exponents, each part has a sum.

    Raises:
        TypeError: an operand is not Blocks.
        ValueError: the formats do not fit, the shapes do not broadcast, a value is NaN or infinite,
            or a block is high-precision, which is for storage; the message names it.
    """
    check_operands(a, b)
    a, b = a.untiled, b.untiled
    shapes = [(*x.leading, x.count) for x in (a, b)]
    try:
        np.broadcast_shapes(*shapes)
    except ValueError:
        raise ValueError(
            f"a and b must have block shapes that broadcast, not {shapes[0]} and {shapes[1]}"
        ) from None
    terms = Terms.of(a.format, b.format, Accumulator())
    left, right = Operand.of(a, terms.a), Operand.of(b, terms.b)
    for name, operand in (("a", left), ("b", right)):
        if operand.nan is not None or operand.infinite is not None:
            raise ValueError(f"{name} holds NaN or infinities, which integers cannot represent")
    dtype = next((x for x in DTYPES if np.iinfo(x).bits >= terms.width), object)
    p, q = (_grouped(each.integers, terms.lanes).astype(dtype) for each in (left, right))
    sums = (p * q).sum(axis=-1) if dtype is object else np.einsum("...i,...i->...", p, q)
    e, f = (_each(each.exponents, terms.block // terms.lanes) for each in (left, right))
    return np.asarray(sums, dtype), (e + f).astype(np.uint16)


def block_dot_unit(a: str | BlockFormat, b: str | BlockFormat) -> Fraction:
    """Value of the sum 1 of `block_dot` with exponents of 0."""
    terms = Terms.of(block_format(a), block_format(b), Accumulator())
    return Fraction(2) ** (terms.offset + terms.scale_bits) / terms.divisor


def accumulate(
    sums: NDArray[Any],
    exponents: NDArray[np.integer],
    accumulator: str | Accumulator = "fp32",
    formats: Pair = (AXS6, AXS6),
) -> NDArray[np.float32]:
    """Combine the sums of successive blocks, along the last axis, into FP32 results.

    Args:
        sums: P of `block_dot`, shape (..., n).
        exponents: exponent sums of `block_dot`, shape (..., n).
        accumulator: as in `matmul`; its terms must be these sums.
        formats: of the blocks.

    Returns:
        float32 of shape (...), without scales of channels and tensors. Overflow gives infinity, and
        opposite infinities give NaN (not with "exact").

    Raises:
        TypeError: an array does not hold integers.
        ValueError: the accumulator is unknown or adds parts of blocks, the shapes differ, or a
            value is not one of a block dot product.
    """
    a, b = map(block_format, formats)
    terms = Terms.of(a, b, accumulator_of(accumulator))
    whole = Terms.of(a, b, Accumulator()).lanes
    if terms.accumulator.scaled:
        raise ValueError(
            f"{terms.accumulator} multiplies by the scales of blocks, which exponents of "
            "block_dot are not"
        )
    if terms.lanes != whole or terms.a.apart or terms.gated_by_products:
        raise ValueError(
            f"{terms.accumulator} adds products of {terms.lanes} lanes of {name_of(a)} and "
            f"{name_of(b)}, which sums of {whole} lanes do not contain"
        )
    _check_integers("sums", sums, -terms.bound, terms.bound)
    _check_integers("exponents", exponents, 0, terms.largest_exponent)
    if sums.shape != exponents.shape or not sums.ndim:
        raise ValueError(
            f"sums and exponents must have one shape (..., n), not {sums.shape}, {exponents.shape}"
        )
    steps = _steps(np.moveaxis(sums, -1, 0), np.moveaxis(exponents, -1, 0), terms)
    return combined(terms, steps, sums.shape[:-1]).view(np.float32)


def _steps(sums: NDArray[Any], exponents: NDArray[np.integer], terms: Terms) -> Iterator[StepTerms]:
    """Sums (n, ...) and exponents by the step."""
    for start in range(0, len(sums), terms.step):
        here = slice(start, start + terms.step)
        parts = digits_of(sums[here], terms.width) if terms.split else [sums[here]]
        yield StepTerms([x.astype(np.int64) for x in parts], exponents[here].astype(np.int64))


def matmul(a: Blocks, b: Blocks, accumulator: str | Accumulator = "fp32") -> NDArray[np.float32]:
    """Product of two matrices in blocks along K: y[m, n] = sum over k of a[m, k] * b[n, k].

    Args:
        a: blocks of shape (M, K), or of shape (K, M) along axis 0.
        b: blocks of shape (N, K), the transpose of the usual right-hand side; or of shape (K, N)
            along axis 0. The formats may differ if their blocked levels have the same groups.
        accumulator: how the products are added: a name or string for
            `axs6.golden.accumulator.accumulator`, or an Accumulator.

    Returns:
        float32 of shape (M, N); K = 0 gives +0. NaN and infinite values follow IEEE 754.
        Scales of channels and tensors multiply the result at the end, by their product in FP32.

    Raises:
        TypeError: an operand is not Blocks.
        ValueError: shapes or formats do not fit each other or the accumulator, a block is
            high-precision, or the accumulator is unknown.
    """
    parsed = accumulator_of(accumulator)
    check_product(a, b)
    a, b = a.untiled, b.untiled
    terms = Terms.of(a.format, b.format, parsed)
    product = ProductSteps(Operand.of(a, terms.a), Operand.of(b, terms.b), terms)
    outer = (ScaleFactor.of(a), ScaleFactor.of(b)) if a.format.outer or b.format.outer else None
    each = [ScaleFactor.of_blocks(x) for x in (a, b)] if parsed.scaled else [[], []]
    y = np.zeros((*a.leading, *b.leading), np.uint32)
    values = min(TILE_TERMS // terms.step, TILE_PRODUCTS // terms.lanes)
    for rows, columns in _tiles(y.shape[0], y.shape[1], max(1, values)):
        scale = outer[0].product(outer[1], rows, columns) if outer else None
        shape = y[rows, columns].shape
        factors = (x.product(z, rows, columns) for x, z in zip(*each, strict=True))
        y[rows, columns] = combined(terms, product.steps(rows, columns), shape, scale, factors)
    return y.view(np.float32)


def _tiles(m: int, n: int, values: int) -> Iterator[tuple[slice, slice]]:
    """Rows and columns of parts of a matrix (m, n) of at most `values` values each."""
    rows = max(1, min(m, isqrt(values)))
    columns = max(1, values // rows)
    for row in range(0, m, rows):
        for column in range(0, n, columns):
            yield slice(row, row + rows), slice(column, column + columns)


def _grouped(integers: NDArray[Any], lanes: int) -> NDArray[Any]:
    """Integers (..., n, B) as (..., sums, lanes)."""
    *leading, blocks, size = integers.shape
    return integers.reshape(*leading, blocks * size // lanes, lanes)


def _each(exponents: NDArray[np.int64], groups: int) -> NDArray[np.int64]:
    """Exponents (..., n, some) as (..., n * groups)."""
    each = np.repeat(exponents, groups // exponents.shape[-1], axis=-1)
    *leading, blocks, _ = each.shape
    return each.reshape(*leading, blocks * groups)


def _check_integers(name: str, values: NDArray[Any], low: int, high: int) -> None:
    """Raise TypeError or ValueError unless an array holds integers from `low` to `high`."""
    wide = isinstance(values, np.ndarray) and values.dtype == object
    if not wide and (not isinstance(values, np.ndarray) or values.dtype.kind not in INTEGER):
        kind = values.dtype if isinstance(values, np.ndarray) else type(values).__name__
        raise TypeError(f"{name} must be an array of integers, not {kind}")
    wrong = np.argwhere((values < low) | (values > high))
    if wrong.size:
        index = tuple(int(i) for i in wrong[0])
        raise ValueError(f"{name} must be in {low} to {high}: element {index} is {values[index]}")


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
    if len(a.shape) != 2 or len(b.shape) != 2 or a.length != b.length:
        raise ValueError(f"a and b must have shapes (M, K) and (N, K), not {a.shape} and {b.shape}")
