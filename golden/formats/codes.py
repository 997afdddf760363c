"""Properties of all elements. An element is the meaning of one value's code, before its scales.

Every element is described by the same few numbers, from which encoding, decoding, hardware and
reports follow. A magnitude x is a *significand* times a *quantum*. With e = floor(log2 x) the
quantum is 2^(max(e, emin) - fraction_bits) / divisor: it grows with x above 2^emin, and below it
is the same for all values, as for the subnormal values of a floating-point element. The elements
with a fixed point have all their values there.
"""

from enum import Enum
from fractions import Fraction
from functools import cached_property
from typing import TYPE_CHECKING

import numpy as np
from numpy.typing import NDArray


class NotANumber(Enum):
    """Content of codes that are not numbers."""

    NAN = "NaN"
    INFINITY = "+Inf"
    NEGATIVE_INFINITY = "-Inf"


def floor_log2(x: Fraction) -> int:
    """floor(log2 x) of a positive number, exactly."""
    n = x.numerator.bit_length() - x.denominator.bit_length()
    return n if Fraction(2) ** n <= x else n - 1


class Codes:
    """Base of all elements: tables over their codes, made from `integer`, and sizes.

    Sub-classes give the properties declared here; the numbers of the module's docstring among them.
    """

    if TYPE_CHECKING:  # a property would be the default of a dataclass's field of its name

        @property
        def width(self) -> int:
            """Bits of a code."""

        @property
        def emin(self) -> int:
            """Exponent from which the quantum grows."""

        @property
        def fraction_bits(self) -> int:
            """Bits of a quantum below 2^emin."""

        @property
        def divisor(self) -> int:
            """Divisor of the power of two of a quantum: 1, or 2^n - 1."""

        @property
        def largest_code(self) -> int:
            """Code of the largest finite value."""

        @property
        def sign_bit(self) -> int:
            """The bit that is 1 in codes of negative values; 0 if there are none."""

        @property
        def signed(self) -> bool:
            """Whether a value may be negative."""

        @property
        def listed(self) -> bool:
            """Whether values are listed, and not those of a quantum that the magnitude fixes."""

        @property
        def zero_code(self) -> int:
            """The code of 0, which pads blocks."""

        @property
        def signed_zero(self) -> bool:
            """Whether -0.0 is encoded with its sign."""

        @property
        def has_negative_zero(self) -> bool:
            """Whether a code is -0, which negative values that round to 0 get."""

        @property
        def ties_away(self) -> bool:
            """Whether rounding to the nearest takes the larger magnitude of two equally near."""

        @property
        def has_nan(self) -> bool:
            """Whether a code is NaN."""

        @property
        def has_infinity(self) -> bool:
            """Whether a code is an infinity."""

        def integer(self, code: int) -> int | NotANumber:
            """The value of a code, counted in `unit`, with its sign."""

    else:
        divisor, signed, signed_zero, has_negative_zero, ties_away = 1, True, True, True, False
        has_nan, has_infinity = False, False
        listed, zero_code = False, 0

    @cached_property
    def unit(self) -> Fraction:
        """Unit of all values."""
        return Fraction(2) ** (self.emin - self.fraction_bits) / self.divisor

    @property
    def fixed(self) -> bool:
        """Whether all values have one quantum."""
        return self.emax <= self.emin

    @cached_property
    def largest_integer(self) -> int:
        """The largest value, in units."""
        largest = self.integer(self.largest_code)
        assert isinstance(largest, int)
        return largest

    @cached_property
    def largest(self) -> Fraction:
        """The largest value."""
        return self.largest_integer * self.unit

    @property
    def smallest(self) -> Fraction:
        """The smallest positive value."""
        return self.unit

    @cached_property
    def emax(self) -> int:
        """The largest e such that values from 2^e up to, not including, 2^(e+1) come near codes.

        The rules of an exponent scale bring the largest value of a group there.
        """
        largest = self.largest
        floor = floor_log2(largest)
        return floor - 1 if Fraction(2) ** floor == largest else floor

    @property
    def precision(self) -> int:
        """Bits after the leading one of the largest values."""
        return self.integer_bits - 1 if self.fixed else self.fraction_bits

    @cached_property
    def integers(self) -> NDArray[np.int64]:
        """The value of each code in units, int64 of shape (2^width,); 0 for NaN and infinities."""
        values = [self.integer(code) for code in range(1 << self.width)]
        return _table([v if isinstance(v, int) else 0 for v in values], np.int64)

    @cached_property
    def nan_codes(self) -> NDArray[np.bool_]:
        """Which codes are NaN, bool of shape (2^width,)."""
        values = [self.integer(code) is NotANumber.NAN for code in range(1 << self.width)]
        return _table(values, np.bool_)

    @cached_property
    def infinite_codes(self) -> NDArray[np.int8]:
        """Sign of the infinity of each code, int8 of shape (2^width,); 0 for all others."""
        sign = {NotANumber.INFINITY: 1, NotANumber.NEGATIVE_INFINITY: -1}
        values = [self.integer(code) for code in range(1 << self.width)]
        return _table([sign.get(v, 0) if isinstance(v, NotANumber) else 0 for v in values], np.int8)

    @property
    def levels(self) -> int:
        """Number of distinct values that encoding produces."""
        return len({v for v in self.integers.tolist() if abs(v) <= self.largest_integer})

    @property
    def integer_bits(self) -> int:
        """Bits of the largest magnitude in units."""
        return self.largest_integer.bit_length()


def _table(values: list, dtype: type) -> NDArray:
    table: NDArray = np.array(values, dtype)
    table.flags.writeable = False
    return table
