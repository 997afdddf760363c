"""Values as integers times factors of their blocks, by torch's operations on any device.

Every bit is the golden model's. Values are processed in float64, which holds all values of FP32 and
of the formats exactly. `axs6.torch.ieee` rounds to FP32 where the hardware does. Blocks with FP32
subnormals use its conversions, so that a thread's flush-to-zero mode has no effect.
"""

from collections.abc import Callable, Iterator
from dataclasses import dataclass
from typing import Any

import numpy as np
import torch
from torch import Tensor

from axs6.golden import fp32
from axs6.golden.formats import BF16, FP32, BlockFormat, Integer, Rule, ScaleChoice, ValueTable
from axs6.golden.formats.block_format import MERIT_FRACTION
from axs6.torch.ieee import SIGN, narrow, widen
from axs6.torch.kernels.layout import KINDS, RULES, description, layout, real_description
from axs6.torch.kernels.rows import row_scales
from axs6.torch.rounding import NEAREST, Rounder, as_rows

CHUNKS = {"cpu": 1 << 17}
"""Values processed at a time on the CPU: temporaries stay within a core's cache."""

CHUNK = 1 << 22
"""The same on other devices."""

MAX_FINITE = torch.finfo(torch.float32).max
LOWEST = 1 - FP32.bias
"""Exponent of the smallest normal FP32 value."""


@dataclass(frozen=True, eq=False)
class Quantised:
    """Some rows of blocks.

    Args:
        rows: which these are.
        lanes: integers with signs of zeros, float64 of shape (R, n, B); overwritten by the next.
        factors: their factors, without a divisor such as AXS-6's 31 over 32, float64 of shape (R,
        n). outer: scales of the rows, float32 of shape (R,); 1 without any. normal: whether all
        that is decoded is 0 or a normal FP32 value.
    """

    rows: slice
    lanes: Tensor
    factors: Tensor
    outer: Tensor
    normal: bool


