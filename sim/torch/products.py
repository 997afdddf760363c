"""Torch's functions that are matrix products: those replaced, by what, and the others.

A replacement takes a place giver and the function's own arguments. It returns NotImplemented for
arguments with which the function is no single product along one axis.
"""

from collections.abc import Callable, Mapping, Sequence
from typing import Any, Protocol

import torch
from torch import Tensor
from torch.nn import functional

from axs6.sim.torch.attention import scaled_dot_product_attention
from axs6.sim.torch.einsum import einsum, tensordot
from axs6.sim.torch.functional import multiply
from axs6.sim.torch.layers import bilinear, convolve, linear
from axs6.sim.torch.recurrent import KINDS, RECURRENT
from axs6.sim.torch.transposed import convolve_transposed

WEIGHTED = ("linear", "bilinear", "conv", "conv_transpose", *KINDS)
"""Kinds of places whose right operands are weights."""


class Places(Protocol):
    """What gives the handle of the place of each product."""

    def site(self, kind: str) -> int:
        """Handle of the next place."""
        ...


Replacement = Callable[..., Any]


def _product(second: str, *axes: int) -> Replacement:
    """A product of two operands; `second` is the name of the other one.

    Args:
        axes: how many axes the two must have; any where left out.
    """

    def run(places: Places, input: Tensor, *others: Tensor, **named: Tensor) -> Tensor:
        (other,) = _operands(others, named, second)
        _check(input, other, axes)
        return multiply(input, other, places.site("matmul"))

    return run


def _sum(first: str, second: str, *axes: int) -> Replacement:
    """beta * input + alpha * product, in FP32 as the sum with a bias is, rounded once."""

    def run(
        places: Places,
        input: Tensor,
        *others: Tensor,
        beta: float = 1,
        alpha: float = 1,
        **named: Tensor,
    ) -> Tensor:
        a, b = _operands(others, named, first, second)
        _check(a, b, axes)
        dtype = a.dtype
        if dtype == b.dtype and dtype.itemsize < torch.float32.itemsize:
            # Values with the same codes, whose product is not rounded to fewer bits.
            a, b = a.float(), b.float()
        y = multiply(a, b, places.site("matmul")).float()
        y = y if alpha == 1 else alpha * y
        if beta != 0:
            added = input.float()
            y = y + (added if beta == 1 else beta * added)
        elif y.shape != input.shape:
            y = y.expand(torch.broadcast_shapes(y.shape, input.shape))
        return y.to(dtype)

    return run


def _in_place(replacement: Replacement) -> Replacement:
    """What writes its result into its first argument."""

    def run(places: Places, input: Tensor, *others: Tensor, **options: Any) -> Tensor:
        return input.copy_(replacement(places, input, *others, **options))

    return run


def _operands(given: Sequence[Tensor], named: dict[str, Tensor], *names: str) -> list[Tensor]:
    """Operands by position, then by name."""
    rest = names[len(given) :]
    if len(given) > len(names) or set(named) != set(rest):
        raise TypeError(f"operands must be {', '.join(names)}, not {[*range(len(given)), *named]}")
    return [*given, *(named[name] for name in rest)]


def _check(a: Tensor, b: Tensor, axes: tuple[int, ...]) -> None:
    if axes and ((a.ndim, b.ndim) != axes or a.shape[:-2] != b.shape[:-2]):
        raise ValueError(
            f"operands must have {axes[0]} and {axes[1]} axes and as many matrices, "
            f"not shapes {tuple(a.shape)} and {tuple(b.shape)}"
        )


def _reflected(places: Places, input: Tensor, other: Tensor) -> Tensor:
    return multiply(other, input, places.site("matmul"))


def _inner(places: Places, input: Tensor, other: Tensor) -> Tensor:
    if not (input.ndim and other.ndim):
        return input * other
    return tensordot(places, input, other, ([-1], [-1]))


def _vecdot(places: Places, x: Tensor, y: Tensor, *, dim: int = -1) -> Tensor:
    rows, columns = x.movedim(dim, -1).unsqueeze(-2), y.movedim(dim, -1).unsqueeze(-1)
    return multiply(rows, columns, places.site("matmul")).squeeze(-1).squeeze(-1)


def _linear(places: Places, input: Tensor, weight: Tensor, bias: Tensor | None = None) -> Tensor:
    return linear(input, weight, bias, places.site("linear"))


def _convolution(axes: int) -> Replacement:
    """`functional.conv1d`, `conv2d` or `conv3d`."""

    def run(
        places: Places,
        input: Tensor,
        weight: Tensor,
        bias: Tensor | None = None,
        stride: Any = 1,
        padding: Any = 0,
        dilation: Any = 1,
        groups: int = 1,
    ) -> Tensor:
        stride, dilation = (_each(sizes, axes) for sizes in (stride, dilation))
        pads = _padding(padding, weight.shape[2:], dilation)
        site = places.site("conv")
        return convolve(input, weight, bias, stride, dilation, groups, site, padding=pads)

    return run


