"""The operators that torch sees: opaque to its compiler, with straight-through gradients.

Everything with a defined order of rounding, bias and result dtype included, happens inside one
operator, where a compiler cannot fuse or reorder it. `axs6.torch.backward` has the gradients.
"""

from collections.abc import Callable
from math import prod
from typing import Any

import torch
from torch import Tensor, nn
from torch._C import _len_torch_dispatch_stack
from torch.nn import functional

from axs6.golden.rounding import RANDOM_BITS
from axs6.torch import quantise
from axs6.torch.backends import ProductBatch, with_bias
from axs6.torch.backward import is_empty, operand_gradients
from axs6.torch.constant import refuse_tracing
from axs6.torch.extent import scales_tensor
from axs6.torch.options import Format, spelled, spelling
from axs6.torch.rounding import check_device, check_random
from axs6.torch.site import Site, check_origin, is_observed, site_of
from axs6.torch.transforms import (
    Gradients,
    check_traced,
    is_transformed,
    keep_dtype,
    transformable,
)


@torch.library.custom_op("axs6::fake_quantise", mutates_args=())
def _fake_quantise(
    x: Tensor,
    format: str,
    rounding: str,
    random: Tensor | None,
    random_bits: int,
    nonfinite: str,
    scale: float | None,
    name: str,
) -> Tensor:
    options: dict[str, Any] = {"nonfinite": nonfinite, "scale": scale, "name": name}
    values = quantise.fake_quantise(
        x, spelled(format), rounding, random=random, random_bits=random_bits, **options
    )
    return values.contiguous()


@_fake_quantise.register_fake
def _(x: Tensor, format: str, rounding: str, random: Tensor | None, *options: Any) -> Tensor:
    check_traced()
    check_device(random, x)
    return x.new_empty(x.shape, dtype=torch.float32)


def _pass_through(ctx: Any, grad: Tensor) -> Gradients:
    return grad.to(ctx.dtype), *[None] * 7


_fake_quantise.register_autograd(_pass_through, setup_context=keep_dtype)
_quantise_transformed = transformable(_fake_quantise, keep_dtype, _pass_through)


def fake_quantise(
    x: Tensor,
    format: Format = "axs6",
    rounding: str = "nearest",
    *,
    block: int | None = None,
    choice: str | None = None,
    random: Tensor | None = None,
    random_bits: int = RANDOM_BITS,
    nonfinite: quantise.NonFinite = "error",
    scale: float | None = None,
    name: str = "values",
) -> Tensor:
    """Encode and decode: the float32 values of `x` in a format.

    Args:
        x, format, rounding, block, choice, random, random_bits, nonfinite, scale, name: as of
            `encode`.

    Returns:
        float32 of the shape of `x`, equal to `axs6.decode(axs6.encode(x))` in every bit. The
        gradient passes through as it is.

    Raises:
        TypeError, ValueError: as `encode`.
    """
    quantise.check_input(x, name)
    check_random(random)
    text = spelling(format, block, choice)
    operator: Callable[..., Any] = _fake_quantise
    if not torch.compiler.is_compiling() and is_transformed():
        operator = _quantise_transformed
    return operator(x, text, rounding, random, random_bits, nonfinite, scale, name)


def _is_direct(*tensors: Tensor | None) -> bool:
    """Whether an operator can be called directly: no gradient or dispatch mode is active."""
    refuse_tracing()
    if _len_torch_dispatch_stack() or is_transformed():
        return False
    given = [x for x in tensors if x is not None]
    # Of these torch's dispatcher makes others, or nothing.
    if any(x.is_meta or x.is_neg() for x in given):
        return False
    if torch.is_grad_enabled() and any(x.requires_grad for x in given):
        return False
    return all(type(x) in (Tensor, nn.Parameter) for x in given)


def _of_one_dtype(a: Tensor, b: Tensor, dtype: torch.dtype) -> tuple[Tensor, Tensor]:
    """Both operands in one dtype under `torch.autocast`, which changes some dtypes."""
    if a.dtype != b.dtype and torch.is_autocast_enabled(a.device.type):
        return a.to(dtype), b.to(dtype)
    return a, b


