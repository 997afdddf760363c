"""A scale of the tensor is that of the whole operand, as torch has it.

Operands are halves of odd numbers, with one value that makes the scale of the tensor 1: then the
encoding rounds to integers, whose products are exact. The scale of a part would round to others.
"""

from collections.abc import Callable
from typing import Any

import pytest
import torch
from torch import Tensor, nn
from torch.nn import functional

from axs6.torch import convert, profile
from axs6.torch.backends import ProductBatch
from axs6.torch.site import Site, Wholes, observed

Same = Callable[[Tensor, Tensor], bool]

ENDS = {"int8_float32": (-3.0, 127.0), "uint8": (-127.0, 128.0), "int8_e8m0": (-127.0, 3.0)}
"""Formats, and the least and the greatest value under a scale of 1."""


def operand(fmt: str, *shape: int) -> Tensor:
    """Small values, with the ends at the first and last place."""
    x = torch.randint(-4, 4, shape) + 0.5
    x.view(-1)[0], x.view(-1)[-1] = ENDS[fmt]
    return x


class Call(nn.Module):
    """A function as a model."""

    def __init__(self, function: Callable[..., Tensor]) -> None:
        super().__init__()
        self.function = function

    def forward(self, *operands: Tensor) -> Tensor:
        return self.function(*operands)


def images(name: str, *options: Any, **named: Any) -> Callable[..., Tensor]:
    return lambda x, w: getattr(functional, name)(x, w, *options, **named)


PRODUCTS: dict[str, tuple[Callable[..., Tensor], tuple[int, ...], tuple[int, ...]]] = {
    "batch": (torch.matmul, (3, 2, 8), (3, 8, 4)),
    "broadcast": (torch.matmul, (2, 1, 3, 8), (4, 8, 2)),
    "bmm": (torch.bmm, (3, 2, 8), (3, 8, 4)),
    "einsum": (lambda a, b: torch.einsum("gik,jgk->gij", a, b), (3, 2, 8), (4, 3, 8)),
    "tensordot": (lambda a, b: torch.tensordot(a, b, ([1, 2], [0, 2])), (2, 3, 8), (3, 4, 8)),
    "groups": (images("conv2d", groups=3), (2, 6, 4, 4), (6, 2, 3, 3)),
    "groups of rows": (images("conv1d", padding=1, groups=2), (2, 4, 5), (2, 2, 3)),
    "groups of volumes": (images("conv3d", groups=2), (1, 2, 2, 3, 3), (2, 1, 2, 2, 2)),
    "transposed groups": (images("conv_transpose2d", groups=2), (2, 4, 3, 3), (4, 2, 2, 2)),
    "one pixel of four": (images("conv2d", stride=2), (2, 4, 4, 4), (3, 4, 1, 1)),
    "one pixel of four, in groups": (images("conv2d", None, 2, groups=2), (4, 4, 4), (4, 2, 1, 1)),
    "the last column left out": (images("conv1d", stride=2), (1, 2, 8), (2, 2, 3)),
    "holes": (images("conv1d", dilation=3), (1, 2, 8), (2, 2, 3)),
    "volumes": (images("conv3d", stride=(1, 2, 1)), (1, 2, 2, 4, 3), (2, 2, 2, 1, 2)),
}


@pytest.mark.parametrize("fmt", ENDS)
@pytest.mark.parametrize("name", PRODUCTS)
def test_a_scale_of_the_tensor_is_that_of_the_operand(name: str, fmt: str, same: Same) -> None:
    function, left, right = PRODUCTS[name]
    a, b = operand(fmt, *left), operand(fmt, *right)
    exact = function(a.round(), b.round())
    for backend in ("emulated", "golden"):
        assert same(convert(Call(function), backend, format=fmt)(a, b), exact)
    assert same(convert(Call(function), format=fmt)(a.double(), b.double()).float(), exact)


@pytest.mark.slow
@pytest.mark.parametrize("name", ["batch", "groups", "one pixel of four, in groups"])
def test_the_simulated_tile_has_the_scale_of_the_operand(name: str, same: Same) -> None:
    function, left, right = PRODUCTS[name]
    a, b = operand("int8_float32", *left), operand("int8_float32", *right)
    model = convert(Call(function), "rtl", format="int8")
    assert same(model(a, b), function(a.round(), b.round()))


@pytest.mark.parametrize("fmt", ENDS)
@pytest.mark.parametrize("gradients", [None, "int8"])
def test_gradients_and_reports_have_the_scale_of_the_operand(
    fmt: str, gradients: str | None, same: Same
) -> None:
    function, left, right = PRODUCTS["one pixel of four, in groups"]
    a, b = (operand(fmt, *shape).requires_grad_() for shape in (left, right))
    whole = [x.detach().round().requires_grad_() for x in (a, b)]
    upstream = torch.randint(-4, 5, (4, 2, 2)) * 1.0
    upstream[0, 0, 0] = 127
    function(*whole).backward(upstream)
    for backend in ("emulated", "golden"):
        a.grad = b.grad = None
        with profile(compare="golden") as report:
            model = convert(Call(function), backend, format=fmt, gradients=gradients)
            model(a, b).backward(upstream)
        assert report.total.bits_different == 0
        for x, exact in zip((a, b), whole, strict=True):
            assert x.grad is not None
            assert exact.grad is not None
            assert same(x.grad, exact.grad)


@pytest.mark.parametrize("nonfinite", ["saturate", "propagate"])
def test_values_that_no_product_reads(nonfinite: str, same: Same) -> None:
    function, left, right = PRODUCTS["one pixel of four"]
    a, b = operand("int8_float32", *left), operand("int8_float32", *right)
    a[0, 0, 1, 1] = torch.nan
    model = convert(Call(function), format="int8", nonfinite=nonfinite)
    assert same(model(a, b), function(a.round(), b.round()))
    a[0, 0, 1, 1] = torch.inf
    held = torch.finfo(torch.float32).max if nonfinite == "saturate" else 0.0
    y = model(a, b)
    a[0, 0, 1, 1] = held
    assert same(y, model(a, b))


@pytest.mark.parametrize("fmt", ENDS)
def test_projections_of_attention_have_the_scale_of_their_weight(fmt: str, same: Same) -> None:
    model = nn.MultiheadAttention(8, 2, bias=False, batch_first=True)
    x = operand(fmt, 2, 3, 8)
    with torch.no_grad():
        model.in_proj_weight.copy_(operand(fmt, 24, 8))
    exact = functional.linear(x.round(), model.in_proj_weight.round()).chunk(3, -1)
    for backend in ("emulated", "golden"):
        found = {}

        def see(site: Site, a: Tensor, b: Tensor, result: ProductBatch, wholes: Wholes) -> None:
            found[site.name.rpartition(".")[2]] = result.values  # noqa: B023

        converted = convert(nn.Sequential(Call(lambda x: x), model), backend, format=fmt)[1]
        with observed(see):
            converted(x, x, x)
        for name, values in zip(("query", "key", "value"), exact, strict=True):
            assert same(found[name].view(values.shape), values)
