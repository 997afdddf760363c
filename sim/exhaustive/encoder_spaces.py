"""Spaces of the encoder: input patterns against the maxima that their block may have.

The maximum of a block decides the exponent, and through it how far every lane shifts. Each block
holds a maximum in one lane, a different one in each chunk, and successive patterns in the others.
Patterns of one block have the same exponent field, so those above the maximum are their own.
"""

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from functools import cache, cached_property
from typing import Any

import numpy as np
from numpy.typing import NDArray

from axs6.golden.encode import encode
from axs6.golden.formats import (
    AXS6,
    BF16,
    FP16,
    FP32,
    ROW_FORMATS,
    BlockFormat,
    Exponent,
    Float,
    Mode,
    Rule,
    Shift,
    block_format,
    name_of,
)
from axs6.golden.rounding import Rounding
from axs6.hw.core.parameters import STRUCTURE
from axs6.hw.encoder.modes import lane_codes
from axs6.hw.registry import find
from axs6.sim.exhaustive.space import Design, Items, Space, named

BLOCK_OF_DTYPE = {"fp32": 32, "bf16": 16, "fp16": 8}
"""Block size in which each dtype is enumerated; a lane is the same hardware in all of them."""

CHUNK_PATTERNS = 1 << 22
GAPS = 32

HIGHEST_FIELD = FP32.exponent_special - 1
WORD_BITS = 4
"""Bits of the random words of stochastic rounding: every one meets every pattern."""

NARROW = (BF16, FP16)

FARTHEST_FIELD = 6
"""From the exponent field above this one, every subnormal is rounded to zero."""


ENCODED = [
    name
    for name, fmt in ROW_FORMATS.items()
    if not fmt.has_modes and all(isinstance(x.scale, Exponent | Shift) for x in fmt.levels)
]
"""Formats that have names and encoders, beside AXS-6."""

RULES_OF = ("mxfp8_e4m3", "mxint8")
"""Formats with every rule of their scale: one whose subnormal blocks all have the code 0, and one
with blocks of subnormals that have not."""


def encoder_spaces(rounding: Rounding, view: str = STRUCTURE) -> list[Space]:
    """The spaces of all three formats with one rounding, in dense blocks."""
    wide = Enumerated(FP32, rounding, view=view)
    fields = (HIGHEST_FIELD - GAPS + 1, HIGHEST_FIELD + 1)
    signs = (0, FP32.sign_bit)
    gaps = [sign + start for sign in signs for start in _starts(*(_power(f) for f in fields))]
    subnormal = [sign + start for sign in signs for start in _starts(0, _power(1))]
    near = [0, _power(1) >> 1, *(_power(field) for field in range(1, FARTHEST_FIELD + 1))]
    return [
        *(
            _space(wide, Patterns(name, formula, starts, CHUNK_PATTERNS, maxima))
            for name, formula, starts, maxima in (
                (
                    "gaps",
                    "2^23 significands x 32 exponent gaps x 2 signs",
                    gaps,
                    [_power(HIGHEST_FIELD)],
                ),
                ("subnormals", f"2^24 patterns x {len(near)} maxima", subnormal, near),
                ("patterns", "2^32 patterns x 1 maximum", _starts(0, 1 << 32), [_power(1)]),
            )
        ),
        *(
            _space(Enumerated(float_format, rounding, view=view), _every_pattern(float_format))
            for float_format in NARROW
        ),
    ]


def high_precision_spaces(rounding: Rounding, view: str = STRUCTURE) -> list[Space]:
    """The spaces of the narrow formats in high-precision blocks, in lanes of both kinds."""
    return [
        _space(
            Enumerated(float_format, rounding, Mode.HIGH_PRECISION, view),
            _every_pattern(float_format),
        )
        for float_format in NARROW
    ]


def stochastic_spaces(view: str = STRUCTURE) -> list[Space]:
    """The spaces of the narrow formats with every random word of four bits."""
    rounding = Rounding.STOCHASTIC
    return [
        _space(Enumerated(float_format, rounding, view=view), _every_pattern(float_format))
        for float_format in NARROW
    ]


def format_spaces() -> list[Space]:
    """The spaces of the formats beside AXS-6: every pattern of bf16, and every maximum of fp32."""
    patterns = [pattern_space(name, BF16) for name in ENCODED]
    return patterns + [scale_space(f"{name}-{rule}", FP32) for name in RULES_OF for rule in Rule]


def pattern_space(format: str, dtype: Float, rounding: Rounding = Rounding.NEAREST) -> Space:
    """Every pattern of a narrow dtype against every class of maximum, in any format.

    Args:
        format: of the blocks.
        dtype: of the values.
        rounding: how they are rounded.
    """
    encoder = Enumerated(dtype, rounding, format=format)
    return _space(encoder, _every_pattern(dtype, block_format(format)))


