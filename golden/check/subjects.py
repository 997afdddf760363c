"""Block formats to validate, as the model and as the exact model have them, and their blocks."""

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import NDArray

from axs6.golden.blocks import Blocks
from axs6.golden.check.exact import formats as definitions
from axs6.golden.check.exact.blocks import Block
from axs6.golden.check.exact.floats import power
from axs6.golden.check.exact.formats import Definition
from axs6.golden.formats import (
    BlockFormat,
    Element,
    Exponent,
    Float,
    Integer,
    Level,
    Shift,
    SignMagnitude,
    TwosComplement,
    Unsigned,
    ValueTable,
    block_format,
)


@dataclass(frozen=True)
class CheckedFormat:
    """A format to check.

    Args:
        name: what users call it.
        fmt: as the model has it.
        definition: as the exact model has it.
    """

    name: str
    fmt: BlockFormat
    definition: Definition

    @classmethod
    def of(cls, name: str) -> "CheckedFormat":
        """The format of a name or string; those of the catalog are defined by the exact model."""
        fmt = block_format(name)
        known = definitions.CATALOG.get(name)
        return cls(name, fmt, known or definition_of(fmt))


def definition_of(fmt: BlockFormat) -> Definition:
    """A format in plain numbers, for the exact model."""
    levels = tuple(_level(level) for level in fmt.levels)
    first, *others = [_element(x.element) for x in fmt.parts]
    second = others[0] if others else None
    return Definition(first, levels, fmt.has_modes, str(fmt.choice), fmt.rows, second)


def _element(element: Element) -> definitions.Element:
    if isinstance(element, Float):
        return definitions.floating(*_fields(element))
    if isinstance(element, SignMagnitude):
        unit = power(element.unit_exponent)
        if element.full_scale:
            unit /= 2**element.magnitude_bits - 1
        return definitions.sign_magnitude(
            element.magnitude_bits, unit, element.signed_zero, element.ties_away
        )
    if isinstance(element, TwosComplement):
        unit = power(element.unit_exponent)
        return definitions.twos_complement(element.bits, unit, element.ties_away)
    if isinstance(element, ValueTable):
        unit = power(element.unit_exponent) / element.over
        return definitions.listed([None if x is None else x * unit for x in element.counts])
    assert isinstance(element, Unsigned)
    return definitions.unsigned(element.bits)


def _fields(dtype: Float) -> tuple[int, int, str, int | None]:
    return dtype.exponent_bits, dtype.fraction_bits, str(dtype.specials), dtype.exponent_bias


def _level(level: Level) -> definitions.Level:
    scale = level.scale
    if isinstance(scale, Exponent):
        return definitions.Exponent(level.group, scale.bits, str(scale.rule), scale.nan)
    if isinstance(scale, Shift):
        return definitions.Shift(level.group, scale.bits)
    if isinstance(scale, Integer):
        return definitions.Integer(level.group, scale.bits)
    dtype = scale.dtype
    fields = (*_fields(dtype), scale.zero_point, dtype.signed, not dtype.subnormals)
    return definitions.Real(level.group, *fields, scale.arithmetic.name, scale.selector)


Plain = tuple[Any, ...]
"""Its scales, its codes, and its zero point if there is one."""


def plain(block: Block) -> Plain:
    """A block as it is compared."""
    return block[:2] if block.zero_point is None else tuple(block)


def as_rows(blocks: Blocks) -> list[list[Block]]:
    """Blocks of the model, (rows, n), as the exact model has them."""
    rows, count, _ = blocks.codes.shape

    def each(array: NDArray[Any], level: Level) -> list[list[tuple[int, ...]]]:
        if level.tiled:
            array = array[np.arange(rows) // level.rows]
        ends = array.reshape(array.shape + (1,) * (3 - array.ndim)) if array.ndim else array
        full = np.broadcast_to(ends, (rows, count, array.shape[-1] if array.ndim == 3 else 1))
        return [[tuple(x) for x in row] for row in full.tolist()]

    levels = blocks.format.levels
    scales = [each(array, level) for array, level in zip(blocks.scales, levels[::-1], strict=True)]
    zeros = None if blocks.zero_points is None else each(blocks.zero_points, levels[0])
    return [
        [
            Block(
                tuple(level[i][k] for level in scales),
                tuple(codes),
                zeros[i][k][0] if zeros else None,
            )
            for k, codes in enumerate(row)
        ]
        for i, row in enumerate(blocks.codes.tolist())
    ]


def as_blocks(blocks: Sequence[Block], fmt: BlockFormat) -> Blocks:
    """Blocks of the exact model as one row of the model's; what they share is the first one's."""
    scales = []
    for number, level in enumerate(fmt.levels[::-1]):
        codes = np.array([block.scales[number] for block in blocks])
        if isinstance(level.group, str):
            codes = codes[0, 0] if level.group == "tensor" else codes[:1, 0]
        elif codes.shape[1] == 1:
            codes = codes[None, :, 0]
        else:
            codes = codes[None]
        bits = level.scale.bits
        scales.append(np.asarray(codes, np.uint8 if bits <= 8 else f"u{2 if bits <= 16 else 4}"))
    count = len(blocks)
    zeros = blocks[0].zero_point
    return Blocks(
        fmt,
        tuple(scales),
        np.array([[block.codes for block in blocks]], np.uint8),
        (1, count * fmt.block),
        zero_points=None if zeros is None else np.full(scales[0].shape, zeros, np.uint8),
    )
