"""Checkpoints of other tools: tensors of any name, shape and dtype, and GGUF files of any bytes."""

import json
from pathlib import Path
from tempfile import TemporaryDirectory

import numpy as np
import tensors
from tensors import CUT, accepted, in_folder, readable, with_header

from axs6.files import decode_file, describe_file
from axs6.files.checkpoints import KINDS, Chosen, convert_checkpoint, encode_checkpoint
from axs6.files.checkpoints.layouts import LAYOUTS
from axs6.files.checkpoints.recognise import part_name

SHAPES = (
    *([2, 1, 16], [2, 1], [1, 16], [1], [16], [], [2, 2, 16], [0, 1, 16], [0, 1], [4, 8], [-1]),
    *([2, 64], [2, 32], [2, 4], [2, 2], [130, 2], [2, 2, 32], [2, 2, 2], [2], [2, 0], [64, 2]),
)
DTYPES = ("U8", "I8", "F8_E8M0", "BF16", "F32", "F8_E4M3", "F8_E5M2", "F16", "F4", 7, None)
NAMES = sorted(
    {
        part_name(template, name)
        for layout in LAYOUTS
        for part in (layout.codes, *layout.parts, *([layout.input] if layout.input else []))
        for template in part.names
        for name in ("x", "w.weight", "", "[/i]")
    }
)
"""Parts of the entries of a header: right, wrong, or right together."""


@in_folder
def checkpoint(folder: Path, data: bytes) -> bool:
    """A checkpoint, of an input in one of two forms.

    Raw bytes; or four bytes for each tensor (name, dtype, shape and length), and the bytes of all.
    It is decoded, and converted to a kind.
    """
    path = folder / "x.safetensors"
    entries, cut, body = data.partition(CUT)
    path.write_bytes(with_header(header(entries), "", body) if cut else data)
    return read_and_converted(path, data)


@in_folder
def gguf(folder: Path, data: bytes) -> bool:
    """A GGUF file of any bytes."""
    path = folder / "x.gguf"
    path.write_bytes(data)
    return read_and_converted(path, data)


@in_folder
def onnx(folder: Path, data: bytes) -> bool:
    """An ONNX file of any bytes."""
    path = folder / "x.onnx"
    path.write_bytes(data)
    return read_and_converted(path, data)


def read_and_converted(path: Path, data: bytes) -> bool:
    """Whether a checkpoint is read; if so it is converted to a kind, which is read too."""
    kind = list(KINDS.values())[len(data) % len(KINDS)]
    target = path.parent / f"converted{kind.suffix}"
    if accepted(path, lambda: convert_checkpoint(path, target, kind, requantise=data[-1:] > b"@")):
        assert readable(target)
    if not accepted(path, lambda: describe_file(path)):
        return accepted(path, lambda: decode_file(path, path.parent / "decoded.safetensors"))
    return readable(path)


def header(entries: bytes) -> bytes:
    """The header of tensors that lie one after another."""
    found, start = {}, 0
    for name, dtype, shape, length in zip(*(entries[i::4] for i in range(4)), strict=False):
        found[NAMES[name % len(NAMES)]] = {
            "dtype": DTYPES[dtype % len(DTYPES)],
            "shape": SHAPES[shape % len(SHAPES)],
            "data_offsets": [start, start + length],
        }
        start += length
    return json.dumps(found).encode()


def written(suffix: str) -> list[bytes]:
    """A file of each layout."""
    found = []
    with TemporaryDirectory() as folder:
        source, target = Path(folder, "x.npz"), Path(folder, f"x{suffix}")
        values = np.tile(tensors.arrays()["f"].reshape(1, 64), 2)
        np.savez(source, x=values, z=np.arange(3))
        for kind in KINDS.values():
            for layout in kind.layouts if kind.suffix == suffix else ():
                encode_checkpoint(source, target, kind, Chosen(layout=layout.name))
                found.append(target.read_bytes())
    return found


def seeds() -> list[bytes]:
    """Checkpoints as they are written, and pairs of each shape."""
    found = written(".safetensors")
    blocks, scales = NAMES.index("x_blocks"), NAMES.index("x_scales")
    for codes, shape in ((0, 1), (2, 3), (7, 8), (6, 1), (4, 5)):
        lengths = [int(np.prod(SHAPES[i])) for i in (codes, shape)]
        pair = bytes([blocks, 0, codes, lengths[0], scales, 0, shape, lengths[1]])
        found += [pair + CUT + bytes(range(sum(lengths))), pair + CUT + b"\xff" * sum(lengths)]
    return found


def gguf_seeds() -> list[bytes]:
    """GGUF files as they are written."""
    return written(".gguf")


def onnx_seeds() -> list[bytes]:
    """ONNX files as they are written."""
    return written(".onnx")
