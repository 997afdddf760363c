"""The block dot product as a unit."""

from collections.abc import Sequence

import numpy as np
from numpy.random import Generator
from numpy.typing import NDArray

from axs6.golden.blocks import Blocks
from axs6.golden.dot import block_dot
from axs6.golden.formats import BlockFormat, Exponent, Integer, Real, Scale
from axs6.golden.formats.modes import MODE_BLOCKS
from axs6.golden.operands import Operand
from axs6.hw.core.layouts import scale_names
from axs6.hw.core.parameters import VIEWS
from axs6.hw.dot.block_dot import BlockDot
from axs6.hw.dot.shape import WORD, DotShape
from axs6.hw.fp32.number import MINUS, NAN, PLUS
from axs6.hw.units.blocks import (
    blocks_of,
    end_codes,
    is_nan,
    number_codes,
    random_blocks,
    special_codes,
)
from axs6.hw.units.unit import Fields, Items, Parameters, Unit

PAIRS_MAX = 1 << 16
"""Pairs of codes, at most, that corners have in every lane."""

Pair = tuple[BlockFormat, BlockFormat]


def shape_of(parameters: Parameters) -> DotShape:
    """The block dot product of a unit with these parameters."""
    return DotShape.of(parameters.get("format", "axs6"), parameters["block"])


def block_choices(formats: Sequence[BlockFormat]) -> tuple[int, ...]:
    """Sizes of blocks that tests use: those of modes, the format's own, or some."""
    first = formats[0]
    if first.has_modes:
        return MODE_BLOCKS
    return (first.block,) if first.blocked else (32, 16)


def block_dot_items(items: Fields, parameters: Parameters) -> Items:
    """Sums and exponent sums of dense blocks."""
    shape = shape_of(parameters)
    a, b = (blocks_of(items, x, f"{side}.") for side, x in zip("ab", shape.formats, strict=True))
    return products(a, b, shape)


def products(a: Blocks, b: Blocks, shape: DotShape) -> Items:
    """The fields of `DotShape.sum` for pairs of blocks, of shape (..., 1) each."""
    operands = [Operand.of(x, form) for x, form in zip((a, b), shape.forms, strict=True)]
    special = _special(*operands)
    exponents = operands[0].exponents + operands[1].exponents
    found: Items = {}
    clean = [_without_special(x) for x in (a, b)]
    # Blocks without a size of their own come as several, whose sums are one.
    sums = block_dot(*clean)[0].astype(object if shape.width > WORD - 1 else np.int64)
    sums = np.where(special != 0, 0, sums.sum(axis=-1))
    if shape.width > WORD:
        low = (1 << WORD) - 1
        found["sum"] = np.array(sums & low, np.uint64)
        found["high"] = np.array(sums >> WORD, np.int64)
    else:
        bits = next(x for x in (16, 32, 64) if x >= shape.width)
        found["sum"] = np.array(sums, f"i{bits // 8}")
    if shape.exponent_bits:
        found["exponent"] = exponents[..., 0, 0]
    if shape.special:
        found["special"] = special
    return found


def _without_special(blocks: Blocks) -> Blocks:
    """Blocks with zeros in place of NaN and infinities."""
    codes = np.where(np.isin(blocks.codes, special_codes(blocks.format)), 0, blocks.codes)
    scales = []
    for level, found in zip(blocks.format.levels[::-1], blocks.scales, strict=True):
        scales.append(np.where(is_nan(level.scale, found), 0, found))
    return Blocks(blocks.format, tuple(scales), codes.astype(np.uint8), blocks.shape)


def _special(a: Operand, b: Operand) -> NDArray[np.int64]:
    """NAN, PLUS or MINUS where products add up to NaN or an infinity by IEEE 754, else 0."""
    with np.errstate(invalid="ignore"):
        total = (_signs(a) * _signs(b)).sum(axis=(-1, -2))
    infinite = np.where(total > 0, PLUS, MINUS)
    return np.where(np.isnan(total), NAN, np.where(np.isinf(total), infinite, 0))


def _signs(operand: Operand) -> NDArray[np.float64]:
    """-1, 0, 1, infinities and NaN, as the values are."""
    signs = np.sign(operand.integers).astype(np.float64)
    if operand.infinite is not None:
        signs = np.where(operand.infinite != 0, operand.infinite * np.inf, signs)
    return signs if operand.nan is None else np.where(operand.nan, np.nan, signs)


def block_dot_corners(parameters: Parameters) -> Items:
    """Every pair of codes in every lane, sums of end codes, and NaN and infinities among them.

    Pairs of finite codes stand together, so that few sums are NaN or infinite. NaN and infinities
    also stand alone, each in every lane. Scales are at the ends of their range.
    """
    return some_corners(parameters, None)


