"""Operators of the backward pass: gradients of the operands of products.

They are the gradients of the FP32 product of the decoded operands (straight-through estimator): for
y = q(a) q(b)^T, dL/da = g q(b) and dL/db = g^T q(a). With a format of gradients, the hardware
computes these products too. g and its transpose are encoded in that format, a and b in their own.
They are transposed before they are encoded, so that all blocks run along the summed axis. If the
options have a rotation, both operands of a weight's gradient are rotated before they are encoded.
"""

from collections.abc import Callable
from typing import Any, NoReturn

import torch
from torch import Tensor
from torch.nn import functional

from axs6.golden.hadamard import scale_exponent
from axs6.torch import quantise
from axs6.torch.hadamard import hadamard
from axs6.torch.site import Role, Site, Wholes, site_of
from axs6.torch.transforms import Gradients, is_transformed, keep_dtype, transformable

SIDES: tuple[Role, Role] = ("left", "right")


@torch.library.custom_op("axs6::gradient_product", mutates_args=())
def gradient_product(
    grad: Tensor, other: Tensor, site: int, right: bool, whole: Tensor | None
) -> Tensor:
    """A product of the backward pass: (G, M, K) and (G, N, K) to (G, M, N), in FP32.

    Args:
        grad: gradients, encoded in their own format.
        other: the values of an operand, encoded again along the axis summed here.
        site: handle of the place of the forward product.
        right: whether the operand was the right one there.
        whole: the tensor that contains the operand, if larger.
    """
    place = site_of(site)
    if is_empty(grad, other):
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
    """The quantised float32 values of an operand of the forward product.

    The gradient passes through unchanged.

    Args:
        x: the operand, or part of one.
        site: handle of the place of the product.
        right: whether it is the right operand.
        whole: the tensor that contains it, if larger.
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


decoded.register_autograd(_pass_decoded, setup_context=keep_dtype)
_decoded_transformed = transformable(decoded, keep_dtype, _pass_decoded)


def operand_gradients(
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


def is_empty(a: Tensor, b: Tensor) -> bool:
    """Whether a product has no values or no terms."""
    return not (a.numel() and b.numel())
