"""Blocks as the operands of dot products: integers under exponents, without any rounding."""

from dataclasses import dataclass, replace
from functools import cached_property
from typing import Any, Self

import numpy as np
from numpy.typing import NDArray

from axs6.golden import fp32
from axs6.golden.blocks import Blocks
from axs6.golden.floats import bit_length, split
from axs6.golden.formats import BlockFormat, Exponent, Integer, Level, Real, Scale, Shift
from axs6.golden.scaling import spread

Integers = NDArray[np.int64]

INTEGER_BITS = 62
"""Bits of the integers of an operand, at most."""


@dataclass(frozen=True)
class IntegerForm:
    """How the values of a format are integers: integer * 2^(exponent + offset) / divisor.

    The integers hold what a block has but exponents: the element, the significands of real scales,
    integer scales, and shifts, counted from the largest one. The exponents are sums of exponent
    fields, from 0. Scales of channels and tensors stand outside.

    Args:
        format: the block format.
        apart: whether the exponents of elements are among the exponents, and their significands in
            the integers; or else each element is an integer of its units.
        scaled: whether scales of blocks stand outside too, for an accumulator that multiplies by
            them.

    Raises:
        ValueError: the integers have more than 62 bits.
    """

    format: BlockFormat
    apart: bool
    scaled: bool = False

    def __post_init__(self) -> None:
        bits = self.bound.bit_length()
        if bits > INTEGER_BITS:
            raise ValueError(
                f"dot products need values of up to {INTEGER_BITS} bits, and those of "
                f"{self.format} have {bits}"
            )

    @property
    def levels(self) -> tuple[Level, ...]:
        """The scales that values have here, fine to coarse."""
        return () if self.scaled else self.format.blocked

    @cached_property
    def _reals(self) -> list[Real]:
        return [x.scale for x in self.levels if isinstance(x.scale, Real)]

    @cached_property
    def _integers(self) -> list[Integer]:
        return [x.scale for x in self.levels if isinstance(x.scale, Integer)]

    @cached_property
    def _exponents(self) -> list[Exponent]:
        return [x.scale for x in self.levels if isinstance(x.scale, Exponent)]

    @cached_property
    def shift_max(self) -> int:
        """The largest sum of shifts."""
        return sum(x.scale.largest_code for x in self.levels if isinstance(x.scale, Shift))

    @property
    def divisor(self) -> int:
        """The divisor of values."""
        return self.format.element.divisor

    @property
    def span(self) -> int:
        """Lanes with one exponent."""
        if self.apart:
            return 1
        groups = [int(x.group) for x in self.levels if isinstance(x.scale, Exponent | Real)]
        return min(groups, default=self.format.block)

    @cached_property
    def elements(self) -> Integers:
        """The integer of each code."""
        return self.format.element.integers >> self.fields

    @cached_property
    def fields(self) -> Integers:
        """The exponent of each code."""
        whole = self.format.element.integers
        if not self.apart or self.format.element.fixed:
            return np.zeros_like(whole)
        length = bit_length(np.abs(whole).astype(np.uint64))
        return np.maximum(length - 1 - self.format.element.fraction_bits, 0)

    @cached_property
    def bound(self) -> int:
        """The largest magnitude of an integer."""
        bound = int(np.abs(self.elements).max())
        for integer in self._integers:
            bound *= integer.largest_code
        for real in self._reals:
            bound *= (2 << real.dtype.fraction_bits) - 1
        return bound << self.shift_max

    @property
    def element_offset(self) -> int:
        """Exponent of the unit of the elements, without the divisor."""
        return self.format.element.emin - self.format.element.fraction_bits

    @property
    def one(self) -> int:
        """Bits of an integer after the point of the value 1, times divisor / 2^n, without scales.

        2^n is the power of two not below the divisor.
        """
        scales = sum(x.dtype.fraction_bits for x in self._reals)
        return scales + self.shift_max - self.element_offset + fp32.scale_bits(self.divisor)

    @property
    def point(self) -> int:
        """Bits of an integer after the point of its significands.

        Factors without exponents have their point at 1.
        """
        element = self.format.element
        if element.fixed:
            return self.one
        return self.one + self.element_offset + element.fraction_bits

    @cached_property
    def offset(self) -> int:
        """The number that is added to the exponents."""
        lowest = sum(x.dtype.emin - x.dtype.fraction_bits for x in self._reals)
        bias = sum(x.bias for x in self._exponents)
        return self.element_offset + lowest - bias - self.shift_max

    @cached_property
    def largest_exponent(self) -> int:
        """The largest sum of exponents."""
        total = int(self.fields.max()) + sum((1 << x.bits) - 1 for x in self._exponents)
        return total + sum((1 << x.dtype.exponent_bits) - 1 for x in self._reals)


