"""Real and integer scales of all levels, and the scales of channels and the tensor for each row."""

from dataclasses import dataclass
from fractions import Fraction
from typing import Any

import numpy as np
from numpy.typing import NDArray

from axs6.golden.finite import Largest
from axs6.golden.floats import Wide
from axs6.golden.formats import FP32, BlockFormat, Float, Integer, Level, Real, ScaleChoice
from axs6.golden.formats.codes import floor_log2
from axs6.golden.scaling import (
    Values32,
    as_bf16,
    as_wide,
    code_dtype,
    real_scales,
    rounded_product,
    rounded_quotient,
    rounded_sum,
    spread,
)

FOUR_OVER_SIX = Fraction(3, 2)
"""The scale by which a magnitude becomes 4, over the one by which it becomes 6."""


def factors(fmt: BlockFormat) -> tuple[Level, ...]:
    """Levels of real and integer scales, coarse to fine."""
    return tuple(x for x in fmt.levels[::-1] if isinstance(x.scale, Real | Integer))


def divisor(fmt: BlockFormat, level: Level) -> Fraction:
    """The largest magnitude of a group over its real scale.

    This is the largest element times the largest factor of the next finer scale; where that one may
    be 1.5 times larger, times the largest power of two that leaves room for it.
    """
    chain = factors(fmt)
    finer = chain[chain.index(level) + 1 :]
    largest = finer[0].scale.largest if finer else Fraction(1)
    if finer and fmt.choice is ScaleChoice.FOUR_OVER_SIX and finer[0] == fmt.levels[0]:
        largest = Fraction(2) ** floor_log2(largest / FOUR_OVER_SIX)
    return fmt.element.largest * largest


@dataclass(frozen=True)
class Factor:
    """The real and integer scales found so far.

    Args:
        above: their values, coarse to fine, each (rows or 1, groups).
        reciprocal: FP32 numbers that values are multiplied by, of the finest shape.
    """

    above: tuple[Values32, ...]
    reciprocal: Values32

    @classmethod
    def one(cls) -> "Factor":
        """No scale."""
        return cls((), np.ones((1, 1), np.float32))

    def find(
        self, fmt: BlockFormat, level: Level, largest: Largest, given: Values32 | None = None
    ) -> tuple[NDArray[Any], "Factor"]:
        """Codes of a level of real or integer scales, and the factor with it.

        Args:
            fmt: the format.
            level: one of its levels.
            largest: the largest magnitudes of its groups, (rows, groups).
            given: values in place of those that follow from the largest magnitudes.
        """
        scale, arithmetic = level.scale, FP32
        codes: NDArray[Any]
        if isinstance(scale, Integer):
            step = spread(self.above[0], largest.shape[1])
            codes = largest.ratio(fmt.element.largest, step, scale.largest_code)
            value, codes = codes.astype(np.float32), codes.astype(code_dtype(scale.bits))
        else:
            assert isinstance(scale, Real)
            quotient = self.quotient(fmt, level, largest) if given is None else given
            codes, value = real_scales(scale, quotient, largest.zero & (given is None))
            arithmetic = scale.arithmetic
        return codes, self.times(value, arithmetic)

    def quotient(self, fmt: BlockFormat, level: Level, largest: Largest) -> Values32:
        """The real scales of a level, before they are limited and rounded to their dtype."""
        by = divisor(fmt, level)
        if isinstance(level.scale, Real) and level.scale.arithmetic != FP32:
            return as_bf16(largest.product(as_bf16(np.array(float(1 / by), np.float32))))
        quotient = largest.quotient(by)
        with np.errstate(over="ignore"):
            for x in self.above:
                quotient = quotient / spread(x, largest.shape[1])
        return quotient

    def times(self, value: Values32, arithmetic: Float = FP32) -> "Factor":
        """The factor with the scales of one more level, (rows, groups), in their arithmetic."""
        groups = value.shape[1]
        above = [spread(x, groups) for x in self.above]
        with np.errstate(over="ignore"):  # infinite ones are allowed
            reciprocal = np.divide(spread(self.reciprocal, groups), value, dtype=np.float32)
        if arithmetic != FP32:
            reciprocal = as_bf16(reciprocal)
        return Factor((*above, value), reciprocal)


@dataclass(frozen=True)
class Outer:
    """The scales of channels and the tensor for each row, all of shape (rows, 1) or (1, 1).

    Args:
        factor: real scales.
        exponent: exponents of scales, where an exponent scale is not of blocks.
        zero_point: codes of the value 0.
    """

    factor: Factor
    exponent: NDArray[np.int16] | None = None
    zero_point: NDArray[np.int16] | None = None

    def of_rows(self, rows: NDArray[np.intp]) -> "Outer":
        """The same for some of the rows."""

        def some(x: Any) -> Any:
            return x if x is None or len(x) == 1 else x[rows]

        above = tuple(some(x) for x in self.factor.above)
        factor = Factor(above, some(self.factor.reciprocal))
        return Outer(factor, some(self.exponent), some(self.zero_point))


def zero_point_scales(
    fmt: BlockFormat, low: Wide, high: Wide, given: Values32 | None = None
) -> tuple[NDArray[np.uint32], NDArray[np.int16], Factor]:
    """Codes of scales with a zero point, the zero points, and the factor, each (rows, groups).

    Args:
        fmt: the format.
        low, high: the largest magnitudes below and above 0, (rows, groups).
        given: scales in place of those that follow from them.
    """
    scale, most = fmt.levels[0].scale, fmt.element.largest_code
    assert isinstance(scale, Real)
    reach = as_wide(np.minimum(rounded_sum(low, high), np.uint32(FP32.max_finite)))
    quotient = rounded_quotient(reach, Fraction(most)).view(np.float32)
    nothing = (low.significand == 0) & (high.significand == 0) & (given is None)
    codes, value = real_scales(scale, quotient if given is None else given, nothing)
    reciprocal = np.float32(1) / value
    place = np.minimum(rounded_product(low, reciprocal).view(np.float32), np.float32(most))
    zero = np.rint(place).astype(np.int16)
    return codes, np.clip(zero, 0, most), Factor((value,), reciprocal)
