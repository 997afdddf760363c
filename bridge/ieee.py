"""FP32 rounding in float64 tensors, independent of the processor's treatment of subnormals.

`torch.set_flush_denormal(True)` makes a thread read and write FP32 subnormals as zero. These
functions convert subnormals through integers, and compute in the normal range of float64.
"""

import torch
from torch import Tensor

from axs6.golden.formats import FP32

SMALLEST_NORMAL = 2.0 ** (1 - FP32.bias)
STEPS_PER_ONE = 2.0 ** (FP32.bias - 1 + FP32.fraction_bits)
"""Reciprocal of the subnormal step: a subnormal's bit pattern is its magnitude times this."""

TO_STEP = 1.5 * 2.0**52 / STEPS_PER_ONE
"""Adding this to a small float64 and subtracting it again rounds to whole steps, ties to even."""

SIGN = -(1 << 31)
"""The sign bit of an FP32 pattern in an int32 tensor, which is also the pattern of -0.0."""


def widen(x: Tensor) -> Tensor:
    """float32 as float64, subnormals kept."""
    bits = x.view(torch.int32)
    magnitude = bits & ~SIGN
    subnormal = magnitude < 1 << FP32.fraction_bits
    small = magnitude.double() / STEPS_PER_ONE
    return torch.where(subnormal, torch.where(bits < 0, -small, small), x.double())


def round_to_fp32(x: Tensor) -> Tensor:
    """float64 rounded once to the nearest FP32 value, ties to even, still as float64.

    Overflow gives infinity. A result below FP32's normal range may lose the sign of a zero.
    """
    return torch.where(x.abs() < SMALLEST_NORMAL, (x + TO_STEP) - TO_STEP, x.float().double())


def narrow(x: Tensor) -> Tensor:
    """float64 rounded once to float32, ties to even; subnormals and the sign of zero are kept."""
    out = x.float()
    magnitude = x.abs()
    small = magnitude < SMALLEST_NORMAL
    if small.any():
        steps = (magnitude.where(small, 0.0) * STEPS_PER_ONE).round().int()
        steps |= torch.signbit(x).int() << 31
        out = torch.where(small, steps, out.view(torch.int32)).view(torch.float32)
    return out
