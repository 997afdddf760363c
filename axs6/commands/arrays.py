"""Arrays of a unit's fields in .npy and .npz files, as `axs6 simulate` takes and writes them."""

import io
import re
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import NDArray

from axs6.damaged import DAMAGED
from axs6.golden.formats import Float
from axs6.hw.core.layouts import FLOAT_FIELDS, ZERO_POINT, Field, float_format

FLOATS: dict[str, np.dtype[Any]] = {"fp32": np.dtype(np.float32), "fp16": np.dtype(np.float16)}
"""Formats that NumPy has; the patterns of the others are in unsigned integers."""

NAMED = re.compile(r"(\w[\w.]*)=(.+)")
"""FIELD=FILE. A path with an equals sign is told apart by a leading `./`."""


def read_items(
    texts: Sequence[str], fields: Sequence[Field], parameters: Mapping[str, Any]
) -> dict[str, NDArray[Any]]:
    """Items of a unit's input stream from what `--input` says, a text for each.

    Args:
        texts: FIELD=FILE.npy; or FILE.npz with an array for each field; or FILE.npy where there is
            one field. A scale of the tensor, or a zero point, may be one number for all items.
        fields: of the input payload.
        parameters: of the unit.

    Raises:
        OSError: a file cannot be read.
        ValueError: a file is not one of numbers, an array is given twice or does not fit.
    """
    found: dict[str, NDArray[Any]] = {}
    for text in texts:
        name, path = _split(text, fields, "input")
        for key, array in _read(path, name, fields).items():
            if key in found:
                raise ValueError(f"input {key!r} is given twice")
            found[key] = array
    known = {field.name: field for field in fields}
    items = {
        name: _items(array, known[name], parameters) if name in known else array
        for name, array in found.items()
    }
    count = max((len(x) for x in items.values() if x.ndim), default=1)
    return {
        name: np.repeat(array, count) if _is_one(name, array) else array
        for name, array in items.items()
    }


def _is_one(name: str, array: NDArray[Any]) -> bool:
    """Whether an array is a single scale or zero point for all items."""
    last = name.rpartition(".")[2]
    return array.size == 1 and (last.startswith("outer") or last == ZERO_POINT)


def input_files(texts: Sequence[str], fields: Sequence[Field]) -> list[Path]:
    """The files named by the texts of `--input`, as `read_items` takes them."""
    return [_split(text, fields, "input")[1] for text in texts]


def output_files(texts: Sequence[str], fields: Sequence[Field]) -> dict[Path, str | None]:
    """The output files, from the texts of `--output`: the field of each file, or None for all
    fields.

    Args:
        texts: FIELD=FILE.npy; or FILE.npz for all fields; or FILE.npy where there is one field.
        fields: of the output payload.

    Raises:
        ValueError: no such field, another kind of file, or the same file twice.
    """
    files: dict[Path, str | None] = {}
    for text in texts:
        name, path = _split(text, fields, "output")
        if path.suffix not in (".npy", ".npz") or (name and path.suffix == ".npz"):
            raise ValueError(f"output must be FILE.npz or FIELD=FILE.npy, not {text!r}")
        if path.suffix == ".npy" and name is None:
            name = _only(fields, "output", text)
        if path in files:
            raise ValueError(f"output {str(path)!r} is given twice")
        files[path] = name
    return files


def file_contents(
    files: Mapping[Path, str | None],
    outputs: Mapping[str, NDArray[Any]],
    parameters: Mapping[str, Any],
) -> dict[Path, bytes]:
    """The arrays for each of `files`; floating-point fields are floats if NumPy has the dtype."""
    arrays: dict[str, NDArray[Any]] = {}
    for name, array in outputs.items():
        fmt = _float_format(name, parameters)
        arrays[name] = array.view(FLOATS[fmt.name]) if fmt and fmt.name in FLOATS else array
    contents = {}
    for path, field in files.items():
        buffer = io.BytesIO()
        if field is None:
            np.savez(buffer, **arrays)  # type: ignore[arg-type]
        else:
            np.save(buffer, arrays[field])
        contents[path] = buffer.getvalue()
    return contents


def _split(text: str, fields: Sequence[Field], what: str) -> tuple[str | None, Path]:
    """Field, if one is named, and file."""
    named = NAMED.fullmatch(text)
    if named is None:
        return None, Path(text)
    names = [field.name for field in fields]
    if named[1] not in names:
        known = ", ".join(names)
        raise ValueError(f"there is no {what} {named[1]!r}; the {what}s are {known}")
    return named[1], Path(named[2])


def _only(fields: Sequence[Field], what: str, text: str) -> str:
    if len(fields) > 1:
        names = ", ".join(field.name for field in fields)
        raise ValueError(
            f"the {what}s are {names}: give FIELD=FILE.npy, or FILE.npz for all, not {text!r}"
        )
    return fields[0].name


def _read(path: Path, name: str | None, fields: Sequence[Field]) -> dict[str, NDArray[Any]]:
    try:
        with path.open("rb") as file:
            loaded = np.load(file, allow_pickle=False)
            if isinstance(loaded, np.ndarray):
                return {name or _only(fields, "input", str(path)): loaded}
            arrays = dict(loaded)
    except OSError as error:
        raise OSError(f"cannot read {path}: {error.strerror or error}") from error
    except DAMAGED as error:
        if isinstance(error, ValueError) and str(path) in str(error):
            raise
        raise ValueError(f"{path} is not a NumPy file of numbers") from error
    for key, array in arrays.items():
        if not isinstance(array, np.ndarray):
            raise ValueError(f"{path}: its member {key!r} is not an array")
    if name is not None:
        raise ValueError(f"{path} holds {', '.join(arrays)}: give it without {name!r}")
    return arrays


def _float_format(name: str, parameters: Mapping[str, Any]) -> Float | None:
    """Format of a field's elements, where they are values, or scales in a format of NumPy's."""
    fmt = float_format(name, parameters)
    known = name.rpartition(".")[2] in FLOAT_FIELDS or (fmt is not None and fmt.name in FLOATS)
    return fmt if known else None


def _items(array: NDArray[Any], field: Field, parameters: Mapping[str, Any]) -> NDArray[Any]:
    """Items of a field: bit patterns in place of floats, in rows as long as the field."""
    fmt = _float_format(field.name, parameters)
    if fmt is not None:
        array = _patterns(array, field.name, fmt)
    if not field.shape:
        return array.ravel()
    if len(field.shape) > 1:
        return array
    (count,) = field.shape
    if not array.ndim or array.shape[-1] % count:
        raise ValueError(
            f"input {field.name!r} must have a last axis that is a multiple of the block {count}, "
            f"not shape {array.shape}"
        )
    return array.reshape(-1, count)


def _patterns(array: NDArray[Any], name: str, fmt: Float) -> NDArray[Any]:
    pattern = np.dtype(f"u{fmt.width // 8}")
    # NumPy reads a bfloat16 array as two bytes of no type.
    expected = FLOATS.get(fmt.name, np.dtype("V2"))
    if array.dtype.newbyteorder("=") == expected:
        return np.ascontiguousarray(array, expected).view(pattern)
    if array.dtype.kind in "fcV":
        wanted = FLOATS.get(fmt.name, "bfloat16")
        raise ValueError(
            f"input {name!r} must be {wanted}, or its bit patterns in {pattern}, not {array.dtype}"
        )
    return array
