"""A language model with the parts that a setting names in block formats."""

import copy
import tomllib
from typing import Any

import torch
from torch import Tensor, nn

from axs6.studies.language.models import LanguageModel
from axs6.studies.language.request import BF16, PLAIN, Setting
from axs6.torch import Policy, convert, fake_quantise


def quantised(model: LanguageModel, setting: Setting) -> nn.Module:
    """A copy of a model in which a setting holds.

    With activations in a block format every matrix product has the hardware's bits, those of
    attention among them. With activations in FP32 or BF16 the weights of linear layers are what
    their blocks decode to, and torch multiplies. Rows of the table of embeddings are encoded along
    their width.

    Raises:
        ValueError: a head or embeddings are asked for that the model does not name, or its weights
            are not in linear layers alone.
    """
    if setting.weights is None:
        return model.module
    head = _part(model.module, "output") if not setting.head else None
    table = _part(model.module, "input") if setting.embeddings else None
    if setting.embeddings and table is None:
        raise ValueError("the model does not say which table its embeddings are")
    names = {id(module): name for name, module in model.module.named_modules()}
    if setting.activations in PLAIN:
        copied = copy.deepcopy(model.module)
        _quantise_weights(copied, setting, names.get(id(head)))
    else:
        copied = convert(
            model.module,
            weights=setting.weights,
            activations=setting.activations,
            accumulator=setting.accumulator,
            policy=Policy.from_dict(tomllib.loads(setting.policy)) if setting.policy else None,
            exclude=[names[id(head)]] if head is not None else [],
        )
    if table is not None:
        # A parameter of its own: the head often has the same one.
        place: Any = copied.get_submodule(names[id(table)])
        rows = fake_quantise(table.weight.detach(), setting.weights)
        place.weight = nn.Parameter(rows, requires_grad=False)
    return copied


def _part(module: nn.Module, which: str) -> Any:
    """The module that scores tokens ("output") or embeds them ("input"), where a model says."""
    get = getattr(module, f"get_{which}_embeddings", None)
    return get() if get is not None else None


def _quantise_weights(model: nn.Module, setting: Setting, head: str | None) -> None:
    """Put what their blocks decode to in place of the weights of all linear layers but the head.

    Raises:
        ValueError: a module has a weight of another kind.
    """
    assert setting.weights is not None
    for name, module in model.named_modules():
        if name == head:
            continue
        weight = getattr(module, "weight", None)
        turned = type(module).__name__ == "Conv1D"
        if not isinstance(module, nn.Linear) and not turned:
            if isinstance(weight, Tensor) and weight.ndim > 1 and not _embeds(module):
                kind = type(module).__name__
                raise ValueError(f"{name} ({kind}) has a weight that is in no linear layer")
            continue
        assert isinstance(weight, Tensor)
        rows = weight.detach().mT if turned else weight.detach()
        values = fake_quantise(rows.contiguous(), setting.weights)
        owner: Any = module
        owner.weight = nn.Parameter(values.mT if turned else values, requires_grad=False)
        if setting.activations == BF16:
            module.register_forward_pre_hook(_in_bf16)


def _embeds(module: nn.Module) -> bool:
    return isinstance(module, nn.Embedding)


def _in_bf16(module: nn.Module, inputs: tuple[Any, ...]) -> tuple[Any, ...]:
    """Inputs rounded to BF16, in the dtype that they have."""
    return tuple(x.to(torch.bfloat16).to(x.dtype) if isinstance(x, Tensor) else x for x in inputs)


def quantised_cache(fmt: str) -> Any:
    """A cache of keys and values for one text, of `transformers`: they are kept in a block format.

    Each token's keys and values are encoded head by head when it comes, along the head's width.
    What a layer reads is what the blocks decode to.
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
            """Keep what the blocks of new keys and values decode to."""
            keys, values = (fake_quantise(x.contiguous(), fmt) for x in (key_states, value_states))
            return super().update(keys, values, layer_idx, *args, **kwargs)

    return Cache()
