"""The numbers of an encoder whose scales are real numbers and integers.

The scale of a tensor or of channels comes with each item, as FP32. That of a block, if there is
one, follows from the block's largest magnitude, every operation rounded as in the golden model.
Values are multiplied by the reciprocal of all scales, rounded to FP32, and then stand under the
scale 1: their place says what their code is.
"""

from dataclasses import dataclass
from functools import cached_property

from axs6.golden.formats import FP32, Integer, Level, Real
from axs6.hw.encoder.lane_numbers import LaneNumbers, floor_log2
from axs6.hw.fp32.common import SIGNIFICAND
from axs6.hw.fp32.quotient import FP32_NORMAL, Normal, Quotient, odd_of


@dataclass(frozen=True)
class Scaled(LaneNumbers):
    """The numbers of an encoder of a format whose scales are real numbers and integers.

    Args:
        values: values of an item: those of a block, where the format has blocks.
    """

    values: int

    @property
    def lanes(self) -> int:
        """Values of an item."""
        return self.values

    @property
    def given(self) -> bool:
        """Whether a scale of the tensor or of channels comes with each item."""
        return bool(self.fmt.outer)

    @property
    def scale(self) -> Real | Integer | None:
        """The scale of a block, if there is one."""
        found = [x.scale for x in self.fmt.blocked if isinstance(x.scale, Real | Integer)]
        return found[0] if found else None

    @property
    def shifts(self) -> tuple[Level, ...]:
        """Levels of shifts below the scale of a block, coarse to fine."""
        return self.fmt.shifts[::-1]

    @property
    def divides(self) -> bool:
        """Whether the scale of a block and reciprocals are quotients, rounded to FP32."""
        return not isinstance(self.scale, Real) or self.scale.arithmetic == FP32

    @property
    def overflows(self) -> bool:
        """Whether the largest magnitude over the largest element may be infinite in FP32."""
        return self.element.largest < 1

    @property
    def depth(self) -> int:
        """Bits by which significands of subnormal values are shifted to the left, at most."""
        return (1 << self.dtype.fraction_bits.bit_length()) - 1

    @property
    def value(self) -> Normal:
        """How values come to their scale."""
        bits = self.dtype.exponent_bits
        return Normal(self.dtype.fraction_bits + 1, bits + 1, self.dtype.bias + (1 << bits))

    @property
    def outer(self) -> Normal:
        """The scale of the tensor or of channels, which is never subnormal."""
        return Normal(SIGNIFICAND, FP32.exponent_bits, FP32.bias)

    @property
    def inner(self) -> Normal:
        """The scale of a block, which is never subnormal."""
        if isinstance(self.scale, Integer):
            bits = self.scale.bits
            return Normal(bits, (bits - 1).bit_length() or 1, 0)
        assert self.scale is not None
        dtype = self.scale.dtype
        return Normal(dtype.fraction_bits + 1, dtype.exponent_bits, dtype.bias)

    @property
    def reciprocal(self) -> Normal:
        """The reciprocal by which values are multiplied; an infinite one has the largest place."""
        return Normal(SIGNIFICAND, FP32_NORMAL.place_bits + 1, FP32_NORMAL.bias)

    # Quotients

    @property
    def of_largest(self) -> Quotient:
        """The largest magnitude over the largest element."""
        return Quotient(self.value, self.element.largest)

    @property
    def by_outer(self) -> Quotient:
        """The largest magnitude over the largest element, divided by the outer scale."""
        return Quotient(FP32_NORMAL, self.outer)

    @property
    def count(self) -> Quotient:
        """The largest magnitude over the largest element times the outer scale, for an integer.

        Its highest digit has the exponent 0 in `Number.exponent` where the integer is about 1.
        """
        assert isinstance(self.scale, Integer)
        odd = odd_of(self.element.largest)
        twos = self.element.largest / odd
        exponent = twos.numerator.bit_length() - twos.denominator.bit_length()
        step = self.outer
        product = Normal(
            step.bits + odd.bit_length(),
            step.place_bits + 1,
            step.bias - exponent - (odd.bit_length() - 1),
        )
        return Quotient(self.value, product, self.scale.bits + 1)

    # Lanes

    @cached_property
    def top(self) -> int:
        """The exponent of the largest element."""
        return floor_log2(self.element.largest)

    @property
    def significand_bits(self) -> int:
        """Bits of the FP32 significand to which scaled values are rounded."""
        return SIGNIFICAND

    @property
    def place_bits(self) -> int:
        """Bits of the place of a scaled value."""
        return max(self.value.place_bits, self.reciprocal.place_bits) + 1

    @property
    def top_place(self) -> int:
        """The place of scaled values with the exponent `top`."""
        return self.top + self.value.bias + self.reciprocal.bias

    @property
    def exceeds(self) -> bool:
        """Outer scales may be smaller than their values ask for."""
        return True

    @property
    def clamps(self) -> bool:
        """So any value may come above the largest element."""
        return True
