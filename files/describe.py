"""Contents of a container: its tensors, their encodings, and the modes of their blocks."""

from collections import Counter
from dataclasses import dataclass
from pathlib import Path

import numpy as np

from axs6.files.checkpoints.convert import check_tensors
from axs6.files.checkpoints.source import is_checkpoint, naming, open_checkpoint
from axs6.files.coding import Encoded
from axs6.files.container import blocks_of, open_container
from axs6.golden.formats import Mode


@dataclass(frozen=True)
class TensorDescription:
    """A tensor of a container.

    Args:
        name: of the tensor.
        dtype, shape: of its values.
        bytes: number of bytes in the file.
        encoded: its encoding; None if it is not encoded.
        modes: number of blocks by the name of their mode; all dense in formats without modes.
        layout: name of its layout, if it is a weight of a checkpoint.
    """

    name: str
    dtype: str
    shape: tuple[int, ...]
    bytes: int
    encoded: Encoded | None
    modes: dict[str, int]
    layout: str = ""

    @property
    def blocks(self) -> int:
        """Number of blocks."""
        return sum(self.modes.values())


def describe_file(path: Path) -> list[TensorDescription]:
    """Read every block of a container, or every scale of a checkpoint, and describe its tensors.

    Raises:
        OSError: the file cannot be read.
        ValueError: it is damaged, or neither; the message names the tensor and the block.
    """
    if is_checkpoint(path):
        return _of_checkpoint(path)
    found = []
    with open_container(path) as (tensors, encoded, _):
        for tensor in tensors:
            encoding = encoded.get(tensor.name)
            modes: Counter[str] = Counter()
            for _, blocks in blocks_of(tensor, encoding) if encoding else ():
                for mode, count in zip(*np.unique(blocks.modes, return_counts=True), strict=True):
                    modes[Mode(mode).label] += int(count)
            dtype, shape = (
                (encoding.dtype, encoding.shape) if encoding else (tensor.dtype, tensor.shape)
            )
            found.append(
                TensorDescription(tensor.name, dtype, shape, tensor.nbytes, encoding, dict(modes))
            )
    return found


def _of_checkpoint(path: Path) -> list[TensorDescription]:
    found = []
    with open_checkpoint(path) as checkpoint:
        check_tensors(checkpoint)
        with naming(path):
            for weight in checkpoint.found.weights:
                weight.check()
                blocks = {Mode.DENSE.label: weight.scales[0].codes.size}
                weight.release()
                found.append(
                    TensorDescription(
                        weight.name,
                        "BF16",
                        weight.shape,
                        weight.nbytes,
                        None,
                        blocks,
                        weight.layout.name,
                    )
                )
        found += [
            TensorDescription(each.name, each.dtype, each.shape, each.nbytes, None, {})
            for each in checkpoint.found.plain
        ]
    return found
