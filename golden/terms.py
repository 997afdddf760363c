"""The terms of dot products: exact sums of products of lanes, as integers under exponents."""

from collections.abc import Callable, Iterator
from dataclasses import dataclass, replace
from functools import cached_property
from typing import Any, NamedTuple, Self

import numpy as np
from numpy.typing import NDArray

from axs6.golden import fp32
from axs6.golden.accumulator import Accumulator, Alignment
from axs6.golden.floats import bit_length
from axs6.golden.formats import FP32, BlockFormat, Exponent, Real, name_of
from axs6.golden.operands import INTEGER_BITS, IntegerForm, Integers, Operand

FLOAT_BITS = 53
"""Bits that float64 holds exactly."""

DIGIT_BITS = 20
"""Bits of the parts of wide integers: sums of 2^12 products of two parts are below 2^53."""


@dataclass(frozen=True)
class Terms:
    """The terms of two formats in an accumulator.

    A term is an integer of up to `width` bits with its sign, times 2^(exponent + offset). The sum
    of all terms is the dot product without the outer real scales, times divisor / 2^n, where 2^n
    is the power of two not below the divisor.

    Args:
        a, b: forms of the operands.
        accumulator: what adds the terms.

    Raises:
        ValueError: blocked levels have different groups, or the accumulator does not fit.
    """

    a: IntegerForm
    b: IntegerForm
    accumulator: Accumulator

    @classmethod
    def of(cls, a: BlockFormat, b: BlockFormat, accumulator: Accumulator) -> Self:
        """Terms of these formats: products, where elements have exponents that count."""
        single = accumulator.fraction is not None and accumulator.term is None
        apart = (single or accumulator.pairwise) and not (a.element.fixed and b.element.fixed)
        left, right = (IntegerForm(x, apart, accumulator.scaled) for x in (a, b))
        terms = cls(left, right, accumulator)
        if accumulator.scaled:
            terms._check_scales()
        return terms

    def __post_init__(self) -> None:
        a, b = ([int(x.group) for x in form.format.blocked] for form in (self.a, self.b))
        if a != b:
            raise ValueError(
                "a and b must have levels of the same groups in a block, "
                f"not {_listed(a)} of {name_of(self.a.format)} and {_listed(b)} of "
                f"{name_of(self.b.format)}"
            )
        if self.reduction % self.block and self.block % self.reduction:
            raise ValueError(
                f"reduction must be a multiple or a part of the block {self.block}, "
                f"not {self.reduction}"
            )
        if self.reduction % self.accumulator.groups:
            raise ValueError(
                f"groups must divide the {self.reduction} lanes of a step, not "
                f"{self.accumulator.groups}"
            )
        if self.lanes < min(self.accumulator.term or 1, self.reduction):
            raise ValueError(
                f"{self.accumulator} adds {self.accumulator.term} lanes with one exponent, and "
                f"{self._formats} have {self.lanes}"
            )

    def _check_scales(self) -> None:
        for form in (self.a, self.b):
            scales = [x.scale for x in form.format.blocked]
            if len(scales) != 1 or not isinstance(scales[0], Exponent | Real):
                raise ValueError(
                    f"{self.accumulator} needs formats with one scale for each block, real or an "
                    f"exponent, not {name_of(form.format)}"
                )
        promoted = (self.accumulator.promote or 0) * self.reduction
        if promoted != self.block:
            raise ValueError(
                f"{self.accumulator} multiplies sums of {promoted} lanes by the scales of blocks, "
                f"and those of {self._formats} have {self.block}"
            )

    @property
    def _formats(self) -> str:
        return " and ".join(dict.fromkeys(name_of(x.format) for x in (self.a, self.b)))

    @property
    def block(self) -> int:
        """Lanes of a block."""
        return self.a.format.block

    @property
    def reduction(self) -> int:
        """Lanes of a step."""
        return self.accumulator.reduction or self.block

    @cached_property
    def lanes(self) -> int:
        """Lanes of a term."""
        accumulator = self.accumulator
        if accumulator.pairwise or accumulator.groups > 1:
            return 1
        term = accumulator.term or self.block
        return min(self.a.span, self.b.span, self.reduction, term)

    @property
    def step(self) -> int:
        """Terms of a step."""
        return self.reduction // self.lanes

    @cached_property
    def bound(self) -> int:
        """The largest magnitude of a term."""
        return self.lanes * self.a.bound * self.b.bound

    @property
    def width(self) -> int:
        """Bits of a term with its sign."""
        return self.bound.bit_length() + 1

    @property
    def split(self) -> bool:
        """Whether the integers are added in parts, because no dtype holds their sums.

        Products of one lane are made of int64, sums of more in float64.
        """
        return self.bound.bit_length() > (FLOAT_BITS if self.lanes > 1 else INTEGER_BITS)

    @property
    def gated_by_products(self) -> bool:
        """Whether terms count unless all their products are 0, not unless their sums are."""
        accumulator = self.accumulator
        return accumulator.term is not None and accumulator.alignment is Alignment.ZERO

    @property
    def divisor(self) -> int:
        """The divisor of the sum at the end, with the power of two."""
        return self.a.divisor * self.b.divisor

    @property
    def scale_bits(self) -> int:
        """n of that power of two."""
        return fp32.scale_bits(self.divisor)

    @property
    def offset(self) -> int:
        """The number that is added to the exponents."""
        return self.a.offset + self.b.offset - self.scale_bits

    @property
    def largest_exponent(self) -> int:
        """The largest exponent, before the offset."""
        return self.a.largest_exponent + self.b.largest_exponent

    @cached_property
    def point(self) -> int:
        """Bits of a term after its point."""
        if self.a.apart:
            return self.a.point + self.b.point
        if self.accumulator.term is not None:
            return self.a.one + self.b.one
        return self.bound.bit_length() - 1

    @property
    def aligned_bits(self) -> int:
        """Bits of the sum of a step's terms, the accumulator among them, with the sign."""
        fraction = self.accumulator.fraction or 0
        if self.accumulator.sum_fraction is not None:
            fraction = self.accumulator.sum_fraction + 1
        kept = max(self.width + fraction - self.point, fraction + 2)
        return kept + self.step.bit_length()


