"""`BlockFormat`: an element and the scales above it, which determine everything else."""

from dataclasses import dataclass, replace
from fractions import Fraction
from functools import cached_property
from math import log2
from numbers import Integral
from typing import Any, Final

from axs6.golden.arguments import check_type
from axs6.golden.formats.checks import check_element, check_levels
from axs6.golden.formats.element import Element
from axs6.golden.formats.modes import HEADER_BITS, Mode, check_mode_block
from axs6.golden.formats.scale import (
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
from axs6.golden.formats.spelling import spell
from axs6.tables import facts_table, html_text

UNBLOCKED: Final = 32
"""Values of a block if no level has a group of a fixed size."""

MEMORY_VALUES: Final = 256
LINE_BYTES: Final = 64
"""Values that are fetched together, in lines of memory, by which storage is counted."""


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
        object.__setattr__(self, "choice", check_choice(self.choice))
        check_levels(self)

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


MERIT_FRACTION: Final = 11
"""Bits of a value below the element's unit that count where scales are chosen, so that all bits of
BF16 and FP16 do under powers of two."""
