"""The packed byte layout of blocks: a 16-bit header, then the codes from bit 0 up."""

import numpy as np
from numpy.typing import NDArray

from axs6.golden.blocks import Blocks, check_blocks
from axs6.golden.spec import (
    CODE_BITS,
    EXPONENT_MAX,
    HEADER_BITS,
    MODE_BITS,
    Mode,
    check_block_size,
)

HEADER_BYTES = HEADER_BITS // 8
GROUP = 4
"""Four codes of six bits fill three bytes."""


def packed_bytes(block_size: int, align: int = 1) -> int:
    """Bytes of a dense block: 8 for B = 8, 14 for 16, 26 for 32, rounded up to `align`.

    Raises:
        ValueError: an unknown block size, or an alignment that is not a positive integer.
    """
    if not isinstance(align, int) or align < 1:
        raise ValueError(f"align must be a positive number of bytes, not {align!r}")
    used = HEADER_BYTES + check_block_size(block_size) * CODE_BITS // 8
    return -(-used // align) * align


def pack(blocks: Blocks, align: int = 1) -> bytes:
    """Blocks as bytes, in index order.

    Args:
        blocks: any number of blocks.
        align: pads each block with zeros to a multiple of this many bytes.

    Raises:
        ValueError: `align` is not a positive integer.

    Source: AXS-6 specification, sections 3 and 11; docs/format.md.
    """
    check_blocks("blocks", blocks)
    size = blocks.block_size
    stride = packed_bytes(size, align)
    codes = blocks.codes.reshape(-1, size // GROUP, GROUP)
    out = np.zeros((len(codes), stride), np.uint8)
    header = blocks.exponents.ravel().astype(np.uint16) << MODE_BITS | blocks.modes.ravel()
    out[:, 0] = header & 0xFF
    out[:, 1] = header >> 8
    payload = np.empty((len(codes), size // GROUP, 3), np.uint8)
    payload[..., 0] = codes[..., 0] | codes[..., 1] << 6
    payload[..., 1] = codes[..., 1] >> 2 | codes[..., 2] << 4
    payload[..., 2] = codes[..., 2] >> 4 | codes[..., 3] << 2
    out[:, HEADER_BYTES : packed_bytes(size)] = payload.reshape(len(codes), size // GROUP * 3)
    return out.tobytes()


def unpack(
    data: bytes | bytearray | memoryview,
    shape: tuple[int, ...],
    block_size: int = 32,
    align: int = 1,
) -> Blocks:
    """Blocks from the bytes that `pack` wrote.

    Args:
        data: the bytes of all blocks.
        shape: shape of the encoded values, (..., K).
        block_size, align: as they were in `pack`.

    Raises:
        ValueError: the length does not fit `shape`, or a block (named by its number) has header
            or padding bits that are not zero, or a mode other than dense.
    """
    stride = packed_bytes(block_size, align)
    shape = _check_shape(shape)
    per_row = -(-shape[-1] // block_size)
    count = int(np.prod(shape[:-1], dtype=object)) * per_row
    if len(data) != count * stride:
        raise ValueError(
            f"data must be {count} blocks of {stride} bytes for shape {shape}, "
            f"{count * stride} bytes, not {len(data)}"
        )
    raw = np.frombuffer(data, np.uint8).reshape(count, stride)
    header = raw[:, 0] | raw[:, 1].astype(np.uint16) << 8
    _check_rows(header >> (HEADER_BITS - 6), "header bits 10 to 15 must be zero")
    _check_rows(header & ((1 << MODE_BITS) - 1), f"mode must be {int(Mode.DENSE)} (dense)")
    _check_rows(raw[:, packed_bytes(block_size) :], "padding must be zero")
    used = raw[:, HEADER_BYTES : packed_bytes(block_size)]
    payload = used.reshape(count, block_size // GROUP, 3)
    codes = np.empty((count, block_size // GROUP, GROUP), np.uint8)
    codes[..., 0] = payload[..., 0]
    codes[..., 1] = payload[..., 0] >> 6 | payload[..., 1] << 2
    codes[..., 2] = payload[..., 1] >> 4 | payload[..., 2] << 4
    codes[..., 3] = payload[..., 2] >> 2
    codes &= (1 << CODE_BITS) - 1
    leading = (*shape[:-1], per_row)
    return Blocks(
        exponents=(header >> MODE_BITS & EXPONENT_MAX).astype(np.uint8).reshape(leading),
        modes=np.zeros(leading, np.uint8),
        codes=codes.reshape(*leading, block_size),
        shape=shape,
    )


def _check_shape(shape: tuple[int, ...]) -> tuple[int, ...]:
    checked = tuple(shape) if isinstance(shape, tuple | list) else ()
    if not checked or any(not isinstance(n, int | np.integer) or n < 0 for n in checked):
        raise ValueError(f"shape must be at least one non-negative integer, not {shape!r}")
    return tuple(int(n) for n in checked)


def _check_rows(values: NDArray[np.generic], rule: str) -> None:
    """Raise the error for the first block with a value that is not zero."""
    bad = values.any(axis=tuple(range(1, values.ndim)))
    if bad.any():
        block = int(np.flatnonzero(bad)[0])
        found = values[block].reshape(-1)
        shown = int(found[0]) if found.size == 1 else bytes(found.astype(np.uint8)).hex()
        raise ValueError(f"block {block}: {rule}, not {shown}")
