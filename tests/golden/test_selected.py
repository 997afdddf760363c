"""Elements that a scale selects: both are tried, and the better one is kept."""

import math

import numpy as np
import pytest

import axs6
from axs6.golden.finite import Finite
from axs6.golden.formats import Selected, ValueTable, block_format
from axs6.golden.formats.block_format import MERIT_FRACTION
from axs6.golden.formats.selected import IF4, RAZER
from axs6.golden.quantise import Quantiser
from axs6.golden.rounding import Rounding
from axs6.golden.selection import selected_codes, selection_bits, selects

FORMATS = ("if4", "razer", "e2m1fn+table0:1:2:3:4:5:6::::-6:-5:-4:-3:-2:-1_float16_t16")


def rows(count: int) -> np.ndarray:
    rng = np.random.default_rng(7)
    wide = rng.standard_normal((count, 16)) * np.exp2(rng.normal(0, 2, (count, 1)))
    return np.concatenate([wide, rng.integers(-7, 8, (count, 16))]).astype(np.float32)


@pytest.mark.parametrize("name", FORMATS)
def test_each_group_has_the_element_with_the_smaller_error(name: str) -> None:
    fmt, x = block_format(name), rows(400)
    blocks = axs6.encode(x, name)
    second = blocks.scales[-1] >> (fmt.levels[0].scale.bits - 1)
    assert 0 < second.mean() < 1
    errors, codes = [], []
    for part in fmt.parts:
        one = axs6.encode(x, part)
        assert (one.scales[-1] == fmt.levels[0].scale.number(blocks.scales[-1])).all()
        errors.append(((axs6.decode(one, np.float64) - x) ** 2).sum(axis=1))
        codes.append(one.codes)
    chosen = second.ravel().astype(bool)
    assert (blocks.codes == np.where(chosen[:, None, None], codes[1], codes[0])).all()
    best, other = np.where(chosen, errors[::-1], errors)
    assert (best <= other * (1 + 1e-3) + 1e-9).all()
    assert (best < other).mean() > 0.5


def test_equal_errors_keep_the_first_element() -> None:
    for name in ("if4", "razer"):
        blocks = axs6.encode(np.array([6, -6, 0, 0], np.float32), name)
        assert blocks.scales[-1][0] < 128


@pytest.mark.parametrize("rounding", [Rounding.NEAREST, Rounding.TOWARD_ZERO])
@pytest.mark.parametrize("name", FORMATS)
def test_codes_do_not_depend_on_how_a_value_is_looked_up(name: str, rounding: Rounding) -> None:
    element = block_format(name).element
    assert isinstance(element, Selected)
    upper = np.arange(1 << 16, dtype=np.uint32) << np.uint32(16)
    upper = upper[np.abs(upper.view(np.float32)) < 8]
    low = np.array([0, 1, 0x7FFF, 0x8000, 0xFFFF, *range(0, 1 << 16, 6553)], np.uint32)
    x = Finite((upper[:, None] | low).reshape(-1, 16), None)
    codes, second = selected_codes(Quantiser((element, element), rounding, 0), x, None)
    for number, part in enumerate(element.parts):
        own = Quantiser((part, part), rounding, 0)
        alone = own.codes(x, 16, np.zeros(len(codes), np.int16), None, None, None)
        here = second == bool(number)
        assert 0 < here.mean() < 1
        assert (codes[here] == alone[here]).all()


def test_the_values_of_if4_and_razer() -> None:
    e2m1 = [0, 0.5, 1, 1.5, 2, 3, 4, 6]
    halves = [float(x * RAZER.unit) for x in RAZER.integers.tolist()]
    negative = [-x for x in e2m1[1:]]
    assert halves == [*e2m1, 5, *negative, *e2m1, -5, *negative]
    sevenths = [round(float(x * IF4.unit) * 7 / 6, 9) for x in IF4.integers.tolist()[16:]]
    assert sevenths == [*range(8), 0, *range(-7, 0)]
    assert IF4.integers.tolist()[:16] == [*[14 * x for x in e2m1], 0, *[14 * x for x in negative]]


def test_nan_of_a_scale_is_nan_with_either_bit() -> None:
    blocks = axs6.encode(np.ones((1, 16), np.float32), "if4")
    for code in (0x7F, 0xFF):
        scales = (blocks.scales[0], np.full_like(blocks.scales[1], code))
        nan = axs6.Blocks(blocks.format, scales, blocks.codes, blocks.shape)
        assert np.isnan(axs6.decode(nan)).all()
        assert np.isnan(axs6.matmul(nan, blocks)).all()


@pytest.mark.parametrize(
    ("text", "message"),
    [
        ("if4_e8m0_t16", "elements if4 need a finest scale of blocks that is a real number with"),
        ("if4_float32", "elements if4 need a finest scale of blocks that is a real number with"),
        ("if4_ue4m3_t16", "a selector needs a scale with a sign bit to spare, which ue4m3 has not"),
        (
            "e2m1fn+e2m3fn_e4m3fn_t16",
            "two elements of a selection must have one width, not 4 and 6",
        ),
        ("e2m1fn+int4_e4m3fn_t16", "two elements of a selection must have the same largest"),
        ("if4_mse", "mse is not for elements that a scale selects"),
    ],
)
def test_other_selections_are_refused(text: str, message: str) -> None:
    with pytest.raises(ValueError, match=rf"is no block format: {message}"):
        block_format(text)


