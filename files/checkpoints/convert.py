"""Converting checkpoints from one kind to another."""

from collections.abc import Callable, Iterator, Sequence
from contextlib import suppress
from dataclasses import dataclass, replace
from pathlib import Path

import numpy as np

from axs6.files.checkpoints.configuration import MODELOPT, Contents, Documents
from axs6.files.checkpoints.encode import Rows, Unencoded, encoded
from axs6.files.checkpoints.held import Held
from axs6.files.checkpoints.kinds import Kind, nearest_first
from axs6.files.checkpoints.layouts import GGML, WeightLayout
from axs6.files.checkpoints.recode import CannotHoldError, differences, recode
from axs6.files.checkpoints.recognise import MODULE
from axs6.files.checkpoints.source import (
    GGUF,
    ONNX,
    SAFETENSORS,
    Checkpoint,
    naming,
    open_checkpoint,
)
from axs6.files.checkpoints.swizzle import with_swizzled_scales
from axs6.files.checkpoints.weight import Weight
from axs6.files.checkpoints.write import Item, write_checkpoint
from axs6.files.tensors import FLOATS, READERS, Tensor
from axs6.golden.metrics import ErrorSums


@dataclass(frozen=True)
class Row:
    """What became of a tensor of the source.

    Args:
        name: of the weight, or of the tensor.
        shape: of the values.
        before, after: the layouts; the dtype of a tensor that is no weight.
        same: "float32" or "bfloat16" where the values are the same, proved by decoding both;
            empty if they were encoded again.
        errors: of the values that were encoded again.
        bytes_before, bytes_after: in the files.
    """

    name: str
    shape: tuple[int, ...]
    before: str
    after: str
    same: str
    errors: ErrorSums | None
    bytes_before: int
    bytes_after: int


def convert_checkpoint(
    source: Path,
    target: Path,
    kind: Kind,
    *,
    layout: WeightLayout | None = None,
    requantise: bool = False,
    swizzle: bool = False,
    unswizzle: bool = False,
    progress: Callable[[str], object] | None = None,
) -> list[Row]:
    """Write a checkpoint of another kind, whose loader gets the same values.

    Args:
        source: a folder of safetensors files or with an ONNX model, a .safetensors, .gguf or .onnx
            file.
        target: a folder, which must not exist or be empty, or a file.
        kind: of the target.
        layout: the layout of all weights; by default each weight takes the kind's layout that is
            most like its own.
        requantise: encode weights again that no layout of the kind can hold with their values; or
            keep their codes, where only the inverse of a scale is the nearest float32.
        swizzle: write scales of blocks in the order of `swizzle`.
        unswizzle: the source has them in this order.
        progress: called with what is done: `writing NAME`.

    Returns:
        A row for each weight and tensor.

    Raises:
        OSError: a file cannot be read or written.
        ValueError: the source is damaged or has no weights, the kind cannot hold one of them, or
            there are no scales of blocks to be swizzled. Nothing is written then.
    """
    check_target(target, kind.suffix)
    if swizzle:
        kind = _swizzled(kind)
        layout = with_swizzled_scales(layout) if layout else None
    with open_checkpoint(source, swizzled=unswizzle) as checkpoint:
        check_tensors(checkpoint)
        with naming(source):
            held = (part for each in checkpoint.found.weights for part in each.layout.scales)
            if unswizzle and not any(part.swizzled for part in held):
                raise ValueError("it has no scales of blocks that can be swizzled")
            items = list(_items(checkpoint, kind, layout, requantise))
        return write_checkpoint(
            target,
            items,
            checkpoint,
            documents_of(items, checkpoint, kind),
            progress or (lambda _: None),
            lambda path, suffix: _proved(items, path, suffix, swizzle),
            kind.suffix,
        )


def _swizzled(kind: Kind) -> Kind:
    """A kind with scales of blocks in the order of `swizzle`."""
    layouts = tuple(with_swizzled_scales(layout) for layout in kind.layouts)
    if kind.suffix != SAFETENSORS or layouts == kind.layouts:
        raise ValueError(f"{kind.name} has no scales of blocks that can be swizzled")
    return replace(kind, layouts=layouts)


def check_target(target: Path, suffix: str = SAFETENSORS) -> None:
    """Raise ValueError unless a target is a folder or file for files of this ending."""
    if suffix == GGUF and target.suffix != GGUF:
        raise ValueError(f"{target} must end in {GGUF}")
    if suffix != GGUF and target.suffix in (GGUF, ONNX, *READERS) and target.suffix != suffix:
        raise ValueError(f"{target} must be a folder, or end in {suffix}")


