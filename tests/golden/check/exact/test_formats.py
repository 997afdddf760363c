import random
from fractions import Fraction
from itertools import pairwise

import ml_dtypes
import numpy as np
import pytest

from axs6.golden.check.exact import axs6 as exact
from axs6.golden.check.exact.blocks import Block, decode_bits, decode_value, pack_block, pack_outer
from axs6.golden.check.exact.encode import encode
from axs6.golden.check.exact.floats import (
    BF16,
    FP16,
    FP32,
    FP64,
    Special,
    float_value,
    power,
    round_to_float,
)
from axs6.golden.check.exact.formats import (
    CATALOG,
    Definition,
    Exponent,
    Integer,
    Real,
    Shift,
    floating,
    sign_magnitude,
    twos_complement,
    unsigned,
)
from axs6.golden.check.exact.rounding import Rounding
from axs6.golden.check.exact.scales import exponent_code

PUBLIC = {
    ml_dtypes.float8_e4m3fn: (4, 3, "nan"),
    ml_dtypes.float8_e5m2: (5, 2, "ieee"),
    ml_dtypes.float8_e4m3fnuz: (4, 3, "fnuz"),
    ml_dtypes.float8_e5m2fnuz: (5, 2, "fnuz"),
    ml_dtypes.float8_e4m3b11fnuz: (4, 3, "fnuz", 11),
    ml_dtypes.float8_e3m4: (3, 4, "ieee"),
    ml_dtypes.float6_e3m2fn: (3, 2, "none"),
    ml_dtypes.float6_e2m3fn: (2, 3, "none"),
    ml_dtypes.float4_e2m1fn: (2, 1, "none"),
    np.float16: (5, 10, "ieee"),
    ml_dtypes.bfloat16: (8, 7, "ieee"),
}


def by_name(x):
    """A float as the exact model has it."""
    if x != x:
        return Special.NAN
    if x in (np.inf, -np.inf):
        return Special.INFINITY if x > 0 else Special.NEGATIVE_INFINITY
    return Special.NEGATIVE_ZERO if x == 0 and np.signbit(x) else Fraction(x)


@pytest.mark.parametrize(("dtype", "fields"), PUBLIC.items(), ids=str)
def test_values_of_all_codes_as_ml_dtypes(dtype, fields):
    element = floating(*fields)
    with np.errstate(invalid="ignore"):
        codes = np.arange(len(element.values)).astype(f"u{np.dtype(dtype).itemsize}")
        values = codes.view(dtype).astype(np.float64)
    assert list(element.values) == [by_name(x) for x in values.tolist()]
    if element.nan is not None:
        assert np.isnan(values[element.nan])


@pytest.mark.parametrize(("dtype", "fields"), PUBLIC.items(), ids=str)
def test_nearest_as_ml_dtypes(dtype, fields):
    element = floating(*fields)
    table = element.magnitudes
    middles = [(a + b) / 2 for a, b in pairwise(table)][:3000]
    x = np.array([float(m) for m in (*table[:3000], *middles)], np.float32)
    x = np.concatenate([x, np.nextafter(x, np.float32(0)), np.nextafter(x, np.float32(9e9))])
    x = x[x <= float(table[-1])]
    expected = x.astype(dtype).view(f"u{np.dtype(dtype).itemsize}").tolist()
    assert [element.nearest(Fraction(v)) for v in x.tolist()] == expected


def rows_of(count, size, seed=0):
    rng = random.Random(seed)
    values = [
        Special.NEGATIVE_ZERO if rng.random() < 0.05 else
        Fraction(rng.uniform(-1, 1)) * power(rng.randrange(-160, 130) if row % 7 == 0 else row % 9)
        for row in range(count) for _ in range(size)
    ]  # fmt: skip
    return [values[i * size : (i + 1) * size] for i in range(count)]


@pytest.mark.parametrize("block", [8, 16, 32])
@pytest.mark.parametrize("rounding", ["nearest", "toward_zero", "stochastic"])
def test_axs6_as_its_own_exact_model(block, rounding):
    definition = CATALOG["axs6"]._replace(levels=(Exponent(block, nan=False),))
    rng = random.Random(1)
    for row in rows_of(60, block):
        words = [rng.randrange(256) for _ in row]
        ((got,),) = encode([row], definition, Rounding(rounding, 8), [words])
        plain = [Fraction(0) if x is Special.NEGATIVE_ZERO else x for x in row]
        expected = exact.encode_block(plain, rounding, random=exact.Random(words, 8))
        assert got == Block(((expected[0],),), tuple(expected[1]))
        assert pack_block(got, definition) == exact.pack_block(*expected)
        for dtype in (FP32, BF16, FP64):
            bits = [decode_bits(got, i, definition, dtype) for i in range(block)]
            assert bits == [exact.decode_bits(expected[0], c, dtype) for c in expected[1]]


def single(values, definition, **options):
    """The only block of values, padded with zeros."""
    ((block,),) = encode([[*map(number, values)]], definition, **options)
    return block


