"""Descriptions of formats for the kernels, and the formats that they support."""

import ctypes
from dataclasses import dataclass
from functools import cache, cached_property
from typing import Any

import numpy as np
from numpy.typing import NDArray

from axs6.golden import fp32
from axs6.golden.formats import (
    BF16,
    FP32,
    BlockFormat,
    Exponent,
    Integer,
    Real,
    Rule,
    ScaleChoice,
    Selected,
    Shift,
)
from axs6.golden.scaling import SMALLEST_SCALE, as_bf16
from axs6.golden.selection import FLOAT64_BITS, selection_bits
from axs6.torch.kernels.tables import LADDERS, TABLE_BITS, Ladder, as_table, parts

MAX_BLOCK = 256
"""Values of a block that the kernels quantise, at most."""

RULES = tuple(Rule)
"""Rules of exponent scales, in the order of their numbers."""

CHOICES = tuple(ScaleChoice)
"""Choices of scales, in the order of their numbers."""

FIELDS = (
    *("block", "group", "shift_top", "emax", "bias", "code_top", "rule", "precision"),
    *("unit", "fraction", "divisor", "signed_zero", "minus_zero", "offset"),
    *("choice", "ties_away", "wide_group", "wide_top"),
)


class FormatDescription(ctypes.Structure):
    """A format as the kernels read it; quantise.hpp documents the fields."""

    _fields_ = [
        *((name, ctypes.c_int32) for name in FIELDS),
        ("largest", ctypes.c_float),
        ("ladders", Ladder * LADDERS),
    ]


@dataclass(frozen=True, eq=False)
class Layout:
    """How the kernels hold values of a format as operands; `layout` makes one for each format.

    Args:
        format: the format.
        low, high: the smallest and the largest integer, without factors. offset: of the exponent of
        a factor.
    """

    format: BlockFormat
    low: int
    high: int
    offset: int

    @property
    def bound(self) -> int:
        """The largest magnitude of an integer, without factors."""
        return max(-self.low, self.high)

    @cached_property
    def block(self) -> int:
        """Values of a block."""
        return self.format.block

    @cached_property
    def exponent(self) -> Exponent | None:
        """The scale that alone makes the factors, if it is an exponent."""
        scales = [x.scale for x in self.format.blocked if not isinstance(x.scale, Shift)]
        return scales[0] if len(scales) == 1 and isinstance(scales[0], Exponent) else None

    @cached_property
    def magnitudes(self) -> NDArray[np.int64]:
        """Magnitudes of integers, those that there are among them."""
        element = self.format.element
        if not element.signed:
            return np.arange(self.bound + 1)
        top = sum(x.scale.largest_code for x in self.format.shifts)
        return np.unique(np.abs(element.integers))[:, None] << np.arange(top + 1)

    @cached_property
    def description(self) -> FormatDescription | None:
        """The description for `encode`; None if it does not support the format."""
        return description(self.format)

    @cached_property
    def real(self) -> bool:
        """Whether scales are real or integers, and `encode` takes the format."""
        return real_description(self.format) is not None


@cache
def layout(fmt: BlockFormat) -> Layout:
    """The layout of a format."""
    element, bias = fmt.element, fmt.exponent.bias if fmt.exponent else 0
    shift = sum(x.scale.largest_code for x in fmt.shifts)
    low, high = (int(x) << shift for x in (element.integers.min(), element.integers.max()))
    if not element.signed:  # less a zero point
        low = -high
    offset = element.emin - element.fraction_bits - shift - fp32.scale_bits(element.divisor)
    return Layout(fmt, low, high, offset - bias)


@cache
def description(fmt: BlockFormat) -> FormatDescription | None:
    """The description for the quantising kernels; None if they do not support the format.

    They take formats with an exponent for each block of one row, perhaps with one level of shifts
    below it.
    """
    levels = fmt.levels
    if fmt.rows > 1:
        return None
    scales = [level.scale for level in levels]
    kinds = [type(scale) for scale in scales]
    if kinds not in ([Exponent], [Shift, Exponent]) or not levels[-1].blocked:
        return None
    exponent = scales[-1]
    assert isinstance(exponent, Exponent)
    divided = fmt.element.divisor > 1
    if divided and fmt.element.listed:
        return None
    if fmt.block > MAX_BLOCK or (divided and (exponent.rule is not Rule.FLOOR or len(kinds) > 1)):
        return None
    if not _rounds(fmt):
        return None
    return FormatDescription(
        group=int(levels[0].group),
        shift_top=scales[0].largest_code if len(kinds) > 1 else 0,
        bias=exponent.bias,
        code_top=exponent.largest_code,
        rule=RULES.index(exponent.rule),
        **_element(fmt),
    )


