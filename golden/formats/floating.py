"""Floating-point numbers: elements, real scales, and the dtypes of inputs and outputs."""

from dataclasses import dataclass
from enum import StrEnum

from axs6.golden.arguments import check_flag, check_integer
from axs6.golden.formats.codes import Codes, NotANumber

BIAS_MAX = 2047
"""Maximum magnitude of a bias."""


class Specials(StrEnum):
    """Codes of a floating-point element that are not numbers."""

    IEEE = "ieee"
    """The largest exponent field: infinities, and NaN with a fraction that is not 0."""
    NAN = "nan"
    """One magnitude, all bits 1: NaN."""
    NONE = "none"
    """None: every code is a number."""
    FNUZ = "fnuz"
    """The code of -0: NaN. There is no -0 and no infinity."""
    INUZ = "inuz"
    """The code of -0: NaN; the magnitude of all bits 1: infinities. There is no -0. Without a sign
    NaN has the code of all ones, and the infinity the code before it."""


UNSIGNED_ZERO = (Specials.FNUZ, Specials.INUZ)
"""Specials of numbers whose zero has no sign, with a bias of 2^(exponent_bits - 1)."""


@dataclass(frozen=True)
class Float(Codes):
    """A binary floating-point number: an element, a scale, or a dtype.

    Without a sign all bits are exponent and fraction; only scales are so. Without subnormal values
    the exponent field 0 is one as the others: there is no zero either.

    Args:
        exponent_bits: width of the biased exponent field.
        fraction_bits: width of the fraction field, without the hidden bit.
        specials: which codes are no numbers.
        exponent_bias: bias of the exponent field; by default 2^(exponent_bits - 1) if the zero has
            no sign, and one less otherwise.
        signed: whether the top bit is a sign.
        subnormals: whether values of the exponent field 0 are zero and subnormal; numbers with a
            sign always have them.

    Raises:
        ValueError: a width or the bias is out of range, the specials unknown, those of an unsigned
            number "ieee" or "fnuz", a flag no bool, or a signed number has no subnormal values.
    """

    exponent_bits: int
    fraction_bits: int
    specials: Specials = Specials.IEEE
    exponent_bias: int | None = None
    signed: bool = True
    subnormals: bool = True

    def __post_init__(self) -> None:
        check_integer("exponent_bits", self.exponent_bits, 1, 11)
        check_integer("fraction_bits", self.fraction_bits, 1, 52)
        if self.specials not in tuple(Specials):
            known = ", ".join(Specials)
            raise ValueError(f"specials must be one of {known}, not {self.specials!r}")
        object.__setattr__(self, "specials", Specials(self.specials))
        check_flag("signed", self.signed)
        if not self.signed and self.specials in (Specials.IEEE, Specials.FNUZ):
            raise ValueError(
                f"specials of an unsigned number must be nan, none or inuz, not {self.specials}"
            )
        check_flag("subnormals", self.subnormals)
        if self.signed and not self.subnormals:
            raise ValueError("a number with a sign must have subnormal values")
        if self.exponent_bias is not None:
            check_integer("exponent_bias", self.exponent_bias, -BIAS_MAX, BIAS_MAX)
        if self.exponent_bias == self._usual_bias:
            object.__setattr__(self, "exponent_bias", None)

    @property
    def _usual_bias(self) -> int:
        return (1 << self.exponent_bits - 1) - (self.specials not in UNSIGNED_ZERO)

    @property
    def name(self) -> str:
        """Its name as a dtype, such as "fp32"; its fields if it has none."""
        unsigned = "" if self.signed else "u"
        return NAMES.get(self, f"{unsigned}e{self.exponent_bits}m{self.fraction_bits}")

    @property
    def magnitude_bits(self) -> int:
        """Bits of a value without its sign."""
        return self.exponent_bits + self.fraction_bits

    @property
    def width(self) -> int:
        """Bits of a value."""
        return self.magnitude_bits + self.signed

    @property
    def bias(self) -> int:
        """Exponent bias."""
        return self._usual_bias if self.exponent_bias is None else self.exponent_bias

    @property
    def first_normal(self) -> int:
        """The smallest exponent field of normal values."""
        return int(self.subnormals)

    @property
    def emin(self) -> int:
        """Exponent of the smallest normal value."""
        return self.first_normal - self.bias

    @property
    def sign_bit(self) -> int:
        """The sign alone: bit pattern of -0.0, or of NaN in its place; 0 if there is no sign."""
        return 1 << self.magnitude_bits if self.signed else 0

    @property
    def signed_zero(self) -> bool:
        """Whether -0.0 is encoded with its sign."""
        return self.has_negative_zero

    @property
    def has_negative_zero(self) -> bool:
        """Whether a code is -0."""
        return self.specials not in UNSIGNED_ZERO

    @property
    def exponent_special(self) -> int:
        """The largest exponent field, that of infinities and NaN with specials "ieee"."""
        return (1 << self.exponent_bits) - 1

    @property
    def infinity(self) -> int:
        """Bit pattern of +Inf, if there is one."""
        if self.specials is Specials.INUZ:
            return (1 << self.magnitude_bits) - (1 if self.signed else 2)
        return self.exponent_special << self.fraction_bits

    @property
    def largest_code(self) -> int:
        """Bit pattern of the largest finite value."""
        if self.has_infinity:
            return self.infinity - 1
        return (1 << self.magnitude_bits) - (2 if self.specials is Specials.NAN else 1)

    @property
    def max_finite(self) -> int:
        """Bit pattern of the largest finite value."""
        return self.largest_code

    @property
    def quiet_nan(self) -> int:
        """Bit pattern of the only NaN that the project produces.

        Among several, that is the positive quiet one without a payload.
        """
        if self.specials in UNSIGNED_ZERO and self.signed:
            return self.sign_bit
        if self.specials is not Specials.IEEE:
            return (1 << self.magnitude_bits) - 1
        return self.infinity | 1 << self.fraction_bits - 1

    @property
    def has_nan(self) -> bool:
        """Whether a code is NaN."""
        return self.specials is not Specials.NONE

    @property
    def has_infinity(self) -> bool:
        """Whether a code is an infinity."""
        return self.specials in (Specials.IEEE, Specials.INUZ)

    @property
    def has_normal(self) -> bool:
        """Whether a finite value is normal."""
        return self.largest_code >= self.smallest_normal

    @property
    def smallest_normal(self) -> int:
        """Bit pattern of the smallest normal value."""
        return self.first_normal << self.fraction_bits

    def integer(self, code: int) -> int | NotANumber:
        """The signed value of a code, counted in `unit`, a step of the smallest normal values."""
        magnitude = code & (1 << self.magnitude_bits) - 1
        negative = bool(code & self.sign_bit)
        if self.has_nan and code == self.quiet_nan:
            return NotANumber.NAN
        if magnitude > self.largest_code:
            if self.has_infinity and magnitude == self.infinity:
                return NotANumber.NEGATIVE_INFINITY if negative else NotANumber.INFINITY
            return NotANumber.NAN
        low = self.first_normal
        above = max(magnitude >> self.fraction_bits, low) - low
        significand = magnitude + (1 - low - above << self.fraction_bits)
        value = significand << above
        return -value if negative else value


