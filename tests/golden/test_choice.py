"""The choice of the scale, against squared errors in fractions."""

import re
from bisect import bisect_right
from dataclasses import replace
from fractions import Fraction
from functools import cache
from itertools import islice

import numpy as np
import pytest

from axs6.golden import decode, encode, matmul, pack, unpack
from axs6.golden.check.comparison import GOLDEN, Model
from axs6.golden.check.exact.blocks import scale_value
from axs6.golden.check.exact.formats import real_element
from axs6.golden.check.formats import CHECKS
from axs6.golden.check.subjects import CheckedFormat
from axs6.golden.choice import merits
from axs6.golden.floats import Wide
from axs6.golden.formats import (
    CATALOG,
    BlockFormat,
    Exponent,
    Level,
    ScaleChoice,
    block_format,
    name_of,
)
from axs6.golden.formats.block_format import MERIT_FRACTION
from axs6.golden.formats.codes import NotANumber
from axs6.golden.formats.floating import E2M1

CHOSEN = (
    *("mxfp4_mse", "mxfp4-ceil_mse", "msfp12_mse", "mxfp8_e4m3_mse"),
    *("sm4d_e8m0_t4_mse", "sm5_e5m0_t8_mse", "int4_e8m0_t16_mse"),
    *("nvfp4_mse", "nvfp4_four-over-six", "vsq4_mse", "e2m1fn_e4m3fn_t16_four-over-six"),
)
TABLE = "table5:0:2:-1:-8:-3:9:1_e8m0_t16"
SPECIAL, THRESHOLDS, RANDOM, STOCHASTIC, NONFINITE, *_ = CHECKS


def normal(rng, rows, columns, dtype):
    """Normal numbers over some binades, with outliers and zeros, of a dtype's precision."""
    x = rng.standard_normal((rows, columns)) * 2.0 ** rng.integers(-6, 6, (rows, 1))
    x[rng.random(x.shape) < 0.03] *= 16
    x[rng.random(x.shape) < 0.03] = 0
    x = x.astype(np.float32)
    return (x.view(np.uint32) & 0xFFFF0000).view(np.float32) if dtype == "bfloat16" else x


def candidates(blocks, plain):
    """Scales among which each finest one of `blocks` was chosen: values, those of `max` first."""
    fmt = blocks.format
    level = CheckedFormat.of(str(fmt)).definition.levels[0]
    largest, lowest = fmt.levels[0].scale.largest_code, 0
    if not isinstance(fmt.levels[0].scale, Exponent):
        lowest = 1
    found = []
    for code in plain.scales[-1].ravel().tolist():
        codes = [code, *(c for c in (code - 1, code + 1) if lowest <= c <= largest)]
        found.append([scale_value(c, level) for c in codes])
    return found


@cache
def magnitudes(element):
    """The magnitudes of an element in units, in order."""
    values = [element.integer(code) for code in range(1 << element.width)]
    found = {abs(v) for v in values if not isinstance(v, NotANumber)}
    return sorted(v for v in found if v <= element.largest_integer)


def squared_error(x, step, element):
    """The sum of the squared distances to the nearest multiples of a step, and of the magnitudes
    of codes, in steps."""
    table = magnitudes(element)
    total = counted = Fraction(0)
    for value in x:
        place = Fraction(float(abs(value))) / step
        low = min(bisect_right(table, place) - 1, len(table) - 2)
        near = min(table[low : low + 2], key=lambda q: abs(q - place))
        total += (place - near) ** 2
        counted += near
    return total * step**2, counted


