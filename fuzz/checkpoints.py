"""MXFP4 checkpoints: pairs of tensors of any shape and dtype, whole or not."""

import json
from pathlib import Path
from tempfile import TemporaryDirectory

import numpy as np
import tensors
from tensors import CUT, accepted, in_folder, readable, with_header

from axs6.files import Options, decode_file, describe_file, encode_file

SHAPES = ([2, 1, 16], [2, 1], [1, 16], [1], [16], [], [2, 2, 16], [0, 1, 16], [0, 1], [4, 8], [-1])
DTYPES = ("U8", "I8", "F8_E8M0", "BF16", "F32", "F4", 7, None)
NAMES = ("x_blocks", "x_scales", "x", "y_scales", "_blocks", "_scales", "[/i]_blocks")
"""Parts of the entries of a header: right, wrong, or right together."""


@in_folder
def checkpoint(folder: Path, data: bytes) -> bool:
    """A checkpoint, of an input in one of two forms.

    Raw bytes; or four bytes for each tensor (name, dtype, shape and length), and the bytes of all.
    """
    path = folder / "x.safetensors"
    entries, cut, body = data.partition(CUT)
    path.write_bytes(with_header(header(entries), "", body) if cut else data)
    if not accepted(path, lambda: describe_file(path)):
        return accepted(path, lambda: decode_file(path, folder / "decoded.safetensors"))
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


def seeds() -> list[bytes]:
    """Checkpoints as they are written, and pairs of each shape."""
    found = []
    with TemporaryDirectory() as folder:
        source, target = Path(folder, "x.npz"), Path(folder, "x.safetensors")
        values = tensors.arrays()["f"].reshape(2, 32)
        np.savez(source, x=values, y=values[:, :0], z=np.arange(3))
        encode_file(source, target, Options(format="mxfp4", checkpoint=True))
        found.append(target.read_bytes())
    for codes, scales in ((0, 1), (2, 3), (7, 8), (6, 1), (4, 5)):
        lengths = [int(np.prod(SHAPES[i])) for i in (codes, scales)]
        pair = bytes([0, 0, codes, lengths[0], 1, 0, scales, lengths[1]])
        found += [pair + CUT + bytes(range(sum(lengths))), pair + CUT + b"\xff" * sum(lengths)]
    return found
