"""Elements of which a group has one of two, as a bit of its scale says."""

from dataclasses import dataclass
from fractions import Fraction
from functools import cached_property
from math import lcm
from typing import TYPE_CHECKING, ClassVar, Final

import numpy as np
from numpy.typing import NDArray

from axs6.golden.formats.codes import Codes
from axs6.golden.formats.floating import E2M1
from axs6.golden.formats.table import ValueTable

if TYPE_CHECKING:
    from axs6.golden.formats.element import Single


@dataclass(frozen=True)
class Selected(Codes):
    """One of two elements: the first where the sign bit of the group's scale is 0, else the second.

    Encoding takes the one with the smaller squared error, the first where both are equal. The
    tables over codes have those of the first element, then those of the second.

    Args:
        first, second: elements of one width, without NaN, with one code for 0 and one largest
            magnitude.

    Raises:
        ValueError: they do not go together.
    """

    first: "Single"
    second: "Single"
    listed: ClassVar[bool] = True
    sign_bit: ClassVar[int] = 0

    def __post_init__(self) -> None:
        a, b = self.parts
        if any(isinstance(x, Selected) or x.has_nan or not x.signed for x in self.parts):
            raise ValueError("a selection needs two elements without NaN or zero points")
        if a.width != b.width:
            raise ValueError(
                f"two elements of a selection must have one width, not {a.width} and {b.width}"
            )
        if a.largest != b.largest or a.zero_code != b.zero_code:
            raise ValueError(
                "two elements of a selection must have the same largest magnitude and code of 0, "
                f"not {a.largest} and {b.largest}, {a.zero_code} and {b.zero_code}"
            )
        if self.divisor & self.divisor + 1:
            raise ValueError(f"the divisors of a selection must make 2^n - 1, not {self.divisor}")

    @property
    def parts(self) -> "tuple[Single, Single]":
        """Both elements."""
        return self.first, self.second

    @property
    def width(self) -> int:
        """Bits of a code, without the selecting bit."""
        return self.first.width

    @property
    def divisor(self) -> int:
        """Divisor of the power of two of a quantum."""
        return lcm(self.first.divisor, self.second.divisor)

    @property
    def signed_zero(self) -> bool:
        """Whether the first element keeps the sign of -0.0."""
        return self.first.signed_zero

    @property
    def has_negative_zero(self) -> bool:
        """Whether the first element has a code of -0."""
        return self.first.has_negative_zero

    @cached_property
    def unit_exponent(self) -> int:
        """Exponent of the power of two of the unit."""
        return min(x.emin - x.fraction_bits for x in self.parts)

    @property
    def emin(self) -> int:
        """Exponent of the largest power of two in units that is not above the largest value."""
        return self.unit_exponent + self.fraction_bits

    @property
    def fraction_bits(self) -> int:
        """Bits of a quantum below 2^emin."""
        return self.integer_bits - 1

    @property
    def fixed(self) -> bool:
        """Whether all values have one quantum."""
        return True

    @property
    def largest_code(self) -> int:
        """Code of the largest value of the first element."""
        return self.first.largest_code

    @cached_property
    def largest_integer(self) -> int:
        """The largest magnitude, in units."""
        found = self.first.largest * self.divisor / Fraction(2) ** self.unit_exponent
        assert found.denominator == 1
        return int(found)

    @cached_property
    def smallest(self) -> Fraction:
        """The smallest magnitude above 0."""
        return min(x.smallest for x in self.parts)

    @property
    def zero_code(self) -> int:
        """The code of 0."""
        return self.first.zero_code

    @cached_property
    def integers(self) -> NDArray[np.int64]:
        """The value of each code in units, with the selecting bit above it."""
        times = [int(x.unit / self.unit) for x in self.parts]
        parts = zip(self.parts, times, strict=True)
        table: NDArray[np.int64] = np.concatenate([x.integers * k for x, k in parts])
        table.flags.writeable = False
        return table

    def integer(self, code: int) -> int:
        """The value of a code, with the selecting bit above it, counted in `unit`."""
        return int(self.integers[code])


def remapped(value: int) -> ValueTable:
    """E2M1 with a value, in halves, in place of -0."""
    integers = E2M1.integers.tolist()
    integers[E2M1.sign_bit] = value
    return ValueTable(tuple(integers), -1)


IF4: Final = Selected(E2M1, ValueTable((*range(0, 22, 3), None, *range(-21, 0, 3)), 1, 7))
"""E2M1, or integers from -7 to 7 times 6/7 in two's complement."""

RAZER: Final = Selected(remapped(10), remapped(-10))
"""E2M1 with 5 in place of -0, or with -5."""

NAMED_SELECTED: Final = {"if4": IF4, "razer": RAZER}
"""Selections that strings have names for."""
