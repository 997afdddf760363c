"""`BlockFormat`: an element and the scales above it, which determine everything else."""

from dataclasses import dataclass, replace
from enum import IntEnum
from fractions import Fraction
from functools import cached_property
from itertools import pairwise
from math import log2
from numbers import Integral
from typing import Any, Final

from axs6.golden.arguments import check_type
from axs6.golden.formats.element import UNIT_MAX, WIDTH_MAX, Element, SignMagnitude, Unsigned
from axs6.golden.formats.floating import E2M1, FP32, Float
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
    check_choice,
)
from axs6.golden.formats.selected import Selected
from axs6.golden.formats.spelling import spell, spell_element
from axs6.tables import facts_table, html_text

UNBLOCKED: Final = 32
"""Values of a block if no level has a group of a fixed size."""

MEMORY_VALUES: Final = 256
LINE_BYTES: Final = 64
"""Values that are fetched together, in lines of memory, by which storage is counted."""

INTEGER_BITS: Final = 62
"""Maximum bits of the largest element as a multiple of the smallest, so that int64 holds it."""

HEADER_BITS: Final = 16
"""Header of a block in a format with modes: its scale, its mode, and zeros."""

ORDER: Final = (Shift, Exponent, Integer, Real)
"""Kinds of scales, fine to coarse."""


class Mode(IntEnum):
    """Layout of a block's payload: the two configuration bits of its header."""

    DENSE = 0
    SPARSE = 1
    HIGH_PRECISION = 2
    RESERVED = 3

    @property
    def label(self) -> str:
        """Its name in parameters and on the command line."""
        return self.name.lower()


