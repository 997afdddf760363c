"""The numbers of an encoder: how scales and codes follow from the fields of a format's values.

A value is M / 2^F * 2^(place - bias), with F and bias those of its dtype and M a significand of
F + 1 bits. Its place is its exponent field; below 1 it is that of a subnormal value that was
shifted to the left until its highest bit is the hidden one, `depth` bits at most: below that
nothing depends on the place, or there is no value. Places are kept as unsigned numbers that grow
with them, see `Scheme.raw`.

The largest place of a block, less `first`, is the code of its scale; one more where a rule says so,
which looks at whether the significand of a largest value is at least a certain one; and held to the
codes that there are.
"""

from dataclasses import dataclass
from fractions import Fraction
from functools import cached_property

from axs6.golden.formats import (
    FP32,
    Exponent,
    Level,
    Rule,
    name_of,
)
from axs6.golden.rounding import Rounding
from axs6.hw.encoder.lane_numbers import LaneNumbers, floor_log2


@dataclass(frozen=True)
class Scheme(LaneNumbers):
    """The numbers of an encoder of a format whose scales are an exponent and shifts.

    Raises:
        ValueError: every value of the dtype saturates.
    """

    def __post_init__(self) -> None:
        if self.last < self.lowest:
            raise ValueError(
                f"dtype {self.dtype.name} has no value but 0 in the range of {name_of(self.fmt)}"
            )

    @property
    def scale(self) -> Exponent:
        """The exponent scale."""
        assert self.fmt.exponent is not None
        return self.fmt.exponent

    @property
    def shifts(self) -> tuple[Level, ...]:
        """Levels of shifts, coarse to fine."""
        return self.fmt.shifts[::-1]

    @property
    def most_shift(self) -> int:
        """The sum of the largest shifts."""
        return sum(level.scale.largest_code for level in self.shifts)

    # Places and codes of scales

    @cached_property
    def top(self) -> int:
        """Exponent, over its scale, of a value that is no power of two and has its block's place,
        before the rule adds 1."""
        if self.scale.rule is Rule.RCEIL:
            return floor_log2(self.element.largest)
        return self.element.emax

    @property
    def first(self) -> int:
        """The place whose scale has code 0."""
        return self.dtype.bias + self.top - self.scale.bias

    @property
    def last(self) -> int:
        """The place whose scale has the largest code."""
        return self.first + self.scale.largest_code

    @cached_property
    def depth(self) -> int:
        """Bits by which significands of subnormal values are shifted to the left, at most; all of
        a number's bits are ones."""
        bits = self.dtype.fraction_bits
        grows = self.first - self.top + self.element.emin
        needed = min(bits, max(0, 1 - min(self.first, grows)))
        if self.shifts or self.first < 1 - bits:
            needed = bits  # shifts are distances of any two places
        return (1 << needed.bit_length()) - 1

    @property
    def lowest(self) -> int:
        """The lowest place."""
        return 1 - self.depth

    @property
    def offset(self) -> int:
        """The number that is added to a place so that no place is negative: 0 or a power of two."""
        return 0 if self.depth <= 1 else 1 << self.dtype.exponent_bits

    def raw(self, place: int) -> int:
        """A place as it is kept."""
        return place + self.offset

    @property
    def infinite(self) -> int:
        """The place of the largest FP32 value, for which infinities stand where they saturate."""
        return self.dtype.bias + FP32.bias

    @property
    def highest(self) -> int:
        """The highest place of a value."""
        finite = self.dtype.exponent_special - 1
        return finite if self.propagates else max(finite, self.infinite)

    @property
    def place_bits(self) -> int:
        """Width of a place as it is kept."""
        return self.raw(max(self.highest, self.first)).bit_length()

    @property
    def least_place(self) -> int | None:
        """A place that counts as one of the block's, so that no code is below 0; None where none
        has to: blocks of zeros are known otherwise, or have the code 0 by themselves."""
        needed = not self.shifts and self.first >= self.lowest and self.raw(self.first) > 0
        return self.first if needed else None

    @property
    def counts_zeros(self) -> bool:
        """Whether zeros count among the places of a block, as values of the lowest one."""
        return not self.shifts and self.first >= self.lowest

    @property
    def caps(self) -> bool:
        """Whether the code of a scale has to be held to the largest one."""
        most = self.highest - self.first + (self.scale.rule is not Rule.FLOOR)
        return most > self.scale.largest_code

    @property
    def exceeds(self) -> bool:
        """Whether there are places above that of the largest code."""
        return self.highest > self.last

    # When a rule adds 1

    @cached_property
    def raised_from(self) -> int:
        """The least significand with which a largest value adds 1 to the code; 2^(F + 1) if none
        does."""
        return self._raised_from(self.first + 1)

    @cached_property
    def first_raised_from(self) -> int:
        """The same where the code is 0 without it: `rceil` compares with a subnormal quotient."""
        return self._raised_from(self.first)

    def _raised_from(self, place: int) -> int:
        bits = self.dtype.fraction_bits
        never = 2 << bits
        if self.scale.rule is Rule.FLOOR:
            return never
        if self.scale.rule is Rule.CEIL:
            return (1 << bits) + 1
        if self.scale.rule is Rule.EVEN:
            missing = bits - self.element.precision - 1
            return never - (1 << missing) if missing >= 0 else never
        low, high = 1 << bits, never
        while low < high:
            middle = (low + high) // 2
            if self._raises(Fraction(middle, 1 << bits), place):
                high = middle
            else:
                low = middle + 1
        return low

    def _raises(self, significand: Fraction, place: int) -> bool:
        """Whether fp32 of a value over the largest element is above the scale of its place."""
        exponent = place - self.dtype.bias
        quotient = significand * Fraction(2) ** exponent / self.element.largest
        return _fp32(quotient) > Fraction(2) ** (exponent - self.top)

    @cached_property
    def infinite_raises(self) -> bool:
        """Whether the largest FP32 value adds 1, as an infinity does where it saturates."""
        largest = Scheme(self.fmt, FP32, self.rounding, self.random_bits)
        return largest.raised_from <= (1 << FP32.fraction_bits + 1) - 1

    # Lanes

    @cached_property
    def clamps(self) -> bool:
        """Whether a finite value may come above the largest element."""
        if self.caps:
            return True
        bits, element = self.dtype.fraction_bits, self.element
        more = {Rounding.NEAREST: Fraction(1, 2), Rounding.TOWARD_ZERO: Fraction(0)}.get(
            self.rounding, 1 - Fraction(1, 1 << self.random_bits)
        )
        whole = element.fraction_bits + min(self.normal, 0)
        above = 2 << bits if self.shifts else self.raised_from  # the rule sees whole blocks
        largest = Fraction(above - 1, 1 << bits) * Fraction(2) ** whole
        code = int(largest * element.divisor + more)
        return code + (max(self.normal, 0) << element.fraction_bits) > element.largest_code

    @property
    def distance_bits(self) -> int:
        """Bits of the distances from the block's place that are told apart."""
        if self.exceeds or len(self.shifts) > 1:
            return self.place_bits
        most = self.normal + self.farthest + self.most_shift
        return min(self.place_bits, max(1, most.bit_length()))


def _fp32(x: Fraction) -> Fraction:
    """A positive number rounded to FP32's grid, nearest even."""
    quantum = Fraction(2) ** (max(floor_log2(x), FP32.emin) - FP32.fraction_bits)
    return round(x / quantum) * quantum
