"""Scales: what the values of a group are multiplied by, and how the scale is coded."""

from dataclasses import dataclass
from enum import StrEnum
from fractions import Fraction
from typing import Any, ClassVar, Final, Literal

import numpy as np
from numpy.typing import NDArray

from axs6.golden.arguments import check_flag, check_integer, check_type
from axs6.golden.formats.floating import BF16, FP32, Float

CHANNEL: Final = "channel"
TENSOR: Final = "tensor"
"""Groups that have no fixed size: the whole axis, and all values."""

GROUP_MAX: Final = 1024
"""Values of a group of a fixed size along the axis, and rows of a tile, at most."""


class Rule(StrEnum):
    """How the largest magnitude of a group, amax, gives its exponent.

    emax is the element's: see `axs6.golden.formats.codes`.
    """

    FLOOR = "floor"
    """floor(log2 amax) - emax."""
    CEIL = "ceil"
    """ceil(log2 amax) - emax."""
    EVEN = "even"
    """`floor` of amax, rounded half up to the precision of the element first."""
    RCEIL = "rceil"
    """The least exponent whose scale is fp32(amax / largest element) or more."""


def check_rule(rule: str) -> Rule:
    """Return the rule of a name, or raise ValueError naming the known ones."""
    if rule not in tuple(Rule):
        raise ValueError(f"rule must be one of {', '.join(Rule)}, not {rule!r}")
    return Rule(rule)


class ScaleChoice(StrEnum):
    """Which scale a group gets: that of its largest magnitude, or the best of several.

    `axs6.golden.choice` compares them.
    """

    MAX = "max"
    """The scale that follows from the largest magnitude."""
    FOUR_OVER_SIX = "four-over-six"
    """The scale of `max`, under which the largest magnitude becomes 6, or the scale 1.5 times
    larger, under which it becomes 4."""
    MSE = "mse"
    """The scale of `max`, or the scale of the code before or after it."""


def check_choice(choice: str) -> ScaleChoice:
    """Return the choice of a name, or raise ValueError naming the known ones."""
    if choice not in tuple(ScaleChoice):
        raise ValueError(f"choice must be one of {', '.join(ScaleChoice)}, not {choice!r}")
    return ScaleChoice(choice)


@dataclass(frozen=True)
class Exponent:
    """A power of two: 2^(code - bias), with bias 2^(bits - 1) - 1.

    Args:
        bits: width of the code, 4 to 8.
        rule: how it comes from the largest magnitude.
        nan: whether the code of all ones is NaN, for the whole group.

    Raises:
        ValueError: the width is out of range, the rule unknown, or `nan` no bool.
    """

    bits: int = 8
    rule: Rule = Rule.FLOOR
    nan: bool = True

    def __post_init__(self) -> None:
        check_integer("bits", self.bits, 4, 8)
        object.__setattr__(self, "rule", check_rule(self.rule))
        check_flag("nan", self.nan)

    @property
    def bias(self) -> int:
        """Code of the scale 1."""
        return (1 << self.bits - 1) - 1

    @property
    def largest_code(self) -> int:
        """Largest code of a number."""
        return (1 << self.bits) - 1 - self.nan

    @property
    def largest(self) -> Fraction:
        """The largest factor."""
        return Fraction(2) ** (self.largest_code - self.bias)

    @property
    def smallest(self) -> Fraction:
        """The smallest factor."""
        return Fraction(2) ** -self.bias

    @property
    def nan_code(self) -> int | None:
        """The code of NaN, if there is one."""
        return (1 << self.bits) - 1 if self.nan else None


@dataclass(frozen=True)
class _Count:
    """A scale every code of which is a number.

    Args:
        bits: width of the code, from 1.

    Raises:
        ValueError: the width is out of range.
    """

    bits: int
    bits_max: ClassVar[int]
    nan_code: ClassVar[None] = None

    def __post_init__(self) -> None:
        check_integer("bits", self.bits, 1, self.bits_max)

    @property
    def largest_code(self) -> int:
        """The code of all ones."""
        return (1 << self.bits) - 1


@dataclass(frozen=True)
class Shift(_Count):
    """A negative power of two below the group's exponent: 2^-code, of up to 4 bits."""

    bits_max: ClassVar[int] = 4
    largest: ClassVar[Fraction] = Fraction(1)

    @property
    def smallest(self) -> Fraction:
        """The smallest factor."""
        return Fraction(1, 1 << self.largest_code)


@dataclass(frozen=True)
class Integer(_Count):
    """A positive integer of up to 16 bits, its code itself; 0 is never written."""

    bits_max: ClassVar[int] = 16
    smallest: ClassVar[Fraction] = Fraction(1)

    @property
    def largest(self) -> Fraction:
        """The largest factor."""
        return Fraction(self.largest_code)


