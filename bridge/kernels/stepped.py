"""Products in accumulators that take lanes in steps, or round in other ways than plain FP32."""

import ctypes
from ctypes import c_double, c_int32, c_int64, c_uint32, c_void_p
from dataclasses import replace
from enum import IntEnum
from functools import cache
from typing import Self

import numpy as np
from numpy.typing import NDArray

from axs6.golden import fp32
from axs6.golden.accumulator import Accumulator, Alignment
from axs6.golden.formats import FP32, BlockFormat, Exponent, Integer, Real
from axs6.golden.operands import IntegerForm
from axs6.golden.rounding import Rounding
from axs6.golden.sums import NOTHING
from axs6.golden.terms import FLOAT_BITS, Terms
from axs6.torch.kernels.library import Shape, library
from axs6.torch.kernels.packed import PANEL, Arrays, Packed, divisor_of
from axs6.torch.kernels.sums import FLOAT

FLOAT32_BITS = 24
"""Bits of integers that FP32 holds."""

FIELD_MAX = 62
"""Largest exponent of a lane: a sum of two, and the mark of a zero, fit in a byte."""

PRODUCT_BITS = 96
"""Maximum bits of products of lanes, exponents included."""

NARROW_BITS = 80
"""Maximum bits of products of lanes whose sums have no exponent too large for FP32."""

EXACT_BITS = 94
"""Maximum bits of exact sums, which are two float64 numbers."""

LONGER_BITS = 126
"""Maximum bits of exact sums, which are integers of 128 bits."""

LONGER_KEPT_BITS = 51
"""Maximum bits that are kept of terms that float64 rounds: two of it lie below them."""

EXPONENT_MAX = 900
"""Largest magnitude of exponents of products that float64 has as they are."""

WITHOUT_LIMIT = 1 << 30
"""Stands for a limit that no exponent reaches."""

WORD_LANES = 4
"""Lanes whose exponents lie in a word."""

FIXED = 1 << 20
"""Stands for the fraction bits of elements without exponents."""


class SumKind(IntEnum):
    """How the products of a step are added: see model.cpp."""

    FLOATS = 0
    WIDE = 1
    EXACT = 2
    PAIRS = 3
    LONGER_ALIGNED = 4
    LONGER_EXACT = 5
    LONGER_PAIRS = 6

    @property
    def longer(self) -> bool:
        """Whether products of lanes may have more bits than float64."""
        return self >= SumKind.LONGER_ALIGNED


class Steps(ctypes.Structure):
    """An accumulator as the kernels read it; stepped.hpp documents the fields."""

    _fields_ = [
        *(
            (name, c_int32)
            for name in (
                *("reduction", "term", "fraction", "point", "offset", "chunk", "floor", "zeros"),
                *("canceled", "least"),
                *("fused", "output_fraction", "output_emin", "truncate", "minus_zero", "promote"),
                *("scaled", "narrow", "sum_fraction", "groups", "reach", "highest", "kept"),
                *("longer",),
            )
        ),
        ("nan", c_uint32),
        ("largest", c_double),
        ("normal", c_double),
    ]


class Side(ctypes.Structure):
    """An operand as the kernels read it."""

    _fields_ = [
        *((name, c_void_p) for name in ("lanes", "exponents", "significands", "scales")),
        *((name, c_int64) for name in ("rows", "blocks", "block", "fraction")),
    ]

    @classmethod
    def of(cls, x: Packed, form: IntegerForm, arrays: Arrays) -> Self:
        """An operand whose lanes, exponents, significands and scales are `arrays`."""
        _, rows, blocks = x.shape
        element = form.format.element
        fraction = element.fraction_bits if form.apart and not element.fixed else FIXED
        scales = arrays[3].ctypes.data if form.scaled else None
        addresses = (a.ctypes.data for a in arrays[:3])
        return cls(*addresses, scales, rows, blocks, form.format.block, fraction)


class RowGroup(ctypes.Structure):
    """Rows side by side, as the kernels read them."""

    _fields_ = [(name, c_void_p) for name in ("lanes", "fields", "scales", "special")]


