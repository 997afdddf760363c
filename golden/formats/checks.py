"""Which elements, scales and modes make a block format together."""

from itertools import pairwise
from typing import TYPE_CHECKING, Final

from axs6.golden.arguments import check_type
from axs6.golden.formats.element import UNIT_MAX, WIDTH_MAX, Element, Unsigned
from axs6.golden.formats.floating import E2M1, FP32, Float
from axs6.golden.formats.modes import ALL_MODES, DENSE_CODE, Mode, check_mode_block
from axs6.golden.formats.scale import (
    CHANNEL,
    TENSOR,
    Exponent,
    Integer,
    Level,
    Real,
    Rule,
    ScaleChoice,
    Shift,
)
from axs6.golden.formats.selected import Selected
from axs6.golden.formats.spelling import spell_element

if TYPE_CHECKING:
    from axs6.golden.formats.block_format import BlockFormat

INTEGER_BITS: Final = 62
"""Maximum bits of the largest element as a multiple of the smallest, so that int64 holds it."""

ORDER: Final = (Shift, Exponent, Integer, Real)
"""Kinds of scales, fine to coarse."""

REAL_LEVELS: Final = 3
REAL_SIGNIFICANDS: Final = 46
"""Real scales, and bits of their significands together, at most: float64 holds their product with
an element, so that decoding rounds once."""

MERIT_BITS: Final = 63
"""Bits of merits, at most: int64 holds them."""


def check_element(element: Element) -> None:
    """Raise TypeError or ValueError unless an element may be one of a block format."""
    check_type("element", element, Element)
    if isinstance(element, Float) and not element.signed:
        raise ValueError(f"an element must have a sign, unlike {element.name}; a scale need not")
    if element.width > WIDTH_MAX:
        raise ValueError(f"an element must have at most {WIDTH_MAX} bits, not {element.width}")
    if element.integer_bits > INTEGER_BITS:
        raise ValueError(
            f"an element must have a largest value below 2^{INTEGER_BITS} of its smallest ones, "
            f"not one of {element.integer_bits} bits"
        )
    lowest, highest = element.emin - element.fraction_bits, element.emax
    if isinstance(element, Float) and (lowest < -UNIT_MAX or highest > UNIT_MAX):
        raise ValueError(
            f"exponents of an element must be from {-UNIT_MAX} to {UNIT_MAX}, not {lowest} to "
            f"{highest}"
        )


def check_levels(fmt: "BlockFormat") -> None:
    """Raise ValueError unless levels, element, modes and choice of a format fit each other."""
    _check_groups(fmt)
    _check_tiles(fmt)
    _check_kinds(fmt)
    _check_modes(fmt)
    _check_choice(fmt)


def _check_groups(fmt: "BlockFormat") -> None:
    def size(level: Level) -> float:
        return {CHANNEL: 2.0**60, TENSOR: 2.0**61}.get(str(level.group)) or float(level.group)

    for fine, coarse in pairwise(fmt.levels):
        if size(coarse) <= size(fine):
            raise ValueError(
                f"groups must grow from level to level, and {coarse.group} after {fine.group} "
                "does not"
            )


def _check_tiles(fmt: "BlockFormat") -> None:
    """Raise ValueError unless a group of several rows is the block."""
    tiled = [level for level in fmt.levels if level.tiled]
    if not tiled:
        return
    (level, *others) = tiled
    if others or level.group != fmt.block:
        raise ValueError("a group of several rows must be the largest one of a fixed size")
    if any(x.group == CHANNEL for x in fmt.levels):
        raise ValueError("a group of several rows must not lie under a scale of one channel")
    if isinstance(level.scale, Real) and level.scale.zero_point:
        raise ValueError("a scale with a zero point must be of one row")


