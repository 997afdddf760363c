"""Matrix products of activations: functions and a module."""

from collections.abc import Mapping
from functools import cache
from math import prod
from typing import Any

import torch
from torch import Tensor, nn

from axs6.golden.accumulator import Accumulator
from axs6.golden.nonfinite import NonFinite
from axs6.torch.constant import traced_as_constant
from axs6.torch.ops import product
from axs6.torch.options import Format, ProductOptions, spelling
from axs6.torch.site import Site, site_of


class MatMul(nn.Module):
    """`torch.matmul` as a module: a product of activations that `convert` finds by name."""

    def forward(self, a: Tensor, b: Tensor) -> Tensor:
        """(..., M, K) by (..., K, N)."""
        return torch.matmul(a, b)


def matmul(
    a: Tensor,
    b: Tensor,
    format: Format = "axs6",
    *,
    gradients: Format | None = None,
    accumulator: str | Accumulator = "fp32",
    block: int | None = None,
    backend: str = "emulated",
    nonfinite: NonFinite = "error",
    tile: Mapping[str, Any] | None = None,
) -> Tensor:
    """`torch.matmul` with the hardware's bits: both operands encoded in blocks along K.

    Args:
        a, b: tensors of one dtype (float32, bfloat16, float16, float64), with the shapes that
            `torch.matmul` takes, vectors and broadcasting included.
        format: of both operands.
        gradients, accumulator, block, backend, nonfinite, tile: as of `convert`.

    Returns:
        The FP32 products, rounded once to the dtype of the operands. Gradients use a
        straight-through estimator.

    Raises:
        TypeError, ValueError: an operand or option is refused.
    """
    spelled = _spelled(format, gradients, accumulator, block)
    pairs = tuple(sorted((tile or {}).items()))
    return multiply(a, b, _free_site("matmul", spelled, backend, nonfinite, pairs))


def bmm(
    a: Tensor,
    b: Tensor,
    format: Format = "axs6",
    *,
    gradients: Format | None = None,
    accumulator: str | Accumulator = "fp32",
    block: int | None = None,
    backend: str = "emulated",
    nonfinite: NonFinite = "error",
    tile: Mapping[str, Any] | None = None,
) -> Tensor:
    """`torch.bmm` with the hardware's bits: (G, M, K) by (G, K, N). Otherwise as `matmul`."""
    if a.ndim != 3 or b.ndim != 3 or a.shape[0] != b.shape[0]:
        raise ValueError(
            "bmm: operands must have shapes (G, M, K) and (G, K, N), "
            f"not {tuple(a.shape)} and {tuple(b.shape)}"
        )
    spelled = _spelled(format, gradients, accumulator, block)
    pairs = tuple(sorted((tile or {}).items()))
    return multiply(a, b, _free_site("bmm", spelled, backend, nonfinite, pairs))


Spelled = tuple[str, str | None, str]
"""Formats of operands and gradients, and the accumulator, as constants for torch's compiler."""


def _spelled(
    format: Format, gradients: Format | None, accumulator: str | Accumulator, block: int | None
) -> Spelled:
    backward = None if gradients is None else spelling(gradients, block)
    return spelling(format, block), backward, str(accumulator)


@cache
def _kept_site(name: str, spelled: Spelled, backend: str, nonfinite: Any, pairs: Any) -> Site:
    """Places of the functions, never freed."""
    format, gradients, accumulator = spelled
    options = ProductOptions.of(
        format,
        gradients=gradients,
        accumulator=accumulator,
        backend=backend,
        nonfinite=nonfinite,
        tile=dict(pairs),
    )
    return Site(name, options)


@traced_as_constant
def _free_site(name: str, spelled: Spelled, backend: str, nonfinite: Any, pairs: Any) -> int:
    return _kept_site(name, spelled, backend, nonfinite, pairs).handle


def check_tensors(handle: int, *operands: Any) -> None:
    """Raise TypeError unless the operands of a place are tensors."""
    for x in operands:
        if not isinstance(x, Tensor):
            raise TypeError(
                f"{site_of(handle).name}: input must be a tensor, not {type(x).__name__}"
            )


def multiply(a: Tensor, b: Tensor, handle: int) -> Tensor:
    """`torch.matmul` with the products of a place."""
    check_tensors(handle, a, b)
    if not a.ndim or not b.ndim:
        raise ValueError(
            f"operands must have at least one axis, not shapes {tuple(a.shape)}, {tuple(b.shape)}"
        )
    left = a.unsqueeze(0) if a.ndim == 1 else a
    right = b.unsqueeze(0) if b.ndim == 1 else b.transpose(-2, -1)
    depth, columns = left.shape[-1], right.shape[-2]
    if right.ndim == 2:
        # One right-hand side for all: a single product of all the rows.
        rows = left.reshape(1, prod(left.shape[:-1]), depth)
        y = product(rows, right.unsqueeze(0), handle).view(*left.shape[:-1], columns)
    else:
        if left.shape[:-2] != right.shape[:-2]:
            # Only then: torch's first broadcast takes seconds, in which it imports sympy.
            shape = torch.broadcast_shapes(left.shape[:-2], right.shape[:-2])
            left, right = (x.expand(*shape, *x.shape[-2:]) for x in (left, right))
        leading = left.shape[:-2]
        rows, others = (x.reshape(prod(leading), *x.shape[-2:]) for x in (left, right))
        y = product(rows, others, handle).view(*leading, left.shape[-2], columns)
    if a.ndim == 1:
        y = y.squeeze(-2)
    return y.squeeze(-1) if b.ndim == 1 else y
