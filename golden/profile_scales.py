"""Real scales under a profile: of a tensor, and the casts of all to their dtypes."""

from fractions import Fraction
from typing import Any, Literal, NamedTuple

import numpy as np
from numpy.typing import NDArray

from axs6.golden.factors import divisor
from axs6.golden.floats import round_to_float
from axs6.golden.formats import BF16, FP16, FP32, BlockFormat, Float
from axs6.golden.profile import Cast, EncodingSteps, KeptNumber, TensorScale
from axs6.golden.scaling import SMALLEST_SCALE, Values32, as_bf16, as_wide, code_dtype

LARGEST = np.float32(FP32.largest)
ONE = np.float32(1)
HALF = np.float32(0.5)


class TensorNumbers(NamedTuple):
    """The scale of a tensor, its inverse, and the number that is kept: each exact FP32."""

    scale: np.float32
    inverse: np.float32
    kept: np.float32


def number(x: Fraction) -> np.float32:
    """fp32(x), by way of a float64 number, as of constants in libraries."""
    return np.float32(float(x))


def narrowed(x: Values32, dtype: Float) -> Values32:
    """FP32 values, rounded to the nearest value of a dtype and widened again."""
    if dtype == FP32:
        return x
    if dtype == FP16:
        return x.astype(np.float16).astype(np.float32)
    assert dtype == BF16
    return np.where(np.isnan(x), x, as_bf16(x))


def tensor_scale(
    fmt: BlockFormat,
    steps: EncodingSteps,
    amax: np.float32,
    dtype: Float,
    outer: float | None = None,
) -> TensorNumbers:
    """The scale of a tensor with this largest magnitude.

    Args:
        fmt: the format; the scale is its outermost.
        steps: of the library.
        amax: the largest magnitude; `outer` comes in place of what follows from it.
        dtype: of the values.
        outer: the number that the library keeps.
    """
    how = steps.tensor
    within = dtype if steps.narrow else FP32
    if outer is not None and how.kept is KeptNumber.AMAX:
        amax, outer = np.float32(outer), None
    with np.errstate(all="ignore"):
        if outer is None:
            found = _from_amax(fmt, how, amax, within)
        else:
            found = np.float32(outer)
            if how.inverse and how.kept is KeptNumber.SCALE:
                found = ONE / found
        other = ONE / found
    scale, inverse = (other, found) if how.inverse else (found, other)
    kept = {KeptNumber.SCALE: scale, KeptNumber.INVERSE: inverse, KeptNumber.AMAX: amax}[how.kept]
    return TensorNumbers(scale, inverse, kept)


def _from_amax(fmt: BlockFormat, how: TensorScale, amax: np.float32, within: Float) -> np.float32:
    """The scale of a tensor, or its inverse, from the largest magnitude."""
    top = number(divisor(fmt, fmt.levels[-1]) if how.top is None else how.top)
    quotient = np.asarray(top / amax if how.inverse else amax / top)
    found = np.float32(narrowed(quotient, within))
    if how.inverse:
        if np.isinf(found) and how.infinite is not None:
            found = number(how.infinite)
        found = min(found, number(how.most))
    elif how.held:
        found = min(max(found, SMALLEST_SCALE), LARGEST)
    if how.empty is not None and (amax == 0 or found == 0):
        return _empty(how.empty, within)
    return found


def _empty(what: Fraction | Literal["epsilon"], dtype: Float) -> np.float32:
    if isinstance(what, str):
        return np.float32(2.0**-dtype.fraction_bits)
    return number(what)


def cast(dtype: Float, x: Values32, how: Cast) -> NDArray[Any]:
    """Codes of numbers from 0 to the largest of a dtype."""
    if how is Cast.EVEN:
        wide = as_wide(x.view(np.uint32))
        return round_to_float(
            dtype, wide.negative, wide.significand >> np.uint64(2), wide.exponent + 2
        ).astype(code_dtype(dtype.width))
    normal = 1 << dtype.fraction_bits
    shift = FP32.fraction_bits - dtype.fraction_bits
    bits = x.view(np.uint32).astype(np.int64)
    rounded = (bits + (1 << shift - 1) >> shift) - ((FP32.bias - dtype.bias) << dtype.fraction_bits)
    low = (x / number(dtype.unit) + HALF).astype(np.int64)
    codes = np.where(x < number(dtype.unit * normal), np.minimum(low, normal - 1), rounded)
    last = dtype.exponent_special << dtype.fraction_bits
    return np.where(codes >= last, dtype.largest_code, codes).astype(code_dtype(dtype.width))
