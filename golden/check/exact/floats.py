"""Floating-point numbers by IEEE 754, in Python integers and fractions.

Nothing in this folder is imported from the rest of the package: what the definitions say is stated
again. Python's `round` of a fraction is exact and goes to the nearest integer, ties to even.
"""

from enum import Enum
from fractions import Fraction
from functools import cache
from typing import Final, NamedTuple


class Special(Enum):
    """Floating-point values that are not fractions."""

    NAN = "nan"
    INFINITY = "+inf"
    NEGATIVE_INFINITY = "-inf"
    NEGATIVE_ZERO = "-0"


Value = Fraction | Special
"""A value. Zeros have no sign in this module, where -0.0 and +0.0 get the same code."""


class Format(NamedTuple):
    """Field widths of an IEEE 754 style binary format."""

    exponent_bits: int
    fraction_bits: int

    @property
    def bias(self) -> int:
        """Exponent bias."""
        return 2 ** (self.exponent_bits - 1) - 1

    @property
    def lowest(self) -> int:
        """Exponent of the smallest subnormal, a power of two."""
        return 1 - self.bias - self.fraction_bits

    @property
    def sign(self) -> int:
        """Pattern of -0.0."""
        return 1 << (self.exponent_bits + self.fraction_bits)

    @property
    def infinity(self) -> int:
        """Pattern of +Inf."""
        return (2**self.exponent_bits - 1) << self.fraction_bits


FP16: Final = Format(5, 10)
BF16: Final = Format(8, 7)
FP32: Final = Format(8, 23)
FP64: Final = Format(11, 52)
FP32_NAN: Final = 0x7FC00000


@cache
def power(exponent: int) -> Fraction:
    """2^exponent."""
    return Fraction(2) ** exponent


def floor_log2(x: Fraction) -> int:
    """The largest n with 2^n <= x, for x > 0."""
    above, below = x.numerator, x.denominator
    n = above.bit_length() - below.bit_length()
    reached = below << n <= above if n > 0 else below <= above << -n
    return n if reached else n - 1


def float_value(bits: int, fmt: Format) -> Value:
    """Exact value of a bit pattern."""
    sign = -1 if bits & fmt.sign else 1
    field = bits >> fmt.fraction_bits & 2**fmt.exponent_bits - 1
    fraction = bits & 2**fmt.fraction_bits - 1
    if field == 2**fmt.exponent_bits - 1:
        if fraction:
            return Special.NAN
        return Special.INFINITY if sign > 0 else Special.NEGATIVE_INFINITY
    if field == 0:
        return sign * fraction * power(fmt.lowest)
    return sign * (2**fmt.fraction_bits + fraction) * power(field - fmt.bias - fmt.fraction_bits)


def rounded_quotient(x: Fraction, exponent: int) -> int:
    """The integer nearest to x / 2^exponent, ties to even, for x >= 0."""
    above, below = x.numerator << max(-exponent, 0), x.denominator << max(exponent, 0)
    n, rest = divmod(above, below)
    return n + (2 * rest > below or (2 * rest == below and n % 2 == 1))


def round_to_float(x: Fraction, fmt: Format, saturate: bool = False) -> int:
    """Bit pattern nearest to `x`, ties to even, subnormals kept.

    A negative `x` that rounds to zero gives -0.0; zero itself gives +0.0. What rounds to
    2^(bias + 1) or more becomes an infinity, or the largest finite value with `saturate`.
    """
    if x == 0:
        return 0
    sign = fmt.sign if x < 0 else 0
    exponent = max(floor_log2(abs(x)) - fmt.fraction_bits, fmt.lowest)
    n = rounded_quotient(abs(x), exponent)
    if n.bit_length() + exponent > fmt.bias + 1:
        return sign | fmt.infinity - (1 if saturate else 0)
    if n < 2**fmt.fraction_bits:
        return sign | n
    if n == 2 ** (fmt.fraction_bits + 1):
        n, exponent = n // 2, exponent + 1
    field = exponent - fmt.lowest + 1
    return sign | field << fmt.fraction_bits | n - 2**fmt.fraction_bits


def add_fp32(a: int, b: int) -> int:
    """FP32 pattern of a + b: NaN is 0x7fc00000, Inf + -Inf is NaN, x + -x is +0, -0 + -0 is -0."""
    x, y = float_value(a, FP32), float_value(b, FP32)
    if isinstance(x, Special) or isinstance(y, Special):
        specials = {v for v in (x, y) if isinstance(v, Special)}
        return special_bits(specials.pop() if len(specials) == 1 else Special.NAN)
    if x + y == 0:
        return FP32.sign if a == b == FP32.sign else 0
    return round_to_float(x + y, FP32)


def special_bits(value: Special) -> int:
    """FP32 pattern of an infinity or of the canonical NaN."""
    if value is Special.NAN:
        return FP32_NAN
    return FP32.infinity if value is Special.INFINITY else FP32.sign | FP32.infinity
