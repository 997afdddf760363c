"""Long vectors of formats without exponents come to totals that FP32 rounds."""

import numpy as np
import pytest

from axs6.hw.registry import UNITS
from axs6.hw.units.block_dot import block_dot_items, shape_of
from axs6.hw.units.dot import dot_items
from axs6.hw.units.long_vectors import LAST, long_vectors


def items_of(fmt: str, block: int) -> tuple[dict, dict]:
    parameters = UNITS["dot"].parameters({"format": fmt, "block": block})
    items = long_vectors(shape_of(parameters))
    if shape_of(parameters).scaled:
        items["outer"] = np.full(len(items["last"]), 127 << 23)
    return items, parameters


@pytest.mark.parametrize(("fmt", "block"), [("int8", 8), ("vsq4", 16), ("int4", 32)])
def test_their_totals_are_rounded(fmt: str, block: int) -> None:
    items, parameters = items_of(fmt, block)
    sums = block_dot_items(items, parameters)["sum"].astype(np.int64)
    ends = np.flatnonzero(items["last"])
    totals = np.add.reduceat(sums, np.append(0, ends[:-1] + 1))
    values = dot_items(items, parameters)["value"].view(np.float32)
    unit = np.abs(values.astype(float)).max() / np.abs(totals).max()
    unit = 2.0 ** np.round(np.log2(unit))
    assert np.abs(totals).min() > 1 << 23
    assert {-1, 1} == set(np.sign(totals)) or len(ends) < 3
    assert np.mean(values != totals * unit) > 0.7


@pytest.mark.parametrize("fmt", ["int8", "int4"])
def test_sums_behind_have_any_size(fmt: str) -> None:
    items, parameters = items_of(fmt, 32)
    sums = np.abs(block_dot_items(items, parameters)["sum"].astype(np.int64))
    ends = np.flatnonzero(items["last"])
    behind = sums[(ends[:, None] - np.arange(LAST)).ravel()]
    assert len(np.unique(np.frexp(behind.astype(float))[1])) > 8


@pytest.mark.parametrize("fmt", ["mx9", "fp8_e4m3", "nvfp4"])
def test_formats_whose_sums_are_rounded_anyway_have_none(fmt: str) -> None:
    items, _ = items_of(fmt, 32)
    assert not len(items["last"])
