"""Packed blocks in rows of equal length, as hardware has them: zeros follow the sparse ones."""

import numpy as np
from numpy.typing import NDArray

from axs6.golden.blocks import Blocks
from axs6.golden.formats import AXS6, Mode
from axs6.golden.modes import payload_bits
from axs6.golden.pack import HEADER_BYTES, MODE_MASK, pack, packed_bytes
from axs6.golden.unpack import sparse_codes, unpack


def write_rows(blocks: Blocks) -> NDArray[np.uint8]:
    """Bytes of blocks, of shape (n, packed_bytes(B))."""
    length = packed_bytes(block=blocks.block)
    return np.frombuffer(pack(blocks, align=length), np.uint8).reshape(-1, length)


def read_rows(rows: NDArray[np.uint8], block: int) -> tuple[Blocks, NDArray[np.bool_]]:
    """Blocks of bytes of shape (n, packed_bytes(block)), and which of them are errors.

    An error is what `unpack` refuses; in its place is a dense block of exponent 0 and codes 0.
    """
    error = _unreadable(rows, block)
    data = np.where(error[:, None], np.uint8(0), rows).tobytes()
    shape = (len(rows), block)
    return unpack(data, shape, block=block, align=packed_bytes(block=block)), error


def _unreadable(rows: NDArray[np.uint8], size: int) -> NDArray[np.bool_]:
    mode = rows[:, 0] & MODE_MASK
    reserved = rows[:, 1] >> (AXS6.header_used - 8) != 0
    return reserved | (mode == Mode.RESERVED) | (mode == Mode.SPARSE) & ~_sparse(rows, size)


def _sparse(rows: NDArray[np.uint8], size: int) -> NDArray[np.bool_]:
    """Which rows have a payload that a sparse block may have."""
    bits = payload_bits(AXS6.with_block(size), Mode.SPARSE)
    end = HEADER_BYTES + -(-bits // 8)
    _, right = sparse_codes(rows[:, HEADER_BYTES:end], AXS6.with_block(size))
    padding = rows[:, end:].any(axis=1)
    if bits % 8:
        padding |= rows[:, end - 1] >> bits % 8 != 0
    return right & ~padding
