"""Vectors that take turns in a stream of blocks."""

from collections.abc import Iterator, Sequence
from typing import Any

import numpy as np
from numpy.random import Generator
from numpy.typing import NDArray

from axs6.golden import fp32, kulisch
from axs6.golden.formats import FP32
from axs6.golden.formats.catalog import AXS6_ELEMENT, AXS6_SCALE
from axs6.golden.terms import DIGIT_BITS, digits_of
from axs6.hw.dot.shape import WORD, DotShape
from axs6.hw.units.unit import Fields, Items


def reduce_vectors(
    products: Fields, shape: DotShape, last: NDArray[Any], turns: int, outer: NDArray[Any] | None
) -> NDArray[np.uint32]:
    """FP32 results of the vectors that take turns in a stream, in the order of their last items.

    All vectors at once: step k adds the k-th block of each vector that has one.

    Args:
        products: the fields of `DotShape.sum` of each item.
        shape: the block dot product.
        last: which items are the last of their vector.
        turns: vectors that take turns.
        outer: FP32 patterns that the results of last items are multiplied by, for each item.
    """
    terms = fp32_terms(products, shape)
    start, lengths = vectors_of(last, turns)
    totals = np.zeros(len(start), np.uint32)
    for k in range(int(lengths.max(initial=0))):
        active = np.flatnonzero(lengths > k)
        item = start[active] + k * turns
        totals[active] = fp32.add(totals[active], terms[item])
    if shape.divisor > 1:
        totals = fp32.divide_by_scale(totals, shape.divisor)
    if outer is None:
        return totals
    ends = start + (lengths - 1) * turns
    return fp32.multiply(totals, outer[ends].astype(np.uint32))


def fp32_terms(products: Fields, shape: DotShape) -> fp32.Bits:
    """Block dot products as FP32 patterns, each rounded once."""
    sums = products["sum"]
    exponents = products.get("exponent", np.zeros(len(sums), np.int64)).astype(np.int64)
    digits = [sums.astype(np.int64)]
    if shape.width > DIGITS_FROM:
        high = products.get("high", np.zeros(len(sums), np.int64)).astype(object)
        low = sums.astype(object)
        digits = [x.astype(np.int64) for x in digits_of((high << WORD) + low, shape.width)]
    negative, top, exponent, sticky = kulisch.leading(digits, DIGIT_BITS)
    found = fp32.round_to_fp32(negative, top, exponent + exponents + shape.offset, sticky)
    if "special" not in products:
        return found
    patterns = np.array([0, FP32.quiet_nan, FP32.infinity, FP32.infinity | FP32.sign_bit])
    special = products["special"]
    return np.where(special != 0, patterns[special], found).astype(np.uint32)


DIGITS_FROM = 62
"""Bits of sums that are taken in digits."""


def any_in_vector(flags: NDArray[np.bool_], last: NDArray[Any], turns: int) -> NDArray[np.bool_]:
    """Whether a flag is set in each of the vectors, in the order of their last items."""
    start, lengths = vectors_of(last, turns)
    items = zip(start.tolist(), lengths.tolist(), strict=True)
    return np.array([flags[first : first + n * turns : turns].any() for first, n in items], bool)


def vectors_of(last: NDArray[Any], turns: int) -> tuple[NDArray[np.int64], NDArray[np.int64]]:
    """First items and lengths of vectors that take turns, in the order of their last items."""
    starts, ends = [], []
    for turn in range(turns):
        stops = np.flatnonzero(last[turn::turns])
        ends.append(stops * turns + turn)
        starts.append(np.concatenate([[-1], stops[:-1]])[: len(stops)] * turns + turns + turn)
    order = np.argsort(np.concatenate(ends))
    start, end = (np.concatenate(each).astype(np.int64)[order] for each in (starts, ends))
    return start, (end - start) // turns + 1


Vector = list[tuple[NDArray[Any], NDArray[Any], int]]
"""Operands and exponent sums of the block pairs of one vector."""


def significand_vector(significand: int, block: int, total: int) -> Vector:
    """Two block pairs whose FP32 accumulator is `significand` * 2^(total - 276), exactly."""
    high, low = significand >> 12, significand & 0xFFF
    return [(*_operands(high, block), total), (*_operands(low, block), total - 12)]


