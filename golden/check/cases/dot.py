"""Operands on which `validate` compares dot products with their definition."""

from enum import Enum
from typing import Any, Final

import numpy as np
from numpy.typing import NDArray

from axs6.golden.blocks import Blocks
from axs6.golden.check.cases.formats import scale_codes
from axs6.golden.check.exact.blocks import tiled
from axs6.golden.check.exact.floats import Special
from axs6.golden.check.exact.formats import (
    Definition,
    Element,
    Exponent,
    Level,
    Real,
    negated,
    real_element,
)
from axs6.golden.check.subjects import CheckedFormat

LANES: Final = 96
"""Maximum values of a row, unless a block is larger: enough for whole and partial steps of all
accumulators."""


class Look(Enum):
    """Kinds of operands of a dot product."""

    NEAR = "scales near 1"
    APART = "scales far apart"
    ENDS = "the smallest and the largest scales"
    ZEROS = "mostly zeros"
    LARGEST = "the largest elements"
    CANCELLED = "sums that cancel"
    ELEMENTS = "NaN and infinities among the elements"
    SCALES = "a NaN scale"


SPREAD: Final = {Look.NEAR: 1, Look.APART: 15}
"""Exponents of scales lie up to this far from that of 1; 5 for the others."""


def operands(
    a: CheckedFormat, b: CheckedFormat, rows: tuple[int, int], look: Look, rng: np.random.Generator
) -> tuple[Blocks, Blocks]:
    """Two matrices of one length K, not always a multiple of the block."""
    size = a.definition.block
    most = max(2, LANES // size)
    count = int(rng.integers(most // 2, most, endpoint=True))
    first, second = (
        _operand(subject, each, count, look, rng)
        for subject, each in zip((a, b), rows, strict=True)
    )
    if look is Look.CANCELLED:
        return _twice(first, a.definition.element), _twice(second)
    length = count * size - int(rng.integers(0, size))
    return _shortened(first, length), _shortened(second, length)


def _operand(
    subject: CheckedFormat, rows: int, count: int, look: Look, rng: np.random.Generator
) -> Blocks:
    definition, element = subject.definition, subject.definition.element
    shape = (rows, count, definition.block)
    numbers = [i for i, x in enumerate(element.values) if x not in NO_NUMBERS]
    codes = rng.choice(numbers, shape)
    if look is Look.ZEROS:
        codes = np.where(rng.random(shape) < 0.7, element.zero, codes)
    if look is Look.LARGEST:
        largest = element.largest
        ends = [element.codes[x] for x in (largest, -largest) if x in element.codes]
        codes = rng.choice(ends, shape)
    others = [i for i, x in enumerate(element.values) if x in NO_NUMBERS]
    others += 3 * [i for i in others if element.values[i] is not Special.NAN]
    if look is Look.ELEMENTS and others:
        chosen = rng.random(shape) < 0.01
        chosen.ravel()[rng.integers(chosen.size)] = True
        codes = np.where(chosen, rng.choice(others, shape), codes)
    scales = []
    having = [level for level in definition.levels if nan_code(level) is not None]
    poisoned = having[int(rng.integers(len(having)))] if look is Look.SCALES and having else None
    for level in definition.levels[::-1]:
        found = _scales(level, _shape(level, rows, count, definition), look, rng)
        nan = nan_code(level)
        if level is poisoned and nan is not None:
            found.reshape(-1)[rng.integers(found.size)] = nan
        bits = level.bits
        scales.append(found.astype(np.uint8 if bits <= 8 else f"u{2 if bits <= 16 else 4}"))
    zero = None
    if any(isinstance(level, Real) and level.zero_point for level in definition.levels):
        zero = np.asarray(rng.choice(numbers, scales[0].shape), np.uint8)
    shaped = (rows, count * definition.block)
    return Blocks(subject.fmt, tuple(scales), codes.astype(np.uint8), shaped, zero_points=zero)


NO_NUMBERS: Final = (Special.NAN, Special.INFINITY, Special.NEGATIVE_INFINITY)


def _shape(level: Level, rows: int, count: int, definition: Definition) -> tuple[int, ...]:
    if isinstance(level.group, str):
        return (rows,) if level.group == "channel" else ()
    if tiled(level, definition):
        return (-(-rows // definition.rows), count)
    each = definition.block // level.group
    return (rows, count) if each == 1 else (rows, count, each)


def nan_code(level: Level) -> int | None:
    """The code of a scale that is NaN."""
    if isinstance(level, Exponent):
        return 2**level.bits - 1 if level.nan else None
    if isinstance(level, Real):
        return 0x7FC00000 if level.single else real_element(level).nan
    return None


def _scales(
    level: Level, shape: tuple[int, ...], look: Look, rng: np.random.Generator
) -> NDArray[np.int64]:
    """Codes of scales that are numbers."""
    if look is Look.ENDS:
        selects = isinstance(level, Real) and level.selects
        nan, half = nan_code(level), 2 ** (level.bits - selects)
        numbers = [x for x in scale_codes(level, rng) if x % half != nan]
        ends = rng.choice([*numbers[:3], *numbers[-3:]], shape)
        return np.where(rng.random(shape) < 0.8, ends, rng.choice(numbers, shape))
    spread = SPREAD.get(look, 5)
    if isinstance(level, Exponent):
        bias = 2 ** (level.bits - 1) - 1
        found = bias + rng.integers(-min(spread, bias), min(spread, bias), shape, endpoint=True)
    elif isinstance(level, Real):
        bias = 2 ** (level.exponent_bits - 1) - 1 if level.bias is None else level.bias
        field = bias + rng.integers(-spread, spread, shape, endpoint=True)
        fraction = rng.integers(0, 2**level.fraction_bits, shape)
        largest = 0x7F7FFFFF if level.single else len(real_element(level).magnitudes) - 1
        found = np.clip((field << level.fraction_bits) + fraction, 1, largest)
        if level.selects:
            found |= rng.integers(0, 2, shape) << (level.bits - 1)
    else:
        found = rng.integers(1, 2**level.bits, shape)
    return np.asarray(found, np.int64)


def _shortened(blocks: Blocks, length: int) -> Blocks:
    """The first values of rows, and zeros under numbers in their place behind them."""
    size, used = blocks.block, (length - 1) % blocks.block + 1
    codes, zero = blocks.codes.copy(), blocks.zero_points
    last = (..., -1, None) if blocks.format.blocked else (..., None)
    codes[..., -1, used:] = blocks.format.element.zero_code if zero is None else zero[last]
    scales = []
    for level, found in zip(blocks.format.levels[::-1], blocks.scales, strict=True):
        found = found.copy()
        if level.blocked and level.group != size:
            found[..., -1, -(-used // int(level.group)) :] = 0
        scales.append(found)
    shape = (blocks.shape[0], length)
    return Blocks(blocks.format, tuple(scales), codes, shape, zero_points=zero)


def _twice(blocks: Blocks, element: Element | None = None) -> Blocks:
    """Rows followed by themselves or, given the element, by their negatives where it has them."""
    fmt, codes = blocks.format, blocks.codes
    more = codes
    if element is not None:
        table = [element.codes.get(negated(x), i) for i, x in enumerate(element.values)]
        more = np.array(table, np.uint8)[codes]
    scales: list[NDArray[Any]] = [
        np.concatenate([x, x], axis=1) if level.blocked else x
        for level, x in zip(fmt.levels[::-1], blocks.scales, strict=True)
    ]
    zero = blocks.zero_points
    if zero is not None and zero.ndim > 1:
        zero = np.concatenate([zero, zero], axis=1)
    shape = (blocks.shape[0], 2 * blocks.shape[1])
    both = np.concatenate([codes, more], axis=1)
    return Blocks(fmt, tuple(scales), both, shape, zero_points=zero)
