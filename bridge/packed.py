"""Converted models in files: weights as the packed blocks of their products.

The file is a container of `axs6.files`, docs/files.md, with a tensor for each entry of the model's
`state_dict`.
"""

import json
from collections import defaultdict
from collections.abc import Iterator, Mapping
from pathlib import Path
from typing import Any

import torch
from numpy.typing import NDArray
from torch import Tensor, nn

from axs6.files.coding import Encoded, reduction
from axs6.files.container import container_metadata, open_container
from axs6.files.tensors import DTYPES, NAMES, open_tensors
from axs6.files.tensors import Tensor as Stored
from axs6.files.writer import Entry, of_array, writing
from axs6.golden import pack, unpack
from axs6.golden.blocks import Blocks
from axs6.golden.decode import decode
from axs6.golden.formats import TENSOR, Mode
from axs6.torch.convert import policy_of
from axs6.torch.freeze import look_again
from axs6.torch.matrices import joined
from axs6.torch.matrices import matrices as matrices_of
from axs6.torch.ops import as_matrices
from axs6.torch.policy import Policy
from axs6.torch.quantise import encode
from axs6.torch.site import Site, note_origin

METADATA = "axs6.policy"
"""Entry of a file's metadata with the policy of its model, as JSON."""


def save_packed(model: nn.Module, path: str | Path) -> None:
    """Write a converted model: the weights of its products in packed blocks, other tensors
    unchanged.

    Parameters shared with other modules, and weights that a `forward` itself multiplies by, are
    written unchanged; they are encoded again, to the same blocks, after loading. The metadata hold
    the model's policy, see `packed_policy`.

    Args:
        model: what `convert` returned.
        path: the container to write, a .safetensors file.

    Raises:
        OSError: the file cannot be written.
        TypeError: the model has a tensor of a dtype that safetensors files do not have.
        ValueError: the model has no product with a weight, a weight is not finite, or `path` has
            another ending.
    """
    path = Path(path)
    if path.suffix != ".safetensors":
        raise ValueError(f"{path} must end in .safetensors")
    weights = packed_weights(model)
    look_again(model)
    entries, contents = [], []
    for name, tensor in model.state_dict().items():
        dtype, array = array_of(name, tensor)
        if name in weights:
            data = pack(blocks_of_site(tensor, weights[name]))
            fmt, shape = weights[name][0].formats[1], tuple(tensor.shape)
            along = _reduction(weights[name][0], tensor.ndim)
            encoding = Encoded(shape=shape, dtype=dtype, format=fmt, **along)
            entries.append(Entry(name, dtype, shape, len(data), encoding))
            contents.append(iter([data]))
        else:
            entries.append(Entry(name, dtype, array.shape, array.nbytes))
            contents.append(of_array(array))
    policy = {METADATA: json.dumps(policy_of(model).to_dict())}
    with writing(path, entries, container_metadata(entries, policy)) as writer:
        for entry, content in zip(entries, contents, strict=True):
            writer.add(entry, content)


def packed_policy(path: str | Path) -> Policy:
    """The policy of the model in a file of `save_packed`, for `convert`.

    Raises:
        OSError: the file cannot be read.
        ValueError: it is damaged, or holds no policy.
    """
    with open_tensors(Path(path)) as (_, metadata):
        return _policy(Path(path), metadata)


def _policy(path: Path, metadata: Mapping[str, str]) -> Policy:
    if METADATA not in metadata:
        raise ValueError(f"{path} has no policy in its metadata, as save_packed writes it")
    try:
        return Policy.from_dict(_completed(json.loads(metadata[METADATA])))
    except (TypeError, ValueError, RecursionError) as error:
        raise ValueError(f"{path}: its policy cannot be read: {error}") from None


def _completed(entries: Any) -> Any:
    """A policy's data with the options that files of earlier versions do not have."""
    if not isinstance(entries, dict):
        return entries
    filled = {"gradient_rounding": "nearest", "gradient_rotation": 0, **entries}
    completed = filled if "gradients" in entries else dict(entries)
    layers = completed.get("layers")
    if isinstance(layers, list):
        completed["layers"] = [_completed(each) for each in layers]
    return completed