def check_tensors(checkpoint: Checkpoint) -> None:
    """Raise ValueError for tensors that cannot be read: parts of weights, or types of ggml."""
    found = checkpoint.found
    with naming(checkpoint.path):
        if found.problems:
            raise ValueError(str(found.problems[0]))
        if not found.weights:
            raise ValueError("it has no weight in a layout that is known")
        for tensor in found.plain:
            if tensor.dtype.startswith(GGML):
                kind = tensor.dtype.removeprefix(GGML)
                raise ValueError(
                    f"tensor {tensor.name!r} has the type {kind} of ggml, which is not supported"
                )


def _items(
    checkpoint: Checkpoint, kind: Kind, layout: WeightLayout | None, requantise: bool
) -> Iterator[Item]:
    """What is to be written, in the order of the source."""
    where = checkpoint.shard_numbers
    for weight in checkpoint.found.weights:
        held = _held(weight, kind, layout, requantise)
        yield Item(weight, where[weight.files[0]], held)
    for tensor in checkpoint.found.plain:
        yield Item(tensor, where[tensor.name])


def _held(weight: Weight, kind: Kind, layout: WeightLayout | None, requantise: bool) -> Held:
    """A weight in a layout of the kind: the same values, or encoded again."""
    reason: CannotHoldError | None = None
    choices = [layout] if layout else nearest_first(kind, weight.layout)
    rounded: Held | None = None
    for each in choices:
        try:
            held = recode(weight, each)
        except CannotHoldError as error:
            reason = reason or error
            continue
        if not held.rounded:
            return held
        rounded = rounded or held
    if rounded:
        return rounded
    if not requantise:
        raise ValueError(f"{reason}; with --requantise it is encoded again")
    for each in choices:
        with suppress(CannotHoldError):
            return recode(weight, each, exact=False)
    return encoded(Unencoded(weight.name, weight.shape, weight.values), choices[0])


def documents_of(
    items: Sequence[Item], checkpoint: Checkpoint, kind: Kind | None = None
) -> Documents:
    """The documents of a folder of these weights: those of the source, with what the kind adds."""
    documents = {
        name: {key: value for key, value in each.items() if key != "quantization_config"}
        for name, each in checkpoint.documents.items()
        if name != MODELOPT
    }
    added = kind.configuration(_contents(items)) if kind else {}
    for name, entries in added.items():
        documents[name] = {**documents.get(name, {}), **entries}
    return documents


def _contents(items: Sequence[Item]) -> Contents:
    weights = [
        (item.name.removesuffix(MODULE), item.held.layout, item.held.input is not None)
        for item in items
        if item.held
    ]
    ignored = [
        entry.name.removesuffix(MODULE)
        for item in items
        if not item.held
        for entry in item.entries()
        if entry.name.endswith(MODULE) and entry.dtype in FLOATS and len(entry.shape) == 2
    ]
    return Contents(weights, ignored)


def _proved(items: Sequence[Item], path: Path, suffix: str | None, swizzled: bool) -> list[Row]:
    """Read what was written, and compare the values of every weight with the source's."""
    rows = []
    with open_checkpoint(path, suffix, swizzled) as written:
        weights = {weight.name: weight for weight in written.found.weights}
        for item in items:
            source = item.source
            assert not isinstance(source, str)
            if isinstance(source, Tensor):
                rows.append(
                    Row(
                        source.name,
                        source.shape,
                        source.dtype,
                        source.dtype,
                        "",
                        None,
                        source.nbytes,
                        item.nbytes,
                    )
                )
                continue
            assert item.held
            found = weights.get(source.name)
            if found is None or found.shape != source.shape:
                raise ValueError(
                    f"tensor {source.name!r}: {item.held.layout.name} beside the other tensors "
                    "would be read as something else"
                )
            errors, same = None, "bfloat16" if item.held.rounded else "float32"
            if item.held.encoded_again:
                errors, same = errors_of(source.values, found), ""
            elif wrong := differences(source, found, item.held.rounded):
                raise AssertionError(f"{source.name} has other values from row {wrong[0][0]} on")
            source.release()
            found.release()
            rows.append(
                Row(
                    source.name,
                    source.shape,
                    source.layout.name,
                    item.held.layout.name,
                    same,
                    errors,
                    source.nbytes,
                    item.nbytes,
                )
            )
    return rows


def errors_of(read: Rows, found: Weight) -> ErrorSums:
    """The errors of a weight beside the values that `read` gives, where both are finite."""
    errors = ErrorSums()
    for first, count in found.bands():
        before = read(first, count).astype(np.float64)
        after = found.values(first, count).astype(np.float64)
        known = np.isfinite(before) & np.isfinite(after)
        errors.add(before[known], after[known])
    found.release()
    return errors
