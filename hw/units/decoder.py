"""Decoder and expander as units."""

from collections.abc import Iterator, Mapping, Sequence
from math import prod
from typing import Any

import numpy as np
from numpy.random import Generator
from numpy.typing import NDArray

from axs6.golden.blocks import Blocks
from axs6.golden.decode import decode
from axs6.golden.formats import AXS6, FP32, BlockFormat, Float, Level, Real, Scale
from axs6.golden.formats.catalog import AXS6_SCALE
from axs6.golden.formats.floating import OUTPUT_DTYPES
from axs6.golden.formats.modes import MODE_BLOCKS
from axs6.hw.core.layouts import (
    PADDING,
    UNUSED,
    ZERO_POINT,
    filled_layout,
    outer_names,
    scale_names,
)
from axs6.hw.core.layouts import fields as layout_fields
from axs6.hw.core.parameters import BLOCK_FORMS, VIEWS, block_format_of, blocks_of_format
from axs6.hw.decoder.decoder import Decoder
from axs6.hw.decoder.expander import Expander
from axs6.hw.units.blocks import (
    blocks_of,
    end_codes,
    expanded,
    is_nan,
    packed_items,
    random_blocks,
    random_outer,
    read_packed,
    scale_codes,
)
from axs6.hw.units.packed import packed_corners, packed_random
from axs6.hw.units.real_scales import (
    by_highest,
    near_midpoints,
    near_the_largest,
    sparse,
    subnormal,
)
from axs6.hw.units.unit import Choices, Fields, Items, Parameters, Unit


def expander_items(items: Fields, parameters: Parameters) -> Items:
    """Dense blocks; zeros where a block is an error."""
    blocks, error = expanded(items, "", parameters["block"])
    return {
        "exponent": blocks.exponents[:, 0],
        "codes": blocks.codes[:, 0],
        "error": error.view(np.uint8),
    }


def decoder_items(items: Fields, parameters: Parameters) -> Items:
    """Values; zeros where a block is an error."""
    fmt, _ = block_format_of(parameters.get("format", AXS6), parameters["block"])
    dtype = OUTPUT_DTYPES[parameters["dtype"]]
    if parameters["blocks"] == "dense":
        return {"values": decoded(_with_nan(items, fmt), fmt, dtype)}
    if fmt.has_modes:
        blocks, error = read_packed(items, "", parameters["block"])
        return {"values": _patterns(blocks, dtype), "error": error.view(np.uint8)}
    readable, error = read_filled(items, fmt)
    return {"values": decoded(readable, fmt, dtype), "error": error.view(np.uint8)}


def decoded(items: Fields, fmt: BlockFormat, dtype: Float) -> NDArray[Any]:
    """Patterns of the values of blocks with the scales of their channels and tensors."""
    codes = items["codes"]
    values = np.zeros(codes.shape, f"u{dtype.width // 8}")
    names = outer_names(fmt)
    tensors = items[names[0]] if len(names) > 1 else np.zeros(len(codes), np.uint8)
    for tensor in np.unique(tensors):
        rows = np.flatnonzero(tensors == tensor)
        blocks = blocks_of({name: array[rows] for name, array in items.items()}, fmt)
        values[rows] = _patterns(blocks, dtype)[:, : codes.shape[1]]
    return values


def _patterns(blocks: Blocks, dtype: Float) -> NDArray[Any]:
    kind = {"fp32": np.float32, "bf16": "bfloat16"}[dtype.name]
    return decode(blocks, kind).view(f"u{dtype.width // 8}")


def _with_nan(items: Fields, fmt: BlockFormat) -> Items:
    """Dense blocks with NaN in place of real scales that are no codes, if their format has it."""
    found = dict(items)
    for name, level in _levels(fmt).items():
        scale = level.scale
        if isinstance(scale, Real) and scale.nan_code is not None:
            found[name] = np.where(_is_no_code(scale, items[name]), scale.nan_code, items[name])
    return found


def _levels(fmt: BlockFormat) -> dict[str, Level]:
    """The level of each field with scales."""
    return dict(zip([*outer_names(fmt), *scale_names(fmt)], fmt.levels[::-1], strict=True))


