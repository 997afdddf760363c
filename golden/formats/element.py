"""Elements: what the code of one value says, before its scales.

Every element is described by the same few numbers, from which encoding, decoding, hardware and
reports follow. A magnitude x is a *significand* times a *quantum*. With e = floor(log2 x) the
quantum is 2^(max(e, emin) - fraction_bits) / divisor: it grows with x above 2^emin, and below it
is the same for all values, as for the subnormal values of a floating-point element. The elements
with a fixed point have all their values there.
"""

from dataclasses import dataclass
from enum import Enum, StrEnum
from fractions import Fraction
from functools import cached_property
from typing import TYPE_CHECKING, ClassVar

import numpy as np
from numpy.typing import NDArray

from axs6.golden.arguments import check_integer

WIDTH_MAX = 8
"""Bits of an element's code, at most: a byte holds it."""


class Specials(StrEnum):
    """Which codes of a floating-point element are no numbers."""

    IEEE = "ieee"
    """The largest exponent field: infinities, and NaN with a fraction that is not 0."""
    NAN = "nan"
    """One magnitude, all bits 1: NaN."""
    NONE = "none"
    """None: every code is a number."""


class NotANumber(Enum):
    """What a code holds where it holds no number."""

    NAN = "NaN"
    INFINITY = "+Inf"
    NEGATIVE_INFINITY = "-Inf"


def _log2(x: Fraction) -> int:
    """floor(log2 x) of a positive number, exactly."""
    n = x.numerator.bit_length() - x.denominator.bit_length()
    return n if Fraction(2) ** n <= x else n - 1


class Codes:
    """What all elements have: tables over their codes, made from `integer`, and sizes.

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
            """What the power of two of a quantum is divided by: 1, or 2^n - 1."""

        @property
        def largest_code(self) -> int:
            """Code of the largest finite value."""

        @property
        def sign_bit(self) -> int:
            """The bit that is 1 in codes of negative values; 0 if there are none."""

        @property
        def signed_zero(self) -> bool:
            """Whether -0.0 is encoded with its sign."""

        @property
        def has_nan(self) -> bool:
            """Whether a code is NaN."""

        @property
        def has_infinity(self) -> bool:
            """Whether a code is an infinity."""

        def integer(self, code: int) -> int | NotANumber:
            """The value of a code, counted in `unit`, with its sign."""

    else:
        divisor, signed_zero, has_nan, has_infinity = 1, True, False, False

    signed: ClassVar[bool] = True

    @cached_property
    def unit(self) -> Fraction:
        """What every value is a multiple of."""
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
        floor = _log2(largest)
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
        """Number of different values that encoding gives."""
        return len({v for v in self.integers.tolist() if abs(v) <= self.largest_integer})

    @property
    def integer_bits(self) -> int:
        """Bits of the largest magnitude in units."""
        return self.largest_integer.bit_length()


def _table(values: list, dtype: type) -> NDArray:
    table: NDArray = np.array(values, dtype)
    table.flags.writeable = False
    return table


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

    Raises:
        ValueError: a width is out of range.
    """

    magnitude_bits: int
    unit_exponent: int
    full_scale: bool = False
    signed_zero: bool = True

    def __post_init__(self) -> None:
        check_integer("magnitude_bits", self.magnitude_bits, 1, WIDTH_MAX - 1)
        check_integer("unit_exponent", self.unit_exponent, -64, 64)

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
        """What the power of two of a quantum is divided by, 2^n - 1."""
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
    """A two's complement integer; the most negative code is read as it is, and never written.

    Args:
        bits: width of the code, 2 to 8.
        unit_exponent: the unit is 2^unit_exponent.

    Raises:
        ValueError: a width is out of range.
    """

    bits: int
    unit_exponent: int = 0
    signed_zero: ClassVar[bool] = False

    def __post_init__(self) -> None:
        check_integer("bits", self.bits, 2, WIDTH_MAX)
        check_integer("unit_exponent", self.unit_exponent, -64, 64)

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


