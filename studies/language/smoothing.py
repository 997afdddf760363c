"""SmoothQuant's migration: channels of inputs become smaller, and weights larger by as much."""

from collections.abc import Mapping
from functools import partial

import torch
from torch import Tensor, nn

from axs6.studies.language.linear import change_input, give_weight, linear_layers


def smoothing(inputs: Tensor, weight: Tensor, alpha: float) -> Tensor:
    """Divisors of inputs, channel by channel.

    Args:
        inputs: the largest magnitude of each channel, (K,).
        weight: of the layer, (N, K).
        alpha: 0 leaves the inputs' reach to themselves, 1 makes all channels reach to 1.

    Returns:
        inputs^alpha / max|weight|^(1 - alpha) in float64, (K,); 1 for channels in which either is
        0.

    Source: Xiao et al., "SmoothQuant", equation 4.
    """
    x, w = inputs.double(), weight.detach().abs().amax(0).double()
    return torch.where((x > 0) & (w > 0), x**alpha / w ** (1 - alpha), 1.0)


def smooth(
    model: nn.Module, maxima: Mapping[str, Tensor], alpha: float, exclude: str | None = None
) -> None:
    """Divide inputs of linear layers by factors of their channels, and multiply weights by them.

    Products in FP32 stay the same but for rounding. Each layer has factors of its own, by which
    its inputs are divided when it runs, whichever layer or norm they come from.

    Args:
        model: whose layers get weights of their own.
        maxima: the largest magnitude of each channel of a layer's inputs, by its name.
        alpha: as of `smoothing`.
        exclude: name of a layer that is left alone.
    """
    for name, layer in linear_layers(model, exclude).items():
        factors = smoothing(maxima[name], layer.weight, alpha).float()
        give_weight(layer, (layer.weight.detach().double() * factors).to(layer.weight.dtype))
        change_input(layer, partial(torch.divide, other=factors))
