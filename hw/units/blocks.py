"""Blocks as items of streams: dense blocks as scales and codes, packed blocks as bytes."""

from dataclasses import replace
from typing import Any

import numpy as np
from numpy.random import Generator
from numpy.typing import NDArray

from axs6.golden.blocks import Blocks, scale_shape
from axs6.golden.formats import (
    AXS6,
    CHANNEL,
    TENSOR,
    BlockFormat,
    Exponent,
    Integer,
    Level,
    Mode,
    Real,
    Scale,
)
from axs6.golden.formats.catalog import AXS6_SCALE
from axs6.golden.pack import HEADER_BYTES, MODE_MASK
from axs6.golden.rows import read_rows, write_rows
from axs6.golden.scaling import code_dtype
from axs6.hw.core.layouts import ZERO_POINT, outer_names, scale_names
from axs6.hw.units.unit import Fields, Items


def dense_blocks(exponents: NDArray[Any], codes: NDArray[Any]) -> Blocks:
    """AXS-6 blocks of exponents (n,) and codes (n, B)."""
    return blocks_of({"exponent": exponents, "codes": codes}, AXS6.with_block(codes.shape[1]))


def blocks_of(items: Fields, fmt: BlockFormat, prefix: str = "") -> Blocks:
    """Dense blocks from the fields of `axs6.hw.core.layouts.block_layout`, a row for each item.

    Scales of channels and tensors are 1 where `items` have no field for them. With one, that of the
    tensor is a number for each item, as those of channels are; with two it is that of the first
    item. Lanes of a format without blocks are filled up with zeros to whole ones.
    """
    given = items[f"{prefix}codes"].astype(np.uint8)
    count, lanes = given.shape
    blocks = -(-lanes // fmt.block)
    fill = ((0, 0), (0, blocks * fmt.block - lanes))
    codes = np.pad(given, fill, constant_values=fmt.element.zero_code)
    if len(fmt.outer) == 1 and f"{prefix}{outer_names(fmt)[0]}" in items:
        fmt = replace(fmt, levels=(*fmt.blocked, Level(fmt.outer[0].scale, CHANNEL)))
    names = [f"{prefix}{name}" for name in (*outer_names(fmt), *scale_names(fmt))]
    scales = []
    for name, level in zip(names, fmt.levels[::-1], strict=True):
        shape = scale_shape(level, (count,), blocks, fmt.block)
        array = items[name] if name in items else np.full(shape, _one(level))
        some = array[:1] if level.group == TENSOR and array.ndim else array
        scales.append(some.astype(code_dtype(level.scale.bits)).reshape(shape))
    rows = codes.reshape(count, blocks, fmt.block)
    zero = None
    if not fmt.element.signed:
        zero = items[f"{prefix}{ZERO_POINT}"].astype(np.uint8).reshape(scales[0].shape)
    return Blocks(fmt, tuple(scales), rows, codes.shape, zero_points=zero)


def _one(level: Level) -> int:
    """The code of a scale of 1."""
    if isinstance(level.scale, Exponent):
        return level.scale.bias
    assert isinstance(level.scale, Real)
    return level.scale.dtype.bias << level.scale.dtype.fraction_bits


def random_blocks(rng: Generator, fmt: BlockFormat, block: int, count: int) -> Items:
    """Random blocks as fields. Many codes are at the ends of their range; some scales are NaN."""
    items: Items = {}
    for name, level in zip(scale_names(fmt), fmt.blocked[::-1], strict=True):
        scale, groups = level.scale, block // int(level.group)
        shape = (count,) if groups == 1 else (count, groups)
        codes = rng.integers(isinstance(scale, Integer), scale.largest_code, shape, endpoint=True)
        if scale.nan_code is not None:
            codes = np.where(rng.random(shape) < 0.02, scale.nan_code, codes)
        if isinstance(scale, Real) and scale.selector:
            codes = codes | rng.integers(0, 2, shape) << (scale.bits - 1)
        items[name] = codes
    return {**items, "codes": random_codes(rng, (count, block), fmt)}


def random_outer(rng: Generator, fmt: BlockFormat, count: int) -> Items:
    """Random scales of channels and tensors, and zero points. Few tensor scales differ."""
    items: Items = {}
    for name, level in zip(outer_names(fmt), fmt.outer[::-1], strict=True):
        some = rng.choice(scale_codes(level.scale, rng), min(count, 16))
        size = len(some) if len(fmt.outer) > 1 and level.group == TENSOR else count
        random = rng.integers(0, level.scale.largest_code, size, endpoint=True)
        often = rng.random(size) < 0.8
        codes = np.where(often, random, rng.choice(some, size))
        items[name] = np.resize(codes, count)
    if not fmt.element.signed:
        items[ZERO_POINT] = rng.integers(0, 1 << fmt.element.width, count)
    return items


def scale_codes(scale: Scale, rng: Generator) -> NDArray[np.int64]:
    """All codes of a scale of up to 8 bits, NaN included; of a wider one its ends and a sample."""
    nan = [] if scale.nan_code is None else [scale.nan_code]
    largest = scale.largest_code
    if scale.bits <= 8:
        found = np.array([*range(largest + 1), *nan])
        if isinstance(scale, Real) and scale.selector:
            found = np.concatenate([found, found | 1 << (scale.bits - 1)])
        return found
    if isinstance(scale, Real):
        bits = scale.dtype.fraction_bits
        low = np.arange((largest >> bits) + 1) << bits
    else:
        low, bits = 1 << np.arange(scale.bits), scale.bits - 1
    random = low + rng.integers(0, np.minimum(low, 1 << bits), endpoint=True)
    ends = [0, 1, 2, 3, (1 << bits) - 1, 1 << bits, largest - 1, largest]
    return np.unique(np.array([*ends, *np.minimum(random, largest), *nan]))


def block_items(blocks: Blocks, mode: str) -> Items:
    """The fields of an encoder's blocks in a mode, of arrays (n, B); without outer scales."""
    if mode != Mode.DENSE.label:
        return packed_items(write_rows(blocks), "block.")
    fmt = blocks.format
    scales = blocks.scales[len(fmt.outer) :]
    found = {
        f"block.{name}": codes[:, 0] for name, codes in zip(scale_names(fmt), scales, strict=True)
    }
    codes = blocks.codes.reshape(len(blocks.codes), -1)[:, : blocks.shape[-1]]
    return {**found, "block.codes": codes}


def packed_items(rows: NDArray[np.uint8], prefix: str = "") -> Items:
    """The fields of a `packed_layout` for packed blocks in rows of bytes."""
    header = rows[:, :HEADER_BYTES].copy().view("<u2")[:, 0]
    return {
        f"{prefix}mode": header & MODE_MASK,
        f"{prefix}exponent": header >> AXS6.mode_bits & AXS6_SCALE.largest_code,
        f"{prefix}reserved": header >> AXS6.mode_bits + AXS6_SCALE.bits,
        f"{prefix}payload": rows[:, HEADER_BYTES:],
    }


def read_packed(items: Fields, prefix: str, block: int) -> tuple[Blocks, NDArray[np.bool_]]:
    """Blocks of any mode, and which could not be read."""
    mode, exponent, reserved = (
        items[f"{prefix}{name}"].astype(np.uint16) for name in ("mode", "exponent", "reserved")
    )
    header = mode | exponent << AXS6.mode_bits | reserved << AXS6.mode_bits + AXS6_SCALE.bits
    payload = items[f"{prefix}payload"].astype(np.uint8)
    header_bytes = header.astype("<u2").view(np.uint8).reshape(-1, HEADER_BYTES)
    return read_rows(np.concatenate([header_bytes, payload], axis=1), AXS6.with_block(block))


def expanded(items: Fields, prefix: str, block: int) -> tuple[Blocks, NDArray[np.bool_]]:
    """Blocks as dense blocks, and which are errors: those that cannot be read or expanded."""
    blocks, error = read_packed(items, prefix, block)
    precise = blocks.modes[:, 0] == Mode.HIGH_PRECISION
    exponents = np.where(precise, 0, blocks.exponents[:, 0])
    codes = np.where(precise[:, None], np.uint8(0), blocks.codes[:, 0])
    return dense_blocks(exponents, codes), error | precise


def random_codes(
    rng: Generator, shape: tuple[int, ...], fmt: BlockFormat = AXS6
) -> NDArray[np.int64]:
    """Random codes; some codes, and some whole rows, are at the ends of the range.

    NaN and infinities are rare, so that most rows have none.
    """
    element = fmt.element
    codes = rng.integers(0, 1 << element.width, shape)
    extreme = rng.choice(end_codes(fmt), shape)
    often = rng.random((*shape[:-1], 1)) ** 8
    codes = np.where(rng.random(shape) < often, extreme, codes)
    special = special_codes(fmt)
    if special.size:
        rare = rng.random(shape) < 0.002
        codes = np.where(np.isin(codes, special), 0, codes)
        codes = np.where(rare, rng.choice(special, shape), codes)
    return codes


def special_codes(fmt: BlockFormat) -> NDArray[np.int64]:
    """The codes of NaN and of infinities."""
    element = fmt.element
    found = np.zeros(1 << element.width, bool)
    if element.has_nan:
        found |= element.nan_codes
    if element.has_infinity:
        found |= element.infinite_codes != 0
    return np.flatnonzero(found)


def number_codes(fmt: BlockFormat) -> NDArray[np.int64]:
    """The codes of numbers: all but those of NaN and of infinities."""
    return np.setdiff1d(np.arange(1 << fmt.element.width), special_codes(fmt))


def is_nan(scale: Scale, codes: NDArray[Any]) -> NDArray[np.bool_]:
    """Which codes of a scale are NaN, whatever they select."""
    if scale.nan_code is None:
        return np.zeros(np.shape(codes), bool)
    number = scale.number(codes) if isinstance(scale, Real) else codes
    return np.asarray(number == scale.nan_code)


def end_codes(fmt: BlockFormat) -> NDArray[np.int64]:
    """Codes of zeros, of the largest finite elements and of the smallest ones, of both signs."""
    element = fmt.element
    finite = number_codes(fmt)
    values = element.integers[finite]
    least = [side[side > 0].min(initial=values.max()) for side in (values, -values)]
    return finite[np.isin(np.abs(values), (0, *least, values.max(), -values.min()))]
