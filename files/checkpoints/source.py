"""Opening checkpoints: a folder of safetensors files or with an ONNX model, or one file."""

import json
from collections.abc import Iterator, Mapping, Sequence
from contextlib import ExitStack, contextmanager
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any

import numpy as np

from axs6.files.checkpoints.configuration import CONFIG, MODELOPT
from axs6.files.checkpoints.layouts import (
    COMPRESSED_FP8_BLOCKS,
    FP8_BLOCKS,
    FP8_BLOCKS_E8M0,
    GGML,
    LAYOUTS,
    WeightLayout,
)
from axs6.files.checkpoints.onnx_read import OnnxModel, read_model
from axs6.files.checkpoints.recognise import Found, recognise
from axs6.files.checkpoints.swizzle import with_swizzled_scales
from axs6.files.container import KEY
from axs6.files.gguf import GgufFile
from axs6.files.stored import Stored
from axs6.files.tensors import DTYPES, READERS, Tensor, open_tensors

SAFETENSORS, GGUF, ONNX = ".safetensors", ".gguf", ".onnx"
INDEX = "model.safetensors.index.json"
DOCUMENTS = (CONFIG, MODELOPT)
"""Files of a folder that describe how its tensors are held."""

QUANTISATION = {CONFIG: "quantization_config", MODELOPT: "quantization"}
"""The entries of the documents that say how weights are held."""

GGML_PLAIN = {0: "F32", 1: "F16", 30: "BF16", 28: "F64", 24: "I8", 25: "I16", 26: "I32", 27: "I64"}
"""Dtypes, as safetensors name them, of types of ggml that have no blocks."""


@dataclass(frozen=True)
class Shard:
    """A file of a checkpoint: its name, its tensors, its metadata, and the GGUF file that it is."""

    name: str
    tensors: list[Tensor]
    metadata: dict[str, Any]
    gguf: GgufFile | None = None


@dataclass(frozen=True)
class Checkpoint:
    """An open checkpoint.

    Args:
        path: the folder or file.
        shards: its files of tensors.
        documents: `config.json` and `hf_quant_config.json`, where they are there.
        others: further files and folders in the folder, but hidden ones.
        found: weights and other tensors.
    """

    path: Path
    shards: list[Shard]
    documents: dict[str, dict[str, Any]]
    others: list[Path]
    found: Found

    @property
    def quantisation(self) -> dict[str, Any]:
        """What its configuration says of quantisation: `quantization_config`, or ModelOpt's."""
        found = (self.documents.get(name, {}).get(entry) for name, entry in QUANTISATION.items())
        return next(filter(None, found), {})

    @property
    def shard_numbers(self) -> dict[str, int]:
        """Number of the file that has each tensor."""
        return {
            tensor.name: number
            for number, shard in enumerate(self.shards)
            for tensor in shard.tensors
        }


@contextmanager
def naming(path: Path) -> Iterator[None]:
    """A context whose errors of values name the checkpoint at a path."""
    try:
        yield
    except ValueError as error:
        said = str(error)
        raise ValueError(said if said.startswith(f"{path}: ") else f"{path}: {said}") from error


def is_checkpoint(path: Path) -> bool:
    """Whether a path is a folder, a GGUF or ONNX file, or a safetensors file with known weights.

    Raises:
        OSError, ValueError: a safetensors file cannot be read.
    """
    if path.is_dir() or path.suffix in (GGUF, ONNX):
        return True
    if path.suffix != SAFETENSORS:
        return False
    with open_tensors(path) as (tensors, metadata):
        if KEY in metadata:
            return False
        with naming(path):
            found = recognise(tensors)
        return bool(found.weights or found.problems)


@contextmanager
def open_checkpoint(
    path: Path, suffix: str | None = None, swizzled: bool = False
) -> Iterator[Checkpoint]:
    """A checkpoint, and its weights.

    Args:
        path: a folder, a .safetensors, .gguf or .onnx file.
        suffix: of the file, if its name does not have it.
        swizzled: whether scales of blocks are in the order of `swizzle`.

    Raises:
        OSError: a file cannot be read.
        ValueError: it is damaged, no checkpoint, or of a version that is not known; a file that
            the index names is missing, or two files have a tensor of one name.
    """
    with ExitStack() as stack:
        documents: dict[str, dict[str, Any]] = {}
        others: list[Path] = []
        model = _model(path, suffix or path.suffix, stack)
        if model:
            shards = [Shard(model[0].name, model[1].tensors, {})]
        elif path.is_dir():
            index = _weight_map(path)
            names = _shard_names(path, index)
            shards = [_shard(path / name, SAFETENSORS, stack) for name in names]
            _check_index(path, index, shards)
        else:
            shards = [_shard(path, suffix or path.suffix, stack)]
        if path.is_dir():
            documents = {
                name: _described(path / name) for name in DOCUMENTS if (path / name).exists()
            }
            apart = {*(shard.name for shard in shards), *DOCUMENTS, INDEX}
            beside = model[1].beside if model else []
            others = sorted(
                each
                for each in path.iterdir()
                if each.name not in apart
                and not each.name.startswith(".")
                and each.resolve() not in beside
            )
        tensors = [tensor for shard in shards for tensor in shard.tensors]
        _check_names(path, shards)
        checkpoint = Checkpoint(path, shards, documents, others, Found([], [], []))
        if model:
            yield replace(checkpoint, found=model[1].found)
            return
        layouts = _layouts(checkpoint.quantisation)
        if swizzled:
            layouts = [with_swizzled_scales(layout) for layout in layouts]
        with naming(path):
            found = recognise(tensors, layouts)
        yield replace(checkpoint, found=found)


