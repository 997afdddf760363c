"""Block formats by their public definitions: elements as tables of values, and levels of scales.

Nothing comes from the model or from `axs6.golden.formats`; what the definitions say is stated
again: OCP MX v1.0, OCP FP8, the shared-microexponents paper (BFP, MSFP,
MX9, MX6, MX4, VSQ: its Tables I and II), NVFP4, HiF4 (arXiv 2602.11287), NF4 (bitsandbytes), IF4
and RaZeR (their papers and programs).
"""

from bisect import bisect_right
from collections.abc import Sequence
from dataclasses import dataclass
from fractions import Fraction
from functools import cache, cached_property
from math import floor, gcd, lcm
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
        listed: the codes that are written, where values are listed in any order; none elsewhere.
    """

    values: Table
    precision: int
    fields: tuple[int, ...] = ()
    nan: int | None = None
    zero_sign: bool = True
    away: bool = False
    listed: tuple[int, ...] = ()

    @property
    def width(self) -> int:
        """Bits of a code."""
        return (len(self.values) - 1).bit_length()

    @cached_property
    def magnitudes(self) -> tuple[Fraction, ...]:
        """The finite values from 0 up, in the order of their codes; listed ones without signs."""
        if self.listed:
            return tuple(sorted({abs(x) for x, _ in self.side(1) + self.side(-1)}))
        return tuple(x for x in self.values if isinstance(x, Fraction) and x >= 0)

    def side(self, sign: int) -> list[tuple[Fraction, int]]:
        """The listed values of a sign, from 0 on, with their codes."""
        found = [(x, code) for code in self.listed if isinstance(x := self.values[code], Fraction)]
        return sorted([pair for pair in found if sign * pair[0] >= 0], key=lambda x: abs(x[0]))

    @cached_property
    def sides(self) -> dict[bool, tuple[list[Fraction], list[int]]]:
        """Magnitudes and codes of the listed values from 0 on, and of those from 0 down (True)."""
        found = {}
        for negative, sign in ((False, 1), (True, -1)):
            pairs = self.side(sign)
            found[negative] = ([abs(x) for x, _ in pairs], [code for _, code in pairs])
        return found

    @cached_property
    def unit(self) -> Fraction:
        """Of which all values are multiples: the smallest step; of listed ones the largest such."""
        if not self.listed:
            return self.magnitudes[1] - self.magnitudes[0]
        common = lcm(*(x.denominator for x in self.magnitudes))
        return Fraction(gcd(*(int(x * common) for x in self.magnitudes)), common)

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
        """The same, counted in units."""
        return tuple(int(x / self.unit) for x in self.magnitudes)

    @cached_property
    def codes(self) -> dict[Value, int]:
        """The code of each value; of -0 that of 0 where it has none of its own."""
        codes = {value: code for code, value in enumerate(self.values)}
        codes.setdefault(Special.NEGATIVE_ZERO, codes[Fraction(0)])
        return codes

    @property
    def zero(self) -> int:
        """The code of 0."""
        return self.side(1)[0][1] if self.listed else self.codes[Fraction(0)]

    def below(self, x: Fraction) -> int:
        """The place of the largest magnitude that is not above `x` >= 0."""
        return bisect_right(self.counts, floor(x / self.unit)) - 1

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
    and so no zero. Arithmetic "bf16" rounds the scale and its reciprocal to BF16. With `selects`
    the sign bit is no sign, but says which of two elements a group has.
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
    selects: bool = False

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
        second: the element of groups whose finest scale selects it.
    """

    element: Element
    levels: tuple[Level, ...]
    header: bool = False
    choice: str = "max"
    rows: int = 1
    second: Element | None = None

    @property
    def floating(self) -> bool:
        """Whether products have exponents of elements; those that scales select are integers."""
        return self.element.floating and self.second is None

    @property
    def unit(self) -> Fraction:
        """The largest of which all values of elements are multiples."""
        units = [x.unit for x in (self.element, self.second) if x]
        common = lcm(*(x.denominator for x in units))
        return Fraction(gcd(*(int(x * common) for x in units)), common)

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


def listed(values: Sequence[Fraction | None]) -> Element:
    """A value for each code; None for codes that are not written, which are read as 0."""
    written = tuple(code for code, x in enumerate(values) if x is not None)
    width = len(values).bit_length() - 1
    return Element(tuple(x or Fraction(0) for x in values), width, zero_sign=False, listed=written)


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
    if level.selects:
        code %= 2 ** (level.bits - 1)
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


NORMAL: Final = (
    *(-1, -0.6961928009986877, -0.5250730514526367, -0.39491748809814453, -0.28444138169288635),
    *(-0.18477343022823334, -0.09105003625154495, 0, 0.07958029955625534, 0.16093020141124725),
    *(0.24611230194568634, 0.33791524171829224, 0.44070982933044434, 0.5626170039176941),
    *(0.7229568362236023, 1),
)
"""The FP32 numbers of NF4 as bitsandbytes writes them."""


def _normal(step: Fraction | None = None) -> Definition:
    """NF4, or its values to the nearest multiples of a step."""
    numbers = [float_value(round_to_float(Fraction(x), FP32), FP32) for x in NORMAL]
    values = [x for x in numbers if isinstance(x, Fraction)]
    rounded = values if step is None else [round(x / step) * step for x in values]
    return Definition(listed(rounded), (Real(64),))


SEVENTHS: Final = (*range(8), None, *range(-7, 0))
"""Codes of INT4 as integers; -8 is never written."""


def _remapped(special: int) -> Element:
    """E2M1 with a special value in place of -0."""
    values = floating(2, 1, "none").values
    return listed([x if isinstance(x, Fraction) else Fraction(special) for x in values])


def _either(first: Element, second: Element) -> Definition:
    """NVFP4 in which the sign of a block's scale says which of two elements its values have."""
    block = Real(16, 4, 3, "nan", selects=True)
    return Definition(first, (block, Real("tensor")), second=second)


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
    "nf4": _normal(),
    "nf4q6": _normal(power(-6)),
    "if4": _either(
        floating(2, 1, "none"),
        listed([None if x is None else x * Fraction(6, 7) for x in SEVENTHS]),
    ),
    "razer": _either(_remapped(5), _remapped(-5)),
}
"""The formats that have names."""
