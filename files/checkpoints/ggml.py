"""Writing GGUF files, through the package gguf."""

from collections.abc import Iterable, Mapping, Sequence
from pathlib import Path
from typing import Any

import numpy as np

from axs6.files.checkpoints.layouts import GGML
from axs6.files.checkpoints.source import CONFIG, GGML_PLAIN
from axs6.files.gguf import GgufFile
from axs6.files.tensors import DTYPES
from axs6.files.writer import Entry

NAME_BYTES = 63
"""Bytes of a tensor's name that llama.cpp reads, at most."""

ARCHITECTURE = "general.architecture"


def write_gguf(
    path: Path,
    entries: Sequence[Entry],
    contents: Iterable[Iterable[bytes]],
    origin: GgufFile | None,
    documents: Mapping[str, Mapping[str, Any]],
) -> None:
    """Write a GGUF file.

    Args:
        path: the file.
        entries: the tensors. contents: the bytes of each, in pieces.
        origin: a GGUF file whose metadata are kept, or None.
        documents: of a folder from which they come: `model_type` of `config.json` is taken as the
            architecture.

    Raises:
        ValueError: GGUF files have no such name, dtype or shape.
    """
    from gguf import GGMLQuantizationType, GGUFValueType, GGUFWriter

    for entry in entries:
        _check(entry)
    architecture = documents.get(CONFIG, {}).get("model_type", "unknown")
    metadata = origin.metadata if origin else {}
    writer = GGUFWriter(path, str(metadata.get(ARCHITECTURE, architecture)))
    for key, value in metadata.items():
        if key != ARCHITECTURE and origin:
            _check_text(key, value)
            outer, inner = origin.kinds[key]
            held = None if inner is None else GGUFValueType(inner)
            writer.add_key_value(key, value, GGUFValueType(outer), held)
    numbers = {dtype: number for number, dtype in GGML_PLAIN.items()}
    for entry in entries:
        kind = entry.dtype.removeprefix(GGML)
        number = int(kind) if kind != entry.dtype else numbers[entry.dtype]
        shape = entry.shape
        dtype = np.dtype(DTYPES.get(entry.dtype, "|u1"))
        if kind != entry.dtype:
            rows = int(np.prod(entry.shape[:-1], dtype=object))
            shape = (*entry.shape[:-1], entry.most_bytes // max(1, rows))
        writer.add_tensor_info(
            entry.name, shape, dtype, entry.most_bytes, GGMLQuantizationType(number)
        )
    writer.write_header_to_file()
    writer.write_kv_data_to_file()
    writer.write_ti_data_to_file()
    for pieces in contents:
        writer.write_tensor_data(np.frombuffer(b"".join(pieces), np.uint8))
    writer.close()


def _check_text(key: str, value: Any) -> None:
    """Raise ValueError for text of the metadata that is not Unicode."""
    for text in (key, *(value if isinstance(value, list) else [value])):
        try:
            if isinstance(text, str):
                text.encode()
        except UnicodeEncodeError:
            raise ValueError(f"the metadata {key!r} are not Unicode text") from None


def _check(entry: Entry) -> None:
    """Raise ValueError for a tensor that llama.cpp would not read."""
    if len(entry.name.encode()) > NAME_BYTES:
        raise ValueError(
            f"tensor {entry.name!r}: names in GGUF files have at most {NAME_BYTES} bytes"
        )
    if entry.dtype not in GGML_PLAIN.values() and not entry.dtype.startswith(GGML):
        raise ValueError(f"tensor {entry.name!r}: GGUF files have no tensors of {entry.dtype}")
    if len(entry.shape) > 4:
        raise ValueError(
            f"tensor {entry.name!r}: GGUF files have tensors of at most 4 axes, not "
            f"{len(entry.shape)}"
        )
