"""Corners of dot products with an accumulator have what their names say."""

from collections.abc import Mapping
from itertools import product
from typing import Any

import numpy as np
import pytest

from axs6.golden.formats import FP32
from axs6.hw.units.accumulate import terms_of
from axs6.hw.units.accumulate_corners import TOTALS, added_distances, exact_ties, far_blocks
from axs6.hw.units.accumulate_steps import Corner, element_codes, items_of
from axs6.hw.units.dot import DOT
from axs6.hw.units.infinite_corners import infinite_terms
from axs6.hw.units.narrow_corners import DISTANCES, FEW, cancelled
from axs6.hw.units.pairwise_corners import pairwise_corners
from axs6.hw.units.product_corners import each_product
from axs6.hw.units.sum_operands import STEP_BITS, ProductSums


def results_of(given: Mapping[str, Any]) -> np.ndarray:
    parameters = DOT.parameters(given)
    found: np.ndarray = DOT.golden(DOT.corners(parameters), parameters)["value"]
    return found.astype(np.uint32)


@pytest.mark.parametrize("format", ["mxfp4", "mxint8"])
def test_totals_have_each_significand_of_fp16(format: str) -> None:
    results = results_of({"format": format, "block": 8, "accumulator": "turing_to_fp16"})
    normal = results[(results & 0x7FFFFFFF) >= 0x38800000]
    fractions = np.unique(normal[normal & 0x7FFFFFFF < FP32.infinity] >> 13 & 0x3FF)
    assert len(fractions) == 1 << 10


@pytest.mark.parametrize("format", ["axs6", "mx9", "mxfp8_e5m2"])
def test_lanes_add_up_to_a_number(format: str) -> None:
    terms = terms_of({"format": format, "block": 8, "accumulator": "turing"})
    a, b = (x.format.element.integers.astype(object) for x in (terms.a, terms.b))
    sums = ProductSums(terms)
    for number in (1, 961, 4095, 0xABCDEF, (1 << 24) - 1):
        steps = list(sums.steps(number))
        assert all(len(lanes) <= terms.reduction for lanes, _ in steps)
        assert sum(sum(a[x] * b[y] for x, y in lanes) << place for lanes, place in steps) == number


def test_numbers_are_one_step_without_scales() -> None:
    terms = terms_of({"format": "fp8_e4m3", "block": 8, "accumulator": "turing"})
    ((_, place),) = ProductSums(terms).steps((1 << STEP_BITS) - 1)
    assert place == 0


@pytest.mark.parametrize("format", ["nf4q6", "if4", "mxfp8_e5m2"])
def test_formats_without_a_product_of_1_have_corners(format: str) -> None:
    """And so have those whose other products are far above the least one."""
    given = {"format": format, "block": 8, "accumulator": "turing_to_fp16"}
    assert len(DOT.corners(DOT.parameters(given))["last"]) > TOTALS


@pytest.mark.parametrize("format", ["axs6", "mx4", "mxfp4"])
def test_scales_lower_a_step_by_every_distance(format: str) -> None:
    """Formats with and without shifts behind the exponent."""
    parameters = DOT.parameters({"format": format, "block": 8, "accumulator": "turing"})
    terms = terms_of(parameters)
    lane = (element_codes(terms.a)[-1][0], element_codes(terms.b)[-1][0])
    items = items_of([[Corner([lane], below)] for below in range(-30, 31)], terms)
    found = DOT.golden(items, parameters)["value"].astype(np.uint32).view(np.float32)
    np.testing.assert_array_equal(found[1:], found[:-1] / 2)


def test_codes_that_scales_select_are_not_negatives() -> None:
    """A table whose one value has no negative, but in the other table."""
    given = {"format": "razer", "block": 8, "accumulator": "turing_to_fp16"}
    parameters = DOT.parameters(given)
    items = DOT.corners(parameters)
    width = terms_of(parameters).a.format.element.width
    assert items["a.codes"].max() == (1 << width) - 1


