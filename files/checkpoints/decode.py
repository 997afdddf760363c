"""Decoding checkpoints: each weight becomes a tensor of its values, as its loader computes them."""

import math
from collections.abc import Callable
from pathlib import Path

from axs6.files.checkpoints.convert import check_target, check_tensors, documents_of
from axs6.files.checkpoints.held import Bytes
from axs6.files.checkpoints.source import Checkpoint, open_checkpoint
from axs6.files.checkpoints.weight import Weight
from axs6.files.checkpoints.write import Item, write_checkpoint
from axs6.files.writer import Entry
from axs6.golden.floats import bf16_bits

DTYPES = {"BF16": 2, "F32": 4}
"""Bytes of the dtypes of decoded values."""


def decode_checkpoint(
    source: Path, target: Path, progress: Callable[[str], object] | None = None, dtype: str = "BF16"
) -> list[str]:
    """Write a checkpoint with the values of its weights; other tensors stay as they are.

    Args:
        source: as in `convert_checkpoint`.
        target: a .safetensors file or a folder.
        progress: called with the name of each tensor before it is written.
        dtype: of the values: F32, as they are computed, or BF16, the nearest ones.

    Returns:
        The names of the tensors.

    Raises:
        OSError: a file cannot be read or written.
        ValueError: the source is damaged; nothing is written then.
    """
    check_target(target)
    with open_checkpoint(source) as checkpoint:
        check_tensors(checkpoint)
        items = decoded_items(checkpoint, dtype)
        names = [item.name for item in items]
        documents = documents_of(items, checkpoint)
        say = progress or (lambda _: None)
        write_checkpoint(target, items, checkpoint, documents, say, lambda *_: None)
        return names


def decoded_items(checkpoint: Checkpoint, dtype: str) -> list[Item]:
    """The weights of a checkpoint, decoded, and its other tensors."""
    where = checkpoint.shard_numbers

    def decoded(weight: Weight) -> tuple[Entry, Callable[[], Bytes]]:
        size = math.prod(weight.shape) * DTYPES[dtype]
        entry = Entry(weight.name, dtype, weight.shape, size)
        return entry, lambda: _values(weight, dtype)

    weights = [
        Item(each, where[each.files[0]], decoded=decoded(each)) for each in checkpoint.found.weights
    ]
    return [*weights, *(Item(each, where[each.name]) for each in checkpoint.found.plain)]


def _values(weight: Weight, dtype: str) -> Bytes:
    weight.check()
    for first, count in weight.bands():
        values = weight.values(first, count)
        yield (bf16_bits(values) if dtype == "BF16" else values).tobytes()