def _operands(product: int, block: int) -> tuple[NDArray[Any], NDArray[Any]]:
    """Codes whose block dot product is a number of up to 12 bits."""
    whole, rest = divmod(product, AXS6_ELEMENT.largest_code**2)
    a, b = np.zeros((2, block), np.int64)
    a[: whole + 1] = AXS6_ELEMENT.largest_code
    b[:whole] = AXS6_ELEMENT.largest_code
    b[whole], a[whole + 1] = divmod(rest, AXS6_ELEMENT.largest_code)
    b[whole + 1] = 1
    return a, b


HARD_DIVISOR = AXS6_ELEMENT.largest_code**2
"""The divisor of `hard_quotients`."""


def hard_quotients() -> Iterator[int]:
    """Significands whose quotient by 961/1024 lies nearest above a rounding boundary.

    That is 1/1922 above one where the quotient has 24 bits, 1/961 where it has 25.
    """
    divisor = HARD_DIVISOR
    for scale, low, high in ((1024, 1 << 23, 15 << 20), (512, 0xF10000, 1 << 24)):
        first = (divisor + 1) // 2 * pow(scale, -1, divisor) % divisor
        steps = np.linspace(-(-(low - first) // divisor), (high - 1 - first) // divisor, 24)
        yield from (first + divisor * int(step) for step in steps)


def vector_items(vectors: Sequence[Vector]) -> Items:
    """Items of the dot product for vectors, one after the other."""
    pairs = [pair for vector in vectors for pair in vector]
    totals = np.array([total for _, _, total in pairs])
    first = np.minimum(totals, AXS6_SCALE.largest_code)
    return {
        **pair_items(
            np.array([a for a, _, _ in pairs]),
            np.array([b for _, b, _ in pairs]),
            np.stack([first, totals - first], axis=1),
        ),
        "last": np.concatenate([[0] * (len(vector) - 1) + [1] for vector in vectors]),
    }


def in_turns(items: Items, turns: int) -> Items:
    """The vectors of a stream shared out among `turns` streams, whose items then take turns.

    Streams that are too short get vectors of one item, a copy of the first one.
    """
    ends = np.flatnonzero(items["last"]) + 1
    bounds = np.concatenate([[0], ends[np.arange(1, turns) * len(ends) // turns - 1], ends[-1:]])
    lengths = np.diff(bounds)
    index = np.zeros((lengths.max(), turns), np.int64)
    last = np.ones(index.shape, np.int64)
    for turn, (start, length) in enumerate(zip(bounds, lengths, strict=False)):
        index[:length, turn] = np.arange(start, start + length)
        last[:length, turn] = items["last"][start : start + length]
    return {**{name: array[index.ravel()] for name, array in items.items()}, "last": last.ravel()}


def random_turns(rng: Generator, count: int, turns: int) -> tuple[NDArray[Any], NDArray[Any]]:
    """`last` of items whose vectors of 1 to 16 blocks take turns, and the vector of each item."""
    last = rng.random(count) < rng.choice([0.06, 0.3, 1.0], count, p=[0.8, 0.15, 0.05])
    last[-turns:] = True
    vector = np.zeros(count, np.int64)
    vectors = 0
    for turn in range(min(turns, count)):
        ends = last[turn::turns]
        vector[turn::turns] = vectors + np.cumsum(ends) - ends
        vectors += int(ends.sum())
    return last, vector


def random_exponents(rng: Generator, vector: NDArray[Any], width: int) -> NDArray[Any]:
    """Exponents of `width` blocks in each item, within 20 binades of each other in a vector."""
    vectors = int(vector.max()) + 1
    top = rng.integers(0, AXS6_SCALE.largest_code + 1, (vectors, 1))
    top = np.where(rng.random((vectors, 1)) < 0.5, rng.integers(100, 156, (vectors, 1)), top)
    spread = rng.integers(1, 21, (vectors, 1))[vector]
    return np.maximum(top[vector] - rng.integers(0, spread, (len(vector), width)), 0)


def pair_items(a: NDArray[Any], b: NDArray[Any], exponents: NDArray[Any]) -> Items:
    """Items of pairs of blocks with codes (n, B) and exponents (n, 2)."""
    return {
        "a.exponent": exponents[:, 0],
        "a.codes": a,
        "b.exponent": exponents[:, 1],
        "b.codes": b,
    }
