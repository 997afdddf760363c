"""Scales with which decoders are tested have what they claim."""

import numpy as np
import pytest

from axs6.golden.formats import BF16, FP32, Float
from axs6.golden.scaling import real_values
from axs6.hw.units.real_scales import near_the_largest


@pytest.mark.parametrize("dtype", [FP32, BF16], ids=lambda dtype: dtype.name)
def test_products_round_up_to_what_is_too_large(dtype: Float) -> None:
    """25 is one of the few small numbers that FP32 scales bring so near the largest value."""
    values = np.tile(np.array([8, 25], np.float32), (300, 1))
    scales = near_the_largest(np.random.default_rng(0), dtype, values)
    products = scales.astype(np.uint32).view(np.float32).astype(np.float64)[:, None] * values
    last = real_values(dtype, np.array([dtype.max_finite], np.uint32)).astype(np.float64)[0]
    for binade in (1, 2):
        rounded = products >= binade * (last + 2.0**128) / 2
        rounded &= products < binade * 2.0**128
        assert rounded[:, 1].sum() > 30


def test_products_are_the_last_that_are_not_too_large() -> None:
    scales = near_the_largest(np.random.default_rng(0), FP32, np.ones((100, 3), np.float32))
    assert set((FP32.max_finite - scales).tolist()) >= {0, 1}
