"""Inputs of linear layers while a model runs over windows of a text."""

from collections.abc import Callable

import torch
from torch import Tensor, nn

from axs6.studies.language.linear import linear_layers


def input_maxima(model: nn.Module, windows: Tensor, exclude: str | None) -> dict[str, Tensor]:
    """The largest magnitude of each channel of the inputs of linear layers, (K,) by name."""
    return _over_inputs(
        *(model, windows, exclude),
        lambda x, found: x.abs().amax(0) if found is None else found.maximum(x.abs().amax(0)),
    )


def hessians(model: nn.Module, windows: Tensor, exclude: str | None) -> dict[str, Tensor]:
    """Sums over tokens of the outer product of an input with itself, float32 (K, K) by name.

    Half the second derivative of the squared error of a layer's outputs to its weights.
    """
    return _over_inputs(
        *(model, windows, exclude),
        lambda x, found: x.mT @ x if found is None else found.addmm_(x.mT, x),
    )


def _over_inputs(
    model: nn.Module,
    windows: Tensor,
    exclude: str | None,
    add: Callable[[Tensor, Tensor | None], Tensor],
) -> dict[str, Tensor]:
    """Results of `add` for the inputs (tokens, K) of each linear layer, window by window.

    Raises:
        ValueError: a layer is never called.
    """
    found: dict[str, Tensor] = {}

    def see(name: str) -> Callable[..., None]:
        def hook(_: nn.Module, args: tuple[Tensor, ...], kwargs: dict[str, Tensor]) -> None:
            x = args[0] if args else kwargs["input"]
            found[name] = add(x.detach().flatten(0, -2).float(), found.get(name))

        return hook

    layers = linear_layers(model, exclude)
    hooks = [
        layer.register_forward_pre_hook(see(name), with_kwargs=True)
        for name, layer in layers.items()
    ]
    try:
        with torch.inference_mode():
            for window in windows:
                model(window.unsqueeze(0))
    finally:
        for hook in hooks:
            hook.remove()
    for name in layers:
        if name not in found:
            raise ValueError(f"calibration windows do not run {name}")
    return found
