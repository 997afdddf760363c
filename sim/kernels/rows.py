"""Real scales of rows, which need all values before a block can be encoded."""

import ctypes
from ctypes import c_void_p
from dataclasses import dataclass
from math import prod
from typing import Any, Self

import numpy as np
from numpy.typing import NDArray

from axs6.golden.formats import FP32, TENSOR, BlockFormat, Real
from axs6.golden.levels import divisor
from axs6.golden.nonfinite import WITHOUT_NAN, NonFinite, check_nonfinite
from axs6.golden.scaling import as_wide, real_scales, rounded_quotient
from axs6.sim.kernels.layout import real_description
from axs6.sim.kernels.library import library


class Addresses(ctypes.Structure):
    """Scales of rows and their reciprocals, as the kernels read them."""

    _fields_ = [("values", c_void_p), ("reciprocals", c_void_p)]


@dataclass(frozen=True, eq=False)
class RowScales:
    """Values, all finite, and the scales of their rows.

    Args:
        x: float32 of shape (..., K).
        scales: float32 of shape (rows,), 1 where rows have none.
    """

    x: NDArray[np.float32]
    scales: NDArray[np.float32]

    @classmethod
    def find(
        cls, x: NDArray[np.float32], fmt: BlockFormat, nonfinite: NonFinite, threads: int
    ) -> Self | None:
        """The scales of a format that `real_description` knows.

        None where `nonfinite` is "error" and a value is not finite. Else NaN becomes +0 and an
        infinity the largest finite value.
        """
        check_nonfinite(nonfinite, WITHOUT_NAN)
        top = _largest(x, threads)
        if top.max(initial=0) >= FP32.infinity:
            if nonfinite == "error":
                return None
            limit = float(np.finfo(np.float32).max)
            x = np.nan_to_num(x, nan=0.0, posinf=limit, neginf=-limit)
            top = _largest(x, threads)
        if not fmt.outer:
            return cls(x, np.ones(len(top), np.float32))
        (level,) = fmt.outer
        assert isinstance(level.scale, Real)
        whole = top.max(keepdims=True, initial=0) if level.group == TENSOR else top
        quotient = rounded_quotient(as_wide(whole), divisor(fmt, level)).view(np.float32)
        _, scales = real_scales(level.scale, quotient, whole == 0)
        return cls(x, np.ascontiguousarray(np.broadcast_to(scales, top.shape)))

    def arguments(self, fmt: BlockFormat, threads: int) -> tuple[Any, ...]:
        """What the kernels are told first: format, scales, values and their shape, threads."""
        found = real_description(fmt)
        assert found is not None
        reciprocals = np.float32(1) / self.scales
        addresses = Addresses(self.scales.ctypes.data, reciprocals.ctypes.data)
        addresses.kept = reciprocals
        sizes = (len(self.scales), self.x.shape[-1], threads)
        return (*map(ctypes.byref, found), ctypes.byref(addresses), self.x.ctypes.data, *sizes)


def _largest(x: NDArray[np.float32], threads: int) -> NDArray[np.uint32]:
    """Patterns of the largest magnitudes of rows."""
    length = x.shape[-1]
    top = np.zeros(prod(x.shape[:-1]), np.uint32)
    library().axs6_largest(x.ctypes.data, len(top), length, threads, top.ctypes.data)
    return top