def _check_kinds(fmt: "BlockFormat") -> None:
    scales = [level.scale for level in fmt.levels]
    kinds = [ORDER.index(type(scale)) for scale in scales]
    if kinds != sorted(kinds):
        raise ValueError("scales must come in the order shift, exponent, integer, real")
    if kinds.count(1) > 1:
        raise ValueError("a block format has at most one exponent scale")
    if 0 in kinds and not {1, 3} & set(kinds[kinds.count(0) :][:1]):
        raise ValueError("a shift needs an exponent or a real scale above it")
    if 2 in kinds and (kinds.count(2) > 1 or kinds.count(3) != 1):
        raise ValueError("an integer scale needs one real scale above it, and no other")
    inner = [scale for scale in scales[:-1] if isinstance(scale, Real)]
    if any(scale.dtype.width > 16 for scale in inner):
        raise ValueError("a real scale under another must have at most 16 bits")
    significands = sum(1 + x.dtype.fraction_bits for x in scales if isinstance(x, Real))
    if kinds.count(3) > REAL_LEVELS or significands > REAL_SIGNIFICANDS:
        raise ValueError(
            f"a block format has at most {REAL_LEVELS} real scales, with significands of "
            f"{REAL_SIGNIFICANDS} bits together, not {kinds.count(3)} with {significands}"
        )
    if 2 in kinds and isinstance(scales[-1], Real) and scales[-1].dtype != FP32:
        raise ValueError("the real scale above an integer scale must be float32")
    for level in fmt.levels:
        if isinstance(level.scale, Shift | Integer) and not level.blocked:
            raise ValueError(f"a shift or integer scale needs blocks, not a {level.group}")
    if 0 in kinds and not fmt.levels[kinds.count(0)].blocked:
        raise ValueError("a shift needs an exponent or a real scale of blocks above it")
    if kinds.count(3) > 1 and any(isinstance(x, Real) and x.arithmetic != FP32 for x in scales):
        raise ValueError("a real scale in bf16 must be the only one")
    zero_points = [scale for scale in scales if isinstance(scale, Real) and scale.zero_point]
    if bool(zero_points) is not isinstance(fmt.element, Unsigned):
        raise ValueError("unsigned elements, and they alone, need a scale with a zero point")
    if zero_points and len(scales) > 1:
        raise ValueError("a scale with a zero point must be the only one")
    _check_selector(fmt)
    if fmt.element.listed and fmt.exponent and fmt.exponent.rule is Rule.EVEN:
        raise ValueError("rule even needs elements of one precision, which tables have not")


def _check_selector(fmt: "BlockFormat") -> None:
    finest, *others = fmt.levels
    selects = [isinstance(x.scale, Real) and x.scale.selector for x in (finest, *others)]
    if isinstance(fmt.element, Selected) and not (selects[0] and finest.blocked):
        raise ValueError(
            f"elements {spell_element(fmt)} need a finest scale of blocks that is a real "
            "number with a sign bit to spare, which selects one of two"
        )
    if any(selects[1:]) or (selects[0] and not isinstance(fmt.element, Selected)):
        raise ValueError("a selector needs elements to select from, and the finest scale")


def _check_modes(fmt: "BlockFormat") -> None:
    if fmt.modes == (Mode.DENSE,):
        return
    if fmt.modes != ALL_MODES:
        known = ", ".join(mode.label for mode in ALL_MODES)
        raise ValueError(f"modes must be dense alone, or {known}, not {fmt.modes!r}")
    (level, *others) = fmt.levels
    if others or not level.blocked or level.tiled or not isinstance(level.scale, Exponent):
        found = " and ".join(f"{type(x.scale).__name__.lower()} of {x.group}" for x in fmt.levels)
        raise ValueError(f"modes need one exponent scale of blocks alone, not {found}")
    check_mode_block(level.group)
    if fmt.element != DENSE_CODE:
        raise ValueError(f"modes need elements sm6dz, not {spell_element(fmt)}")


def _check_choice(fmt: "BlockFormat") -> None:
    """Raise ValueError unless the finest scales can be chosen by the errors under them."""
    choice, (scale, group) = fmt.choice, (fmt.levels[0].scale, fmt.levels[0].group)
    if choice is ScaleChoice.MAX:
        return
    if isinstance(fmt.element, Selected):
        raise ValueError(f"{choice} is not for elements that a scale selects")
    if fmt.has_modes or isinstance(scale, Shift) or not fmt.element.signed:
        what = "shifts" if isinstance(scale, Shift) else "zero points"
        raise ValueError(f"{choice} is not for {'modes' if fmt.has_modes else what}")
    if not isinstance(group, int):
        raise ValueError(f"{choice} needs scales of blocks, not of a {group}")
    if choice is ScaleChoice.FOUR_OVER_SIX:
        if fmt.element != E2M1:
            raise ValueError(f"{choice} needs elements e2m1fn, not {spell_element(fmt)}")
        if not isinstance(scale, Real) or not scale.dtype.fraction_bits:
            raise ValueError(f"{choice} needs scales of which one is 1.5 times another")
    if fmt.merit_bits > MERIT_BITS:
        raise ValueError(
            f"{choice} compares errors of at most {MERIT_BITS} bits, not {fmt.merit_bits}"
        )