@dataclass(frozen=True)
class Operand:
    """Blocks in an `IntegerForm`.

    Args:
        form: the form.
        integers: int64 of shape (..., n, B).
        exponents: int64 of shape (..., n, B / span).
        nan: which values are NaN, bool of the shape of `integers`; None where none is.
        infinite: signs of infinities, int8 of that shape; None where none is.
    """

    form: IntegerForm
    integers: Integers
    exponents: Integers
    nan: NDArray[np.bool_] | None = None
    infinite: NDArray[np.int8] | None = None

    @classmethod
    def of(cls, blocks: Blocks, form: IntegerForm) -> Self:
        """Blocks of the form's format."""
        element, codes = form.format.element, blocks.element_codes
        nan = _some(element.nan_codes[codes]) if element.has_nan else None
        infinite = _some(element.infinite_codes[codes]) if element.has_infinity else None
        operand = cls(form, form.elements[codes], _element_exponents(blocks, form), nan, infinite)
        if blocks.zero_points is not None:
            (level,) = form.format.levels
            zero = _by_block(blocks.zero_points, level, blocks).astype(np.int64)
            operand = replace(operand, integers=operand.integers - spread(zero, blocks.block))
        for level, scales in zip(form.format.levels[::-1], blocks.scales, strict=True):
            if level in form.levels:
                operand = operand.times(level.scale, _by_block(scales, level, blocks))
        return operand

    def times(self, scale: Scale, codes: NDArray[Any]) -> Self:
        """The operand with the scales of one more level, (..., n or 1, groups in a block)."""
        size, spans = self.integers.shape[-1], self.exponents.shape[-1]
        if isinstance(scale, Real):
            codes = scale.number(codes)
        wide = codes.astype(np.int64)
        nan, integers, exponents = self.nan, self.integers, self.exponents
        if scale.nan_code is not None and (codes == scale.nan_code).any():
            found = np.broadcast_to(spread(codes == scale.nan_code, size), integers.shape)
            nan = found if nan is None else nan | found
        if isinstance(scale, Exponent):
            exponents = exponents + spread(wide, spans)
        elif isinstance(scale, Integer):
            integers = integers * spread(wide, size)
        elif isinstance(scale, Shift):
            integers = integers << spread(scale.largest_code - wide, size)
        else:
            _, significand, exponent = split(scale.dtype, codes)
            lowest = scale.dtype.emin - scale.dtype.fraction_bits
            integers = integers * spread(significand.view(np.int64), size)
            exponents = exponents + spread(exponent - lowest, spans)
        return replace(self, nan=nan, integers=integers, exponents=exponents)


def _by_block(codes: NDArray[Any], level: Level, blocks: Blocks) -> NDArray[Any]:
    """Codes of the groups of a level as (..., n or 1, groups in a block)."""
    if level.blocked:
        return codes.reshape(*blocks.leading, blocks.count, blocks.block // int(level.group))
    return codes[..., None, None]


def _some(values: NDArray[Any]) -> NDArray[Any] | None:
    return values if values.any() else None


def _element_exponents(blocks: Blocks, form: IntegerForm) -> Integers:
    if form.apart:
        return form.fields[blocks.codes]
    return np.zeros((*blocks.codes.shape[:-1], blocks.block // form.span), np.int64)
