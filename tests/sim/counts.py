"""How many cases each space of the enumeration has, from the public definitions of the formats.

Nothing here comes from the spaces: widths of sums, scales and maxima are found again, so that a
new format or accumulator has its counts from its entry in the exact model.
"""

from fractions import Fraction
from math import prod
from typing import Any

from axs6.golden.check.exact.accumulator import ACCUMULATORS, Accumulator
from axs6.golden.check.exact.formats import (
    CATALOG,
    Definition,
    Exponent,
    Integer,
    Level,
    Real,
    Shift,
    floating,
    real_element,
    real_range,
)
from axs6.golden.formats import Rule
from axs6.hw.fp32.divide import RECIPROCALS
from axs6.sim.exhaustive.encoder_spaces import RULES_OF
from axs6.sim.exhaustive.fp32_spaces import addition_corners
from axs6.sim.exhaustive.scaled_spaces import MAXIMA_OF

ALIGNED = CATALOG["mxfp4"]
"""The format whose sums are aligned."""

MAXIMA = 1 + 7 + 254 + 2
"""Classes of a bf16 maximum: zero, leading bits of subnormals, exponents, infinity and NaN."""

ROWS = {name: each for name, each in CATALOG.items() if each.rows == 1}
"""Formats of one row, which units have."""

OTHERS = {name: each for name, each in ROWS.items() if not each.header}
"""Formats of one row without modes."""


def signed(definition: Definition) -> bool:
    """Whether there are values below 0, and so encoders and dot products."""
    return any(isinstance(x, Fraction) and x < 0 for x in definition.element.values)


def multiplied(definition: Definition) -> bool:
    """Whether there are dot products: of tables, if 16 bits hold their integers."""
    return signed(definition) and (
        not definition.element.listed or definition.element.counts[-1] < 2**16
    )


def encoded(definition: Definition) -> bool:
    """Whether there is an encoder."""
    return signed(definition)


def in_blocks(definition: Definition) -> list[Level]:
    """Levels of scales inside blocks."""
    return [level for level in definition.levels if isinstance(level.group, int)]


def under_exponents(definition: Definition) -> bool:
    """Whether all scales are powers of two."""
    return all(isinstance(level, Exponent | Shift) for level in definition.levels)


def rounding_sums(bits: int) -> int:
    """Sums of so many bits, from 6 on, that meet every case of a rounding: a cubic polynomial."""
    return (bits**3 + 57 * bits**2 - 676 * bits + 1977) // 3


def sum_bits(definition: Definition) -> int:
    """Bits of the largest sum of a block, with the sign, in units of the smallest product."""
    bound = max(x.bound for x in (definition.element, definition.second) if x)
    largest = int(bound / definition.unit)
    for level in in_blocks(definition):
        if isinstance(level, Shift):
            largest <<= 2**level.bits - 1
        elif isinstance(level, Integer):
            largest *= 2**level.bits - 1
        elif isinstance(level, Real):
            largest *= 2 ** (level.fraction_bits + 1) - 1
    return 1 + (definition.block * largest**2).bit_length()


def exponent_sums(definition: Definition) -> int:
    """Sums of the exponent fields of two blocks, from 0 on."""
    largest = 0
    for level in in_blocks(definition):
        if isinstance(level, Exponent):
            largest += 2**level.bits - 1
        elif isinstance(level, Real):
            largest += 2**level.exponent_bits - 1
    return 2 * largest + 1


def specials(definition: Definition) -> int:
    """NaN and two infinities, where elements or scales of blocks have NaN."""
    scales = [
        level.nan
        if isinstance(level, Exponent)
        else level.single or real_element(level).nan is not None
        for level in in_blocks(definition)
        if isinstance(level, Exponent | Real)
    ]
    return 3 * (definition.element.nan is not None or any(scales))


def conversions(definition: Definition) -> int:
    """All sums under all exponents up to 2^28 of them, or those that meet every case."""
    bits, exponents = sum_bits(definition), exponent_sums(definition)
    sums = 2**bits if exponents << bits <= 2**28 else rounding_sums(bits)
    return (sums + specials(definition)) * exponents


def decoder_scales(definition: Definition) -> int:
    """Combinations of scales: all of up to 8 bits; of FP32 ones one in a binade and the ends.

    Of those an eighth is left out again and again until there are about 2^10 combinations, or 8
    beside each of the others.
    """
    narrow = [2**level.bits for level in definition.levels if level.bits <= 8]
    codes = [
        (len(real_element(level).magnitudes) + (real_element(level).nan is not None))
        * (1 + level.selects)
        for level in definition.levels
        if isinstance(level, Real) and level.bits <= 8
    ]
    codes += [2**level.bits for level in definition.levels if not isinstance(level, Real)]
    zeros = 1 if signed(definition) else 2**definition.element.width
    most = max(2**10, 8 * zeros * prod(narrow))
    wide = [255 + 8 for level in definition.levels if level.bits > 8]
    while wide and zeros * prod(codes) * prod(wide) > most and max(wide) > 8:
        place = wide.index(max(wide))
        wide[place] = 2 + (wide[place] - 2) * 7 // 8
    return zeros * prod(codes) * prod(wide)