def test_a_selection_needs_two_plain_elements() -> None:
    with pytest.raises(ValueError, match=r"^a selection needs two elements without NaN"):
        Selected(IF4, IF4)  # type: ignore[arg-type]
    thirds, sevenths = ValueTable((0, 1, 2, 3), 0, 3), ValueTable((0, 1, 2, 7), 0, 7)
    with pytest.raises(
        ValueError, match=r"^the divisors of a selection must make 2\^n - 1, not 21"
    ):
        Selected(thirds, sevenths)


@pytest.mark.parametrize("name", ["if4", "if4_e4m3fn_t16_bfloat16_t32"])
def test_infinities_become_the_largest_value_of_the_element_that_is_selected(name: str) -> None:
    sevenths = np.float64([0, 1, 2, 3, 4, 5, 6, 7, -7, -5, -3, -1, 3, 5, 7, 1]) / 7
    halves = np.float64([0, 0.5, 1, 1.5, 2, 3, 4, 6, -6, -4, -0.5, -1, -1.5, 0.5, 1.5, 2]) / 6
    x = (np.stack([sevenths, halves]) * 3e38).astype(np.float32)
    x[:, 7], x[:, 8] = np.inf, -np.inf
    blocks = axs6.encode(x.ravel(), name, nonfinite="saturate")
    assert blocks.codes.reshape(2, 16)[:, [7, 8]].tolist() == [[7, 9], [7, 15]]


def lanes_with_merits_apart(element: Selected, apart: int) -> tuple[list[int], list[list[int]]]:
    """Magnitudes with their fractions, and codes in both elements whose merits are so far apart.

    In two lanes the merits are large and cancel. In two more of each of two codes, the sum of the
    magnitudes is what makes up the difference: its high and its low bits.
    """
    first, second = np.abs(element.integers).reshape(2, -1).tolist()
    codes, fraction = (1, 10), 1 << MERIT_FRACTION
    one, other = (second[code] - first[code] for code in codes)
    squares = sum(second[code] ** 2 - first[code] ** 2 for code in codes)
    total = fraction * squares + apart // 2
    assert math.gcd(one, other) == 2
    total, one, other = total // 2, one // 2, other // 2
    start = fraction * (first[codes[0]] + second[codes[0]])
    x = start + (total * pow(one, -1, other) - start) % other
    y = (total - one * x) // other
    assert one * x + other * y == total
    parts = [part for each in (x, y) for part in (each >> 24 << 24, each & (1 << 24) - 1)]
    low, high = first.index(0), 0
    every = [high, low, *(code for code in codes for _ in range(2))]
    return [1 << 38, 1 << 38, *parts], [every, [low, high, *every[2:]]]


@pytest.mark.parametrize("apart", [-4, 0, 4])
def test_merits_that_float64_does_not_hold_are_compared_exactly(apart: int) -> None:
    element = block_format("nf4+nf4q6_e4m3fn_t16").element
    assert isinstance(element, Selected)
    assert element.divisor == 1
    magnitudes, codes = lanes_with_merits_apart(element, apart)
    unit = 2.0 ** (element.unit_exponent - MERIT_FRACTION)
    x = np.array([magnitudes], np.float64) * unit
    values = x.astype(np.float32)
    assert (values == x).all()
    given = Finite.of(values, saturate=False)
    first, other = np.array(codes, np.uint16)
    second = selects(element, given, (first << 4 | other)[None])
    assert second.tolist() == [apart > 0]


@pytest.mark.parametrize("name", FORMATS)
def test_random_words_round_in_the_element_that_is_selected(name: str) -> None:
    """Words of 0 round toward zero; the largest ones up, but for what is next to a code."""
    x = rows(50)
    low = axs6.encode(x, name, "toward_zero")
    words = np.zeros(x.shape, np.uint32)
    found = axs6.encode(x, name, "stochastic", random=words)
    assert (found.scales[-1] == low.scales[-1]).all()
    assert (found.codes == low.codes).all()
    up = axs6.encode(x, name, "stochastic", random=words + 0xFFFF)
    assert (up.scales[-1] == low.scales[-1]).all()
    near, below, above = (
        np.abs(axs6.decode(y, np.float64)) for y in (axs6.encode(x, name), low, up)
    )
    assert (below <= near).all()
    assert (near <= above).all()
    assert (below < above).mean() > 0.5


@pytest.mark.parametrize("values", [1, 16, 32])
@pytest.mark.parametrize("name", FORMATS)
def test_merits_have_just_as_many_bits_as_they_need(name: str, values: int) -> None:
    """The largest difference of merits: values beyond all codes, whose codes are 0 and the
    largest one."""
    element = block_format(name).element
    assert isinstance(element, Selected)
    top = element.largest_integer
    most = (1 << element.integer_bits + 1 + MERIT_FRACTION) - 1
    largest = values * top * (2 * most - (top << MERIT_FRACTION))
    assert largest < 1 << selection_bits(element, values) < 2 * largest
