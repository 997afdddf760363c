"""Block formats by their public definitions: elements as tables of values, and levels of scales.

Nothing comes from the model or from `axs6.golden.formats`; what the definitions say is stated
again: OCP MX v1.0, OCP FP8, the shared-microexponents paper (BFP, MSFP,
MX9, MX6, MX4, VSQ: its Tables I and II), NVFP4, and HiF4 (arXiv 2602.11287).
"""

from bisect import bisect_right
from dataclasses import dataclass
from fractions import Fraction
from functools import cache, cached_property
from math import floor
from typing import Final, NamedTuple

from axs6.golden.check.exact.floats import FP32, Special, Value, float_value, power, round_to_float

Table = tuple[Value, ...]
"""The value of every code."""


@dataclass(frozen=True, eq=False)
class Element:
    """The meaning of the codes of values.

    Args:
        values: of every code.
        precision: bits after the leading one of the largest values.
        fields: power of two of each code's exponent field; none for a fixed point.
        nan: the code that NaN gets, if there is one.
        zero_sign: whether -0.0 keeps its sign.
        away: whether halves go to the larger magnitude.
    """

    values: Table
    precision: int
    fields: tuple[int, ...] = ()
    nan: int | None = None
    zero_sign: bool = True
    away: bool = False

    @property
    def width(self) -> int:
        """Bits of a code."""
        return (len(self.values) - 1).bit_length()

    @cached_property
    def magnitudes(self) -> tuple[Fraction, ...]:
        """The finite values from 0 up, in the order of their codes."""
        return tuple(x for x in self.values if isinstance(x, Fraction) and x >= 0)

    @property
    def floating(self) -> bool:
        """Whether values have exponents that differ; those of one exponent bit have not."""
        return len(set(self.fields)) > 1

    @property
    def largest(self) -> Fraction:
        """The largest finite value."""
        return self.magnitudes[-1]

    @cached_property
    def bound(self) -> Fraction:
        """The largest magnitude of a code, whether or not encoding gives it."""
        return max(abs(x) for x in self.values if isinstance(x, Fraction))

    @cached_property
    def counts(self) -> tuple[int, ...]:
        """The same, counted in steps."""
        return tuple(int(x / self.step) for x in self.magnitudes)

    @property
    def step(self) -> Fraction:
        """The smallest step between magnitudes, of which all are multiples."""
        return self.magnitudes[1] - self.magnitudes[0]

    @cached_property
    def codes(self) -> dict[Value, int]:
        """The code of each value; of -0 that of 0 where it has none of its own."""
        codes = {value: code for code, value in enumerate(self.values)}
        codes.setdefault(Special.NEGATIVE_ZERO, codes[Fraction(0)])
        return codes

    def below(self, x: Fraction) -> int:
        """The place of the largest magnitude that is not above `x` >= 0."""
        return bisect_right(self.counts, floor(x / self.step)) - 1

    def nearest(self, x: Fraction) -> int:
        """The place of the magnitude nearest to `x` >= 0, ties to the even place or away from 0."""
        low = self.below(x)
        if low == len(self.magnitudes) - 1:
            return low
        beyond = 2 * x - self.magnitudes[low] - self.magnitudes[low + 1]
        return low + (beyond > 0 or (beyond == 0 and (self.away or low % 2 == 1)))


class Exponent(NamedTuple):
    """2^(code - bias) with bias 2^(bits - 1) - 1; all ones is NaN where `nan`."""

    group: int | str
    bits: int = 8
    rule: str = "floor"
    nan: bool = True


class Shift(NamedTuple):
    """2^-code."""

    group: int | str
    bits: int


class Integer(NamedTuple):
    """The code itself, from 1."""

    group: int | str
    bits: int


class Real(NamedTuple):
    """A positive floating-point number of the given fields; with or without a zero point.

    An unsigned one has no bit for a sign. One that is always normal has a hidden one in every code,
    and so no zero. Arithmetic "bf16" rounds the scale and its reciprocal to BF16.
    """

    group: int | str
    exponent_bits: int = 8
    fraction_bits: int = 23
    specials: str = "ieee"
    bias: int | None = None
    zero_point: bool = False
    signed: bool = True
    always_normal: bool = False
    arithmetic: str = "fp32"

    @property
    def bits(self) -> int:
        """Bits of a code."""
        return self.signed + self.exponent_bits + self.fraction_bits

    @property
    def single(self) -> bool:
        """Whether it is FP32."""
        return self[1:5] == (8, 23, "ieee", None) and self.signed