def fewest(definition: Definition) -> int:
    """The smallest block that hardware has: of 8 values, and of two groups of a finer scale."""
    return max(8, *(2 * int(level.group) for level in in_blocks(definition)[:-1]), 8)


def encoder_scales(definition: Definition) -> int:
    """Scales of a block, under three outer ones if there are any; or outer scales of all sizes."""
    found = 256
    outer = 3 if any(isinstance(level.group, str) for level in definition.levels) else 1
    for level in in_blocks(definition):
        if isinstance(level, Integer):
            found = outer * (2**level.bits - 1)
        elif isinstance(level, Real):
            magnitudes = real_element(level).magnitudes
            normal = sum(x >= real_range(level)[0] for x in magnitudes)
            found = outer * (normal + (real_element(level).nan is not None))
    return found


def aligned(how: Accumulator) -> tuple[Any, ...]:
    """Aligned sums of MXFP4: their bits, exponents, and what else decides how they are rounded."""
    e2m1 = floating(2, 1, "none")
    # Terms of joined lanes have their point at 1 and no exponents of elements.
    product = e2m1.largest**2 if how.joined > 1 else (e2m1.largest / 4) ** 2
    lanes = how.reduction or ALIGNED.block
    bits = 1 + how.fraction + int(lanes * product + 2 * how.fused).bit_length()
    exponents = exponent_sums(ALIGNED) + (0 if how.joined > 1 else 2 * max(e2m1.fields))
    return bits, exponents, how.fraction, how.joined, how.fused, how.output


ALIGNED_SUMS = {
    aligned(how): name
    for name, how in reversed(ACCUMULATORS.items())
    if how.fraction is not None and how.total_fraction is None
}
"""Kinds of aligned sums, each with the first accumulator that has it."""

COUNTS = (
    {
        "decoder-fp32": 2**8 * 64 * 8,
        "decoder-bf16": 2**8 * 64 * 8,
        "decoder-fp32-high_precision": 2**8 * 128 * 8,
        "decoder-bf16-high_precision": 2**8 * 128 * 8,
        "masks": 10_518_300,
        "zeros": 2**17,
        "products": 64 * 64 * 32,
        "conversion": 2**16 * 511,
        "multiplication-corners": len(addition_corners()) ** 2,
        "multiplication-bf16": 2**32,
        "multiplication-fractions": 2**23 * 29 * 2,
        "multiplication-depths": 2**23 * 27,
        "addition-corners": len(addition_corners()) ** 2,
        "addition-random": 2**28,
        "division": 2**23 * 2**8 * 2,
        "reciprocal": 2**23 * 254,
        "fused-floor": 2**28,
        "fused-zero": 2**28,
        "fused-exact": 2**28,
        "fused-twice": 2**28,
        "pairs": 2**28,
    }
    | {
        f"encoder-{name}": cases
        for rounding in ("nearest", "toward_zero")
        for name, cases in {
            f"fp32-{rounding}-gaps": 2**23 * 32 * 2,
            f"fp32-{rounding}-subnormals": 2**24 * 8,
            f"fp32-{rounding}-patterns": 2**32,
            f"bf16-{rounding}-patterns": 2**16 * MAXIMA,
            f"fp16-{rounding}-patterns": 2**16 * (1 + 10 + 30 + 2),
            f"bf16-{rounding}-high_precision-patterns": 2**17 * MAXIMA,
            f"fp16-{rounding}-high_precision-patterns": 2**17 * (1 + 10 + 30 + 2),
        }.items()
    }
    | {
        "encoder-bf16-stochastic-patterns": 2**20 * MAXIMA,
        "encoder-fp16-stochastic-patterns": 2**20 * (1 + 10 + 30 + 2),
    }
    | {f"encoder-{name}-{rule}-fp32-nearest-scales": 2**31 for name in RULES_OF for rule in Rule}
    | {f"encoder-{name}-bf16-nearest-scales": 2**15 * 256 for name in MAXIMA_OF}
    | {
        f"decoder-{name}-{dtype}": decoder_scales(each) * 2**each.element.width * fewest(each)
        for name, each in OTHERS.items()
        for dtype in ("fp32", "bf16")
    }
    | {
        f"products-{name}": 4**each.element.width * each.block
        for name, each in OTHERS.items()
        if multiplied(each)
    }
    | {
        f"encoder-{name}-bf16-nearest-patterns": 2**16
        * (MAXIMA if under_exponents(each) else encoder_scales(each))
        for name, each in OTHERS.items()
        if encoded(each) and all(level.bits <= 8 for level in in_blocks(each))
    }
    | {f"conversion-{name}": conversions(each) for name, each in OTHERS.items() if multiplied(each)}
    | {
        f"aligned-{name}": (rounding_sums(bits) + 3) * exponents
        for (bits, exponents, *_), name in ALIGNED_SUMS.items()
    }
    | {f"division-{divisor}": 2**23 * 5 for divisor in RECIPROCALS if divisor != 961}
)
"""Cases of each space, by its name."""
