"""Scales that stand outside of the terms of dot products, and multiply their sums."""

from dataclasses import dataclass, replace
from typing import Any, Self

import numpy as np
from numpy.typing import NDArray

from axs6.golden import fp32, kulisch
from axs6.golden.blocks import Blocks
from axs6.golden.floats import split
from axs6.golden.formats import FP32, Exponent, Real, Scale
from axs6.golden.operands import Integers
from axs6.golden.terms import DIGIT_BITS, digits_of, products_of_digits

SIGNIFICAND_BITS = 2 * (FP32.fraction_bits + 1)
"""Bits of the significand of a channel's scale times a tensor's."""


@dataclass(frozen=True)
class ScaleFactor:
    """The product of the scales of a row: significand * 2^exponent, exactly.

    Args:
        significand: int64 of shape (rows, 1) or (1, 1).
        exponent: int64 of that shape.
        nan: where it is NaN instead.
    """

    significand: Integers
    exponent: Integers
    nan: NDArray[np.bool_]

    @classmethod
    def of(cls, blocks: Blocks) -> Self:
        """The scales of channels and the tensor; 1 for formats without them."""
        product = cls.one()
        for level, codes in zip(blocks.format.levels[::-1], blocks.scales, strict=True):
            if not level.blocked:
                product = product.times(level.scale, codes.reshape(-1, 1))
        return product

    @classmethod
    def of_blocks(cls, blocks: Blocks) -> list[Self]:
        """The scales of each block of the rows of a matrix, in a format with one for each."""
        (level,), codes = blocks.format.blocked, blocks.scales[-1]
        return [cls.one().times(level.scale, each[:, None]) for each in codes.T]

    @classmethod
    def one(cls) -> Self:
        """1 for all rows."""
        ones = np.ones((1, 1), np.int64)
        return cls(ones, ones * 0, ones == 0)

    def times(self, scale: Scale, codes: NDArray[Any]) -> Self:
        """The product with the scales of one more level."""
        significand, exponent = self.significand, self.exponent
        if isinstance(scale, Exponent):
            exponent = exponent + (codes.astype(np.int64) - scale.bias)
        else:
            assert isinstance(scale, Real)
            codes = scale.number(codes)
            _, own, lowest = split(scale.dtype, codes)
            significand, exponent = significand * own.view(np.int64), exponent + lowest
        nan = self.nan | (codes == scale.nan_code if scale.nan_code is not None else False)
        return type(self)(*np.broadcast_arrays(significand, exponent, nan))

    def product(self, other: "ScaleFactor", rows: slice, columns: slice) -> fp32.Bits:
        """FP32 patterns of this[m] * other[n], rounded once to nearest even; the canonical NaN."""
        b = other._rows(columns)
        across = replace(b, significand=b.significand.T, exponent=b.exponent.T, nan=b.nan.T)
        return self._rows(rows).products(across)

    def products(self, other: "ScaleFactor") -> fp32.Bits:
        """FP32 patterns of this * other, whose shapes broadcast."""
        left, right = (digits_of(x.significand, SIGNIFICAND_BITS) for x in (self, other))
        digits = products_of_digits(left, right, np.multiply)
        negative, top, exponent, sticky = kulisch.leading(digits, DIGIT_BITS)
        exponent = exponent + self.exponent + other.exponent
        bits = fp32.round_to_fp32(negative, top, exponent, sticky)
        return np.where(self.nan | other.nan, np.uint32(FP32.quiet_nan), bits)

    def _rows(self, rows: slice) -> Self:
        if len(self.nan) == 1:
            return self
        return replace(
            self,
            significand=self.significand[rows],
            exponent=self.exponent[rows],
            nan=self.nan[rows],
        )
