"""The numbers that define AXS-6: every width in the hardware comes from here."""

from collections.abc import Sequence
from dataclasses import dataclass
from enum import IntEnum, StrEnum
from math import prod
from numbers import Integral
from typing import Any, Final, Literal, get_args

EXPONENT_BITS: Final = 8
EXPONENT_MAX: Final = (1 << EXPONENT_BITS) - 1
EXPONENT_BIAS: Final = 127
MODE_BITS: Final = 2
HEADER_BITS: Final = 16
HEADER_USED: Final = EXPONENT_BITS + MODE_BITS
"""Bits of the header that say something; those above are 0."""
BLOCK_SIZES: Final = (8, 16, 32)


class Mode(IntEnum):
    """Layout of a block's payload: the two configuration bits of its header."""

    DENSE = 0
    SPARSE = 1
    HIGH_PRECISION = 2
    RESERVED = 3

    @property
    def label(self) -> str:
        """Its name in parameters and on the command line."""
        return self.name.lower()


AUTO: Final = "auto"
"""In place of a mode: the one that takes the fewest bytes, then the one with the least error."""


@dataclass(frozen=True)
class CodeFormat:
    """A code: a sign above a magnitude m, whose value is m / (2^n - 1) of the block's scale.

    Args:
        magnitude_bits: width n of the magnitude.
    """

    magnitude_bits: int

    @property
    def width(self) -> int:
        """Bits of a code."""
        return self.magnitude_bits + 1

    @property
    def largest(self) -> int:
        """Largest magnitude, of value 1."""
        return (1 << self.magnitude_bits) - 1

    @property
    def sign_bit(self) -> int:
        """The code of -0."""
        return 1 << self.magnitude_bits


DENSE_CODE: Final = CodeFormat(5)
HIGH_CODE: Final = CodeFormat(6)
LOW_CODE: Final = CodeFormat(4)
"""Codes of a high-precision block at even indices, and at odd ones."""

MAGNITUDE_BITS: Final = DENSE_CODE.magnitude_bits
MAGNITUDE_MAX: Final = DENSE_CODE.largest
CODE_BITS: Final = DENSE_CODE.width
SIGN_BIT: Final = DENSE_CODE.sign_bit

PRODUCT_MAX: Final = MAGNITUDE_MAX**2
PRODUCT_BITS: Final = PRODUCT_MAX.bit_length()
SUM_BITS: Final = 16
EXPONENT_SUM_BITS: Final = EXPONENT_BITS + 1
ACCUMULATOR_SCALE: Final = PRODUCT_BITS
"""The accumulator holds sums times 2^-10, which the division by 961/1024 at the end takes out."""


def code_formats(mode: Mode) -> tuple[CodeFormat, CodeFormat]:
    """Formats of the codes at even and at odd indices of a block."""
    return (HIGH_CODE, LOW_CODE) if mode is Mode.HIGH_PRECISION else (DENSE_CODE, DENSE_CODE)


def dropped_values(block: int) -> int:
    """Values of a sparse block that are not stored: the first so many whose magnitude is 0."""
    return block // 4


def payload_bits(block: int, mode: Mode) -> int:
    """Bits of a block after the header."""
    if mode is Mode.SPARSE:
        return block + (block - dropped_values(block)) * CODE_BITS
    return block // 2 * sum(code.width for code in code_formats(mode))


ALIGN_MAX: Final = 4096
"""Bytes to a multiple of which blocks may be padded, at most: a page of memory."""

AXES_MAX: Final = 64
VALUES_MAX: Final = 1 << 60
"""What a shape may have: as many axes as NumPy's, and values that it can count the bytes of."""

RANDOM_BITS: Final = 16
RANDOM_BITS_MAX: Final = 32
"""Random bits that stochastic rounding takes for each value: the default, and the most."""

RANDOM_SEED: Final = 0x9E3779B9
"""Default state of the first lane's shift register: ones and zeros in no order."""


class Rounding(StrEnum):
    """How a magnitude that falls between two codes is chosen."""

    NEAREST = "nearest"
    TOWARD_ZERO = "toward_zero"
    STOCHASTIC = "stochastic"


DETERMINISTIC: Final = (Rounding.NEAREST, Rounding.TOWARD_ZERO)
"""Roundings without random bits."""


class Accumulate(StrEnum):
    """How the sums of successive blocks become one FP32 result."""

    FP32 = "fp32"
    EXACT = "exact"


NonFinite = Literal["error", "saturate"]
"""What encoding does with NaN and infinities: refuse them, or give +0 and the largest code."""


