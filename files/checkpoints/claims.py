"""What a checkpoint's documents say of its weights, beside what its tensors are."""

import re
from collections.abc import Iterator
from typing import Any

from axs6.files.checkpoints.kinds import KINDS, Kind
from axs6.files.checkpoints.recognise import MODULE
from axs6.files.checkpoints.source import CONFIG, Checkpoint
from axs6.files.checkpoints.weight import Weight

METHODS = {
    "mxfp4": "gpt-oss",
    "fp8": "fp8-blocks",
    "modelopt": "modelopt",
    "modelopt_fp4": "modelopt",
    "compressed-tensors": "compressed-tensors",
    "quark": "quark",
}
"""Kinds by the `quant_method` of their configuration."""


def contradictions(checkpoint: Checkpoint) -> Iterator[tuple[str, str]]:
    """Tensors, or documents, and what they say that others do not."""
    quantisation = checkpoint.quantisation
    weights = checkpoint.found.weights
    if not quantisation:
        return
    method = str(quantisation.get("quant_method", "modelopt"))
    name = METHODS.get(method)
    if name is None:
        yield CONFIG, f"its quant_method {method!r} is not known"
        return
    if not weights:
        yield CONFIG, f"its quant_method is {method!r}, and no tensor is a weight in a layout"
        return
    kind = KINDS[name]
    ignored = [str(each) for each in _ignored(quantisation)]
    for weight in weights:
        if not any(weight.layout.name == layout.name for layout in kind.layouts):
            yield weight.name, f"its layout is {weight.layout.name}, which {method} does not have"
        module = weight.name.removesuffix(MODULE)
        if any(_matches(module, pattern) for pattern in ignored):
            yield weight.name, f"{module!r} is among those that the configuration leaves out"
    yield from _sizes(quantisation, weights, kind)


def _ignored(quantisation: dict[str, Any]) -> list[Any]:
    for key in ("ignore", "exclude_modules", "modules_to_not_convert", "exclude"):
        if isinstance(quantisation.get(key), list):
            return list(quantisation[key])
    return []


def _matches(module: str, pattern: str) -> bool:
    """Whether a module is one that a pattern names: a name, one with *, or `re:` and a pattern."""
    if pattern.startswith("re:"):
        try:
            return re.match(pattern[3:], module) is not None
        except re.error:
            return False
    return re.fullmatch(re.escape(pattern).replace(r"\*", ".*"), module) is not None


def _sizes(
    quantisation: dict[str, Any], weights: list[Weight], kind: Kind
) -> Iterator[tuple[str, str]]:
    """Sizes of groups that are said, and others that the tensors have."""
    said = [quantisation.get("group_size")]
    groups = quantisation.get("config_groups")
    for group in groups.values() if isinstance(groups, dict) else ():
        arguments = group.get("weights") if isinstance(group, dict) else None
        said.append(arguments.get("group_size") if isinstance(arguments, dict) else None)
    known = {size for size in said if isinstance(size, int)}
    for weight in weights if known else ():
        size = weight.scales[0].values
        if weight.scales[0].rows == 1 and size and size not in known:
            yield (
                weight.name,
                f"its scales are of {size} values, and the configuration says "
                f"{', '.join(map(str, sorted(known)))}",
            )
    tile = quantisation.get("weight_block_size")
    for weight in weights if isinstance(tile, list) else ():
        part = weight.scales[0]
        if [part.rows, part.values] != tile:
            yield (
                weight.name,
                f"its scales are of {part.rows} x {part.values} values, and the configuration "
                f"says {' x '.join(str(n) for n in tile or ())}",
            )
