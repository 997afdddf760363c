"""GPTQ: weights are rounded column by column, and later columns make up for the errors."""

from dataclasses import dataclass
from typing import Any, Self

import numpy as np
import torch
from numpy.typing import NDArray
from torch import Tensor

from axs6.golden import encode
from axs6.golden.blocks import Blocks, padded
from axs6.golden.decode import element_values
from axs6.golden.formats import (
    BF16,
    CHANNEL,
    FP32,
    BlockFormat,
    Element,
    Exponent,
    Real,
    Shift,
    ValueTable,
)
from axs6.golden.outer import NOWHERE, OuterScales, Reach
from axs6.golden.quantise import Quantiser
from axs6.golden.rounding import RANDOM_BITS, Rounding
from axs6.golden.scaling import as_bf16, as_wide, real_values
from axs6.golden.tables import wide_table_codes
from axs6.studies.language.request import check_rounded

DAMPENING = 0.01
"""Addition to the Hessian's diagonal, as a share of its mean."""

PANEL = 64
"""Columns, at least, after which all others are told of the errors."""


def gptq(weight: Tensor, hessian: Tensor, fmt: BlockFormat) -> Blocks:
    """Blocks of a weight that keep the squared error of a layer's outputs small.

    Columns are rounded from the first to the last. Each one's error is weighed out by those that
    are not rounded yet. Scales of a block are the encoder's for what its columns are when its first
    one is reached, those of channels and of the tensor the encoder's for the whole weight; under
    its scales a value is rounded as the encoder does it.

    Args:
        weight: (N, K).
        hessian: sums of products of inputs, (K, K), of any scale.
        fmt: the format.

    Returns:
        Blocks of shape (N, K) along the last axis. Encoding what they decode to need not give them
        again.

    Source: Frantar et al., "GPTQ: Accurate Post-Training Quantization", algorithm 1, with the
    scales of groups found when they are reached.
    """
    upper = _inverse(hessian)
    columns = weight.detach().double().mT.contiguous()
    outer = _outer(weight.detach().float().numpy(), fmt)
    blocks = encode(weight.detach().float().numpy(), fmt, outer=outer)
    size, length = fmt.block, len(columns)
    panel = size * -(-PANEL // size)
    for start in range(0, length, panel):
        stop = min(start + panel, length)
        errors = torch.empty_like(columns[start:stop])
        for j in range(start, stop):
            number, place = divmod(j, size)
            if place == 0:
                part = columns[j : j + size].mT.float().numpy()
                found = encode(part, fmt, outer=outer)
                _put(found, blocks, number)
                scales = Scales.of(found)
            codes = scales.codes(columns[j].float().numpy(), place)
            blocks.codes[:, number, place] = codes
            rounded = torch.from_numpy(scales.values(codes, place))
            errors[j - start] = (columns[j] - rounded) / upper[j, j]
            columns[j + 1 : stop].addr_(upper[j, j + 1 : stop], errors[j - start], alpha=-1)
        columns[stop:].addmm_(upper[start:stop, stop:].mT, errors, alpha=-1)
    return blocks


def _inverse(hessian: Tensor) -> Tensor:
    """The upper Cholesky factor of the inverse of the dampened Hessian, float64.

    Row j, from its diagonal on, is row 0 of the inverse of the part from j on, over the root of
    that one's first element.
    """
    values = hessian.double()
    mean = float(values.diagonal().mean())
    damped = values + (DAMPENING * mean or 1.0) * torch.eye(len(values), dtype=torch.float64)
    inverse = torch.cholesky_inverse(torch.linalg.cholesky(damped))
    return torch.linalg.cholesky(inverse, upper=True)


def _outer(values: NDArray[np.float32], fmt: BlockFormat) -> OuterScales:
    """Scales of channels and of the tensor of values (N, K)."""
    if not fmt.outer:
        return OuterScales.find(fmt, NOWHERE, NOWHERE)
    rows = padded(values, fmt.block).reshape(-1, fmt.block)
    reach = Reach.of(rows, fmt, "error")
    return OuterScales.find(fmt, reach.of_groups(len(values)), reach.of_groups(1))


def _put(found: Blocks, blocks: Blocks, number: int) -> None:
    """Write one block of each row, (N, B), as the one with a number."""
    blocks.codes[:, number] = found.codes[:, 0]
    for level, into, scales in zip(
        blocks.format.levels[::-1], blocks.scales, found.scales, strict=True
    ):
        if level.blocked:
            into[:, number] = scales[:, 0]
    if blocks.zero_points is not None and blocks.format.levels[0].blocked:
        assert found.zero_points is not None
        blocks.zero_points[:, number] = found.zero_points[:, 0]


@dataclass(frozen=True)
class Scales:
    """The scales of blocks (N, K), value by value; 1 in place of N or K where all have the same.

    Args:
        element: of the values.
        factor: real and integer scales, float64.
        reciprocal: what the encoder multiplies by in their place, float32.
        exponent: int64.
        zero: codes of the value 0, int16; None in formats where that is 0.
    """

    element: Element
    factor: NDArray[np.float64]
    reciprocal: NDArray[np.float32]
    exponent: NDArray[np.int64]
    zero: NDArray[np.int16] | None

    @classmethod
    def of(cls, blocks: Blocks) -> Self:
        """The scales of dense blocks of shape (N, K).

        Raises:
            ValueError: scales select elements.
        """
        blocks = blocks.untiled
        check_rounded(blocks.format)
        factor, reciprocal = np.ones((1, 1)), np.ones((1, 1), np.float32)
        exponent = np.zeros((1, 1), np.int64)
        for level, codes in zip(blocks.format.levels[::-1], blocks.scales, strict=True):
            scale, each = level.scale, _of_values(codes, level.group)
            if isinstance(scale, Exponent):
                exponent = exponent + each.astype(np.int64) - scale.bias
            elif isinstance(scale, Shift):
                exponent = exponent - each.astype(np.int64)
            else:
                if isinstance(scale, Real):
                    value = real_values(scale.dtype, each)
                else:
                    value = each.astype(np.float32)
                factor = factor * value
                with np.errstate(over="ignore"):
                    reciprocal = np.divide(reciprocal, value, dtype=np.float32)
                if isinstance(scale, Real) and scale.arithmetic == BF16:
                    reciprocal = as_bf16(reciprocal)
        zero = None
        if blocks.zero_points is not None:
            group = blocks.format.levels[0].group
            zero = _of_values(blocks.zero_points, group).astype(np.int16)
        return cls(blocks.format.element, factor, reciprocal, exponent, zero)

    def codes(self, x: NDArray[np.float32], column: int) -> NDArray[np.uint8]:
        """Codes of finite values (N,) of a column, as the encoder rounds them."""
        element = self.element
        with np.errstate(over="ignore", invalid="ignore"):
            scaled = np.where(x == 0, x, x * _column(self.reciprocal, column))
        largest = np.float32(FP32.largest)
        wide = as_wide(np.clip(scaled, -largest, largest).view(np.uint32)[:, None])
        if isinstance(element, ValueTable):
            exponent = _column(self.exponent, column)[:, None]
            return wide_table_codes(element, Rounding.NEAREST, wide, exponent)[:, 0]
        base = np.broadcast_to(_column(self.exponent, column) + element.emin, x.shape)
        quantiser = Quantiser((element, element), Rounding.NEAREST, RANDOM_BITS)
        magnitude = quantiser.wide_magnitudes(wide, base, None)
        negative = wide.negative
        if not element.signed_zero:
            negative = negative & (wide.significand != 0)
        if self.zero is None:
            return quantiser.signed(magnitude, negative)[:, 0]
        signed = np.where(negative, -1, 1) * magnitude.astype(np.int64)
        code = signed[:, 0] + _column(self.zero, column)
        return np.clip(code, 0, element.largest_code).astype(np.uint8)

    def values(self, codes: NDArray[np.uint8], column: int) -> NDArray[np.float64]:
        """Values of the codes (N,) of a column."""
        values = element_values(self.element)[codes]
        if self.zero is not None:
            values = values - _column(self.zero, column)
        values = values * _column(self.factor, column) / self.element.divisor
        return np.ldexp(values, _column(self.exponent, column))


def _of_values(codes: NDArray[Any], group: Any) -> NDArray[Any]:
    """Codes of a level of blocks (N, K), for each value."""
    if group == CHANNEL:
        return codes[:, None]
    if not isinstance(group, int):
        return codes.reshape(1, 1)
    return codes.reshape(len(codes), -1).repeat(group, axis=1)


def _column(each: NDArray[Any], column: int) -> NDArray[Any]:
    return each[:, column if each.shape[1] > 1 else 0]
