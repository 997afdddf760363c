"""Fused multiply-adds of float32 arrays, by float64."""

import numpy as np


def fused(a, b, c):
    """float32(a * b + c), rounded once.

    The product is exact in float64. The sum is rounded to odd there, so that the second rounding
    sees on which side of a tie it lies.
    """
    with np.errstate(all="ignore"):
        product, addend = np.float64(a) * np.float64(b), np.float64(c)
        total = product + addend
        part = total - product
        lost = (product - (total - part)) + (addend - part)
        inexact = np.isfinite(total) & (lost != 0)
        toward_zero = np.where(inexact & (lost * total < 0), np.nextafter(total, 0), total)
        bits = np.atleast_1d(toward_zero).view(np.int64) | np.atleast_1d(inexact)
        return bits.view(np.float64).astype(np.float32).reshape(total.shape)
