"""Encoding the matrices of a model as a checkpoint of a kind."""

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from pathlib import Path

import numpy as np

from axs6.files.checkpoints.convert import Row, check_target, documents_of
from axs6.files.checkpoints.encode import Unencoded, encoded
from axs6.files.checkpoints.kinds import Kind
from axs6.files.checkpoints.layouts import Layout
from axs6.files.checkpoints.source import Checkpoint, open_checkpoint
from axs6.files.checkpoints.write import Item, write_checkpoint
from axs6.files.encode import exact, matches
from axs6.files.outer import Values
from axs6.files.tensors import FLOATS, Tensor
from axs6.golden.metrics import ErrorSums
from axs6.golden.nonfinite import NonFinite


@dataclass(frozen=True)
class Chosen:
    """The tensors that are encoded.

    Args:
        include, exclude: patterns of names (`*`, `?`, `[abc]`): floating-point tensors of two axes
            or more that one of `include` and none of `exclude` matches.
        nonfinite: treatment of NaN and infinities, as in `axs6.encode`.
    """

    include: Sequence[str] = ("*",)
    exclude: Sequence[str] = ()
    nonfinite: NonFinite = "error"

    def has(self, tensor: Tensor) -> bool:
        """Whether a tensor is encoded."""
        return (
            tensor.dtype in FLOATS
            and len(tensor.shape) > 1
            and matches(tensor.name, self.include, self.exclude)
        )


def encode_checkpoint(
    source: Path,
    target: Path,
    kind: Kind,
    layout: Layout,
    chosen: Chosen | None = None,
    progress: Callable[[str], object] | None = None,
) -> list[Row]:
    """Encode the matrices of a model, blocks along their last axis, as a checkpoint.

    Args:
        source: a folder of safetensors files, or a .safetensors, .npz or .npy file.
        target: a folder, which must not exist or be empty, or a file.
        kind: of the checkpoint.
        layout: of the kind.
        chosen: by default every matrix is encoded.
        progress: called with the name of each tensor before it is written.

    Returns:
        A row for each tensor.

    Raises:
        OSError: a file cannot be read or written.
        ValueError: the source is damaged, no tensor is chosen, a value has no code, or the layout
            has no blocks for a row; the message names the tensor. Nothing is written then.
    """
    chosen = chosen or Chosen()
    check_target(target, kind.suffix)
    with open_checkpoint(source) as checkpoint:
        where = checkpoint.shard_numbers
        try:
            items = [
                _item(tensor, where[tensor.name], layout, chosen)
                for shard in checkpoint.shards
                for tensor in shard.tensors
            ]
            if not any(item.held for item in items):
                raise ValueError("it has no floating-point matrix with an included name")
        except ValueError as error:
            raise ValueError(f"{source}: {error}") from error
        return write_checkpoint(
            target,
            items,
            checkpoint,
            documents_of(items, checkpoint, kind),
            progress or (lambda _: None),
            lambda path, suffix: _rows(items, path, suffix, checkpoint),
            kind.suffix,
        )


def _item(tensor: Tensor, shard: int, layout: Layout, chosen: Chosen) -> Item:
    if not chosen.has(tensor):
        return Item(tensor, shard)
    values = Unencoded(tensor.name, tensor.shape, _rows_of(tensor), chosen.nonfinite)
    return Item(tensor, shard, encoded(values, layout))


def _rows_of(tensor: Tensor) -> Callable[[int, int], Values]:
    length = tensor.shape[-1]

    def rows(first: int, count: int) -> Values:
        return exact(tensor.stored.items(first * length, count * length).reshape(count, length))

    return rows


def _rows(
    items: Sequence[Item], path: Path, suffix: str | None, checkpoint: Checkpoint
) -> list[Row]:
    """Read what was written, and compare its values with the source's."""
    found = []
    with open_checkpoint(path, suffix) as written:
        weights = {weight.name: weight for weight in written.found.weights}
        for item in items:
            tensor = item.source
            assert isinstance(tensor, Tensor)
            size = sum(entry.most_bytes for entry in item.entries())
            after, errors = tensor.dtype, None
            if item.held:
                after, errors = item.held.layout.name, ErrorSums()
                read, weight = _rows_of(tensor), weights[tensor.name]
                for first, count in weight.bands():
                    before = read(first, count).astype(np.float64)
                    values = weight.values(first, count).astype(np.float64)
                    known = np.isfinite(before) & np.isfinite(values)
                    errors.add(before[known], values[known])
                weight.release()
            found.append(
                Row(tensor.name, tensor.shape, tensor.dtype, after, "", errors, tensor.nbytes, size)
            )
    return found