def test_a_little_beyond_half_a_last_place_counts() -> None:
    """From ones, powers of two and other numbers, up and down."""
    parameters = DOT.parameters({"format": "mxint8", "block": 8, "accumulator": "cdna1"})
    terms = terms_of(parameters)
    found = DOT.golden(items_of([*exact_ties(terms)], terms), parameters)["value"]
    assert set((found[:2] & 0x7FFFFF).tolist()) == {1}
    assert set((found[:2] >> 31).tolist()) == {0, 1}
    fractions = set((found & 0x7FFFFF).tolist())
    assert {0x000001, 0x7FFFFF, 0x400001, 0x3FFFFF} <= fractions


def test_each_lane_has_products_about_as_large_as_are_infinite() -> None:
    given = {"format": "mxint8", "block": 8, "accumulator": "cdna3"}
    parameters = DOT.parameters(given)
    terms = terms_of(parameters)
    vectors = [*infinite_terms(terms)]
    every = DOT.golden(items_of(vectors, terms), parameters)["value"] & 0x7FFFFFFF
    assert (every > FP32.infinity).any()
    items = items_of([x for x in vectors if len(x) == 1], terms)
    found = DOT.golden(items, parameters)["value"] & 0x7FFFFFFF
    alone = (items["a.codes"] != 0).sum(axis=1) == 1
    for lane in range(terms.reduction):
        own = found[alone & (items["a.codes"][:, lane] != 0)]
        assert (own == FP32.infinity).any()
        assert (own == 0x7F000000).any()


def test_a_few_bits_are_left_where_blocks_cancel() -> None:
    parameters = DOT.parameters(
        {"format": "mxint8", "block": 8, "accumulator": "blackwell_to_fp16"}
    )
    terms = terms_of(parameters)
    vectors = [*cancelled(terms)]
    found = DOT.golden(items_of(vectors, terms), parameters)["value"].astype(np.uint32)
    totals = found.view(np.float32).reshape(-1, DISTANCES, 4)
    least = np.array([np.abs(each[each != 0]).min() for each in totals])
    assert len(least) == (1 << FEW) - 1
    # Totals of 1 in the last place that is kept, beside products at any distance above.
    assert set(least.tolist()) == {least[0]}
    assert np.sign(totals).min() == -1


def test_each_lane_is_far_from_the_first_block() -> None:
    given = {"format": "mxint8", "block": 8, "accumulator": "cdna3_fp8"}
    terms = terms_of(DOT.parameters(given))
    items = items_of([*far_blocks(terms)], terms)
    exponents = items["a.exponent"] + items["b.exponent"]
    distances = exponents[:, 0] - exponents[:, 1]
    assert {32, 128, 135, 263, -32, -128, -135, -263} <= set(distances.tolist())
    for lane in range(8, 16):
        own = distances[items["a.codes"][:, lane] != 0]
        assert set(own.tolist()) == set(distances.tolist())


@pytest.mark.parametrize("accumulator", ["cdna2_bf16", "cdna2_bf16_1k"])
def test_operands_and_sums_of_pairs_are_about_the_least_normal_number(accumulator: str) -> None:
    """In each lane, operands just below it and just above; and sums that become 0 for it."""
    parameters = DOT.parameters({"format": "mxint8", "block": 8, "accumulator": accumulator})
    terms = terms_of(parameters)
    items = items_of([*pairwise_corners(terms)], terms)
    operands = []
    for name, form in (("a", terms.a), ("b", terms.b)):
        codes = form.format.element.integers[items[f"{name}.codes"]].astype(np.float64)
        scales = items[f"{name}.exponent"].reshape(len(codes), -1)[:, :1] - 127
        operands.append(np.ldexp(codes, scales - form.one))
        for sizes in (operands[-1] * 2.0**126, operands[-1] * -(2.0**126)):
            assert ((sizes >= 0.5) & (sizes < 1)).sum(axis=0).min() > 100
            assert ((sizes >= 1) & (sizes < 2)).sum(axis=0).min() > 100
    products = np.multiply(*operands).reshape(len(items["last"]), -1, 2)
    normal = (np.abs([*operands, np.multiply(*operands)]) >= 2.0**-126).all(axis=0)
    sums = products.sum(axis=2)
    subnormal = (sums != 0) & (np.abs(sums) < 2.0**-126)
    subnormal &= normal.reshape(products.shape).all(axis=2)
    assert subnormal.sum(axis=0).min() > 100
    found = DOT.golden(items, parameters)["value"] & 0x7FFFFFFF
    assert (found[subnormal.all(axis=1)] == 0).all()
    assert (found[found > 0] >= 0x00800000).all()


