"""Rotations of blocks along the reduction, which spread outliers over a block."""

import torch
from torch import Tensor, nn

from axs6.studies.language.linear import change_input, give_weight, linear_layers


def hadamard(x: Tensor, size: int) -> Tensor:
    """Multiply blocks of the last axis by the orthonormal Hadamard matrix of Sylvester.

    It is computed by additions, log2(size) stages of them, so that no product is left for
    `convert` to replace. The matrix is symmetric and its own inverse.

    Args:
        x: floating point, of shape (..., K).
        size: of a block, a power of two that divides K.

    Returns:
        The values in the dtype and shape of `x`.
    """
    y, step = x, 1
    while step < size:
        a, b = y.reshape(*x.shape[:-1], -1, 2, step).unbind(-2)
        y = torch.stack([a + b, a - b], -2)
        step *= 2
    return y.reshape(x.shape) * size**-0.5


def rotate(model: nn.Module, size: int, exclude: str | None = None) -> None:
    """Rotate inputs and weights of linear layers block by block, in place.

    Weights are rotated in FP64 and rounded to FP32 once, inputs each time. Products in FP32 stay
    the same but for rounding. Layers of which `size` does not divide the inputs are left alone;
    `unrotated` names them.

    Args:
        model: whose layers get weights of their own.
        size: of a block, a power of two.
        exclude: name of a layer that is left alone.
    """
    for layer in linear_layers(model, exclude).values():
        if layer.in_features % size == 0:
            weight = layer.weight.detach()
            give_weight(layer, hadamard(weight.double(), size).to(weight.dtype))
            change_input(layer, lambda x: hadamard(x, size))


def unrotated(model: nn.Module, size: int, exclude: str | None = None) -> list[str]:
    """Names of the linear layers that `rotate` leaves alone, with their inputs."""
    return [
        f"{name} ({layer.in_features:,})"
        for name, layer in linear_layers(model, exclude).items()
        if layer.in_features % size
    ]
