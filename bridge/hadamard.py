"""The Hadamard transform with the bits of the unit `hadamard`, in tensors."""

from collections.abc import Callable
from typing import Any

import torch
from torch import Tensor

from axs6.golden.formats import BF16, FP16, FP32, Float
from axs6.golden.formats.floating import FP64
from axs6.golden.hadamard import GUARD_BITS, scale_exponent
from axs6.torch.ieee import narrow, widen
from axs6.torch.transforms import check_traced, is_transformed, transformable

DTYPES = {torch.float32: FP32, torch.bfloat16: BF16, torch.float16: FP16}


def hadamard(x: Tensor, size: int) -> Tensor:
    """Multiply blocks of the last axis by the Hadamard matrix, as `axs6.golden.hadamard` does.

    Args:
        x: float32, bfloat16 or float16, of shape (..., K).
        size: values of a block, 8, 16, 32, 64 or 128, which divides K.

    Returns:
        Values of the dtype and shape of `x`. Gradients are transformed in the same way: the matrix
        is symmetric.

    Raises:
        TypeError: values have another dtype.
        ValueError: there is no such block, or it does not divide K.
    """
    if x.dtype not in DTYPES:
        raise TypeError(f"values must be float32, bfloat16 or float16, not {x.dtype}")
    scale_exponent(size)
    if x.ndim == 0 or x.shape[-1] % size:
        shape = tuple(x.shape)
        raise ValueError(f"the last axis must be blocks of {size}, not of shape {shape}")
    transformed = not torch.compiler.is_compiling() and is_transformed()
    operator: Callable[..., Tensor] = _transformed if transformed else _transform
    return operator(x, size)


@torch.library.custom_op("axs6::hadamard", mutates_args=())
def _transform(x: Tensor, size: int) -> Tensor:
    return _sums_rounded(x, size)


@_transform.register_fake
def _(x: Tensor, size: int) -> Tensor:
    check_traced()
    return torch.empty_like(x)


@_transform.register_vmap
def _(info: Any, in_dims: tuple[int, None], x: Tensor, size: int) -> tuple[Tensor, int]:
    return _transform(x.movedim(in_dims[0], 0), size), 0


def _keep_size(ctx: Any, inputs: tuple[Any, ...], output: Tensor) -> None:
    ctx.size = inputs[1]


def _transform_gradient(ctx: Any, grad: Tensor) -> tuple[Tensor, None]:
    return hadamard(grad, ctx.size), None


_transform.register_autograd(_transform_gradient, setup_context=_keep_size)
_transformed = transformable(_transform, _keep_size, _transform_gradient)


def _sums_rounded(x: Tensor, size: int) -> Tensor:
    """The values, by float64 sums of integers, which are exact.

    NaN and infinities take part in them: a partial sum is NaN just where a result is.
    """
    dtype = DTYPES[x.dtype]
    y = widen(x.float()).reshape(*x.shape[:-1], -1, size)
    finite = torch.where(y.isfinite(), y, 0.0)
    top = _exponent(finite.abs().amax(-1, keepdim=True), dtype)
    unit = _power(top - dtype.fraction_bits - GUARD_BITS)
    # Zeros lose their sign here, and sums of 0 are +0 then.
    y = sums(torch.trunc(y / unit) + 0.0)
    y = rounded(y * (unit * 2.0 ** -scale_exponent(size)), dtype)
    # A conversion to bfloat16 makes other patterns of NaN.
    return narrow(y).to(x.dtype).masked_fill(y.isnan(), torch.nan).reshape(x.shape)


def sums(x: Tensor) -> Tensor:
    """Sums and differences by the matrix of Sylvester along the last axis, a power of two."""
    size, step = x.shape[-1], 1
    while step < size:
        a, b = x.reshape(*x.shape[:-1], -1, 2, step).unbind(-2)
        x = torch.stack([a + b, a - b], -2).reshape(x.shape)
        step *= 2
    return x


def rounded(x: Tensor, dtype: Float) -> Tensor:
    """float64 rounded once to nearest even, to the fraction bits and subnormals of a dtype."""
    unit = _power(_exponent(x.abs().where(x.isfinite(), 1.0), dtype) - dtype.fraction_bits)
    return torch.round(x / unit) * unit


def _exponent(x: Tensor, dtype: Float) -> Tensor:
    """Exponents of magnitudes, at least that of the least normal value."""
    return (torch.frexp(x).exponent.long() - 1).clamp(min=dtype.emin)


def _power(exponent: Tensor) -> Tensor:
    """2^exponent."""
    return (exponent + FP64.bias << FP64.fraction_bits).view(torch.float64)
