"""Files of tensors: containers, .npy and .npz files of any bytes."""

import io
import json
import math
import zipfile
from collections.abc import Callable
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import Any

import numpy as np
from safetensors import safe_open
from safetensors.numpy import save

import axs6
from axs6.commands.arrays import read_items
from axs6.files import Options, decode_file, describe_file, encode_file
from axs6.hw.core.layouts import Field

CUT = b"\xff\xfe"
"""Between the parts of an input: neither text nor a number that a format has."""

INNER = b"@@@"
"""Mark for the metadata of a container in its header."""

METADATA: dict[str, Any] = {"shape": [4, 16], "dtype": "F32", "axis": -1, "format": "axs6_t8"}
CHANGED = (*METADATA, "flatten", "align", "mode", "rounding", "random_bits", "seed", "colour")
TO = (
    *(0, 1, 2, 3, -1, 8, 16, 32, 33, 1 << 31, 1 << 63, 10**30, 0.0, 8.0, math.inf, True, None),
    *("", "dense", "sparse", "high_precision", "auto", "nearest", "stochastic"),
    *("axs6_t8", "axs6_t16", "mxfp4", "nvfp4", "vsq4", "uint8", "int8_float32_t0", "e4m3fn_e8m0"),
    *("F64", "F32", "F16", "BF16", "U8", {}, [], [0], [64], [16, 4], [2, 2, 16], [65], [8, 16]),
    *([0, 10**30], [10**30, 0], [1 << 62, 4], [1 << 40, 4], [4, 1 << 40], [0, 1 << 62, 4]),
    *([1] * 64 + [64], [-1], [True, 64], [4, None], [4, 16.0], ["4", "16"]),
)
"""A tensor's metadata, and what its entries are changed to: right, wrong, or right together."""

VALUES = Field("values", 0, 32, False, (8,))
"""The field that `axs6 simulate` reads for an encoder of blocks of 8."""


def in_folder(function: Callable[[Path, bytes], bool]) -> Callable[[bytes], bool]:
    """A target whose inputs are files in a folder of their own."""

    def target(data: bytes) -> bool:
        with TemporaryDirectory(prefix="axs6-fuzz-") as folder:
            return function(Path(folder), data)

    return target


def accepted(path: Path, function: Callable[[], Any]) -> bool:
    """Whether a file is taken; the error names one that is not, of which nothing is left."""
    before = set(path.parent.iterdir())
    try:
        function()
        return True
    except (ValueError, OSError) as error:
        said = str(error)
    assert str(path) in said or said.startswith(("tensor ", "input ")), f"no name in: {said}"
    assert set(path.parent.iterdir()) == before, "something is left"
    return False


def there_and_back(path: Path) -> bool:
    """Whether a file is encoded; if so it is a container."""
    target = path.with_name("encoded.safetensors")
    if not accepted(path, lambda: encode_file(path, target, Options(block=8, mode="auto"))):
        return False
    return readable(target)


def readable(path: Path) -> bool:
    """A container has a description and tensors as it says."""
    described = describe_file(path)
    target = path.with_name("decoded.safetensors")
    decode_file(path, target)
    with safe_open(target, "np") as file:
        shapes = {name: tuple(file.get_slice(name).get_shape()) for name in file.keys()}  # noqa: SIM118
    assert shapes == {each.name: each.shape for each in described}
    return True


@in_folder
def container(folder: Path, data: bytes) -> bool:
    """A container, of an input in one of three forms.

    Raw bytes; or the text of the header, that of the metadata, and the tensors; or changes of the
    metadata of the only tensor, and its bytes.
    """
    path = folder / "x.safetensors"
    match data.split(CUT, 2):
        case [header, metadata, body]:
            path.write_bytes(with_header(header, metadata.decode(errors="replace"), body))
        case [changes, body]:
            tensor = dict(METADATA)
            for name, value in zip(changes[::2], changes[1::2], strict=False):
                tensor[CHANGED[name % len(CHANGED)]] = TO[value % len(TO)]
            described = json.dumps({"version": 2, "tensors": {"x": tensor}})
            path.write_bytes(save({"x": np.frombuffer(body, np.uint8)}, {"axs6": described}))
        case _:
            path.write_bytes(data)
    there_and_back(path)
    if not accepted(path, lambda: describe_file(path)):
        return accepted(path, lambda: decode_file(path, folder / "decoded.safetensors"))
    return readable(path)