@pytest.mark.parametrize("accumulator", ["cdna2_bf16", "cdna2"])
def test_pairs_and_steps_nearly_cancel(accumulator: str) -> None:
    """Large products of which 1 is left, under scales far from the least normal number too."""
    parameters = DOT.parameters({"format": "mxint8", "block": 8, "accumulator": accumulator})
    terms = terms_of(parameters)
    items = items_of([*pairwise_corners(terms)], terms)
    values = [
        form.format.element.integers[items[f"{name}.codes"]].astype(np.int64)
        for name, form in (("a", terms.a), ("b", terms.b))
    ]
    products = values[0] * values[1]
    found = DOT.golden(items, parameters)["value"] & 0x7FFFFFFF
    large = (np.abs(products).max(axis=1) > 1000) & (found > 0x20000000) & (found < FP32.infinity)
    for first in range(0, terms.reduction, 2):
        left = np.abs(products[:, first : first + 2].sum(axis=1))
        assert (large & (left == 1)).sum() > 10
    assert (large & (np.abs(products.sum(axis=1)) == 1)).sum() > 10


@pytest.mark.parametrize(
    ("format", "accumulator"), [("axs6", "cdna2"), ("fp8_e4m3", "blackwell_fp4")]
)
def test_each_lane_has_each_product(format: str, accumulator: str) -> None:
    """Each pair of elements but for signs, in steps with few zeros and with many."""
    given = {"format": format, "block": 8, "accumulator": accumulator}
    terms = terms_of(DOT.parameters(given))
    items = each_product(terms)
    values = [
        form.format.element.integers[items[f"{name}.codes"]].astype(np.int64)
        for name, form in (("a", terms.a), ("b", terms.b))
    ]
    products = values[0] * values[1]
    few = (products != 0).mean(axis=1) < 0.2
    assert 0.2 < few.mean() < 0.5
    a, b = (np.unique(np.abs(x[x != 0])) for x in values)
    for lane in range(terms.reduction):
        pairs = set(zip(*(np.abs(x[:, lane]).tolist() for x in values), strict=True))
        assert pairs >= {*product(a.tolist(), b.tolist())}
        assert {tuple(np.sign([x[lane], y[lane]])) for x, y in zip(*values, strict=True)} >= {
            (x, y) for x in (-1, 1) for y in (-1, 1)
        }
    # Of about the same size: most are within a small share of the largest one in their step.
    largest = np.abs(products).max(axis=1, keepdims=True)
    assert (np.abs(products) * 4 >= largest)[products != 0].mean() > 0.9


def test_distances_are_added_beyond_all_bits() -> None:
    """Nothing of the last block is left where both distances together are too large, even of a
    total that ends in a tie."""
    parameters = DOT.parameters({"format": "axs6", "block": 8, "accumulator": "hopper_to_fp16"})
    terms = terms_of(parameters)
    vectors = [*added_distances(terms)]
    assert len(vectors) == 3 * 31**2
    found = DOT.golden(items_of(vectors, terms), parameters)["value"]
    dropped = [[Corner(x.lanes[:8], x.below) if x.apart else x for x in v] for v in vectors]
    alone = DOT.golden(items_of(dropped, terms), parameters)["value"]
    beyond = np.array([v[1].below + v[1].apart > 31 for v in vectors])
    np.testing.assert_array_equal(found[beyond], alone[beyond])
    # Some bits further up the last block decides the tie.
    ties = np.array([v[1].below == 10 and 0 < v[1].apart < 10 for v in vectors])
    assert (found[ties] != alone[ties]).any()
