"""The shared exponent as a function of the exponent fields and fractions of an input format."""

from axs6.golden.formats import Float, SignMagnitude
from axs6.golden.formats.catalog import AXS6_SCALE


def exponent_offset(dtype: Float) -> int:
    """Shared exponent minus exponent field, for a block whose largest value is normal."""
    return AXS6_SCALE.bias + 1 - dtype.bias


def deepest_subnormal(dtype: Float) -> int:
    """How far the shared exponent goes below that of field 1, for a block of subnormals.

    Down to the lowest significand bit for fp16; fp32 and bf16 reach exponent 0 after 2.
    """
    return min(dtype.fraction_bits, exponent_offset(dtype) + 1)


def reaches_zero(dtype: Float) -> bool:
    """Whether blocks of subnormals other than zero can have the shared exponent 0."""
    return deepest_subnormal(dtype) > exponent_offset(dtype)


def reaches_highest(dtype: Float) -> bool:
    """Whether blocks of finite values can have the shared exponent of infinity."""
    return dtype.exponent_special - 1 + exponent_offset(dtype) == AXS6_SCALE.largest_code


def deciding_bits(dtype: Float) -> int:
    """Highest fraction bits, which decide the shared exponent of a block of subnormals."""
    return deepest_subnormal(dtype) - reaches_zero(dtype)


def positions(dtype: Float, code: SignMagnitude) -> int:
    """Distances at which a value has a code that is not 0, those of subnormal blocks included."""
    return deepest_subnormal(dtype) + code.magnitude_bits + 1


def unused_exponent_bits(dtype: Float) -> int:
    """Bits of the shared exponent that always equal another one: fp16 reaches part of its range."""
    lowest = 1 + exponent_offset(dtype) - deepest_subnormal(dtype)
    highest = dtype.exponent_special - 1 + exponent_offset(dtype)
    reached = {0, AXS6_SCALE.largest_code, *range(lowest, highest + 1)}
    different = {tuple(e >> bit & 1 for e in reached) for bit in range(AXS6_SCALE.bits)}
    return AXS6_SCALE.bits - len(different)
