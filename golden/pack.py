"""The packed byte layout of blocks: a 16-bit header, then the payload from bit 0 up."""

from collections.abc import Iterator

import numpy as np
from numpy.typing import NDArray

from axs6.golden.blocks import Blocks, check_blocks, chunks, sparse_values
from axs6.golden.spec import (
    ALIGN_MAX,
    CODE_BITS,
    EXPONENT_MAX,
    HEADER_BITS,
    HEADER_USED,
    MODE_BITS,
    Mode,
    check_block,
    check_integer,
    check_shape,
    code_formats,
    dropped_values,
    payload_bits,
)

HEADER_BYTES = HEADER_BITS // 8
MODE_MASK = (1 << MODE_BITS) - 1
GROUP = 8
"""Codes of a word of 64 bits, a byte each, which take 48 bits in every mode."""

PART_BITS = 16
PARTS = GROUP * CODE_BITS // PART_BITS
"""Parts of a packed word: no machine has words of 48 bits."""

CHUNK_VALUES = 1 << 17
"""Values packed at a time: their temporaries stay within a core's cache."""


def packed_bytes(block: int, align: int = 1, mode: Mode = Mode.DENSE) -> int:
    """Bytes of a block: 26 for 32 values, 24 if it is sparse; rounded up to `align`.

    Blocks of 16 take 14 bytes or 13, blocks of 8 take 8; high-precision blocks as many as dense
    ones.

    Raises:
        ValueError: an unknown block size, or an alignment that is not an integer from 1 to 4096.
    """
    check_integer("align", align, 1, ALIGN_MAX)
    used = HEADER_BYTES + -(-payload_bits(check_block(block), mode) // 8)
    return -(-used // align) * align


def pack(blocks: Blocks, align: int = 1) -> bytes:
    """Blocks as bytes, in index order.

    Args:
        blocks: any number of blocks, of any modes.
        align: pads each block with zeros to a multiple of this many bytes.

    Raises:
        TypeError: `blocks` is not Blocks.
        ValueError: `align` is not an integer from 1 to 4096.

    Source: AXS-6 specification, sections 3, 4 and 11; docs/format.md.
    """
    check_blocks("blocks", blocks)
    size = blocks.block
    codes, modes = blocks.codes.reshape(-1, size), blocks.modes.ravel()
    header = blocks.exponents.ravel().astype(np.uint16) << np.uint16(MODE_BITS) | modes
    parts = [
        (rows, _packed(header[rows], codes[rows], mode, packed_bytes(size, align, mode)))
        for mode, rows in _rows_by_mode(modes)
    ]
    if len(parts) == 1:
        return parts[0][1].tobytes()
    strides = _strides(size, align)[modes]
    starts = np.cumsum(strides) - strides
    out = np.empty(int(strides.sum()), np.uint8)
    for rows, packed in parts:
        out[starts[rows][:, None] + np.arange(packed.shape[1])] = packed
    return out.tobytes()


def _packed(
    header: NDArray[np.uint16], codes: NDArray[np.uint8], mode: Mode, length: int
) -> NDArray[np.uint8]:
    """Blocks of one mode as bytes (n, length)."""
    packed = np.zeros((len(codes), length), np.uint8)
    packed[:, 0] = header & 0xFF
    packed[:, 1] = header >> 8
    for rows in chunks(len(codes), CHUNK_VALUES // codes.shape[1]):
        payload = _payload(codes[rows], mode)
        packed[rows, HEADER_BYTES : HEADER_BYTES + payload.shape[1]] = payload
    return packed


def _strides(size: int, align: int) -> NDArray[np.int64]:
    """Bytes of a block by its mode."""
    return np.array([packed_bytes(size, align, mode) for mode in Mode], np.int64)


def _rows_by_mode(
    modes: NDArray[np.uint8],
) -> Iterator[tuple[Mode, slice | NDArray[np.intp]]]:
    """Each mode that occurs and its blocks: a slice of them all where there is one mode."""
    for mode in Mode:
        here = modes == mode
        if here.all():
            yield mode, slice(None)
            return
        if here.any():
            yield mode, np.flatnonzero(here)


def _payload(codes: NDArray[np.uint8], mode: Mode) -> NDArray[np.uint8]:
    """Payloads (n, bytes) of blocks of codes (n, B)."""
    if mode is not Mode.SPARSE:
        return _pack_codes(codes, mode)
    size = codes.shape[1]
    dropped, _ = sparse_values(codes)
    kept = codes[~dropped].reshape(len(codes), size - dropped_values(size))
    mask = np.packbits(~dropped, axis=1, bitorder="little")
    return np.concatenate([mask, _pack_codes(kept, mode)], axis=1)


def _pack_codes(codes: NDArray[np.uint8], mode: Mode) -> NDArray[np.uint8]:
    """Codes (n, count) as bytes (n, ceil(count * 6 / 8))."""
    count = codes.shape[1]
    if count % GROUP:
        codes = np.pad(codes, ((0, 0), (0, -count % GROUP)))
    words = np.ascontiguousarray(codes).view("<u8")
    for low, high, gap in _gaps(mode):
        words = words & low | (words & high) >> gap
    parts = np.empty((*words.shape, PARTS), "<u2")
    for part in range(PARTS):
        parts[..., part] = words >> np.uint64(PART_BITS * part)
    packed = parts.reshape(len(codes), words.shape[1] * PARTS).view(np.uint8)
    return packed[:, : -(-count * CODE_BITS // 8)]


def _gaps(mode: Mode) -> list[tuple[np.uint64, np.uint64, np.uint64]]:
    """The steps that join codes in bytes to 48 bits of a word: in pairs, fours, and all eight.

    Each is the bits of the lower codes, those of the upper ones, and how far these are apart.
    """
    lower, upper = (code.width for code in code_formats(mode))
    half, steps = 8, []
    while half < 64:
        lanes = sum(1 << lane for lane in range(0, 64, 2 * half))
        low, high = ((1 << lower) - 1) * lanes, ((1 << upper) - 1 << half) * lanes
        steps.append((np.uint64(low), np.uint64(high), np.uint64(half - lower)))
        lower = upper = lower + upper
        half *= 2
    return steps


def unpack(
    data: bytes | bytearray | memoryview,
    shape: tuple[int, ...],
    block: int = 32,
    align: int = 1,
) -> Blocks:
    """Blocks from the bytes that `pack` wrote.

    Args:
        data: the bytes of all blocks.
        shape: shape of the encoded values, (..., K).
        block, align: as they were in `pack`.

    Raises:
        ValueError: the length does not fit `shape` and the modes of the blocks, or a block (named
            by its number) has header or padding bits that are not zero, the reserved mode, or a
            mask of a sparse block that does not leave out the first B/4 zeros, so that no two
            sequences of bytes are the same blocks.
    """
    strides = _strides(block, align)
    shape = check_shape(shape)
    per_row = -(-shape[-1] // block)
    count = int(np.prod(shape[:-1], dtype=object)) * per_row
    raw = np.frombuffer(data, np.uint8)
    starts = _starts(raw, count, strides)
    if len(starts) < count:
        raise ValueError(
            f"data must be {count} blocks for shape {shape}, but its {len(raw)} bytes end in "
            f"block {len(starts)}"
        )
    exponents, modes, codes, end = _unpack(raw, starts, block, strides, 0)
    if len(raw) != end:
        raise ValueError(
            f"data must be {count} blocks, {end} bytes, for shape {shape}, not {len(raw)}"
        )
    leading = (*shape[:-1], per_row)
    return Blocks(
        exponents=exponents.reshape(leading),
        modes=modes.reshape(leading),
        codes=codes.reshape(*leading, block),
        shape=shape,
    )


def unpack_some(
    data: NDArray[np.uint8], count: int, block: int, align: int, first: int
) -> tuple[Blocks, int]:
    """The first blocks of many, and how many bytes they take.

    Args:
        data: packed bytes, at least those of the blocks.
        count: number of blocks.
        block, align: as they were in `pack`.
        first: number of the first block in error messages.

    Returns:
        Blocks of shape (count * block,), and their length in bytes.

    Raises:
        ValueError: the bytes end too soon, or as `unpack`.
    """
    strides = _strides(block, align)
    starts = _starts(data, count, strides)
    if len(starts) < count:
        raise ValueError(f"block {first + len(starts)}: the data end in it")
    exponents, modes, codes, end = _unpack(data, starts, block, strides, first)
    return Blocks(exponents, modes, codes, (count * block,)), end


def _starts(raw: NDArray[np.uint8], count: int, strides: NDArray[np.int64]) -> NDArray[np.int64]:
    """Where the first `count` blocks start, fewer if the bytes end in one."""
    dense = int(strides[Mode.DENSE])
    evenly = np.arange(min(count, len(raw) // dense)) * dense
    if strides[Mode.SPARSE] == dense:
        return evenly
    if len(evenly) == count and not (raw[evenly] & MODE_MASK == Mode.SPARSE).any():
        return evenly
    data, lengths, found, start = raw.tobytes(), strides.tolist(), [], 0
    for _ in range(count):
        end = start + lengths[data[start] & MODE_MASK] if start < len(data) else start + 1
        if end > len(data):
            break
        found.append(start)
        start = end
    return np.array(found, np.int64)


def _unpack(
    raw: NDArray[np.uint8],
    starts: NDArray[np.int64],
    size: int,
    strides: NDArray[np.int64],
    first: int,
) -> tuple[NDArray[np.uint8], NDArray[np.uint8], NDArray[np.uint8], int]:
    """Exponents, modes and codes of the blocks that start there, and where the last one ends.

    `first` is the number of the first of them in error messages.
    """
    count = len(starts)
    numbers = np.arange(first, first + count)
    low = raw[starts]
    header = low | raw[starts + 1].astype(np.uint16) << 8
    rule = f"header bits {HEADER_USED} to {HEADER_BITS - 1} must be zero"
    _check_rows(header >> HEADER_USED, rule, numbers)
    modes = low & np.uint8(MODE_MASK)
    reserved = np.flatnonzero(modes == Mode.RESERVED)
    if reserved.size:
        block = int(numbers[reserved[0]])
        raise ValueError(f"block {block}: mode {int(Mode.RESERVED)} is reserved")
    codes = np.empty((count, size), np.uint8)
    for mode, rows in _rows_by_mode(modes):
        length = int(strides[mode])
        if isinstance(rows, slice):
            packed = raw[: count * length].reshape(count, length)
        else:
            packed = raw[starts[rows][:, None] + np.arange(length)]
        for part in chunks(len(packed), CHUNK_VALUES // size):
            here = part if isinstance(rows, slice) else rows[part]
            codes[here] = _unpack_payload(packed[part, HEADER_BYTES:], size, mode, numbers[here])
    end = int(starts[-1] + strides[modes[-1]]) if count else 0
    return (header >> MODE_BITS & EXPONENT_MAX).astype(np.uint8), modes, codes, end


def _unpack_payload(
    packed: NDArray[np.uint8], size: int, mode: Mode, numbers: NDArray[np.intp]
) -> NDArray[np.uint8]:
    """Codes (n, B) of payloads with their padding; `numbers` are those of the blocks."""
    bits = payload_bits(size, mode)
    used = -(-bits // 8)
    _check_rows(packed[:, used:], "padding must be zero", numbers)
    if bits % 8:
        _check_rows(packed[:, used - 1] >> bits % 8, "padding must be zero", numbers)
    if mode is not Mode.SPARSE:
        return _unpack_codes(packed[:, :used], size, mode)
    codes, right = sparse_codes(packed[:, :used], size)
    if not right.all():
        row = int(np.flatnonzero(~right)[0])
        raise ValueError(f"block {int(numbers[row])}: {_mask_fault(packed[row, :used], size)}")
    return codes


def sparse_codes(
    packed: NDArray[np.uint8], size: int
) -> tuple[NDArray[np.uint8], NDArray[np.bool_]]:
    """Codes (n, B) of payloads of sparse blocks without padding, and which have a right mask.

    The codes of the others are of no use.
    """
    mask = _mask(packed, size)
    stored = size - dropped_values(size)
    right = mask.sum(axis=1) == stored
    codes = np.zeros((len(packed), size), np.uint8)
    kept = packed[right, size // 8 :]
    codes[mask & right[:, None]] = _unpack_codes(kept, stored, Mode.SPARSE).ravel()
    dropped, _ = sparse_values(codes)
    return codes, right & (dropped == ~mask).all(axis=1)


def _mask(packed: NDArray[np.uint8], size: int) -> NDArray[np.bool_]:
    return np.unpackbits(packed[..., : size // 8], axis=-1, bitorder="little").astype(bool)


def _mask_fault(packed: NDArray[np.uint8], size: int) -> str:
    """What is wrong with the mask of one sparse block."""
    mask = _mask(packed, size)
    stored = size - dropped_values(size)
    if mask.sum() != stored:
        return f"the mask of a sparse block must have {stored} ones, not {int(mask.sum())}"
    codes, _ = sparse_codes(packed[None], size)
    dropped, _ = sparse_values(codes)
    return (
        f"the mask of a sparse block must leave out its first {size - stored} zeros, "
        f"{np.flatnonzero(dropped).tolist()}, not {np.flatnonzero(~mask).tolist()}"
    )


def _unpack_codes(packed: NDArray[np.uint8], count: int, mode: Mode) -> NDArray[np.uint8]:
    """Codes (n, count) of their bytes."""
    group_bytes = GROUP * CODE_BITS // 8
    if packed.shape[1] % group_bytes:
        packed = np.pad(packed, ((0, 0), (0, -packed.shape[1] % group_bytes)))
    parts = np.ascontiguousarray(packed).view("<u2")
    parts = parts.reshape(len(packed), parts.shape[1] // PARTS, PARTS)
    words = parts[..., 0].astype("<u8")
    for part in range(1, PARTS):
        words |= parts[..., part].astype(np.uint64) << np.uint64(PART_BITS * part)
    for low, high, gap in reversed(_gaps(mode)):
        words = words & low | words << gap & high
    return words.view(np.uint8)[:, :count]


def _check_rows(values: NDArray[np.generic], rule: str, numbers: NDArray[np.intp]) -> None:
    """Raise the error for the first block, of these numbers, with a value that is not zero."""
    bad = values.any(axis=tuple(range(1, values.ndim)))
    if bad.any():
        row = int(np.flatnonzero(bad)[0])
        found = values[row].reshape(-1)
        shown = int(found[0]) if found.size == 1 else bytes(found.astype(np.uint8)).hex()
        raise ValueError(f"block {int(numbers[row])}: {rule}, not {shown}")