@dataclass(frozen=True)
class Real:
    """A positive floating-point number.

    Args:
        dtype: FP32, or a format of up to 16 bits whose numbers FP32 has.
        zero_point: whether the code of the value 0 goes with it, an unsigned integer of the
            element's width that is subtracted from every code.
        arithmetic: FP32, or BF16: the scale, before it is rounded to its dtype, and its reciprocal
            are rounded to it.
        selector: whether its sign bit, of which the number has no need, selects an element.

    Raises:
        TypeError: the dtype or the arithmetic is no Float.
        ValueError: it is another one, or BF16 arithmetic is for FP32, for a zero point, or for
            scales above 2^126, whose reciprocals are subnormal; or no sign bit is there to select.
    """

    dtype: Float = FP32
    zero_point: bool = False
    arithmetic: Float = FP32
    selector: bool = False

    def __post_init__(self) -> None:
        dtype = self.dtype
        check_type("dtype", dtype, Float)
        within = dtype.emin >= FP32.emin and dtype.largest <= FP32.largest
        if dtype != FP32 and not (dtype.width <= REAL_BITS_MAX and within and dtype.has_normal):
            raise ValueError(
                f"a real scale must be float32, or have at most {REAL_BITS_MAX} bits and normal "
                f"numbers that float32 has, unlike {dtype.name}"
            )
        check_flag("zero_point", self.zero_point)
        check_type("arithmetic", self.arithmetic, Float)
        if self.arithmetic not in (FP32, BF16):
            raise ValueError(f"arithmetic must be fp32 or bf16, not {self.arithmetic.name}")
        if self.arithmetic != FP32 and (self.zero_point or dtype == FP32):
            what = "a scale with a zero point" if self.zero_point else "a float32 scale"
            raise ValueError(f"arithmetic of {what} must be fp32, not bf16")
        if self.arithmetic != FP32 and dtype.largest > Fraction(2) ** -FP32.emin:
            raise ValueError(
                f"a scale in bf16 must be at most 2^126, and the largest of {dtype.name} is more"
            )
        check_flag("selector", self.selector)
        if self.selector and (not dtype.has_negative_zero or not dtype.signed or self.zero_point):
            raise ValueError(
                f"a selector needs a scale with a sign bit to spare, which {dtype.name} has not"
            )

    def number(self, codes: NDArray[Any]) -> NDArray[Any]:
        """The patterns of codes, without the bit that selects."""
        return codes & codes.dtype.type(self.dtype.sign_bit - 1) if self.selector else codes

    def selected(self, codes: NDArray[Any]) -> NDArray[np.uint8]:
        """Which element each code selects, 0 or 1."""
        return (codes >> codes.dtype.type(self.dtype.width - 1)).astype(np.uint8)

    @property
    def bits(self) -> int:
        """Width of the code."""
        return self.dtype.width

    @property
    def largest_code(self) -> int:
        """Pattern of the largest factor."""
        return self.dtype.largest_code

    @property
    def largest(self) -> Fraction:
        """The largest factor."""
        return self.dtype.largest

    @property
    def smallest(self) -> Fraction:
        """The smallest factor that encoding gives: a normal number."""
        return Fraction(2) ** self.dtype.emin

    @property
    def nan_code(self) -> int | None:
        """The pattern of NaN, if there is one."""
        return self.dtype.quiet_nan if self.dtype.has_nan else None


Scale = Exponent | Shift | Integer | Real

REAL_BITS_MAX: Final = 16
"""Bits of a real scale that is not FP32, at most."""


@dataclass(frozen=True)
class Level:
    """A scale, and the group of values that shares it.

    Args:
        scale: the kind of scale.
        group: values of a group along the axis, a power of two from 1 to 1024; "channel" for the
            whole axis; "tensor" for all values.
        rows: rows of a group of a fixed size, a power of two from 1 to 1024. A group of more than
            one is a tile of a matrix.

    Raises:
        TypeError: the scale is none.
        ValueError: the group is none of these, or rows are given for a channel or a tensor.
    """

    scale: Scale
    group: int | Literal["channel", "tensor"]
    rows: int = 1

    def __post_init__(self) -> None:
        check_type("scale", self.scale, Scale)
        if self.group in (CHANNEL, TENSOR):
            if self.rows != 1:
                raise ValueError(f"rows are for groups of a fixed size, not for a {self.group}")
            return
        _check_size("a group", self.group, f", {CHANNEL!r} or {TENSOR!r}")
        _check_size("the rows of a tile", self.rows)

    @property
    def blocked(self) -> bool:
        """Whether the group has a fixed size."""
        return isinstance(self.group, int)

    @property
    def tiled(self) -> bool:
        """Whether the group has several rows."""
        return self.rows > 1

    @property
    def values(self) -> int:
        """Values of a group of a fixed size."""
        return int(self.group) * self.rows


def _check_size(name: str, size: object, others: str = "") -> None:
    """Raise ValueError unless a size is a power of two from 1 to 1024."""
    if isinstance(size, bool) or not isinstance(size, int) or not 1 <= size <= GROUP_MAX:
        raise ValueError(
            f"{name} must be a power of two from 1 to {GROUP_MAX}{others}, not {size!r}"
        )
    if size & size - 1:
        raise ValueError(f"{name} must be a power of two, not {size}")