def product(a: Tensor, b: Tensor, site: int) -> Tensor:
    """Products of two batches of activations: (G, M, K) and (G, N, K) to (G, M, N).

    Within `torch.autocast` operands of two dtypes take the wider one.
    """
    a, b = _of_one_dtype(a, b, torch.promote_types(a.dtype, b.dtype))
    if not torch.compiler.is_compiling():
        for x in (a, b):
            check_origin(site_of(site), x)
        # Modes that replace functions would see every step of it.
        with torch._C.DisableTorchFunction():
            if _is_direct(a, b):
                return _multiply(a, b, site)
        if is_transformed():
            return _product_transformed(a, b, site)
    return _product(a, b, site)


def weight_product(
    x: Tensor, weight: Tensor, bias: Tensor | None, site: int, whole: Tensor | None = None
) -> Tensor:
    """Products with a weight: (G, M, K) and (G * N, ...) to (G, M, N), plus a bias (G * N,).

    The weight has the module's shape: its first axis is G groups of N rows, the others are K. The
    place caches its encoding. The product and the sum with the bias are FP32; the result is rounded
    once to the dtype of `x`, whose scale of the tensor is that of `whole`, if given. Within
    `torch.autocast` `x` takes the dtype of the weight.
    """
    x, weight = _of_one_dtype(x, weight, weight.dtype)
    if not torch.compiler.is_compiling():
        with torch._C.DisableTorchFunction():
            if _is_direct(x, weight, bias):
                return _multiply_weight(x, weight, bias, site, whole)
        if is_transformed():
            return _weight_product_transformed(x, weight, bias, site, whole)
    return _weight_product(x, weight, bias, site, whole)


def _multiply(a: Tensor, b: Tensor, site: int) -> Tensor:
    place = site_of(site)
    _check_operands(place, a, b, ("left operand", "right operand"))
    if is_empty(a, b):
        return _no_product(place, a, b).values.to(a.dtype)
    right = place.prepare(b, "right", "right operand")
    if not is_observed():
        return place.product(a, "left operand", right).to(a.device, a.dtype)
    result = place.backend.product(place.prepare(a, "left", "left operand"), right)
    place.report(a, b, result)
    return result.values.to(a.device, a.dtype)


_product = torch.library.custom_op("axs6::product", _multiply, mutates_args=())


@_product.register_fake
def _(a: Tensor, b: Tensor, site: int) -> Tensor:
    check_traced()
    _check_operands(site_of(site), a, b, ("left operand", "right operand"))
    return a.new_empty(a.shape[0], a.shape[1], b.shape[1])


def _keep_product(ctx: Any, inputs: tuple[Any, ...], output: Tensor) -> None:
    a, b, site = inputs
    # The place lives on after its model, if gradients are wanted then.
    ctx.place = site_of(site)
    ctx.save_for_backward(a, b)


def _product_gradients(ctx: Any, grad: Tensor) -> Gradients:
    a, b = ctx.saved_tensors
    grad_a, grad_b = operand_gradients(ctx.place, a, b, grad, ctx.needs_input_grad)
    return grad_a, grad_b, None


_product.register_autograd(_product_gradients, setup_context=_keep_product)
_product_transformed = transformable(_product, _keep_product, _product_gradients)


def _multiply_weight(
    x: Tensor, weight: Tensor, bias: Tensor | None, site: int, whole: Tensor | None
) -> Tensor:
    place = site_of(site)
    matrices = as_matrices(place, weight, x.shape[0])
    _check_operands(place, x, matrices, ("input", "weight"))
    _check_device(place, "bias", bias, x)
    if is_empty(x, matrices):
        return with_bias(_no_product(place, x, matrices).values, bias).to(x.dtype)
    right = place.prepare_weight(weight, matrices)
    if not is_observed():
        return place.product(x, "input", right, bias, whole).to(x.device, x.dtype)
    result = place.backend.product(place.prepare(x, "left", "input", whole), right)
    place.report(x, matrices, result, (whole, place.whole(weight)))
    return with_bias(result.values.to(x.device), bias).to(x.dtype)


