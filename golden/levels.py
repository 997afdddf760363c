"""Encoding of rows of blocks: scales from coarse to fine, then codes."""

from collections.abc import Sequence
from dataclasses import dataclass
from itertools import pairwise
from typing import Any

import numpy as np
from numpy.typing import NDArray

from axs6.golden.choice import choose, neighbours
from axs6.golden.factors import FOUR_OVER_SIX, Factor, Outer, factors, zero_point_scales
from axs6.golden.finite import MAGNITUDE, Finite, Largest
from axs6.golden.floats import Wide
from axs6.golden.formats import (
    FP32,
    BlockFormat,
    Exponent,
    Level,
    Real,
    Rule,
    ScaleChoice,
    Selected,
    Shift,
)
from axs6.golden.quantise import UPPER_FRACTION_BITS, Quantiser
from axs6.golden.scaling import (
    Values32,
    exponents,
    fp32_exponents,
    fp32_log2,
    group_max,
    log2,
    real_scales,
    real_values,
    rounded_product,
    spread,
)
from axs6.golden.selection import selected_codes

SURE_FIELD = 16
"""Largest FP32 exponent field of a group's maximum whose scales are found from exact values.

Above it, exponent fields alone give the exponent and the shifts: groups that look empty could only
hold subnormal values, which are further below than the largest shift. It is higher for elements by
which such a maximum, divided, could be subnormal.
"""


