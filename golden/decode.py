"""Decoding blocks: the exact value of each code, rounded once."""

from functools import cache
from typing import Any

import numpy as np
from numpy.typing import NDArray

from axs6.golden.blocks import Blocks, check_blocks, chunks
from axs6.golden.floats import round_to_float
from axs6.golden.formats import (
    BF16,
    CHANNEL,
    FP32,
    FP64,
    BlockFormat,
    Element,
    Exponent,
    Float,
    Integer,
    Level,
    Mode,
    Real,
    Selected,
    Shift,
)
from axs6.golden.modes import elements
from axs6.golden.scaling import real_values, spread

PATTERNS = {16: np.uint16, 32: np.uint32, 64: np.uint64}
"""Dtypes of patterns by their width."""

OUTPUTS = "dtype must be float32, float64 or bfloat16"

SMALLEST_NORMAL = 2.0**FP32.emin
FRACTION_BELOW = FP64.fraction_bits - FP32.fraction_bits
"""Bits of a float64 fraction below those of FP32."""


def decode(blocks: Blocks, dtype: Any = np.float32) -> NDArray[Any]:
    """Decode blocks to values, each rounded once to nearest, ties to even.

    Args:
        blocks: from `encode` or `unpack`.
        dtype: np.float32, np.float64, in either byte order, or bfloat16: an `ml_dtypes.bfloat16`
            for an array of that dtype, or the string "bfloat16" for bit patterns in uint16.

    Returns:
        Values of shape `blocks.shape`. Subnormals are kept, and a negative zero is -0.0. Overflows
        become the largest finite value (2^128, the largest magnitude of AXS-6 with exponent 255, is
        finite in float64). A NaN is the positive quiet NaN, and all values of a group whose scale
        is NaN are; infinite elements stay infinite.

    Raises:
        TypeError: another dtype, or `blocks` is not Blocks.

    Source: AXS-6 specification, section 6; docs/format.md and docs/formats.md.
    """
    check_blocks("blocks", blocks)
    blocks = blocks.untiled
    fmt, result_dtype = _output(dtype)
    rows = _Rows(blocks, fmt)
    out = np.empty(rows.codes.shape, rows.pattern)
    for part in chunks(len(out), blocks.block):
        rows.decode(part, out[part])
    padded = out.reshape(*blocks.leading, blocks.count * blocks.block)
    native = padded[..., : blocks.length].view(result_dtype.newbyteorder("="))
    return np.moveaxis(native, -1, blocks.axis).astype(result_dtype, copy=False)


def _output(dtype: Any) -> tuple[Float, np.dtype[Any]]:
    if isinstance(dtype, str) and dtype == "bfloat16":
        return BF16, np.dtype(np.uint16)
    try:
        resolved = np.dtype("none" if dtype is None else dtype)
    except TypeError:
        raise TypeError(f"{OUTPUTS}, not {dtype!r}") from None
    native = resolved.newbyteorder("=")
    if native == np.float32:
        return FP32, resolved
    if native == np.float64:
        return FP64, resolved
    if resolved.name == "bfloat16":
        return BF16, resolved
    raise TypeError(f"{OUTPUTS}, not {resolved}")


