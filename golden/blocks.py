"""`Blocks`: an array of values in a block format, unpacked."""

from collections.abc import Iterator
from dataclasses import dataclass, replace
from typing import Any

import numpy as np
from numpy.typing import NDArray

from axs6.golden.arguments import check_axis, check_shape, check_type
from axs6.golden.formats import (
    AXS6,
    CHANNEL,
    BlockFormat,
    Exponent,
    Level,
    Mode,
    Real,
    name_of,
)
from axs6.golden.modes import check_modes
from axs6.golden.scaling import code_dtype
from axs6.tables import Column, Table, facts_table, html_text, words

CHUNK_VALUES = 1 << 17
"""Values of blocks processed at a time: temporaries stay within a core's cache."""


MOST_BLOCKS = 8
MOST_CODES = 32
"""Blocks, and codes of each, that a notebook shows of an array."""


def chunks(rows: int, size: int) -> Iterator[slice]:
    """Rows of `size` values in chunks of at most CHUNK_VALUES; one empty chunk of no rows."""
    step = max(1, CHUNK_VALUES // size)
    for start in range(0, max(rows, 1), step):
        yield slice(start, min(start + step, rows))


def padded(values: NDArray[Any], size: int) -> NDArray[Any]:
    """Values (..., K) with zeros after them to whole blocks of this size."""
    missing = -values.shape[-1] % size
    if not missing:
        return values
    whole = np.zeros((*values.shape[:-1], values.shape[-1] + missing), values.dtype)
    whole[..., : values.shape[-1]] = values
    return whole


def to_tiles(values: NDArray[Any], fmt: BlockFormat) -> NDArray[Any]:
    """Values (..., K) as rows of the values that share the scales of a block.

    A row is a block. In a format with tiles it is a tile, row after row of its blocks; tiles stand
    in index order, and zeros fill those at the edges.
    """
    size, rows = fmt.block, fmt.rows
    whole = padded(values, size)
    if rows == 1:
        return whole.reshape(-1, size)
    whole = np.moveaxis(padded(np.moveaxis(whole, -2, -1), rows), -1, -2)
    *leading, length, width = whole.shape
    parts = whole.reshape(*leading, length // rows, rows, width // size, size)
    return np.ascontiguousarray(np.swapaxes(parts, -3, -2)).reshape(-1, rows * size)


def from_tiles(
    rows: NDArray[Any], fmt: BlockFormat, leading: tuple[int, ...], count: int
) -> NDArray[Any]:
    """Numbers of blocks in the order of `to_tiles`, as (*leading, count, each).

    Args:
        rows: for each block or tile, some numbers for each of its blocks, in index order.
        fmt: the format.
        leading: the axes that are not blocked.
        count: blocks along the axis.
    """
    each = rows.shape[1] // fmt.rows
    if fmt.rows == 1:
        return rows.reshape(*leading, count, each)
    *outer, length = leading
    bands = -(-length // fmt.rows)
    parts = rows.reshape(*outer, bands, count, fmt.rows, each)
    whole = np.swapaxes(parts, -3, -2).reshape(*outer, bands * fmt.rows, count, each)
    return np.ascontiguousarray(whole[..., :length, :, :])


def check_blocks(name: str, value: object) -> None:
    """Raise TypeError unless `value` is Blocks, ValueError if its arrays hold invalid codes.

    `name` is the argument's.
    """
    if not isinstance(value, Blocks):
        raise TypeError(
            f"{name} must be Blocks, as axs6.encode gives them, not {type(value).__name__}"
        )
    value.check()


def check_rows(fmt: BlockFormat, shape: tuple[int, ...]) -> None:
    """Raise ValueError if a format with tiles is for values without rows."""
    if fmt.rows > 1 and len(shape) < 2:
        raise ValueError(
            f"{name_of(fmt)} has tiles of {fmt.rows} rows, which need values of at least two axes, "
            f"not of shape {shape}"
        )


def check_tile(fmt: BlockFormat, shape: tuple[int, ...]) -> None:
    """Raise ValueError if the tiles of a format are larger than a matrix of this shape."""
    if fmt.rows > 1 and fmt.rows > shape[-2] > 0 and fmt.block > shape[-1] > 0:
        raise ValueError(
            f"{name_of(fmt)} has tiles of {fmt.rows} x {fmt.block} values, which need as many rows "
            f"or columns, not a matrix of {shape[-2]} x {shape[-1]}"
        )


def scale_shape(level: Level, leading: tuple[int, ...], blocks: int, size: int) -> tuple[int, ...]:
    """Shape of the scales of a level, for (*leading, blocks) blocks of `size` values."""
    if not isinstance(level.group, int):
        return leading if level.group == CHANNEL else ()
    if level.tiled:
        return (*leading[:-1], -(-leading[-1] // level.rows), blocks)
    each = size // level.group
    return (*leading, blocks) if each == 1 else (*leading, blocks, each)


@dataclass(frozen=True, eq=False)
class Blocks:
    """Values in a block format, blocked along one axis.

    In the shapes below "..." are the other axes, B is the block of the format, and n the blocks
    along the axis, the last of which may hold padding.

    Args:
        format: the block format.
        scales: codes of the scales, an array for each level, coarse to fine. A scale of a block
            has the shape (..., n); of a group of g values in it (..., n, B/g); of a tile of R rows
            (..., ceil(N/R), n), where N is the length of the last of the other axes; of a channel
            (...); of the tensor (). uint8 for codes of up to 8 bits, uint16 of up to 16, else
            uint32.
        codes: codes of the elements, uint8 of shape (..., n, B). Values that a sparse block does
            not store have code 0; a high-precision block has codes of 7 bits at even indices and
            of 5 bits at odd ones.
        shape: shape of the values that were encoded, of at most n * B values along the axis.
        axis: the axis along which they are blocked.
        modes: payload layouts (`Mode`), uint8 of shape (..., n); all dense by default.
        zero_points: codes of the value 0, uint8 of the shape of the scale that they go with, where
            the format has them.

    Raises:
        TypeError: the format is none, or an array has another dtype.
        ValueError: the shapes do not fit together, a code, scale, zero point or mode is out of
            range, or what lies beyond the shape is not 0; the message names the first such block,
            counted over all leading axes.
    """

    format: BlockFormat
    scales: tuple[NDArray[Any], ...]
    codes: NDArray[np.uint8]
    shape: tuple[int, ...]
    axis: int = -1
    modes: NDArray[np.uint8] = None  # type: ignore[assignment]  # all dense
    zero_points: NDArray[np.uint8] | None = None

    @classmethod
    def with_modes(
        cls,
        exponents: NDArray[np.uint8],
        modes: NDArray[np.uint8],
        codes: NDArray[np.uint8],
        shape: tuple[int, ...],
    ) -> "Blocks":
        """AXS-6 blocks along the last axis, whose size is that of the last axis of `codes`."""
        fmt = AXS6.with_block(codes.shape[-1] if codes.ndim else 0)
        return cls(fmt, (exponents,), codes, shape, modes=modes)

    def __post_init__(self) -> None:
        check_type("format", self.format, BlockFormat)
        object.__setattr__(self, "shape", check_shape(self.shape))
        check_axis(self.axis, self.shape)
        check_type("scales", self.scales, tuple)
        check_rows(self.format, self.shape)
        if self.modes is None:
            dense = np.full((*self.leading, self.count), Mode.DENSE, np.uint8)
            object.__setattr__(self, "modes", dense)
        self.check()

    def check(self) -> None:
        """Raise TypeError or ValueError unless the arrays are valid."""
        self._check_array("codes", self.codes, (*self.leading, self.count, self.block), np.uint8)
        levels = self.format.levels[::-1]
        if len(self.scales) != len(levels):
            raise ValueError(
                f"{name_of(self.format)} has {len(levels)} levels of scales, not {len(self.scales)}"
            )
        for level, codes in zip(levels, self.scales, strict=True):
            shape = scale_shape(level, self.leading, self.count, self.block)
            self._check_array("scales", codes, shape, code_dtype(level.scale.bits))
            self._check_scales(level, codes)
        self._check_codes()
        self._check_padding()

    def _check_array(
        self, name: str, array: NDArray[Any], shape: tuple[int, ...], dtype: Any
    ) -> None:
        if not isinstance(array, np.ndarray) or array.dtype != dtype:
            found = getattr(array, "dtype", type(array).__name__)
            raise TypeError(f"{name} must be {np.dtype(dtype)}, not {found}")
        if array.shape != shape:
            raise ValueError(
                f"values of shape {self.shape} in {name_of(self.format)} need {name} of shape "
                f"{shape}, not {array.shape}"
            )

    def _check_scales(self, level: Level, codes: NDArray[Any]) -> None:
        scale = level.scale
        top = scale.largest_code if scale.nan_code is None else scale.nan_code
        if isinstance(scale, Real):
            codes = scale.number(codes)
        bad = codes > top
        if isinstance(scale, Real):
            bad |= (codes > scale.largest_code) & (codes != scale.nan_code)
        if bad.any():
            first = int(np.flatnonzero(bad)[0])
            code = f"{int(codes.ravel()[first]):#x}"
            raise ValueError(f"scale {first}: {code} is not a code of {name_of(self.format)}")

    def _check_codes(self) -> None:
        has_zero = any(isinstance(x.scale, Real) and x.scale.zero_point for x in self.format.levels)
        if (self.zero_points is not None) is not has_zero:
            needs = "needs" if has_zero else "has no"
            raise ValueError(f"{name_of(self.format)} {needs} zero points")
        if self.zero_points is not None:
            self._check_array("zero_points", self.zero_points, self.scales[0].shape, np.uint8)
            self._check_width(self.zero_points, "zero point {}")
        self._check_array("modes", self.modes, (*self.leading, self.count), np.uint8)
        if self.format.has_modes:
            codes = self.codes.reshape(self.modes.size, self.block)
            check_modes(self.format, self.modes.ravel(), codes)
            return
        if self.modes.any():
            raise ValueError(f"{name_of(self.format)} has no modes but dense")
        self._check_width(self.codes, "block {}", self.block)

    def _check_padding(self) -> None:
        """Raise ValueError unless codes beyond the shape are those of 0, as from `encode`."""
        used = self.length % self.block
        if not used:
            return
        levels, codes = self.format.levels[::-1], self.codes[..., -1, used:]
        wrong = codes != self.format.element.zero_code
        if self.zero_points is not None:
            (level,) = levels
            last = (..., -1, None) if level.blocked else (..., None)
            nan = self.scales[0][last] == level.scale.nan_code
            wrong = (codes != self.zero_points[last]) & (wrong | ~nan)
        found = wrong.any(axis=-1)
        for level, scales in zip(levels, self.scales, strict=True):
            if level.blocked and level.group != self.block and level.scale.nan_code is not None:
                beyond = scales[..., -1, -(-used // int(level.group)) :]
                found |= (beyond == level.scale.nan_code).any(axis=-1)
        if found.any():
            block = (int(np.flatnonzero(found)[0]) + 1) * self.count - 1
            raise ValueError(f"block {block}: values beyond the shape {self.shape} must be 0")

    def _check_width(self, codes: NDArray[np.uint8], where: str, size: int = 1) -> None:
        """Raise ValueError unless codes in groups of `size` have the element's bits."""
        most = (1 << self.format.element.width) - 1
        if most < 255 and int(codes.max(initial=0)) > most:
            first = int(np.flatnonzero(codes > most)[0])
            code = int(codes.ravel()[first])
            place = where.format(first // size)
            raise ValueError(f"{place}: {code} is not a code of {name_of(self.format)}")

    @property
    def selected(self) -> NDArray[np.uint8] | None:
        """Which element the groups of the finest scale have, 0 or 1; None where there is but one.

        The shape is that of the scale.
        """
        scale = self.format.levels[0].scale
        if isinstance(scale, Real) and scale.selector:
            return scale.selected(self.scales[-1])
        return None

    @property
    def element_codes(self) -> NDArray[np.uint8]:
        """The codes, with the bits that select elements above them."""
        selected = self.untiled.selected
        if selected is None:
            return self.codes
        size = int(self.format.levels[0].group)
        shape = (*self.codes.shape[:-1], self.block // size)
        above = selected.reshape(shape) << np.uint8(self.format.element.width)
        return self.codes | np.repeat(above, size, axis=-1)

    @property
    def block(self) -> int:
        """Values in a block, B."""
        return self.format.block

    @property
    def leading(self) -> tuple[int, ...]:
        """Lengths of the axes that are not blocked."""
        axis = self.axis % len(self.shape)
        return self.shape[:axis] + self.shape[axis + 1 :]

    @property
    def length(self) -> int:
        """Values along the blocked axis, K."""
        return self.shape[self.axis]

    @property
    def count(self) -> int:
        """Blocks along the axis, n."""
        return -(-self.length // self.block)

    @property
    def exponents(self) -> NDArray[np.uint8]:
        """Codes of the exponent scale.

        Raises:
            ValueError: the format has none.
        """
        for level, codes in zip(self.format.levels[::-1], self.scales, strict=True):
            if isinstance(level.scale, Exponent):
                return codes
        raise ValueError(f"{name_of(self.format)} has no exponent scale")

    @property
    def untiled(self) -> "Blocks":
        """The same values in the format of one row, the scales of tiles repeated for each."""
        if self.format.rows == 1:
            return self
        scales = tuple(
            np.repeat(codes, level.rows, axis=-2)[..., : self.leading[-1], :]
            if level.tiled
            else codes
            for level, codes in zip(self.format.levels[::-1], self.scales, strict=True)
        )
        return replace(self, format=self.format.untiled, scales=scales)

    def __repr__(self) -> str:
        return f"Blocks({name_of(self.format)}, shape={self.shape})"

    def _repr_html_(self) -> str:
        """What they are, and the codes of the first blocks."""
        whole = html_text(facts_table(self._facts()))
        first = self.codes.reshape(-1, self.codes.shape[-1])[:MOST_BLOCKS, :MOST_CODES].tolist()
        more = self.codes.shape[-1] > MOST_CODES
        rows = [
            (place, " ".join(map(str, codes)) + " ..." * more) for place, codes in enumerate(first)
        ]
        shown = Table([Column("block", "block"), words("codes")], rows)
        return whole + (html_text(shown) if rows else "")

    def _facts(self) -> dict[str, Any]:
        return {
            "format": name_of(self.format),
            "string": str(self.format),
            "shape": " x ".join(map(str, self.shape)) or "one value",
            "axis": self.axis,
            "blocks": f"{self.modes.size:,}",
            "values of a block": self.format.block,
            "bytes, packed": f"{self.modes.size * self.format.packed_bytes:,}",
            "scales": ", ".join(f"{x.dtype} {x.shape}" for x in self.scales),
        }
