"""A language model with parts in block formats, by a setting."""

import tomllib
from fnmatch import fnmatchcase
from functools import partial
from typing import Any

import torch
from torch import Tensor, nn

from axs6.golden.formats import BlockFormat, block_format
from axs6.studies.language.calibration import hessians, input_maxima
from axs6.studies.language.gptq import gptq
from axs6.studies.language.linear import change_input, give_weight, linear_layers, shared_copy
from axs6.studies.language.models import LanguageModel
from axs6.studies.language.request import (
    ACTIVATIONS,
    BF16,
    BOTH,
    FP32,
    GPTQ,
    PLAIN,
    WEIGHTS,
    Setting,
)
from axs6.studies.language.rotation import rotate
from axs6.studies.language.smoothing import smooth
from axs6.torch import Policy, convert, decode, fake_quantise


def quantised(
    model: LanguageModel, setting: Setting, calibration: Tensor | None = None
) -> nn.Module:
    """A copy of a model with a setting applied.

    With activations in a block format every matrix product has the hardware's bits, also in
    attention. With activations in FP32 or BF16 linear layers have decoded weights, and torch
    multiplies. Rows of the table of embeddings are encoded along their width. Inputs are smoothed
    first, then rotated, then rounded.

    Args:
        model: left as it is; the copy may share its tensors.
        setting: what is in which format, and how.
        calibration: windows of tokens, int64 (N, T), over which the FP32 model is watched where
            the setting asks for that.

    Raises:
        ValueError: a head or embeddings are asked for that the model does not name, its weights
            are not in linear layers alone, or there are no calibration windows.
    """
    if setting.weights is None:
        return model.module
    if setting.place:
        return alone(model, setting.place, setting.weights, setting.part)
    names = {id(module): name for name, module in model.module.named_modules()}
    table = _part(model.module, "input") if setting.embeddings else None
    if setting.embeddings and table is None:
        raise ValueError("the model does not say which table its embeddings are")
    exclude = excluded(model, setting)
    copied = shared_copy(model.module)
    if setting.activations in PLAIN or setting.prepared:
        _check_weights(copied, exclude)
    found = _prepare(copied, setting, exclude, calibration)
    if setting.activations in PLAIN:
        _quantise_weights(copied, setting, exclude, found)
    else:
        policy = Policy.from_dict(tomllib.loads(setting.policy)) if setting.policy else None
        copied = convert(
            copied,
            weights=setting.weights,
            activations=setting.activations,
            accumulator=setting.accumulator,
            policy=policy,
            exclude=[] if exclude is None or _leaves(policy, exclude) else [exclude],
        )
        _load_weights(copied, found)
    if table is not None:
        # A parameter of its own: the head often has the same one.
        place: Any = copied.get_submodule(names[id(table)])
        rows = fake_quantise(table.weight.detach(), setting.weights)
        place.weight = nn.Parameter(rows, requires_grad=False)
    return copied


def alone(model: LanguageModel, place: str, fmt: str, part: str = BOTH) -> nn.Module:
    """A copy of a model in which one place of products is in a format.

    Args:
        model: left as it is; the copy shares its tensors.
        place: name of a linear layer, or of a module that multiplies activations itself.
        fmt: the format.
        part: which operands of a layer are quantised; both have the hardware's products. Products
            of activations are the hardware's in any case.
    """
    copied = shared_copy(model.module)
    module = copied.get_submodule(place)
    if isinstance(module, nn.Linear) and part == WEIGHTS:
        give_weight(module, fake_quantise(module.weight.detach(), fmt))
    elif isinstance(module, nn.Linear) and part == ACTIVATIONS:
        change_input(module, partial(fake_quantise, format=fmt))
    else:
        own = [name for name in linear_layers(module) if name]
        copied.set_submodule(place, convert(module, format=fmt, exclude=own))
    return copied