class _Rows:
    """Blocks as rows, and the factors of the codes of each row or group."""

    def __init__(self, blocks: Blocks, dtype: Float) -> None:
        self.blocks, self.dtype = blocks, dtype
        self.pattern = PATTERNS[dtype.width]
        self.codes = blocks.codes.reshape(-1, blocks.block)
        self.exponent: NDArray[np.intp] | None = None
        self.factor: NDArray[np.float64] | None = None
        self.nan: NDArray[np.bool_] | None = None
        for level, codes in zip(blocks.format.levels[::-1], blocks.scales, strict=True):
            self._add(level, self._of_rows(level, codes))
        selected = blocks.selected
        self.selected = None
        if selected is not None:
            wide = selected << np.uint8(blocks.format.element.width)
            self.selected = self._of_rows(blocks.format.levels[0], wide)
        zero = blocks.zero_points
        self.zero = None if zero is None else self._of_rows(blocks.format.levels[0], zero)

    def _of_rows(self, level: Level, codes: NDArray[Any]) -> NDArray[Any]:
        """Scales (rows, groups), with one row for a scale of all."""
        if level.group == CHANNEL:
            return np.repeat(codes.ravel(), self.blocks.count)[:, None]
        if not isinstance(level.group, int):
            return codes.reshape(1, 1)
        return codes.reshape(len(self.codes), self.blocks.block // level.group)

    def _add(self, level: Level, codes: NDArray[Any]) -> None:
        scale, groups = level.scale, max(1, codes.shape[1])
        if isinstance(scale, Real):
            codes = scale.number(codes)
        if scale.nan_code is not None and (codes == scale.nan_code).any():
            here = codes == scale.nan_code
            self.nan = here if self.nan is None else spread(self.nan, groups) | here
        if isinstance(scale, Exponent):
            self.exponent = codes.astype(np.intp)
        elif isinstance(scale, Shift):
            if self.exponent is None:  # below a real scale
                self.exponent = np.zeros((len(codes), 1), np.intp)
            # NumPy takes longer to broadcast a column than to repeat it.
            self.exponent = np.repeat(self.exponent, groups // self.exponent.shape[1], 1) - codes
        else:
            value = real_values(scale.dtype, codes) if isinstance(scale, Real) else codes
            exact = value.astype(np.float64)
            self.factor = exact if self.factor is None else spread(self.factor, groups) * exact

    def decode(self, part: slice, out: NDArray[Any]) -> None:
        """Patterns of the values of these rows."""
        codes, fmt = self.codes[part], self.blocks.format
        if self.factor is None:
            self._look_up(part, codes, fmt.element, out)
            precise = self.blocks.modes.ravel()[part] == Mode.HIGH_PRECISION
            if precise.any():
                for start, element in enumerate(elements(fmt, Mode.HIGH_PRECISION)):
                    some = np.empty_like(out[:, start::2])
                    self._look_up(part, codes[:, start::2], element, some)
                    out[precise, start::2] = some[precise]
        else:
            self._multiply(part, codes, fmt.element, out)
        if self.nan is not None:
            nan = _some(self.nan, part)
            groups = out.reshape(len(out), nan.shape[1], out.shape[1] // nan.shape[1])
            groups[np.broadcast_to(nan, groups.shape[:2])] = self.dtype.quiet_nan

    def _look_up(
        self, part: slice, codes: NDArray[np.uint8], element: Element, out: NDArray[Any]
    ) -> None:
        """Values whose scales are powers of two."""
        fmt = self.blocks.format
        assert self.exponent is not None
        below = sum(level.scale.largest_code for level in fmt.shifts)
        table = decode_table(self.dtype, fmt, element)
        exponent = _some(self.exponent, part) + below << element.width
        groups = exponent.shape[1]
        index = exponent[..., None] | codes.reshape(len(codes), groups, codes.shape[1] // groups)
        np.take(table, index.reshape(codes.shape), out=out, mode="clip")

    def _multiply(
        self, part: slice, codes: NDArray[np.uint8], element: Element, out: NDArray[Any]
    ) -> None:
        """Values with real or integer scales: their products are exact in float64."""
        if self.selected is not None:
            selected = _some(self.selected, part)
            own = codes.reshape(len(codes), selected.shape[1], codes.shape[1] // selected.shape[1])
            codes = (own | selected[..., None]).reshape(codes.shape)
        assert self.factor is not None
        factor = _some(self.factor, part)
        if self.exponent is not None:
            exponent = self.blocks.format.exponent
            power = _some(self.exponent, part) - (exponent.bias if exponent else 0)
            groups = max(factor.shape[1], power.shape[1])
            factor = np.ldexp(spread(factor, groups), spread(power, groups))
        table = element_values(element)
        exact = self._exact_in_fp32(table, element, factor)
        if exact:
            table, factor = table.astype(np.float32), factor.astype(np.float32)
        values = np.take(table, codes)
        if self.zero is not None:
            values -= _some(self.zero, part)
        groups = factor.shape[1]
        grouped = values.reshape(len(values), groups, values.shape[1] // groups)
        with np.errstate(invalid="ignore"):  # of NaN scales, whose values are set later
            grouped *= factor[..., None]
        out[:] = values.view(out.dtype) if exact else rounded(values, element.divisor, self.dtype)

    def _exact_in_fp32(
        self, table: NDArray[np.float64], element: Element, factor: NDArray[np.float64]
    ) -> bool:
        """Whether FP32 holds all products of the element's values and these factors.

        Their significands together have to fit in its own, and no product may be subnormal.
        """
        bits = element.integer_bits
        for scale in (level.scale for level in self.blocks.format.levels):
            if isinstance(scale, Real):
                bits += scale.dtype.fraction_bits + 1
            elif isinstance(scale, Integer):
                bits += scale.bits
        if self.dtype != FP32 or self.zero is not None or element.divisor > 1:
            return False
        if bits > FP32.fraction_bits + 1 or not np.isfinite(table).all():
            return False
        least, most = float(element.unit), float(element.largest)
        low, high = factor.min(initial=1), factor.max(initial=1)
        return bool(low * least >= SMALLEST_NORMAL and high * most < 2.0**FP32.emax)


def _some(x: NDArray[Any], part: slice) -> NDArray[Any]:
    return x if len(x) == 1 else x[part]


@cache
def element_values(element: Element) -> NDArray[np.float64]:
    """The value of each code times the element's divisor, NaN and infinities included."""
    if isinstance(element, Selected):
        parts = [(element_values(x), element.divisor // x.divisor) for x in element.parts]
        return np.concatenate([values * times for values, times in parts])
    codes = np.arange(1 << element.width)
    unit = float(element.unit * element.divisor)
    values = element.integers * unit
    values[element.nan_codes] = np.nan
    values[element.infinite_codes != 0] = np.inf
    negative = codes & element.sign_bit != 0
    signed = np.where(negative, -np.abs(values), values)
    signed.flags.writeable = False
    return signed


@cache
def decode_table(dtype: Float, fmt: BlockFormat, element: Element) -> NDArray[Any]:
    """Patterns of all values, indexed by `exponent << width | code`.

    The index's exponent is the exponent's code, less the shifts, plus the largest shifts.
    """
    scale = fmt.exponent
    assert scale is not None
    below = sum(level.scale.largest_code for level in fmt.shifts)
    exponents = np.arange(-below, 1 << scale.bits) - scale.bias
    table = rounded(
        np.ldexp(element_values(element), exponents[:, None]), element.divisor, dtype
    ).ravel()
    table.flags.writeable = False
    return table


def rounded(values: NDArray[np.float64], divisor: int, dtype: Float) -> NDArray[Any]:
    """Patterns of values / divisor in `dtype`, rounded once; too large ones the largest finite."""
    kind = PATTERNS[dtype.width]
    if divisor == 1 and dtype in (FP32, FP64):
        with np.errstate(over="ignore"):
            patterns = values.astype(np.float32 if dtype == FP32 else np.float64).view(kind)
        # A processor may be told to give 0 for these.
        small = (np.abs(values) < SMALLEST_NORMAL) & (values != 0)
        if small.any():
            patterns[small] = _rounded(values[small], divisor, dtype)
    else:
        patterns = _divided(values, divisor, dtype)
    over = (patterns & kind(dtype.sign_bit - 1) == kind(dtype.infinity)) & ~np.isinf(values)
    patterns[over] -= kind(1)
    patterns[np.isnan(values)] = dtype.quiet_nan
    return patterns


def _divided(values: NDArray[np.float64], divisor: int, dtype: Float) -> NDArray[Any]:
    """As `rounded`, of any divisor and dtype; overflows become infinities.

    A quotient in float64 that is not itself halfway between two FP32 numbers lies between the same
    ones as the exact quotient.
    """
    if dtype != FP32:
        return _rounded(values, divisor, dtype)
    quotients = values / divisor
    with np.errstate(over="ignore"):
        patterns = quotients.astype(np.float32).view(np.uint32)
    below = quotients.view(np.uint64) & np.uint64((1 << FRACTION_BELOW) - 1)
    unsure = below == np.uint64(1 << FRACTION_BELOW - 1)
    if divisor < 1 << FRACTION_BELOW:  # of a quotient of 25 bits, the product is exact
        unsure &= quotients * divisor != values
    unsure |= (np.abs(quotients) < SMALLEST_NORMAL) & (quotients != 0)
    if unsure.any():
        patterns[unsure] = _rounded(values[unsure], divisor, dtype)
    return patterns


def _rounded(values: NDArray[np.float64], divisor: int, dtype: Float) -> NDArray[Any]:
    """As `rounded`, by integers; overflows become infinities."""
    mantissa, exponent = np.frexp(np.where(np.isfinite(values), values, 0))
    significand = np.ldexp(np.abs(mantissa), 61).astype(np.uint64)
    quotient, rest = np.divmod(significand, np.uint64(divisor))
    more = divisor.bit_length() - 1  # bits, so that the quotient is as long as the significand
    below, rest = np.divmod(rest << np.uint64(more), np.uint64(divisor))
    quotient = (quotient << np.uint64(more)) + below
    power = exponent.astype(np.int64) - 61 - more
    found = round_to_float(dtype, np.signbit(values), quotient, power, rest != 0)
    infinite = np.where(np.isinf(values), np.uint64(dtype.infinity), np.uint64(0))
    return (found | infinite).astype(PATTERNS[dtype.width])