def number(x):
    return x if isinstance(x, Special) else Fraction(x)


@pytest.mark.parametrize(
    ("rule", "tops"),
    [
        ("floor", {"4": 0, "6": 0, "7.99": 0, "8": 1}),
        ("ceil", {"4": 0, "4.0001": 1, "6": 1, "8": 1, "8.0001": 2}),
        ("even", {"4": 0, "6.999": 0, "7": 1, "8": 1, "13.999": 1, "14": 2}),
        ("rceil", {"6": 0, "6.0001": 1, "6.00000001": 0, "12": 1, "12.1": 2}),
    ],
)
def test_rules_of_an_exponent_of_e2m1(rule, tops):
    level = Exponent(32, rule=rule)
    got = {x: exponent_code(level, Fraction(x), CATALOG["mxfp4"]) - 127 for x in tops}
    assert got == tops


def test_exponents_are_held_to_the_codes_of_numbers():
    e4m3 = CATALOG["mxfp8_e4m3"]
    assert exponent_code(Exponent(32), power(-140), e4m3) == 0
    assert exponent_code(Exponent(32, rule="rceil"), power(-160), e4m3) == 0
    huge = CATALOG["mxint8"]
    assert exponent_code(Exponent(32, rule="ceil"), power(127) * Fraction(3, 2), huge) == 254
    narrow = Exponent(32, bits=4, nan=False)
    assert exponent_code(narrow, power(30), huge) == 15
    assert exponent_code(narrow._replace(nan=True), power(30), huge) == 14
    assert exponent_code(narrow, power(-30), huge) == 0


def test_mx9_shifts():
    # 1 at the exponent of the block; 3/4 of it lies one binade lower, and a pair of zeros too.
    block = single([1, Fraction(1, 4), Fraction(3, 4), Fraction(-1, 128)], CATALOG["mx9"])
    assert block.scales == ((127,), (0, 1, 1, 1, 1, 1, 1, 1))
    assert block.codes[:4] == (64, 16, 96, 128 + 1)
    assert decode_value(block, 2, CATALOG["mx9"]) == Fraction(3, 4)
    assert pack_block(block, CATALOG["mx9"])[:4].hex() == "7ffe4010"


def test_two_levels_of_shifts_add_up():
    element = sign_magnitude(4, Fraction(1, 8))
    definition = Definition(element, (Shift(2, 1), Shift(4, 2), Exponent(8)))
    block = single([8, 0, 0, 0, 1, 1, Fraction(1, 4), 0], definition)
    assert block.scales == ((130,), (0, 3), (0, 1, 0, 1))
    assert block.codes == (8, 0, 0, 0, 8, 8, 4, 0)


def test_vsq():
    definition = CATALOG["vsq4"]
    ((first, second),) = encode([[Fraction(x) for x in (105, *[0] * 15, 20, -7)]], definition)
    # g = 105 / (7 * 15) = 1; the second group takes ceil(20/7) = 3.
    assert first.scales == ((0x3F800000,), (15,))
    assert second.scales == ((0x3F800000,), (3,))
    assert (first.codes[0], second.codes[:2]) == (7, (7, 16 - 2))


def test_nvfp4():
    definition = CATALOG["nvfp4"]
    values = [2688, *[0] * 15, 6, -3, *[0] * 14]
    ((first, second),) = encode([[Fraction(x) for x in values]], definition)
    one = round_to_float(Fraction(1), FP32)
    assert first.scales == ((one,), (0x7E,))  # 448
    assert second.scales == ((one,), (0x38,))  # 1
    assert (first.codes[0], second.codes[:2]) == (7, (7, 13))
    given = encode([[Fraction(x) for x in values]], definition, given=Fraction(2))[0]
    assert given[1].scales == ((one + (1 << 23),), (0x30,))


def test_zero_scales():
    zeros = [Fraction(0), Special.NEGATIVE_ZERO]
    one = 0x3F800000
    assert single(zeros, CATALOG["mxfp4"]).scales == ((0,),)
    assert single(zeros, CATALOG["mxfp4"]).codes[:2] == (0, 8)
    assert single(zeros, CATALOG["mxint8"]).codes[:2] == (0, 0)
    assert single(zeros, CATALOG["mx6"]).scales == ((0,), (1,) * 8)
    assert single(zeros, CATALOG["nvfp4"]).scales == ((one,), (8,))
    assert single(zeros, CATALOG["vsq6"]).scales == ((one,), (1,))
    assert single(zeros, CATALOG["uint8"])[::2] == (((one,),), 0)


def test_zero_point():
    definition = CATALOG["uint8"]
    block = single([-1, 0, 2, 4], definition)  # 5/255 a step
    assert block.zero_point == 51
    assert block.codes[:5] == (0, 51, 153, 255, 51)
    assert decode_value(block, 1, definition) == 0
    step = float_value(block.scales[0][0], FP32)
    assert decode_value(block, 3, definition) == 204 * step