def _listed(groups: list[int]) -> str:
    return ", ".join(map(str, groups)) or "none"


class StepTerms(NamedTuple):
    """The terms of a step, for results of shape (...).

    Digits are integers of shape (terms, ...) that are added times powers of 2^DIGIT_BITS; there is
    one where float64 holds the sums. Exponents are of shape (terms, ...) too. Special ones are FP32
    patterns of shape (...): the infinity or NaN that the step adds, else +0; None for all +0.
    `some` says which terms, (terms, ...), have a product other than 0; None where their sums do.
    If products are rounded one by one, special ones are of shape (terms, ...), and `negative`, of
    that shape, says which products have a minus, zeros among them.
    """

    digits: list[Integers]
    exponents: Integers
    special: fp32.Bits | None = None
    some: NDArray[np.bool_] | None = None
    negative: NDArray[np.bool_] | None = None


def flushed(operand: Operand, terms: Terms) -> Operand:
    """An operand whose values below the smallest normal one are 0, where the accumulator says so.

    Values count without the scales of channels and tensors.
    """
    flush = terms.accumulator.flush
    if flush is None:
        return operand
    size = operand.integers.shape[-1]
    unit = operand.form.offset - fp32.scale_bits(operand.form.divisor)
    exponents = np.repeat(operand.exponents, size // operand.exponents.shape[-1], axis=-1) + unit
    bits = bit_length(np.abs(operand.integers).astype(np.uint64))
    return replace(operand, integers=np.where(bits + exponents <= flush, 0, operand.integers))


def digits_of(x: Integers, bits: int) -> list[Integers]:
    """Integers of up to `bits` bits in parts with their sign, least significant first."""
    part, sign = np.int64((1 << DIGIT_BITS) - 1), np.sign(x)
    return [sign * (np.abs(x) >> np.int64(low) & part) for low in range(0, bits, DIGIT_BITS)]


def products_of_digits(
    left: list[NDArray[Any]], right: list[NDArray[Any]], multiply: Callable[..., NDArray[Any]]
) -> list[NDArray[Any]]:
    """The product of two numbers in parts, by the power of 2^DIGIT_BITS that its parts are of."""
    digits: list[Any] = [0] * (len(left) + len(right) - 1)
    for i, x in enumerate(left):
        for j, y in enumerate(right):
            product = multiply(x, y)
            digits[i + j] = product if i == 0 or j == len(right) - 1 else digits[i + j] + product
    return digits


class OperandTerms:
    """An operand of a matrix product by terms: its arrays have the shape (terms, rows, lanes).

    Args:
        operand: matrix of shape (rows, K).
        terms: what the terms are.
        special: whether either operand has infinities or NaN.
    """

    def __init__(self, operand: Operand, terms: Terms, special: bool) -> None:
        self._lanes = terms.lanes
        each = terms.block // self._lanes // operand.exponents.shape[-1]
        self.exponents = self._by_term(np.repeat(operand.exponents, each, axis=-1), 1)[..., 0]
        integers = self._by_term(operand.integers, self._lanes)
        bits = operand.form.bound.bit_length()
        parts = digits_of(integers, bits) if terms.split else [integers]
        # Products of one lane are made of integers. More are a matrix product, for which float64
        # has a fast routine: exact, because every partial sum is an integer below 2^53.
        self.parts = [x if self._lanes == 1 else x.astype(np.float64) for x in parts]
        if special:
            zeros = np.zeros(operand.integers.shape, np.int8)
            nan = operand.nan if operand.nan is not None else zeros
            infinite = operand.infinite if operand.infinite is not None else zeros
            sign = np.where(infinite != 0, infinite, np.sign(operand.integers)) * (nan == 0)
            self.nan, self.infinite, self.sign = (
                self._by_term(x, self._lanes).astype(np.float32) for x in (nan, infinite, sign)
            )

    def _by_term(self, values: NDArray[Any], lanes: int) -> NDArray[Any]:
        rows, blocks, size = values.shape
        terms = values.reshape(rows, blocks * size // lanes, lanes)
        return np.ascontiguousarray(terms.swapaxes(0, 1))


class ProductSteps:
    """The steps of a product of two matrices, y[m, n] = sum over k of a[m, k] * b[n, k].

    Args:
        a, b: operands of shape (M, K) and (N, K).
        terms: what the terms are.
    """

    def __init__(self, a: Operand, b: Operand, terms: Terms) -> None:
        special = any(x is not None for x in (a.nan, a.infinite, b.nan, b.infinite))
        a, b = flushed(a, terms), flushed(b, terms)
        self._a, self._b = OperandTerms(a, terms, special), OperandTerms(b, terms, special)
        self._terms, self._special = terms, special

    def steps(self, rows: slice, columns: slice) -> Iterator[StepTerms]:
        """The steps, in index order, for some rows of y and some columns."""
        a, b = self._a, self._b
        for start in range(0, len(a.exponents), self._terms.step):
            here = slice(start, start + self._terms.step)
            exponents = a.exponents[here, rows, None] + b.exponents[here, None, columns]
            left = [x[here, rows] for x in a.parts]
            right = [x[here, columns].swapaxes(1, 2) for x in b.parts]
            special = self._specials(here, rows, columns) if self._special else None
            multiply = np.multiply if self._terms.lanes == 1 else np.matmul
            digits = [x.astype(np.int64) for x in products_of_digits(left, right, multiply)]
            some = None
            if self._terms.gated_by_products:
                x, y = (
                    np.logical_or.reduce([part != 0 for part in parts]).astype(np.float32)
                    for parts in (left, right)
                )
                some = multiply(x, y) > 0
            negative = None
            if self._terms.accumulator.pairwise:
                x, y = (np.logical_or.reduce([part < 0 for part in p]) for p in (left, right))
                negative = x ^ y
            yield StepTerms(digits, exponents, special, some, negative)

    def _specials(self, here: slice, rows: slice, columns: slice) -> fp32.Bits:
        """The sum of the products that are no numbers: an infinity, NaN, or +0 without one.

        Term by term where products are rounded one by one.
        """
        pairwise = self._terms.accumulator.pairwise

        def count(x: NDArray[Any], y: NDArray[Any]) -> NDArray[Any]:
            """Products of indicators of at most 4096 lanes, which float32 adds exactly."""
            counts = np.matmul(x, y.swapaxes(1, 2))
            return counts if pairwise else np.asarray(counts.sum(axis=0))

        a, b = self._a, self._b
        a_nan, a_inf, a_sign = (x[here, rows] for x in (a.nan, a.infinite, a.sign))
        b_nan, b_inf, b_sign = (x[here, columns] for x in (b.nan, b.infinite, b.sign))
        zero = count(abs(a_inf), b_sign == 0) + count(a_sign == 0, abs(b_inf))
        nan = count(a_nan, np.ones_like(b_nan)) + count(np.ones_like(a_nan), b_nan) + zero
        finite = a_sign * (a_inf == 0)
        total = count(a_inf, b_sign) + count(finite, b_inf)
        number = count(abs(a_inf), abs(b_sign)) + count(abs(finite), abs(b_inf))
        nan += abs(total) != number
        infinity = np.where(total < 0, np.uint32(FP32.sign_bit), np.uint32(0)) | FP32.infinity
        found = np.where(number != 0, infinity, np.uint32(0))
        return np.where(nan != 0, np.uint32(FP32.quiet_nan), found)
