"""Spaces of encoders under real and integer scales: input patterns, and scales of all kinds."""

from collections.abc import Sequence
from functools import cache

import numpy as np
from numpy.typing import NDArray

from axs6.golden.formats import BF16, FP32, ROW_FORMATS, BlockFormat, Float, Real
from axs6.golden.rounding import Rounding
from axs6.hw.core.layouts import outer_names, scale_names
from axs6.hw.encoder.encoder import encoded
from axs6.hw.registry import find
from axs6.sim.exhaustive.encoder_spaces import Enumerated, lay_out
from axs6.sim.exhaustive.space import Items, Space

SCALED = [
    name
    for name, fmt in ROW_FORMATS.items()
    if fmt.exponent is None and encoded(fmt) and all(x.scale.bits <= 8 for x in fmt.blocked)
]
"""Formats that have names, such encoders, and so few scales of blocks that all are enumerated."""

MAXIMA_OF = ("nvfp4", "vsq8")
"""Formats with every maximum under outer scales of all sizes: a float scale, and an integer."""

FRACTION = 0x2AAAAB
"""Fraction of outer scales: that of 4/3, rounded."""

FEW_OUTER = (0x3F800000, 0x3EAAAAAB, 0x00D5A1F3)
"""Outer scales under which every scale of a block is enumerated: 1, about 1/3, and 2e-38."""


def outer_scales() -> list[int]:
    """An FP32 pattern in each binade, the subnormal numbers as one, then a power of two."""
    fields = range(FP32.exponent_special)
    return [*(field << FP32.fraction_bits | FRACTION for field in fields), FEW_OUTER[0]]


def scaled_spaces() -> list[Space]:
    """The spaces of all formats that have names, from bf16, to nearest even."""
    patterns = [scaled_space(name, BF16) for name in SCALED]
    return patterns + [maxima_space(name, BF16) for name in MAXIMA_OF]


def scaled_space(format: str, dtype: Float) -> Space:
    """Every pattern of a narrow dtype: under every scale of a block, or outer ones of all sizes."""
    encoder = Enumerated(dtype, Rounding.NEAREST, format=format)
    fmt = ROW_FORMATS[format]
    if fmt.blocked:
        scales = FEW_OUTER if fmt.outer else FEW_OUTER[:1]
        given = [(outer, x) for outer in scales for x in first_maxima(encoder, outer)]
        what = "scales of a block"
    else:
        given, what = [(outer, 0) for outer in outer_scales()], "outer scales"
    block = encoder.parameters["block"]
    patterns = np.arange(1 << dtype.width, dtype=f"u{dtype.width // 8}")
    runs = patterns.reshape(-1, 1 << dtype.fraction_bits)

    def inputs(chunk: int) -> Items:
        outer, maximum = given[chunk]
        values = lay_out(runs, maximum, block, chunk % block)
        return {**_outer(fmt, outer, len(values)), "values": values}

    return Space(
        name=f"{encoder.name}-patterns",
        formula=f"2^{dtype.width} patterns x {len(given)} {what}",
        cases=len(given) << dtype.width,
        chunks=len(given),
        design=encoder.design,
        inputs=inputs,
        references=encoder.references,
    )


def maxima_space(format: str, dtype: Float) -> Space:
    """Every magnitude as the maximum of a block of zeros, under outer scales of all sizes."""
    encoder = Enumerated(dtype, Rounding.NEAREST, format=format, block=8)
    scales = outer_scales()

    def inputs(chunk: int) -> Items:
        return alone(encoder, scales[chunk], chunk)

    count = 1 << dtype.width - 1
    return Space(
        name=f"{encoder.name}-scales",
        formula=f"2^{dtype.width - 1} maxima x {len(scales)} outer scales",
        cases=count * len(scales),
        chunks=len(scales),
        design=encoder.design,
        inputs=inputs,
        references=encoder.references,
    )


def alone(encoder: Enumerated, outer: int, lane: int = 0) -> Items:
    """Every magnitude in a lane of a block of zeros, under one outer scale if there are any."""
    dtype, block = encoder.float_format, encoder.parameters["block"]
    count = 1 << dtype.width - 1
    values = np.zeros((count, block), f"u{dtype.width // 8}")
    values[:, lane % block] = np.arange(count)
    return {**_outer(ROW_FORMATS[encoder.format], outer, count), "values": values}


def _outer(fmt: BlockFormat, pattern: int, count: int) -> Items:
    """The field of an outer scale, the same for all items."""
    return {name: np.full(count, pattern, np.uint32) for name in outer_names(fmt)}


@cache
def first_maxima(encoder: Enumerated, outer: int) -> Sequence[int]:
    """The first maximum of each scale that a block may have under an outer one."""
    items, fmt = alone(encoder, outer), ROW_FORMATS[encoder.format]
    name, *_ = scale_names(fmt)
    codes: NDArray[np.integer] = find("encoder").golden(items, encoder.parameters)[f"block.{name}"]
    scale = fmt.blocked[-1].scale
    numbers = scale.number(codes) if isinstance(scale, Real) else codes
    _, first = np.unique(numbers, return_index=True)
    return sorted(first.tolist())
