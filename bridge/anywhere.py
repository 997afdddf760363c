"""Blocks of many formats, and their products, by torch's operations on any device.

Every bit is the golden model's. Values are worked on in float64, which holds what FP32 and the
formats have exactly, FP32's subnormals too. Where the hardware rounds to FP32, so does
`axs6.torch.ieee`: an operation on FP32 values that is rounded to float64 and then to FP32 is
rounded as if once, because float64 has more than twice the bits.
"""

from collections.abc import Iterator
from dataclasses import dataclass
from functools import cache
from typing import Any

import numpy as np
import torch
from torch import Tensor

from axs6.golden import fp32
from axs6.golden.accumulator import Accumulator
from axs6.golden.blocks import Blocks
from axs6.golden.formats import FP32, BlockFormat, Exponent, Integer, Rule, Shift, block_format
from axs6.golden.nonfinite import NonFinite
from axs6.golden.rounding import RANDOM_BITS, Rounding
from axs6.golden.terms import FLOAT_BITS, Terms
from axs6.torch import kernels, quantise
from axs6.torch.ieee import SIGN, narrow, round_to_fp32, widen
from axs6.torch.kernels.layout import KINDS, RULES, description, layout, real_description
from axs6.torch.kernels.packed import held_blocks, packs
from axs6.torch.kernels.rows import row_scales
from axs6.torch.rounding import as_rows

PART_BITS = 17
"""Bits of the lower parts of wide integers: a sum of 2^12 products of two parts is exact."""

CHUNK_VALUES = 1 << 22
"""Values that are encoded at a time, so that their temporaries stay small."""

MAX_FINITE = torch.finfo(torch.float32).max


@dataclass(frozen=True, eq=False)
class Operand:
    """A batch of matrices in blocks.

    Args:
        format: of the blocks.
        lanes: an integer for each value, or NaN or an infinity, float64 of shape (G, R, n, B).
        factors: what the integers of a block are multiplied by, with a divisor such as AXS-6's over
            its power of two left out, float64 of shape (G, R, n); NaN where the scale is.
        outer: scales of rows, by which results are multiplied at the end, float32 of shape (G, R);
            None where the format has none.
    """

    format: BlockFormat
    lanes: Tensor
    factors: Tensor
    outer: Tensor | None


@cache
def multiplies(a: BlockFormat, b: BlockFormat) -> bool:
    """Whether `product` multiplies two formats."""
    if not (packs(a) and packs(b)):
        return False
    scales = (level.scale for fmt in (a, b) for level in fmt.blocked)
    if all(isinstance(scale, Exponent | Shift) for scale in scales):
        return max(layout(a).bound, layout(b).bound) < 1 << 2 * PART_BITS
    try:
        return Terms.of(a, b, Accumulator()).bound.bit_length() <= FLOAT_BITS
    except ValueError:
        return False


def prepare(x: Tensor, fmt: BlockFormat, scale: float | None = None) -> Operand:
    """Encode matrices (G, R, K) along K to nearest, as an operand.

    Args:
        x: float32, bfloat16 or float16; NaN becomes +0, an infinity the largest code.
        fmt: a format that `axs6.torch.kernels.encodes` accepts, under the scale.
        scale: of the tensor or of every row, instead of those that follow from the values.
    """
    found = list(_quantised(x, fmt, scale))
    lanes = torch.cat([each.lanes for each in found])
    factors = torch.cat([each.factors for each in found])
    leading = (*x.shape[:2], -1)
    outer = torch.cat([each.outer for each in found]).view(x.shape[:2]) if fmt.outer else None
    return Operand(fmt, lanes.view(*leading, fmt.block), factors.view(leading), outer)


def take(blocks: Blocks, device: torch.device) -> Operand:
    """The operand of matrices (G, R, K) that are encoded already, in a format that is held."""
    lanes, factors, _, outer = held_blocks(blocks)
    return Operand(
        blocks.format,
        torch.from_numpy(lanes.astype(np.float64)).to(device),
        torch.from_numpy(factors).to(device),
        None if outer is None else torch.from_numpy(outer).to(device),
    )


