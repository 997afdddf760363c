"""Requirements of a decoder's datapath, from a block format and the dtype of its values.

The leading bit of an element's significand is worth 2^x, that of a scale 2^f. The exponent field
of a value is the sum of those of its element and of all its scales, and a constant. Where it is 0
or less the value is subnormal.
"""

from dataclasses import dataclass
from functools import cached_property

from amaranth.hdl import Shape, signed, unsigned
from amaranth.lib import data

from axs6.golden.formats import (
    FP32,
    BlockFormat,
    Exponent,
    Float,
    Integer,
    Level,
    Real,
    Scale,
    Shift,
    SignMagnitude,
    name_of,
)
from axs6.hw.core.structures import StructLayout

EXACT_BITS = 53
"""Bits of the product of an element and its scales, at most: those of the golden model."""

GUARD = 2
"""Bits below a significand that decide its rounding; the lowest is the or of all that follow."""


@dataclass(frozen=True)
class Range:
    """The integers from `low` to `high`, both included."""

    low: int
    high: int

    def __add__(self, other: "Range") -> "Range":
        return Range(self.low + other.low, self.high + other.high)

    @property
    def shape(self) -> Shape:
        """The shape of a signal for them."""
        return signed(max(self.high.bit_length(), (~self.low).bit_length()) + 1)


@dataclass(frozen=True)
class GroupScale:
    """Contribution of scales to the values of a group.

    Args:
        exponent: range added to the exponent field. factor: bits of the product of their
        significands; 0 for powers of two. nan: whether one may be NaN.
    """

    exponent: Range
    factor: int = 0
    nan: bool = False

    def __add__(self, other: "GroupScale") -> "GroupScale":
        return GroupScale(
            self.exponent + other.exponent, self.factor + other.factor, self.nan or other.nan
        )

    @property
    def layout(self) -> data.StructLayout:
        """Fields of a signal for it; a factor may be zero, `zero` says so."""
        nan = {"nan": 1} if self.nan else {}
        factor = {"factor": unsigned(self.factor), "zero": 1} if self.factor else {}
        return StructLayout({"exponent": self.exponent.shape, **nan, **factor})


def group_scale(scale: Scale, constant: int = 0) -> GroupScale:
    """The contribution of a scale, with a constant added to the exponent."""
    offset = Range(constant, constant)
    if isinstance(scale, Exponent):
        return GroupScale(Range(0, (1 << scale.bits) - 1) + offset, nan=scale.nan)
    if isinstance(scale, Shift):
        return GroupScale(Range(-scale.largest_code, 0) + offset)
    if isinstance(scale, Integer):
        return GroupScale(Range(0, scale.bits - 1) + offset, scale.bits)
    dtype = scale.dtype
    top = (1 << dtype.exponent_bits) - 1
    lowest = 1 - max(1, dtype.fraction_bits) if dtype.subnormals else 0
    return GroupScale(Range(lowest, top) + offset, dtype.fraction_bits + 1, True)


