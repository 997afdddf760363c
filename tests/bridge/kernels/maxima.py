"""Blocks over all exponents of their largest magnitude, and what the golden model makes of them."""

import zlib
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from functools import lru_cache

import numpy as np
import torch
from numpy.typing import NDArray

import axs6
from axs6.golden.formats import FP32, TENSOR, BlockFormat
from axs6.torch import anywhere, kernels, lanes
from axs6.torch.kernels.packed import packs

Values = NDArray[np.float32]
Patterns = NDArray[np.int64]

HIDDEN = 1 << FP32.fraction_bits
COLUMNS = 7
"""Rows by which the blocks of an array are multiplied."""


def fractions_of(fmt: BlockFormat) -> list[int]:
    """Fractions of maxima: the ends, and those around which a rule or the largest element turns."""
    element = fmt.element
    significand = element.largest / 2 ** (element.largest.numerator.bit_length() - 1)
    while significand < 1:
        significand *= 2
    half = HIDDEN >> min(element.precision + 1, FP32.fraction_bits)
    around = (int(significand * HIDDEN) % HIDDEN, HIDDEN - half, HIDDEN - half - half // 2)
    near = (f + more for f in around for more in (-1, 0, 1))
    return sorted({0, 1, HIDDEN // 2, HIDDEN - 1} | {f for f in near if 0 <= f < HIDDEN})


def maxima(fmt: BlockFormat) -> Patterns:
    """Patterns of the largest magnitudes: every exponent, and every first bit of subnormals."""
    fractions = np.array(fractions_of(fmt))
    normal = np.arange(1, FP32.exponent_special)[:, None] << FP32.fraction_bits | fractions
    firsts = np.arange(FP32.fraction_bits)[:, None]
    subnormal = (HIDDEN | fractions) >> FP32.fraction_bits - firsts
    return np.unique(np.concatenate([subnormal.ravel(), normal.ravel()]))


def blocks_of(tops: Patterns, fmt: BlockFormat, rng: np.random.Generator) -> Values:
    """A block for each maximum, (n, B): below it codes, middles of two, and their neighbours."""
    element, shape = fmt.element, (len(tops), fmt.block)
    reach = element.integer_bits + 4 + sum(level.scale.largest_code for level in fmt.shifts)
    largest = tops.astype(np.uint32).view(np.float32).astype(np.float64)[:, None]
    binades = np.exp2(np.floor(np.log2(largest)) - rng.integers(0, reach, shape))
    bits = rng.integers(0, element.precision + 3, shape)
    parts = 1 + (rng.integers(0, 1 << 30, shape) >> 30 - bits) * np.exp2(-bits)
    found = (binades * parts).astype(np.float32).view(np.uint32) + rng.integers(-1, 2, shape)
    found = np.clip(found, 0, tops[:, None])
    found[rng.random(shape) < 0.03] = 0
    found[np.arange(len(tops)), np.arange(len(tops)) % fmt.block] = tops
    found |= rng.integers(0, 2, shape) << 31
    return found.astype(np.uint32).view(np.float32)


def arrays(fmt: BlockFormat, tensors: int) -> Iterator[Values]:
    """Arrays (rows, K) whose blocks meet every maximum, or so many of them in tensors of one scale.

    Rows and tensors of one scale have other blocks beside that of the maximum.
    """
    rng = np.random.default_rng(zlib.crc32(str(fmt).encode()))
    tops = maxima(fmt)
    if not fmt.outer:
        yield blocks_of(tops, fmt, rng)
        return
    if any(level.group == TENSOR for level in fmt.outer):
        tops = np.concatenate([tops[:: len(tops) // tensors], [FP32.max_finite, HIDDEN, 1]])
    apart = (FP32.exponent_special * rng.random(len(tops)) ** 3).astype(np.int64)
    below = tops - (apart << FP32.fraction_bits)
    rows = np.stack([tops, np.maximum(below, 1)], axis=1).reshape(-1)
    both = blocks_of(rows, fmt, rng).reshape(len(tops), -1)
    if any(level.group == TENSOR for level in fmt.outer):
        yield from (row.reshape(2, -1) for row in both)
    else:
        yield both


def bits(x: Values) -> NDArray[np.uint32]:
    return np.ascontiguousarray(x).view(np.uint32)


def first_difference(what: str, fmt: BlockFormat, x: Values, given: Values, right: Values) -> str:
    """Where two results of an array differ, in words; nothing where they do not."""
    places = np.argwhere(bits(given) != bits(right))
    if not len(places):
        return ""
    place = tuple(places[0])
    row = np.abs(x[place[0]]).max()
    return (
        f"{what} of {fmt}, in a row of {float(row).hex()} at most: {given[place]!r} "
        f"and not {right[place]!r}, {len(places)} in all"
    )


@dataclass(frozen=True)
class Right:
    """An array, and what the golden model makes of it.

    Args:
        x: the array.
        some: some of its rows, spread over it.
        values: the values that stand for the array.
        product: the array times `some`.
    """

    x: Values
    some: Values
    values: Values
    product: Values


@lru_cache(maxsize=64)
def right(fmt: BlockFormat, tensors: int) -> list[Right]:
    """The arrays of a format."""
    found = []
    for x in arrays(fmt, tensors):
        some = np.ascontiguousarray(x[:: -(-len(x) // COLUMNS)])
        blocks = axs6.encode(x, fmt)
        product = axs6.matmul(blocks, axs6.encode(some, fmt))
        found.append(Right(x, some, axs6.decode(blocks), product))
    return found


def by_kernels(fmt: BlockFormat, tensors: int) -> Iterator[str]:
    """Differences of the kernels, in the form that is used."""
    for each in right(fmt, tensors):
        found = kernels.fake_quantise(each.x, fmt)
        assert found is not None
        yield first_difference("values", fmt, each.x, found, each.values)
        if not (packs(fmt) and kernels.takes(fmt, fmt)):
            continue
        a, b = kernels.encode(each.x[None], fmt), kernels.pack(axs6.encode(each.some[None], fmt))
        assert a is not None
        yield first_difference("products", fmt, each.x, kernels.matmul(a, b)[0], each.product)
        if kernels.fuses(fmt, b):
            fused = kernels.encode_matmul(each.x[None], fmt, b)
            assert fused is not None
            yield first_difference("products in one go", fmt, each.x, fused[0], each.product)


def by_torch(fmt: BlockFormat, tensors: int) -> Iterator[str]:
    """Differences of torch's operations."""
    for each in right(fmt, tensors):
        x, some = (torch.from_numpy(array) for array in (each.x, each.some))
        found = lanes.values(x, fmt).numpy()
        yield first_difference("values", fmt, each.x, found, each.values)
        if anywhere.multiplies(fmt, fmt):
            a, b = (anywhere.prepare(array[None], fmt) for array in (x, some))
            product = anywhere.product(a, b)[0].numpy()
            yield first_difference("products", fmt, each.x, product, each.product)


Way = Callable[[BlockFormat, int], Iterator[str]]


def assert_golden(way: Way, fmt: BlockFormat, tensors: int) -> None:
    """Every bit of a way is the golden model's."""
    for difference in way(fmt, tensors):
        assert not difference, difference