def with_header(header: bytes, metadata: str, body: bytes) -> bytes:
    """A safetensors file with metadata put into the text of its header."""
    text = header.replace(INNER, json.dumps(metadata).encode())
    return len(text).to_bytes(8, "little") + text + body


@in_folder
def npy(folder: Path, data: bytes) -> bool:
    """A .npy file: raw bytes, or a header and values, between which there is a cut."""
    path = folder / "x.npy"
    header, cut, body = data.partition(CUT)
    path.write_bytes(np_array(header, body) if cut else data)
    accepted(path, lambda: read_items([str(path)], [VALUES], {"dtype": "fp32"}))
    return there_and_back(path)


def np_array(header: bytes, body: bytes) -> bytes:
    """A .npy file of a header of the right length."""
    return b"\x93NUMPY\1\0" + (len(header) & 0xFFFF).to_bytes(2, "little") + header + body


@in_folder
def npz(folder: Path, data: bytes) -> bool:
    """A .npz file of any bytes."""
    path = folder / "x.npz"
    path.write_bytes(data)
    accepted(path, lambda: read_items([str(path)], [VALUES], {"dtype": "fp32"}))
    return there_and_back(path)


def arrays() -> dict[str, Any]:
    """Arrays of every kind, few values of each."""
    rng = np.random.default_rng(0)
    x = rng.standard_normal((4, 16)).astype(np.float32)
    return {"f": x, "h": x[0].astype(np.float16), "[/i]": np.arange(5), "s": np.array(3.0)}


def container_seeds() -> list[bytes]:
    """Containers of each mode in each form, and a file that is none."""
    found = [save(arrays(), {"made": "here"})]
    with TemporaryDirectory() as folder:
        source, target = Path(folder, "x.npz"), Path(folder, "x.safetensors")
        np.savez(source, **arrays())
        for mode in ("dense", "sparse", "high_precision", "auto"):
            axis = 0 if mode == "dense" else -1
            options = Options(mode=mode, block=8, axis=axis, exclude=["s"])
            encode_file(source, target, options)
            found += [target.read_bytes(), in_parts(target.read_bytes())]
            blocks = axs6.encode(arrays()["f"], block=8, mode=mode)
            for name in range(len(CHANGED)):
                found.append(bytes([name, name]) + CUT + axs6.pack(blocks))
    return found


def in_parts(data: bytes) -> bytes:
    """A container as header, metadata and tensors."""
    end = 8 + int.from_bytes(data[:8], "little")
    header = json.loads(data[8:end])
    metadata = header["__metadata__"]["axs6"]
    header["__metadata__"]["axs6"] = INNER.decode()
    text = json.dumps(header).encode().replace(b'"' + INNER + b'"', INNER)
    return CUT.join([text, metadata.encode(), data[end:]])


def npy_seeds() -> list[bytes]:
    """Arrays of every kind in row and column order, whole and in parts."""
    found = []
    for array in (*arrays().values(), np.asfortranarray(arrays()["f"]).astype(">f4")):
        file = io.BytesIO()
        np.save(file, array)
        data = file.getvalue()
        found += [data, data[10:].replace(b"\n", b"\n" + CUT, 1)]
    return found


def npz_seeds() -> list[bytes]:
    """Archives, stored and compressed in every way."""
    found = []
    methods = (zipfile.ZIP_STORED, zipfile.ZIP_DEFLATED, zipfile.ZIP_BZIP2, zipfile.ZIP_LZMA)
    for method in methods:
        file = io.BytesIO()
        with zipfile.ZipFile(file, "w", method) as archive:
            for name, array in list(arrays().items())[1:]:
                member = io.BytesIO()
                np.save(member, array)
                archive.writestr(f"{name}.npy", member.getvalue())
        found.append(file.getvalue())
    return found