class Scale(ctypes.Structure):
    """Scales of blocks below scales of rows, as the kernels read them; see real.hpp."""

    _fields_ = [
        *((name, ctypes.c_int32) for name in ("kind", "fraction", "bf16")),
        *((name, ctypes.c_float) for name in ("divisor", "least", "most", "zero")),
    ]


SHIFTS_MAX = 2
"""Levels of shifts below real scales, at most."""

KINDS = (None, Real, Integer)
"""Kinds of scales of blocks, in the order of their numbers."""

RATIO_MAX = 127
"""Numerator of an element up to which float64 finds integer scales."""


@cache
def real_description(fmt: BlockFormat) -> tuple[FormatDescription, Scale] | None:
    """The description of formats with real or integer scales and no exponents; None for others.

    They have an FP32 scale of channels or the tensor, or a scale of blocks of one row, or both, and
    no zero point. Below a scale of blocks there may be shifts. A scale of blocks may select one of
    two elements.
    """
    outer = [x.scale for x in fmt.outer]
    divided = fmt.element.divisor > 1 and not fmt.element.listed
    if fmt.rows > 1 or divided or fmt.block > MAX_BLOCK:
        return None
    if outer not in ([], [Real(FP32)]) or (fmt.shifts and fmt.element.listed):
        return None
    shifts = [(int(x.group), x.scale.largest_code) for x in fmt.shifts]
    if len(fmt.blocked) - len(shifts) > 1 or len(shifts) > SHIFTS_MAX or not _rounds(fmt):
        return None
    inner = fmt.blocked[-1].scale if fmt.blocked else None
    found = _block_scale(fmt, inner, bool(outer))
    if found is None:
        return None
    (group, top), (wide_group, wide_top) = [*shifts, (fmt.block, 0), (fmt.block, 0)][:2]
    sizes = {"group": group, "shift_top": top, "wide_group": wide_group, "wide_top": wide_top}
    return FormatDescription(**sizes, **_element(fmt)), found


def _block_scale(fmt: BlockFormat, inner: Any, below: bool) -> Scale | None:
    top = fmt.element.largest
    if inner is None:
        return Scale(0)
    if isinstance(inner, Integer) and below and top.numerator <= RATIO_MAX:
        return Scale(KINDS.index(Integer), 0, 0, float(top), 1, inner.largest_code)
    held = top.numerator.bit_length() <= FP32.fraction_bits
    if not isinstance(inner, Real) or inner.zero_point or not held:
        return None
    dtype, kind = inner.dtype, KINDS.index(Real)
    if dtype == FP32:
        limits = (float(SMALLEST_SCALE), float(dtype.largest), 1.0)
        return None if below else Scale(kind, dtype.fraction_bits, 0, float(top), *limits)
    least, bf16 = float(2.0**dtype.emin), inner.arithmetic == BF16
    by = float(as_bf16(np.array(1 / top, np.float32))) if bf16 else float(top)
    return Scale(kind, dtype.fraction_bits, bf16, by, least, float(dtype.largest), least)


def _element(fmt: BlockFormat) -> dict[str, Any]:
    """Fields of a description that follow from the element and the block."""
    element = fmt.element
    ladders = [Ladder.of(x, element) for x in parts(element)] if element.listed else []
    selected = len(ladders) > 1  # zeros have the signs that the ladders say
    return {
        "ladders": (Ladder * LADDERS)(*ladders),
        "block": fmt.block,
        "emax": element.emax,
        "precision": element.precision,
        "unit": element.emin - element.fraction_bits,
        "fraction": element.fraction_bits,
        "divisor": element.divisor,
        "largest": element.largest_integer,
        "signed_zero": element.has_negative_zero or selected,
        "minus_zero": element.signed_zero or selected,
        "offset": layout(fmt).offset,
        "choice": CHOICES.index(fmt.choice),
        "ties_away": element.ties_away,
    }


def _rounds(fmt: BlockFormat) -> bool:
    """Whether the kernels round to the element, and compare the errors under scales or in two
    elements, if they are compared: in float64."""
    element = fmt.element
    if element.listed and fmt.choice is not ScaleChoice.MAX:
        return False
    if element.listed and any(as_table(x) is None for x in parts(element)):
        return False
    if isinstance(element, Selected):
        return (
            selection_bits(element, fmt.block) <= FLOAT64_BITS
            and element.integer_bits <= TABLE_BITS
        )
    return fmt.choice is ScaleChoice.MAX or fmt.merit_bits <= FLOAT64_BITS