def some_corners(parameters: Parameters, most: int | None) -> Items:
    """A sample of `block_dot_corners`; all of them if `most` is None.

    Rows with a pair of codes in every lane are sampled apart from all others, so that NaN and
    infinities are not rare. Of each there are at most `most`.
    """
    shape = shape_of(parameters)
    a, b = _pairs(shape) if _few(shape) else np.zeros((2, 0), np.int64)
    lanes = np.arange(shape.block)
    every = (np.arange(len(a))[:, None] + lanes) % max(1, len(a))
    ends = [np.repeat(x[:, None], shape.block, axis=1) for x in _end_pairs(shape)]
    mixed = _mixed(shape)
    others = [np.concatenate(each) for each in zip(ends, _alone(shape), mixed, strict=True)]
    step, step_of_others = (-(-len(x) // (most or len(x) or 1)) or 1 for x in (every, others[0]))
    codes = [
        np.concatenate([pairs[every[::step]], each[::step_of_others]])
        for pairs, each in zip((a, b), others, strict=True)
    ]
    items: Items = {}
    for side, fmt, each in zip("ab", shape.formats, codes, strict=True):
        scales = end_scales(fmt, shape.block, len(each), len(mixed[0]) // step_of_others // 2)
        items |= {f"{side}.{name}": x for name, x in scales.items()}
        items[f"{side}.codes"] = each
    return items


def _few(shape: DotShape) -> bool:
    return 1 << sum(x.element.width for x in shape.formats) <= PAIRS_MAX


def _pairs(shape: DotShape) -> tuple[NDArray[np.int64], NDArray[np.int64]]:
    """All pairs of codes, those of two numbers first."""
    counts = [1 << x.element.width for x in shape.formats]
    a, b = (x.ravel() for x in np.indices(counts))
    number = ~np.isin(a, special_codes(shape.a)) & ~np.isin(b, special_codes(shape.b))
    order = np.argsort(~number, kind="stable")
    return a[order], b[order]


def _end_pairs(shape: DotShape) -> tuple[NDArray[np.int64], NDArray[np.int64]]:
    """All pairs of end codes."""
    first, second = (end_codes(x) for x in shape.formats)
    return np.repeat(first, len(second)), np.tile(second, len(first))


def _alone(shape: DotShape) -> tuple[NDArray[np.int64], NDArray[np.int64]]:
    """Rows of numbers with NaN or an infinity in one lane of one operand, each in every lane.

    Beside it is each code with one bit set, zero, or an end code. Half of the rows are zeros.
    """
    rng, lanes, width = np.random.default_rng(9), np.arange(shape.block), shape.block
    found: list[list[NDArray[np.int64]]] = [[], []]
    for side, fmt in enumerate(shape.formats):
        special, other = special_codes(fmt), shape.formats[1 - side]
        bits = 1 << np.arange(other.element.width)
        partners = np.unique(np.concatenate([[0], bits, end_codes(other)]))
        lane, partner, code = (
            x.ravel() for x in np.meshgrid(lanes, partners, special, indexing="ij")
        )
        rows = np.arange(len(lane))
        for which, each, alone in ((side, fmt, code), (1 - side, other, partner)):
            codes = rng.choice(number_codes(each), (len(lane), width)) * (rows % 2)[:, None]
            codes[rows, lane] = alone
            found[which].append(codes)
    return np.concatenate(found[0]), np.concatenate(found[1])


def _mixed(shape: DotShape) -> tuple[NDArray[np.int64], NDArray[np.int64]]:
    """Rows of zeros with one to three end codes or special codes among them."""
    rng = np.random.default_rng(6)
    count = 512
    found = []
    for fmt in shape.formats:
        codes = np.zeros((count, shape.block), np.int64)
        some = np.concatenate([end_codes(fmt), special_codes(fmt), special_codes(fmt)])
        for _ in range(3):
            lane = np.random.default_rng(7).integers(0, shape.block, count)
            lane = (lane + rng.integers(0, 2, count)) % shape.block
            codes[np.arange(count), lane] = rng.choice(some, count)
        found.append(codes)
    return found[0], found[1]


def end_scales(fmt: BlockFormat, block: int, count: int, nan: int) -> Items:
    """Scales at the ends of their range; in half of the rows all are the same.

    In the last `nan` rows they are often NaN.
    """
    rng = np.random.default_rng(len(fmt.blocked))
    items: Items = {}
    for name, level in zip(scale_names(fmt), fmt.blocked[::-1], strict=True):
        groups = block // int(level.group)
        shape = (count,) if groups == 1 else (count, groups)
        ends = _scale_ends(level.scale)
        alike = rng.random((count, *[1] * (len(shape) - 1))) < 0.5
        codes = np.where(alike, rng.choice(ends, alike.shape), rng.choice(ends, shape))
        if level.scale.nan_code is not None and nan:
            which = rng.random((nan, *shape[1:])) < 0.5 / groups
            codes[-nan:] = np.where(which, level.scale.nan_code, codes[-nan:])
        items[name] = codes
    return items


def _scale_ends(scale: Scale) -> list[int]:
    low = int(isinstance(scale, Integer))
    middle = [scale.bias] if isinstance(scale, Exponent) else []
    if isinstance(scale, Real):
        normal = scale.dtype.smallest_normal
        middle = [1, normal, max(0, normal - 1)]
    ends = [low, *middle, scale.largest_code, scale.largest_code - (scale.largest_code > 1)]
    if isinstance(scale, Real) and scale.selector:
        ends += [code | 1 << (scale.bits - 1) for code in ends]
    return ends


def block_dot_random(parameters: Parameters, rng: Generator, count: int) -> Items:
    """Random blocks of both operands."""
    shape = shape_of(parameters)
    return {
        f"{side}.{name}": array
        for side, fmt in zip("ab", shape.formats, strict=True)
        for name, array in random_blocks(rng, fmt, shape.block, count).items()
    }


BLOCK_DOT = Unit(
    name="block_dot",
    summary="two dense blocks become their exact dot product and its exponent",
    component=BlockDot,
    values=lambda formats: {"block": block_choices(formats), "view": VIEWS},
    golden=block_dot_items,
    corners=block_dot_corners,
    random=block_dot_random,
)