_weight_product = torch.library.custom_op("axs6::weight_product", _multiply_weight, mutates_args=())


@_weight_product.register_fake
def _(x: Tensor, weight: Tensor, bias: Tensor | None, site: int, whole: Tensor | None) -> Tensor:
    check_traced()
    place = site_of(site)
    matrices = as_matrices(place, weight, x.shape[0])
    _check_operands(place, x, matrices, ("input", "weight"))
    _check_device(place, "bias", bias, x)
    return x.new_empty(x.shape[0], x.shape[1], matrices.shape[1])


def _keep_weight_product(ctx: Any, inputs: tuple[Any, ...], output: Tensor) -> None:
    x, weight, bias, site, whole = inputs
    ctx.place = site_of(site)
    ctx.bias_dtype = None if bias is None else bias.dtype
    ctx.save_for_backward(x, weight, whole if scales_tensor(ctx.place.formats[0]) else None)


def _weight_product_gradients(ctx: Any, grad: Tensor) -> Gradients:
    x, weight, whole = ctx.saved_tensors
    place = ctx.place
    matrices = as_matrices(place, weight, x.shape[0])
    wholes = (whole, place.whole(weight))
    grad_x, part = operand_gradients(place, x, matrices, grad, ctx.needs_input_grad, wholes)
    grad_weight = grad_bias = None
    if part is not None:
        grad_weight = part.reshape(place.chosen(weight).shape)
        if place.rows is not None:
            first, last = place.rows
            missing = (0, 0) * (weight.ndim - 1) + (first, len(weight) - last)
            grad_weight = functional.pad(grad_weight, missing)
    if ctx.needs_input_grad[2]:
        grad_bias = grad.float().sum(1).reshape(-1).to(ctx.bias_dtype)
    return grad_x, grad_weight, grad_bias, None, None


_weight_product.register_autograd(_weight_product_gradients, setup_context=_keep_weight_product)
_weight_product_transformed = transformable(
    _weight_product, _keep_weight_product, _weight_product_gradients
)


def as_matrices(site: Site, weight: Tensor, groups: int) -> Tensor:
    """A weight as matrices (G, N, K)."""
    rows = site.chosen(weight)
    return rows.reshape(groups, rows.shape[0] // groups, prod(rows.shape[1:]))


def _check_operands(site: Site, a: Tensor, b: Tensor, names: tuple[str, str]) -> None:
    for x, name in ((a, names[0]), (b, names[1])):
        quantise.check_input(x, f"{site.name}: {name}")
    if a.dtype != b.dtype:
        raise TypeError(
            f"{site.name}: {names[0]} and {names[1]} must have one dtype, "
            f"not {a.dtype} and {b.dtype}"
        )
    if a.device != b.device:
        raise ValueError(
            f"{site.name}: {names[0]} and {names[1]} must be on one device, "
            f"not {a.device} and {b.device}"
        )
    if a.shape[0] != b.shape[0] or a.shape[2] != b.shape[2]:
        raise ValueError(
            f"{site.name}: {names[0]} and {names[1]} must agree in K, "
            f"not have {a.shape[2]} and {b.shape[2]}"
        )


def _check_device(site: Site, name: str, x: Tensor | None, other: Tensor) -> None:
    if x is not None and x.device != other.device:
        raise ValueError(f"{site.name}: {name} must be on {other.device}, not on {x.device}")


def _no_product(site: Site, a: Tensor, b: Tensor) -> ProductBatch:
    """The result of an empty product: no values, or +0 if K = 0."""
    shape = (a.shape[0], a.shape[1], b.shape[1])
    values = torch.zeros(shape, dtype=torch.float32, device=a.device)
    result = ProductBatch(values)
    site.report(a, b, result)
    return result
