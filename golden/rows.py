"""Packed blocks in rows of equal length, as hardware has them: zeros follow the sparse ones."""

import numpy as np
from numpy.typing import NDArray

from axs6.golden.blocks import Blocks
from axs6.golden.formats import BlockFormat, Mode
from axs6.golden.modes import payload_bits
from axs6.golden.pack import HEADER_BYTES, MODE_MASK, pack
from axs6.golden.unpack import sparse_codes, unpack


def write_rows(blocks: Blocks) -> NDArray[np.uint8]:
    """Bytes of blocks in a format with modes, of shape (n, packed_bytes(format))."""
    length = blocks.format.packed_bytes
    return np.frombuffer(pack(blocks, align=length), np.uint8).reshape(-1, length)


def read_rows(rows: NDArray[np.uint8], fmt: BlockFormat) -> tuple[Blocks, NDArray[np.bool_]]:
    """Blocks of bytes of shape (n, packed_bytes(fmt)), and which of them are errors.

    The format has modes.

    An error is what `unpack` refuses; in its place is a dense block of exponent 0 and codes 0.
    """
    error = _unreadable(rows, fmt)
    data = np.where(error[:, None], np.uint8(0), rows).tobytes()
    return unpack(data, (len(rows), fmt.block), fmt, align=fmt.packed_bytes), error


def _unreadable(rows: NDArray[np.uint8], fmt: BlockFormat) -> NDArray[np.bool_]:
    mode, header = rows[:, 0] & MODE_MASK, rows[:, :HEADER_BYTES].copy().view("<u2")[:, 0]
    reserved = header >> fmt.header_used != 0
    return reserved | (mode == Mode.RESERVED) | (mode == Mode.SPARSE) & ~_sparse(rows, fmt)


def _sparse(rows: NDArray[np.uint8], fmt: BlockFormat) -> NDArray[np.bool_]:
    """Which rows have a payload that a sparse block may have."""
    bits = payload_bits(fmt, Mode.SPARSE)
    end = HEADER_BYTES + -(-bits // 8)
    _, right = sparse_codes(rows[:, HEADER_BYTES:end], fmt)
    padding = rows[:, end:].any(axis=1)
    if bits % 8:
        padding |= rows[:, end - 1] >> bits % 8 != 0
    return right & ~padding
