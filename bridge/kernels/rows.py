"""Real scales of rows, which need all values before a block can be encoded."""

import ctypes
from ctypes import c_void_p
from dataclasses import dataclass
from fractions import Fraction
from functools import cache
from math import prod
from typing import Any, Self

import numpy as np
from numpy.typing import NDArray

from axs6.golden.factors import divisor
from axs6.golden.formats import FP32, TENSOR, BlockFormat, Level, Real
from axs6.golden.nonfinite import NonFinite
from axs6.golden.scaling import as_wide, real_scales, rounded_quotient
from axs6.torch.kernels.layout import real_description
from axs6.torch.kernels.library import library


class Addresses(ctypes.Structure):
    """Scales of rows and their reciprocals, as the kernels read them."""

    _fields_ = [("values", c_void_p), ("reciprocals", c_void_p)]


@dataclass(frozen=True, eq=False)
class RowScales:
    """Values and the scales of their rows.

    Args:
        x: float32 of shape (..., K), without NaN; infinities become the largest element.
        scales: float32 of shape (rows,), 1 where rows have none.
    """

    x: NDArray[np.float32]
    scales: NDArray[np.float32]

    @classmethod
    def find(
        cls,
        x: NDArray[np.float32],
        fmt: BlockFormat,
        nonfinite: NonFinite,
        threads: int,
        scale: float | None,
    ) -> Self | None:
        """The scales of a format that `real_description` supports, or `scale` for all rows.

        None where `nonfinite` is "error" and a value is not finite. Otherwise NaN becomes +0, and
        an infinity counts as the largest finite value.
        """
        top = _largest(x, threads)
        if top.max(initial=0) >= FP32.infinity:
            if nonfinite == "error":
                return None
            x = np.where(np.isnan(x), np.float32(0), x)
            top = np.minimum(_largest(x, threads), np.uint32(FP32.max_finite))
        return cls(x, row_scales(top, fmt, scale))

    def arguments(self, fmt: BlockFormat, threads: int) -> tuple[Any, ...]:
        """The first arguments of the kernels: format, scales, values and their shape, threads."""
        found = real_description(fmt)
        assert found is not None
        reciprocals = np.float32(1) / self.scales
        addresses = Addresses(self.scales.ctypes.data, reciprocals.ctypes.data)
        addresses.kept = reciprocals
        sizes = (len(self.scales), self.x.shape[-1], threads)
        return (*map(ctypes.byref, found), ctypes.byref(addresses), self.x.ctypes.data, *sizes)


def row_scales(
    top: NDArray[np.uint32], fmt: BlockFormat, scale: float | None
) -> NDArray[np.float32]:
    """The scales of rows with these largest magnitudes, patterns of finite values; 1 without any.

    `scale`, if given, is the scale of all rows.
    """
    if not fmt.outer:
        return np.ones(len(top), np.float32)
    (level,) = fmt.outer
    assert isinstance(level.scale, Real)
    if scale is None:
        whole = top.max(keepdims=True, initial=0) if level.group == TENSOR else top
        _, scales = real_scales(level.scale, _quotients(whole, fmt, level), whole == 0)
    else:
        _, scales = real_scales(level.scale, np.full(1, scale, np.float32), np.zeros(1, bool))
    return np.broadcast_to(scales, top.shape).copy()


def _quotients(top: NDArray[np.uint32], fmt: BlockFormat, level: Level) -> NDArray[np.float32]:
    """Largest magnitudes over the largest value under a level, rounded once.

    FP32 divides, if it holds the divisor, and what it may flush to zero is below every scale.
    """
    by, exact = _divisor(fmt, level)
    if exact:
        return top.view(np.float32) / np.float32(by)
    return rounded_quotient(as_wide(top), by).view(np.float32)


@cache
def _divisor(fmt: BlockFormat, level: Level) -> tuple[Fraction, bool]:
    """The divisor of a level, and whether it is at least 1 and FP32 holds it."""
    by = divisor(fmt, level)
    return by, by >= 1 and by.numerator.bit_length() <= FP32.fraction_bits + 1


def _largest(x: NDArray[np.float32], threads: int) -> NDArray[np.uint32]:
    """Patterns of the largest magnitudes of rows."""
    length = x.shape[-1]
    top = np.zeros(prod(x.shape[:-1]), np.uint32)
    library().axs6_largest(x.ctypes.data, len(top), length, threads, top.ctypes.data)
    return top