@dataclass(frozen=True)
class Float(Codes):
    """A binary floating-point number with subnormal values: an element, a scale, or a dtype.

    Args:
        exponent_bits: width of the biased exponent field.
        fraction_bits: width of the fraction field, without the hidden bit.
        specials: which codes are no numbers.
        exponent_bias: bias of the exponent field; 2^(exponent_bits - 1) - 1 by default.

    Raises:
        ValueError: a width is out of range.
    """

    exponent_bits: int
    fraction_bits: int
    specials: Specials = Specials.IEEE
    exponent_bias: int | None = None

    def __post_init__(self) -> None:
        check_integer("exponent_bits", self.exponent_bits, 1, 11)
        check_integer("fraction_bits", self.fraction_bits, 0, 52)
        object.__setattr__(self, "specials", Specials(self.specials))
        if self.exponent_bias == (1 << self.exponent_bits - 1) - 1:
            object.__setattr__(self, "exponent_bias", None)

    @property
    def name(self) -> str:
        """Its name as a dtype, such as "fp32"; its fields where it has none."""
        return NAMES.get(self, f"e{self.exponent_bits}m{self.fraction_bits}")

    @property
    def width(self) -> int:
        """Bits of a value."""
        return 1 + self.exponent_bits + self.fraction_bits

    @property
    def bias(self) -> int:
        """Exponent bias."""
        return (
            (1 << self.exponent_bits - 1) - 1 if self.exponent_bias is None else self.exponent_bias
        )

    @property
    def emin(self) -> int:
        """Exponent of the smallest normal value."""
        return 1 - self.bias

    @property
    def sign_bit(self) -> int:
        """Bit pattern of -0.0."""
        return 1 << self.width - 1

    @property
    def exponent_special(self) -> int:
        """The largest exponent field, that of infinities and NaN with specials "ieee"."""
        return (1 << self.exponent_bits) - 1

    @property
    def infinity(self) -> int:
        """Bit pattern of +Inf, with specials "ieee"."""
        return self.exponent_special << self.fraction_bits

    @property
    def largest_code(self) -> int:
        """Bit pattern of the largest finite value."""
        if self.specials is Specials.IEEE:
            return self.infinity - 1
        return self.sign_bit - (2 if self.specials is Specials.NAN else 1)

    @property
    def max_finite(self) -> int:
        """Bit pattern of the largest finite value."""
        return self.largest_code

    @property
    def quiet_nan(self) -> int:
        """Bit pattern of the only NaN that the project produces: positive, quiet, no payload."""
        if self.specials is Specials.NAN:
            return self.sign_bit - 1
        return self.infinity | 1 << self.fraction_bits - 1

    @property
    def has_nan(self) -> bool:
        """Whether a code is NaN."""
        return self.specials is not Specials.NONE

    @property
    def has_infinity(self) -> bool:
        """Whether a code is an infinity."""
        return self.specials is Specials.IEEE

    @property
    def smallest_normal(self) -> int:
        """Bit pattern of the smallest normal value."""
        return 1 << self.fraction_bits

    def integer(self, code: int) -> int | NotANumber:
        """The signed value of a code, counted in `unit`, the smallest subnormal value."""
        magnitude = code & self.sign_bit - 1
        negative = bool(code & self.sign_bit)
        if magnitude > self.largest_code:
            if self.has_infinity and magnitude == self.infinity:
                return NotANumber.NEGATIVE_INFINITY if negative else NotANumber.INFINITY
            return NotANumber.NAN
        field = max(magnitude >> self.fraction_bits, 1)
        significand = magnitude - (field - 1 << self.fraction_bits)
        value = significand << field - 1
        return -value if negative else value


Element = SignMagnitude | TwosComplement | Unsigned | Float

FP64 = Float(11, 52)
FP32 = Float(8, 23)
BF16 = Float(8, 7)
FP16 = Float(5, 10)
NAMES = {FP64: "fp64", FP32: "fp32", BF16: "bf16", FP16: "fp16"}
"""The names of dtypes of inputs and outputs."""

E5M2 = Float(5, 2)
E4M3 = Float(4, 3, Specials.NAN)
E3M2 = Float(3, 2, Specials.NONE)
E2M3 = Float(2, 3, Specials.NONE)
E2M1 = Float(2, 1, Specials.NONE)
"""Elements of the OCP formats; ml_dtypes and torch call them float8_e5m2, float8_e4m3fn,
float6_e3m2fn, float6_e2m3fn and float4_e2m1fn."""
