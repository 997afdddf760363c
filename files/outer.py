"""Values in pieces, with scales of channels and of the tensor that follow from all of them.

These scales depend on the smallest and the largest value alone, and on whether a NaN or infinity is
among them. So a first pass finds those, and
each piece is encoded together with them, in blocks that are dropped afterwards.
"""

from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass
from functools import cached_property
from typing import Any, Final

import numpy as np
from numpy.typing import NDArray

from axs6.files.coding import Encoded, Piece
from axs6.golden.blocks import Blocks
from axs6.golden.encode import SATURATED, encode
from axs6.golden.formats import CHANNEL, FP32, TENSOR, BlockFormat
from axs6.golden.nonfinite import NonFinite

Values = NDArray[np.float32] | NDArray[np.float64]
Ends = NDArray[Any]
"""Three values that stand for others, on the last axis: they give the same outer scales.

They are the smallest and the largest of the values and 0; and an infinity where one of the values
makes a scale NaN, else 0.
"""

LARGEST: Final = float(FP32.largest)
"""In place of infinities that saturate."""


def ends_of(values: Values, fmt: BlockFormat, nonfinite: NonFinite) -> Ends:
    """The ends of rows (rows, n): (rows, 3)."""
    known = finite(values)
    lowest = np.min(values, axis=1, initial=0, where=known)
    highest = np.max(values, axis=1, initial=0, where=known)
    flag = np.zeros_like(lowest)
    if nonfinite == "saturate":
        lowest[(~known & (values < 0)).any(axis=1)] = -LARGEST
        highest[(~known & (values > 0)).any(axis=1)] = LARGEST
    elif nonfinite == "propagate":
        lost = ~known & ~np.isnan(values) if fmt.element.has_nan else ~known
        flag[lost.any(axis=1)] = np.inf
    return np.stack([lowest, highest, flag], axis=1)


def finite(values: Values) -> NDArray[np.bool_]:
    """Which values have a code."""
    if values.dtype == np.float32:
        return np.isfinite(values)
    return np.abs(values) < SATURATED


@dataclass(frozen=True)
class Whole:
    """A tensor whose values are read in pieces.

    Args:
        how: how it is encoded.
        read: gives the values (rows, n) of a piece.
        nonfinite: as in `axs6.encode`.
    """

    how: Encoded
    read: Callable[[Piece], Values]
    nonfinite: NonFinite = "error"

    @property
    def _format(self) -> BlockFormat:
        return self.how.layout.format

    def _has(self, group: str) -> bool:
        return any(level.group == group for level in self._format.outer)

    @cached_property
    def _ends(self) -> Ends | None:
        """The ends of all values (1, 3), where there is a scale of the tensor."""
        if not self._has(TENSOR):
            return None
        return _joined([np.zeros((1, 3)), *map(self._ends_of_piece, self.how.pieces())])

    def _ends_of_piece(self, piece: Piece) -> Ends:
        """The ends of all values of a piece, (1, 3)."""
        some = ends_of(self.read(piece), self._format, self.nonfinite)
        return _joined([row[None] for row in some])

    def _ends_of_rows(self, pieces: Sequence[Piece]) -> Ends | None:
        """The ends of rows (rows, 3), where there is a scale of channels."""
        if not self._has(CHANNEL):
            return None
        return _joined([ends_of(self.read(x), self._format, self.nonfinite) for x in pieces])

    def outer_bytes(self) -> Iterator[bytes]:
        """The bytes before the blocks."""
        for number, (_, count) in enumerate(self.how.outer()):
            groups = self.how.groups() if self._has(CHANNEL) else [[Piece(0, 1, 0, 0)]]
            for pieces in groups:
                ends = self._ends_of_rows(pieces)
                nothing = np.empty((pieces[0].rows, 0))
                blocks = encode_with_ends(
                    nothing, self._format, ends, self._ends, nonfinite=self.nonfinite
                )
                parts = [*blocks.scales[: len(self._format.outer)], blocks.zero_points]
                part = parts[number]
                assert part is not None
                yield part.astype(part.dtype.newbyteorder("<")).tobytes()
                if count == 1:
                    break

    def encode(
        self, random: Callable[[Piece], NDArray[Any] | None], **options: Any
    ) -> Iterator[tuple[Values, Blocks]]:
        """The values of each piece and its blocks, of shape (rows, n).

        Args:
            random: gives the random words (rows, n) of a piece, or None.
            options: of `axs6.encode`, without `nonfinite`.

        Raises:
            ValueError: a value has no code; the message names the piece.
        """
        for pieces in self.how.groups():
            ends = self._ends_of_rows(pieces) if len(pieces) > 1 else None
            for piece in pieces if self.how.length else ():
                values = self.read(piece)
                try:
                    blocks = encode_with_ends(
                        values,
                        self._format,
                        ends,
                        self._ends,
                        random(piece),
                        nonfinite=self.nonfinite,
                        **options,
                    )
                except ValueError as error:
                    raise ValueError(f"{piece}: {error}") from error
                yield values, blocks


