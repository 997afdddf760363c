"""Vectors whose sums are hard have what their names say."""

from typing import Any

import numpy as np
import pytest

from axs6.golden.formats import FP32
from axs6.hw.units.block_dot import block_dot_items
from axs6.hw.units.dot import DOT, dot_items, shape_of
from axs6.hw.units.hard_sums import CANCEL, LENGTH, hard_sums


@pytest.mark.parametrize("name", ["axs6", "mx4", "mxfp8_e5m2", "nvfp4", "hif4"])
def test_the_first_term_cancels(name: str) -> None:
    parameters = DOT.parameters({"format": name})
    items = hard_sums(shape_of(parameters))
    found = block_dot_items(items, parameters)
    first, last = (found["sum"][k : CANCEL * LENGTH : LENGTH] for k in (0, LENGTH - 1))
    wide = "high" in found
    assert (
        (first.astype(object) + last.astype(object)) % (1 << 64 if wide else 1 << 80) == 0
    ).all()
    assert items["last"].reshape(-1)[: 2 * LENGTH].tolist() == 2 * ([0] * (LENGTH - 1) + [1])


@pytest.mark.parametrize("name", ["axs6", "mx4"])
def test_results_are_at_both_ends(name: str) -> None:
    parameters: dict[str, Any] = DOT.parameters({"format": name})
    found = dot_items(hard_sums(shape_of(parameters)), parameters)["value"] & ~np.uint32(1 << 31)
    subnormal = (found > 0) & (found < FP32.smallest_normal)
    largest = (found >= FP32.max_finite >> 23 << 23) & (found <= FP32.max_finite)
    assert subnormal.sum() > 500
    assert largest.sum() > 100
