"""Vectors whose sums are hard have what their names say."""

from typing import Any

import numpy as np
import pytest

from axs6.golden.formats import FP32
from axs6.hw.units.block_dot import block_dot_items
from axs6.hw.units.blocks import special_codes
from axs6.hw.units.dot import DOT, dot_items, shape_of
from axs6.hw.units.hard_sums import CANCEL, LENGTH, hard_sums
from axs6.hw.units.sum_operands import largest_exponent, with_exponents


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


@pytest.mark.parametrize("name", ["mx4", "mxfp6_e3m2"])
def test_sums_have_any_two_ones(name: str) -> None:
    parameters = DOT.parameters({"format": name, "block": 32})
    sums = block_dot_items(hard_sums(shape_of(parameters)), parameters)["sum"].astype(np.int64)
    most = int(np.abs(sums).max()).bit_length() - 1
    lowest = min(int(x & -x) for x in sums if x)
    wanted = {1 << high | 1 << low for high in range(most) for low in range(high + 1)}
    assert {x for x in wanted if x & -x >= lowest} - set(np.abs(sums).tolist()) == set()


@pytest.mark.parametrize("name", ["axs6", "mxfp8_e5m2", "if4"])
def test_each_product_is_in_all_lanes(name: str) -> None:
    shape = shape_of(DOT.parameters({"format": name}))
    items = hard_sums(shape)
    a, b = (items[f"{side}.codes"] for side in "ab")
    alike = (a == a[:, :1]).all(axis=1) & (b == b[:, :1]).all(axis=1)
    sides = [
        np.setdiff1d(np.arange(1 << fmt.element.width), special_codes(fmt)) for fmt in shape.formats
    ]
    values = [fmt.element.integers.astype(np.int64) for fmt in shape.formats]
    found = set((values[0][a[alike, 0]] * values[1][b[alike, 0]]).tolist())
    every = set(np.outer(values[0][sides[0]], values[1][sides[1]]).ravel().tolist())
    assert found == every


def test_exponents_of_real_scales_leave_their_fractions() -> None:
    fmt = shape_of(DOT.parameters({"format": "nvfp4"})).a
    codes = np.arange(120)
    (found,) = with_exponents(fmt, {"scale": codes}, np.full(120, 5)).values()
    assert (found == 6 << 3 | codes & 7).all()
    assert largest_exponent(fmt) == 13


@pytest.mark.parametrize("name", ["nvfp4_ue5m3", "mx9"])
def test_sums_of_two_terms_carry_with_a_tie_but_for_the_lowest_place(name: str) -> None:
    """Of 24 bits of the sum, the last is 2; half of it is 1, with two zeros below and then ones."""
    items = hard_sums(shape_of(DOT.parameters({"format": name, "block": 16})))
    found = block_dot_items(items, DOT.parameters({"format": name, "block": 16}))
    sums, exponents = found["sum"].astype(object), found["exponent"].astype(object)
    ends = np.flatnonzero(items["last"])
    starts = np.append(0, ends[:-1] + 1)
    count = 0
    for last in ends[ends - starts == 1]:
        least = min(exponents[last - 1 : last + 1])
        terms = [sums[k] << exponents[k] - least for k in (last - 1, last)]
        total, widths = abs(sum(terms)), [abs(each).bit_length() for each in terms]
        dropped = total.bit_length() - 24
        if total.bit_length() > max(widths) and dropped > 3:
            rest = total & (1 << dropped) - 1
            count += rest >> dropped - 3 == 0b100 and rest & (1 << dropped - 3) - 1 > 0
    assert count > 10, count