def _is_no_code(scale: Scale, codes: NDArray[Any]) -> NDArray[np.bool_]:
    number = scale.number(codes) if isinstance(scale, Real) else codes
    return (number > scale.largest_code) & ~is_nan(scale, codes)


def read_filled(items: Fields, fmt: BlockFormat) -> tuple[Items, NDArray[np.bool_]]:
    """Packed blocks of a format without modes, zeros where one is an error, and which are errors.

    An error is a scale that is no valid code, or a 1 where a bit must be 0.
    """
    wrong = np.zeros(len(items["codes"]), bool)
    found = {}
    levels = _levels(fmt)
    for name, array in items.items():
        bad = array != 0
        if name in levels:
            bad = _is_no_code(levels[name].scale, array)
        elif name == ZERO_POINT:
            bad = array >= 1 << fmt.element.width
        elif name == "codes":
            bad = np.zeros_like(bad)
        wrong |= bad.reshape(len(wrong), -1).any(axis=1)
        if name not in (UNUSED, PADDING):
            found[name] = array
    return {
        name: np.where(wrong.reshape(-1, *[1] * (array.ndim - 1)), 0, array)
        for name, array in found.items()
    }, wrong


def _expander_corners(parameters: Parameters) -> Items:
    return packed_items(packed_corners(parameters["block"]))


def _expander_random(parameters: Parameters, rng: Generator, count: int) -> Items:
    exponents = rng.integers(0, AXS6_SCALE.largest_code + 1, count)
    return packed_items(packed_random(rng, exponents, parameters["block"]))


CORNERS = 1 << 13
"""Corner cases of a decoder, about: more scales of the widest levels are only sampled."""

ENDS = 1 << 11
"""Those with the ends of elements in all lanes."""


