"""Special cases among blocks of values: boundaries of every element, of scales, of dtypes."""

from collections.abc import Iterable, Iterator
from fractions import Fraction
from itertools import combinations, pairwise, product
from typing import Any

import numpy as np
from numpy.typing import NDArray

from axs6.golden.formats import BlockFormat, Element, Float, Rule, Selected

NEAR = np.array([-1, 0, 1, 2])
"""Patterns around the one at a boundary or just below it."""


def as_values(dtype: Float, patterns: NDArray[np.integer]) -> NDArray[Any]:
    """Patterns of a dtype as `axs6.golden.encode` takes them."""
    kind = {"fp32": np.float32, "fp16": np.float16, "bf16": np.uint16}[dtype.name]
    return patterns.astype(f"u{dtype.width // 8}").view(kind)


def special_patterns(dtype: Float) -> NDArray[np.int64]:
    """Powers of two with both neighbours, zeros, subnormals, infinities and NaN, of both signs."""
    powers = np.arange(dtype.exponent_special) << dtype.fraction_bits
    subnormal_powers = 1 << np.arange(dtype.fraction_bits)
    near = np.concatenate([powers, subnormal_powers])[:, None] + np.array([-1, 0, 1])
    special = [0, dtype.max_finite, dtype.infinity, dtype.infinity + 1, dtype.quiet_nan]
    patterns = np.unique(np.concatenate([near.ravel(), special]))
    patterns = patterns[patterns >= 0]
    return np.concatenate([patterns, patterns | dtype.sign_bit])


def lane_rows(dtype: Float, lanes: int) -> Iterator[NDArray[np.int64]]:
    """Patterns that one bit makes special: in all lanes, and in each lane among zeros.

    The bit is one of a fraction, or the one that an exponent field has or lacks. Infinities, NaNs
    and zeros are among large values too, and among infinities and NaNs; infinities and NaNs also
    among values of each of the largest fields.
    """
    bits, fields = 1 << np.arange(dtype.fraction_bits), 1 << np.arange(dtype.exponent_bits)
    nans = np.concatenate([[dtype.infinity], dtype.infinity | bits])
    finite = (dtype.exponent_special ^ fields) << dtype.fraction_bits
    alone = np.concatenate([nans, finite, finite + 1])
    patterns = np.concatenate([alone, [0], bits, fields << dtype.fraction_bits])
    patterns = np.concatenate([patterns, patterns | dtype.sign_bit])
    yield np.repeat(patterns[:, None], lanes, axis=1)
    rows = np.zeros((lanes, len(alone), lanes), np.int64)
    rows[np.arange(lanes), :, np.arange(lanes)] = alone
    yield rows.reshape(-1, lanes)
    large = (dtype.bias + 1 << dtype.fraction_bits) - 1
    largest = dtype.infinity - (np.arange(1, 10) << dtype.fraction_bits) + 1
    zeros = (0, dtype.sign_bit)
    pairs = [
        *product((large, large | dtype.sign_bit, *nans[:2]), (*nans[:2], *zeros)),
        *product(largest, nans[:2]),
    ]
    for others, special in pairs:
        among = np.full((lanes, lanes), others)
        among[np.arange(lanes), np.arange(lanes)] = special
        yield among


def exponent_rows(dtype: Float, lanes: int, nan: bool) -> Iterator[NDArray[np.int64]]:
    """Every lane with the largest exponent field, and at each distance below it.

    The search for the largest field compares fields bit by bit: fields are powers of two and sums
    of two, and those beside them. Distances are small, or near a power of two. With `nan` they come
    with a NaN among them too.
    """
    bits = 1 << np.arange(dtype.exponent_bits)
    ends = np.concatenate([bits, 3 * bits, bits - 1, bits + 1, dtype.exponent_special ^ bits])
    largest = np.unique(ends[(ends > 0) & (ends < dtype.exponent_special)])
    near = (bits[:, None] + np.array([-1, 0, 1, 2])).ravel()
    distances = np.unique(np.concatenate([np.arange(10), near]))
    below = np.maximum(largest[:, None] - distances, 0)
    index = np.arange(len(largest))
    for turn in range(len(distances)):
        rows = np.stack([below[:, (turn + 5 * x) % len(distances)] for x in range(lanes)], axis=1)
        rows[index, (turn + index) % lanes] = largest
        yield (rows << dtype.fraction_bits) + 1
        if nan:
            rows[index, (turn + 1 + index) % lanes] = dtype.exponent_special
            yield (rows << dtype.fraction_bits) + 1
    for distance in (1, 2):
        rows = np.tile(below[:, distance][None, :, None], (lanes, 1, lanes))
        rows[np.arange(lanes), :, np.arange(lanes)] = largest
        yield (rows.reshape(-1, lanes) << dtype.fraction_bits) + 1


