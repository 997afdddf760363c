"""The operators that torch sees: opaque to its compiler, with straight-through gradients.

Everything with a defined order of rounding, bias and result dtype included, happens inside one
operator, where a compiler cannot fuse or reorder it.

Gradients are the gradients of the FP32 product of the decoded operands (straight-through
estimator): for y = q(a) q(b)^T, dL/da = g q(b) and dL/db = g^T q(a). With a format of gradients
these products are the hardware's too: g and its transpose are encoded in that format and a and b in
their own, transposed before they are encoded, so that all blocks run along the axis that is summed.
Where the options have a rotation, both operands of a weight's gradient are rotated before.
"""

from collections.abc import Callable
from math import prod
from typing import Any, NoReturn

import torch
from torch import Tensor, nn
from torch._C import _len_torch_dispatch_stack
from torch.nn import functional

from axs6.golden.hadamard import scale_exponent
from axs6.golden.rounding import RANDOM_BITS
from axs6.torch import quantise
from axs6.torch.backends import ProductBatch, with_bias
from axs6.torch.constant import refuse_tracing
from axs6.torch.extent import scales_tensor
from axs6.torch.hadamard import hadamard
from axs6.torch.options import Format, spelled, spelling
from axs6.torch.rounding import check_device, check_random
from axs6.torch.site import Role, Site, Wholes, check_origin, is_observed, site_of
from axs6.torch.transforms import check_traced, is_transformed, transformable

Gradients = tuple[Tensor | None, ...]
SIDES: tuple[Role, Role] = ("left", "right")


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


def _keep_dtype(ctx: Any, inputs: tuple[Any, ...], output: Tensor) -> None:
    ctx.dtype = inputs[0].dtype


def _pass_through(ctx: Any, grad: Tensor) -> Gradients:
    return grad.to(ctx.dtype), *[None] * 7


_fake_quantise.register_autograd(_pass_through, setup_context=_keep_dtype)
_quantise_transformed = transformable(_fake_quantise, _keep_dtype, _pass_through)


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
    if _is_empty(a, b):
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
    grad_a, grad_b = _operand_gradients(ctx.place, a, b, grad, ctx.needs_input_grad)
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
    if _is_empty(x, matrices):
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
    grad_x, part = _operand_gradients(place, x, matrices, grad, ctx.needs_input_grad, wholes)
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


@torch.library.custom_op("axs6::gradient_product", mutates_args=())
def gradient_product(
    grad: Tensor, other: Tensor, site: int, right: bool, whole: Tensor | None
) -> Tensor:
    """A product of the backward pass: (G, M, K) and (G, N, K) to (G, M, N), in FP32.

    Args:
        grad: gradients, encoded in their own format. other: the values of an operand, encoded again
        along the axis summed here. site: handle of the place of the forward product. right: whether
        the operand was the right one there. whole: the tensor that contains the operand, if larger.
    """
    place = site_of(site)
    if _is_empty(grad, other):
        return grad.new_zeros(*grad.shape[:2], other.shape[1], dtype=torch.float32)
    side, size = SIDES[right], place.options.gradient_rotation
    rotated = size != 0 and place.weighted and not right
    if rotated:
        grad, other = _rotated(grad, other, size)
        whole = None
    left = place.prepare(grad, "gradient", "gradient")
    right_hand = place.prepare(other, side, f"{side} operand", whole)
    values = place.backend.product(left, right_hand).values.to(grad.device)
    if rotated:
        # The factor by which the two transforms enlarge the product: 1 or 2.
        values *= (1 << 2 * scale_exponent(size)) / size
    return values


def _rotated(a: Tensor, b: Tensor, size: int) -> tuple[Tensor, Tensor]:
    """Both operands with random signs along K, the same ones for both, and rotated in blocks.

    K is padded with zeros to whole blocks. Signs come from torch's default generator.
    """
    signs = 1 - 2 * torch.randint(2, (size,), device=a.device)
    padded = (functional.pad(x.detach(), (0, -x.shape[-1] % size)) for x in (a, b))
    a, b = (x * signs.repeat(x.shape[-1] // size).to(x.dtype) for x in padded)
    return hadamard(a, size), hadamard(b, size)


def _keep_nothing(ctx: Any, inputs: tuple[Any, ...], output: Tensor) -> None:
    pass


def _refuse_second(ctx: Any, grad: Tensor) -> NoReturn:
    raise NotImplementedError(
        "gradients in a block format have no derivatives: "
        "convert without gradients= to take second ones"
    )


gradient_product.register_autograd(_refuse_second, setup_context=_keep_nothing)
_gradient_product_transformed = transformable(gradient_product, _keep_nothing, _refuse_second)


@gradient_product.register_fake
def _(grad: Tensor, other: Tensor, site: int, right: bool, whole: Tensor | None) -> Tensor:
    return grad.new_empty(*grad.shape[:2], other.shape[1], dtype=torch.float32)


@torch.library.custom_op("axs6::decoded", mutates_args=())
def decoded(x: Tensor, site: int, right: bool, whole: Tensor | None) -> Tensor:
    """The quantised float32 values of an operand of the forward product, the right or left one.

    It is part of a whole, or all.

    The gradient passes through as it is.
    """
    place = site_of(site)
    blocks = place.loaded(x) if right else None
    if blocks is None:
        blocks = place.part(x, SIDES[right], place.name, whole)
    if blocks is not None:
        return quantise.decode(blocks, device=x.device)
    values = quantise.fake_quantise(
        x,
        place.formats[right],
        nonfinite=place.options.nonfinite,
        scale=place.scale(SIDES[right]),
        name=place.name,
    )
    return values.contiguous()


@decoded.register_fake
def _(x: Tensor, site: int, right: bool, whole: Tensor | None) -> Tensor:
    return x.new_empty(x.shape, dtype=torch.float32)


def _pass_decoded(ctx: Any, grad: Tensor) -> Gradients:
    return grad.to(ctx.dtype), None, None, None


decoded.register_autograd(_pass_decoded, setup_context=_keep_dtype)
_decoded_transformed = transformable(decoded, _keep_dtype, _pass_decoded)


def _operand_gradients(
    site: Site,
    a: Tensor,
    b: Tensor,
    grad: Tensor,
    needed: tuple[bool, ...],
    wholes: Wholes = (None, None),
) -> tuple[Tensor | None, Tensor | None]:
    """Gradients of the two operands of a product."""
    encoded = site.options.gradients is not None
    multiply: Callable[..., Any] = gradient_product
    decode: Callable[..., Any] = decoded
    if is_transformed():
        multiply, decode = _gradient_product_transformed, _decoded_transformed
    grad_a = grad_b = None
    if needed[0]:
        if encoded:
            product = multiply(grad, b.mT, site.handle, True, wholes[1])
        else:
            product = grad.float() @ decode(b, site.handle, True, wholes[1])
        grad_a = product.to(a.dtype)
    if needed[1]:
        if encoded:
            product = multiply(grad.mT, a.mT, site.handle, False, wholes[0])
        else:
            product = grad.float().mT @ decode(a, site.handle, False, wholes[0])
        grad_b = product.to(b.dtype)
    return grad_a, grad_b


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


def _is_empty(a: Tensor, b: Tensor) -> bool:
    return not (a.numel() and b.numel())


def _no_product(site: Site, a: Tensor, b: Tensor) -> ProductBatch:
    """The result of an empty product: no values, or +0 if K = 0."""
    shape = (a.shape[0], a.shape[1], b.shape[1])
    values = torch.zeros(shape, dtype=torch.float32, device=a.device)
    result = ProductBatch(values)
    site.report(a, b, result)
    return result
