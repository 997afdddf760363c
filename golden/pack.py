"""The packed byte layout of blocks: scales, coarse to fine, then codes, from bit 0 up.

A format with modes has a header of 16 bits in place of its scale: the scale, the mode, and zeros.
"""

from collections.abc import Iterator
from dataclasses import dataclass
from functools import cached_property
from typing import Any

import numpy as np
from numpy.typing import NDArray

from axs6.golden.arguments import check_integer
from axs6.golden.bits import pack_codes, put, shift_up
from axs6.golden.blocks import Blocks, check_blocks, chunks
from axs6.golden.formats import BlockFormat, Mode, block_format
from axs6.golden.formats.modes import HEADER_BITS
from axs6.golden.modes import dropped_values, elements, payload_bits, sparse_values

ALIGN_MAX = 4096
"""Blocks may be padded to a multiple of at most this many bytes: a page of memory."""

HEADER_BYTES = HEADER_BITS // 8
MODE_MASK = int(max(Mode))


@dataclass(frozen=True)
class BlockLayout:
    """Positions of the parts of a block in its bytes.

    Args:
        format: the block format.
        align: bytes to a multiple of which a block is padded.
    """

    format: BlockFormat
    align: int = 1

    def payload_bits(self, mode: Mode) -> int:
        """Bits of a block's codes, with the mask of a sparse one."""
        return payload_bits(self.format, mode)

    def widths(self, mode: Mode) -> tuple[int, int]:
        """Bits of a code at an even and at an odd index."""
        even, odd = elements(self.format, mode)
        return even.width, odd.width

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
        """Place of every scale of a block.

        Each is the number of its level among those within blocks (coarse to fine), its number in
        the level, its first bit and its width. Zero points have the number after their level's.
        """
        found, bit = [], self.format.mode_bits
        for number, level in enumerate(self.format.inner[::-1]):
            for group in range(self.format.block // int(level.group)):
                found.append((number, group, bit, level.scale.bits))
                bit += level.scale.bits
                if not self.format.element.signed:
                    found.append((number + 1, group, bit, self.format.element.width))
                    bit += self.format.element.width
        return found


def layout_of(
    format: str | BlockFormat = "axs6", align: int = 1, block: int | None = None
) -> BlockLayout:
    """The layout of blocks of a format, or of it with another block.

    Raises:
        ValueError: the format or the block is unknown, or `align` is not an integer from 1 to 4096.
    """
    check_integer("align", align, 1, ALIGN_MAX)
    fmt = block_format(format)
    return BlockLayout(fmt if block is None else fmt.with_block(block), align)


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
    """Blocks as bytes: the scales of the tensor, of channels and of tiles, then the blocks.

    All in index order.

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
    before = len(blocks.format.ahead)
    ahead = _bytes_ahead(blocks)
    scales = [
        x.reshape(len(codes), size // int(level.group))
        for level, x in zip(blocks.format.inner[::-1], blocks.scales[before:], strict=True)
    ]
    if blocks.zero_points is not None and not before:
        scales.append(blocks.zero_points.reshape(len(codes), 1))
    if not blocks.format.has_modes:
        return ahead + _packed(layout, scales, codes, Mode.DENSE).tobytes()
    modes = blocks.modes.ravel()
    parts = [
        (rows, _packed(layout, [x[rows] for x in scales], codes[rows], mode))
        for mode, rows in rows_by_mode(modes)
    ]
    if len(parts) == 1:
        return parts[0][1].tobytes()
    strides = layout.strides[modes]
    starts = np.cumsum(strides) - strides
    out = np.empty(int(strides.sum()), np.uint8)
    for rows, packed in parts:
        out[starts[rows][:, None] + np.arange(packed.shape[1])] = packed
    return out.tobytes()


def _bytes_ahead(blocks: Blocks) -> bytes:
    """Scales of the tensor, channels and tiles, little-endian, and zero points after them."""
    scales = blocks.scales[: len(blocks.format.ahead)]
    data = b"".join(x.astype(x.dtype.newbyteorder("<")).tobytes() for x in scales)
    return data if blocks.zero_points is None or not scales else data + blocks.zero_points.tobytes()


def _packed(
    layout: BlockLayout, scales: list[NDArray[Any]], codes: NDArray[np.uint8], mode: Mode
) -> NDArray[np.uint8]:
    """Blocks of one mode as bytes (n, length)."""
    packed = np.zeros((len(codes), layout.bytes_of(mode)), np.uint8)
    for number, group, bit, width in layout.scales:
        put(packed, bit, width, scales[number][:, group])
    if layout.format.has_modes:
        packed[:, 0] |= np.uint8(mode)
    first, bits = divmod(layout.format.scale_bits, 8)
    for rows in chunks(len(codes), codes.shape[1]):
        payload = shift_up(_payload(layout, codes[rows], mode), bits)
        end = min(first + payload.shape[1], packed.shape[1])
        packed[rows, first:end] |= payload[:, : end - first]
    return packed


def rows_by_mode(
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


def _payload(layout: BlockLayout, codes: NDArray[np.uint8], mode: Mode) -> NDArray[np.uint8]:
    """Payloads (n, bytes) of blocks of codes (n, B)."""
    widths = layout.widths(mode)
    if mode is not Mode.SPARSE:
        return pack_codes(codes, *widths)
    size = codes.shape[1]
    dropped, _ = sparse_values(codes, layout.format)
    kept = codes[~dropped].reshape(len(codes), size - dropped_values(size))
    mask = np.packbits(~dropped, axis=1, bitorder="little")
    return np.concatenate([mask, pack_codes(kept, *widths)], axis=1)
