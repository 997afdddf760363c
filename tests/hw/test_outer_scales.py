"""Outer scales of corners lie where products with totals are hardest to round."""

from fractions import Fraction

import numpy as np

from axs6.golden.formats import FP32
from axs6.hw.units.outer_scales import LEAST, aimed_scales


def product_places(total: np.float32, scale: np.float32) -> Fraction | None:
    """How far a product is from the middle between two FP32 numbers, in their distance."""
    product = abs(Fraction(float(total)) * Fraction(float(scale)))
    if not product:
        return None
    exponent = product.numerator.bit_length() - product.denominator.bit_length()
    exponent -= Fraction(2) ** exponent > product
    units = product / Fraction(2) ** max(exponent - FP32.fraction_bits, LEAST)
    return abs(units - int(units) - Fraction(1, 2))


def test_many_products_are_midpoints_or_a_single_1_beside_one() -> None:
    rng = np.random.default_rng(1)
    totals = rng.integers(0x3000_0000, 0x6000_0000, 2000).astype(np.uint32)
    totals[::2] &= np.uint32(0xFFFF_0000)
    scales = aimed_scales(np.random.default_rng(2), totals).astype(np.uint32).view(np.float32)
    kinds = {"middle": 0, "one beside": 0, "subnormal product": 0, "subnormal scale": 0}
    for total, scale in zip(totals.view(np.float32), scales, strict=True):
        places = product_places(total, scale) if np.isfinite(scale) else None
        if places is not None and places < Fraction(1, 2) and places.numerator in (0, 1):
            kinds["one beside" if places else "middle"] += 1
            kinds["subnormal product"] += abs(float(total) * float(scale)) < 2.0**-126
            kinds["subnormal scale"] += abs(scale) < np.float32(2.0**-126)
    assert kinds["middle"] + kinds["one beside"] > 600
    assert min(kinds.values()) > 90, kinds


def test_totals_that_are_no_numbers_have_scales_too() -> None:
    totals = np.array([0, 1 << 31, FP32.infinity, FP32.quiet_nan, 1], np.uint32)
    scales = aimed_scales(np.random.default_rng(3), np.repeat(totals, 100))
    assert scales.min() >= 0
    assert scales.max() < 1 << FP32.width
    assert len(np.unique(scales)) > 100
