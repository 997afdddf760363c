"""MXFP4 checkpoints: a tensor `NAME` as the pair of tensors `NAME_blocks` and `NAME_scales`.

`NAME_blocks` are the codes, U8 of shape (..., n, 16), two in a byte, the first in the low bits;
`NAME_scales` the exponents of the blocks, U8 of shape (..., n). The file does not mark pairs; they
are recognised by names, dtypes and shapes.
"""

import tempfile
from collections.abc import Iterable, Iterator
from dataclasses import dataclass

from axs6.files import coding
from axs6.files.coding import Encoded, Piece
from axs6.files.scratch import naming_folder
from axs6.files.stored import Stored
from axs6.files.tensors import Tensor
from axs6.files.writer import Entry
from axs6.golden.blocks import Blocks
from axs6.golden.formats import CATALOG
from axs6.golden.planar import checkpoint_pair, from_checkpoint

MXFP4 = CATALOG["mxfp4"]
PAIR_BYTES = MXFP4.payload_bits // 8

CODES, SCALES = "_blocks", "_scales"
"""Ends of the names of a pair."""

DTYPE = "BF16"
"""Dtype of the decoded values: bfloat16 holds MXFP4 values exactly, except the largest."""


@dataclass(frozen=True)
class Pair(Tensor):
    """A tensor held by two tensors of a file: `stored` has the codes, as in the file.

    Args:
        scales: the exponents of the blocks.
    """

    scales: Stored

    @property
    def nbytes(self) -> int:
        """Number of bytes in the file."""
        return self.stored.nbytes + self.scales.nbytes

    def blocks(self, encoding: Encoded) -> Iterator[tuple[Piece, Blocks]]:
        """The blocks, piece by piece."""
        for piece in encoding.pieces():
            first, count = piece.first(encoding) // encoding.size, piece.blocks(encoding.size)
            codes = self.stored.items(first * PAIR_BYTES, count * PAIR_BYTES)
            scales = self.scales.items(first, count).reshape(piece.rows, -1)
            yield piece, from_checkpoint(codes.reshape(*scales.shape, PAIR_BYTES), scales)


def joined(tensors: Iterable[Tensor]) -> tuple[list[Tensor], dict[str, Encoded]]:
    """The tensors of a checkpoint, each pair as one, and the encodings of the pairs.

    Other tensors stay unchanged; so does a pair whose name another tensor has, unless that tensor
    is part of a pair.
    """
    held = {tensor.name: tensor for tensor in tensors}
    found: dict[str, Tensor] = {}
    encoded: dict[str, Encoded] = {}
    parts: set[str] = set()
    # Whether a tensor is a part of a pair is known by then: the pair's name is shorter.
    for tensor in sorted(held.values(), key=lambda tensor: len(tensor.name)):
        name = tensor.name.removesuffix(CODES)
        scales = held.get(name + SCALES)
        taken = name in held and name not in parts
        if tensor.name == name or taken or not scales or not _is_pair(tensor, scales):
            continue
        shape = (*scales.shape[:-1], scales.shape[-1] * MXFP4.block)
        found[tensor.name] = Pair(name, tensor.dtype, shape, tensor.stored, scales.stored)
        encoded[name] = Encoded(shape=shape, dtype=DTYPE, format=MXFP4, axis=-1)
        parts |= {tensor.name, scales.name}
    apart = [name for name in held if name in found or name not in parts]
    return [found.get(name, held[name]) for name in apart], encoded


def _is_pair(codes: Tensor, scales: Tensor) -> bool:
    bytes_alone = codes.dtype == scales.dtype == "U8" and len(scales.shape) > 0
    return bytes_alone and codes.shape == (*scales.shape, PAIR_BYTES)


def pair_entries(name: str, encoding: Encoded) -> list[Entry]:
    """The two tensors that hold one."""
    shape = (*encoding.shape[:-1], encoding.length // encoding.size)
    return [
        Entry(name + CODES, "U8", (*shape, PAIR_BYTES), encoding.blocks * PAIR_BYTES),
        Entry(name + SCALES, "U8", shape, encoding.blocks),
    ]


def pair_contents(blocks: Iterable[Blocks]) -> Iterator[Iterator[bytes]]:
    """The bytes of the two tensors, in pieces; take the bytes of the codes first.

    The scales wait in a temporary file.
    """
    with tempfile.TemporaryFile() as file:

        def codes() -> Iterator[bytes]:
            for each in blocks:
                pairs, scales = checkpoint_pair(each)
                with naming_folder():
                    file.write(scales.tobytes())
                yield pairs.tobytes()

        yield codes()
        file.seek(0)
        yield iter(lambda: file.read(coding.CHUNK), b"")


def check_pair(encoding: Encoded) -> None:
    """Raise ValueError unless a tensor can be a pair: of whole blocks, along its last axis.

    The pair does not say how many values of a block are padding.
    """
    if encoding.shape != encoding.blocked_shape or not encoding.in_order:
        raise ValueError("checkpoints have blocks along the last axis")
    if encoding.length % encoding.size:
        raise ValueError(
            f"checkpoints have whole blocks of {encoding.size} values, not "
            f"{encoding.length} in a row"
        )