def _model(path: Path, suffix: str, stack: ExitStack) -> tuple[Path, OnnxModel] | None:
    """The ONNX model at a path, or the one in a folder without safetensors files."""
    if path.is_dir() and not any(path.glob(f"*{SAFETENSORS}")):
        models = sorted(path.glob(f"*{ONNX}"))
        if len(models) > 1:
            raise ValueError(f"{path} must have one model, not {len(models)}: name the file")
        return (models[0], read_model(models[0], stack)) if models else None
    return None if path.is_dir() or suffix != ONNX else (path, read_model(path, stack))


def _layouts(quantisation: dict[str, Any]) -> Sequence[WeightLayout]:
    """The layouts, with the tiles that a configuration names first."""
    size = quantisation.get("weight_block_size")
    stated = [(FP8_BLOCKS, size), (FP8_BLOCKS_E8M0, size)]
    groups = quantisation.get("config_groups")
    for group in groups.values() if isinstance(groups, dict) else ():
        weights = group.get("weights") if isinstance(group, dict) else None
        if isinstance(weights, dict):
            stated.append((COMPRESSED_FP8_BLOCKS, weights.get("block_structure")))
    found = []
    for layout, size in stated:
        if (
            isinstance(size, list)
            and len(size) == 2
            and all(type(n) is int and n > 0 for n in size)
        ):
            part = replace(layout.scales[0], rows=size[0], values=size[1])
            found.append(replace(layout, scales=(part,)))
    return (*found, *LAYOUTS)


def _shard_names(folder: Path, index: Mapping[str, str]) -> list[str]:
    """The files of tensors in a folder: those of the index, or all without one."""
    if not index:
        names = sorted(each.name for each in folder.glob(f"*{SAFETENSORS}"))
        if not names:
            raise ValueError(f"{folder} has no {SAFETENSORS} files, and no {ONNX} file")
        return names
    names = sorted(set(index.values()))
    for name in names:
        if Path(name).name != name or not (folder / name).is_file():
            raise ValueError(f"{folder / INDEX} names {name}, which is not in the folder")
    return names


def _weight_map(folder: Path) -> dict[str, str]:
    """The files of tensors by the index; none without one."""
    if not (folder / INDEX).exists():
        return {}
    index = _document(folder / INDEX).get("weight_map")
    if not isinstance(index, dict) or not all(isinstance(x, str) for x in index.values()):
        raise ValueError(f"{folder / INDEX} has no weight_map of tensors and files")
    return index


def _check_index(folder: Path, index: Mapping[str, str], shards: Sequence[Shard]) -> None:
    held = {(tensor.name, shard.name) for shard in shards for tensor in shard.tensors}
    for tensor, name in index.items():
        if (tensor, name) not in held:
            raise ValueError(
                f"{folder / INDEX} names a tensor {tensor!r}, which {name} does not have"
            )


def _document(path: Path) -> dict[str, Any]:
    try:
        found = json.loads(path.read_text(encoding="utf-8"))
    except OSError as error:
        raise OSError(f"cannot read {path}: {error.strerror}") from error
    except (ValueError, RecursionError) as error:
        raise ValueError(f"{path} must be JSON: {error}") from error
    if not isinstance(found, dict):
        raise ValueError(f"{path} must be an object of JSON, not {type(found).__name__}")
    return found


def _described(path: Path) -> dict[str, Any]:
    """A document whose entry of quantisation is an object, if it has one."""
    found = _document(path)
    entry = QUANTISATION[path.name]
    if not isinstance(found.get(entry) or {}, dict):
        raise ValueError(
            f"{path}: {entry} must be an object of JSON, not {type(found[entry]).__name__}"
        )
    return found


def _shard(path: Path, suffix: str, stack: ExitStack) -> Shard:
    if suffix == GGUF:
        return _gguf(path, stack)
    if suffix not in READERS:
        raise ValueError(f"{path} must be a folder, or end in {', '.join((*READERS, GGUF, ONNX))}")
    tensors, metadata = stack.enter_context(open_tensors(path, suffix))
    if KEY in metadata:
        raise ValueError(f"{path} is a container of blocks, not a checkpoint: decode it")
    return Shard(path.name, tensors, metadata)


def _gguf(path: Path, stack: ExitStack) -> Shard:
    try:
        held = GgufFile(path)
    except OSError as error:
        raise OSError(f"cannot read {path}: {error.strerror}") from error
    file = stack.enter_context(path.open("rb", buffering=0))
    tensors = []
    for name, each in held.tensors.items():
        dtype = GGML_PLAIN.get(each.kind, f"{GGML}{each.kind}")
        known = dtype in DTYPES
        shape = each.shape if known else (each.size,)
        stored = Stored(path, file, each.offset, np.dtype(DTYPES.get(dtype, "|u1")), shape)
        tensors.append(Tensor(name, dtype, each.shape, stored))
    return Shard(path.name, tensors, held.metadata, held)


def _check_names(path: Path, shards: list[Shard]) -> None:
    where: dict[str, str] = {}
    for shard in shards:
        for tensor in shard.tensors:
            try:
                tensor.name.encode()
            except UnicodeEncodeError:
                raise ValueError(
                    f"{path}: the name of a tensor must be Unicode text, not {tensor.name!r}"
                ) from None
            if tensor.name in where:
                raise ValueError(
                    f"{path}: {where[tensor.name]} and {shard.name} both have {tensor.name!r}"
                )
            where[tensor.name] = shard.name
