"""Encoding under a profile: runs the steps that `axs6.golden.profile` holds as data.

Steps are FP32 operations of IEEE 754, as NumPy gives them, in the order that the data say. With
the steps of the definition the results are those of `axs6.golden.encode`, bit for bit.
"""

from dataclasses import dataclass
from functools import cached_property
from typing import Any, NamedTuple

import numpy as np
from numpy.typing import ArrayLike, NDArray

from axs6.golden.arguments import check_axis, check_unmasked
from axs6.golden.blocks import Blocks, chunks, padded, scale_shape
from axs6.golden.factors import divisor
from axs6.golden.floats import fp32_bits
from axs6.golden.formats import (
    FP32,
    BlockFormat,
    Exponent,
    Float,
    Level,
    Real,
    Rule,
    Shift,
    TwosComplement,
    block_format,
    name_of,
)
from axs6.golden.formats.floating import INPUT_DTYPES
from axs6.golden.profile import (
    Above,
    Division,
    EncodingSteps,
    Ties,
    steps_of,
)
from axs6.golden.profile_scales import (
    HALF,
    LARGEST,
    ONE,
    TensorNumbers,
    cast,
    narrowed,
    number,
    tensor_scale,
)
from axs6.golden.scaling import SMALLEST_SCALE, Values32, code_dtype, real_values, spread


class EncodedAs(NamedTuple):
    """Blocks, and what the library's file keeps beside them.

    Args:
        blocks: scales and codes of the library. A scale of the tensor is FP32; where the library
            keeps another number, it is what its values are close to: fp32(1 / g).
        outer: the number of the tensor that the library keeps, exactly; None where the format has
            no scale of the tensor.
    """

    blocks: Blocks
    outer: np.float32 | None


def encode_as(
    x: ArrayLike,
    format: str | BlockFormat,
    profile: str,
    *,
    axis: int = -1,
    outer: float | TensorNumbers | None = None,
    dtype: str | None = None,
) -> EncodedAs:
    """Encode values into blocks as a library does.

    Args:
        x: finite values (..., K) of float32, float16 or bfloat16, as in `axs6.encode`. K is padded
            with zeros.
        format: one of the profile's formats.
        profile: a name of `axs6.golden.profile.PROFILES`.
        axis: the axis along which values are blocked.
        outer: the number of the tensor that the library keeps, in place of the one that follows
            from the values; or what `tensor_scale` returns for a larger array with the values.
        dtype: "fp32", "bf16" or "fp16", of values in a wider array.

    Raises:
        TypeError: the values have another dtype, or are masked.
        ValueError: the profile is unknown, does not have the format or does not take the dtype, a
            value is not finite, or `outer` is not a positive number or not for the format.

    Source: the packages that `axs6 info FORMAT --profile NAME` names.
    """
    fmt = block_format(format)
    return run(x, fmt, steps_of(profile, fmt), profile, axis, outer, dtype)


def run(
    x: ArrayLike,
    fmt: BlockFormat,
    steps: EncodingSteps,
    name: str = "of one's own",
    axis: int = -1,
    outer: float | TensorNumbers | None = None,
    dtype: str | None = None,
) -> EncodedAs:
    """As `encode_as`, under steps of a profile of this name, or of none."""
    check_unmasked("values", x)
    values = np.asarray(x)
    values = np.asarray(values, values.dtype.newbyteorder("="))
    bits = fp32_bits(values)
    if bits is None:
        raise TypeError(
            f"values under a profile must be float32, float16 or bfloat16, not {values.dtype}"
        )
    given = dtype or input_dtype(values)
    steps.check_dtype(given, name)
    if values.ndim == 0:
        raise ValueError("values must have at least one axis, not shape ()")
    check_axis(axis, values.shape)
    exact = bits.view(np.float32)
    if not np.isfinite(exact).all():
        index = tuple(int(i[0]) for i in np.nonzero(~np.isfinite(exact)))
        raise ValueError(
            f"values under a profile must be finite: element {index} is {exact[index]}"
        )
    moved = np.ascontiguousarray(np.moveaxis(exact, axis, -1))
    rows = padded(moved, fmt.block).reshape(-1, fmt.block)
    with np.errstate(all="ignore"):  # infinities and NaN are what the libraries get there
        return _ProfileEncoding(fmt, steps, INPUT_DTYPES[given]).encode(
            rows, values.shape, axis, outer
        )


def input_dtype(values: NDArray[Any]) -> str:
    """The name of the dtype of an array of FP32, FP16 or BF16 values."""
    return {4: "fp32", 2: "fp16" if values.dtype == np.float16 else "bf16"}[values.itemsize]


