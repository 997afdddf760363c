"""Encoding arrays into blocks: parameters, and the levels of scales from coarse to fine."""

from dataclasses import dataclass, replace
from typing import Any

import numpy as np
from numpy.typing import ArrayLike, NDArray

from axs6.golden.arguments import check_axis, check_unmasked
from axs6.golden.blocks import (
    Blocks,
    check_rows,
    check_tile,
    chunks,
    from_tiles,
    padded,
    scale_shape,
    to_tiles,
)
from axs6.golden.decode import decode
from axs6.golden.encode_as import encode_as
from axs6.golden.finite import Finite
from axs6.golden.floats import INTEGER, fp32_bits
from axs6.golden.formats import (
    FP32,
    BlockFormat,
    Float,
    Level,
    Mode,
    Real,
    Selected,
    Unsigned,
    block_format,
    name_of,
)
from axs6.golden.levels import RowEncoder
from axs6.golden.modes import check_mode, elements, sparse_values
from axs6.golden.nonfinite import NonFinite, check_nonfinite_in
from axs6.golden.outer import NOWHERE, OuterScales, Reach
from axs6.golden.quantise import Quantiser
from axs6.golden.rounding import RANDOM_BITS, Rounding, check_random_bits, check_rounding
from axs6.golden.scaling import code_dtype

SATURATED = 2.0 ** (FP32.bias + 1)
"""Smallest magnitude that counts as infinite."""


def encode(
    x: ArrayLike,
    format: str | BlockFormat = "axs6",
    rounding: str = "nearest",
    mode: str = "dense",
    *,
    block: int | None = None,
    axis: int = -1,
    random: ArrayLike | None = None,
    random_bits: int = RANDOM_BITS,
    nonfinite: NonFinite = "error",
    scale: ArrayLike | None = None,
    outer: OuterScales | None = None,
    choice: str | None = None,
    profile: str | None = None,
) -> Blocks:
    """Encode values into blocks along an axis.

    Args:
        x: values of shape (..., K, ...): float32, float16, bfloat16 (an `ml_dtypes` array, or bit
            patterns in uint16), float64, or integers other than uint16. Each is read without
            rounding. K is padded with zeros to whole blocks.
        format: a name of the catalog, a string such as "e4m3fn_e8m0_t32", or a BlockFormat. The
            rows of tiles lie along the last of the other axes.
        rounding: "nearest" (ties to even), "toward_zero" or "stochastic".
        mode: for formats with modes "dense"; "sparse", for the blocks in which at least a quarter
            of the dense magnitudes is 0, the others dense; "high_precision"; or "auto": sparse
            where that is allowed, otherwise dense or high-precision, whichever has the smaller sum
            of squared errors (in float64, added in index order), dense if they are equal.
        block: values of the largest group of a fixed size, in place of the format's.
        axis: the axis along which values are blocked.
        random: with rounding "stochastic" an integer u for each value, of the shape of `x`, 0 <= u
            < 2^random_bits. With g the step between codes there, the magnitude is floor((floor(|x|
            / g * 2^random_bits) + u) / 2^random_bits) steps.
        random_bits: width of the random integers, 1 to 32.
        nonfinite: what to do with NaN, infinities, and values of magnitude 2^128 or more. "error"
            raises. "saturate" encodes NaN as +0, without a part in a group's maximum, and an
            infinity as the largest element under the scale of the largest FP32 value. "propagate"
            keeps them: as an element with such a code, else by making the scale of the group NaN.
        scale: the outermost real scale, positive numbers that broadcast to its shape, instead of
            the one computed from the values (delayed scaling). It is held within the numbers of its
            dtype.
        outer: all scales of channels and the tensor, computed by `axs6.golden.outer` from a larger
            array that contains the values; replaces the scales computed from the values.
        choice: of the finest scales, in place of the format's: "max", "four-over-six" or "mse".
        profile: a library whose steps replace those below: `axs6.golden.profile.PROFILES`. It goes
            with `block` and `axis` alone; `axs6.golden.encode_as` also returns what its file keeps.

    Returns:
        The blocks. A group of zeros has the smallest exponent. A negative value that rounds to zero
        keeps its sign if the element has a -0; so does -0.0, except in AXS-6.

    Raises:
        TypeError: a dtype is not one of the above, `random` does not hold integers, or an array
            has masked values.
        ValueError: a parameter is unknown or does not fit the format, `x` has no axis, `random` is
            missing, not asked for, of another shape or out of range, a tile is larger than the
            matrix, or a value is not finite; the message gives the index of the first.

    Source: AXS-6 specification, sections 4, 5 and 7; docs/format.md and docs/formats.md.
    """
    fmt, rounding_mode = block_format(format), check_rounding(rounding)
    if block is not None:
        fmt = fmt.with_block(block)
    if profile is not None:
        _check_fixed(
            rounding=rounding_mode is not Rounding.NEAREST,
            mode=check_mode(mode) is not Mode.DENSE,
            random=random is not None,
            nonfinite=nonfinite != "error",
            scale=scale is not None,
            outer=outer is not None,
            choice=choice is not None,
        )
        return encode_as(x, fmt, profile, axis=axis).blocks
    if choice is not None:
        fmt = fmt.with_choice(choice)
    wanted = check_mode(mode)
    if wanted is not Mode.DENSE and not fmt.has_modes:
        raise ValueError(f"{name_of(fmt)} has no modes, so mode must be dense, not {mode!r}")
    check_random_bits(random_bits)
    check_nonfinite_in(fmt, nonfinite)
    for name, given in (("values", x), ("random", random), ("scale", scale)):
        check_unmasked(name, given)
    values = np.asarray(x)
    if values.ndim == 0:
        raise ValueError("values must have at least one axis, not shape ()")
    check_axis(axis, values.shape)
    check_rows(fmt, values.shape)
    if outer is None:  # else they are part of a larger array
        check_tile(fmt, np.moveaxis(values, axis, -1).shape)
    words = _random_words(random, random_bits, rounding_mode, values.shape)

    def encoded(mode: Mode) -> Blocks:
        quantiser = Quantiser(elements(fmt, mode), rounding_mode, random_bits)
        run = _ArrayEncoding(fmt, quantiser, mode, axis, nonfinite, values.shape)
        return run.encode(values, words, scale, outer)

    if wanted in (Mode.DENSE, Mode.HIGH_PRECISION):
        return encoded(wanted)
    sparse = _sparse(encoded(Mode.DENSE))
    return sparse if wanted else _best(values, sparse, encoded(Mode.HIGH_PRECISION))


