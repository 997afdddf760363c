"""Models whose weights are known not to change."""

from collections.abc import Iterator
from typing import Any

from torch import nn


def freeze(model: nn.Module) -> None:
    """Take the user's word that weights change no more, so that no product looks at them again.

    A product reads the bytes of its weight, to encode it anew if they have changed. That takes a
    while beside a product with few rows. In a frozen model a weight is read once more; after that
    it is taken for changed where torch counts a change of it, or it has other memory, as after
    `load_state_dict`. A change that torch does not count, such as a write through `.data` or one
    of another process, is not seen until `unfreeze(model)`, `model.train()` or `save_packed`.

    Args:
        model: what `convert` returned, in evaluation mode. A copy of it is not frozen.

    Raises:
        ValueError: the model is not converted, or a module of it is in training mode.
    """
    if not any(True for module in model.modules() for _ in _places(module)):
        raise ValueError("model must be converted: it has no place of a product")
    training = [name for name, module in model.named_modules() if module.training]
    if training:
        raise ValueError(f"{training[0] or 'the model'} must be in evaluation mode: call eval()")
    for module in model.modules():
        set_frozen(module, True)


def unfreeze(model: nn.Module) -> None:
    """Let products look at their weights again, as before `freeze`; `model.train()` does too."""
    for module in model.modules():
        set_frozen(module, False)


def set_frozen(module: nn.Module, frozen: bool) -> None:
    """Say whether the weights of a module's own places change no more."""
    for place in _places(module):
        place.freeze(frozen)


def look_again(model: nn.Module) -> None:
    """Let the next products read all weights, also where they are frozen."""
    for module in model.modules():
        for place in _places(module):
            place.look_again()


def _places(module: nn.Module) -> Iterator[Any]:
    """The places of a module, and the scope of those in its methods."""
    own = vars(module)
    yield from own.get("axs6_sites", {}).values()
    yield from (own[name] for name in ("axs6_site", "axs6_scope") if name in own)
