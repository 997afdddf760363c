"""Stream items as arrays, and as the integers that a payload port carries."""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import NDArray

from axs6.golden.blocks import Blocks
from axs6.golden.formats import Mode
from axs6.hw.core.layouts import Field, scale_names


@dataclass(frozen=True)
class Rows:
    """Items that are rows of an array: item n is `array[index[n]]`.

    Args:
        array: an integer array, its first axis the rows.
        index: int32, shape (items,).

    Raises:
        IndexError: the array has no such row.
    """

    array: NDArray[Any]
    index: NDArray[np.int32]

    def __post_init__(self) -> None:
        rows = len(self.array)
        if self.index.size and not 0 <= self.index.min() <= self.index.max() < rows:
            raise IndexError(f"index must be in 0 to {rows - 1}")

    @property
    def shape(self) -> tuple[int, ...]:
        """Shape of the items."""
        return (*self.index.shape, *self.array.shape[1:])


Items = Mapping[str, "NDArray[Any] | Rows"]
"""Items of a stream by field: arrays whose first axis is the items, or rows of arrays."""


def item_count(items: Items, fields: Sequence[Field]) -> int:
    """Number of items in arrays for `fields`.

    Raises:
        ValueError: a field is missing or unknown, or an array has the wrong shape or dtype.
    """
    known = {field.name: field for field in fields}
    for name in items:
        if name not in known:
            raise ValueError(f"there is no input {name!r}; the inputs are {', '.join(known)}")
    count = None
    for name, field in known.items():
        if name not in items:
            raise ValueError(f"input {name!r} is missing")
        dtype, shape = source_of(items[name]).dtype, items[name].shape
        if dtype.kind not in "iub":
            raise ValueError(f"input {name!r} must have an integer dtype, not {dtype}")
        if not shape:
            raise ValueError(f"input {name!r} must have an axis of items, not shape ()")
        count = shape[0] if count is None else count
        expected = (count, *field.shape)
        if shape != expected:
            raise ValueError(f"input {name!r} must have shape {expected}, not {shape}")
    return count or 0


def source_of(items: NDArray[Any] | Rows) -> NDArray[Any]:
    """The array that holds a field's items."""
    return items.array if isinstance(items, Rows) else items


def check_items(items: Items, fields: Sequence[Field]) -> int:
    """Number of items in arrays for `fields`, whose values must fit them.

    Raises:
        ValueError: as `item_count`, or a value does not fit its field.
    """
    count = item_count(items, fields)
    for field in fields:
        check_range(items, field)
    return count


def check_range(items: Items, field: Field) -> None:
    """Raise ValueError unless all values for a field fit it."""
    values = source_of(items[field.name])
    low = -(1 << field.width - 1) if field.signed else 0
    high = low + (1 << field.width) - 1
    if values.size and (int(values.min()) < low or int(values.max()) > high):
        raise ValueError(f"input {field.name!r} must be in {low} to {high}")


def payload_bits(items: Mapping[str, NDArray[Any]], fields: Sequence[Field]) -> NDArray[np.uint8]:
    """The bits of items' payloads, (items, bits), lowest first.

    Raises:
        ValueError: as `check_items`.
    """
    count = check_items(items, fields)
    bits = np.zeros((count, payload_width(fields)), np.uint8)
    for field in fields:
        elements = items[field.name].astype(np.int64).reshape(count, field.count, 1)
        places = elements >> np.arange(field.width) & 1
        end = field.offset + places.shape[1] * field.width
        bits[:, field.offset : end] = places.reshape(count, end - field.offset)
    return bits


def to_words(items: Mapping[str, NDArray[Any]], fields: Sequence[Field]) -> list[int]:
    """Payload integers for items, one for each.

    Raises:
        ValueError: as `check_items`.
    """
    rows = np.packbits(payload_bits(items, fields), axis=1, bitorder="little")
    return [int.from_bytes(row.tobytes(), "little") for row in rows]


def block_items(blocks: Blocks, prefix: str = "") -> dict[str, NDArray[Any]]:
    """The fields of a unit's dense blocks, one block an item in row-major order.

    They are those of `axs6.hw.core.layouts.block_layout`, without scales of channels and tensors.
    `prefix` is what the names begin with, such as "a." of a dot product.

    Raises:
        ValueError: a block is not dense.
    """
    if (blocks.modes != Mode.DENSE).any():
        raise ValueError("blocks must be dense here: packed ones are bytes, see axs6.pack")
    fmt, count = blocks.format, blocks.modes.size
    arrays = [*blocks.scales[len(fmt.outer) :], blocks.codes]
    return {
        f"{prefix}{name}": array.reshape(count, *array.shape[blocks.modes.ndim :])
        for name, array in zip([*scale_names(fmt), "codes"], arrays, strict=True)
    }


def readmemh(items: Mapping[str, NDArray[Any]], fields: Sequence[Field]) -> str:
    """Payloads for items as text for Verilog's `$readmemh`, a line for each.

    Raises:
        ValueError: as `check_items`.
    """
    digits = -(-payload_width(fields) // 4)
    return "".join(f"{word:0{digits}x}\n" for word in to_words(items, fields))


def from_words(words: Sequence[int], fields: Sequence[Field]) -> dict[str, NDArray[Any]]:
    """Items from payload integers: arrays whose first axis is the items.

    int64, and uint64 for unsigned numbers of 64 bits.
    """
    width = payload_width(fields)
    size = -(-width // 8)
    raw = b"".join(word.to_bytes(size, "little") for word in words)
    rows = np.frombuffer(raw, np.uint8).reshape(len(words), size)
    bits = np.unpackbits(rows, axis=1, bitorder="little").astype(np.int64)
    items = {}
    for field in fields:
        places = bits[:, field.offset : field.offset + field.count * field.width]
        weights = 1 << np.arange(field.width, dtype=np.int64)
        # The top weight of 64 bits is negative as it is.
        whole = field.width == 8 * weights.itemsize
        if field.signed and not whole:
            weights[-1] = -weights[-1]
        values = places.reshape(len(words), *field.shape, field.width) @ weights
        items[field.name] = values.view(np.uint64) if whole and not field.signed else values
    return items


def last_of(items: Items) -> NDArray[Any] | None:
    """Which items are the last of a vector, where the unit asks."""
    last = items.get("last")
    return last.array[last.index] if isinstance(last, Rows) else last


def completing(items: Items) -> NDArray[np.intp]:
    """Which items complete an output: those with `last`, or all of a unit without it."""
    last = last_of(items)
    return np.arange(next(iter(items.values())).shape[0]) if last is None else np.flatnonzero(last)


def whole_vectors(last: NDArray[Any], turns: int) -> NDArray[np.intp]:
    """Places where a stream of vectors that take turns can be divided: item numbers, both ends too.

    At each of them the next item has the first turn, and all vectors before it have ended.
    """
    ends = np.flatnonzero(last)
    inner = (np.flatnonzero(np.bincount(ends // turns) == turns) + 1) * turns
    bounds = np.concatenate([[0], inner, [len(last)]])
    return bounds[np.diff(bounds, prepend=-1) > 0]


def payload_width(fields: Sequence[Field]) -> int:
    """Bits of the payload that `fields` fill."""
    return max(field.offset + field.count * field.width for field in fields)