def _leaves(policy: Policy | None, name: str) -> bool:
    """Whether a policy itself leaves a layer of this name in FP32."""
    rules = () if policy is None else policy.rules
    first = next((x for x in rules if x.selector == "name" and fnmatchcase(name, x.value)), None)
    return first is not None and first.settings.get("format") == FP32


def excluded(model: LanguageModel, setting: Setting) -> str | None:
    """Name of the layer that a setting leaves in FP32: what scores tokens, where it does."""
    if setting.head:
        return None
    head = _part(model.module, "output")
    return next((name for name, each in model.module.named_modules() if each is head), None)


def _part(module: nn.Module, which: str) -> Any:
    """The module that scores tokens ("output") or embeds them ("input"), if the model names it."""
    get = getattr(module, f"get_{which}_embeddings", None)
    return get() if get is not None else None


def _check_weights(model: nn.Module, exclude: str | None) -> None:
    """Raise ValueError unless all matrices are of linear layers or embeddings."""
    layers = linear_layers(model)
    for name, module in model.named_modules():
        if name == exclude or name in layers or isinstance(module, nn.Embedding):
            continue
        if any(weight.ndim > 1 for weight in module.parameters(recurse=False)):
            kind = type(module).__name__
            raise ValueError(f"{name} ({kind}) has a weight that is in no linear layer")


def _prepare(
    model: nn.Module, setting: Setting, exclude: str | None, calibration: Tensor | None
) -> dict[str, Tensor]:
    """Smooth and rotate a model in place, and give the Hessians by which weights are rounded."""
    if setting.calibrated and calibration is None:
        raise ValueError(f"{setting} needs calibration windows")
    if setting.smooth is not None:
        assert calibration is not None
        smooth(model, input_maxima(model, calibration, exclude), setting.smooth, exclude)
    if setting.rotate is not None:
        rotate(model, setting.rotate, exclude)
    if setting.rounding != GPTQ:
        return {}
    assert calibration is not None
    return hessians(model, calibration, exclude)


def _quantise_weights(
    model: nn.Module, setting: Setting, exclude: str | None, found: dict[str, Tensor]
) -> None:
    """Put what their blocks decode to in place of the weights of linear layers."""
    assert setting.weights is not None
    fmt = block_format(setting.weights)
    for name, layer in linear_layers(model, exclude).items():
        give_weight(layer, _rounded(layer.weight.detach(), found.get(name), fmt))
        if setting.activations == BF16:
            change_input(layer, _in_bf16)


def _rounded(weight: Tensor, hessian: Tensor | None, fmt: BlockFormat) -> Tensor:
    return fake_quantise(weight, fmt) if hessian is None else decode(gptq(weight, hessian, fmt))


def _load_weights(model: nn.Module, found: dict[str, Tensor]) -> None:
    """Give converted layers the blocks that GPTQ finds for their formats."""
    for name, hessian in found.items():
        layer: Any = model.get_submodule(name)
        site = getattr(layer, "axs6_site", None)
        if site is not None:
            blocks = gptq(layer.weight, hessian, site.formats[1])
            give_weight(layer, decode(blocks))
            site.load(blocks)


def _in_bf16(x: Tensor) -> Tensor:
    """Inputs rounded to BF16, in their own dtype."""
    return x.to(torch.bfloat16).to(x.dtype)


def quantised_cache(fmt: str) -> Any:
    """A cache of keys and values for one text, of `transformers`: they are kept in a block format.

    Keys and values of each new token are encoded head by head, along the head's width. Layers read
    the decoded values.
    """
    from transformers import DynamicCache

    class Cache(DynamicCache):
        """Keys and values in a block format."""

        def update(
            self,
            key_states: Tensor,
            value_states: Tensor,
            layer_idx: int,
            *args: Any,
            **kwargs: Any,
        ) -> tuple[Tensor, Tensor]:
            """Keep the decoded values of the blocks of new keys and values."""
            keys, values = (fake_quantise(x.contiguous(), fmt) for x in (key_states, value_states))
            return super().update(keys, values, layer_idx, *args, **kwargs)

    return Cache()
