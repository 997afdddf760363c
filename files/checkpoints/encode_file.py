"""Encoding the matrices of a model as a checkpoint of a kind."""

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from pathlib import Path

from axs6.files.checkpoints.convert import Row, check_target, documents_of, errors_of
from axs6.files.checkpoints.encode import Unencoded, encoded, rows_of
from axs6.files.checkpoints.kinds import Kind
from axs6.files.checkpoints.layouts import WeightLayout
from axs6.files.checkpoints.source import naming, open_checkpoint
from axs6.files.checkpoints.write import Item, write_checkpoint
from axs6.files.encode import matches
from axs6.files.tensors import FLOATS, Tensor
from axs6.golden.formats import BlockFormat, block_format
from axs6.golden.metrics import ErrorSums
from axs6.golden.nonfinite import NonFinite


@dataclass(frozen=True)
class Chosen:
    """The tensors that are encoded.

    Args:
        include, exclude: patterns of names (`*`, `?`, `[abc]`): floating-point tensors of two axes
            or more that one of `include` and none of `exclude` matches.
        nonfinite: treatment of NaN and infinities, as in `axs6.encode`.
        format: a block format that a layout of the kind holds; by default the layout's own.
        layout: the name of the layout; by default the first of the kind with the format.
        profile: a library whose steps are taken, as in `axs6.encode`.
    """

    include: Sequence[str] = ("*",)
    exclude: Sequence[str] = ()
    nonfinite: NonFinite = "error"
    format: str | BlockFormat | None = None
    layout: str | None = None
    profile: str | None = None

    def layout_of(self, kind: Kind) -> WeightLayout:
        """The layout of a kind in which tensors are encoded.

        Raises:
            ValueError: the kind has none of this format and name.
        """
        if self.layout is not None:
            return kind.named(self.layout, self.format)
        return kind.layouts[0] if self.format is None else kind.of_format(self.format)

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
    chosen: Chosen | None = None,
    progress: Callable[[str], object] | None = None,
) -> list[Row]:
    """Encode the matrices of a model, blocks along their last axis, as a checkpoint.

    Args:
        source: a folder of safetensors files, or a .safetensors, .npz or .npy file.
        target: a folder, which must not exist or be empty, or a file.
        kind: of the checkpoint.
        chosen: by default every matrix is encoded.
        progress: called with the name of each tensor before it is written.

    Returns:
        A row for each tensor.

    Raises:
        OSError: a file cannot be read or written.
        ValueError: the kind has no such format, the source is damaged, no tensor is chosen, a
            value has no code, or the layout has no blocks for a row; the message names the tensor.
            Nothing is written then.
    """
    chosen = chosen or Chosen()
    layout = chosen.layout_of(kind)
    check_target(target, kind.suffix)
    with open_checkpoint(source) as checkpoint:
        where = checkpoint.shard_numbers
        with naming(source):
            items = [
                _item(tensor, where[tensor.name], layout, chosen)
                for shard in checkpoint.shards
                for tensor in shard.tensors
            ]
            if not any(item.held for item in items):
                raise ValueError("it has no floating-point matrix with an included name")
        return write_checkpoint(
            target,
            items,
            checkpoint,
            documents_of(items, checkpoint, kind),
            progress or (lambda _: None),
            lambda path, suffix: _rows(items, path, suffix),
            kind.suffix,
        )


def _item(tensor: Tensor, shard: int, layout: WeightLayout, chosen: Chosen) -> Item:
    if not chosen.has(tensor):
        return Item(tensor, shard)
    fmt = None if chosen.format is None else block_format(chosen.format)
    values = Unencoded(
        tensor.name,
        tensor.shape,
        rows_of(tensor),
        chosen.nonfinite,
        fmt,
        chosen.profile,
        tensor.dtype,
    )
    return Item(tensor, shard, encoded(values, layout))


def _rows(items: Sequence[Item], path: Path, suffix: str | None) -> list[Row]:
    """Read what was written, and compare its values with the source's."""
    found = []
    with open_checkpoint(path, suffix) as written:
        weights = {weight.name: weight for weight in written.found.weights}
        for item in items:
            tensor = item.source
            assert isinstance(tensor, Tensor)
            after: str = tensor.dtype
            errors: ErrorSums | None = None
            if item.held:
                after = item.held.layout.name
                errors = errors_of(rows_of(tensor), weights[tensor.name])
            found.append(
                Row(
                    tensor.name,
                    tensor.shape,
                    tensor.dtype,
                    after,
                    "",
                    errors,
                    tensor.nbytes,
                    item.nbytes,
                )
            )
    return found
