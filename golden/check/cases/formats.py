"""Inputs on which `validate` compares block formats with their definitions.

Values are bit patterns of an `InputKind`, as in `inputs`, in arrays of shape (rows, K).
"""

from collections.abc import Iterator, Sequence
from fractions import Fraction
from itertools import pairwise

import numpy as np

from axs6.golden.check.cases import inputs
from axs6.golden.check.cases.inputs import InputKind, Patterns
from axs6.golden.check.exact.blocks import Block, scale_value
from axs6.golden.check.exact.encode import encode
from axs6.golden.check.exact.floats import Special, Value, floor_log2, power
from axs6.golden.check.exact.formats import Definition, Element, Integer, Level, Real, real_element

SPREAD = (-126, -70, -9, 0, 5, 64, 118)
"""Powers of two of the largest values of groups, at which thresholds are tried."""


def values(kind: InputKind, patterns: Patterns) -> list[list[Value]]:
    """Rows of patterns as the exact model takes them: -0.0 is not 0."""
    minus_zero = kind.fmt.sign if kind.fmt else None
    return [
        [Special.NEGATIVE_ZERO if x == minus_zero else kind.value(x) for x in row]
        for row in patterns.tolist()
    ]


def has_tensor_scale(definition: Definition) -> bool:
    """Whether all values of an array share a scale."""
    return any(level.group == "tensor" for level in definition.levels)


def arrays(patterns: Patterns, definition: Definition, rows: int = 1) -> Iterator[Patterns]:
    """The patterns as one array, or as arrays of `rows` rows where all values share a scale."""
    step = rows if has_tensor_scale(definition) else max(1, len(patterns))
    for start in range(0, len(patterns), step):
        yield patterns[start : start + step]


def special(kind: InputKind, size: int, share: int, rng: np.random.Generator) -> Patterns:
    """`share` of the blocks of special values that AXS-6 is compared on, and one of 1 and zeros."""
    found = inputs.special_blocks(kind, size, rng)
    zeros = np.zeros((1, size), np.uint64)
    zeros[0, 0] = kind.nearest(Fraction(1))
    signed = kind.with_sign(zeros, np.arange(size)[None] % 2 == 1)
    return np.concatenate([found[rng.permutation(len(found))[:share]], signed])


