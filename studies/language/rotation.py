"""Rotations of blocks along the reduction, which spread outliers over a block."""

from torch import Tensor, nn

from axs6.golden.hadamard import scale_exponent
from axs6.studies.language.linear import change_input, give_weight, linear_layers
from axs6.torch import hadamard
from axs6.torch.hadamard import sums


def inverse(x: Tensor, size: int) -> Tensor:
    """The inverse of `axs6.torch.hadamard` along the last axis, in float64 without its rounding.

    Args:
        x: of shape (..., K).
        size: of a block, which divides K.
    """
    blocks = x.double().reshape(*x.shape[:-1], -1, size)
    scale = 2.0 ** scale_exponent(size) / size
    return (sums(blocks) * scale).reshape(x.shape)


def rotate(model: nn.Module, size: int, exclude: str | None = None) -> None:
    """Rotate inputs and weights of linear layers block by block, in place.

    Inputs are transformed each time, with the bits of the unit `hadamard`. Weights are transformed
    once by the inverse in FP64, and rounded to FP32. Products in FP32 stay the same but for
    rounding. Layers of which `size` does not divide the inputs are left alone;
    `unrotated` names them.

    Args:
        model: whose layers get weights of their own.
        size: of a block, a power of two.
        exclude: name of a layer that is left alone.
    """
    for layer in linear_layers(model, exclude).values():
        if layer.in_features % size == 0:
            weight = layer.weight.detach()
            give_weight(layer, inverse(weight, size).to(weight.dtype))
            change_input(layer, lambda x: hadamard(x, size))


def unrotated(model: nn.Module, size: int, exclude: str | None = None) -> list[str]:
    """Names of the linear layers that `rotate` leaves alone, with their inputs."""
    return [
        f"{name} ({layer.in_features:,})"
        for name, layer in linear_layers(model, exclude).items()
        if layer.in_features % size
    ]