def fake_quantise(
    x: Tensor,
    format: str | BlockFormat = "axs6",
    rounding: str = "nearest",
    *,
    random: Tensor | None = None,
    random_bits: int = RANDOM_BITS,
    nonfinite: NonFinite = "error",
    scale: float | None = None,
    name: str = "values",
) -> Tensor:
    """As `axs6.torch.quantise.fake_quantise`: by `values` where nothing faster is there."""
    quantise.check_input(x, name)
    fmt = block_format(format)
    nearest = rounding == Rounding.NEAREST and random is None and x.dtype != torch.float64
    faster = quantise.has_kernels(x.device) or quantise.in_torch(fmt)
    if nearest and not faster and kernels.encodes(fmt, scale):
        if nonfinite == "saturate" or bool(x.isfinite().all()):
            return values(x, fmt, scale)
        if nonfinite == "error":
            quantise.refuse(x, name)
    return quantise.fake_quantise(
        x,
        fmt,
        rounding,
        random=random,
        random_bits=random_bits,
        nonfinite=nonfinite,
        scale=scale,
        name=name,
    )


def values(x: Tensor, fmt: BlockFormat, scale: float | None = None) -> Tensor:
    """Encode along the last axis to nearest, and decode: float32 of the shape of `x`.

    Args are those of `prepare`, for any shape (..., K).
    """
    divisor = fmt.element.divisor
    one = float(1 << fp32.scale_bits(divisor))
    parts = []
    for found in _quantised(x, fmt, scale):
        factors = found.factors * widen(found.outer).unsqueeze(-1) * one
        exact = found.lanes * factors.unsqueeze(-1)
        parts.append(narrow((exact / exact.new_tensor(divisor)).clamp(-MAX_FINITE, MAX_FINITE)))
    padded = torch.cat(parts).flatten(-2)
    return padded[:, : x.shape[-1]].reshape(x.shape)


def product(a: Operand, b: Operand) -> Tensor:
    """y[g, m, n] = sum over k of a[g, m, k] * b[g, n, k], as `axs6.matmul` defines it.

    Args:
        a, b: operands of shapes (G, M, K) and (G, N, K), of formats that `multiplies` accepts.

    Returns:
        float32 of shape (G, M, N). Subnormals are kept, overflow gives infinity, and a NaN is
        always 0x7fc00000.
    """
    terms = Terms.of(a.format, b.format, Accumulator())
    sums = _narrow_sums if terms.bound.bit_length() <= FLOAT_BITS else _wide_sums
    total = a.factors.new_zeros(*a.factors.shape[:2], b.factors.shape[1])
    for k in range(a.factors.shape[-1]):
        term = sums(a.lanes[:, :, k], b.lanes[:, :, k].mT)
        term = term * a.factors[:, :, k, None] * b.factors[:, None, :, k]
        total = round_to_fp32(total + round_to_fp32(term))
    # A tensor: some devices multiply by the reciprocal of a number.
    y = narrow(total / total.new_tensor(terms.divisor / (1 << terms.scale_bits)))
    outer = [x.outer for x in (a, b) if x.outer is not None]
    if outer:
        rows = a.outer.unsqueeze(-1) if a.outer is not None else y.new_ones(1)
        columns = b.outer.unsqueeze(-2) if b.outer is not None else y.new_ones(1)
        y = narrow(widen(y) * widen(narrow(widen(rows) * widen(columns))))
    return y.masked_fill_(y.isnan(), torch.nan)


def _narrow_sums(a: Tensor, b: Tensor) -> Tensor:
    """Products (G, M, B) by (G, B, N) whose sums float64 holds."""
    return torch.bmm(a, b)