def infinite(kind: InputKind, size: int, count: int, rng: np.random.Generator) -> Patterns:
    """Blocks in which some values are NaN or infinite, and one block of each alone."""
    assert kind.fmt
    plain = inputs.random_blocks(kind, size, count, rng)
    some = [kind.fmt.infinity, kind.fmt.sign | kind.fmt.infinity, kind.fmt.sign - 1]
    chosen = rng.choice(np.array(some, np.uint64), plain.shape)
    mixed = np.where(rng.random(plain.shape) < rng.choice([0.02, 0.3], (count, 1)), chosen, plain)
    alone = np.zeros((len(some), size), np.uint64)
    alone[:, size // 2] = some
    return np.concatenate([mixed, alone])


def midpoints(element: Element) -> list[Fraction]:
    """Magnitudes, their midpoints, and values above the last."""
    sides = [element.magnitudes]
    if element.listed:
        sides = [tuple(abs(x) for x, _ in element.side(sign)) for sign in (1, -1)]
    tables = [[*side, 2 * side[-1] - side[-2]] for side in sides if len(side) > 1]
    return [x for table in tables for a, b in pairwise(table) for x in (a, (a + b) / 2)]


def thresholds(kind: InputKind, definition: Definition, powers: Sequence[int]) -> Patterns:
    """Values next to every code and to every midpoint of two, with both neighbours.

    The first value of each block fixes its scales: the largest element, or half of it, times a
    power of two.
    """
    blocks = []
    for index, exponent in enumerate(powers):
        wanted = definition.element.largest * power(exponent) / (1 + index % 2)
        top = kind.nearest(wanted)
        if not top or kind.value(top) in (Special.INFINITY, Special.NAN):
            continue
        factor = scale_of(definition, kind.value(top))
        near = [kind.nearest(x * factor) for x in midpoints(definition.element)]
        around = [min(max(x + d, 0), kind.largest) for x in near for d in (-1, 0, 1)]
        size = max(definition.block - 1, 1)
        around += [0] * (-len(around) % size)
        members = np.array(around, np.uint64).reshape(-1, size)
        first = np.full((len(members), 1), top, np.uint64)
        blocks.append(np.concatenate([first, members], axis=1)[:, : definition.block])
    found = np.concatenate(blocks) if blocks else np.zeros((1, definition.block), np.uint64)
    return kind.with_sign(found, np.arange(found.size).reshape(found.shape) % 3 == 0)


def scale_of(definition: Definition, top: Value) -> Fraction:
    """The product of the scales at the first value of a block, that value alone not 0."""
    ((block, *_), *_) = encode([[top]], definition)
    factor = Fraction(1)
    for level, codes in zip(definition.levels[::-1], block.scales, strict=True):
        value = scale_value(codes[0], level)
        assert isinstance(value, Fraction)
        factor *= value
    return factor


def scale_thresholds(kind: InputKind, definition: Definition, powers: Sequence[int]) -> Patterns:
    """Blocks whose largest values lie next to those at which a scale takes another code.

    A value of 7/8 of the largest, one of a third and one of the other sign stand beside it.
    """
    element = definition.element
    leading = power(floor_log2(element.largest))
    ends = [Fraction(1), element.largest / leading, 2 - power(-element.precision - 1)]
    tops = [x * leading * power(n) for x in ends for n in powers]
    for level in definition.levels[:-1]:
        tops += [x * element.largest for x in _factor_ends(level)]
    near = [kind.nearest(abs(x)) for x in tops]
    firsts = [min(max(x + d, 0), kind.largest) for x in near for d in (-1, 0, 1)]
    rows = np.zeros((len(firsts), definition.block), np.uint64)
    exactly = [kind.value(x) for x in firsts]
    for column, part in enumerate((Fraction(1), Fraction(7, 8), Fraction(1, 3), Fraction(1, 9))):
        if column < definition.block:
            rows[:, -1 - column] = [
                kind.nearest(abs(x) * part) if isinstance(x, Fraction) else 0 for x in exactly
            ]
    rows[:, -1] = firsts
    return kind.with_sign(rows, np.arange(rows.size).reshape(rows.shape) % 2 == 0)


def _factor_ends(level: Level) -> list[Fraction]:
    """Factors at which a real or integer scale takes another code, some of them."""
    if isinstance(level, Integer):
        return [Fraction(x) for x in range(1, min(2**level.bits, 20))]
    if isinstance(level, Real) and level.bits <= 8:
        return midpoints(real_element(level))[::5]
    return []


def scale_codes(level: Level, rng: np.random.Generator) -> list[int]:
    """Codes of a scale to decode: all of a few bits, else the ends, NaN and some between."""
    first = 1 if isinstance(level, Integer) else 0
    last = 2**level.bits - 1
    if isinstance(level, Real):
        nan = 0x7FC00000 if level.single else real_element(level).nan
        largest = 0x7F7FFFFF if level.single else len(real_element(level).magnitudes) - 1
        first, last = 1, largest
        ends = [0, 1, 2, 1 << level.fraction_bits, largest - 1, largest]
        ends += [nan] if nan else []
        if level.selects:
            ends += [code | 1 << (level.bits - 1) for code in ends[2:]]
    else:
        ends = [*range(first, min(first + 4, last)), *range(max(first, last - 3), last + 1)]
    if last - first < 20:
        return sorted({*ends, *range(first, last + 1)})
    return sorted({*ends, *rng.integers(first, last, 12, endpoint=True).tolist()})


def coded_blocks(definition: Definition, rng: np.random.Generator) -> list[Block]:
    """Every code beside each of some codes of every scale."""
    size, count = definition.block, 2**definition.element.width
    last = count - 1
    codes = np.resize(np.arange(count), -(-count // size) * size).reshape(-1, size).tolist()
    tried = [scale_codes(level, rng) for level in definition.levels[::-1]]
    blocks = []
    zero_point = any(isinstance(level, Real) and level.zero_point for level in definition.levels)
    for number in range(max(map(len, tried))):
        for row in codes:
            scales = []
            for level, found in zip(definition.levels[::-1], tried, strict=True):
                groups = size // level.group if isinstance(level.group, int) else 1
                others = rng.choice(found, groups).tolist()
                scales.append((found[number % len(found)], *others[1:]))
            zero = int(rng.choice([0, 1, last // 2, last])) if zero_point else None
            blocks.append(Block(tuple(scales), tuple(row), zero))
    return blocks


def words(
    shape: tuple[int, ...], bits: int, rng: np.random.Generator
) -> np.ndarray[tuple[int, ...], np.dtype[np.uint64]]:
    """Random integers of stochastic rounding, many of them the smallest or the largest."""
    some = rng.integers(0, 2**bits, shape, np.uint64)
    ends = rng.choice(np.array([0, 2**bits - 1], np.uint64), shape)
    return np.where(rng.random(shape) < 0.3, ends, some)