FP64 = Float(11, 52)
FP32 = Float(8, 23)
BF16 = Float(8, 7)
FP16 = Float(5, 10)
NAMES = {FP64: "fp64", FP32: "fp32", BF16: "bf16", FP16: "fp16"}
"""The names of dtypes of inputs and outputs."""

INPUT_DTYPES = {f.name: f for f in (FP32, BF16, FP16)}
OUTPUT_DTYPES = {f.name: f for f in (FP32, BF16)}
"""Dtypes of values that hardware encodes, and that it decodes to, by their names."""

E5M2 = Float(5, 2)
E4M3 = Float(4, 3, Specials.NAN)
E3M2 = Float(3, 2, Specials.NONE)
E2M3 = Float(2, 3, Specials.NONE)
E2M1 = Float(2, 1, Specials.NONE)
"""Elements of the OCP formats; ml_dtypes and torch call them float8_e5m2, float8_e4m3fn,
float6_e3m2fn, float6_e2m3fn and float4_e2m1fn."""

E4M3FNUZ = Float(4, 3, Specials.FNUZ)
E5M2FNUZ = Float(5, 2, Specials.FNUZ)
"""Elements that ml_dtypes and torch call float8_e4m3fnuz and float8_e5m2fnuz."""


def p3109(width: int, precision: int, signed: bool, infinities: bool) -> Float:
    """The number that IEEE P3109 calls Binary{width}p{precision}{s or u}{e or f}.

    Args:
        width: of the code.
        precision: bits of the significand, with the hidden one.
        signed: whether there are negative numbers: "s", otherwise "u".
        infinities: whether there are infinities: "e", otherwise "f".

    Raises:
        ValueError: the width or the precision is out of range. The precision 1, whose ties go to
            the even exponent, is not supported.
    """
    check_integer("width", width, 3, 16)
    check_integer("precision", precision, 2, width - signed)
    exponent_bits = width - signed - precision + 1
    if signed or infinities:
        specials = Specials.INUZ if infinities else Specials.FNUZ
        return Float(exponent_bits, precision - 1, specials, signed=signed)
    return Float(exponent_bits, precision - 1, Specials.NAN, 1 << exponent_bits - 1, signed)


UE5M3 = Float(5, 3, Specials.NAN, signed=False)
"""Scale of NVFP4 without a scale of the tensor; UE4M3 and UE6M2 have other widths alone."""

HIF4_SCALE = Float(6, 2, Specials.NAN, 48, signed=False, subnormals=False)
"""Scale of HiF4, which its definition calls E6M2: from 2^-48 to 1.5 * 2^15."""