def quantised(
    x: Tensor, fmt: BlockFormat, scale: float | None = None, rounder: Rounder = NEAREST
) -> Iterator[Quantised]:
    """The rows of values (..., K), encoded along K, some at a time.

    Args:
        x: float32, bfloat16 or float16; NaN becomes +0, an infinity the largest code.
        fmt: a format that `axs6.torch.kernels.encodes` accepts, under the scale.
        scale: of the tensor or of every row, instead of those that follow from the values.
        rounder: how values are rounded.
    """
    length = x.shape[-1]
    whole = x.detach().reshape(x.shape[:-1].numel(), length).float()
    scales = _scales_of_rows(whole, fmt, scale)
    step = max(1, CHUNKS.get(x.device.type, CHUNK) // max(1, length))
    blocks = -(-length // fmt.block)
    doubles = whole.new_empty(min(step, len(whole)), blocks, fmt.block, dtype=torch.float64)
    singles = torch.empty_like(doubles, dtype=torch.int32)
    for start in range(0, len(whole), step):
        part = whole[start : start + step]
        shape, rows = (len(part), blocks, fmt.block), slice(start, start + len(part))
        bits = as_rows(part, fmt.block).view(shape).view(torch.int32)
        chosen, outer = rounder.of(rows, shape), scales[rows]
        if description(fmt) is not None:
            buffers = (doubles[: len(part)], singles[: len(part)])
            found = _under_exponents(bits, fmt, chosen, *buffers)
            yield Quantised(rows, *found[:2], outer, found[2])
        else:
            yield Quantised(rows, *_under_reals(bits, fmt, chosen, outer), outer, False)


def values(
    x: Tensor, fmt: BlockFormat, scale: float | None = None, rounder: Rounder = NEAREST
) -> Tensor:
    """Encode along the last axis, and decode: float32 of the shape of `x`.

    Args are those of `quantised`.
    """
    divisor, bound = fmt.element.divisor, layout(fmt).bound
    # A value over the divisor is further than 2^-33 of it from the middle of two FP32 values, so
    # that a factor that is rounded to float64 gives the right one.
    one = (1 << fp32.scale_bits(divisor)) / divisor
    length = x.shape[-1]
    shape = (x.shape[:-1].numel(), -(-length // fmt.block) * fmt.block)
    out = torch.empty(shape, dtype=torch.float32, device=x.device)
    for found in quantised(x, fmt, scale, rounder):
        factors = found.factors * one
        if fmt.outer:
            factors *= widen(found.outer).unsqueeze(-1)
        exact = found.lanes.mul_(factors.unsqueeze(-1))
        if factors.numel() and float(factors.amax()) * bound > MAX_FINITE:
            exact.clamp_(-MAX_FINITE, MAX_FINITE)
        out[found.rows].view(exact.shape).copy_(exact if found.normal else narrow(exact))
    return out[:, :length].reshape(x.shape)


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


def _under_exponents(
    bits: Tensor, fmt: BlockFormat, rounder: Rounder, into: Tensor, scratch: Tensor
) -> tuple[Tensor, Tensor, bool]:
    """Lanes, written into a tensor, and factors of blocks under exponents, perhaps with shifts
    below them; and whether all decoded values are normal."""
    held: Any = description(fmt)
    magnitudes = torch.bitwise_and(bits, ~SIGN, out=scratch)
    top = magnitudes.amax(-1)
    infinite = None
    if top.numel() and int(top.amax()) >= FP32.infinity:
        infinite = magnitudes == FP32.infinity
        bits = torch.where(magnitudes > FP32.infinity, 0, bits - infinite.int())
        magnitudes = bits & ~SIGN
        top = magnitudes.amax(-1)
    codes = _codes(widen(top.view(torch.float32)), held)
    if fmt.choice is not ScaleChoice.MAX:
        codes = _best_codes(widen(magnitudes.view(torch.float32)), codes, fmt, held)
    finest = codes - held.bias - held.shift_top + held.unit - held.divisor.bit_length()
    # Where every step is so large, subnormals round to 0 whatever a random word is.
    small = torch.where(top > 0, finest < LOWEST + max(1, rounder.bits), False)
    normal = not bool(small.any())
    x = bits.view(torch.float32)
    x = into.copy_(x if normal else widen(x))
    scales = (codes - held.bias + held.unit).unsqueeze(-1)
    if held.shift_top:
        most = widen(magnitudes.unflatten(-1, (-1, held.group)).amax(-1).view(torch.float32))
        below = binades(widen(top.view(torch.float32))).unsqueeze(-1) - binades(most)
        shifts = torch.where(most > 0, below.clamp(max=held.shift_top), held.shift_top)
        scales = scales - shifts
    grouped = x.unflatten(-1, (scales.shape[-1], -1))
    grouped.mul_((powers(-scales) * float(held.divisor)).unsqueeze(-1))
    q = _rounded(x, fmt, held, rounder)
    if infinite is not None and not fmt.element.listed:
        q.copy_(torch.where(infinite, q.sign() * held.largest, q))
    if held.shift_top:
        q.unflatten(-1, (scales.shape[-1], -1)).mul_(powers(held.shift_top - shifts).unsqueeze(-1))
    if not held.signed_zero:
        q.add_(0.0)
    elif not held.minus_zero and bits.numel() and int(bits.amin()) == SIGN:
        q.masked_fill_(bits == SIGN, 0.0)
    return q, powers(codes + held.offset), normal


def _codes(largest: Tensor, held: Any) -> Tensor:
    """Codes of the exponents of blocks, int64, from their largest magnitudes."""
    rule = RULES[held.rule]
    exponents = binades(largest) - held.emax
    if rule in (Rule.CEIL, Rule.EVEN):
        significands = largest * powers(-binades(largest).clamp(min=-1022))
        least = 2 - 2.0 ** (-1 - held.precision)
        exponents += significands > 1 if rule is Rule.CEIL else significands >= least
    elif rule is Rule.RCEIL:
        top = largest.new_tensor(held.largest * 2.0**held.unit / held.divisor)
        quotients = widen(narrow(largest / top))
        exponents = binades(quotients)
        exponents += quotients * powers(-exponents.clamp(min=-1022)) > 1
    return torch.where(largest > 0, (exponents + held.bias).clamp(0, held.code_top), 0)


def _best_codes(magnitudes: Tensor, codes: Tensor, fmt: BlockFormat, held: Any) -> Tensor:
    """The codes of the rule or their neighbours: the first ones with the largest merit."""

    def merits(found: Tensor) -> Tensor:
        over = powers(held.bias - held.unit - found) * float(held.divisor)
        return _merits(magnitudes * over.unsqueeze(-1), fmt, held) * powers(2 * (found - codes))

    others = (codes - 1).clamp(min=0), (codes + 1).clamp(max=held.code_top)
    return _best(merits, codes, *others)


def _best(merits: Callable[[Tensor], Tensor], best: Tensor, *others: Tensor) -> Tensor:
    """The first of the scales with the largest merits."""
    most = merits(best)
    for other in others:
        found = merits(other)
        best = torch.where(found > most, other, best)
        most = torch.maximum(found, most)
    return best


def _merits(x: Tensor, fmt: BlockFormat, held: Any) -> Tensor:
    """Merits of scales in units of them, as `axs6.golden.choice` has them, from magnitudes over
    their scales in units of the element; all is exact, and `x` is overwritten."""
    fraction = 2.0**MERIT_FRACTION
    most = 4 * 2.0 ** (fmt.element.integer_bits - 1) * fraction - 1
    whole = (x * fraction).clamp_(max=most).trunc_()
    q = _rounded(x.clamp_(max=held.largest), fmt, held, NEAREST)
    return (q * (2 * whole - q * fraction)).sum(-1)


def _under_reals(
    bits: Tensor, fmt: BlockFormat, rounder: Rounder, rows: Tensor
) -> tuple[Tensor, Tensor]:
    """Lanes and factors of blocks under real or integer scales, in rows of these scales."""
    found: Any = real_description(fmt)
    held, scale = found
    bits = torch.where((bits & ~SIGN) > FP32.infinity, 0, bits)
    magnitudes = widen((bits & ~SIGN).view(torch.float32))
    rows = widen(rows).unsqueeze(-1)

    def over(scales: Tensor, magnitudes: Tensor = magnitudes) -> Tensor:
        reciprocals = widen(narrow(widen(narrow(1 / rows)) / scales)).unsqueeze(-1)
        if scale.bf16:
            reciprocals = _nearest(reciprocals, BF16.fraction_bits)
        # Zero times an infinite reciprocal is no number, and stays 0.
        values = widen(narrow(magnitudes * reciprocals))
        return torch.where(values > 0, values * 2.0**-held.unit, 0.0)

    def merits(scales: Tensor) -> Tensor:
        finite = magnitudes.clamp(max=MAX_FINITE)
        return _merits(over(scales, finite), fmt, held) * scales.square()

    largest = magnitudes.amax(-1).clamp(max=MAX_FINITE)
    scales = _block_scales(largest, scale, rows)
    if fmt.choice is ScaleChoice.FOUR_OVER_SIX:
        scales = _best(merits, scales, _block_scales(largest, scale, rows, 1.5))
    elif fmt.choice is ScaleChoice.MSE:
        scales = _best(merits, scales, *_neighbours(scales, scale))
    values, negative = over(scales), bits < 0
    if fmt.element.listed:
        q = _rounded(torch.where(negative, -values, values), fmt, held, rounder)
        return q, scales * 2.0**held.offset
    shifts = _shifts(over(scales, magnitudes.clamp(max=MAX_FINITE)), held)
    grouped = values.unflatten(-1, (shifts.shape[-1], -1)) * powers(shifts).unsqueeze(-1)
    q = _rounded(grouped.clamp_(max=held.largest), fmt, held, rounder)
    q = q.mul_(powers(held.shift_top + held.wide_top - shifts).unsqueeze(-1)).flatten(-2)
    if not held.signed_zero:
        negative &= q > 0
    elif not held.minus_zero:
        negative &= values > 0
    return torch.where(negative, -q, q), scales * 2.0**held.offset


def _shifts(values: Tensor, held: Any) -> Tensor:
    """The sums of shifts of the finest groups (R, n, groups), from magnitudes in units."""
    shifts = torch.zeros_like(values[..., :1], dtype=torch.int64)
    for size, most in ((held.wide_group, held.wide_top), (held.group, held.shift_top)):
        tops = binades(values.unflatten(-1, (-1, size)).amax(-1))
        shifts = shifts.repeat_interleave(tops.shape[-1] // shifts.shape[-1], -1)
        shifts = shifts + (held.emax - held.unit - shifts - tops).clamp(0, most)
    return shifts


def _neighbours(scales: Tensor, scale: Any) -> tuple[Tensor, Tensor]:
    """The scales before and after some, held to the smallest and the largest."""
    if KINDS[scale.kind] is Integer:
        found = scales - 1, scales + 1
    else:
        bits, step = scales.float().view(torch.int32), 1 << FP32.fraction_bits - scale.fraction
        before, after = ((bits + x).view(torch.float32) for x in (-step, step))
        found = before.double(), after.double()
    before, after = (x.clamp(scale.least, scale.most) for x in found)
    return before, after


def _block_scales(largest: Tensor, scale: Any, rows: Tensor, times: float = 1) -> Tensor:
    """Scales of blocks (R, n) with these largest magnitudes, in rows (R, 1); float64.

    A real scale is that of so many times as much.
    """
    kind, divisor = KINDS[scale.kind], largest.new_tensor(scale.divisor)
    if kind is None:
        return torch.ones_like(largest)
    if kind is Integer:
        return (largest / (rows * divisor)).ceil().clamp(scale.least, scale.most)
    if scale.bf16:
        found = widen(narrow(largest * divisor)).clamp(min=scale.least)
        found = _nearest(found, BF16.fraction_bits)
    else:
        found = widen(narrow(widen(narrow(largest / divisor)) / rows))
    found = widen(narrow(found * times)).clamp(scale.least, scale.most)
    return torch.where(largest > 0, _nearest(found, scale.fraction), scale.zero)


def _nearest(x: Tensor, fraction: int) -> Tensor:
    """Values rounded to `fraction` bits after the leading one, ties to even."""
    steps = powers(binades(x) - fraction)
    return (x / steps).round() * steps


def _rounded(x: Tensor, fmt: BlockFormat, held: Any, rounder: Rounder) -> Tensor:
    """Values in units rounded to elements, at most the largest; zeros keep signs. Overwrites `x`.

    They have at most 29 significant bits, so that all operations here are exact.
    """
    if isinstance(fmt.element, ValueTable):
        return rounder.listed(x, fmt.element)
    if fmt.element.fixed:
        return rounder.round_(x, fmt.element.ties_away).clamp_(-held.largest, held.largest)
    exponents = (binades(x) - held.fraction).clamp_(min=0)
    steps = powers(exponents)
    return (
        rounder.round_(x.mul_(powers(-exponents))).mul_(steps).clamp_(-held.largest, held.largest)
    )


def binades(x: Tensor) -> Tensor:
    """floor(log2 |x|) of float64 values that are normal, int64; -1023 for zeros."""
    return (x.view(torch.int64) >> 52 & 0x7FF) - 1023


def powers(exponents: Tensor) -> Tensor:
    """2^e in float64, for int64 e from -1022 to 1023."""
    return (exponents + 1023 << 52).view(torch.float64)