def _wide_sums(a: Tensor, b: Tensor) -> Tensor:
    """As `_narrow_sums`, for sums with more bits: what rounds to the same FP32 value.

    Integers are parted, high * 2^17 + low, and the sums of the parts are put together as
    top * 2^34 + rest. Where float64 does not hold that, the bits far below FP32's last are one
    that says whether any of them is set.
    """
    whole = torch.bmm(a, b)
    (a_high, a_low), (b_high, b_low) = _parts(a), _parts(b)
    high, low = torch.bmm(a_high, b_high), torch.bmm(a_low, b_low).long()
    middle = (torch.bmm(a_high, b_low) + torch.bmm(a_low, b_high)).long()
    lower = (middle << PART_BITS) + low
    top = high.long() + (lower >> 2 * PART_BITS)
    rest = lower & (1 << 2 * PART_BITS) - 1
    kept = 2 * PART_BITS - 10
    sticky = (rest >> kept << kept) + ((rest & (1 << kept) - 1) != 0).long() * (1 << kept - 1)
    rest = torch.where(top.abs() < 1 << FLOAT_BITS - 2 * PART_BITS - 1, rest, sticky)
    exact = top.double() * float(1 << 2 * PART_BITS) + rest.double()
    return torch.where(whole.isfinite(), exact, whole)


def _parts(x: Tensor) -> tuple[Tensor, Tensor]:
    """High and low parts of integers; 0 where there is no number."""
    numbers = torch.where(x.isfinite(), x, 0.0)
    high = (numbers * 2.0**-PART_BITS).floor()
    return high, numbers - high * 2.0**PART_BITS


@dataclass(frozen=True, eq=False)
class _Quantised:
    """Some rows of blocks: lanes (R, n, B), with signs of zeros, factors (R, n), and the scales of
    the rows (R,), 1 without any."""

    lanes: Tensor
    factors: Tensor
    outer: Tensor