def _transposed_convolution(axes: int) -> Replacement:
    """`functional.conv_transpose1d`, `conv_transpose2d` or `conv_transpose3d`."""

    def run(
        places: Places,
        input: Tensor,
        weight: Tensor,
        bias: Tensor | None = None,
        stride: Any = 1,
        padding: Any = 0,
        output_padding: Any = 0,
        groups: int = 1,
        dilation: Any = 1,
    ) -> Tensor:
        stride, padding, output_padding, dilation = (
            _each(sizes, axes) for sizes in (stride, padding, output_padding, dilation)
        )
        site = places.site("conv_transpose")
        options = (stride, padding, output_padding, groups, dilation, site)
        return convolve_transposed(input, weight, bias, *options)

    return run


def _bilinear(
    places: Places, input1: Tensor, input2: Tensor, weight: Tensor, bias: Tensor | None = None
) -> Tensor:
    return bilinear(input1, input2, weight, bias, places.site("bilinear"))


def _each(sizes: Any, axes: int) -> tuple[int, ...]:
    """A size for each axis."""
    sizes = (sizes,) if isinstance(sizes, int) else tuple(sizes)
    return sizes * axes if len(sizes) == 1 else sizes


def _padding(padding: Any, taps: Sequence[int], dilation: Sequence[int]) -> list[int]:
    """The padding before and after each axis, the last one first."""
    if padding == "valid":
        padding = 0
    if padding == "same":
        totals = [step * (count - 1) for count, step in zip(taps, dilation, strict=True)]
        pairs = [(total // 2, total - total // 2) for total in totals]
    else:
        pairs = [(size, size) for size in _each(padding, len(taps))]
    return [size for pair in reversed(pairs) for size in pair]


def _attention(places: Places, *args: Any, **kwargs: Any) -> Tensor:
    sites = (places.site("scores"), places.site("values"))
    return scaled_dot_product_attention(sites, *args, **kwargs)


_BY_NAME: Mapping[str, Replacement] = {
    "matmul": _product("other"),
    "__matmul__": _product("other"),
    "__rmatmul__": _reflected,
    "mm": _product("mat2", 2, 2),
    "bmm": _product("mat2", 3, 3),
    "mv": _product("vec", 2, 1),
    "dot": _product("tensor", 1, 1),
    "vdot": _product("other", 1, 1),
    "inner": _inner,
    "addmm": _sum("mat1", "mat2", 2, 2),
    "addmv": _sum("mat", "vec", 2, 1),
    "baddbmm": _sum("batch1", "batch2", 3, 3),
    "addmm_": _in_place(_sum("mat1", "mat2", 2, 2)),
    "addmv_": _in_place(_sum("mat", "vec", 2, 1)),
    "baddbmm_": _in_place(_sum("batch1", "batch2", 3, 3)),
    "linear": _linear,
    "conv1d": _convolution(1),
    "conv2d": _convolution(2),
    "conv3d": _convolution(3),
    "conv_transpose1d": _transposed_convolution(1),
    "conv_transpose2d": _transposed_convolution(2),
    "conv_transpose3d": _transposed_convolution(3),
    "bilinear": _bilinear,
    "scaled_dot_product_attention": _attention,
    "einsum": einsum,
    "tensordot": tensordot,
    "linalg_matmul": _product("other"),
    "vecdot": _vecdot,
    "linalg_vecdot": _vecdot,
    **RECURRENT,
}

_OTHERS = (
    *("addbmm", "addbmm_", "cdist", "chain_matmul"),
    *("multi_dot", "linalg_multi_dot", "cov", "corrcoef"),
    *("matrix_power", "linalg_matrix_power"),
    *("conv_tbc", "convolution", "_convolution", "multi_head_attention_forward"),
    "linear_cross_entropy",
)

_HOMES = (torch, Tensor, functional, torch.linalg, torch.sparse, torch.ops.aten)


def _functions(name: str) -> set[Any]:
    """What torch calls by this name."""
    return {getattr(home, name) for home in _HOMES if hasattr(home, name)}


REPLACED: Mapping[Any, Replacement] = {
    function: replacement for name, replacement in _BY_NAME.items() for function in _functions(name)
}
"""Functions that are replaced, by what."""

PRODUCTS: Mapping[Any, str] = {
    function: name for name in (*_BY_NAME, *_OTHERS) for function in _functions(name)
}
"""Functions that are products, replaced or not, and their names."""
