"""A small checkpoint in each layout, all of the same 64 values: for tests of other loaders.

ONNX models are not among them: their bytes depend on the version of the package onnx, and its own
evaluator says which values they have.

`python -m axs6.files.checkpoints.samples FOLDER` writes them, the values that a loader must get,
and the SHA-256 of each file.
"""

import hashlib
import sys
from pathlib import Path
from tempfile import TemporaryDirectory

import numpy as np
from safetensors.numpy import save_file

from axs6.files.checkpoints.encode_file import Chosen, encode_checkpoint
from axs6.files.checkpoints.kinds import KINDS
from axs6.files.checkpoints.source import ONNX, open_checkpoint
from axs6.golden.floats import bf16_bits
from axs6.replacing import make_folder, replacing

VERSION = 2
"""Of the files; it grows when one of them changes."""

SAMPLED = {
    layout.name: kind for kind in KINDS.values() if kind.suffix != ONNX for layout in kind.layouts
}
"""The kinds of files by the names of layouts."""

NAME = "layer.weight"

VALUES = (np.arange(64, dtype=np.float32) * 37 % 64 - 32) / 32
"""All multiples of 1/32 from -1 up to, not including, 1, in mixed order."""

HEADER = f"""\
# Version {VERSION}: {NAME} of 1 x 64 values in each file, as its loader decodes them.
# file -> bits of the values in FP32, and in BF16
"""


def write_samples(folder: Path) -> list[Path]:
    """Write the checkpoints, `values.txt` and `SHA256SUMS`.

    Raises:
        OSError: a file cannot be written.
    """
    make_folder(folder)
    written, lines = [], [HEADER]
    with TemporaryDirectory() as temporary:
        source = Path(temporary, "x.safetensors")
        save_file({NAME: VALUES.reshape(1, 64)}, source)
        for name, kind in SAMPLED.items():
            target = folder / f"{name}{kind.suffix}"
            encode_checkpoint(source, target, kind, Chosen(layout=name))
            written.append(target)
            lines.append(f"{target.name} -> {values_of(target)}\n")
    _write(folder / "values.txt", "".join(lines))
    digests = [
        f"{hashlib.sha256(path.read_bytes()).hexdigest()}  {path.name}\n"
        for path in (*written, folder / "values.txt")
    ]
    _write(folder / "SHA256SUMS", "".join(digests))
    return [*written, folder / "values.txt", folder / "SHA256SUMS"]


def values_of(path: Path) -> str:
    """The bits of the values in FP32 and in BF16."""
    with open_checkpoint(path) as checkpoint:
        values = checkpoint.found.weights[0].values(0, 1)[0]
    words = [values.view(np.uint32).tolist(), bf16_bits(values).tolist()]
    return " ".join(",".join(f"{each:x}" for each in word) for word in words)


def _write(path: Path, text: str) -> None:
    with replacing(path) as file:
        file.write(text.encode())


if __name__ == "__main__":
    for written in write_samples(Path(sys.argv[1])):
        print(f"wrote {written}")
