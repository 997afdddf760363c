"""Language models in GGUF files, each turned once into a folder that `transformers` loads."""

import hashlib
from collections.abc import Callable, Mapping
from importlib.metadata import version
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import NDArray

from axs6.files.gguf import GgufFile
from axs6.sim.cache import cached, sources

Array = NDArray[Any]


def _halves(rows: Array, heads: int) -> Array:
    """Reorders rows of projections: from rotated pairs side by side to pairs in the two halves of
    each head, as in transformers."""
    pairs = rows.reshape(heads, -1, 2, *rows.shape[1:])
    return pairs.swapaxes(1, 2).reshape(rows.shape)


def _llama(name: str, values: Array, config: Mapping[str, Any]) -> Array:
    if ".attn_q." in name:
        return _halves(values, config["num_attention_heads"])
    if ".attn_k." in name:
        return _halves(values, config["num_key_value_heads"])
    return values


def _as_is(name: str, values: Array, config: Mapping[str, Any]) -> Array:
    return values


ARCHITECTURES: Mapping[str, Callable[[str, Array, Mapping[str, Any]], Array]] = {
    "llama": _llama,
    "qwen2": _as_is,
    "qwen3": _as_is,
}
"""Functions that reorder the rows of a tensor for transformers, by `general.architecture`."""

COMPUTED = "rope_"
"""Prefix of tensors that transformers computes itself: factors of rotations."""

DIGITS = ("smollm", "starcoder", "refact", "command-r")
"""Values of `tokenizer.ggml.pre` that split digits one by one, then as GPT-2 does."""

GPT2 = ("gpt-2", "mpt", "olmo", "phi-2", "jais", "trillion")
"""Values that split as GPT-2 does."""


def folder_of(path: Path) -> Path:
    """The model of a GGUF file as config.json, tokenizer.json and model.safetensors in FP32.

    The folder is in the cache, by the digest of the file. Quantised tensors are decoded by the
    package gguf; values are exact, without another rounding.

    Raises:
        OSError: the file cannot be read, or the cache not be written.
        ValueError: it is no GGUF file, or its architecture, tokenizer or a tensor is not known.
    """
    with path.open("rb") as file:
        digest = hashlib.file_digest(file, "sha256").hexdigest()
    versions = [f"{name} {version(name)}" for name in ("gguf", "transformers", "tokenizers")]
    key = [digest, *versions, sources(__package__)]
    return cached("language", key, lambda folder: _convert(path, folder))


def _convert(path: Path, folder: Path) -> None:
    from safetensors.numpy import save_file

    file = GgufFile(path)
    architecture = str(file.metadata.get("general.architecture"))
    if architecture not in ARCHITECTURES:
        raise ValueError(
            f"{path}: architecture must be one of {', '.join(ARCHITECTURES)}, not "
            f"{architecture!r}; give the folder of Hugging Face files instead"
        )
    config = _config(file, architecture)
    names = _names(config, architecture)
    ordered, heads = ARCHITECTURES[architecture], config.to_dict()
    tensors = {}
    for name in file.tensors:
        if name in names:
            tensors[names[name]] = ordered(name, file.values(name), heads)
        elif not name.startswith(COMPUTED):
            raise ValueError(f"{path}: tensor {name} has no place in {architecture}")
    tokenizer = _tokenizer(file, architecture)
    save_file(
        {name: np.ascontiguousarray(values) for name, values in tensors.items()},
        folder / "model.safetensors",
        {"format": "pt"},
    )
    config.save_pretrained(folder)
    tokenizer.save_pretrained(folder)


def _config(file: GgufFile, architecture: str) -> Any:
    """The configuration of transformers."""
    from transformers import CONFIG_MAPPING, MODEL_FOR_CAUSAL_LM_MAPPING
    from transformers.integrations.ggml import GGUF_CONFIG_MAPPING

    values: dict[str, Any] = {"vocab_size": len(_tokens(file))}
    known: Any = GGUF_CONFIG_MAPPING[architecture]
    for key, name in known.items():
        if name is not None and f"{architecture}.{key}" in file.metadata:
            values[name] = file.metadata[f"{architecture}.{key}"]
    for token in ("bos", "eos"):
        values[f"{token}_token_id"] = file.metadata.get(f"tokenizer.ggml.{token}_token_id")
    kind: Any = CONFIG_MAPPING[architecture]
    model: Any = MODEL_FOR_CAUSAL_LM_MAPPING[kind]
    config = kind(**values, tie_word_embeddings="output.weight" not in file.tensors)
    config.architectures = [model.__name__]
    return config


def _names(config: Any, architecture: str) -> dict[str, str]:
    """Names of tensors in transformers by those in the file."""
    import torch
    from gguf import MODEL_ARCH, MODEL_ARCH_NAMES, get_tensor_name_map
    from transformers import AutoModelForCausalLM

    number = next(each for each, name in MODEL_ARCH_NAMES.items() if name == architecture)
    known = get_tensor_name_map(MODEL_ARCH(number), config.num_hidden_layers)
    with torch.device("meta"):
        model = AutoModelForCausalLM.from_config(config)
    found = {known.get_name(name, (".weight", ".bias")): name for name in model.state_dict()}
    if config.tie_word_embeddings:
        found.pop("output.weight", None)
    return {theirs: name for theirs, name in found.items() if theirs is not None}


def _tokens(file: GgufFile) -> list[str]:
    """All tokens. Raises ValueError if the file has none."""
    tokens: list[str] | None = file.metadata.get("tokenizer.ggml.tokens")
    if tokens is None:
        raise ValueError(f"{file.path} has no tokenizer: give the folder of Hugging Face files")
    return tokens


def _tokenizer(file: GgufFile, architecture: str) -> Any:
    """The tokenizer of transformers, which splits text as the file says.

    Raises:
        ValueError: the file names a kind of tokenizer, or a way to split, that is not known.
    """
    from tokenizers import pre_tokenizers
    from transformers import PreTrainedTokenizerFast
    from transformers.integrations.gguf import GGUF_TOKENIZER_MAPPING, convert_gguf_tokenizer
    from transformers.integrations.gguf.gguf_tokenizer_mapping import GGUF_PRE_TOKENIZER_SPLITS

    known = GGUF_TOKENIZER_MAPPING["tokenizer"]
    values = {
        name: file.metadata[f"tokenizer.{key}"]
        for key, name in known.items()
        if f"tokenizer.{key}" in file.metadata
    }
    tokenizer, _ = convert_gguf_tokenizer(architecture, values)
    split = file.metadata.get("tokenizer.ggml.pre", "default")
    if split in DIGITS:
        words = pre_tokenizers.ByteLevel(add_prefix_space=False)
        digits = pre_tokenizers.Digits(individual_digits=True)
        tokenizer.pre_tokenizer = pre_tokenizers.Sequence([digits, words])
    elif values["tokenizer_type"] == "gpt2" and split not in (*GGUF_PRE_TOKENIZER_SPLITS, *GPT2):
        raise ValueError(f"{file.path}: how {split!r} splits text is not known: give the folder")
    tokens = _tokens(file)
    special = {
        f"{name}_token": tokens[file.metadata[f"tokenizer.ggml.{name}_token_id"]]
        for name in ("bos", "eos")
        if f"tokenizer.ggml.{name}_token_id" in file.metadata
    }
    return PreTrainedTokenizerFast(tokenizer_object=tokenizer, **special)