def scale_space(format: str, dtype: Float, block: int = 8) -> Space:
    """Every magnitude as the maximum of a block of zeros: the rule of the exponent, in any format.

    Args:
        format: of the blocks.
        dtype: of the values.
        block: values in a block.
    """
    encoder = Enumerated(dtype, Rounding.NEAREST, format=format, block=block)
    count = 1 << dtype.width - 1
    size = min(count, CHUNK_PATTERNS // block)

    def inputs(chunk: int) -> Items:
        values = np.zeros((size, block), f"u{dtype.width // 8}")
        values[:, chunk % block] = chunk * size + np.arange(size)
        return {"values": values}

    return Space(
        name=f"{encoder.name}-scales",
        formula=f"2^{dtype.width - 1} maxima",
        cases=count,
        chunks=count // size,
        design=encoder.design,
        inputs=inputs,
        references=encoder.references,
    )


@cache
def maximum_classes(float_format: Float, blocks: BlockFormat = AXS6) -> tuple[int, ...]:
    """A pattern of each class that a block's maximum can have.

    Those are zero, each leading bit of a subnormal, each exponent field, infinity and NaN; and each
    value from which a rule raises the exponent's code: the lanes depend on nothing else.
    """
    patterns = np.arange(float_format.infinity, dtype=f"u{float_format.width // 8}")
    binade = np.maximum(patterns >> float_format.fraction_bits << float_format.fraction_bits, 1)
    subnormal = patterns < 1 << float_format.fraction_bits
    _, leading = np.frexp(patterns.astype(np.float32))
    values = np.zeros((len(patterns), blocks.block), patterns.dtype)
    values[:, 0] = patterns
    dtype = {FP16: np.float16, BF16: np.uint16}[float_format]
    codes = encode(values.view(dtype), blocks, nonfinite="saturate").scales[0].ravel()
    classes = np.stack([np.where(subnormal, leading, binade), codes], axis=1)
    starts = np.flatnonzero((classes[1:] != classes[:-1]).any(axis=1)) + 1
    return (0, *starts.tolist(), float_format.infinity, float_format.quiet_nan)


def _power(field: int) -> int:
    """FP32 pattern of the power of two with this exponent field."""
    return field << FP32.fraction_bits


def _starts(first: int, end: int) -> list[int]:
    return list(range(first, end, CHUNK_PATTERNS))


@dataclass(frozen=True)
class Patterns:
    """`count` patterns from each of `starts`, against each of `maxima`."""

    name: str
    formula: str
    starts: Sequence[int]
    count: int
    maxima: Sequence[int]


def _every_pattern(float_format: Float, blocks: BlockFormat = AXS6) -> Patterns:
    maxima = maximum_classes(float_format, blocks)
    formula = f"2^16 patterns x {len(maxima)} maxima"
    return Patterns("patterns", formula, [0], 1 << float_format.width, maxima)


@dataclass(frozen=True)
class Enumerated:
    """An encoder that is enumerated."""

    float_format: Float
    rounding: Rounding
    mode: Mode = Mode.DENSE
    view: str = STRUCTURE
    format: str = name_of(AXS6)
    block: int | None = None

    @property
    def name(self) -> str:
        """Its name in those of spaces."""
        mode = "" if self.mode is Mode.DENSE else f"-{self.mode.label}"
        blocks = "" if self.format == name_of(AXS6) else f"{self.format}-"
        return f"encoder-{blocks}{self.float_format.name}-{self.rounding}{mode}"

    @property
    def parameters(self) -> dict[str, Any]:
        """The parameters of the unit."""
        given = {
            "dtype": self.float_format.name,
            "rounding": str(self.rounding),
            "mode": self.mode.label,
        }
        given |= {"view": self.view, "format": self.format}
        block = self.block or BLOCK_OF_DTYPE[self.float_format.name]
        random = {"random_bits": WORD_BITS} if self.rounding is Rounding.STOCHASTIC else {}
        return find("encoder").parameters({**given, **random, "block": block})

    @property
    def words(self) -> int:
        """How many random words each pattern meets."""
        return 1 << WORD_BITS if self.rounding is Rounding.STOCHASTIC else 1

    @cached_property
    def design(self) -> Design:
        """The unit."""
        return Design(self.name, lambda: find("encoder").build(**self.parameters))

    @property
    def references(self) -> Mapping[str, Callable[[Items], Items]]:
        """The reference for the hardware."""
        return {"golden model": lambda items: find("encoder").golden(items, self.parameters)}

    def items(self, runs: NDArray[Any], maximum: int, chunk: int, word: int) -> Items:
        """Blocks of patterns, in lanes of every kind, with one word in all lanes."""
        block = self.parameters["block"]
        kinds = len(lane_codes(self.mode))
        groups = block // kinds
        values = np.repeat(lay_out(runs, maximum, groups, chunk % groups), kinds, axis=1)
        if self.words == 1:
            return {"values": values}
        return {"values": values, "random": np.full(values.shape, word, np.uint8)}


def _space(encoder: Enumerated, patterns: Patterns) -> Space:
    starts, count, words = patterns.starts, patterns.count, encoder.words
    kinds = len(lane_codes(encoder.mode))
    dtype = np.dtype(f"u{encoder.float_format.width // 8}")
    binade = min(count, 1 << encoder.float_format.fraction_bits)

    def inputs(chunk: int) -> Items:
        rest, word = divmod(chunk, words)
        which, part = divmod(rest, len(starts))
        values = starts[part] + np.arange(count, dtype=np.uint32)
        runs = values.astype(dtype).reshape(-1, binade)
        return encoder.items(runs, patterns.maxima[which], chunk, word)

    chunks = len(starts) * len(patterns.maxima) * words
    more = (f" x {words} words" if words > 1 else "") + (f" x {kinds} lanes" if kinds > 1 else "")
    return Space(
        name=named(f"{encoder.name}-{patterns.name}", encoder.view),
        formula=patterns.formula + more,
        cases=count * chunks * kinds,
        chunks=chunks,
        design=encoder.design,
        inputs=inputs,
        references=encoder.references,
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