@pytest.mark.parametrize(
    ("name", "codes", "scales"),
    [
        ("mxfp8_e5m2", (0x7E, 0x7C, 0xFC), ((112,),)),
        ("mxfp8_e4m3", (0, 0, 0), ((255,),)),
        ("fp8_e4m3", (0, 0, 0), ((0x7FC00000,),)),
        ("nvfp4", (0, 0, 0), ((0x39C30C31,), (0x7F,))),
    ],
)
def test_propagation(name, codes, scales):
    values = [Special.NAN, Special.INFINITY, Special.NEGATIVE_INFINITY, Fraction(1)]
    block = single(values, CATALOG[name], nonfinite="propagate")
    assert (block.codes[:3], block.scales) == (codes, scales)
    decoded = decode_bits(block, 0, CATALOG[name], FP32)
    assert decoded == 0x7FC00000


def test_element_nan_leaves_the_scale():
    block = single([Special.NAN, 1], CATALOG["mxfp8_e4m3"], nonfinite="propagate")
    assert (block.scales, block.codes[:2]) == (((119,),), (0x7F, 0x78))


def test_saturation():
    values = [Special.NAN, Special.INFINITY, -power(128), Fraction(1)]
    block = single(values, CATALOG["mxfp4"])
    assert (block.scales, block.codes[:4]) == (((252,),), (0, 7, 15, 0))
    assert single([Special.NEGATIVE_INFINITY], CATALOG["int8"]).codes[0] == 0x81


def test_stochastic_rounding_within_a_binade():
    # 2.5 of E2M1 lies between 2 and 3: a quarter of a step below 2.75.
    values, words = [4, Fraction(11, 4), Fraction(11, 4)], [[15, 3, 4]]
    block = single(values, CATALOG["mxfp4"], rounding=Rounding("stochastic", 4), words=words)
    assert block.codes[:3] == (6, 4, 5)


def test_the_most_negative_code_is_read():
    block = Block(((127,),), (128,) * 32)
    assert decode_value(block, 0, CATALOG["mxint8"]) == -2


def test_decoding_rounds_once_and_is_held_to_the_largest():
    e5m2 = CATALOG["mxfp8_e5m2"]
    block = Block(((254,),), (0x7B, 0xFB, 0x80, *[1] * 29))
    patterns = [decode_bits(block, i, e5m2, BF16) for i in range(4)]
    assert patterns == [0x7F7F, 0xFF7F, 0x8000, round_to_float(power(111), BF16)]
    assert decode_bits(block, 0, e5m2, FP64) == round_to_float(57344 * power(127), FP64)
    assert decode_bits(block._replace(scales=((255,),)), 0, e5m2, FP16) == 0x7E00


def test_elements_of_integers():
    assert twos_complement(3, Fraction(1)).values == (0, 1, 2, 3, -4, -3, -2, -1)
    assert unsigned(2).values == (0, 1, 2, 3)
    assert sign_magnitude(1, Fraction(1)).values == (0, 1, Special.NEGATIVE_ZERO, -1)


def test_inner_real_scales_are_held_to_normal_numbers():
    definition = Definition(floating(2, 1, "none"), (Real(16, 4, 3, "nan"),))
    assert single([power(-30)], definition).scales == ((8,),)
    assert single([power(30)], definition).scales == ((0x7E,),)
    integers = Definition(twos_complement(4, Fraction(1)), (Integer(16, 2), Real("tensor")))
    assert single([21], integers).scales == ((0x3F800000,), (3,))


def test_scales_of_tensors_and_channels_come_before_the_blocks():
    rows = encode([[Fraction(127)], [Fraction(254)]], CATALOG["int8"])
    assert pack_outer(rows, CATALOG["int8"]).hex() == "00000040"
    rows = encode([[Fraction(105)], [Fraction(210)]], CATALOG["vsq4"])
    assert pack_outer(rows, CATALOG["vsq4"]).hex() == "0000803f" + "00000040"
    assert pack_block(rows[0][0], CATALOG["vsq4"])[:2].hex() == "7f00"
    rows = encode([[Fraction(-51), Fraction(204)]], CATALOG["uint8"])
    assert pack_outer(rows, CATALOG["uint8"]).hex() == "0000803f" + "33"


def test_values_beyond_fp32_are_its_largest():
    definition = Definition(floating(2, 1, "none"), (Exponent(32), Real("tensor")))
    ((block,),) = encode([[power(100), Fraction(1)]], definition, given=power(-60))
    assert (block.scales[1], block.codes[:2]) == ((252,), (7, 0))
    # 1 / 2^-126 / 2^-6 overflows: what is not 0 becomes the largest, and 0 stays.
    ((block,),) = encode([[power(-149), Fraction(0)]], CATALOG["nvfp4"])
    assert (block.scales, block.codes[:2]) == (((0x00800000,), (8,)), (7, 0))
