"""Elements with a fixed point, and the type of all elements."""

from dataclasses import dataclass
from typing import ClassVar

from axs6.golden.arguments import check_flag, check_integer
from axs6.golden.formats.codes import Codes
from axs6.golden.formats.floating import Float
from axs6.golden.formats.selected import Selected
from axs6.golden.formats.table import ValueTable

WIDTH_MAX = 8
"""Maximum bits of an element's code: a byte holds it."""

UNIT_MAX = 64
"""Maximum magnitude of the exponent of an element's unit."""


@dataclass(frozen=True)
class SignMagnitude(Codes):
    """A sign above a magnitude of `magnitude_bits` bits, with a zero of either sign.

    Args:
        magnitude_bits: width of the magnitude q, 1 to 7.
        unit_exponent: the unit is 2^unit_exponent, or that over 2^magnitude_bits - 1.
        full_scale: whether the largest magnitude is 2^unit_exponent itself: the unit is divided by
            2^magnitude_bits - 1.
        signed_zero: whether -0.0 is encoded with its sign; a negative value that rounds to 0
            always is.
        ties_away: whether a value halfway between two codes becomes the larger magnitude, not the
            even one.

    Raises:
        ValueError: a width or exponent is out of range, or a flag no bool.
    """

    magnitude_bits: int
    unit_exponent: int
    full_scale: bool = False
    signed_zero: bool = True
    ties_away: bool = False

    def __post_init__(self) -> None:
        check_integer("magnitude_bits", self.magnitude_bits, 1, WIDTH_MAX - 1)
        check_integer("unit_exponent", self.unit_exponent, -UNIT_MAX, UNIT_MAX)
        check_flag("full_scale", self.full_scale)
        check_flag("signed_zero", self.signed_zero)
        check_flag("ties_away", self.ties_away)

    @property
    def width(self) -> int:
        """Bits of a code."""
        return self.magnitude_bits + 1

    @property
    def sign_bit(self) -> int:
        """The code of -0."""
        return 1 << self.magnitude_bits

    @property
    def largest_code(self) -> int:
        """Code of the largest value."""
        return self.sign_bit - 1

    @property
    def divisor(self) -> int:
        """Divisor of the power of two of a quantum, 2^n - 1."""
        return self.largest_code if self.full_scale else 1

    @property
    def fraction_bits(self) -> int:
        """Bits of a quantum below 2^emin."""
        return self.emin - self.unit_exponent

    @property
    def emin(self) -> int:
        """Exponent from which the quantum would grow: that of the largest value, or above."""
        return self.unit_exponent + (0 if self.full_scale else self.magnitude_bits - 1)

    def integer(self, code: int) -> int:
        """The signed value of a code, counted in `unit`."""
        magnitude = code & self.largest_code
        return -magnitude if code & self.sign_bit else magnitude


@dataclass(frozen=True)
class TwosComplement(Codes):
    """A two's complement integer; the most negative code can be decoded but is never written.

    Args:
        bits: width of the code, 2 to 8.
        unit_exponent: the unit is 2^unit_exponent.
        ties_away: as of `SignMagnitude`.

    Raises:
        ValueError: a width or exponent is out of range, or the flag no bool.
    """

    bits: int
    unit_exponent: int = 0
    ties_away: bool = False
    signed_zero: ClassVar[bool] = False
    has_negative_zero: ClassVar[bool] = False

    def __post_init__(self) -> None:
        check_integer("bits", self.bits, 2, WIDTH_MAX)
        check_integer("unit_exponent", self.unit_exponent, -UNIT_MAX, UNIT_MAX)
        check_flag("ties_away", self.ties_away)

    @property
    def width(self) -> int:
        """Bits of a code."""
        return self.bits

    @property
    def sign_bit(self) -> int:
        """The bit that is 1 in codes of negative values."""
        return 1 << self.bits - 1

    @property
    def largest_code(self) -> int:
        """Code of the largest value."""
        return self.sign_bit - 1

    @property
    def emin(self) -> int:
        """Exponent of the largest value."""
        return self.unit_exponent + self.bits - 2

    @property
    def fraction_bits(self) -> int:
        """Bits of a quantum below 2^emin."""
        return self.bits - 2

    def integer(self, code: int) -> int:
        """The signed value of a code, counted in `unit`."""
        return code - 2 * self.sign_bit if code & self.sign_bit else code


@dataclass(frozen=True)
class Unsigned(Codes):
    """An unsigned integer, for scales with a zero point.

    Args:
        bits: width of the code, 1 to 8.

    Raises:
        ValueError: the width is out of range.
    """

    bits: int
    signed: ClassVar[bool] = False
    signed_zero: ClassVar[bool] = False
    has_negative_zero: ClassVar[bool] = False
    sign_bit: ClassVar[int] = 0

    def __post_init__(self) -> None:
        check_integer("bits", self.bits, 1, WIDTH_MAX)

    @property
    def width(self) -> int:
        """Bits of a code."""
        return self.bits

    @property
    def largest_code(self) -> int:
        """Code of the largest value."""
        return (1 << self.bits) - 1

    @property
    def emin(self) -> int:
        """Exponent of the largest value."""
        return self.bits - 1

    @property
    def fraction_bits(self) -> int:
        """Bits of a quantum below 2^emin."""
        return self.bits - 1

    def integer(self, code: int) -> int:
        """The value of a code."""
        return code


Single = SignMagnitude | TwosComplement | Unsigned | Float | ValueTable
"""One kind of values alone."""

Element = Single | Selected