class Operands(ctypes.Structure):
    """Inputs of a product."""

    _fields_ = [
        *(("a", Side), ("b", Side), ("a_outer", c_void_p), ("b_outer", c_void_p)),
        ("right", RowGroup),
    ]


@cache
def steps(a: BlockFormat, b: BlockFormat, accumulator: Accumulator) -> tuple[Steps, SumKind] | None:
    """The description of a product for the kernels, and how they add its products.

    None if the kernels do not support it: terms that are added exactly under several exponents,
    aligned steps or groups of less than a word of lanes, too many bits, or pairwise sums that are
    not FP32 to nearest even.
    """
    try:
        terms = Terms.of(a, b, accumulator)
    except ValueError:
        return None
    kind = None if accumulator.output is None else _kind(terms)
    return None if kind is None else (_described(terms, kind), kind)


def _kind(terms: Terms) -> SumKind | None:
    accumulator = terms.accumulator
    if accumulator.pairwise:
        nearest = accumulator.rounding is Rounding.NEAREST
        if accumulator.output != FP32 or not nearest or not _has_exponents(terms):
            return None
        return _by_length(terms, SumKind.PAIRS, SumKind.LONGER_PAIRS)
    if accumulator.fused and accumulator.fraction is None:
        if terms.step > 1 or not _has_exponents(terms):
            return None
        return _by_length(terms, SumKind.EXACT, SumKind.LONGER_EXACT)
    return _aligned_kind(terms)


def _by_length(terms: Terms, short: SumKind, longer: SumKind) -> SumKind | None:
    """The kind of sums that are not aligned, for products that float64 holds and for others."""
    exact, bits = short is SumKind.EXACT, terms.bound.bit_length()
    forms = [replace(x, apart=True) for x in (terms.a, terms.b)]
    if all(map(_fits, forms)) and not (exact and bits > EXACT_BITS):
        return short
    return longer if all(map(_fits_apart, forms)) and not (exact and bits > LONGER_BITS) else None


def _has_exponents(terms: Terms) -> bool:
    """Whether float64 has the exponents of all terms."""
    highest = terms.bound.bit_length() + terms.offset + terms.largest_exponent
    return terms.offset >= -EXPONENT_MAX and highest <= EXPONENT_MAX


def _aligned_kind(terms: Terms) -> SumKind | None:
    accumulator, bits, groups = (
        terms.accumulator,
        terms.bound.bit_length(),
        terms.accumulator.groups,
    )
    if terms.reduction // groups % WORD_LANES or (groups > 1 and terms.block % terms.reduction):
        return None
    if accumulator.fraction is None and terms.step > 1:
        return None
    if accumulator.fraction is not None and terms.lanes > 1 and terms.lanes % WORD_LANES:
        return None
    if terms.aligned_bits > FLOAT_BITS:
        return None
    forms = (terms.a, terms.b)
    if bits > FLOAT_BITS or not all(map(_fits, forms)):
        kept = accumulator.fraction is None or _kept_bits(terms) <= LONGER_KEPT_BITS
        single = terms.lanes == 1 or bits <= LONGER_BITS
        longer = kept and single and _has_exponents(terms) and all(map(_fits_apart, forms))
        return SumKind.LONGER_ALIGNED if longer else None
    wide = bits > FLOAT32_BITS or _kept_bits(terms) > 31
    return SumKind.WIDE if wide else SumKind.FLOATS


def _fraction(terms: Terms) -> int:
    """Bits that are kept after the point of a term: of one term, all."""
    fraction = terms.accumulator.fraction
    return terms.point if fraction is None else fraction


def _kept_bits(terms: Terms) -> int:
    """Bits of the integer part of a term."""
    return max(terms.bound.bit_length() + _fraction(terms) - terms.point, 1)


