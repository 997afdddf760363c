"""Coding of tensors as packed blocks: the format, the axes of blocks, and pieces."""

import math
from collections.abc import Iterator
from dataclasses import dataclass, fields
from itertools import groupby
from typing import Any, NamedTuple

import numpy as np

from axs6.files.tensors import FLOATS
from axs6.golden.arguments import check_shape
from axs6.golden.blocks import check_rows, check_tile
from axs6.golden.formats import TENSOR, BlockFormat, Mode, name_of
from axs6.golden.lfsr import RANDOM_SEED, check_seed
from axs6.golden.modes import check_mode
from axs6.golden.pack import BlockLayout, layout_of
from axs6.golden.profile import steps_of
from axs6.golden.rounding import RANDOM_BITS, Rounding, check_random_bits, check_rounding
from axs6.golden.scaling import code_dtype

CHUNK = 1 << 20
"""Values processed at a time."""


class Piece(NamedTuple):
    """`rows` rows of a tensor from `first_row` on, and `values` values of each from `start` on."""

    first_row: int
    rows: int
    start: int
    values: int

    def blocks(self, block: int) -> int:
        """Blocks that hold the piece."""
        return self.rows * -(-self.values // block)

    def first(self, encoding: "Encoded") -> int:
        """Number of its first value, where blocks lie along the last axis."""
        return self.first_row * encoding.length + self.start

    def __str__(self) -> str:
        return f"rows from {self.first_row}, values from {self.start}"


@dataclass(frozen=True, kw_only=True)
class Coding:
    """Coding of values as packed blocks.

    Args:
        format, block, rounding, mode, random_bits: as in `axs6.encode`. Afterwards `format` is the
            format with this block, and `block` its size, None where it has none.
        axis: the axis of the blocks.
        flatten: axes from this one on are flattened, in row-major order, and blocks lie along the
            result. Without both, `reduction` chooses them for each tensor.
        align: blocks are padded to a multiple of this number of bytes.
        seed: of the random words of stochastic rounding, `axs6.golden.lfsr`; every tensor starts at
            the seed.
        profile: a library whose steps are taken, as in `axs6.encode`.

    Raises:
        ValueError: one of them is out of range.
    """

    format: str | BlockFormat = "axs6"
    block: int | None = None
    axis: int | None = None
    flatten: int | None = None
    align: int = 1
    mode: str = Mode.DENSE.label
    rounding: str = Rounding.NEAREST
    random_bits: int = RANDOM_BITS
    seed: int = RANDOM_SEED
    profile: str | None = None

    def __post_init__(self) -> None:
        if self.axis is not None and self.flatten is not None:
            raise ValueError("axis and flatten cannot be given together")
        fmt = layout_of(self.format, self.align, self.block).format
        object.__setattr__(self, "format", fmt)
        object.__setattr__(self, "block", fmt.block if fmt.blocked else None)
        if check_mode(self.mode) is not Mode.DENSE and not fmt.has_modes:
            raise ValueError(
                f"{name_of(fmt)} has no modes, so mode must be dense, not {self.mode!r}"
            )
        check_rounding(self.rounding)
        check_random_bits(self.random_bits)
        check_seed(self.seed)
        if self.profile is not None:
            steps_of(self.profile, fmt)
            if self.rounding != Rounding.NEAREST:
                raise ValueError(f"a profile rounds to nearest, so no rounding {self.rounding!r}")

    @property
    def layout(self) -> BlockLayout:
        """Positions of the parts of a block in its bytes."""
        return layout_of(self.format, self.align)


def reduction(axes: int) -> dict[str, Any]:
    """Default axes of a tensor's blocks: the axes that the hardware reduces.

    A product sums over all axes of a weight but the first: the input features of a linear layer,
    input channel and taps of a convolution. Vectors have one axis.

    Args:
        axes: how many the tensor has.

    Returns:
        `axis` or `flatten` of `Coding`.
    """
    return {"axis": -1} if axes < 3 else {"flatten": 1}


@dataclass(frozen=True, kw_only=True)
class Encoded(Coding):
    """Encoding of a tensor: its entry in the metadata.

    Args:
        shape: of its values.
        dtype: of its values, as safetensors name it.

    Raises:
        ValueError: as `Coding`, there is neither axis nor flatten, or the shape has no such axis.
    """

    shape: tuple[int, ...]
    dtype: str

    def __post_init__(self) -> None:
        super().__post_init__()
        axes = len(check_shape(self.shape))
        if self.dtype not in FLOATS:
            raise ValueError(f"dtype must be one of {', '.join(FLOATS)}, not {self.dtype!r}")
        if self.profile is not None:
            steps_of(self.profile, self.layout.format).check_dtype(self.input_dtype, self.profile)
        name, first = ("axis", self.axis) if self.flatten is None else ("flatten", self.flatten)
        if type(first) is not int or not -axes <= first < axes:
            raise ValueError(f"{name} must be one of {axes} axes, not {first!r}")
        check_tiles(self.layout.format, self._moved_shape)

    @property
    def input_dtype(self) -> str:
        """The dtype of its values, as the golden model names it."""
        return {"F16": "fp16", "BF16": "bf16", "F32": "fp32", "F64": "fp64"}[self.dtype]

    @property
    def blocked_shape(self) -> tuple[int, ...]:
        """Shape of the values with flattened axes; blocks lie along `along`."""
        if self.flatten is None:
            return self.shape
        first = self.flatten % len(self.shape)
        return (*self.shape[:first], math.prod(self.shape[first:]))

    @property
    def along(self) -> int:
        """Axis of `blocked_shape` along which blocks lie, from 0."""
        axes = len(self.blocked_shape)
        return axes - 1 if self.axis is None else self.axis % axes

    @property
    def _moved_shape(self) -> tuple[int, ...]:
        """`blocked_shape` with the axis of the blocks behind the others."""
        shape = [*self.blocked_shape]
        shape.append(shape.pop(self.along))
        return tuple(shape)

    @property
    def in_order(self) -> bool:
        """Whether the values of the blocks, one after the other, are the tensor's in its order."""
        return self.along == len(self.blocked_shape) - 1

    def __str__(self) -> str:
        where = f"axis {self.axis}" if self.flatten is None else f"axes from {self.flatten} on"
        fmt = self.layout.format
        name = f"{name_of(fmt)}, {self.mode}" if fmt.has_modes else name_of(fmt)
        steps = self.rounding if self.profile is None else f"as {self.profile}"
        return f"{name}, {steps}, {where}"

    @property
    def metadata(self) -> dict[str, Any]:
        """The entry as JSON has it: the format, its block with it, is a string."""
        values = {each.name: getattr(self, each.name) for each in fields(self)}
        del values["block"]
        if self.profile is None:
            del values["profile"]
        return {**values, "format": str(self.format)}

    @property
    def rows(self) -> int:
        """Rows of values along the axis."""
        return math.prod(self.shape) // self.length if self.length else 0

    @property
    def length(self) -> int:
        """Values in a row."""
        return self.blocked_shape[self.along]

    @property
    def size(self) -> int:
        """Values of a block, B."""
        return self.layout.format.block

    @property
    def blocks(self) -> int:
        """Blocks of all rows."""
        return self.rows * -(-self.length // self.size)

    def pieces(self) -> Iterator["Piece"]:
        """The values in block order, in pieces of about `CHUNK` values or bytes.

        In a format with tiles, pieces are whole rows of tiles.
        """
        chunk = CHUNK // max(1, self.layout.bytes_of() // self.size)
        blocks = -(-self.length // self.size)
        many = max(1, chunk // max(1, blocks * self.size))
        rows_of_tile = self.layout.format.rows
        many, step = -(-many // rows_of_tile) * rows_of_tile, self.length
        if step > chunk and rows_of_tile == 1:
            step = max(1, chunk // self.size) * self.size
        for first in range(0, self.rows, many):
            for start in range(0, self.length, step):
                rows = min(many, self.rows - first)
                yield Piece(first, rows, start, min(step, self.length - start))

    def groups(self) -> Iterator[list["Piece"]]:
        """The pieces with the same rows; one without values where rows have none."""
        if not self.length:
            yield [Piece(0, self.channels, 0, 0)]
        for _, pieces in groupby(self.pieces(), lambda piece: piece.first_row):
            yield list(pieces)

    @property
    def channels(self) -> int:
        """Rows, also where there are no values in them."""
        return math.prod(n for i, n in enumerate(self.blocked_shape) if i != self.along)

    @property
    def ahead(self) -> list["Ahead"]:
        """Data before the blocks: the scales of the tensor, of channels and of tiles, coarse to
        fine, then zero points of the tensor or of channels."""
        fmt, found = self.layout.format, []
        for level in fmt.ahead[::-1]:
            size = np.dtype(code_dtype(level.scale.bits)).itemsize
            each = -(-self.length // self.size) if level.tiled else 1
            found.append(Ahead(size, None if level.group == TENSOR else level.rows, each))
        if fmt.outer and not fmt.element.signed:
            found.append(found[0]._replace(size=1))
        return found

    def bytes_ahead(self, channels: int | None = None) -> int:
        """Bytes before the blocks, of all channels or of some first ones."""
        rows = self.channels if channels is None else channels
        return sum(each.span(0, rows)[1] for each in self.ahead)

    @property
    def least_bytes(self) -> int:
        """Bytes that it has at least."""
        mode = Mode.SPARSE if self.layout.format.has_modes else Mode.DENSE
        return self.bytes_ahead() + self.blocks * self.layout.bytes_of(mode)

    @property
    def most_bytes(self) -> int:
        """Bytes that it has at most."""
        return self.bytes_ahead() + self.blocks * self.layout.bytes_of()


class Ahead(NamedTuple):
    """Scales or zero points before the blocks.

    Args:
        size: bytes of one.
        rows: rows that share some; None for those of the tensor.
        each: how many they share.
    """

    size: int
    rows: int | None
    each: int

    def span(self, first: int, rows: int) -> tuple[int, int]:
        """Where those of some rows, whole tiles of them, begin, and their bytes."""
        if self.rows is None:
            return 0, self.size * self.each
        step = self.size * self.each
        return first // self.rows * step, -(-rows // self.rows) * step


def check_tiles(fmt: BlockFormat, shape: tuple[int, ...]) -> None:
    """Raise ValueError unless matrices (..., N, K) one below the other have the same tiles."""
    check_rows(fmt, shape)
    check_tile(fmt, shape)
    if fmt.rows > 1 and math.prod(shape[:-2]) > 1 and shape[-2] % fmt.rows:
        raise ValueError(
            f"{name_of(fmt)} has tiles of {fmt.rows} rows, and several matrices of {shape[-2]} "
            "rows are not whole tiles"
        )
