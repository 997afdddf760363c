"""Values in pieces, with scales of channels and of the tensor over all pieces.

A first pass finds the range of the values, which determines these scales; each piece is then
encoded with them.
"""

from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass
from functools import cached_property
from typing import Any

import numpy as np
from numpy.typing import NDArray

from axs6.files.coding import Encoded, Piece
from axs6.golden.blocks import Blocks, padded
from axs6.golden.encode import encode
from axs6.golden.encode_as import encode_as
from axs6.golden.formats import CHANNEL, TENSOR, BlockFormat
from axs6.golden.formats.floating import INPUT_DTYPES
from axs6.golden.nonfinite import NonFinite
from axs6.golden.outer import OuterScales, Reach
from axs6.golden.profile import steps_of
from axs6.golden.profile_scales import TensorNumbers, tensor_scale

Values = NDArray[np.float32] | NDArray[np.float64]


@dataclass(frozen=True)
class Whole:
    """A tensor whose values are read in pieces.

    Args:
        encoding: how it is encoded.
        read: gives the values (rows, n) of a piece.
        nonfinite: as in `axs6.encode`.
    """

    encoding: Encoded
    read: Callable[[Piece], Values]
    nonfinite: NonFinite = "error"

    @property
    def _format(self) -> BlockFormat:
        return self.encoding.layout.format

    def _has(self, group: str) -> bool:
        return any(level.group == group for level in self._format.outer)

    def _reach(self, piece: Piece) -> Reach:
        """The reach of the rows of a piece."""
        values = self.read(piece) if piece.values else np.empty((piece.rows, 0), np.float32)
        blocks = padded(values, self.encoding.size).reshape(-1, self.encoding.size)
        return Reach.of(blocks, self._format, self.nonfinite).of_groups(piece.rows)

    @cached_property
    def _tensor(self) -> Reach:
        """The reach of all values, if there is a scale of the tensor."""
        pieces = list(self.encoding.pieces()) if self._has(TENSOR) else []
        found = [self._reach(piece).of_groups(1) for piece in pieces or [Piece(0, 1, 0, 0)]]
        return Reach.merged(found)

    def _outer(self, pieces: Sequence[Piece]) -> OuterScales:
        """The scales of pieces with the same rows."""
        channels = self._tensor
        if self._has(CHANNEL):
            channels = Reach.merged([self._reach(piece) for piece in pieces])
        return OuterScales.find(self._format, channels, self._tensor)

    @cached_property
    def under_profile(self) -> TensorNumbers | None:
        """The scale of the tensor under the profile, if there are both."""
        encoding = self.encoding
        if encoding.profile is None or not self._has(TENSOR):
            return None
        (largest,) = self._tensor.largest
        assert largest.bits is not None
        steps = steps_of(encoding.profile, self._format)
        amax = largest.bits.view(np.float32).max()
        return tensor_scale(self._format, steps, amax, INPUT_DTYPES[encoding.input_dtype])

    def bytes_ahead(self) -> Iterator[bytes]:
        """The bytes before the blocks."""
        if self.under_profile is not None:
            yield self.under_profile.scale.astype("<f4").tobytes()
            return
        yield from self._outer_bytes()
        if self._format.rows > 1:
            for _, blocks in self.encode(lambda _: None):
                tiles = blocks.scales[len(self._format.outer)]
                yield tiles.astype(tiles.dtype.newbyteorder("<")).tobytes()

    def _outer_bytes(self) -> Iterator[bytes]:
        """The bytes of the scales of the tensor and of channels."""
        kinds = [each for each in self.encoding.ahead if each.rows in (None, 1)]
        for number, each in enumerate(kinds):
            for pieces in self.encoding.groups() if self._has(CHANNEL) else [[Piece(0, 1, 0, 0)]]:
                outer = self._outer(pieces)
                codes: list[NDArray[Any]] = [*outer.codes]
                if outer.zero_point is not None:
                    codes.append(outer.zero_point.astype(np.uint8))
                yield codes[number].astype(codes[number].dtype.newbyteorder("<")).tobytes()
                if each.rows is None:
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
        options["nonfinite"], profile = self.nonfinite, self.encoding.profile
        for pieces in self.encoding.groups():
            parts = self._format.outer or self._format.rows > 1
            outer = self._outer(pieces) if parts and not profile else None
            for piece in pieces if self.encoding.length else ():
                values = self.read(piece)
                try:
                    if profile:
                        blocks = encode_as(
                            values,
                            self._format,
                            profile,
                            outer=self.under_profile,
                            dtype=self.encoding.input_dtype,
                        ).blocks
                    else:
                        blocks = encode(
                            values, self._format, random=random(piece), outer=outer, **options
                        )
                except ValueError as error:
                    raise ValueError(f"{piece}: {error}") from error
                yield values, blocks
