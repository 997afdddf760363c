"""Models whose weights do not change."""

from collections.abc import Iterator
from typing import Any

from torch import nn


def freeze(model: nn.Module) -> None:
    """Promise that weights do not change, so that products skip the check.

    By default a product reads all bytes of its weight, to encode it again if they have changed.
    This is slow relative to products with few rows. In a frozen model a weight is read once more.
    After that it is encoded again only if torch counts a change or the weight has other memory, as
    after `load_state_dict`. Changes that torch does not count, such as writes through `.data` or by
    another process, are not noticed until `unfreeze(model)`, `model.train()` or `save_packed`.

    Args:
        model: what `convert` returned, in evaluation mode. A copy of it is not frozen.

    Raises:
        ValueError: the model is not converted, or a module of it is in training mode.
    """
    if not any(True for module in model.modules() for _ in _places(module)):
        raise ValueError("model must be converted: it has no product in a block format")
    training = [name for name, module in model.named_modules() if module.training]
    if training:
        raise ValueError(f"{training[0] or 'the model'} must be in evaluation mode: call eval()")
    for module in model.modules():
        set_frozen(module, True)


def unfreeze(model: nn.Module) -> None:
    """Let products check their weights again, as before `freeze`; `model.train()` does too."""
    for module in model.modules():
        set_frozen(module, False)


def set_frozen(module: nn.Module, frozen: bool) -> None:
    """Set whether the weights of a module's own places are frozen."""
    for place in _places(module):
        place.freeze(frozen)


def look_again(model: nn.Module) -> None:
    """Let the next products read all weights, frozen ones too."""
    for module in model.modules():
        for place in _places(module):
            place.look_again()


def _places(module: nn.Module) -> Iterator[Any]:
    """The places of a module, and the scope of those in its methods."""
    own = vars(module)
    yield from own.get("axs6_sites", {}).values()
    yield from (own[name] for name in ("axs6_site", "axs6_scope") if name in own)