def search_rows(dtype: Float, lanes: int) -> Iterator[NDArray[np.int64]]:
    """Every lane with a field that lacks a bit of the largest one and has a lower bit instead.

    A search bit by bit has to leave the lane out at the higher bit. Bits above are equal. Other
    lanes have the largest field, the one below it, or 0.
    """
    rng = np.random.default_rng(19)
    for high, low in combinations(reversed(range(dtype.exponent_bits)), 2):
        fields = rng.integers(0, dtype.exponent_special, (2, lanes))
        above = fields[0] >> high + 1 << high + 1
        largest = above | 1 << high | fields[0] & (1 << low) - 1
        without = above | 1 << low | fields[1] & (1 << high) - 1
        largest = np.where(largest < dtype.exponent_special, largest, 1 << high)
        others = np.stack([largest, largest, largest - 1, np.zeros_like(largest)], axis=1)
        rows = np.take_along_axis(others, rng.integers(4, size=(lanes, lanes)), axis=1)
        index = np.arange(lanes)
        rows[index, (index + rng.integers(1, lanes, lanes)) % lanes] = largest
        rows[index, index] = np.minimum(without, largest - 1)
        yield (rows << dtype.fraction_bits) + 1


def subnormal_search_rows(dtype: Float, lanes: int) -> Iterator[NDArray[np.int64]]:
    """Every lane with each subnormal power of two: as the largest value, above lower ones, and
    below fields that are powers of two or just above.

    And blocks whose highest bit is any one, and whose next one is any below.
    """
    powers = 1 << np.arange(dtype.fraction_bits)
    fields = ((1 << np.arange(dtype.exponent_bits))[:, None] + np.array([0, 1, 2, 5])).ravel()
    rows = np.stack([np.roll(powers, 7 * lane) for lane in range(lanes)], axis=1)
    index = np.arange(len(powers))
    for turn, field in enumerate(fields[fields < dtype.exponent_special]):
        found = rows.copy()
        found[index, (turn + index) % lanes] = field << dtype.fraction_bits
        yield found
    for turn in range(lanes):
        below = (np.arange(lanes) * (1 + turn % 3) + turn) % 5 + 1
        rows = powers[:, None] >> below
        rows[:, turn] = powers
        yield rows
    rng = np.random.default_rng(20)
    pairs = np.array(list(combinations(powers, 2)))
    low, high = np.tile(pairs, (lanes, 1)).T
    rows = rng.integers(0, low[:, None], (len(low), lanes))
    rows |= low[:, None] * rng.integers(0, 2, rows.shape)
    rows[np.arange(len(rows)), np.arange(len(rows)) // len(pairs)] = low | high
    yield rows


def subnormal_rows(dtype: Float, lanes: int) -> Iterator[NDArray[np.int64]]:
    """Every lane with subnormals of each size, under a maximum that is none or nearly none.

    They come with a NaN among them too, of each bit.
    """
    powers = 1 << np.arange(dtype.fraction_bits)
    patterns = np.concatenate([powers, 2 * powers - 1, powers + powers // 2])
    index = np.arange(len(patterns))
    rows = np.stack([np.roll(patterns, 7 * lane) for lane in range(lanes)], axis=1)
    for field, start in product(range(6), (0, 1)):
        found = rows.copy()
        found[index, (start + index) % lanes] = max(field << dtype.fraction_bits, patterns.max())
        yield found.copy()
        found[index, (start + 1 + index) % lanes] = (
            dtype.infinity | np.roll(powers, field)[index % len(powers)]
        )
        yield found
    alone = np.full((2 * len(powers), lanes), dtype.infinity | (1 << dtype.fraction_bits) - 1)
    index = np.arange(len(alone))
    alone[index, index // len(powers)] = np.tile(powers, 2)
    yield alone


def repeated_rows(dtype: Float, lanes: int, period: int) -> Iterator[NDArray[np.int64]]:
    """Every lane with each fraction that repeats a code and then differs from that in one bit.

    A lane of a format with a denominator compares a significand with itself, a code's bits further.
    All have the same exponent field, or one lane has a larger one.
    """
    width = dtype.fraction_bits
    codes = np.unique(np.linspace(0, (1 << period) - 1, 32).astype(np.int64))
    places = [(period - 1 - k % period, width - 1 - k) for k in range(width)]
    bits = [(codes >> place & 1) << to for place, to in places]
    repeated = np.bitwise_or.reduce(bits)
    flips = np.concatenate([[0], 1 << np.arange(width)])
    patterns = (repeated[:, None] ^ flips).ravel()
    rows = np.stack([np.roll(patterns, 37 * lane) for lane in range(lanes)], axis=1)
    index = np.arange(len(rows))
    for field in (0, dtype.bias):
        found = rows | field << width
        yield found
        for start in (0, 2):
            larger = found.copy()
            larger[index, index % lanes] += (index + start) % 5 << width
            yield larger


def two_bit_rows(element: Element, dtype: Float, lanes: int) -> Iterator[NDArray[np.int64]]:
    """Every lane with fractions of one or two bits, down to where an element rounds to zero.

    The higher bit is kept or decides, and the lower one is any of those that are dropped.
    """
    width = dtype.fraction_bits
    ones = 1 << np.arange(width)
    high = ones[-element.precision - 1 :]
    fractions = np.unique(np.concatenate([[0], ones, (high[:, None] | ones).ravel()]))
    fields = np.maximum(dtype.bias - np.arange(element.integer_bits + 3), 0)
    patterns = (np.unique(fields)[:, None] << width | fractions).ravel()
    rows = np.stack([np.roll(patterns, 11 * lane) for lane in range(lanes)], axis=1)
    index = np.arange(len(rows))
    for start in (0, 1):
        found = rows.copy()
        found[index, (start + index) % lanes] = dtype.bias << width
        yield found


def subnormal_tie_rows(element: Element, dtype: Float, lanes: int) -> NDArray[np.int64]:
    """Every lane with subnormals of up to three bits: the leading one, one which may be half of an
    element's last place, and one further below.

    Each block has a power of two from the leading bit up to what is the largest element above it.
    """
    width = dtype.fraction_bits
    places = np.array(
        [
            (leading, half, below)
            for leading in range(width)
            for half in range(max(0, leading - element.precision - 1), leading)
            for below in range(half + 1)
        ]
    )
    patterns = np.bitwise_or.reduce(1 << places, axis=1)
    rows = np.stack([np.roll(patterns, 3 * lane) for lane in range(lanes)], axis=1)
    index = np.arange(len(rows))
    top = places[:, 0] + index % element.integer_bits
    powers = np.where(top < width, 1 << np.minimum(top, width), (top - width + 1) << width)
    rows[index, index % lanes] = np.minimum(powers, dtype.max_finite)
    return rows


def boundary_rows(
    fmt: BlockFormat, elements: Iterable[Element], dtype: Float
) -> Iterator[NDArray[np.int64]]:
    """Blocks in which every value lies at a boundary of an element, under a given maximum.

    The boundaries are the elements and the middles between two. The maxima are a power of two, the
    value above it and the one below the next, where the exponent's code is 0, where it is the
    largest one, near 1, and at the end of the dtype.
    """
    for element in elements:
        bounds = boundaries(element)
        for binade in _binades(fmt, element, dtype):
            for maximum, raised in _maxima(fmt, dtype, binade):
                for shift in range(1 + sum(x.scale.largest_code for x in fmt.shifts)):
                    scale = Fraction(2) ** (binade - element.emax + raised - shift)
                    patterns = near(dtype, [scale * x for x in bounds])
                    # An odd number of other lanes: each value comes to even ones and to odd ones.
                    both = np.concatenate([patterns, patterns | dtype.sign_bit])
                    others = fmt.block - 1
                    full = np.resize(both, (-(-2 * len(both) // others), others))
                    top = np.full((len(full), 1), maximum)
                    yield np.concatenate([full, top], axis=1)


def scale_rows(fmt: BlockFormat, element: Element, dtype: Float) -> NDArray[np.int64]:
    """Maxima at which a rule changes a scale's code: in each lane in turn, others far below, and in
    all lanes.

    They are powers of two, largest elements, and values that round up to a power of two.
    """
    exponents = sorted(
        {e for binade in _binades(fmt, element, dtype) for e in range(binade - 2, binade + 3)}
    )
    even = 2 - Fraction(1, 2 << element.precision)
    largest = element.largest / Fraction(2) ** element.emax
    bounds = [Fraction(2) ** e * x for e in exponents for x in (1, largest, even)]
    maxima = near(dtype, bounds)
    rows = np.resize(special_patterns(dtype)[: 2 * fmt.block + 1], (len(maxima), fmt.block)).copy()
    rows[np.arange(len(maxima)), np.arange(len(maxima)) % fmt.block] = maxima
    return np.concatenate([rows, np.tile(maxima[:, None], fmt.block)])


SPECIALS = 1 << 11
"""Blocks that get a NaN or an infinity."""


def for_specials(rows: NDArray[np.int64]) -> NDArray[np.int64]:
    """Some of the items, evenly spread, that `beside_specials` takes."""
    return rows[:: -(-len(rows) // SPECIALS)]


def beside_specials(rows: NDArray[np.int64], dtype: Float) -> NDArray[np.int64]:
    """Some of these blocks, with an infinity or a NaN of one bit in each lane in turn."""
    found = for_specials(rows).copy()
    index, lanes = np.arange(len(found)), rows.shape[1]
    specials = dtype.infinity | np.append(0, 1 << np.arange(dtype.fraction_bits))
    specials = np.concatenate([specials, specials | dtype.sign_bit])
    found[index, index % lanes] = specials[index // lanes % len(specials)]
    return found


def boundaries(element: Element) -> list[Fraction]:
    """Positive elements, midpoints of neighbours, and where values saturate."""
    if isinstance(element, Selected):
        return sorted({bound for part in element.parts for bound in boundaries(part)})
    integers = np.asarray(element.integers)
    found = set()
    for sign in (1, -1) if element.listed else (1,):
        sizes = np.unique(np.maximum(sign * integers, 0)).tolist()
        units = [Fraction(x) for x in sizes if x <= element.largest_integer]
        beyond = 2 * units[-1] - units[-2] if units[1:] else Fraction(1)
        found |= {*units[1:], *((a + b) / 2 for a, b in pairwise([*units, beyond])), beyond}
    return [x * element.unit for x in sorted(found)]


def _binades(fmt: BlockFormat, element: Element, dtype: Float) -> list[int]:
    """Exponents of maxima: the ends of the scale's range and of the dtype's, and around 0."""
    scale = fmt.exponent
    assert scale is not None
    lowest, highest = dtype.emin, dtype.exponent_special - 1 - dtype.bias
    ends = [element.emax - scale.bias, element.emax + scale.largest_code - scale.bias]
    wanted = [
        0,
        lowest + element.width,
        lowest - 1,
        highest,
        *(e + d for e in ends for d in (0, 1)),
    ]
    return sorted({e for e in wanted if lowest - dtype.fraction_bits <= e <= highest})


def _maxima(fmt: BlockFormat, dtype: Float, binade: int) -> list[tuple[int, int]]:
    """Patterns of maxima in a binade, and whether a rule can give them the larger scale."""
    power = _pattern(dtype, Fraction(2) ** binade)
    below = _pattern(dtype, Fraction(2) ** (binade + 1)) - 1
    assert fmt.exponent is not None
    raised = int(fmt.exponent.rule is not Rule.FLOOR)
    return [(power, 0), (power + 1, raised), (max(below, power), raised)]


def near(dtype: Float, bounds: Iterable[Fraction]) -> NDArray[np.int64]:
    """Patterns around positive numbers, within the range."""
    patterns = np.array([_pattern(dtype, x) for x in bounds])[:, None] + NEAR
    return np.unique(np.clip(patterns, 0, dtype.max_finite))


def _pattern(dtype: Float, x: Fraction) -> int:
    """The pattern of the largest value that is at most `x`."""
    n = x.numerator.bit_length() - x.denominator.bit_length()
    exponent = max(n if Fraction(2) ** n <= x else n - 1, dtype.emin)
    quanta = int(x / Fraction(2) ** (exponent - dtype.fraction_bits))
    pattern = (exponent - dtype.emin << dtype.fraction_bits) + quanta
    return min(pattern, dtype.max_finite)
