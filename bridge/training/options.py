"""Options of a converted model, changed in place."""

import copy
from collections.abc import Callable, Iterator
from typing import Any

from torch import nn

from axs6.torch.options import ProductOptions

Change = Callable[[str, ProductOptions], ProductOptions]
"""Called with the name of a place, or of a module whose products are places, and its options."""


def set_options(model: nn.Module, change: Change) -> None:
    """Change how the products of a converted model are computed, place by place.

    Parameters, buffers and hooks stay the same objects, so that an optimiser keeps working. Weights
    are encoded again when they are next used.

    Args:
        model: what `convert` gave.
        change: gives the new options of each place.

    Raises:
        ValueError: the model is not converted, or the options do not fit.
    """
    changed = [
        (holder, key, change(place.name, place.options), place)
        for holder, key, place in places(model)
    ]
    if not changed:
        raise ValueError("model must be converted: it has no product in a block format")
    for holder, key, options, place in changed:
        if options != place.options:
            # A copy is a place of its own, with nothing encoded yet.
            new = copy.copy(place)
            new.options = options
            new.scale_by(place.scaling)
            holder[key] = new


def options_of(model: nn.Module) -> dict[str, ProductOptions]:
    """Options of each place of a converted model, and of each module whose products are places."""
    return {place.name: place.options for _, _, place in places(model)}


def places(model: nn.Module) -> Iterator[tuple[dict[str, Any], str, Any]]:
    """The dicts that hold places or scopes, the keys in them, and these."""
    for module in model.modules():
        attributes = vars(module)
        for name in ("axs6_site", "axs6_scope"):
            if name in attributes:
                yield attributes, name, attributes[name]
        sites = attributes.get("axs6_sites", {})
        for part in sites:
            yield sites, part, sites[part]