def _check_fixed(**given: bool) -> None:
    """Raise ValueError if an argument is given that a profile fixes."""
    for name in (name for name, is_given in given.items() if is_given):
        raise ValueError(f"{name} must not be given with a profile, which fixes all steps")


def _random_words(
    random: ArrayLike | None, bits: int, rounding: Rounding, shape: tuple[int, ...]
) -> NDArray[np.uint64] | None:
    if rounding is not Rounding.STOCHASTIC:
        if random is not None:
            raise ValueError(f'random is for rounding "stochastic", not {str(rounding)!r}')
        return None
    if random is None:
        raise ValueError('rounding "stochastic" needs random, an integer for each value')
    words = np.asarray(random)
    if words.dtype.kind not in INTEGER:
        raise TypeError(f"random must hold integers, not {words.dtype}")
    if words.shape != shape:
        raise ValueError(f"random must have the shape of the values {shape}, not {words.shape}")
    bad = (words < 0) | (words >= 1 << bits)
    if bad.any():
        index = tuple(int(i[0]) for i in np.nonzero(bad))
        raise ValueError(
            f"random must be from 0 to 2^{bits} - 1: element {index} is {int(words[index])}"
        )
    return words.astype(np.uint64)


@dataclass(frozen=True)
class _ArrayEncoding:
    """One encoding of an array in one mode."""

    fmt: BlockFormat
    quantiser: Quantiser
    mode: Mode
    axis: int
    nonfinite: NonFinite
    shape: tuple[int, ...]

    def encode(
        self,
        values: NDArray[Any],
        words: NDArray[np.uint64] | None,
        scale: ArrayLike | None,
        outer: OuterScales | None,
    ) -> Blocks:
        size = self.fmt.block * self.fmt.rows
        rows = self._rows(values)
        given = None if words is None else self._rows(words)
        leading = tuple(np.delete(self.shape, self.axis).tolist())
        count = -(-self.shape[self.axis] // self.fmt.block)
        if outer is None:
            outer = self._outer(rows, leading, scale)
        elif scale is not None or outer.fmt != self.fmt:
            raise ValueError(f"outer must be of {name_of(self.fmt)}, and scale must not be given")
        shaped = outer.shaped(leading)
        scales = [
            np.empty((len(rows), size // level.values), code_dtype(level.scale.bits))
            for level in self.fmt.blocked[::-1]
        ]
        codes = np.empty(rows.shape, np.uint8)
        zero_points = np.empty((len(rows), 1), np.uint8)
        encoder = RowEncoder(self.fmt, self.quantiser)
        for part in chunks(len(rows), size):  # an empty one checks the dtype
            x = Finite.of(rows[part], self._saturate)
            if x.infinite is not None and self.nonfinite == "error":
                self._refuse(values, x, part.start)
            random = None if given is None else given[part]
            here = [each[part] for each in scales]
            above = outer.found.of_rows(np.arange(part.start, part.stop) // max(1, count))
            encoder.encode(x, random, above, here, codes[part], zero_points[part])
            if x.infinite is not None:
                self._keep(x, here, codes[part])
        outer.clear(codes)
        found = [
            self._scales(level, each, leading)
            for level, each in zip(self.fmt.blocked[::-1], scales, strict=True)
        ]
        return Blocks(
            self.fmt,
            (*shaped, *found),
            from_tiles(codes, self.fmt, leading, count),
            self.shape,
            self.axis,
            np.full((*leading, count), self.mode, np.uint8),
            self._zero_points(outer, zero_points, leading, count),
        )

    @property
    def _saturate(self) -> bool:
        return self.nonfinite == "saturate"

    def _rows(self, values: NDArray[Any]) -> NDArray[Any]:
        """Blocks, or tiles, as rows, padded with zeros."""
        native = np.asarray(values, values.dtype.newbyteorder("="))
        moved = np.moveaxis(native, self.axis, -1)
        return to_tiles(np.ascontiguousarray(moved), self.fmt)

    def _scales(self, level: Level, codes: NDArray[Any], leading: tuple[int, ...]) -> NDArray[Any]:
        """The scales of rows of blocks or tiles, in the shape that `Blocks` has them in."""
        count, block = -(-self.shape[self.axis] // self.fmt.block), self.fmt.block
        each = codes if level.tiled else from_tiles(codes, self.fmt, leading, count)
        return each.reshape(scale_shape(level, leading, count, block))

    def _outer(
        self, rows: NDArray[Any], leading: tuple[int, ...], scale: ArrayLike | None
    ) -> OuterScales:
        """The scales of channels and the tensor, computed from blocks (rows, B)."""
        channels = tensor = NOWHERE
        if self.fmt.outer:
            reach = Reach.of(rows, self.fmt, self.nonfinite)
            tensor = reach.of_groups(1)
            if self.fmt.rows == 1:
                channels = reach.of_groups(int(np.prod(leading)))
        return OuterScales.find(self.fmt, channels, tensor, scale, leading)

    def _zero_points(
        self,
        outer: OuterScales,
        of_blocks: NDArray[np.uint8],
        leading: tuple[int, ...],
        count: int,
    ) -> NDArray[np.uint8] | None:
        if not isinstance(self.fmt.element, Unsigned):
            return None
        (level,) = self.fmt.levels
        shape = scale_shape(level, leading, count, self.fmt.block)
        found = of_blocks if outer.zero_point is None else outer.zero_point
        return found.astype(np.uint8).reshape(shape)

    def _keep(self, x: Finite, scales: list[NDArray[Any]], codes: NDArray[np.uint8]) -> None:
        """Write the codes of NaN and infinities, and NaN scales of blocks."""
        assert x.infinite is not None
        assert x.nan is not None
        infinite = x.infinite != 0
        if self._saturate:
            codes[infinite] = self._largest(x.infinite < 0, scales)[infinite]
            return
        element, left = self.fmt.element, infinite | x.nan
        if element.has_nan:
            assert isinstance(element, Float)
            codes[x.nan] = element.quiet_nan
            left &= infinite
            if element.has_infinity:
                sign = np.where(x.infinite < 0, np.uint8(element.sign_bit), np.uint8(0))
                codes[infinite] = (sign | np.uint8(element.infinity))[infinite]
                left[:] = False
        if all(level.scale.nan_code is None for level in self.fmt.levels):
            assert isinstance(element, Float)
            codes[left] = element.quiet_nan
            return
        for level, found in zip(self.fmt.blocked, reversed(scales), strict=True):
            if level.scale.nan_code is not None:
                groups = left.reshape(len(codes), -1, level.values).any(axis=2)
                found[groups] = level.scale.nan_code
                codes[np.repeat(groups, level.values, axis=1)] = element.zero_code
                return

    def _largest(
        self, negative: NDArray[np.bool_], scales: list[NDArray[Any]]
    ) -> NDArray[np.uint8]:
        """Codes (rows, B) of the largest values of these signs."""
        if not isinstance(self.fmt.element, Selected):
            return self.quantiser.largest(negative)
        parts = [
            replace(self.quantiser, elements=(x, x)).largest(negative)
            for x in self.fmt.element.parts
        ]
        level = self.fmt.levels[0]
        assert isinstance(level.scale, Real)
        second = np.repeat(level.scale.selected(scales[-1]), level.values, axis=1)
        return np.where(second, parts[1], parts[0])

    def _refuse(self, values: NDArray[Any], x: Finite, first_row: int) -> None:
        """Raise the error that names the first value without a code, in order of the blocks."""
        assert x.infinite is not None
        bad = (x.infinite != 0) | x.nan
        tile, within = divmod(int(np.flatnonzero(bad)[0]), bad.shape[1])
        row, column = divmod(within, self.fmt.block)
        *leading, length = np.moveaxis(values, self.axis, -1).shape
        if leading:
            leading[-1] = -(-leading[-1] // self.fmt.rows)
        grid = (*leading, -(-length // self.fmt.block))
        place = [int(i) for i in np.unravel_index(tile + first_row, grid)]
        place[-1] = place[-1] * self.fmt.block + column
        if leading:
            place[-2] = place[-2] * self.fmt.rows + row
        place.insert(self.axis % values.ndim, place.pop())
        index = tuple(place)
        value = values[index]
        text = f"bits {int(value):#06x}" if values.dtype.kind == "u" else str(value)
        raise ValueError(
            f"values must be finite and below 2^128: element {index} is {text} "
            '(nonfinite="saturate" encodes it as the hardware does)'
        )


def _sparse(dense: Blocks) -> Blocks:
    """The same values, in sparse blocks where allowed."""
    codes = dense.codes.reshape(-1, dense.block)
    dropped, allowed = sparse_values(codes, dense.format)
    modes = np.where(allowed, Mode.SPARSE, Mode.DENSE).astype(np.uint8)
    kept = np.where(dropped & allowed[:, None], np.uint8(0), codes)
    return replace(
        dense, modes=modes.reshape(dense.modes.shape), codes=kept.reshape(dense.codes.shape)
    )


def _best(values: NDArray[Any], sparse: Blocks, precise: Blocks) -> Blocks:
    """`sparse`, with blocks of `precise` in place of dense blocks with a larger error."""
    better = (sparse.modes == Mode.DENSE) & (
        _squared_errors(values, precise) < _squared_errors(values, sparse)
    )
    return replace(
        sparse,
        modes=np.where(better, precise.modes, sparse.modes).astype(np.uint8),
        codes=np.where(better[..., None], precise.codes, sparse.codes),
    )


def _squared_errors(values: NDArray[Any], blocks: Blocks) -> NDArray[np.float64]:
    """Sums over each block, shape (..., n), NaN where a value saturates."""
    bits = fp32_bits(values)
    with np.errstate(invalid="ignore"):  # of signalling NaN
        exact = (values if bits is None else bits.view(np.float32)).astype(np.float64)
    errors = np.where(np.abs(exact) < SATURATED, exact, np.nan) - decode(blocks, np.float64)
    terms = padded(np.moveaxis(errors**2, blocks.axis, -1), blocks.block).reshape(
        blocks.codes.shape
    )
    # The last of the running sums is added in index order, which np.sum is not.
    return np.cumsum(terms, axis=-1)[..., -1]
