"""Tensors of .safetensors, .npy and .npz files, whose values are read later, in pieces."""

import json
import shutil
import tempfile
import zipfile
from collections.abc import Iterator
from contextlib import ExitStack, contextmanager
from dataclasses import dataclass
from pathlib import Path
from typing import BinaryIO

import numpy as np
from safetensors import SafetensorError, safe_open

from axs6.damaged import DAMAGED
from axs6.files.scratch import naming_folder
from axs6.files.stored import Stored
from axs6.golden.arguments import check_shape

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
    "C64": "<c8",
}
"""NumPy's types of safetensors' dtypes; patterns of bfloat16 are in unsigned integers.

Those that are not here, of 8 bits and fewer, NumPy does not have.
"""

NAMES = {(np.dtype(each).kind, np.dtype(each).itemsize): name for name, each in DTYPES.items()}
"""Safetensors' dtypes by NumPy's kind and bytes; two unsigned bytes are U16, the last of them."""

UNREADABLE: tuple[type[Exception], ...] = (SafetensorError, *DAMAGED)
"""Exceptions for damaged files of the three kinds."""

FLOATS = ("F64", "F32", "F16", "BF16")
"""Dtypes that are encoded."""

METADATA = "__metadata__"
"""Key of the metadata in the header of a safetensors file, among the names of its tensors."""


@dataclass(frozen=True)
class Tensor:
    """A tensor of a file.

    Args:
        name: its name in the file; for files of one tensor the file's name without its ending.
        dtype: as safetensors name it.
        shape: its shape.
        stored: its values; its bytes, on one axis, where `dtype` is no key of `DTYPES`.
    """

    name: str
    dtype: str
    shape: tuple[int, ...]
    stored: Stored

    @property
    def nbytes(self) -> int:
        """Number of bytes in the file."""
        return self.stored.nbytes


class _RefusedError(ValueError):
    """A valid file with contents that safetensors files cannot hold."""


@contextmanager
def open_tensors(
    path: Path, suffix: str | None = None
) -> Iterator[tuple[list[Tensor], dict[str, str]]]:
    """The tensors of a file, and the metadata of a safetensors file.

    Args:
        path: the file.
        suffix: of the file, if its name does not have it.

    Raises:
        OSError: the file cannot be read.
        ValueError: it is none of the three kinds, damaged, or holds what safetensors files do not
            have, such as Python objects.
    """
    suffix = suffix or path.suffix
    if suffix not in READERS:
        raise ValueError(f"{path} must end in {', '.join(READERS)}")
    with ExitStack() as stack:
        try:
            found = READERS[suffix](path, stack)
        except OSError as error:
            missing = "No such file or directory" if isinstance(error, FileNotFoundError) else None
            if (reason := error.strerror or missing) is None:
                raise
            raise OSError(f"cannot read {path}: {reason}") from error
        except _RefusedError as error:
            raise ValueError(f"{path}: {error}") from error
        except UNREADABLE as error:
            raise ValueError(f"{path} is damaged or of another kind: {error}") from error
        yield found


Found = tuple[list[Tensor], dict[str, str]]


def _opened(path: Path, stack: ExitStack) -> BinaryIO:
    """A file without a buffer: pieces are large."""
    return stack.enter_context(path.open("rb", buffering=0))


def _safetensors(path: Path, stack: ExitStack) -> Found:
    with safe_open(path, "np") as checked:
        metadata = dict(checked.metadata() or {})
    with path.open("rb") as file:
        length = int.from_bytes(file.read(8), "little")
        header = json.loads(file.read(length))
    opened = _opened(path, stack)
    tensors = []
    for name, entry in header.items():
        if name == METADATA:
            continue
        shape, (start, end) = tuple(entry["shape"]), entry["data_offsets"]
        known = DTYPES.get(entry["dtype"])
        held, dtype = (shape, known) if known else ((end - start,), "|u1")
        stored = Stored(path, opened, 8 + length + start, np.dtype(dtype), held)
        tensors.append(Tensor(name, entry["dtype"], shape, stored))
    return tensors, metadata


def _npy(path: Path, stack: ExitStack) -> Found:
    return [_from_npy(path.stem, path, _opened(path, stack))], {}


def _npz(path: Path, stack: ExitStack) -> Found:
    """Members are unpacked into temporary files."""
    folder = Path(stack.enter_context(tempfile.TemporaryDirectory(prefix="axs6-npz-")))
    tensors = []
    with zipfile.ZipFile(path) as archive:
        for number, member in enumerate(archive.infolist()):
            if not member.filename.endswith(".npy"):
                raise _RefusedError(f"{member.filename!r} is not an array")
            unpacked = folder / f"{number}.npy"
            with archive.open(member) as packed, naming_folder(folder), unpacked.open("wb") as file:
                shutil.copyfileobj(packed, file)
            name = member.filename.removesuffix(".npy")
            tensors.append(_from_npy(name, unpacked, _opened(unpacked, stack)))
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
    check_shape(shape or (1,))
    if dtype.hasobject:
        raise _RefusedError(f"{name!r} holds Python objects, which are not read")
    if (dtype.kind, dtype.itemsize) not in NAMES:
        raise _RefusedError(f"{name!r} has dtype {dtype}, which safetensors files do not have")
    start = file.tell()
    size = dtype.itemsize * int(np.prod(shape, dtype=object))
    if path.stat().st_size - start != size:
        raise ValueError(f"{name!r} must have {size} bytes, not {path.stat().st_size - start}")
    stored = Stored(path, file, start, dtype, shape, column_major)
    return Tensor(name, NAMES[dtype.kind, dtype.itemsize], shape, stored)


READERS = {".safetensors": _safetensors, ".npy": _npy, ".npz": _npz}
"""What reads files, by the ends of their names."""