Level = Exponent | Shift | Integer | Real


class Definition(NamedTuple):
    """A block format.

    Args:
        element: the codes of values.
        levels: scales, fine to coarse. A group is a number of values, "channel" or "tensor".
        header: whether packed blocks begin with 16 bits, the exponent above two of the mode.
        choice: of the finest scales, "max", "four-over-six" or "mse".
        rows: rows of values that share the scales of the largest group that is a number: with more
            than one, such a group is a tile.
    """

    element: Element
    levels: tuple[Level, ...]
    header: bool = False
    choice: str = "max"
    rows: int = 1

    @property
    def block(self) -> int:
        """Values of a block: the largest group that is a number, 32 where there is none."""
        return max((x.group for x in self.levels if isinstance(x.group, int)), default=32)


def sign_magnitude(
    bits: int, unit: Fraction, zero_sign: bool = True, away: bool = False
) -> Element:
    """A sign above a magnitude of `bits` bits, in units."""
    positive = [q * unit for q in range(2**bits)]
    negative = [negated(x) for x in positive]
    return Element((*positive, *negative), bits - 1, zero_sign=zero_sign, away=away)


def twos_complement(bits: int, unit: Fraction, away: bool = False) -> Element:
    """Two's complement of `bits` bits, in units."""
    half = 2 ** (bits - 1)
    counts = [*range(half), *range(-half, 0)]
    return Element(tuple(q * unit for q in counts), bits - 2, zero_sign=False, away=away)


def unsigned(bits: int) -> Element:
    """An unsigned integer of `bits` bits."""
    return Element(tuple(map(Fraction, range(2**bits))), bits - 1, zero_sign=False)


@cache
def floating(
    e: int,
    m: int,
    specials: str,
    bias: int | None = None,
    signed: bool = True,
    always_normal: bool = False,
) -> Element:
    """A sign, e bits of a biased exponent and m of a fraction, with subnormal values.

    Without a sign, the exponent is on top. Where values are always normal, the field 0 is one as
    all others.

    `specials` is "ieee" where the largest exponent field holds infinities and NaN, "nan" where the
    magnitude of all ones alone is NaN, "none" where every code is a number. Numbers with one zero
    and one NaN, "fnuz" and "inuz", have a NaN in place of -0 or, without a sign, as the last code;
    "inuz" has infinities too, as the last of the other codes of each sign.
    """
    one_zero = specials in ("fnuz", "inuz")
    bias = 2 ** (e - 1) - (not one_zero) if bias is None else bias
    last = 2 ** (e + m) - 1
    values: list[Value] = []
    fields = []
    for code in range(2 ** (signed + e + m)):
        field, fraction = code >> m & 2**e - 1, code & 2**m - 1
        subnormal = field == 0 and not always_normal
        exponent = field + subnormal - bias
        significand = fraction + (0 if subnormal else 2**m)
        magnitude: Value = significand * power(exponent - m)
        if specials == "ieee" and field == 2**e - 1:
            magnitude = Special.NAN if fraction else Special.INFINITY
        if specials == "nan" and code % 2 ** (e + m) == last:
            magnitude = Special.NAN
        if specials == "inuz" and code % 2 ** (e + m) == last - (not signed):
            magnitude = Special.INFINITY
        if one_zero and code == (last + 1 if signed else last):
            magnitude = Special.NAN
        values.append(negated(magnitude) if code >> e + m else magnitude)
        fields.append(exponent)
    quiet = {"ieee": (2**e - 1 << m) + 2 ** (m - 1), "nan": last, "none": None}
    nan = (last + 1 if signed else last) if one_zero else quiet[specials]
    return Element(tuple(values), m, tuple(fields), nan)


NEGATED: Final[dict[Special, Value]] = {
    Special.NAN: Special.NAN,
    Special.INFINITY: Special.NEGATIVE_INFINITY,
    Special.NEGATIVE_INFINITY: Special.INFINITY,
    Special.NEGATIVE_ZERO: Fraction(0),
}