def _described(terms: Terms, kind: SumKind) -> Steps:
    accumulator, bits = terms.accumulator, terms.bound.bit_length()
    output = accumulator.output
    assert output is not None
    exact = (SumKind.EXACT, SumKind.LONGER_EXACT)
    unaligned = accumulator.pairwise or kind in exact
    floor = accumulator.alignment is Alignment.FLOOR
    lanes = 1 if unaligned else terms.lanes
    part = min(terms.block, terms.reduction // accumulator.groups) // lanes
    room = 1 << 31 - min(_kept_bits(terms), 31)
    finite = bits + terms.largest_exponent + terms.offset <= FP32.bias + 1
    return Steps(
        reduction=terms.reduction,
        term=lanes,
        fraction=_fraction(terms),
        point=terms.point,
        offset=terms.offset,
        chunk=min(room, part) if kind is SumKind.FLOATS else part,
        floor=floor,
        zeros=floor,
        canceled=terms.gated_by_products,
        least=NOTHING if accumulator.least is None else accumulator.least,
        fused=accumulator.fused,
        output_fraction=output.fraction_bits,
        output_emin=output.emin,
        truncate=accumulator.rounding is Rounding.TOWARD_ZERO,
        minus_zero=accumulator.minus_zero,
        promote=accumulator.promote or 0,
        scaled=accumulator.scaled,
        narrow=_is_narrow(terms),
        sum_fraction=accumulator.sum_fraction or 0,
        groups=accumulator.groups,
        reach=WITHOUT_LIMIT if accumulator.reach is None else accumulator.reach,
        highest=WITHOUT_LIMIT if finite else FP32.bias + 1 + terms.point - bits,
        kept=accumulator.pairwise,
        longer=kind.longer,
        nan=accumulator.nan,
        largest=float(output.largest),
        normal=0 if accumulator.flush is None else 2.0**output.emin,
    )


def _is_narrow(terms: Terms) -> bool:
    """Whether FP32 holds all sums in units of products of lanes, none of them subnormal.

    Products of single lanes, without scales of blocks, in an accumulator that is truncated with
    them, as in tensor cores.
    """
    accumulator, output = terms.accumulator, terms.accumulator.output
    if accumulator.fraction is None or not accumulator.fused or terms.lanes > 1:
        return False
    if accumulator.alignment is not Alignment.ZERO or accumulator.rounding is Rounding.NEAREST:
        return False
    if accumulator.sum_fraction is not None or accumulator.minus_zero:
        return False
    forms = (terms.a, terms.b)
    bits = sum(x.bound.bit_length() + int(x.fields.max()) for x in forms)
    lowest = terms.offset + terms.point - accumulator.fraction
    least = FP32.emin if accumulator.least is None else max(accumulator.least, FP32.emin)
    return (
        terms.a.apart
        and not any(x.levels for x in forms)
        and output is not None
        and (output.exponent_bits, output.bias) == (FP32.exponent_bits, FP32.bias)
        and terms.aligned_bits <= FLOAT32_BITS
        and bits <= NARROW_BITS
        and lowest >= least
    )


def _fits(form: IntegerForm) -> bool:
    """Whether FP32 holds the integers of an operand, with exponents apart in a byte."""
    fmt, fields = form.format, int(form.fields.max())
    floats = form.apart and not fmt.element.fixed
    return (
        form.bound.bit_length() <= FLOAT32_BITS
        and fields <= FIELD_MAX
        and form.bound.bit_length() + fields <= PRODUCT_BITS // 2
        and not (floats and fmt.shifts)
    )


def _fits_apart(form: IntegerForm) -> bool:
    """Whether FP32 holds significands of scales, as it does elements, and a byte exponents."""
    fmt, fields = form.format, int(form.fields.max())
    significand = 1
    for level in form.levels:
        scale = level.scale
        if isinstance(scale, Real):
            significand *= (2 << scale.dtype.fraction_bits) - 1
        elif isinstance(scale, Integer):
            significand *= scale.largest_code
    floats = form.apart and not fmt.element.fixed
    return (
        significand.bit_length() <= FLOAT32_BITS
        and fields <= FIELD_MAX
        and not (floats and fmt.shifts)
    )


def multiply(
    a: Packed, b: Packed, accumulator: Accumulator, y: NDArray[np.float32], threads: int
) -> None:
    """Write a product of formats and an accumulator for which there are `steps`.

    Args:
        a, b: operands of shapes (G, M, K) and (G, N, K).
        accumulator: the accumulator.
        y: receives the product, (G, M, N), which is not empty.
        threads: threads that share the work.
    """
    batches, rows, blocks = a.shape
    columns, block = b.shape[1], a.layout.format.block
    formats = (a.layout.format, b.layout.format)
    found, terms = steps(*formats, accumulator), Terms.of(*formats, accumulator)
    assert found is not None
    description, kind = found
    left = _arrays(a, terms.a, accumulator.flush)
    shape = Shape(batches, rows, columns, blocks, block, threads)
    right, panels = _right(b, terms.b, shape, accumulator, description)
    outer = [None if x is None else x.ctypes.data for x in outer_scales(a, b)]
    operands = Operands(
        Side.of(a, terms.a, left),
        Side.of(b, terms.b, right),
        *outer,
        RowGroup(*(x.ctypes.data for x in panels)),
    )
    library().axs6_multiply_stepped(
        *(ctypes.byref(operands), ctypes.byref(description), ctypes.byref(shape)),
        *(kind, divisor_of(a.layout, b.layout), y.ctypes.data),
    )


def outer_scales(a: Packed, b: Packed) -> list[NDArray[np.float32] | None]:
    """Scales of rows and of columns, of neither or of both."""
    if a.outer is None and b.outer is None:
        return [None, None]
    return [np.ones(x.shape[:2], np.float32) if x.outer is None else x.outer for x in (a, b)]


def _arrays(x: Packed, form: IntegerForm, flush: int | None) -> Arrays:
    """Lanes in FP32, and the exponents and significands of the scales of blocks.

    Beside a scaled form, which has none of them, the scales as float64. Values below 2^flush are 0.
    """
    exponents = np.zeros(x.shape, np.int32)
    unit = form.offset - fp32.scale_bits(form.divisor)
    lanes = x.in_lanes(FLOAT)
    if flush is not None:
        blocks = lanes.reshape(*x.shape, -1)
        small = np.abs(blocks * x.factors[..., None]) < 2.0**flush
        lanes = np.where(small, np.float32(0), blocks).reshape(lanes.shape)
    if form.scaled:
        return lanes, exponents, np.ones(x.shape, np.float32), np.ldexp(x.factors, -unit)
    for level in form.format.blocked:
        scale = level.scale
        if isinstance(scale, Exponent):
            exponents += x.exponents
        elif isinstance(scale, Real):
            values = np.ldexp(x.factors, -x.layout.offset)
            _, above = np.frexp(np.nan_to_num(values))
            exponents += np.where(values == 0, 0, np.maximum(above - 1 - scale.dtype.emin, 0))
    significands = np.ldexp(x.factors, -(exponents + unit)).astype(np.float32)
    return lanes, exponents, significands


def _right(
    x: Packed, form: IntegerForm, shape: Shape, accumulator: Accumulator, description: Steps
) -> tuple[Arrays, Arrays]:
    """The arrays of the right operand, and its panels; cached, since weights are reused."""
    dealt = accumulator.groups, description.reduction if accumulator.groups > 1 else 0
    needed = description.zeros, description.kept, description.longer
    key = (*needed, *dealt, accumulator.flush, form.apart, form.scaled)
    if key not in x.stepped:
        arrays = _arrays(x, form, accumulator.flush)
        side = Side.of(x, form, arrays)
        panels, length = -(-shape.columns // PANEL), shape.blocks * shape.block
        out = (
            np.empty(
                (shape.batches, panels, length, PANEL),
                np.float64 if description.longer else np.float32,
            ),
            np.empty((shape.batches, panels, length // WORD_LANES, PANEL), np.int32),
            np.empty((shape.batches, panels, shape.blocks, PANEL), np.int32),
            np.zeros((shape.batches, panels, shape.blocks), np.uint8),
        )
        group = RowGroup(*(each.ctypes.data for each in out))
        library().axs6_pack_stepped(
            *(ctypes.byref(side), ctypes.byref(group)),
            *(ctypes.byref(description), ctypes.byref(shape)),
        )
        x.stepped[key] = arrays, out
    return x.stepped[key]
