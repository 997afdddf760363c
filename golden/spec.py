"""The numbers that define AXS-6: every width in the hardware comes from here."""

from collections.abc import Sequence
from enum import StrEnum
from typing import Final, Literal, get_args

from axs6.golden import modes
from axs6.golden.arguments import check_integer
from axs6.golden.formats.block_format import MODE_BLOCKS, Mode
from axs6.golden.formats.catalog import AXS6, AXS6_ELEMENT
from axs6.golden.formats.element import SignMagnitude
from axs6.golden.formats.floating import BF16, FP16, FP32
from axs6.golden.modes import dropped_values as dropped_values

assert AXS6.exponent is not None
EXPONENT_BITS: Final = AXS6.exponent.bits
EXPONENT_MAX: Final = AXS6.exponent.largest_code
EXPONENT_BIAS: Final = AXS6.exponent.bias
MODE_BITS: Final = 2
HEADER_USED: Final = EXPONENT_BITS + MODE_BITS
"""Bits of the header in use; those above are 0."""

BLOCK_SIZES: Final = MODE_BLOCKS

AUTO: Final = "auto"
"""In place of a mode: the one that takes the fewest bytes, then the one with the least error."""

DENSE_CODE: Final = AXS6_ELEMENT

MAGNITUDE_BITS: Final = DENSE_CODE.magnitude_bits
MAGNITUDE_MAX: Final = DENSE_CODE.largest_code
CODE_BITS: Final = DENSE_CODE.width
SIGN_BIT: Final = DENSE_CODE.sign_bit

PRODUCT_MAX: Final = MAGNITUDE_MAX**2
PRODUCT_BITS: Final = PRODUCT_MAX.bit_length()
SUM_BITS: Final = 16
EXPONENT_SUM_BITS: Final = EXPONENT_BITS + 1
ACCUMULATOR_SCALE: Final = PRODUCT_BITS
"""The accumulator holds sums times 2^-10; the division by 961/1024 at the end takes it out."""


def code_formats(mode: Mode) -> tuple[SignMagnitude, SignMagnitude]:
    """Formats of the codes at even and at odd indices of a block."""
    even, odd = modes.elements(AXS6, mode)
    assert isinstance(even, SignMagnitude)
    assert isinstance(odd, SignMagnitude)
    return even, odd


def payload_bits(block: int, mode: Mode) -> int:
    """Bits of a block after the header."""
    return modes.payload_bits(AXS6.with_block(block), mode)


ALIGN_MAX: Final = 4096
"""Blocks may be padded to a multiple of at most this many bytes: a page of memory."""

RANDOM_BITS: Final = 16
RANDOM_BITS_MAX: Final = 32
"""Random bits that stochastic rounding takes for each value: the default and the largest number."""

RANDOM_SEED: Final = 0x9E3779B9
"""Default state of the first lane's shift register: an irregular pattern of bits."""


class Rounding(StrEnum):
    """How a magnitude that falls between two codes is chosen."""

    NEAREST = "nearest"
    TOWARD_ZERO = "toward_zero"
    STOCHASTIC = "stochastic"


DETERMINISTIC: Final = (Rounding.NEAREST, Rounding.TOWARD_ZERO)
"""Roundings without random bits."""


NonFinite = Literal["error", "saturate", "propagate"]
"""What encoding does with NaN and infinities.

"error" refuses them, "saturate" gives +0 and the largest code, and "propagate" keeps them where
the format can.
"""

INPUT_DTYPES: Final = {f.name: f for f in (FP32, BF16, FP16)}
OUTPUT_DTYPES: Final = {f.name: f for f in (FP32, BF16)}


def check_block(block: int) -> int:
    """Return `block`, or raise ValueError unless it is the integer 8, 16 or 32."""
    return AXS6.with_block(block).block


def check_rounding(rounding: str, known: Sequence[Rounding] = tuple(Rounding)) -> Rounding:
    """Return `rounding` as a `Rounding`, or raise ValueError naming the known ones."""
    if rounding not in known:
        raise ValueError(f"rounding must be one of {', '.join(known)}, not {rounding!r}")
    return Rounding(rounding)


WITHOUT_NAN: Final = ("error", "saturate")
"""What encoding can do with NaN and infinities in a format without NaN."""


def check_nonfinite(nonfinite: str, known: Sequence[str] = get_args(NonFinite)) -> None:
    """Raise ValueError unless `nonfinite` is one of `known`."""
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