def negated(x: Value) -> Value:
    """-x, also of zeros, infinities and NaN."""
    if isinstance(x, Special):
        return NEGATED[x]
    return -x if x else Special.NEGATIVE_ZERO


@cache
def real_element(level: Real) -> Element:
    """The table of a real scale of 16 bits or fewer."""
    return floating(*level[1:5], level.signed, level.always_normal)


def real_value(code: int, level: Real) -> Value:
    """The value of a real scale."""
    return float_value(code, FP32) if level.single else real_element(level).values[code]


def real_code(x: Fraction, level: Real) -> int:
    """The real scale nearest to `x`, ties to even, for x up to the largest of them."""
    if level.single:
        return round_to_float(x, FP32)
    return real_element(level).nearest(x)


def real_range(level: Real) -> tuple[Fraction, Fraction]:
    """The smallest normal value of a real scale and the largest."""
    if level.single:
        return power(-126), power(128) - power(104)
    return power(real_element(level).fields[0]), real_element(level).magnitudes[-1]


def _ocp(e: int, m: int, specials: str, group: int = 32) -> Definition:
    return Definition(floating(e, m, specials), (Exponent(group),))


def _scaled(element: Element) -> Definition:
    return Definition(element, (Real("tensor"),))


def _bfp(m: int, k: int) -> Definition:
    return Definition(sign_magnitude(m, power(1 - m)), (Exponent(k),))


def _microexponents(m: int) -> Definition:
    element = sign_magnitude(m, power(1 - m))
    return Definition(element, (Shift(2, 1), Exponent(16)))


def _vsq(bits: int) -> Definition:
    return Definition(twos_complement(bits, power(0)), (Integer(16, 4), Real("channel")))


CATALOG: Final[dict[str, Definition]] = {
    "axs6": Definition(
        sign_magnitude(5, Fraction(1, 31), zero_sign=False), (Exponent(32, nan=False),), header=True
    ),
    "mx9": _microexponents(7),
    "mx6": _microexponents(4),
    "mx4": _microexponents(2),
    "mxfp8_e4m3": _ocp(4, 3, "nan"),
    "mxfp8_e5m2": _ocp(5, 2, "ieee"),
    "mxfp6_e3m2": _ocp(3, 2, "none"),
    "mxfp6_e2m3": _ocp(2, 3, "none"),
    "mxfp4": _ocp(2, 1, "none"),
    "mxfp4_16": _ocp(2, 1, "none", 16),
    "mxint8": Definition(twos_complement(8, power(-6)), (Exponent(32),)),
    "nvfp4": Definition(floating(2, 1, "none"), (Real(16, 4, 3, "nan"), Real("tensor"))),
    "nvfp4_ue5m3": Definition(floating(2, 1, "none"), (Real(16, 5, 3, "nan", signed=False),)),
    "hif4": Definition(
        sign_magnitude(3, power(0), away=True),
        (
            Shift(4, 1),
            Shift(8, 1),
            Real(64, 6, 2, "nan", 48, signed=False, always_normal=True, arithmetic="bf16"),
        ),
    ),
    "msfp16": _bfp(7, 16),
    "msfp12": _bfp(3, 16),
    "fp8_block": Definition(floating(4, 3, "nan"), (Real(128),), rows=128),
    "mxfp8_32x32": Definition(floating(4, 3, "nan"), (Exponent(32),), rows=32),
    "fp8_e4m3": _scaled(floating(4, 3, "nan")),
    "fp8_e5m2": _scaled(floating(5, 2, "ieee")),
    "fp8_e4m3fnuz": _scaled(floating(4, 3, "fnuz")),
    "fp8_e5m2fnuz": _scaled(floating(5, 2, "fnuz")),
    "int8": _scaled(twos_complement(8, power(0))),
    "int6": _scaled(twos_complement(6, power(0))),
    "int4": _scaled(twos_complement(4, power(0))),
    "uint8": Definition(unsigned(8), (Real("tensor", zero_point=True),)),
    "vsq4": _vsq(4),
    "vsq6": _vsq(6),
    "vsq8": _vsq(8),
}
"""The formats that have names."""