def _decoder_corners(parameters: Parameters) -> Items:
    """Every code with every scale, wide scales sampled; and every kind of error."""
    fmt, block = block_format_of(parameters.get("format", AXS6), parameters["block"])
    packed = parameters["blocks"] == "packed"
    if packed and fmt.has_modes:
        return _expander_corners(parameters)
    items = every_code(fmt, block, CORNERS)
    # With the first exponents, those of subnormal results.
    scales = {
        name: np.r_[codes[:10], codes[-2:]] for name, codes in sampled_scales(fmt, 256).items()
    }
    while prod(map(len, scales.values())) > 16:
        name = max(scales, key=lambda each: len(scales[each]))
        scales[name] = scales[name][::2]
    rows = _in_every_lane(fmt, block)
    ends = np.repeat(end_codes(fmt)[:, None], block, axis=1)
    parts = [items, under_scales(rows, fmt, scales)]
    parts.append(under_scales(ends, fmt, sampled_scales(fmt, ENDS // len(ends))))
    levels = _levels(fmt)
    wide = [name for name, level in levels.items() if _is_wide_real(level.scale)]
    if wide:
        few = {name: codes[:: -(-len(codes) // 3)] for name, codes in scales.items()}
        some = rows[:: max(1, len(rows) // 32)]
        leading = {wide[0]: _leading(levels[wide[0]].scale)}
        parts.append(under_scales(some, fmt, few | leading))
        parts += _under_real_scales(fmt, block, OUTPUT_DTYPES[parameters["dtype"]], wide[-1])
    items = {name: np.concatenate([each[name] for each in parts]) for name in items}
    return _with_faults(items, fmt, parameters) if packed else items


def _is_wide_real(scale: Scale) -> bool:
    """Whether a scale is a real number of too many bits to take all its codes."""
    return isinstance(scale, Real) and scale.bits > 8


def _leading(scale: Scale) -> NDArray[np.int64]:
    """Codes of a real scale: as of `scale_codes`, and each leading bit with others below."""
    assert isinstance(scale, Real)
    rng = np.random.default_rng(11)
    bits = 1 << np.arange(scale.dtype.fraction_bits + 1)
    leading = [bits, 2 * bits - 1, bits | rng.integers(0, bits), bits | rng.integers(0, bits)]
    return np.unique(np.concatenate([*leading, scale_codes(scale, rng)]))


UNDER_REAL = 1 << 12
"""Corner cases of a decoder under real scales, of each kind."""


def _under_real_scales(fmt: BlockFormat, block: int, dtype: Float, name: str) -> Iterator[Items]:
    """Blocks under chosen scales of one level, the finest of wide real numbers."""
    rng, count = np.random.default_rng(12), UNDER_REAL
    level = _levels(fmt)[name].scale
    assert isinstance(level, Real)
    scale = level.dtype

    def blocks() -> Items:
        return {**random_outer(rng, fmt, count), **random_blocks(rng, fmt, block, count)}

    def under(items: Fields, codes: NDArray[np.int64]) -> Items:
        """Items with the same scale in all groups of a block."""
        shape = items[name].shape
        return {**items, name: np.broadcast_to(codes.reshape(-1, *[1] * (len(shape) - 1)), shape)}

    one = np.full(count, scale.bias << scale.fraction_bits)
    yield under(blocks(), sparse(rng, scale, count))
    yield under(blocks(), subnormal(rng, scale, count))
    items = under(blocks(), one)
    if scale == FP32:
        values = _magnitudes(decoded(items, fmt, FP32))
        yield under(items, near_the_largest(rng, dtype, values))
        yield under(items, near_midpoints(rng, dtype, _one_of_each(rng, values)))
    for inner, each in zip(scale_names(fmt), fmt.blocked[::-1], strict=True):
        items[inner] = by_highest(rng, each.scale.bits - 1, items[inner].shape)
    width, shape = fmt.element.width, items["codes"].shape
    signs = rng.choice([0, 1 << width - 1, (1 << width) - 1], shape)
    items["codes"] = by_highest(rng, width - 1, shape) ^ signs
    yield under(items, subnormal(rng, scale, count))
    for field in ("codes", *scale_names(fmt)):  # so that all lanes have the same product
        array = items[field]
        items[field] = array if array.ndim < 2 else np.broadcast_to(array[:, :1], array.shape)
    ones = under(items, one)
    for _ in range(2 if scale == FP32 else 0):
        some = _one_of_each(rng, _magnitudes(decoded(ones, fmt, FP32)))
        yield under(items, near_midpoints(rng, dtype, some))


def _magnitudes(patterns: NDArray[Any]) -> NDArray[np.float32]:
    """Magnitudes of FP32 patterns; 1 for 0 and for no number."""
    values = np.abs(patterns.astype(np.uint32).view(np.float32))
    return np.where(np.isfinite(values) & (values > 0), values, np.float32(1))


def _one_of_each(rng: Generator, values: NDArray[np.float32]) -> NDArray[np.float32]:
    """A random value of each row."""
    return values[np.arange(len(values)), rng.integers(values.shape[1], size=len(values))]


def _in_every_lane(fmt: BlockFormat, block: int) -> NDArray[np.int64]:
    """Rows with every code in every lane."""
    codes = np.arange(1 << fmt.element.width)
    return np.stack([np.roll(codes, 5 * lane) for lane in range(block)], axis=1)


def every_code(fmt: BlockFormat, block: int, most: int) -> Items:
    """Items with every code in some lane under every scale; wide scales are sampled.

    Args:
        fmt: the block format.
        block: its lanes.
        most: approximate number of items; for fewer, scales are sampled more thinly.
    """
    codes = np.resize(np.arange(1 << fmt.element.width), max(block, 1 << fmt.element.width))
    rows = codes.reshape(-1, block)
    return under_scales(rows, fmt, sampled_scales(fmt, most // len(rows)))


def sampled_scales(fmt: BlockFormat, most: int) -> dict[str, NDArray[np.int64]]:
    """Codes of each scale field: all codes of scales of up to 8 bits.

    Where there would be more than `most` combinations, fewer: wide scales are thinned out to 8
    codes first, then the scales with the most codes. The first and the last code stay.
    """
    rng = np.random.default_rng(4)
    scales = {
        name: scale_codes(level.scale, rng)
        for name, level in zip(
            [*outer_names(fmt), *scale_names(fmt)], fmt.levels[::-1], strict=True
        )
    }
    wide = {
        name for name, level in zip(scales, fmt.levels[::-1], strict=True) if level.scale.bits > 8
    }
    if not fmt.element.signed:
        scales[ZERO_POINT] = np.arange(1 << fmt.element.width)
    while prod(map(len, scales.values())) > most:
        some = [name for name in wide if len(scales[name]) > 8] or list(scales)
        name = max(some, key=lambda each: len(scales[each]))
        first, *middle, last = scales[name]
        fewer = rng.choice(middle, len(middle) * 7 // 8, replace=False)
        scales[name] = np.array([first, *np.sort(fewer), last])
    return scales


def under_scales(
    codes: NDArray[np.int64], fmt: BlockFormat, scales: Mapping[str, NDArray[np.int64]]
) -> Items:
    """Rows of codes (n, B) under each combination of scales, all groups of a block under equal."""
    counts = dict.fromkeys(outer_names(fmt), 1) | {ZERO_POINT: 1}
    counts |= {
        name: codes.shape[1] // int(level.group)
        for name, level in zip(scale_names(fmt), fmt.blocked[::-1], strict=True)
    }
    pairs = np.meshgrid(*scales.values(), indexing="ij")
    items: Items = {}
    for name, given in zip(scales, pairs, strict=True):
        each = np.repeat(given.ravel(), len(codes))
        items[name] = each if counts[name] == 1 else np.repeat(each[:, None], counts[name], axis=1)
    return {**items, "codes": np.tile(codes, (pairs[0].size, 1))}


def _with_faults(items: Items, fmt: BlockFormat, parameters: Parameters) -> Items:
    """Packed blocks, and as many again of which some are wrong."""
    rng = np.random.default_rng(5)
    right = filled(items, fmt, parameters)
    wrong = filled(items, fmt, parameters, rng, 0.25)
    return {name: np.concatenate([array, wrong[name]]) for name, array in right.items()}


def filled(
    items: Fields,
    fmt: BlockFormat,
    parameters: Parameters,
    rng: Generator | None = None,
    share: float = 0.0,
) -> Items:
    """Blocks as fields of `filled_layout`.

    Args:
        items: fields of the blocks; other ones of the layout are zeros.
        fmt: their format.
        parameters: of the unit: `block`, and `align` if it is on a bus.
        rng: generator of faults.
        share: of the items that have a bit inverted in each field but the codes.
    """
    layout = filled_layout(parameters["block"], fmt, parameters.get("align", 1))
    found: Items = {}
    for field in layout_fields(layout):
        shape = (len(items["codes"]), *field.shape)
        array = np.asarray(items.get(field.name, np.zeros(shape, np.int64))).astype(np.int64)
        if rng is not None and field.name != "codes":
            here = rng.random(shape) < share / max(1, field.count)
            array = array ^ np.where(here, 1 << rng.integers(0, field.width, shape), 0)
        found[field.name] = array
    return found


def _decoder_random(parameters: Parameters, rng: Generator, count: int) -> Items:
    fmt, block = block_format_of(parameters.get("format", AXS6), parameters["block"])
    packed = parameters["blocks"] == "packed"
    if packed and fmt.has_modes:
        return _expander_random(parameters, rng, count)
    half = -(-count // 2) if packed else count
    items = {**random_outer(rng, fmt, half), **random_blocks(rng, fmt, block, half)}
    if not packed:
        return items
    return {name: array[:count] for name, array in _with_faults(items, fmt, parameters).items()}


def decoder_choices(formats: Sequence[BlockFormat]) -> Choices:
    """Choices of a decoder."""
    return {
        "block": blocks_of_format(formats[0]),
        "dtype": tuple(OUTPUT_DTYPES),
        "blocks": BLOCK_FORMS,
        "view": VIEWS,
    }


DECODER = Unit(
    name="decoder",
    summary="a block becomes floating-point values",
    component=Decoder,
    values=decoder_choices,
    golden=decoder_items,
    corners=_decoder_corners,
    random=_decoder_random,
    operation="value",
)

EXPANDER = Unit(
    name="expander",
    summary="a packed block, dense or sparse, becomes a dense one",
    component=Expander,
    values=lambda formats: {"block": MODE_BLOCKS},
    golden=expander_items,
    corners=_expander_corners,
    random=_expander_random,
    operation="value",
)
