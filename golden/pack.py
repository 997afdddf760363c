"""The packed byte layout of blocks: scales, coarse to fine, then codes, from bit 0 up.

A format with modes has a header of 16 bits in place of its scale: the scale, the mode, and zeros.
"""

from collections.abc import Iterator
from dataclasses import dataclass
from functools import cached_property
from typing import Any

import numpy as np
from numpy.typing import NDArray

from axs6.golden.arguments import check_integer, check_shape
from axs6.golden.bits import pack_codes, put, shift_down, shift_up, take, unpack_codes
from axs6.golden.blocks import Blocks, check_blocks, chunks, scale_shape
from axs6.golden.formats import TENSOR, BlockFormat, Mode, block_format
from axs6.golden.formats.block_format import HEADER_BITS
from axs6.golden.modes import dropped_values, elements, payload_bits, sparse_values
from axs6.golden.scaling import code_dtype
from axs6.golden.spec import ALIGN_MAX, CODE_BITS, HEADER_USED, MODE_BITS

HEADER_BYTES = HEADER_BITS // 8
MODE_MASK = (1 << MODE_BITS) - 1

CHUNK_VALUES = 1 << 17
"""Values packed at a time: their temporaries stay within a core's cache."""


@dataclass(frozen=True)
class Layout:
    """Where the parts of a block lie in its bytes.

    Args:
        format: the block format.
        align: bytes to a multiple of which a block is padded.
    """

    format: BlockFormat
    align: int = 1

    def payload_bits(self, mode: Mode) -> int:
        """Bits of a block's codes, with the mask of a sparse one."""
        return payload_bits(self.format, mode)

    def bytes_of(self, mode: Mode = Mode.DENSE) -> int:
        """Bytes of a block of this mode."""
        used = -(-(self.format.scale_bits + self.payload_bits(mode)) // 8)
        return -(-used // self.align) * self.align

    @cached_property
    def strides(self) -> NDArray[np.int64]:
        """Bytes of a block by its mode."""
        return np.array([self.bytes_of(mode) for mode in Mode], np.int64)

    @property
    def scales(self) -> list[tuple[int, int, int, int]]:
        """Place of every scale of a block: its level among those of blocks (coarse to fine), its
        number in the level, its first bit and its width. Zero points come as one more level."""
        found, bit = [], MODE_BITS if self.format.has_modes else 0
        for number, level in enumerate(self.format.blocked[::-1]):
            for group in range(self.format.block // int(level.group)):
                found.append((number, group, bit, level.scale.bits))
                bit += level.scale.bits
                if not self.format.element.signed:
                    found.append((number + 1, group, bit, self.format.element.width))
                    bit += self.format.element.width
        return found


def layout_of(
    format: str | BlockFormat = "axs6", align: int = 1, block: int | None = None
) -> Layout:
    """The layout of blocks of a format, or of it with another block.

    Raises:
        ValueError: the format or the block is unknown, or `align` is not an integer from 1 to 4096.
    """
    check_integer("align", align, 1, ALIGN_MAX)
    fmt = block_format(format)
    return Layout(fmt if block is None else fmt.with_block(block), align)


def packed_bytes(
    format: str | BlockFormat = "axs6",
    align: int = 1,
    mode: Mode = Mode.DENSE,
    *,
    block: int | None = None,
) -> int:
    """Bytes of a block: 26 for 32 values of AXS-6, 24 if it is sparse; rounded up to `align`.

    Args:
        format: a name of the catalog, a string, or a BlockFormat.
        align: bytes to a multiple of which blocks are padded.
        mode: layout of the block, for formats with modes.
        block: size of the block, in place of the format's.

    Raises:
        ValueError: as `layout_of`.
    """
    return layout_of(format, align, block).bytes_of(mode)


def pack(blocks: Blocks, align: int = 1) -> bytes:
    """Blocks as bytes: the scales of the tensor and of channels, then the blocks in index order.

    Args:
        blocks: any number of blocks, of any modes.
        align: pads each block with zeros to a multiple of this many bytes.

    Raises:
        TypeError: `blocks` is not Blocks.
        ValueError: `align` is not an integer from 1 to 4096.

    Source: AXS-6 specification, sections 3, 4 and 11; docs/format.md and docs/formats.md.
    """
    check_blocks("blocks", blocks)
    layout = layout_of(blocks.format, align)
    size = blocks.block
    codes = blocks.codes.reshape(-1, size)
    outer = len(blocks.format.outer)
    ahead = _outer_bytes(blocks)
    scales = [
        x.reshape(len(codes), size // int(level.group))
        for level, x in zip(blocks.format.blocked[::-1], blocks.scales[outer:], strict=True)
    ]
    if blocks.zero_points is not None and not outer:
        scales.append(blocks.zero_points.reshape(len(codes), 1))
    if not blocks.format.has_modes:
        return ahead + _packed(layout, scales, codes, Mode.DENSE).tobytes()
    modes = blocks.modes.ravel()
    parts = [
        (rows, _packed(layout, [x[rows] for x in scales], codes[rows], mode))
        for mode, rows in _rows_by_mode(modes)
    ]
    if len(parts) == 1:
        return parts[0][1].tobytes()
    strides = layout.strides[modes]
    starts = np.cumsum(strides) - strides
    out = np.empty(int(strides.sum()), np.uint8)
    for rows, packed in parts:
        out[starts[rows][:, None] + np.arange(packed.shape[1])] = packed
    return out.tobytes()


def _outer_bytes(blocks: Blocks) -> bytes:
    """Scales of the tensor and of channels, little-endian, and zero points after them."""
    outer = blocks.scales[: len(blocks.format.outer)]
    data = b"".join(x.astype(x.dtype.newbyteorder("<")).tobytes() for x in outer)
    return data if blocks.zero_points is None or not outer else data + blocks.zero_points.tobytes()


def _packed(
    layout: Layout, scales: list[NDArray[Any]], codes: NDArray[np.uint8], mode: Mode
) -> NDArray[np.uint8]:
    """Blocks of one mode as bytes (n, length)."""
    packed = np.zeros((len(codes), layout.bytes_of(mode)), np.uint8)
    for number, group, bit, width in layout.scales:
        put(packed, bit, width, scales[number][:, group])
    if layout.format.has_modes:
        packed[:, 0] |= np.uint8(mode)
    first, bits = divmod(layout.format.scale_bits, 8)
    for rows in chunks(len(codes), CHUNK_VALUES // codes.shape[1]):
        payload = shift_up(_payload(layout, codes[rows], mode), bits)
        end = min(first + payload.shape[1], packed.shape[1])
        packed[rows, first:end] |= payload[:, : end - first]
    return packed


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


def _widths(layout: Layout, mode: Mode) -> tuple[int, int]:
    even, odd = elements(layout.format, mode)
    return even.width, odd.width


def _payload(layout: Layout, codes: NDArray[np.uint8], mode: Mode) -> NDArray[np.uint8]:
    """Payloads (n, bytes) of blocks of codes (n, B)."""
    widths = _widths(layout, mode)
    if mode is not Mode.SPARSE:
        return pack_codes(codes, *widths)
    size = codes.shape[1]
    dropped, _ = sparse_values(codes, layout.format)
    kept = codes[~dropped].reshape(len(codes), size - dropped_values(size))
    mask = np.packbits(~dropped, axis=1, bitorder="little")
    return np.concatenate([mask, pack_codes(kept, *widths)], axis=1)


def unpack(
    data: bytes | bytearray | memoryview,
    shape: tuple[int, ...],
    format: str | BlockFormat = "axs6",
    *,
    block: int | None = None,
    align: int = 1,
    axis: int = -1,
) -> Blocks:
    """Blocks from the bytes that `pack` wrote.

    Args:
        data: the bytes of all blocks.
        shape: shape of the encoded values.
        format, block, align, axis: as they were in `encode` and `pack`.

    Raises:
        ValueError: the length does not fit `shape` and the modes of the blocks, or a block (named
            by its number) has header or padding bits that are not zero, the reserved mode, a scale
            that is no code, or a mask of a sparse block that does not leave out the first B/4
            zeros, so that no two sequences of bytes are the same blocks.
    """
    layout = layout_of(format, align, block)
    shape = check_shape(shape)
    leading = tuple(np.delete(shape, axis).tolist())
    per_row = -(-shape[axis] // layout.format.block)
    count = int(np.prod(leading, dtype=object)) * per_row
    raw = np.frombuffer(data, np.uint8)
    outer, zero, first = _outer(layout.format, leading, raw, shape)
    raw = raw[first:]
    starts = _starts(raw, count, layout)
    if len(starts) < count:
        raise ValueError(
            f"data must be {count} blocks for shape {shape}, but its {len(raw)} bytes end in "
            f"block {len(starts)}"
        )
    scales, modes, codes, end = _unpack(raw, starts, layout, 0)
    if len(raw) != end:
        raise ValueError(
            f"data must be {count} blocks, {end} bytes, for shape {shape}, not {len(raw)}"
        )
    size = layout.format.block
    shapes = [scale_shape(x, leading, per_row, size) for x in layout.format.blocked[::-1]]
    found = [x.reshape(to) for x, to in zip(scales, shapes, strict=False)]
    if len(scales) > len(shapes):
        zero = scales[-1].reshape(shapes[0])
    return Blocks(
        layout.format,
        (*outer, *found),
        codes.reshape(*leading, per_row, size),
        shape,
        axis,
        modes.reshape(*leading, per_row),
        zero,
    )


def _outer(
    fmt: BlockFormat, leading: tuple[int, ...], raw: NDArray[np.uint8], shape: tuple[int, ...]
) -> tuple[list[NDArray[Any]], NDArray[np.uint8] | None, int]:
    """Scales of the tensor and of channels, their zero points, and where the blocks start."""
    found, zero, at = [], None, 0
    for level in fmt.outer[::-1]:
        groups = () if level.group == TENSOR else leading
        dtype = np.dtype(code_dtype(level.scale.bits)).newbyteorder("<")
        size = dtype.itemsize * int(np.prod(groups))
        if len(raw) < at + size:
            raise ValueError(
                f"data must start with scales of {at + size} bytes for shape {shape}, not end "
                f"after {len(raw)} bytes"
            )
        scales = np.frombuffer(raw[at : at + size].tobytes(), dtype)
        found.append(scales.astype(dtype.newbyteorder("=")).reshape(groups))
        at += size
    if not fmt.element.signed and fmt.outer:
        groups = found[0].shape
        zero = raw[at : at + int(np.prod(groups))].reshape(groups).copy()
        at += zero.size
    return found, zero, at


def unpack_some(
    data: NDArray[np.uint8], count: int, layout: Layout, first: int
) -> tuple[Blocks, int]:
    """The first blocks of many, and how many bytes they take.

    Args:
        data: packed bytes, at least those of the blocks.
        count: number of blocks.
        layout: the layout of their bytes, in a format without scales of channels or the tensor.
        first: number of the first block in error messages.

    Returns:
        Blocks of shape (count * block,), and their length in bytes.

    Raises:
        ValueError: the bytes end too soon, or as `unpack`.
    """
    starts = _starts(data, count, layout)
    if len(starts) < count:
        raise ValueError(f"block {first + len(starts)}: the data end in it")
    scales, modes, codes, end = _unpack(data, starts, layout, first)
    fmt = layout.format
    shapes = [scale_shape(x, (), count, fmt.block) for x in fmt.blocked[::-1]]
    found = tuple(x.reshape(to) for x, to in zip(scales, shapes, strict=False))
    zero = scales[-1].reshape(shapes[0]) if len(scales) > len(shapes) else None
    shape = (count * fmt.block,)
    return Blocks(fmt, found, codes, shape, modes=modes, zero_points=zero), end


def _starts(raw: NDArray[np.uint8], count: int, layout: Layout) -> NDArray[np.int64]:
    """Where the first `count` blocks start, fewer if the bytes end in one."""
    strides = layout.strides
    dense = int(strides[Mode.DENSE])
    evenly = np.arange(min(count, len(raw) // dense)) * dense
    if not layout.format.has_modes or strides[Mode.SPARSE] == dense:
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
    raw: NDArray[np.uint8], starts: NDArray[np.int64], layout: Layout, first: int
) -> tuple[list[NDArray[Any]], NDArray[np.uint8], NDArray[np.uint8], int]:
    """Scales, modes and codes of the blocks that start there, and where the last one ends.

    `first` is the number of the first of them in error messages.
    """
    count, size = len(starts), layout.format.block
    numbers = np.arange(first, first + count)
    modes = np.zeros(count, np.uint8)
    if layout.format.has_modes:
        modes = _modes(raw, starts, numbers)
    scales = [
        np.empty((count, size // int(x.group)), code_dtype(x.scale.bits))
        for x in layout.format.blocked[::-1]
    ]
    if not layout.format.element.signed and layout.format.blocked:
        scales.append(np.empty((count, 1), np.uint8))
    codes = np.empty((count, size), np.uint8)
    for mode, rows in _rows_by_mode(modes):
        length = int(layout.strides[mode])
        if isinstance(rows, slice):
            packed = raw[: count * length].reshape(count, length)
        else:
            packed = raw[starts[rows][:, None] + np.arange(length)]
        for number, group, bit, width in layout.scales:
            scales[number][rows, group] = take(packed, bit, width)
        for part in chunks(len(packed), CHUNK_VALUES // size):
            here = part if isinstance(rows, slice) else rows[part]
            codes[here] = _unpack_payload(packed[part], layout, mode, numbers[here])
    end = int(starts[-1] + layout.strides[modes[-1]]) if count else 0
    return scales, modes, codes, end


def _modes(
    raw: NDArray[np.uint8], starts: NDArray[np.int64], numbers: NDArray[np.intp]
) -> NDArray[np.uint8]:
    """Modes in the headers of blocks, of which the reserved bits are checked."""
    low = raw[starts]
    header = low | raw[starts + 1].astype(np.uint16) << 8
    rule = f"header bits {HEADER_USED} to {HEADER_BITS - 1} must be zero"
    _check_rows(header >> HEADER_USED, rule, numbers)
    modes = low & np.uint8(MODE_MASK)
    reserved = np.flatnonzero(modes == Mode.RESERVED)
    if reserved.size:
        block = int(numbers[reserved[0]])
        raise ValueError(f"block {block}: mode {int(Mode.RESERVED)} is reserved")
    return modes


def _unpack_payload(
    packed: NDArray[np.uint8], layout: Layout, mode: Mode, numbers: NDArray[np.intp]
) -> NDArray[np.uint8]:
    """Codes (n, B) of blocks with their padding; `numbers` are those of the blocks."""
    first, drop = divmod(layout.format.scale_bits, 8)
    end = layout.format.scale_bits + layout.payload_bits(mode)
    used = -(-end // 8)
    _check_rows(packed[:, used:], "padding must be zero", numbers)
    if end % 8:
        _check_rows(packed[:, used - 1] >> end % 8, "padding must be zero", numbers)
    size = layout.format.block
    payload = shift_down(packed[:, first:used], drop)[:, : -(-layout.payload_bits(mode) // 8)]
    if mode is not Mode.SPARSE:
        return unpack_codes(payload, size, *_widths(layout, mode))
    codes, right = sparse_codes(payload, size)
    if not right.all():
        row = int(np.flatnonzero(~right)[0])
        raise ValueError(f"block {int(numbers[row])}: {_mask_fault(payload[row], size)}")
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
    codes[mask & right[:, None]] = unpack_codes(kept, stored, CODE_BITS, CODE_BITS).ravel()
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


def _check_rows(values: NDArray[np.generic], rule: str, numbers: NDArray[np.intp]) -> None:
    """Raise the error for the first block, of these numbers, with a value that is not zero."""
    bad = values.any(axis=tuple(range(1, values.ndim)))
    if bad.any():
        row = int(np.flatnonzero(bad)[0])
        found = values[row].reshape(-1)
        shown = int(found[0]) if found.size == 1 else bytes(found.astype(np.uint8)).hex()
        raise ValueError(f"block {int(numbers[row])}: {rule}, not {shown}")
