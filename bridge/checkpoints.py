"""Converted models and checkpoints of other tools: weights with the bits of the file.

`axs6.files.checkpoints` has the kinds of checkpoints and how they hold weights.
"""

import warnings
from collections.abc import Mapping
from functools import partial
from pathlib import Path
from typing import Any

import numpy as np
import torch
from torch import Tensor, nn

from axs6.files.checkpoints.blocks import blocks_of_weight, weight_of_blocks
from axs6.files.checkpoints.convert import check_target, check_tensors, documents_of
from axs6.files.checkpoints.kinds import kind_of
from axs6.files.checkpoints.recode import recode
from axs6.files.checkpoints.recognise import Found
from axs6.files.checkpoints.source import CONFIG, Checkpoint, open_checkpoint
from axs6.files.checkpoints.weight import Weight
from axs6.files.checkpoints.write import Item, write_checkpoint
from axs6.files.writer import Entry, of_array
from axs6.golden.blocks import Blocks
from axs6.golden.formats import BlockFormat, block_format
from axs6.torch.convert import LAYERS
from axs6.torch.freeze import look_again
from axs6.torch.options import FP32
from axs6.torch.packed import (
    array_of,
    blocks_of_site,
    check_shape,
    packed_weights,
    set_weights,
    tensor_of,
)
from axs6.torch.policy import Policy
from axs6.torch.quantise import decode
from axs6.torch.site import Site


def checkpoint_policy(
    model: nn.Module,
    path: str | Path,
    *,
    activations: str | BlockFormat | None = None,
    **settings: Any,
) -> Policy:
    """The policy with which the products of a model take the weights of a checkpoint.

    Modules get the block formats of their weights in the checkpoint; those whose weights are no
    blocks there are left in FP32. Products without a weight, as in attention, are of the first
    weight's format.

    Args:
        model: what is to be converted, whose names of tensors are those of the checkpoint.
        path: a folder, a .safetensors or a .gguf file.
        activations: block format of the activations; without it, the weights' format.
        settings: other settings of all layers, as of `convert`.

    Raises:
        OSError: a file cannot be read.
        ValueError: it is damaged, or has no weight in a layout, or one whose scales no block format
            has.
    """
    formats = _formats(Path(path))
    given = {} if activations is None else {"activations": str(activations)}
    first, *_ = formats.values()
    layers: list[dict[str, Any]] = []
    for name, module in model.named_modules():
        keys = [key for key, _ in module.named_parameters(name, recurse=False)]
        if not isinstance(module, tuple(LAYERS)):
            continue
        found = {formats.get(key) for key in keys}
        found.discard(None)
        if not found:
            layers.append({"name": name, "format": FP32})
        elif found != {first}:
            layers.append({"name": name, "format": found.pop(), **given})
    return Policy.from_dict({"format": first, **given, **settings, "layers": layers})


def _formats(path: Path) -> dict[str, str]:
    """The block formats of the weights of a checkpoint."""
    found = {}
    with open_checkpoint(path) as checkpoint:
        check_tensors(checkpoint)
        for weight in checkpoint.found.weights:
            try:
                found[weight.name] = str(weight.layout.format)
            except ValueError as error:
                raise ValueError(f"{path}: tensor {weight.name!r}: {error}") from error
    return found