@dataclass(frozen=True)
class _ProfileEncoding:
    """Encoding of rows of blocks in a format under some steps, of values of a dtype."""

    fmt: BlockFormat
    steps: EncodingSteps
    dtype: Float

    def encode(
        self, rows: Values32, shape: tuple[int, ...], axis: int, outer: float | TensorNumbers | None
    ) -> EncodedAs:
        fmt = self.fmt
        found = self._tensor(rows, outer)
        scales = [
            np.empty((len(rows), fmt.block // int(level.group)), code_dtype(level.scale.bits))
            for level in fmt.blocked[::-1]
        ]
        codes = np.empty(rows.shape, np.uint8)
        for part in chunks(len(rows), fmt.block):
            self._rows(rows[part], found, [each[part] for each in scales], codes[part])
        leading = tuple(np.delete(shape, axis).tolist())
        count = -(-shape[axis] // fmt.block)
        shapes = [scale_shape(level, leading, count, fmt.block) for level in fmt.blocked[::-1]]
        arrays = [x.reshape(y) for x, y in zip(scales, shapes, strict=True)]
        if found is not None:
            arrays.insert(0, np.asarray(found.scale).view(np.uint32))
        blocks = Blocks(fmt, tuple(arrays), codes.reshape(*leading, count, fmt.block), shape, axis)
        return EncodedAs(blocks, None if found is None else found.kept)

    def _tensor(self, rows: Values32, outer: float | TensorNumbers | None) -> TensorNumbers | None:
        if isinstance(outer, TensorNumbers):
            return outer
        if outer is not None and not (np.isfinite(np.float32(outer)) and np.float32(outer) > 0):
            raise ValueError(f"outer must be a positive finite number, not {outer!r}")
        if not self.fmt.outer:
            if outer is not None:
                raise ValueError(
                    f"outer is for a scale of the tensor: {name_of(self.fmt)} has none"
                )
            return None
        amax = np.abs(rows).max(initial=np.float32(0))
        return tensor_scale(self.fmt, self.steps, amax, self.dtype, outer)

    def _rows(
        self,
        x: Values32,
        outer: TensorNumbers | None,
        scales: list[NDArray[Any]],
        codes: NDArray[np.uint8],
    ) -> None:
        """Encode blocks (rows, B); `scales`, coarse to fine, and `codes` receive the results."""
        steps, fmt = self.steps, self.fmt
        if steps.flush:
            x = np.where(np.abs(x) < SMALLEST_SCALE, np.float32(0), x)
        into = dict(zip(fmt.blocked[::-1], scales, strict=True))
        reals = [level for level in fmt.blocked if isinstance(level.scale, Real)]
        block = quotient = None
        for level in reals:  # at most one
            block, quotient = self._block(x, level, outer, into[level])
        power = self._powers(x, into)
        if steps.division is Division.SEARCHED:
            scale = block if power is None else power
            assert scale is not None
            codes[:] = self._searched(x, spread(scale, x.shape[1]))
            return
        value = self._divided(x, outer, block, quotient)
        value = value / spread(power, x.shape[1]) if power is not None else value
        if steps.narrow_quotient:
            value = narrowed(value, self.dtype)
        codes[:] = self._rounded(value)

    def _block(
        self, x: Values32, level: Level, outer: TensorNumbers | None, codes: NDArray[Any]
    ) -> tuple[Values32, Values32]:
        """Real scales of blocks (rows, groups), and what they are before they are rounded."""
        how, scale = self.steps.block, level.scale
        assert isinstance(scale, Real)
        within = self.dtype if self.steps.narrow else FP32
        amax, top = self._amax(x, level), number(divisor(self.fmt, level))
        if outer is None:
            quotient = narrowed(amax / top, within)
        elif how.above is Above.DIVIDED:
            quotient = narrowed(amax / top, within) / outer.scale
        elif how.above is Above.MULTIPLIED:
            quotient = outer.inverse * narrowed(amax / top, within)
        else:
            quotient = amax * (outer.inverse * (ONE / top))
        smallest = number(scale.smallest) if how.held else np.float32(0)
        held = np.clip(quotient, smallest, number(scale.dtype.largest))
        codes[:] = cast(scale.dtype, held, how.cast)
        value = real_values(scale.dtype, codes)
        if how.empty is not None and not codes.all():
            nothing = codes == 0
            codes[nothing] = cast(scale.dtype, np.asarray([number(how.empty)]), how.cast)
            value = np.where(nothing, number(how.empty), value)
        return value, quotient

    def _amax(self, x: Values32, level: Level) -> Values32:
        group = int(level.group)
        return np.abs(x).reshape(len(x), x.shape[1] // group, group).max(axis=2)

    def _powers(self, x: Values32, into: dict[Level, NDArray[Any]]) -> Values32 | None:
        """The powers of two by which the finest groups are divided, (rows, groups)."""
        how, power, above = self.steps.power, None, None
        for level, codes in into.items():
            amax = self._amax(x, level)
            top = np.where(amax > 0, np.frexp(amax)[1] - 1, np.int32(-(1 << 20)))
            if isinstance(level.scale, Exponent):
                codes[:] = self._exponents(level.scale, amax)
                power = codes.astype(np.int32) - level.scale.bias
                low = codes == 0
            elif isinstance(level.scale, Shift):
                assert power is not None
                assert above is not None
                most = level.scale.largest_code
                shift = np.minimum(spread(above, top.shape[1]) - top, most)
                codes[:] = np.where(amax > 0, shift, most)
                if how.empty_shift is not None:
                    codes[np.abs(x).max(axis=1) == 0] = how.empty_shift
                power = spread(power, top.shape[1]) - codes.astype(np.int32)
                low = np.zeros(codes.shape, bool)
            above = top
        if power is None:
            return None
        value = np.ldexp(ONE, power)
        return value if how.lowest is None else np.where(low, number(how.lowest), value)

    def _exponents(self, scale: Exponent, amax: Values32) -> NDArray[np.int32]:
        """Codes of exponent scales of groups with these largest magnitudes."""
        how, element = self.steps.power, self.fmt.element
        rule, emax = how.rule or scale.rule, element.emax
        base = amax
        if rule is Rule.RCEIL:
            top, emax = number(element.largest), 0
            base = amax * (ONE / top) if how.reciprocal else amax / top
        significand, exponent = np.frexp(base)  # from 1/2 up
        above = np.zeros(amax.shape, bool)
        if rule is Rule.EVEN:
            bits = element.precision if how.bits is None else how.bits
            above = significand >= np.float32(1 - 2.0 ** (-bits - 2))
        elif rule is not Rule.FLOOR:
            above = significand > HALF
        codes = exponent - 1 + above - emax + scale.bias
        codes = np.where(np.isinf(base), scale.largest_code, codes)
        return np.where(base == 0, 0, np.clip(codes, 0, scale.largest_code))

    def _divided(
        self,
        x: Values32,
        outer: TensorNumbers | None,
        block: Values32 | None,
        quotient: Values32 | None,
    ) -> Values32:
        """Values over their real scales."""
        how, size = self.steps.division, x.shape[1]
        if outer is None and block is None:
            return x
        if how is Division.MULTIPLIED:
            assert outer is not None
            return x * outer.inverse
        if how is Division.UNROUNDED:
            assert quotient is not None
            inverse = np.where(quotient == 0, quotient, ONE / quotient)
            return x * spread(inverse, size)
        if how is Division.RECIPROCALS:
            factor = ONE if outer is None else ONE / outer.scale
            return x * (factor if block is None else spread(factor / block, size))
        if block is None:
            assert outer is not None
            scale = np.full((1, 1), outer.scale)
        elif outer is None:
            scale = block
        elif how is Division.PRODUCT:
            scale = block * outer.scale
        else:
            scale = block / outer.inverse
        if how is Division.PRODUCT:
            return x * spread(np.minimum(ONE / scale, LARGEST), size)
        return x / spread(scale, size)

    @cached_property
    def _magnitudes(self) -> Values32:
        """Values of the codes from 0 to the largest, and one more where all codes are used."""
        element = self.fmt.element
        most = element.largest_code + self.steps.rounding.full_range
        if isinstance(element, TwosComplement):
            return np.array([float(code * element.unit) for code in range(most + 1)], np.float32)
        integers = element.integers[: most + 1]
        return np.array([float(int(v) * element.unit) for v in integers], np.float32)

    def _rounded(self, value: Values32) -> NDArray[np.uint8]:
        """Codes of quotients; a NaN, 0 over a scale of 0, counts as 0."""
        value = np.where(np.isnan(value), np.float32(0), value)
        element, how = self.fmt.element, self.steps.rounding
        table, size = self._magnitudes, np.abs(value)
        middle = (table[1:] + table[:-1]) * HALF  # exact: codes have few bits
        code = np.searchsorted(middle, size, side="left")
        up = np.searchsorted(middle, size, side="right")
        code = up if how.ties is Ties.AWAY else np.where(up > code, code + (code & 1), code)
        negative = np.signbit(value)
        code = np.where(negative, code, np.minimum(code, element.largest_code))
        if isinstance(element, TwosComplement):
            mask = 2 * element.sign_bit - 1
            return (np.where(negative, -code, code) & mask).astype(np.uint8)
        if not (how.zero_sign and element.signed_zero):
            negative &= value != 0
        return (code | negative * element.sign_bit).astype(np.uint8)

    def _searched(self, x: Values32, scale: Values32) -> NDArray[np.uint8]:
        """The first codes of the smallest differences in FP32."""
        element = self.fmt.element
        best = np.full(x.shape, np.float32(np.inf))
        codes = np.zeros(x.shape, np.uint8)
        for code, integer in enumerate(element.integers.tolist()):
            apart = np.abs(scale * number(integer * element.unit) - x)
            closer = apart < best
            best, codes = np.where(closer, apart, best), np.where(closer, np.uint8(code), codes)
        return codes
