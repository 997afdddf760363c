"""Reading packed blocks: the inverse of `pack`, which refuses bytes that `pack` does not write."""

from collections.abc import Sequence
from typing import Any, NamedTuple

import numpy as np
from numpy.typing import NDArray

from axs6.golden.arguments import check_axis, check_shape
from axs6.golden.bits import shift_down, take, unpack_codes
from axs6.golden.blocks import Blocks, check_rows, chunks, scale_shape
from axs6.golden.formats import BlockFormat, Mode
from axs6.golden.formats.modes import HEADER_BITS
from axs6.golden.modes import dropped_values, sparse_values
from axs6.golden.pack import MODE_MASK, BlockLayout, layout_of, rows_by_mode
from axs6.golden.scaling import code_dtype


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
        ValueError: `shape` has no such axis, the length does not fit `shape` and the modes of the
            blocks, or a block (named by its number) has header or padding bits that are not zero,
            the reserved mode, a scale that is no code, or a mask of a sparse block that does not
            leave out the first B/4 zeros, so that no two sequences of bytes are the same blocks.
    """
    layout = layout_of(format, align, block)
    shape = check_shape(shape)
    check_axis(axis, shape)
    leading = tuple(np.delete(shape, axis).tolist())
    per_row = -(-shape[axis] // layout.format.block)
    count = int(np.prod(leading, dtype=object)) * per_row
    view = memoryview(data)
    raw = np.frombuffer(view if view.c_contiguous else view.tobytes(), np.uint8)
    check_rows(layout.format, shape)
    outer, zero, first = _ahead(layout.format, leading, per_row, raw, shape)
    raw = raw[first:]
    starts = _starts(raw, count, layout)
    if len(starts) < count:
        raise ValueError(
            f"data must be {count} blocks for shape {shape}, but its {len(raw)} bytes end in "
            f"block {len(starts)}"
        )
    found = _unpack(raw, starts, layout, 0)
    if len(raw) != found.end:
        raise ValueError(
            f"data must be {count} blocks, {found.end} bytes, for shape {shape}, not {len(raw)}"
        )
    return found.blocks(layout.format, shape, axis, outer, zero)


def _ahead(
    fmt: BlockFormat,
    leading: tuple[int, ...],
    count: int,
    raw: NDArray[np.uint8],
    shape: tuple[int, ...],
) -> tuple[list[NDArray[Any]], NDArray[np.uint8] | None, int]:
    """Scales of the tensor, channels and tiles, their zero points, and where the blocks start."""
    found, zero, at = [], None, 0
    for level in fmt.ahead[::-1]:
        groups = scale_shape(level, leading, count, fmt.block)
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
    data: NDArray[np.uint8], count: int, layout: BlockLayout, first: int
) -> tuple[Blocks, int]:
    """The first blocks of many, and how many bytes they take.

    Args:
        data: packed bytes, at least those of the blocks.
        count: number of blocks.
        layout: the layout of their bytes, in a format without scales before the blocks.
        first: number of the first block in error messages.

    Returns:
        Blocks of shape (count * block,), and their length in bytes.

    Raises:
        ValueError: the bytes end too soon, or as `unpack`.
    """
    starts = _starts(data, count, layout)
    if len(starts) < count:
        raise ValueError(f"block {first + len(starts)}: the data end within it")
    found = _unpack(data, starts, layout, first)
    return found.blocks(layout.format, (count * layout.format.block,)), found.end


class _Fields(NamedTuple):
    """Contents of n successive blocks.

    Args:
        scales: codes of the scales of blocks, coarse to fine, each (n, groups of a block).
        zero_points: those of blocks, (n, 1), where blocks have them.
        modes: (n,).
        codes: (n, B).
        end: where the bytes of the last block end.
    """

    scales: list[NDArray[Any]]
    zero_points: NDArray[np.uint8] | None
    modes: NDArray[np.uint8]
    codes: NDArray[np.uint8]
    end: int

    def blocks(
        self,
        fmt: BlockFormat,
        shape: tuple[int, ...],
        axis: int = -1,
        outer: Sequence[NDArray[Any]] = (),
        zero_points: NDArray[np.uint8] | None = None,
    ) -> Blocks:
        """The blocks of an array of this shape.

        Args:
            fmt: their format.
            shape: of the values.
            axis: along which the blocks lie.
            outer: scales of the tensor, of channels and of tiles, coarse to fine.
            zero_points: those of channels or the tensor.
        """
        leading = tuple(np.delete(shape, axis).tolist())
        count = -(-shape[axis] // fmt.block)
        shapes = [scale_shape(x, leading, count, fmt.block) for x in fmt.inner[::-1]]
        scales = [x.reshape(to) for x, to in zip(self.scales, shapes, strict=True)]
        if self.zero_points is not None:
            zero_points = self.zero_points.reshape(shapes[0])
        return Blocks(
            fmt,
            (*outer, *scales),
            self.codes.reshape(*leading, count, fmt.block),
            shape,
            axis,
            self.modes.reshape(*leading, count),
            zero_points,
        )


def _starts(raw: NDArray[np.uint8], count: int, layout: BlockLayout) -> NDArray[np.int64]:
    """Starts of the first `count` blocks, fewer if the bytes end within one."""
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
    raw: NDArray[np.uint8], starts: NDArray[np.int64], layout: BlockLayout, first: int
) -> _Fields:
    """Contents of the blocks that start there; messages number them from `first`."""
    count, size = len(starts), layout.format.block
    numbers = np.arange(first, first + count)
    modes = np.zeros(count, np.uint8)
    if layout.format.has_modes:
        modes = _modes(raw, starts, numbers, layout.format.header_used)
    scales = [
        np.empty((count, size // int(x.group)), code_dtype(x.scale.bits))
        for x in layout.format.inner[::-1]
    ]
    zero_points = None
    if not layout.format.element.signed and layout.format.blocked:
        zero_points = np.empty((count, 1), np.uint8)
    arrays = scales if zero_points is None else [*scales, zero_points]
    codes = np.empty((count, size), np.uint8)
    for mode, rows in rows_by_mode(modes):
        length = int(layout.strides[mode])
        if isinstance(rows, slice):
            packed = raw[: count * length].reshape(count, length)
        else:
            packed = raw[starts[rows][:, None] + np.arange(length)]
        for number, group, bit, width in layout.scales:
            arrays[number][rows, group] = take(packed, bit, width)
        for part in chunks(len(packed), size):
            here = part if isinstance(rows, slice) else rows[part]
            codes[here] = _unpack_payload(packed[part], layout, mode, numbers[here])
    end = int(starts[-1] + layout.strides[modes[-1]]) if count else 0
    return _Fields(scales, zero_points, modes, codes, end)


def _modes(
    raw: NDArray[np.uint8], starts: NDArray[np.int64], numbers: NDArray[np.intp], used: int
) -> NDArray[np.uint8]:
    """Modes in the headers of blocks, whose bits from number `used` are checked to be 0."""
    low = raw[starts]
    header = low | raw[starts + 1].astype(np.uint16) << 8
    rule = f"header bits {used} to {HEADER_BITS - 1} must be zero"
    _check_rows(header >> used, rule, numbers)
    modes = low & np.uint8(MODE_MASK)
    reserved = np.flatnonzero(modes == Mode.RESERVED)
    if reserved.size:
        block = int(numbers[reserved[0]])
        raise ValueError(f"block {block}: mode {int(Mode.RESERVED)} is reserved")
    return modes


def _unpack_payload(
    packed: NDArray[np.uint8], layout: BlockLayout, mode: Mode, numbers: NDArray[np.intp]
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
        return unpack_codes(payload, size, *layout.widths(mode))
    codes, right = sparse_codes(payload, layout.format)
    if not right.all():
        row = int(np.flatnonzero(~right)[0])
        raise ValueError(f"block {int(numbers[row])}: {_mask_fault(payload[row], layout.format)}")
    return codes


def sparse_codes(
    packed: NDArray[np.uint8], fmt: BlockFormat
) -> tuple[NDArray[np.uint8], NDArray[np.bool_]]:
    """Codes (n, B) of payloads of sparse blocks without padding, and which have a right mask.

    The codes of the others have no meaning.
    """
    size, width = fmt.block, fmt.element.width
    mask = _mask(packed, size)
    stored = size - dropped_values(size)
    right = mask.sum(axis=1) == stored
    codes = np.zeros((len(packed), size), np.uint8)
    kept = packed[right, size // 8 :]
    codes[mask & right[:, None]] = unpack_codes(kept, stored, width, width).ravel()
    dropped, _ = sparse_values(codes, fmt)
    return codes, right & (dropped == ~mask).all(axis=1)


def _mask(packed: NDArray[np.uint8], size: int) -> NDArray[np.bool_]:
    return np.unpackbits(packed[..., : size // 8], axis=-1, bitorder="little").astype(bool)


def _mask_fault(packed: NDArray[np.uint8], fmt: BlockFormat) -> str:
    """The fault of the mask of one sparse block."""
    size = fmt.block
    mask = _mask(packed, size)
    stored = size - dropped_values(size)
    if mask.sum() != stored:
        return f"the mask of a sparse block must have {stored} ones, not {int(mask.sum())}"
    codes, _ = sparse_codes(packed[None], fmt)
    dropped, _ = sparse_values(codes, fmt)
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
