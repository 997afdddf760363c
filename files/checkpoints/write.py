"""Writing checkpoints: a file, or a folder with the files that the source has."""

import json
import shutil
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any, BinaryIO, TypeVar

from axs6.files.checkpoints.configuration import Documents
from axs6.files.checkpoints.ggml import write_gguf
from axs6.files.checkpoints.held import Bytes, Held
from axs6.files.checkpoints.onnx_write import write_onnx
from axs6.files.checkpoints.source import (
    GGUF,
    INDEX,
    ONNX,
    SAFETENSORS,
    Checkpoint,
    naming,
)
from axs6.files.checkpoints.weight import Weight
from axs6.files.tensors import Tensor
from axs6.files.writer import Entry, Writer, plain
from axs6.replacing import check_apart, replacing, replacing_folder

T = TypeVar("T")
Say = Callable[[str], object]


@dataclass(frozen=True)
class Item:
    """A tensor or weight of the source, and what is written for it.

    Args:
        source: it; its name, if it is no tensor of a file.
        shard: number of its file.
        held: the weight as it is written; None for other tensors.
        decoded: the tensor of its values in place of `held`, and what gives its bytes.
    """

    source: Weight | Tensor | str
    shard: int
    held: Held | None = None
    decoded: tuple[Entry, Callable[[], Bytes]] | None = None

    @property
    def name(self) -> str:
        """Its name."""
        return self.source if isinstance(self.source, str) else self.source.name

    @property
    def nbytes(self) -> int:
        """Bytes of the tensors that are written."""
        return sum(entry.most_bytes for entry in self.entries())

    def entries(self) -> list[Entry]:
        """The tensors that are written."""
        if self.held:
            return self.held.entries()
        if self.decoded:
            return [self.decoded[0]]
        tensor = self.source
        assert isinstance(tensor, Tensor)
        return [Entry(tensor.name, tensor.dtype, tensor.shape, tensor.nbytes)]

    def contents(self) -> Iterator[Bytes]:
        """The bytes of each of them, in pieces; take those of one before the next."""
        if self.held:
            yield from self.held.contents()
        elif self.decoded:
            yield self.decoded[1]()
        else:
            assert isinstance(self.source, Tensor)
            yield plain(self.source.stored)
        if isinstance(self.source, Weight):
            self.source.release()


def write_checkpoint(
    target: Path,
    items: Sequence[Item],
    checkpoint: Checkpoint,
    documents: Documents,
    say: Say,
    check: Callable[[Path, str | None], T],
    suffix: str = SAFETENSORS,
) -> T:
    """Write tensors to a file, or to a folder of files as the source has them.

    Args:
        target: a file that ends in .safetensors, .gguf or .onnx, or a folder.
        items: what is written.
        checkpoint: the source.
        documents: of the target, if it is a folder.
        say: called with what is done.
        check: called with what was written, before it gets its name, and with the suffix that the
            file will have. It gives the result.
        suffix: of files of tensors in a folder.

    Raises:
        OSError: a file cannot be read or written.
        ValueError: the target is the source, a folder with files or one within the source, or two
            tensors have one name. Nothing is written then.
    """
    for shard in checkpoint.shards:
        whole = checkpoint.path.is_dir()
        check_apart([target], [checkpoint.path / shard.name if whole else checkpoint.path])
    single = target.suffix in (SAFETENSORS, GGUF, ONNX)
    if not single and checkpoint.shards and checkpoint.path.resolve() in target.resolve().parents:
        raise ValueError(f"{target} must not be within the source {checkpoint.path}")
    with naming(checkpoint.path):
        _check_names(items, target.suffix if single else suffix)
    if single:
        with replacing(target) as file:
            _write(file, items, checkpoint, target.suffix, say)
            file.flush()
            return check(Path(file.name), target.suffix)
    with replacing_folder(target) as folder:
        if suffix == ONNX:
            for path in checkpoint.others:
                if path.suffix == SAFETENSORS:
                    raise ValueError(f"{path} would be read in place of {ONNX} files beside it")
            path = folder / f"model{ONNX}"
            with path.open("wb") as file, Path(f"{path}.data").open("wb") as data:
                _write(file, items, checkpoint, ONNX, say, data)
        else:
            _write_shards(folder, items, checkpoint, say)
        for name, each in documents.items():
            _write_json(folder / name, each)
        for path in checkpoint.others:
            _copy(path, folder / path.name)
        return check(folder, None)