def _quantised(x: Tensor, fmt: BlockFormat, scale: float | None) -> Iterator[_Quantised]:
    """The rows of values (..., K), some at a time."""
    length = x.shape[-1]
    whole = x.detach().reshape(x.shape[:-1].numel(), length).float()
    scales = _scales_of_rows(whole, fmt, scale)
    step = max(1, CHUNK_VALUES // max(1, length))
    for start in range(0, max(1, len(whole)), step):
        part = whole[start : start + step]
        blocks = as_rows(part, fmt.block).view(len(part), -(-length // fmt.block), fmt.block)
        bits = blocks.view(torch.int32)
        bits = torch.where((bits & ~SIGN) > FP32.infinity, 0, bits)
        rows = scales[start : start + step]
        if description(fmt) is not None:
            lanes, factors = _under_exponents(bits, fmt)
        else:
            lanes, factors = _under_reals(bits, fmt, widen(rows))
        yield _Quantised(lanes, factors, rows)


def _scales_of_rows(x: Tensor, fmt: BlockFormat, scale: float | None) -> Tensor:
    """The scales of rows (R, K), float32; 1 where the format has none."""
    if not fmt.outer:
        return torch.ones(len(x), dtype=torch.float32, device=x.device)
    magnitudes = x.view(torch.int32) & ~SIGN
    magnitudes = torch.where(magnitudes > FP32.infinity, 0, magnitudes)
    top = magnitudes.new_zeros(len(x))
    if x.numel():
        top = magnitudes.amax(-1).clamp(max=FP32.max_finite)
    found = row_scales(top.cpu().numpy().view(np.uint32), fmt, scale)
    return torch.from_numpy(found).to(x.device)


def _under_exponents(bits: Tensor, fmt: BlockFormat) -> tuple[Tensor, Tensor]:
    """Lanes and factors of blocks under exponents, perhaps with shifts below them."""
    held: Any = description(fmt)
    infinite = (bits & ~SIGN) == FP32.infinity
    magnitudes = widen((bits & ~SIGN).clamp(max=FP32.max_finite).view(torch.float32))
    largest = magnitudes.amax(-1)
    codes = _codes(largest, held)
    shifts = torch.full_like(codes, held.shift_top).unsqueeze(-1)
    if held.shift_top:
        most = magnitudes.unflatten(-1, (-1, held.group)).amax(-1)
        below = binades(largest).unsqueeze(-1) - binades(most)
        shifts = torch.where(most > 0, below.clamp(max=held.shift_top), held.shift_top)
        shifts = shifts.repeat_interleave(held.group, -1)
    scales = (codes - held.bias + held.unit).unsqueeze(-1) - shifts
    q = _rounded(magnitudes * powers(-scales) * float(held.divisor), held)
    q = torch.where(infinite, held.largest, q) * powers(held.shift_top - shifts)
    return _signed(q, magnitudes, bits, held), powers(codes + held.offset)


def _codes(largest: Tensor, held: Any) -> Tensor:
    """Codes of the exponents of blocks, int64, from their largest magnitudes."""
    rule = RULES[held.rule]
    exponents = binades(largest) - held.emax
    significands = largest * powers(-binades(largest).clamp(min=-1022))
    if rule is Rule.CEIL:
        exponents += significands > 1
    elif rule is Rule.EVEN:
        exponents += significands >= 2 - 2.0 ** (-1 - held.precision)
    elif rule is Rule.RCEIL:
        top = largest.new_tensor(held.largest * 2.0**held.unit / held.divisor)
        quotients = widen(narrow(largest / top))
        exponents = binades(quotients)
        exponents += quotients * powers(-exponents.clamp(min=-1022)) > 1
    return torch.where(largest > 0, (exponents + held.bias).clamp(0, held.code_top), 0)


def _under_reals(bits: Tensor, fmt: BlockFormat, rows: Tensor) -> tuple[Tensor, Tensor]:
    """Lanes and factors of blocks under real or integer scales, in rows of these scales."""
    found: Any = real_description(fmt)
    held, scale = found
    magnitudes = widen((bits & ~SIGN).view(torch.float32))
    rows = rows.unsqueeze(-1)
    scales = _block_scales(magnitudes.amax(-1).clamp(max=MAX_FINITE), scale, rows)
    reciprocals = widen(narrow(widen(narrow(1 / rows)) / scales)).unsqueeze(-1)
    # Zero times an infinite reciprocal is no number, and stays 0.
    values = widen(narrow(magnitudes * reciprocals))
    values = torch.where(values > 0, values * 2.0**-held.unit, 0.0)
    q = _rounded(values.clamp(max=held.largest), held)
    return _signed(q, values, bits, held), scales * 2.0**held.offset


def _block_scales(largest: Tensor, scale: Any, rows: Tensor) -> Tensor:
    """Scales of blocks (R, n) with these largest magnitudes, in rows (R, 1); float64."""
    kind, divisor = KINDS[scale.kind], largest.new_tensor(scale.divisor)
    if kind is None:
        return torch.ones_like(largest)
    if kind is Integer:
        return (largest / (rows * divisor)).ceil().clamp(scale.least, scale.most)
    found = widen(narrow(widen(narrow(largest / divisor)) / rows)).clamp(scale.least, scale.most)
    steps = powers(binades(found) - scale.fraction)
    return torch.where(largest > 0, (found / steps).round() * steps, scale.zero)


def _rounded(x: Tensor, held: Any) -> Tensor:
    """Magnitudes in units rounded to elements, ties to even, and at most the largest."""
    if held.divisor > 1:
        return x.round().clamp(max=held.largest)
    steps = powers((binades(x) - held.fraction).clamp(min=0))
    return ((x / steps).round() * steps).clamp(max=held.largest)


def _signed(q: Tensor, values: Tensor, bits: Tensor, held: Any) -> Tensor:
    """Integers from magnitudes and patterns, zeros with the signs that the format has.

    `values` are the magnitudes before they were rounded.
    """
    negative = bits < 0
    if not held.signed_zero:
        negative &= q > 0
    elif not held.minus_zero:
        negative &= values > 0
    return torch.where(negative, -q, q)


def binades(x: Tensor) -> Tensor:
    """floor(log2 x) of float64 values that are positive and normal, int64; -1023 for zeros."""
    return (x.view(torch.int64) >> 52) - 1023


def powers(exponents: Tensor) -> Tensor:
    """2^e in float64, for int64 e from -1022 to 1023."""
    return (exponents + 1023 << 52).view(torch.float64)
