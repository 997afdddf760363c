"""Aligned terms of integers under real scales of blocks, read from docs/format.md in integers."""

import itertools

import numpy as np
import pytest

import axs6
from axs6.golden.accumulator import accumulator

SCALES = {"e4m3fn": (4, 3, 7), "float32": (8, 23, 127), "bfloat16": (8, 7, 127), "e5m3": (5, 3, 15)}
"""Bits of the exponent field and of the fraction, and the bias."""


def significand(code, scale):
    """A positive number as an integer with the bits of the fraction, and its exponent."""
    _, fraction, bias = SCALES[scale]
    field = code >> fraction
    hidden = (field > 0) << fraction
    return hidden + code % (1 << fraction), max(field, 1) - bias


def floor_shift(x, places, toward_zero):
    """x / 2^places, toward zero or minus infinity."""
    if places <= 0:
        return x << -places
    return -(-x >> places) if toward_zero and x < 0 else x >> places


def rounded(x, exponent, toward_zero, largest=24):
    """x * 2^exponent as an FP32 integer and its exponent: to nearest even or toward zero."""
    places = max(abs(x).bit_length() - largest, -149 - exponent)
    if places <= 0:
        return x, exponent
    kept = abs(x) >> places
    rest, half = abs(x) - (kept << places), 1 << places - 1
    kept += not toward_zero and (rest > half or (rest == half and kept & 1))
    return (kept if x >= 0 else -kept), exponent + places


def added(x, y, toward_zero):
    """The FP32 sum of two numbers."""
    low = min(x[1], y[1])
    return rounded((x[0] << x[1] - low) + (y[0] << y[1] - low), low, toward_zero)


def dot(a, b, bits, scale, group, how):
    """The dot product of two rows of codes and scales, as an integer and a power of two."""
    _, fraction, _ = SCALES[scale]
    reduction, kept = how.reduction, how.fraction
    lanes = min(group, reduction)
    toward_zero = how.alignment == "zero"
    largest = lanes * (1 << bits - 1) ** 2 * ((2 << fraction) - 1) ** 2
    point = largest.bit_length() - 1
    total = (0, 0)
    for start in range(0, len(a[0]), reduction):
        terms = []
        for first in range(start, start + reduction, lanes):
            products = [a[0][i] * b[0][i] for i in range(first, first + lanes)]
            (s, e), (t, f) = (significand(x[1][first // group], scale) for x in (a, b))
            # The significands multiply the exact sum; the exponents are that of its point.
            terms.append((sum(products) * s * t, e + f + point - 2 * fraction))
        if how.fused:
            exponent = max(abs(total[0]).bit_length() - 1 + total[1], -126)
            terms.append((total[0] << 60, exponent))
        top = max((e for x, e in terms if x or not toward_zero), default=0)
        unit = top - kept
        own = [terms.pop()] if how.fused else []
        aligned = [floor_shift(x, unit - e + point, toward_zero) for x, e in terms]
        aligned += [floor_shift(x, unit + 60 - total[1], toward_zero) for x, _ in own]
        rounds_down = how.rounding == "toward_zero"
        result = rounded(sum(aligned), unit, rounds_down)
        total = result if how.fused else added(total, result, rounds_down)
    return total


def operands(fmt, seed):
    """Blocks of values over several binades, for which the scales differ in a row."""
    rng = np.random.default_rng(seed)
    x = rng.standard_normal((8, 128)) * 2.0 ** rng.integers(-9, 10, (8, 8)).repeat(16, axis=1)
    return axs6.encode(x * 2.0 ** rng.integers(-3, 4, (8, 1)), fmt)


@pytest.mark.parametrize("how", ["paper", "hopper", "blackwell", "volta", "paper,reduction=32"])
@pytest.mark.parametrize(
    ("bits", "scale", "group"),
    [(8, "e4m3fn", 16), (4, "float32", 32), (8, "bfloat16", 32), (5, "e5m3", 16), (4, "e4m3fn", 4)],
)
def test_real_scales_over_integers(bits, scale, group, how):
    fmt = f"int{bits}_{scale}_t{group}"
    x, y = operands(fmt, 1), operands(fmt, 2)
    found = axs6.matmul(x, y, how)

    def rows(blocks):
        codes = blocks.codes.reshape(8, -1).astype(np.int64)
        signed = np.where(codes >> bits - 1, codes - (1 << bits), codes)
        scales = blocks.scales[0].reshape(8, -1).astype(np.int64)
        return list(zip(signed.tolist(), scales.tolist(), strict=True))

    for (m, a), (n, b) in itertools.product(enumerate(rows(x)), enumerate(rows(y))):
        value, exponent = dot(a, b, bits, scale, group, accumulator(how))
        assert found[m, n] == np.float32(np.ldexp(float(value), exponent))