def _copy(path: Path, target: Path) -> None:
    """Copy a file or folder, with what its links lead to; errors name what cannot be copied."""
    if target.exists():
        raise ValueError(f"two files would have the name {path.name!r}")
    try:
        (shutil.copytree if path.is_dir() else shutil.copyfile)(path, target)
    except shutil.Error as error:
        (first, _, reason), *_ = error.args[0]
        raise OSError(f"cannot copy {first}: {reason}") from error
    except OSError as error:
        raise OSError(f"cannot copy {path}: {error.strerror or error}") from error


def _write(
    file: BinaryIO,
    items: Sequence[Item],
    checkpoint: Checkpoint,
    suffix: str,
    say: Say,
    data: BinaryIO | None = None,
) -> int:
    """Write tensors to a file, large ones of ONNX to `data`. Returns the bytes of the tensors."""
    entries = [entry for item in items for entry in item.entries()]
    total = sum(entry.most_bytes for entry in entries)
    contents = (pieces for item in items for pieces in _said(item, checkpoint.path, say))
    if suffix == GGUF:
        origin = next((shard.gguf for shard in checkpoint.shards), None)
        with naming(checkpoint.path):
            write_gguf(Path(file.name), entries, contents, origin, checkpoint.documents)
        return total
    if suffix == ONNX:
        write_onnx(file, entries, contents, [item.held for item in items if item.held], data)
        return total
    metadata: dict[str, Any] = {}
    for number in sorted({item.shard for item in items}) if checkpoint.shards else ():
        shard = checkpoint.shards[number]
        metadata |= {} if shard.gguf else shard.metadata
    writer = Writer(file, entries, lambda _header, _digests: metadata, digested=False)
    for entry, pieces in zip(entries, contents, strict=True):
        writer.add(entry, pieces)
    writer.finish()
    return total


def _said(item: Item, source: Path, say: Say) -> Iterator[Bytes]:
    """The contents of an item; errors name the source."""
    say(f"writing {item.name}")
    contents = item.contents()
    while True:
        with naming(source):
            pieces = next(contents, None)
        if pieces is None:
            return
        yield _named(pieces, source)


def _named(pieces: Bytes, source: Path) -> Bytes:
    while True:
        with naming(source):
            piece = next(pieces, None)
        if piece is None:
            return
        yield piece


def _check_names(items: Sequence[Item], suffix: str) -> None:
    names: set[str] = set()
    for item in items:
        for entry in item.entries():
            if entry.name in names:
                raise ValueError(f"two tensors would have the name {entry.name!r}")
            names.add(entry.name)
            if suffix == SAFETENSORS and entry.dtype == "I4":
                raise ValueError(f"tensor {entry.name!r}: {SAFETENSORS} files have no I4")


def _write_shards(folder: Path, items: Sequence[Item], checkpoint: Checkpoint, say: Say) -> None:
    """Write files of tensors as the source has them, and an index."""
    index: dict[str, str] = {}
    total = 0
    names = [shard.name for shard in checkpoint.shards]
    if not (names and checkpoint.path.is_dir()) or names[0].endswith(ONNX):
        names = [f"model{SAFETENSORS}"]
    for number, name in enumerate(names):
        own = [item for item in items if item.shard == number]
        with (folder / name).open("wb") as file:
            total += _write(file, own, checkpoint, SAFETENSORS, say)
        index |= {entry.name: name for item in own for entry in item.entries()}
    # Files that the source's index leaves out are copied, and have no tensors of the checkpoint.
    if len(names) > 1 or any(path.suffix == SAFETENSORS for path in checkpoint.others):
        found = {"metadata": {"total_size": total}, "weight_map": dict(sorted(index.items()))}
        _write_json(folder / INDEX, found)


def _write_json(path: Path, found: dict[str, Any]) -> None:
    path.write_text(json.dumps(found, indent=2, ensure_ascii=False) + "\n", encoding="utf-8")
