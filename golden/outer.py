"""Scales of channels and of the tensor, which need all values before a block can be encoded."""

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any, Final, Self

import numpy as np
from numpy.typing import ArrayLike, NDArray

from axs6.golden.blocks import chunks
from axs6.golden.factors import Factor, Outer, zero_point_scales
from axs6.golden.finite import Finite, Largest
from axs6.golden.floats import Wide
from axs6.golden.formats import CHANNEL, BlockFormat, Exponent, Level, Real, name_of
from axs6.golden.nonfinite import NonFinite
from axs6.golden.scaling import Values32, as_wide, exponents, rounded_product


@dataclass(frozen=True)
class Reach:
    """The numbers on which scales of channels and of the tensor depend.

    Args:
        largest: the largest magnitudes of rows of values, (rows, 1): one array of all values, or
            two, of negative and of other ones, in formats with zero points.
        lost: whether rows have a value for which these scales are NaN, (rows,).
    """

    largest: tuple[Largest, ...]
    lost: NDArray[np.bool_]

    @classmethod
    def of(cls, rows: NDArray[Any], fmt: BlockFormat, nonfinite: NonFinite) -> Self:
        """The reach of blocks (rows, B) of any dtype that `encode` takes."""
        signs = (None,) if fmt.element.signed else (True, False)
        largest: list[list[Largest]] = [[] for _ in signs]
        lost = []
        size = rows.shape[1]
        for part in chunks(len(rows), size):
            x = Finite.of(rows[part], nonfinite == "saturate")
            for found, sign in zip(largest, signs, strict=True):
                found.append(x.largest(size) if sign is None else x.largest_of_sign(sign, size))
            lost.append(_lost(x, fmt, nonfinite, len(rows[part])))
        return cls(tuple(map(Largest.joined, largest)), np.concatenate(lost))

    @classmethod
    def merged(cls, parts: Sequence[Self]) -> Self:
        """The reach of rows whose values are in several parts."""
        each = zip(*(x.largest for x in parts), strict=True)
        lost = np.logical_or.reduce([x.lost for x in parts])
        return cls(tuple(map(Largest.merged, each)), lost)

    def of_groups(self, groups: int) -> "Reach":
        """The reach of `groups` equal groups of rows."""
        largest = tuple(x.of_groups(groups) for x in self.largest)
        rows = len(self.lost) // max(1, groups)
        return Reach(largest, np.logical_or.reduce(self.lost.reshape(groups, rows), axis=1))


NOWHERE: Final = Reach((), np.zeros(0, bool))
"""The reach of no values, for formats without scales of channels and the tensor."""


@dataclass(frozen=True)
class OuterScales:
    """The scales of channels and of the tensor.

    Args:
        fmt: the format.
        codes: codes of each level, coarse to fine: (1, 1) of the tensor, (channels, 1) of channels.
        found: what they give to the values.
        lost: channels, or the tensor, whose scale is NaN, (channels,) or (1,).
        zero_point: codes of the value 0, of the shape of the codes.
    """

    fmt: BlockFormat
    codes: tuple[NDArray[Any], ...]
    found: Outer
    lost: NDArray[np.bool_]

    @property
    def zero_point(self) -> NDArray[np.int16] | None:
        """Codes of the value 0, where the format has them here."""
        return self.found.zero_point

    @classmethod
    def find(
        cls,
        fmt: BlockFormat,
        channels: Reach,
        tensor: Reach,
        given: ArrayLike | None = None,
        leading: tuple[int, ...] | None = None,
    ) -> "OuterScales":
        """The scales of values that reach so far.

        Args:
            fmt: the format.
            channels: of each channel; whatever where scales are of the tensor alone.
            tensor: of the tensor, one row; whatever where scales are of channels alone.
            given: the outermost scale, as `scale` of `axs6.encode`.
            leading: shape of the channels, to which `given` broadcasts.

        Raises:
            TypeError, ValueError: `given` is refused.
        """
        if given is not None and not (fmt.outer and isinstance(fmt.outer[-1].scale, Real)):
            raise ValueError(
                f"scale is for a real scale of channels or the tensor: {name_of(fmt)} has none"
            )
        factor, codes, exponent, zero = Factor.one(), [], None, None
        lost, nan_level = np.zeros(1, bool), _nan_level(fmt)
        for number, level in enumerate(fmt.outer[::-1]):
            reach = channels if level.group == CHANNEL else tensor
            largest, count = reach.largest, len(reach.lost)
            values = None if number else _given(given, level, leading or (count,), count)
            scales: NDArray[Any]
            if isinstance(level.scale, Exponent):
                scales = _exponents(fmt, level.scale, factor, largest[0].exact)
                exponent = scales.astype(np.int16) - np.int16(level.scale.bias)
            elif isinstance(level.scale, Real) and level.scale.zero_point:
                low, high = (x.exact for x in largest)
                scales, zero, factor = zero_point_scales(fmt, low, high, values)
            else:
                scales, factor = factor.find(fmt, level, largest[0], values)
            if level == nan_level and reach.lost.any():
                assert level.scale.nan_code is not None
                lost, scales = reach.lost, scales.copy()
                scales[lost] = level.scale.nan_code
            codes.append(scales)
        return cls(fmt, tuple(codes), Outer(factor, exponent, zero), lost)

    def shaped(self, leading: tuple[int, ...]) -> list[NDArray[Any]]:
        """The codes in the shapes that `Blocks` has them in.

        Raises:
            ValueError: they are of another number of channels.
        """
        channels = int(np.prod(leading))
        for level, codes in zip(self.fmt.outer[::-1], self.codes, strict=True):
            if level.group == CHANNEL and len(codes) != channels:
                raise ValueError(f"outer must be of {channels} channels, not {len(codes)}")
        return [
            codes.reshape(leading if level.group == CHANNEL else ())
            for level, codes in zip(self.fmt.outer[::-1], self.codes, strict=True)
        ]

    def clear(self, codes: NDArray[np.uint8]) -> None:
        """Set the codes (rows, B) of all blocks under a NaN to that of 0."""
        if self.lost.any():
            codes.reshape(len(self.lost), -1)[self.lost] = self.fmt.element.zero_code


def _nan_level(fmt: BlockFormat) -> Level | None:
    """The level of the finest scale that can be NaN."""
    return next((level for level in fmt.levels if level.scale.nan_code is not None), None)


def _lost(x: Finite, fmt: BlockFormat, nonfinite: NonFinite, count: int) -> NDArray[np.bool_]:
    """Which rows have a value that only a scale of the channel or tensor can stand for."""
    level, element = _nan_level(fmt), fmt.element
    if x.infinite is None or nonfinite != "propagate" or level is None or level.blocked:
        return np.zeros(count, bool)
    assert x.nan is not None
    if element.has_infinity:
        return np.zeros(count, bool)
    left = x.infinite != 0
    return (left if element.has_nan else left | x.nan).any(axis=1)


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