def load_packed(model: nn.Module, path: str | Path) -> None:
    """Load a container into a converted model, whose products then use its blocks.

    Parameters are set to the decoded values of the blocks. The blocks are kept beside them, since
    encoding these values again would give other blocks; a weight that changes is encoded again. The
    file may come from `save_packed`, or from `axs6 encode` with the model's block size.

    Args:
        model: what `convert` returned, of the architecture that was saved; changed in place.
        path: the container.

    If another product uses a weight too, it is encoded again there, from the decoded values. The
    bits then differ from the saved model: a UserWarning says so.

    Raises:
        OSError: the file cannot be read.
        ValueError: it is damaged, does not hold the tensors of the model, holds a weight in blocks
            of another kind than the product computes with, or is of a model that was converted by
            another policy. The model stays as it was.
    """
    path = Path(path)
    weights, own = packed_weights(model), model.state_dict()
    state: dict[str, Tensor] = {}
    loaded: dict[str, Blocks] = {}
    with open_container(path) as (tensors, encoded, metadata):
        _check_names(own, [tensor.name for tensor in tensors])
        for tensor in tensors:
            encoding = encoded.get(tensor.name)
            shape = tensor.shape if encoding is None else encoding.shape
            check_shape(tensor.name, shape, own[tensor.name])
            if encoding is None:
                state[tensor.name] = tensor_of(tensor)
            else:
                blocks = _blocks(tensor, encoding)
                rows = (
                    *encoding.blocked_shape[: encoding.along],
                    *encoding.blocked_shape[encoding.along + 1 :],
                )
                values = torch.from_numpy(decode(blocks)).reshape(*rows, encoding.length)
                state[tensor.name] = values.movedim(-1, encoding.along).reshape(encoding.shape)
                if tensor.name in weights:
                    _check_kind(tensor.name, encoding, blocks, weights[tensor.name][0])
                    loaded[tensor.name] = blocks
    if METADATA in metadata and _policy(path, metadata) != policy_of(model):
        raise ValueError(
            f"{path} is of a model that was converted with another policy: "
            "convert this one with packed_policy"
        )
    set_weights(model, weights, state, loaded)


def set_weights(
    model: nn.Module,
    weights: Mapping[str, list[Site]],
    state: dict[str, Tensor],
    loaded: Mapping[str, Blocks],
) -> None:
    """Set the parameters of a model, and the blocks that its products use.

    Args:
        model: changed in place.
        weights: what `packed_weights` gives.
        state: values of all parameters and buffers.
        loaded: blocks (rows, K) of weights.
    """
    for name, sites in weights.items():
        for site in sites:
            site.load(loaded.get(name))
    model.load_state_dict(state)
    for name in loaded:
        note_origin(model.get_parameter(name), name)


def packed_weights(model: nn.Module) -> dict[str, list[Site]]:
    """The places of each parameter that no other module has, by its name.

    Raises:
        ValueError: there is none.
    """
    owned: dict[int, set[str]] = defaultdict(set)
    sites: dict[str, list[Site]] = {}
    apart: set[str] = set()  # in tiles of each group
    for prefix, module in model.named_modules(remove_duplicate=False):
        for name, parameter in module._parameters.items():
            if parameter is not None and parameter.numel():
                key = f"{prefix}.{name}".lstrip(".")
                owned[id(parameter)].add(key)
                if own := [site for site in _sites(module) if site.parameter == name]:
                    sites[key] = own
                    if getattr(module, "groups", 1) > 1 and any(map(_tiled, own)):
                        apart.add(key)
    found: dict[str, list[Site]] = {}
    for names in owned.values():
        own = [site for name in names for site in sites.get(name, ())]
        kinds = {site.formats[1] for site in own}
        if names <= set(sites) - apart and len(kinds) == 1 and all(map(_packs, own)):
            found |= {name: sites[name] for name in names}
    if not sites:
        raise ValueError("the model has no product with a weight: convert it first")
    if not found:
        raise ValueError(
            "the model has no weight to pack: each is shared by several modules "
            "in different formats or outside products, or is in parts under one scale or in tiles"
        )
    return found


def _sites(module: Any) -> Iterator[Site]:
    if hasattr(module, "axs6_sites"):
        yield from module.axs6_sites.values()
    elif hasattr(module, "axs6_site"):
        yield module.axs6_site