@dataclass(frozen=True)
class RowEncoder:
    """Encodes rows of blocks, or of tiles, whose values stand row after row.

    Args:
        fmt: the format.
        quantiser: how values over their scales become codes.
    """

    fmt: BlockFormat
    quantiser: Quantiser

    def encode(
        self,
        x: Finite,
        words: NDArray[np.uint64] | None,
        outer: Outer,
        scales: Sequence[NDArray[Any]],
        codes: NDArray[np.uint8],
        zero_points: NDArray[np.uint8] | None,
    ) -> None:
        """Encode rows of blocks.

        Args:
            x: their values, (rows, B).
            words: random words of their shape, for stochastic rounding.
            outer: scales of channels and the tensor.
            scales: receives the scales of blocks, coarse to fine, each (rows, groups).
            codes: receives the codes, (rows, B).
            zero_points: receives the zero points of blocks, where blocks have them, (rows, groups).
        """
        found = dict(zip(self.fmt.blocked[::-1], scales, strict=True))
        factor, zero = self._factor(x, outer, found, zero_points)
        if factor.above:
            x = _scaled(x, factor.reciprocal)
        empty = None
        if self.fmt.shifts and not self.fmt.exponent:
            exponent, group = self._shifts(x, found), int(self.fmt.levels[0].group)
        elif self.fmt.exponent and outer.exponent is None:
            exponent, empty = self._exponents(x, found)
            group = self.fmt.blocked[0].values
            if self.fmt.choice is not ScaleChoice.MAX:
                exponent = self._chosen_exponents(x, found[self.fmt.levels[0]])
        else:
            given = np.zeros((1, 1), np.int16) if outer.exponent is None else outer.exponent
            exponent, group = np.broadcast_to(given, (len(codes), 1)), codes.shape[1]
        if isinstance(self.fmt.element, Selected):
            codes[:] = self._selected(x, words, found[self.fmt.levels[0]]).reshape(codes.shape)
            return
        random = None if words is None else words.reshape(-1, group)
        rows = self.quantiser.codes(x, group, exponent.reshape(-1), empty, random, zero)
        codes[:] = rows.reshape(codes.shape)

    def _factor(
        self,
        x: Finite,
        outer: Outer,
        found: dict[Level, NDArray[Any]],
        zero_points: NDArray[np.uint8] | None,
    ) -> tuple[Factor, NDArray[np.int16] | None]:
        """The factor of all real and integer scales, and the code of the value 0.

        `found` and `zero_points` receive the codes of blocks.
        """
        fmt, factor, zero = self.fmt, outer.factor, outer.zero_point
        for level in (x for x in factors(fmt) if x.blocked):
            group = level.values
            if isinstance(level.scale, Real) and level.scale.zero_point:
                low, high = (x.largest_of_sign(sign, group).exact for sign in (True, False))
                found[level][:], zero, factor = zero_point_scales(fmt, low, high)
                assert zero_points is not None
                zero_points[:] = zero
            else:
                largest = x.largest(group)
                found[level][:], finer = factor.find(fmt, level, largest)
                if fmt.choice is not ScaleChoice.MAX and level == fmt.levels[0]:
                    finer = self._chosen_factor(x, factor, largest, found[level])
                factor = finer
        return factor, zero

    def _chosen_factor(
        self, x: Finite, above: Factor, largest: Largest, codes: NDArray[Any]
    ) -> Factor:
        """The best of several finest scales; `codes` are those of the rule, and are replaced."""
        fmt = self.fmt
        level = fmt.levels[0]
        scale = level.scale

        def times(codes: NDArray[Any]) -> Factor:
            if isinstance(scale, Real):
                return above.times(real_values(scale.dtype, codes), scale.arithmetic)
            return above.times(codes.astype(np.float32))

        def under(codes: NDArray[Any]) -> tuple[Wide, NDArray[np.int16]]:
            return _scaled(x, times(codes).reciprocal).exact, np.zeros(codes.shape, np.int16)

        candidates = neighbours(scale, codes)
        if fmt.choice is ScaleChoice.FOUR_OVER_SIX:
            assert isinstance(scale, Real)
            with np.errstate(over="ignore"):
                quotient = above.quotient(fmt, level, largest) * np.float32(FOUR_OVER_SIX)
            candidates = (codes, real_scales(scale, quotient, largest.zero)[0])
        codes[:] = choose(fmt, candidates, under)
        return times(codes)

    def _chosen_exponents(self, x: Finite, codes: NDArray[np.uint8]) -> NDArray[np.int16]:
        """The best of several finest exponents; `codes` are those of the rule, and are replaced."""
        scale = self.fmt.levels[0].scale
        assert isinstance(scale, Exponent)

        def exponents(codes: NDArray[np.uint8]) -> NDArray[np.int16]:
            return codes.astype(np.int16) - np.int16(scale.bias)

        exact = x.exact

        def under(codes: NDArray[np.uint8]) -> tuple[Wide, NDArray[np.int16]]:
            return exact, exponents(codes)

        codes[:] = choose(self.fmt, neighbours(scale, codes), under)
        return exponents(codes)

    def _exponents(
        self, x: Finite, found: dict[Level, NDArray[Any]]
    ) -> tuple[NDArray[np.int16], NDArray[np.bool_] | None]:
        """Exponents of the finest scales, (rows, groups), and which groups are empty.

        A group is empty where all values that share its exponent are 0; None where none is.
        """
        levels = [x for x in self.fmt.blocked if isinstance(x.scale, Exponent | Shift)]
        group = levels[-1].values
        x = x.in_rows(group)
        into = {level: found[level].reshape(-1, group // level.values) for level in levels}
        if x.bits is None or len(levels) > 2:
            return self._wide_exponents(x, into), None
        fine = group_max(x.upper, levels[0].values).reshape(into[levels[0]].shape)
        field = group_max(fine, fine.shape[1]) >> np.uint16(UPPER_FRACTION_BITS)
        exponent = self._fp32_exponents(x, fine, field, levels, into)
        unsure = np.flatnonzero(field <= max(SURE_FIELD, self.fmt.element.emax + 1))
        if not unsure.size:
            return exponent, None
        some = {level: codes[unsure] for level, codes in into.items()}
        exponent[unsure] = self._wide_exponents(Finite(x.bits[unsure], None), some)
        for level, codes in into.items():
            codes[unsure] = some[level]
        empty = np.zeros(len(field), bool)
        empty[unsure] = ~(x.bits[unsure] & MAGNITUDE).any(axis=1)
        return exponent, np.repeat(empty, fine.shape[1])

    def _fp32_exponents(
        self,
        x: Finite,
        fine: NDArray[np.uint16],
        field: NDArray[np.uint16],
        levels: Sequence[Level],
        into: dict[Level, NDArray[Any]],
    ) -> NDArray[np.int16]:
        """As `_wide_exponents`, from the exponent fields of the largest FP32 values; right where
        these are above `SURE_FIELD`.

        Args:
            x: the values, in rows of one exponent.
            fine: upper halves of the largest values of the finest groups, (rows, groups).
            field: exponent fields of the largest values of the rows.
            levels: the shift, if there is one, and the exponent.
            into: receives the codes of the levels.
        """
        scale = levels[-1].scale
        assert isinstance(scale, Exponent)
        assert x.bits is not None
        if scale.rule is Rule.FLOOR:
            largest = field.astype(np.uint32) << np.uint32(FP32.fraction_bits)
        else:
            largest = group_max(x.bits & MAGNITUDE, x.bits.shape[1])
        codes = fp32_exponents(scale, self.fmt.element, largest)[:, None]
        exponent = codes.astype(np.int16) - np.int16(scale.bias)
        into[levels[-1]][:] = codes
        if len(levels) == 1:
            return exponent
        most = np.uint16(levels[0].scale.largest_code)
        apart = field[:, None] - (fine >> np.uint16(UPPER_FRACTION_BITS))
        shift = np.where(fine == 0, most, np.minimum(apart, most))
        into[levels[0]][:] = shift
        return exponent - shift.view(np.int16)

    def _wide_exponents(self, x: Finite, found: dict[Level, NDArray[Any]]) -> NDArray[np.int16]:
        """Exponents of the finest scales, (rows, groups), from exact largest values."""
        exponent = above = None
        for level in self.fmt.blocked[::-1]:
            if not isinstance(level.scale, Exponent | Shift):
                continue
            largest = x.largest(level.values).exact
            top = log2(largest)
            if isinstance(level.scale, Exponent):
                codes = exponents(level.scale, self.fmt.element, largest)
                exponent = codes.astype(np.int16) - np.int16(level.scale.bias)
            else:
                assert exponent is not None
                assert above is not None
                most = level.scale.largest_code
                apart = np.minimum(spread(above, top.shape[1]) - top, most)
                codes = np.where(largest.significand == 0, most, apart).astype(np.uint8)
                exponent = spread(exponent, top.shape[1]) - codes.astype(np.int16)
            found[level][:] = codes
            above = top
        assert exponent is not None
        return exponent

    def _shifts(self, x: Finite, found: dict[Level, NDArray[Any]]) -> NDArray[np.int16]:
        """Exponents of the finest groups under real scales, (rows, groups), 0 or less.

        Args:
            x: the values over their real scales.
            found: receives the codes of the shifts.
        """
        shifts = self.fmt.shifts
        largest = x.largest(int(shifts[0].group)).bits
        assert largest is not None  # values over real scales are FP32
        tops = [fp32_log2(largest)]
        for fine, coarse in pairwise(shifts):
            size = coarse.values // fine.values
            shape = (len(largest), tops[-1].shape[1] // size)
            tops.append(group_max(tops[-1], size).reshape(shape))
        exponent = np.zeros((1, 1), np.int32)
        for level, top in zip(shifts[::-1], tops[::-1], strict=True):
            exponent = spread(exponent, top.shape[1])
            codes = np.clip(self.fmt.element.emax + exponent - top, 0, level.scale.largest_code)
            found[level][:] = codes
            exponent = exponent - codes
        return exponent.astype(np.int16)

    def _selected(
        self, x: Finite, words: NDArray[np.uint64] | None, scales: NDArray[Any]
    ) -> NDArray[np.uint8]:
        """Codes (groups, values) in the better element of each group; the codes of scales, (rows,
        groups), get the bits that select."""
        level = self.fmt.levels[0]
        random = None if words is None else words.reshape(-1, level.values)
        codes, second = selected_codes(self.quantiser, x.in_rows(level.values), random)
        bits = second.reshape(scales.shape).astype(scales.dtype)
        scales |= bits << scales.dtype.type(level.scale.bits - 1)
        return codes


def _scaled(x: Finite, reciprocal: Values32) -> Finite:
    """fp32(x * reciprocal), at most the largest finite value, with reciprocals (rows or 1, groups).

    An infinite reciprocal leaves 0 as it is.
    """
    groups = reciprocal.shape[1]
    if x.bits is not None:
        values = x.bits.view(np.float32)
        values = values.reshape(len(x.bits), groups, x.bits.shape[1] // groups)
        with np.errstate(over="ignore", invalid="ignore"):
            product = (values * reciprocal[..., None]).view(np.uint32).reshape(x.bits.shape)
        given, zero = x.bits, x.bits & MAGNITUDE == 0
    else:
        assert x.wide is not None
        shape = x.wide.significand.shape
        each = np.broadcast_to(reciprocal[..., None], (shape[0], groups, shape[1] // groups))
        factor, infinite = each.reshape(shape), np.isinf(each).reshape(shape)
        product = rounded_product(x.wide, np.where(infinite, np.float32(1), factor))
        product |= np.where(infinite, np.uint32(FP32.infinity), np.uint32(0))
        given, zero = product, x.wide.significand == 0
    scaled = Finite(product, None)
    if int(scaled.upper.max(initial=0)) < FP32.infinity >> 16:
        return scaled
    held = np.minimum(product & MAGNITUDE, np.uint32(FP32.max_finite))
    return Finite(np.where(zero, np.uint32(0), held) | given & FP32.sign_bit, None)