def load_checkpoint(model: nn.Module, path: str | Path) -> None:
    """Load a checkpoint into a converted model, whose products then use its codes and scales.

    Parameters are set to the decoded values; the blocks are kept beside them, as `load_packed`
    does. Weights that no product of the model takes as they are, such as experts that a `forward`
    itself multiplies by, are decoded alone: a UserWarning names them, and tensors that are no
    weights and that the model does not have.

    Args:
        model: what `convert` returned, with `checkpoint_policy` or one that gives the same
            formats of weights; changed in place.
        path: a folder, a .safetensors or a .gguf file, whose names of tensors are the model's.

    Raises:
        OSError: a file cannot be read.
        ValueError: it is damaged, does not hold the tensors of the model, or a product has another
            format than its weight. The model stays as it was.
    """
    weights, own = packed_weights(model), model.state_dict()
    state: dict[str, Tensor] = {}
    loaded: dict[str, Blocks] = {}
    decoded = []
    with open_checkpoint(Path(path)) as checkpoint:
        check_tensors(checkpoint)
        found = checkpoint.found
        names = {weight.name for weight in found.weights} | {each.name for each in found.plain}
        _check_names(path, own, names)
        left = [each.name for each in found.plain if each.name not in own]
        for weight in found.weights:
            if weight.name not in own:
                raise ValueError(f"{path}: the model has no tensor {weight.name!r}")
        for tensor in found.plain:
            if tensor.name not in own:
                continue
            check_shape(tensor.name, tensor.shape, own[tensor.name])
            state[tensor.name] = tensor_of(tensor)
        for weight in found.weights:
            check_shape(weight.name, weight.shape, own[weight.name])
            if sites := weights.get(weight.name):
                blocks = blocks_of_weight(weight, _format(path, weight, sites[0]))
                loaded[weight.name] = blocks
                state[weight.name] = decode(blocks).reshape(weight.shape)
            else:
                decoded.append(weight.name)
                values = weight.values(0, weight.rows).reshape(weight.shape)
                state[weight.name] = torch.from_numpy(np.ascontiguousarray(values))
    if left:
        warnings.warn(f"{path}: the model does not have {', '.join(left)}", stacklevel=2)
    if decoded:
        warnings.warn(
            f"{path}: no product takes {', '.join(decoded)} as blocks: only their values are "
            "loaded",
            stacklevel=2,
        )
    _add_tied(own, state)
    set_weights(model, weights, state, loaded)


def save_checkpoint(model: nn.Module, path: str | Path, kind: str) -> None:
    """Write a converted model as a checkpoint of another tool.

    The weights of its products keep the codes and scales with which the products compute; other
    tensors are written unchanged. A folder gets a `config.json` that says how weights are held,
    with the model's own configuration if it has one.

    Args:
        model: what `convert` returned.
        path: a folder, which must not exist or be empty, or a .safetensors or .gguf file.
        kind: a key of `axs6.files.checkpoints.KINDS`.

    Raises:
        OSError: a file cannot be written.
        TypeError: the model has a tensor of a dtype that safetensors files do not have.
        ValueError: the kind has no layout for the format of a weight, or cannot hold a scale.
    """
    path, chosen = Path(path), kind_of(kind)
    check_target(path, chosen.suffix)
    weights = packed_weights(model)
    look_again(model)
    items: list[Item] = []
    for name, tensor in model.state_dict().items():
        if name in weights:
            blocks = blocks_of_site(tensor, weights[name])
            weight = weight_of_blocks(name, blocks, tuple(tensor.shape))
            items.append(Item(weight, 0, recode(weight, chosen.of_format(blocks.format))))
            continue
        dtype, array = array_of(name, tensor)
        entry = Entry(name, dtype, array.shape, array.nbytes)
        items.append(Item(name, 0, decoded=(entry, partial(of_array, array))))
    config: dict[str, Any] = getattr(getattr(model, "config", None), "to_dict", dict)()
    source = Checkpoint(path, [], {CONFIG: config} if config else {}, [], Found([], [], []))
    documents = documents_of(items, source, chosen)
    write_checkpoint(path, items, source, documents, lambda _: None, lambda *_: None)


def _check_names(path: str | Path, own: Mapping[str, Tensor], found: set[str]) -> None:
    """Raise ValueError for tensors that the file has not; tied parameters count as one."""
    memory = {own[name].data_ptr() for name in found & set(own) if own[name].numel()}
    for name, tensor in own.items():
        if tensor.is_meta:
            raise ValueError(
                f"tensor {name!r} of the model is on meta and takes no values: "
                'give it memory before loading, model.to_empty(device="cpu")'
            )
        if name not in found and tensor.data_ptr() not in memory:
            raise ValueError(f"{path}: tensor {name!r} of the model is missing")


def _add_tied(own: Mapping[str, Tensor], state: dict[str, Tensor]) -> None:
    """Give tied parameters that the file has once the values under all their names."""
    values = {own[name].data_ptr(): value for name, value in state.items()}
    for name, tensor in own.items():
        if name not in state:
            state[name] = values[tensor.data_ptr()]


def _format(path: str | Path, weight: Weight, site: Site) -> BlockFormat:
    """The block format in which a product takes its weight."""
    fmt = block_format(site.formats[1])
    if site.transposed:
        raise ValueError(
            f"{path}: tensor {weight.name!r}: {site.name} has blocks along its first axis"
        )
    return fmt