@dataclass(frozen=True)
class BlockFormat:
    """A block format: every value is its element times the scales of its groups.

    Args:
        element: the meaning of a value's code.
        levels: scales, fine to coarse.
        modes: layouts that a block may have. With more than one, a block has a header, and its
            exponent scale is the only one.
        choice: which scale the finest groups get; it changes what encoding gives, and not what
            codes mean.

    Raises:
        TypeError: the element or a level has another type.
        ValueError: the element is too wide, or levels, element and modes do not fit each other: the
            message says which.
    """

    element: Element
    levels: tuple[Level, ...]
    modes: tuple[Mode, ...] = (Mode.DENSE,)
    choice: ScaleChoice = ScaleChoice.MAX

    def __post_init__(self) -> None:
        object.__setattr__(self, "levels", tuple(self.levels))
        if not self.levels:
            raise ValueError("a block format needs at least one level of scales")
        for level in self.levels:
            check_type("a level", level, Level)
        check_element(self.element)
        self._check_groups()
        self._check_tiles()
        self._check_kinds()
        self._check_modes()
        object.__setattr__(self, "choice", check_choice(self.choice))
        self._check_choice()

    def _check_groups(self) -> None:
        def size(level: Level) -> float:
            return {CHANNEL: 2.0**60, TENSOR: 2.0**61}.get(str(level.group)) or float(level.group)

        for fine, coarse in pairwise(self.levels):
            if size(coarse) <= size(fine):
                raise ValueError(
                    f"groups must grow from level to level, and {coarse.group} after {fine.group} "
                    "does not"
                )

    def _check_tiles(self) -> None:
        """Raise ValueError unless a group of several rows is the block."""
        tiled = [level for level in self.levels if level.tiled]
        if not tiled:
            return
        (level, *others) = tiled
        if others or level.group != self.block:
            raise ValueError("a group of several rows must be the largest one of a fixed size")
        if any(x.group == CHANNEL for x in self.levels):
            raise ValueError("a group of several rows must not lie under a scale of one channel")
        if isinstance(level.scale, Real) and level.scale.zero_point:
            raise ValueError("a scale with a zero point must be of one row")

    def _check_kinds(self) -> None:
        scales = [level.scale for level in self.levels]
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
        for level in self.levels:
            if isinstance(level.scale, Shift | Integer) and not level.blocked:
                raise ValueError(f"a shift or integer scale needs blocks, not a {level.group}")
        if 0 in kinds and not self.levels[kinds.count(0)].blocked:
            raise ValueError("a shift needs an exponent or a real scale of blocks above it")
        if kinds.count(3) > 1 and any(isinstance(x, Real) and x.arithmetic != FP32 for x in scales):
            raise ValueError("a real scale in bf16 must be the only one")
        zero_points = [scale for scale in scales if isinstance(scale, Real) and scale.zero_point]
        if bool(zero_points) is not isinstance(self.element, Unsigned):
            raise ValueError("unsigned elements, and they alone, need a scale with a zero point")
        if zero_points and len(scales) > 1:
            raise ValueError("a scale with a zero point must be the only one")
        self._check_selector()
        if self.element.listed and self.exponent and self.exponent.rule is Rule.EVEN:
            raise ValueError("rule even needs elements of one precision, which tables have not")

    def _check_selector(self) -> None:
        finest, *others = self.levels
        selects = [isinstance(x.scale, Real) and x.scale.selector for x in (finest, *others)]
        if isinstance(self.element, Selected) and not (selects[0] and finest.blocked):
            raise ValueError(
                f"elements {spell_element(self)} need a finest scale of blocks that is a real "
                "number with a sign bit to spare, which selects one of two"
            )
        if any(selects[1:]) or (selects[0] and not isinstance(self.element, Selected)):
            raise ValueError("a selector needs elements to select from, and the finest scale")

    def _check_modes(self) -> None:
        if self.modes == (Mode.DENSE,):
            return
        if self.modes != ALL_MODES:
            known = ", ".join(mode.label for mode in ALL_MODES)
            raise ValueError(f"modes must be dense alone, or {known}, not {self.modes!r}")
        (level, *others) = self.levels
        if others or not level.blocked or level.tiled or not isinstance(level.scale, Exponent):
            found = " and ".join(
                f"{type(x.scale).__name__.lower()} of {x.group}" for x in self.levels
            )
            raise ValueError(f"modes need one exponent scale of blocks alone, not {found}")
        check_mode_block(level.group)
        if self.element != DENSE_CODE:
            raise ValueError(f"modes need elements sm6dz, not {spell_element(self)}")

    def _check_choice(self) -> None:
        """Raise ValueError unless the finest scales can be chosen by the errors under them."""
        choice, (scale, group) = self.choice, (self.levels[0].scale, self.levels[0].group)
        if choice is ScaleChoice.MAX:
            return
        if isinstance(self.element, Selected):
            raise ValueError(f"{choice} is not for elements that a scale selects")
        if self.has_modes or isinstance(scale, Shift) or not self.element.signed:
            what = "shifts" if isinstance(scale, Shift) else "zero points"
            raise ValueError(f"{choice} is not for {'modes' if self.has_modes else what}")
        if not isinstance(group, int):
            raise ValueError(f"{choice} needs scales of blocks, not of a {group}")
        if choice is ScaleChoice.FOUR_OVER_SIX:
            if self.element != E2M1:
                raise ValueError(f"{choice} needs elements e2m1fn, not {spell_element(self)}")
            if not isinstance(scale, Real) or not scale.dtype.fraction_bits:
                raise ValueError(f"{choice} needs scales of which one is 1.5 times another")
        if self.merit_bits > MERIT_BITS:
            raise ValueError(
                f"{choice} compares errors of at most {MERIT_BITS} bits, not {self.merit_bits}"
            )

    @property
    def merit_bits(self) -> int:
        """Bits of the merits by which scales are chosen: see `axs6.golden.choice`."""
        scale, values = self.levels[0].scale, self.levels[0].values
        significand = scale.bits if isinstance(scale, Integer) else 2
        if isinstance(scale, Real):
            significand += scale.dtype.fraction_bits
        lanes = (values - 1).bit_length()
        return 2 * (self.element.integer_bits + significand) + 2 + MERIT_FRACTION + lanes

    def __str__(self) -> str:
        return spell(self)

    def _repr_html_(self) -> str:
        """What `axs6.golden.explain.facts` says, in a notebook."""
        from axs6.golden.explain import facts

        return html_text(facts_table({k.replace("_", " "): x for k, x in facts(self).items()}))

    @property
    def block(self) -> int:
        """Values of a block, B: the largest group of a fixed size; 32 if there is none."""
        sizes = [level.group for level in self.levels if isinstance(level.group, int)]
        return sizes[-1] if sizes else UNBLOCKED

    @property
    def rows(self) -> int:
        """Rows of values that share the scales of a block: 1, or those of a tile."""
        return max(level.rows for level in self.levels)

    @cached_property
    def untiled(self) -> "BlockFormat":
        """The format of one row of a tile: what a block is to decoders and dot products."""
        return replace(self, levels=tuple(replace(level, rows=1) for level in self.levels))

    @property
    def blocked(self) -> tuple[Level, ...]:
        """Levels whose groups have a fixed size, fine to coarse."""
        return tuple(level for level in self.levels if level.blocked)

    @property
    def inner(self) -> tuple[Level, ...]:
        """Levels whose scales are bits of a block, fine to coarse."""
        return tuple(level for level in self.levels if level.blocked and not level.tiled)

    @property
    def ahead(self) -> tuple[Level, ...]:
        """Levels whose scales stand before the blocks, fine to coarse: of tiles and larger."""
        return tuple(level for level in self.levels if level.tiled or not level.blocked)

    @property
    def outer(self) -> tuple[Level, ...]:
        """Levels whose groups are channels or the tensor, fine to coarse."""
        return tuple(level for level in self.levels if not level.blocked)

    @property
    def exponent(self) -> Exponent | None:
        """The exponent scale, if there is one."""
        return next((x.scale for x in self.levels if isinstance(x.scale, Exponent)), None)

    @property
    def shifts(self) -> tuple[Level, ...]:
        """Levels of shifts, fine to coarse."""
        return tuple(level for level in self.levels if isinstance(level.scale, Shift))

    @cached_property
    def parts(self) -> "tuple[BlockFormat, ...]":
        """The formats with each of the elements of a selection alone."""
        if not isinstance(self.element, Selected):
            return (self,)
        scale = self.levels[0].scale
        assert isinstance(scale, Real)
        scale = replace(scale, selector=False)
        levels = (replace(self.levels[0], scale=scale), *self.levels[1:])
        return tuple(replace(self, element=x, levels=levels) for x in self.element.parts)

    @property
    def has_modes(self) -> bool:
        """Whether blocks have a header with their layout."""
        return len(self.modes) > 1

    @property
    def has_nan(self) -> bool:
        """Whether NaN has a code, in the element or in a scale."""
        return self.element.has_nan or any(x.scale.nan_code is not None for x in self.levels)

    @cached_property
    def scale_bits(self) -> int:
        """Bits of a block's scales, with the header where there is one."""
        return HEADER_BITS if self.has_modes else self._used_scale_bits

    @property
    def mode_bits(self) -> int:
        """Mode bits of a header, below the scale."""
        return (len(self.modes) - 1).bit_length()

    @property
    def header_used(self) -> int:
        """Bits of a header in use; those above are 0."""
        return self.mode_bits + self._used_scale_bits

    @property
    def _used_scale_bits(self) -> int:
        """Bits of a block's scales and zero points."""
        zero = 0 if self.element.signed else self.element.width
        return sum(self.block // int(x.group) * (x.scale.bits + zero) for x in self.inner)

    @property
    def payload_bits(self) -> int:
        """Bits of a block's codes."""
        return self.block * self.element.width

    @property
    def packed_bytes(self) -> int:
        """Bytes of a dense block."""
        return -(-(self.scale_bits + self.payload_bits) // 8)

    @property
    def bits_a_value(self) -> tuple[Fraction, Fraction, Fraction]:
        """Bits a value three ways, without the scales of channels and tensors.

        Codes and scales alone (without the unused bits of a header); blocks of whole bytes; 256
        values in lines of 64 bytes. Scales of tiles count by their share of a value.
        """
        used = self.payload_bits + self._used_scale_bits
        if self.has_modes:
            used += self.mode_bits
        stored = -(-MEMORY_VALUES // self.block) * self.packed_bytes
        lines = -(-stored // LINE_BYTES) * LINE_BYTES
        apart = sum(Fraction(x.scale.bits, x.values) for x in self.levels if x.tiled)
        return (
            Fraction(used, self.block) + apart,
            Fraction(8 * self.packed_bytes, self.block) + apart,
            Fraction(8 * lines, MEMORY_VALUES) + apart,
        )

    @property
    def binades(self) -> tuple[float, float]:
        """log2 of the largest over the smallest positive value: in a block, and with all scales.

        In a block the scales of smaller groups count, and its own do not.
        """
        inner = outer = self.element.largest / self.element.smallest
        for level in self.levels:
            ratio = level.scale.largest / level.scale.smallest
            outer *= ratio
            if level.blocked and level.group != self.block:
                inner *= ratio
        return _binades(inner), _binades(outer)

    def with_block(self, block: int, rows: int | None = None) -> "BlockFormat":
        """The format with another size of its largest group of a fixed size.

        Args:
            block: values along the axis.
            rows: rows of a tile; as they are by default.

        Raises:
            ValueError: it has none, or the size does not fit.
        """
        if not self.blocked:
            raise ValueError(f"{self} has no blocks, so block={block} cannot be chosen")
        if self.has_modes:
            check_mode_block(block)
        at = len(self.blocked) - 1
        size = int(block) if isinstance(block, Integral) else block
        level = self.levels[at]
        changed = Level(level.scale, size, level.rows if rows is None else rows)
        return self._with_level(at, changed)

    def with_rule(self, rule: str) -> "BlockFormat":
        """The format with another rule of its exponent scale.

        Raises:
            ValueError: it has none, or the rule is unknown.
        """
        if rule not in tuple(Rule):
            raise ValueError(f"rule must be one of {', '.join(Rule)}, not {rule!r}")
        if self.exponent is None:
            raise ValueError(f"{self} has no exponent scale, so no rule {rule!r} for it")
        at = next(i for i, x in enumerate(self.levels) if isinstance(x.scale, Exponent))
        changed = replace(self.exponent, rule=Rule(rule))
        return self._with_level(at, replace(self.levels[at], scale=changed))

    def with_choice(self, choice: str) -> "BlockFormat":
        """The format with another choice of its finest scales.

        Raises:
            ValueError: it is unknown, or not one for the format.
        """
        return replace(self, choice=check_choice(choice))

    def _with_level(self, index: int, level: Level) -> "BlockFormat":
        levels: Any = list(self.levels)
        levels[index] = level
        return replace(self, levels=tuple(levels))


def _binades(ratio: Fraction) -> float:
    return log2(ratio.numerator) - log2(ratio.denominator)


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


def check_mode_block(block: Any) -> None:
    """Raise ValueError unless blocks with modes have this size."""
    if not isinstance(block, Integral) or block not in MODE_BLOCKS:
        known = ", ".join(map(str, MODE_BLOCKS))
        raise ValueError(f"block must be one of {known}, not {block!r}")


REAL_LEVELS: Final = 3
REAL_SIGNIFICANDS: Final = 46
"""Real scales, and bits of their significands together, at most: float64 holds their product with
an element, so that decoding rounds once."""

MERIT_FRACTION: Final = 11
"""Bits of a value below the element's unit that count where scales are chosen, so that all bits of
BF16 and FP16 do under powers of two."""

MERIT_BITS: Final = 63
"""Bits of merits, at most: int64 holds them."""

MODE_BLOCKS: Final = (8, 16, 32)
"""Sizes of blocks with modes."""

ALL_MODES: Final = (Mode.DENSE, Mode.SPARSE, Mode.HIGH_PRECISION)
"""The modes of a format that has more than one."""

DENSE_CODE: Final = SignMagnitude(5, 0, full_scale=True, signed_zero=False)
"""Element of a block with modes, unless it is high-precision."""

HIGH_CODE: Final = SignMagnitude(6, 0, full_scale=True, signed_zero=False)
LOW_CODE: Final = SignMagnitude(4, 0, full_scale=True, signed_zero=False)
"""Elements of a high-precision block at even indices, and at odd ones."""