def _packs(site: Site) -> bool:
    """Whether a place's blocks, of its rows of a weight, may be joined with the blocks of other
    places."""
    alone = not _tiled(site) and all(x.group != TENSOR for x in site.formats[1].levels)
    return site.rows is None or alone


def _tiled(site: Site) -> bool:
    return site.formats[1].rows > 1


def blocks_of_site(weight: Tensor, sites: list[Site]) -> Blocks:
    """The blocks of places joined, of shape (N, K): each place has its rows of the weight."""
    parts = []
    for site in sites:
        rows = weight.detach()
        matrices = as_matrices(site, rows.flatten(1).mT if site.transposed else rows, 1)
        options = site.options
        parts.append(
            site.loaded(matrices)
            or encode(
                matrices,
                site.formats[1],
                nonfinite=options.nonfinite,
                name=f"{site.name}: weight",
            )
        )
    return joined([matrix for part in parts for matrix in matrices_of(part)])


def _reduction(site: Site, axes: int) -> dict[str, Any]:
    """Axes of the blocks of a place's weight, as in `Encoded`."""
    return {"axis": 0} if site.transposed else reduction(axes)


def _blocks(tensor: Stored, encoding: Encoded) -> Blocks:
    """All blocks of a tensor of a file, of shape (rows, K)."""
    try:
        shape = (encoding.channels, encoding.length)
        return unpack(tensor.stored.all().data, shape, encoding.format, align=encoding.align)
    except ValueError as error:
        raise ValueError(f"tensor {tensor.name!r}: {error}") from error


def _check_names(own: Mapping[str, Tensor], found: list[str]) -> None:
    for name in own:
        if name not in found:
            raise ValueError(f"tensor {name!r} of the model is missing")
        if own[name].is_meta:
            raise ValueError(
                f"tensor {name!r} of the model is on meta and takes no values: "
                'give it memory before loading, model.to_empty(device="cpu")'
            )
    for name in found:
        if name not in own:
            raise ValueError(f"the model has no tensor {name!r}")


def check_shape(name: str, came: tuple[int, ...], own: Tensor) -> None:
    """Raise ValueError unless a tensor of a file has the shape of the model's."""
    if came != tuple(own.shape):
        raise ValueError(f"tensor {name!r} must have shape {tuple(own.shape)}, not {came}")


def _check_kind(name: str, encoding: Encoded, blocks: Blocks, site: Site) -> None:
    """Raise ValueError unless a product can compute with the blocks of a weight."""
    along = _reduction(site, len(encoding.shape))
    needed = Encoded(shape=encoding.shape, dtype=encoding.dtype, format=site.formats[1], **along)
    same = (encoding.format, encoding.length) == (needed.format, needed.length)
    if not (same and (encoding.along == needed.along if site.transposed else encoding.in_order)):
        raise ValueError(f"tensor {name!r} must be in blocks as {needed}, not as {encoding}")
    if (blocks.modes == Mode.HIGH_PRECISION).any():
        raise ValueError(f"tensor {name!r} has high-precision blocks, which cannot be multiplied")


def array_of(name: str, tensor: Any) -> tuple[str, NDArray[Any]]:
    """A tensor's dtype as safetensors files name it, and its values."""
    if not isinstance(tensor, Tensor):
        kind = type(tensor).__name__
        raise TypeError(f"{name} is of type {kind}, not a tensor, which the file cannot hold")
    if tensor.is_meta:
        raise ValueError(f"{name} is on meta and has no values: load them before saving")
    held = tensor.detach().cpu().resolve_neg().contiguous()
    if held.dtype == torch.bfloat16:
        return "BF16", held.view(torch.uint16).numpy()
    try:
        array = held.numpy()
        return NAMES[array.dtype.kind, array.dtype.itemsize], array
    except (TypeError, KeyError):
        raise TypeError(f"{name} has dtype {tensor.dtype}, which the file cannot hold") from None


def tensor_of(tensor: Stored) -> Tensor:
    """A tensor of a file.

    Raises:
        ValueError: torch has no such dtype here.
    """
    if tensor.dtype not in DTYPES:
        raise ValueError(f"tensor {tensor.name!r} has dtype {tensor.dtype}, which cannot be loaded")
    values = torch.from_numpy(tensor.stored.all())
    return values.view(torch.bfloat16) if tensor.dtype == "BF16" else values
