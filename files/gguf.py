"""Reading GGUF files: metadata and tensors, by the GGUF specification of llama.cpp."""

import mmap
import struct
from dataclasses import dataclass
from math import prod
from pathlib import Path
from typing import Any, Final

import numpy as np
from numpy.typing import NDArray

VERSIONS: Final = (2, 3)
ALIGNMENT: Final = 32
"""Alignment of tensors in bytes, if the metadata have no `general.alignment`."""

_NUMBERS: Final = dict(zip((*range(8), 10, 11, 12), "BbHhIif?Qqd", strict=True))
"""Letters of `struct` by types of values."""

_STRING, _ARRAY = 8, 9


@dataclass(frozen=True)
class StoredTensor:
    """A tensor in the file.

    Args:
        shape: in NumPy's order, the contiguous axis last.
        kind: number of its type in ggml.
        offset: of its first byte in the file.
        size: in bytes.
    """

    shape: tuple[int, ...]
    kind: int
    offset: int
    size: int


class GgufFile:
    """The metadata of a GGUF file, and its tensors, which are read on demand.

    Args:
        path: the file.

    Raises:
        OSError: it cannot be read.
        ValueError: it is no GGUF file of version 2 or 3, is cut short, or a tensor has a type
            that the package gguf does not know.
    """

    def __init__(self, path: Path) -> None:
        self.path = path
        with path.open("rb") as file:
            try:
                self._data = mmap.mmap(file.fileno(), 0, access=mmap.ACCESS_READ)
            except ValueError:
                raise ValueError(f"{path} must be a GGUF file, not an empty one") from None
        try:
            header = _Header(self._data)
        except (ValueError, struct.error) as error:
            raise ValueError(f"{path} must be a whole GGUF file: {error}") from None
        self.metadata: dict[str, Any] = header.metadata
        """Numbers, texts and lists by their keys; bytes that are not Unicode as surrogates."""
        self.kinds: dict[str, tuple[int, int | None]] = header.kinds
        """Types of the metadata in ggml, and of the items of lists."""
        self.tensors: dict[str, StoredTensor] = header.tensors

    def values(self, name: str) -> NDArray[np.float32]:
        """A tensor in float32, decoded if it is quantised.

        Raises:
            KeyError: there is none of this name.
            ValueError: the package gguf cannot decode its type.
        """
        from gguf import GGMLQuantizationType
        from gguf.quants import dequantize

        stored = self.tensors[name]
        kind = GGMLQuantizationType(stored.kind)
        data = np.frombuffer(self._data, np.uint8, stored.size, stored.offset)
        try:
            decoded = dequantize(data.reshape(*stored.shape[:-1], -1), kind)
        except NotImplementedError:
            raise ValueError(
                f"{self.path}: {name} has type {kind.name}, which is not supported"
            ) from None
        return decoded.astype(np.float32, copy=False).reshape(stored.shape)


class _Header:
    """Read the header, before the tensors. Raises ValueError or struct.error if it is damaged."""

    def __init__(self, data: mmap.mmap) -> None:
        self._data = data
        self._at = 4
        if data[:4] != b"GGUF":
            raise ValueError("it does not begin with GGUF")
        version = self._number("I")
        if version not in VERSIONS:
            raise ValueError(f"version must be one of {VERSIONS}, not {version}")
        tensors, values = self._number("Q"), self._number("Q")
        self.metadata: dict[str, Any] = {}
        self.kinds: dict[str, tuple[int, int | None]] = {}
        for _ in range(values):
            key, kind = self._text(), self._number("I")
            inner = struct.unpack_from("<I", data, self._at)[0] if kind == _ARRAY else None
            self.kinds[key], self.metadata[key] = (kind, inner), self._value(kind)
        listed = [self._tensor() for _ in range(tensors)]
        alignment = self.metadata.get("general.alignment", ALIGNMENT)
        start = -(-self._at // alignment) * alignment
        self.tensors = {each[0]: self._stored(start, *each) for each in listed}

    def _number(self, letter: str) -> Any:
        (number,) = struct.unpack_from(f"<{letter}", self._data, self._at)
        self._at += struct.calcsize(f"<{letter}")
        return number

    def _text(self) -> str:
        size = self._number("Q")
        text = self._data[self._at : self._at + size]
        if len(text) < size:
            raise ValueError("it ends within a string")
        self._at += size
        return text.decode(errors="surrogateescape")

    def _value(self, kind: int) -> Any:
        if kind == _STRING:
            return self._text()
        if kind != _ARRAY:
            if kind not in _NUMBERS:
                raise ValueError(f"metadata cannot have the type {kind}")
            return self._number(_NUMBERS[kind])
        kind, count = self._number("I"), self._number("Q")
        if kind in _NUMBERS:
            numbers = struct.unpack_from(f"<{count}{_NUMBERS[kind]}", self._data, self._at)
            self._at += struct.calcsize(f"<{count}{_NUMBERS[kind]}")
            return list(numbers)
        return [self._value(kind) for _ in range(count)]

    def _tensor(self) -> tuple[str, tuple[int, ...], int, int]:
        """Name, shape, type and where it is behind the header."""
        name, axes = self._text(), self._number("I")
        shape = tuple(self._number("Q") for _ in range(axes))
        return name, shape[::-1], self._number("I"), self._number("Q")

    def _stored(
        self, start: int, name: str, shape: tuple[int, ...], kind: int, at: int
    ) -> StoredTensor:
        from gguf import GGML_QUANT_SIZES, GGMLQuantizationType

        try:
            values, size = GGML_QUANT_SIZES[GGMLQuantizationType(kind)]
        except (ValueError, KeyError):
            raise ValueError(
                f"{name} has the type {kind}, which the package gguf does not know"
            ) from None
        stored = StoredTensor(shape, kind, start + at, prod(shape) // values * size)
        if stored.offset + stored.size > len(self._data):
            raise ValueError(f"it ends within {name}")
        return stored