@pytest.mark.parametrize("dtype", ["bfloat16", "float32"])
@pytest.mark.parametrize("name", CHOSEN)
def test_the_scale_has_the_least_squared_error(name, dtype):
    """For BF16 under powers of two exactly; else but for what is below 2^-11 of a unit."""
    rng = np.random.default_rng([5, *name.encode()])
    fmt = block_format(name)
    rows = 10 if fmt.exponent else 3
    x = normal(rng, rows, 96, dtype)
    blocks = encode(x, name)
    plain, size = encode(x, fmt.with_choice("max")), int(fmt.levels[0].group)
    four = fmt.choice is ScaleChoice.FOUR_OVER_SIX
    if not four:
        scales = candidates(blocks, plain)
    outer = np.ones(rows, np.float32)
    if fmt.outer:
        outer = np.broadcast_to(blocks.scales[0].view(np.float32), rows)
        assert four or np.array_equal(blocks.scales[0], plain.scales[0])
    level = CheckedFormat.of(name).definition.levels[0]
    changed = 0
    for k, code in enumerate(blocks.scales[-1].ravel().tolist()):
        values = x.reshape(-1, size)[k]
        row = Fraction(float(outer[k * size // 96]))
        chosen = scale_value(code, level)
        if four:
            top = np.float32(np.abs(values).max()) / np.float32(6) / outer[k * size // 96]
            tried = [by_hand(top * np.float32(times), level) for times in (1, 1.5)]
        else:
            tried = scales[k]
        assert chosen in tried
        errors = [squared_error(values, s * row * fmt.element.unit, fmt.element) for s in tried]
        at = tried.index(chosen)
        least = min(error for error, _ in errors)
        changed += at > 0
        if dtype == "bfloat16" and fmt.exponent:
            assert errors[at][0] == least
            assert errors.index(min(errors, key=lambda e: e[0])) == at
            continue
        most = max(n for _, n in errors) * (max(tried) * row * fmt.element.unit) ** 2 / 2**10
        power = sum(Fraction(float(v)) ** 2 for v in values)
        assert errors[at][0] <= least + most + power / 2**20
    assert changed


def by_hand(x, level):
    """The normal number of E4M3 nearest to `x`."""
    table = real_element(level).magnitudes[8:]
    low = min(max(bisect_right(table, Fraction(float(x))) - 1, 0), len(table) - 2)
    near = (low, low + 1)
    return table[min(near, key=lambda k: (abs(table[k] - Fraction(float(x))), k % 2))]


@pytest.mark.parametrize("check", [SPECIAL, RANDOM, NONFINITE])
@pytest.mark.parametrize(
    "name",
    [
        *("sm5_e5m0_t8_mse", "nvfp4_four-over-six"),
        "int6_e4m3fn_t4_e4m3fn_t8_bfloat16_t16_mse",  # more scales above than one of the block
    ],
)
def test_every_bit_is_that_of_the_exact_model(name, check):
    rng = np.random.default_rng([2, *name.encode()])
    few = list(islice(CHECKS[check](GOLDEN, CheckedFormat.of(name), rng, 1), 100))
    assert few
    assert all(c.model == c.exact for c in few)


def no_room(x, fmt, *args, **options):
    """The tensor's scale by 448 x 6."""
    plain = encode(x, fmt.with_choice("max"), *args, **options)
    if options.get("scale") is None and plain.scales[0] < 0x7F800000:
        options["scale"] = plain.scales[0].view(np.float32)
    return encode(x, fmt, *args, **options)


def the_rule(x, fmt, *args, **options):
    """The scale of the largest magnitude."""
    return replace(encode(x, fmt.with_choice("max"), *args, **options), format=fmt)


@pytest.mark.parametrize(
    ("wrong", "name", "check"),
    [
        (no_room, "nvfp4_four-over-six", RANDOM),
        (the_rule, "nvfp4_mse", RANDOM),
        (the_rule, "mxfp4_mse", RANDOM),
    ],
)
def test_a_wrong_choice_is_caught(wrong, name, check):
    rng = np.random.default_rng(3)
    made = CHECKS[check](Model(encode=wrong), CheckedFormat.of(name), rng, 20)
    assert any(c.model != c.exact for c in islice(made, 100))


def test_four_over_six_leaves_room_for_the_larger_scale():
    x = np.zeros((2, 16), np.float32)
    x[0, :2], x[1, 0] = (6, 5), 3
    blocks = encode(x, "nvfp4_four-over-six")
    assert blocks.scales[0].view(np.float32) == np.float32(6 / (6 * 256))
    # 6 and 5 become 4 and 3.33 under the scale for 4, and 6 and 5 under the other.
    assert decode(blocks)[0, :2].tolist() == [6.0, 4.5]
    assert blocks.scales[1].ravel().tolist() == [0x7C, 0x70]  # 384 and 128


ALIKE = np.array([4.0] * 16, np.float32)


def test_blocks_of_zeros_and_ties_have_the_scale_of_the_rule():
    zeros = encode(np.zeros((2, 32), np.float32), "mxfp4_mse")
    assert not zeros.exponents.any()
    assert not zeros.codes.any()
    for x in (np.zeros(32, np.float32), ALIKE, -ALIKE):  # all candidates hold 4 * 2^k exactly
        plain, mse = encode(x, "mxfp4_t16"), encode(x, "mxfp4_t16_mse")
        assert np.array_equal(plain.exponents, mse.exponents)
        assert np.array_equal(plain.codes, mse.codes)


def test_the_ends_of_the_codes():
    tiny = np.full(32, 2.0**-148, np.float32)
    assert encode(tiny, "mxfp4_mse").exponents.tolist() == [0]
    top = np.full(8, 3e38, np.float32)  # far above what the largest scale reaches
    blocks = encode(top, "sm5_e5m0_t8_mse")
    assert blocks.exponents.tolist() == [blocks.format.exponent.largest_code]
    assert (decode(blocks) == decode(encode(top, "sm5_e5m0_t8"))).all()


@pytest.mark.parametrize("name", ["mxfp4_mse", "msfp12_mse", "sm4d_e8m0_t4_mse", f"{TABLE}_mse"])
def test_merits_of_values_of_64_bits(name):
    """Of several blocks whose exponents differ, with values far below and above the elements, and
    such that just reach a whole number of units."""
    fmt, rng = block_format(name), np.random.default_rng(10)
    groups, size, element = 40, int(fmt.levels[0].group), fmt.element
    exponents = rng.integers(-9, 9, (groups, 1)).astype(np.int16)
    apart = rng.integers(-75, 8, (groups, size)) + exponents + element.emax - 63
    significands = rng.integers(1 << 63, 1 << 64, (groups, size), np.uint64)
    for place in np.argwhere(rng.random((groups, size)) < 0.5):
        whole = int(rng.integers(1, 64)) << 32
        whole <<= 64 - (whole // element.divisor).bit_length()
        significands[tuple(place)] = -(-whole // element.divisor)
    nothing = np.zeros((groups, size), bool)
    x = Wide(nothing, significands, apart, nothing, nothing)
    found = merits(fmt, x, exponents)
    codes = np.unique(element.integers[element.integers >= 0]).tolist()
    most = (1 << element.integer_bits + 1 + MERIT_FRACTION) - 1
    for row, exponent in enumerate(exponents[:, 0].tolist()):
        expected, unit = 0, Fraction(2) ** exponent * element.unit
        for k in range(size):
            value = int(significands[row, k]) * Fraction(2) ** int(apart[row, k]) / unit
            units = min(int(value * 2**MERIT_FRACTION), most)
            expected += max(c * (2 * units - (c << MERIT_FRACTION)) for c in codes)
        assert found[row, 0] == expected


@pytest.mark.parametrize("name", ["mxfp4_mse", "nvfp4_mse", "nvfp4_four-over-six", "vsq4_mse"])
def test_values_that_are_no_numbers(name):
    rng = np.random.default_rng(7)
    x = normal(rng, 1, 64, "float32")
    x[0, 3], x[0, 40] = np.nan, np.inf
    blocks = encode(x, name, nonfinite="saturate")
    found = decode(blocks)[0]
    assert found[3] == 0
    assert found[40] == np.abs(found).max() > 0
    kept = encode(np.where(np.isinf(x), 0, x), name, nonfinite="saturate")
    assert np.array_equal(kept.codes[0, 0], encode(np.nan_to_num(x, posinf=0), name).codes[0, 0])
    if blocks.format.has_nan:
        lost = decode(encode(x, name, nonfinite="propagate"))[0]
        assert np.isnan(lost[[3, 40]]).all()


@pytest.mark.parametrize("name", ["mxfp4_mse", "nvfp4_four-over-six"])
def test_scales_do_not_depend_on_the_rounding(name):
    rng = np.random.default_rng(8)
    x = normal(rng, 8, 128, "float32")
    nearest = encode(x, name)
    down = encode(x, name, "toward_zero")
    words = rng.integers(0, 1 << 16, x.shape)
    other = encode(x, name, "stochastic", random=words)
    for blocks in (down, other):
        assert all(np.array_equal(a, b) for a, b in zip(blocks.scales, nearest.scales, strict=True))
    assert not np.array_equal(down.codes, nearest.codes)


def test_the_parameter_is_the_part_of_the_name():
    x = normal(np.random.default_rng(9), 4, 64, "float32")
    blocks = encode(x, "nvfp4", choice="mse")
    assert name_of(blocks.format) == "nvfp4_mse"
    assert np.array_equal(blocks.codes, encode(x, "nvfp4_mse").codes)
    plain = encode(x, "nvfp4_mse", choice="max")
    assert plain.format == CATALOG["nvfp4"]
    back = unpack(pack(blocks), x.shape, "nvfp4")  # the choice changes no meaning
    assert np.array_equal(decode(back), decode(blocks))
    assert np.array_equal(matmul(back, back), matmul(blocks, blocks))


@pytest.mark.parametrize("name", CHOSEN)
def test_strings(name):
    fmt = block_format(name)
    assert name_of(fmt) == name_of(block_format(str(fmt)))
    assert block_format(str(fmt)) == fmt
    assert fmt.with_choice("max").choice is ScaleChoice.MAX


REFUSED = {
    "axs6_mse": "mse is not for modes, at 'mse' (character 6)",
    "mx4_mse": "mse is not for shifts",
    "uint8_float32_uint8_t16_mse": "mse is not for zero points",
    "int4_mse": "mse needs scales of blocks, not of a tensor",
    "fp8_e4m3_mse": "mse needs scales of blocks, not of a tensor",
    "mxfp4_four-over-six": "four-over-six needs scales of which one is 1.5 times another",
    "vsq4_four-over-six": "four-over-six needs elements e2m1fn, not int4",
    "int8_float32_t128_mse": "mse compares errors of at most 63 bits, not",
    "mxfp8_e5m2_mse": "mse compares errors of at most 63 bits, not 86",
    "mxfp4_mse_mse": "one choice alone is possible, at 'mse' (character 11)",
    "mxfp4_best": "a block alone, such as t16, is needed at 'best'",
}


@pytest.mark.parametrize("text", REFUSED)
def test_what_a_format_cannot_choose(text):
    with pytest.raises(ValueError, match=re.escape(REFUSED[text])) as caught:
        block_format(text)
    assert "\n" not in str(caught.value)


def test_unknown_choices():
    with pytest.raises(ValueError, match="choice must be one of max, four-over-six, mse, not 'x'"):
        BlockFormat(E2M1, [Level(Exponent(), 32)], choice="x")
    with pytest.raises(ValueError, match="choice must be one of max, four-over-six, mse, not 'x'"):
        encode([1.0], choice="x")