@dataclass(frozen=True)
class FloatFormat:
    """A binary IEEE 754 style format with subnormals, infinities and NaN.

    Args:
        name: name on the command line and in manifests.
        exponent_bits: width of the biased exponent field.
        fraction_bits: width of the fraction field, without the hidden bit.
    """

    name: str
    exponent_bits: int
    fraction_bits: int

    @property
    def width(self) -> int:
        """Bits of a value."""
        return 1 + self.exponent_bits + self.fraction_bits

    @property
    def bias(self) -> int:
        """Exponent bias."""
        return (1 << (self.exponent_bits - 1)) - 1

    @property
    def exponent_special(self) -> int:
        """Exponent field of infinities and NaN."""
        return (1 << self.exponent_bits) - 1

    @property
    def infinity(self) -> int:
        """Bit pattern of +Inf."""
        return self.exponent_special << self.fraction_bits

    @property
    def max_finite(self) -> int:
        """Bit pattern of the largest finite value."""
        return self.infinity - 1

    @property
    def quiet_nan(self) -> int:
        """Bit pattern of the only NaN that the project produces: positive, quiet, no payload."""
        return self.infinity | 1 << (self.fraction_bits - 1)

    @property
    def sign_bit(self) -> int:
        """Bit pattern of -0.0."""
        return 1 << (self.width - 1)


FP64: Final = FloatFormat("fp64", 11, 52)
FP32: Final = FloatFormat("fp32", 8, 23)
BF16: Final = FloatFormat("bf16", 8, 7)
FP16: Final = FloatFormat("fp16", 5, 10)
INPUT_FORMATS: Final = {f.name: f for f in (FP32, BF16, FP16)}
OUTPUT_FORMATS: Final = {f.name: f for f in (FP32, BF16)}


def check_integer(name: str, value: int, low: int, high: int | None = None) -> int:
    """Return `value`, or raise ValueError unless it is an integer from `low` to `high`, if any."""
    if (
        isinstance(value, bool)
        or not isinstance(value, int)
        or value < low
        or (high is not None and value > high)
    ):
        reach = f"of at least {low}" if high is None else f"from {low} to {high}"
        raise ValueError(f"{name} must be an integer {reach}, not {value!r}")
    return value


def check_block(block: int) -> int:
    """Return `block`, or raise ValueError unless it is the integer 8, 16 or 32."""
    if not isinstance(block, Integral) or block not in BLOCK_SIZES:
        known = ", ".join(map(str, BLOCK_SIZES))
        raise ValueError(f"block must be one of {known}, not {block!r}")
    return int(block)


def check_shape(shape: Any) -> tuple[int, ...]:
    """Return a shape of at least one axis as integers, or raise ValueError if it is none.

    Axes of length 0 count as of length 1: NumPy has no larger arrays of no values.
    """
    axes = tuple(shape) if isinstance(shape, tuple | list) else ()
    if not axes or any(isinstance(n, bool) or not isinstance(n, Integral) or n < 0 for n in axes):
        raise ValueError(f"shape must be at least one non-negative integer, not {shape!r}")
    if len(axes) > AXES_MAX or prod(max(1, n) for n in axes) > VALUES_MAX:
        raise ValueError(f"shape must have at most {AXES_MAX} axes and 2^60 values, not {shape!r}")
    return tuple(int(n) for n in axes)


def check_rounding(rounding: str, known: Sequence[Rounding] = tuple(Rounding)) -> Rounding:
    """Return `rounding` as a `Rounding`, or raise ValueError naming the known ones."""
    if rounding not in known:
        raise ValueError(f"rounding must be one of {', '.join(known)}, not {rounding!r}")
    return Rounding(rounding)


def check_nonfinite(nonfinite: str) -> None:
    """Raise ValueError unless `nonfinite` is one of `NonFinite`."""
    known = get_args(NonFinite)
    if nonfinite not in known:
        raise ValueError(f"nonfinite must be one of {', '.join(known)}, not {nonfinite!r}")


def check_mode(mode: str) -> Mode | None:
    """Return the mode of a name, None for "auto", or raise ValueError naming the known ones."""
    if mode == AUTO:
        return None
    known = {each.label: each for each in Mode if each is not Mode.RESERVED}
    if mode not in known:
        raise ValueError(f"mode must be one of {', '.join(known)}, {AUTO}, not {mode!r}")
    return known[mode]


def check_random_bits(bits: int) -> int:
    """Return `bits`, or raise ValueError unless it is an integer from 1 to 32."""
    return check_integer("random_bits", bits, 1, RANDOM_BITS_MAX)