@dataclass(frozen=True)
class DecoderPlan:
    """The numbers of a decoder's datapath.

    Args:
        fmt: the block format.
        lanes: values in a block.
        dtype: of the values.

    Raises:
        ValueError: the format has no hardware.
    """

    fmt: BlockFormat
    lanes: int
    dtype: Float

    def __post_init__(self) -> None:
        if self.significand + sum(map(_bits, self.factors)) > EXACT_BITS:
            raise ValueError(
                f"significands of elements and scales must have {EXACT_BITS} bits at most together,"
                f" those of {name_of(self.fmt)} have more"
            )

    @cached_property
    def factors(self) -> list[Scale]:
        """Scales that are no powers of two."""
        return [x.scale for x in self.fmt.levels if isinstance(x.scale, Integer | Real)]

    @property
    def divided(self) -> bool:
        """Whether values are divided by 2^n - 1: products, and integers of tables."""
        element = self.fmt.element
        return element.divisor > 1 and bool(self.factors or element.listed)

    @property
    def repeated(self) -> bool:
        """Whether magnitudes m are over 2^n - 1: 0.mmm... with their n bits for ever."""
        return self.fmt.element.divisor > 1 and not self.divided

    @property
    def divisor_bits(self) -> int:
        """n of the denominator 2^n - 1."""
        return self.fmt.element.divisor.bit_length()

    @property
    def floating(self) -> bool:
        """Whether elements have exponents of their own."""
        return isinstance(self.fmt.element, Float)

    @property
    def normalised(self) -> bool:
        """Whether significands have their leading one on top before scales are applied.

        Fixed elements under powers of two are shifted once, with the result.
        """
        return self.floating or bool(self.factors) or self.divided

    @cached_property
    def magnitude(self) -> int:
        """Bits of an element's magnitude, or of its significand with the hidden bit."""
        element = self.fmt.element
        if isinstance(element, Float):
            return element.fraction_bits + 1
        if element.listed:
            return max(element.integer_bits, int(abs(element.integers).max()).bit_length())
        return element.magnitude_bits if isinstance(element, SignMagnitude) else element.width

    @cached_property
    def significand(self) -> int:
        """Bits of an element's significand; repeated ones have enough to round them."""
        if not self.repeated:
            return self.magnitude
        enough = self.precision + 1 + self.magnitude
        return -(-enough // self.magnitude) * self.magnitude + 1

    @property
    def precision(self) -> int:
        """Bits of the significand of a value, with its hidden one."""
        return self.dtype.fraction_bits + 1

    @cached_property
    def x(self) -> Range:
        """Exponents of elements: of leading ones, or of the top place where they are shifted late.

        Those of floating-point elements are their exponent fields, subnormal ones 0 and below;
        those of others are 0 for the top place.
        """
        element = self.fmt.element
        if isinstance(element, Float):
            high = max(1, element.largest_code >> element.fraction_bits)
            return Range(min(0, 1 - element.fraction_bits), high)
        return Range(1 - self.magnitude, 0)

    @cached_property
    def constant(self) -> int:
        """The exponent field of a value whose exponents are all 0."""
        element = self.fmt.element
        total = 1 - self.dtype.emin + len(self.factors)
        if self.divided:
            total -= self.divisor_bits
        if isinstance(element, Float):
            total -= element.bias
        elif self.repeated:
            assert isinstance(element, SignMagnitude)
            total += element.unit_exponent - 1
        else:
            total += element.emin - element.fraction_bits + self.magnitude - 1
        for level in self.fmt.levels:
            scale = level.scale
            if isinstance(scale, Exponent):
                total -= scale.bias
            elif isinstance(scale, Real):
                total -= scale.dtype.bias
        return total

    @cached_property
    def parts(self) -> list[GroupScale]:
        """The contribution of each level of scales, fine to coarse; the coarsest includes the
        constant."""
        last = len(self.fmt.levels) - 1
        return [
            group_scale(level.scale, self.constant if number == last else 0)
            for number, level in enumerate(self.fmt.levels)
        ]

    @cached_property
    def group(self) -> GroupScale:
        """The contribution of all scales together."""
        first, *rest = self.parts
        return sum(rest, start=first)

    def groups(self, level: Level) -> int:
        """Groups of a level in a block."""
        return self.lanes // int(level.group) if level.blocked else 1

    @property
    def finest(self) -> int:
        """Groups of the finest level in a block."""
        return self.groups(self.fmt.levels[0])

    @cached_property
    def product(self) -> int:
        """Bits of a significand with its factor."""
        return self.significand + self.group.factor

    @cached_property
    def word(self) -> int:
        """Bits of a significand with its factor, or of what is enough of it over 2^n - 1."""
        return self.precision + GUARD if self.divided else self.product

    @cached_property
    def products(self) -> Range:
        """The range added to the exponent: less the leading zeros of a product, and 1 where 2^n
        over 2^n - 1 brings it to the next power of two."""
        return Range(-len(self.factors), int(self.divided))

    @cached_property
    def field(self) -> Range:
        """The exponent field, before it is limited to that of numbers."""
        return self.group.exponent + self.x + self.products

    @property
    def added(self) -> Range:
        """The range that elements, and the leading zeros of products, add to the exponent of their
        group."""
        return self.x + self.products

    @property
    def low_bits(self) -> int:
        """Bits of that, counted from its lowest."""
        return (self.added.high - self.added.low).bit_length()

    @property
    def base(self) -> Range:
        """The exponent of a group with the lowest of that."""
        return self.group.exponent + Range(self.added.low, self.added.low)

    @property
    def above(self) -> Range:
        """The bits of a field above `low_bits`, with a carry or without."""
        return Range(self.base.low >> self.low_bits, (self.base.high >> self.low_bits) + 1)

    @property
    def top(self) -> Range:
        """The exponent field that the top place of a significand has, before it is placed."""
        return self.field if self.normalised else self.group.exponent

    @cached_property
    def right(self) -> int:
        """Places that the top place of a significand may lie below that of subnormal values.

        Where it lies lower than all that decides the rounding, it makes no difference how far.
        """
        return min(max(0, 1 - self.top.low), self.precision + 1)

    @property
    def limited(self) -> bool:
        """Whether values may lie lower than `right` says."""
        return self.top.low < 1 - self.right

    @cached_property
    def wide(self) -> int:
        """Bits of a significand in its place."""
        return self.word + self.right

    @property
    def rounds(self) -> bool:
        """Whether any value has bits to round."""
        return self.wide > self.precision

    @property
    def rounds_normal(self) -> bool:
        """Whether normal values have."""
        return self.word > self.precision

    @property
    def overflows(self) -> bool:
        """Whether a value, rounded, may be too large."""
        return self.field.high + self.rounds_normal >= self.dtype.exponent_special


def decoded(fmt: BlockFormat) -> bool:
    """Whether there is hardware that decodes a format."""
    try:
        DecoderPlan(fmt, fmt.block, FP32)
    except ValueError:
        return False
    return True


def _bits(scale: Scale) -> int:
    return group_scale(scale).factor
