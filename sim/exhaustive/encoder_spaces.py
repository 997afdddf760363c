"""Spaces of the encoder: input patterns against the maxima that their block may have.

The maximum of a block decides the exponent, and through it how far every lane shifts. Each block
holds a maximum in one lane, a different one in each chunk, and successive patterns in the others.
Patterns of one block have the same exponent field, so those above the maximum are their own.
"""

from collections.abc import Sequence

import numpy as np
from numpy.typing import NDArray

from axs6.golden.spec import FP32, INPUT_FORMATS, FloatFormat, Rounding
from axs6.hw.registry import UNITS
from axs6.sim.exhaustive.space import Design, Items, Space

BLOCK_OF_FORMAT = {"fp32": 32, "bf16": 16, "fp16": 8}
"""Block size in which each format is enumerated; a lane is the same hardware in all of them."""

CHUNK_PATTERNS = 1 << 22
GAPS = 32

HIGHEST_FIELD = FP32.exponent_special - 1
FARTHEST_FIELD = 6
"""From the exponent field above this one, every subnormal is rounded to zero."""


def encoder_spaces(rounding: Rounding) -> list[Space]:
    """The spaces of all three formats with one rounding."""
    wide = _design(FP32, rounding)
    fields = (HIGHEST_FIELD - GAPS + 1, HIGHEST_FIELD + 1)
    signs = (0, FP32.sign_bit)
    gaps = [sign + start for sign in signs for start in _starts(*(_power(f) for f in fields))]
    subnormal = [sign + start for sign in signs for start in _starts(0, _power(1))]
    near = [0, _power(1) >> 1, *(_power(field) for field in range(1, FARTHEST_FIELD + 1))]
    fp32 = [
        ("gaps", "2^23 significands x 32 exponent gaps x 2 signs", gaps, [_power(HIGHEST_FIELD)]),
        ("subnormals", f"2^24 patterns x {len(near)} maxima", subnormal, near),
        ("patterns", "2^32 patterns x 1 maximum", _starts(0, 1 << 32), [_power(1)]),
    ]
    spaces = [
        _space(name, formula, FP32, rounding, wide, starts, CHUNK_PATTERNS, maxima)
        for name, formula, starts, maxima in fp32
    ]
    for name in ("bf16", "fp16"):
        fmt = INPUT_FORMATS[name]
        maxima = maximum_classes(fmt)
        formula = f"2^16 patterns x {len(maxima)} maxima"
        design = _design(fmt, rounding)
        spaces.append(
            _space("patterns", formula, fmt, rounding, design, [0], 1 << fmt.width, maxima)
        )
    return spaces


def maximum_classes(fmt: FloatFormat) -> list[int]:
    """A pattern of each class that a block's maximum can have.

    Those are zero, each leading bit of a subnormal, each exponent field, infinity and NaN: the
    shared exponent depends on nothing else.
    """
    subnormal = [1 << bit for bit in range(fmt.fraction_bits)]
    normal = [field << fmt.fraction_bits for field in range(1, fmt.exponent_special)]
    return [0, *subnormal, *normal, fmt.infinity, fmt.quiet_nan]


def _power(field: int) -> int:
    """FP32 pattern of the power of two with this exponent field."""
    return field << FP32.fraction_bits


def _starts(first: int, end: int) -> list[int]:
    return list(range(first, end, CHUNK_PATTERNS))


def _design(fmt: FloatFormat, rounding: Rounding) -> Design:
    parameters = _parameters(fmt, rounding)
    return Design(f"encoder {fmt.name} {rounding}", lambda: UNITS["encoder"].build(**parameters))


def _parameters(fmt: FloatFormat, rounding: Rounding) -> dict[str, int | str]:
    block = BLOCK_OF_FORMAT[fmt.name]
    return {"block": block, "format": fmt.name, "rounding": str(rounding)}


def _space(
    name: str,
    formula: str,
    fmt: FloatFormat,
    rounding: Rounding,
    design: Design,
    starts: Sequence[int],
    count: int,
    maxima: Sequence[int],
) -> Space:
    """`count` patterns from each of `starts`, against each of `maxima`."""
    parameters = _parameters(fmt, rounding)
    block = BLOCK_OF_FORMAT[fmt.name]
    dtype = np.dtype(f"u{fmt.width // 8}")
    binade = min(count, 1 << fmt.fraction_bits)

    def inputs(chunk: int) -> Items:
        which, part = divmod(chunk, len(starts))
        patterns = starts[part] + np.arange(count, dtype=np.uint32)
        runs = patterns.astype(dtype).reshape(-1, binade)
        return {"values": lay_out(runs, maxima[which], block, chunk % block)}

    return Space(
        name=f"encoder-{fmt.name}-{rounding}-{name}",
        formula=formula,
        cases=count * len(starts) * len(maxima),
        chunks=len(starts) * len(maxima),
        design=design,
        inputs=inputs,
        references={"golden model": lambda items: UNITS["encoder"].golden(items, parameters)},
    )


def lay_out(
    runs: NDArray[np.unsignedinteger], maximum: int, block: int, lane: int
) -> NDArray[np.unsignedinteger]:
    """Blocks with `maximum` in one lane and patterns in the others.

    Args:
        runs: patterns of shape (n, length). No block holds patterns of two runs; the last block
            of a run is filled up with its last pattern.
        maximum: pattern in each block.
        block: values in a block.
        lane: where the maximum stands.

    Returns:
        Patterns of shape (blocks, block).
    """
    blocks = -(-runs.shape[1] // (block - 1))
    missing = blocks * (block - 1) - runs.shape[1]
    filling = np.repeat(runs[:, -1:], missing, axis=1)
    rows = np.concatenate([runs, filling], axis=1).reshape(-1, block - 1)
    values = np.empty((len(rows), block), runs.dtype)
    values[:, :lane] = rows[:, :lane]
    values[:, lane] = maximum
    values[:, lane + 1 :] = rows[:, lane:]
    return values
