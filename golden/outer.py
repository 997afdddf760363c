"""Scales of channels and of the tensor, which need all values before a block can be encoded."""

from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import ArrayLike, NDArray

from axs6.golden.blocks import chunks
from axs6.golden.finite import Finite, Largest
from axs6.golden.floats import Wide
from axs6.golden.formats import CHANNEL, BlockFormat, Exponent, Level, Real, name_of
from axs6.golden.levels import Factor, Outer, zero_point_scales
from axs6.golden.scaling import Values32, as_wide, exponents, rounded_product


@dataclass(frozen=True)
class OuterScales:
    """The scales of channels and of the tensor.

    Args:
        fmt: the format.
        blocks: blocks of a channel.
        codes: codes of each level, coarse to fine: (1, 1) of the tensor, (channels, 1) of channels.
        found: what they give to the values.
        zero_point: codes of the value 0, of the shape of the codes.
    """

    fmt: BlockFormat
    blocks: int
    codes: tuple[NDArray[Any], ...]
    found: Outer

    @property
    def zero_point(self) -> NDArray[np.int16] | None:
        """Codes of the value 0, where the format has them here."""
        return self.found.zero_point

    @classmethod
    def find(
        cls,
        fmt: BlockFormat,
        rows: NDArray[Any],
        leading: tuple[int, ...],
        blocks: int,
        saturate: bool,
        given: ArrayLike | None,
    ) -> "OuterScales":
        """The scales of blocks (rows, B), `blocks` of them in each channel."""
        if given is not None and not (fmt.outer and isinstance(fmt.outer[-1].scale, Real)):
            raise ValueError(
                f"scale is for a real scale of channels or the tensor: {name_of(fmt)} has none"
            )
        if not fmt.outer:
            return cls(fmt, blocks, (), Outer(Factor.one()))
        factor, codes, exponent, zero = Factor.one(), [], None, None
        signs = (None,) if fmt.element.signed else (True, False)
        found = [_row_largest(rows, negative, saturate) for negative in signs]
        for number, level in enumerate(fmt.outer[::-1]):
            channels = int(np.prod(leading)) if level.group == CHANNEL else 1
            largest = [x.of_groups(channels) for x in found]
            values = None if number else _given(given, level, leading, channels)
            scales: NDArray[Any]
            if isinstance(level.scale, Exponent):
                scales = _exponents(fmt, level.scale, factor, largest[0].exact)
                exponent = scales.astype(np.int16) - np.int16(level.scale.bias)
            elif isinstance(level.scale, Real) and level.scale.zero_point:
                low, high = (x.exact for x in largest)
                scales, zero, factor = zero_point_scales(fmt, low, high, values)
            else:
                scales, factor = factor.find(fmt, level, largest[0], values)
            codes.append(scales)
        return cls(fmt, blocks, tuple(codes), Outer(factor, exponent, zero))

    def of(self, rows: slice) -> Outer:
        """What the scales give to these blocks."""
        return self.found.of_rows(np.arange(rows.start, rows.stop) // max(1, self.blocks))

    def shaped(self, leading: tuple[int, ...]) -> list[NDArray[Any]]:
        """The codes in the shapes that `Blocks` has them in."""
        return [
            codes.reshape(leading if level.group == CHANNEL else ())
            for level, codes in zip(self.fmt.outer[::-1], self.codes, strict=True)
        ]

    def poison(self, rows: NDArray[np.bool_], codes: NDArray[np.uint8]) -> None:
        """Make the innermost scales NaN of the channels or tensor with these blocks."""
        if not rows.any():
            return
        level, scales = self._innermost_nan()
        groups = np.atleast_1d(rows.reshape(len(scales), -1).any(axis=1))
        scales[groups] = level.scale.nan_code
        codes[np.repeat(groups, len(rows) // len(groups))] = 0

    def _innermost_nan(self) -> tuple[Level, NDArray[Any]]:
        for level, scales in zip(self.fmt.outer, reversed(self.codes), strict=True):
            if level.scale.nan_code is not None:
                return level, scales
        raise AssertionError("encode checks that the format has NaN")


def _row_largest(rows: NDArray[Any], negative: bool | None, saturate: bool) -> Largest:
    """The largest magnitude of each row among the values of one sign, or of all, (rows, 1)."""
    size = rows.shape[1]
    parts = []
    for part in chunks(len(rows), size):
        x = Finite.of(rows[part], saturate)
        parts.append(x.largest(size) if negative is None else x.largest_of_sign(negative, size))
    return Largest.joined(parts)


def _exponents(
    fmt: BlockFormat, scale: Exponent, factor: Factor, largest: Wide
) -> NDArray[np.uint8]:
    """Codes of exponent scales, below real ones that are known."""
    if factor.above:
        reciprocal = np.broadcast_to(factor.reciprocal, largest.significand.shape)
        largest = as_wide(rounded_product(largest, np.ascontiguousarray(reciprocal)))
    return exponents(scale, fmt.element, largest)


def _given(
    given: ArrayLike | None, level: Level, leading: tuple[int, ...], groups: int
) -> Values32 | None:
    """Scales that the caller gives, (groups, 1), checked."""
    if given is None:
        return None
    shape = leading if level.group == CHANNEL else ()
    try:
        with np.errstate(over="ignore"):  # infinities are refused below
            values = np.asarray(given, np.float32)
    except (TypeError, ValueError):
        raise TypeError(f"scale must hold numbers, not {given!r}") from None
    try:
        values = np.broadcast_to(values, shape).reshape(groups, 1)
    except ValueError:
        raise ValueError(f"scale must broadcast to shape {shape}, not {values.shape}") from None
    bad = ~(np.isfinite(values) & (values > 0))
    if bad.any():
        raise ValueError(f"scale must hold positive finite numbers, not {values[bad][0]}")
    return values
