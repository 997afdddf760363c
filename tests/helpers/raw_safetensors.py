"""Safetensors files as dtypes, shapes and bytes: also of dtypes that NumPy does not have."""

import json
from collections.abc import Mapping
from pathlib import Path
from typing import Any


def header_of(path: Path) -> dict[str, Any]:
    data = path.read_bytes()
    header: dict[str, Any] = json.loads(data[8 : 8 + int.from_bytes(data[:8], "little")])
    return header


def content(path: Path) -> dict[str, tuple[str, list[int], bytes]]:
    """Dtype, shape and bytes of each tensor."""
    data = path.read_bytes()
    body = 8 + int.from_bytes(data[:8], "little")
    return {
        name: (each["dtype"], each["shape"], data[body + start : body + end])
        for name, each in header_of(path).items()
        if name != "__metadata__"
        for start, end in [each["data_offsets"]]
    }


def write(path: Path, tensors: Mapping[str, tuple[str, list[int], bytes]]) -> None:
    header, start = {}, 0
    for name, (dtype, shape, data) in tensors.items():
        header[name] = {"dtype": dtype, "shape": shape, "data_offsets": [start, start + len(data)]}
        start += len(data)
    text = json.dumps(header).encode()
    body = b"".join(data for _, _, data in tensors.values())
    path.write_bytes(len(text).to_bytes(8, "little") + text + body)
