"""Tensors of .safetensors, .npy and .npz files, mapped and not read."""

import json
import shutil
import tempfile
import zipfile
from collections.abc import Iterator
from contextlib import ExitStack, contextmanager
from dataclasses import dataclass
from pathlib import Path
from typing import Any, BinaryIO

import numpy as np
from numpy.typing import NDArray
from safetensors import SafetensorError, safe_open

from axs6.damaged import DAMAGED

DTYPES = {
    "F64": "<f8",
    "F32": "<f4",
    "F16": "<f2",
    "BF16": "<u2",
    "I64": "<i8",
    "I32": "<i4",
    "I16": "<i2",
    "I8": "|i1",
    "U64": "<u8",
    "U32": "<u4",
    "U16": "<u2",
    "U8": "|u1",
    "BOOL": "|b1",
}
"""NumPy's types of safetensors' dtypes; patterns of bfloat16 are in unsigned integers."""

NAMES = {(np.dtype(each).kind, np.dtype(each).itemsize): name for name, each in DTYPES.items()}
"""Safetensors' dtypes by NumPy's kind and bytes; two unsigned bytes are U16, the last of them."""

UNREADABLE: tuple[type[Exception], ...] = (SafetensorError, *DAMAGED)
"""What is raised where a file of any of the three kinds is damaged."""

FLOATS = ("F64", "F32", "F16", "BF16")
"""Dtypes that are encoded."""


@dataclass(frozen=True)
class Tensor:
    """A tensor of a file.

    Args:
        name: its name in the file; that of the file without its ending where it holds one.
        dtype: a key of `DTYPES`.
        array: the values, mapped from the file, in whatever order and byte order it has them.
    """

    name: str
    dtype: str
    array: NDArray[Any]

    @property
    def nbytes(self) -> int:
        """Bytes of the file that it takes."""
        return self.array.nbytes


@contextmanager
def open_tensors(path: Path) -> Iterator[tuple[list[Tensor], dict[str, str]]]:
    """The tensors of a file, and the metadata of a safetensors file.

    Raises:
        OSError: the file cannot be read.
        ValueError: it is none of the three kinds, damaged, or holds Python objects.
    """
    readers = {".safetensors": _safetensors, ".npy": _npy, ".npz": _npz}
    if path.suffix not in readers:
        raise ValueError(f"{path} must end in {', '.join(readers)}")
    with ExitStack() as stack:
        try:
            found = readers[path.suffix](path, stack)
        except OSError as error:
            raise OSError(f"cannot read {path}: {error.strerror or error}") from error
        except UNREADABLE as error:
            raise ValueError(f"{path} is damaged or of another kind: {error}") from error
        yield found


Found = tuple[list[Tensor], dict[str, str]]


def _safetensors(path: Path, stack: ExitStack) -> Found:
    with safe_open(path, "np") as checked:
        metadata = dict(checked.metadata() or {})
    with path.open("rb") as file:
        length = int.from_bytes(file.read(8), "little")
        header = json.loads(file.read(length))
    data = _mapped(path, np.dtype(np.uint8), (path.stat().st_size - 8 - length,), 8 + length)
    tensors = []
    for name, entry in header.items():
        if name == "__metadata__":
            continue
        if entry["dtype"] not in DTYPES:
            raise ValueError(f"tensor {name!r} has dtype {entry['dtype']}")
        start, end = entry["data_offsets"]
        array = data[start:end].view(DTYPES[entry["dtype"]]).reshape(entry["shape"])
        tensors.append(Tensor(name, entry["dtype"], array))
    return tensors, metadata


def _npy(path: Path, stack: ExitStack) -> Found:
    with path.open("rb") as file:
        return [_from_npy(path.stem, path, file)], {}


def _npz(path: Path, stack: ExitStack) -> Found:
    """Members are unpacked into temporary files, which are mapped as others are."""
    folder = Path(stack.enter_context(tempfile.TemporaryDirectory(prefix="axs6-npz-")))
    tensors = []
    with zipfile.ZipFile(path) as archive:
        for number, member in enumerate(archive.infolist()):
            if not member.filename.endswith(".npy"):
                raise ValueError(f"{member.filename!r} is no array")
            unpacked = folder / f"{number}.npy"
            with archive.open(member) as packed, unpacked.open("wb") as file:
                shutil.copyfileobj(packed, file)
            with unpacked.open("rb") as file:
                name = member.filename.removesuffix(".npy")
                tensors.append(_from_npy(name, unpacked, file))
    return tensors, {}


def _from_npy(name: str, path: Path, file: BinaryIO) -> Tensor:
    version = np.lib.format.read_magic(file)
    read = {
        (1, 0): np.lib.format.read_array_header_1_0,
        (2, 0): np.lib.format.read_array_header_2_0,
    }.get(version)
    if read is None:
        raise ValueError(f"version {version} of the .npy format is not known")
    shape, column_major, dtype = read(file)
    if dtype.hasobject:
        raise ValueError(f"{name!r} holds Python objects, which are not read")
    if (dtype.kind, dtype.itemsize) not in NAMES:
        raise ValueError(f"{name!r} has dtype {dtype}")
    start = file.tell()
    size = dtype.itemsize * int(np.prod(shape, dtype=object))
    if path.stat().st_size - start != size:
        raise ValueError(f"{name!r} must have {size} bytes, not {path.stat().st_size - start}")
    mapped = _mapped(path, dtype, shape[::-1] if column_major else shape, start)
    array = mapped.T if column_major else mapped
    return Tensor(name, NAMES[dtype.kind, dtype.itemsize], array)


def _mapped(path: Path, dtype: np.dtype[Any], shape: tuple[int, ...], offset: int) -> NDArray[Any]:
    if 0 in shape:
        return np.empty(shape, dtype)
    return np.memmap(path, dtype, "r", offset, shape)
