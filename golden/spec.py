"""Names that move: users import them from where they are defined."""

from axs6.golden.formats.block_format import MODE_BLOCKS
from axs6.golden.formats.catalog import AXS6, AXS6_ELEMENT, AXS6_SCALE
from axs6.golden.formats.element import SignMagnitude
from axs6.golden.formats.floating import INPUT_DTYPES as INPUT_DTYPES
from axs6.golden.formats.floating import OUTPUT_DTYPES as OUTPUT_DTYPES
from axs6.golden.lfsr import RANDOM_SEED as RANDOM_SEED
from axs6.golden.modes import Mode, elements
from axs6.golden.nonfinite import WITHOUT_NAN as WITHOUT_NAN
from axs6.golden.nonfinite import NonFinite as NonFinite
from axs6.golden.nonfinite import check_nonfinite as check_nonfinite
from axs6.golden.rounding import DETERMINISTIC as DETERMINISTIC
from axs6.golden.rounding import RANDOM_BITS as RANDOM_BITS
from axs6.golden.rounding import Rounding as Rounding
from axs6.golden.rounding import check_random_bits as check_random_bits
from axs6.golden.rounding import check_rounding as check_rounding

BLOCK_SIZES = MODE_BLOCKS
EXPONENT_MAX = AXS6_SCALE.largest_code
EXPONENT_BIAS = AXS6_SCALE.bias
DENSE_CODE = AXS6_ELEMENT
MAGNITUDE_BITS = AXS6_ELEMENT.magnitude_bits
MAGNITUDE_MAX = AXS6_ELEMENT.largest_code
SIGN_BIT = AXS6_ELEMENT.sign_bit
PRODUCT_MAX = MAGNITUDE_MAX**2
ACCUMULATOR_SCALE = PRODUCT_MAX.bit_length()


def check_block(block: int) -> int:
    """Return `block`, or raise ValueError unless it is the integer 8, 16 or 32."""
    return AXS6.with_block(block).block


def code_formats(mode: Mode) -> tuple[SignMagnitude, SignMagnitude]:
    """Formats of the codes at even and at odd indices of a block."""
    even, odd = elements(AXS6, mode)
    assert isinstance(even, SignMagnitude)
    assert isinstance(odd, SignMagnitude)
    return even, odd