def _joined(ends: Sequence[Ends]) -> Ends:
    """The ends of values of which parts have these."""
    lowest = np.min([each[:, 0] for each in ends], axis=0)
    return np.stack([lowest, *(np.max([x[:, i] for x in ends], axis=0) for i in (1, 2))], axis=1)


def encode_with_ends(
    values: Values,
    fmt: BlockFormat,
    rows: Ends | None,
    tensor: Ends | None,
    random: NDArray[Any] | None = None,
    nonfinite: NonFinite = "error",
    **options: Any,
) -> Blocks:
    """Blocks of values that are a part of others.

    Args:
        values: the part, (rows, n).
        fmt: the format.
        rows: the ends of whole rows (rows, 3); None where the part has whole rows.
        tensor: the ends of all values (1, 3), where the format has a scale of the tensor.
        random: words of the shape of `values`, for stochastic rounding.
        nonfinite, options: of `axs6.encode`.
    """
    refused = nonfinite == "error" and not finite(values).all()
    if (rows is None and tensor is None) or refused:
        return encode(values, fmt, random=random, nonfinite=nonfinite, **options)
    flat = not any(level.group == CHANNEL for level in fmt.outer)
    whole = _arranged(values, fmt.block, flat, rows, tensor)
    if random is not None:
        random = _arranged(random, fmt.block, flat, rows, tensor, np.zeros_like)
    blocks = encode(whole, fmt, random=random, nonfinite=nonfinite, **options)
    count, each = len(values), -(-values.shape[1] // fmt.block)

    def cut(x: NDArray[Any]) -> NDArray[Any]:
        if flat:
            return x[: count * each].reshape(count, each, *x.shape[2:])
        return x[:count, :each]

    scales = [
        cut(x) if level.blocked else x[:count] if level.group == CHANNEL else x
        for level, x in zip(fmt.levels[::-1], blocks.scales, strict=True)
    ]
    zero = blocks.zero_points
    if zero is not None and not flat:
        zero = zero[:count]
    return Blocks(fmt, tuple(scales), cut(blocks.codes), values.shape, zero_points=zero)


def _arranged(
    values: NDArray[Any],
    block: int,
    flat: bool,
    rows: Ends | None,
    tensor: Ends | None,
    of: Callable[[Any], Any] = np.asarray,
) -> NDArray[Any]:
    """Values in whole blocks: one output row per input row, or per block if `flat`.

    The ends of rows, or what `of` makes of them, follow in blocks at the end of each, and those of
    the tensor in rows.
    """
    count, length = values.shape
    padded = -(-length // block) * block
    width = padded if rows is None else padded + -(-rows.shape[1] // block) * block
    whole = np.zeros((count, width), values.dtype)
    whole[:, :length] = values
    if rows is not None:
        whole[:, padded : padded + rows.shape[1]] = of(rows)
    if flat:
        whole = whole.reshape(-1, block)
    if tensor is None:
        return whole
    last = np.zeros((-(-tensor.size // whole.shape[1]), whole.shape[1]), values.dtype)
    last.ravel()[: tensor.size] = of(tensor).ravel()
    return np.concatenate([whole, last])
