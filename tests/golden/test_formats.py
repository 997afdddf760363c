import re
from fractions import Fraction

import ml_dtypes
import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from axs6.golden import decode, encode
from axs6.golden.formats import (
    BF16,
    CATALOG,
    CHANNEL,
    FP16,
    FP32,
    TENSOR,
    BlockFormat,
    Exponent,
    Float,
    Integer,
    Level,
    Mode,
    Real,
    Rule,
    ScaleChoice,
    Shift,
    SignMagnitude,
    Specials,
    TwosComplement,
    Unsigned,
    block_format,
    name_of,
)

# Strings stand in files: those of published formats do not change.
STRINGS = {
    "axs6": "sm6dz_e8m0f_t32_modes",
    "mx9": "int8_e8m0_t16s2o1",
    "mx6": "int5_e8m0_t16s2o1",
    "mx4": "int3_e8m0_t16s2o1",
    "mxfp8_e4m3": "e4m3fn_e8m0_t32",
    "mxfp8_e5m2": "e5m2_e8m0_t32",
    "mxfp6_e3m2": "e3m2fn_e8m0_t32",
    "mxfp6_e2m3": "e2m3fn_e8m0_t32",
    "mxfp4": "e2m1fn_e8m0_t32",
    "mxint8": "int8_e8m0_t32",
    "nvfp4": "e2m1fn_e4m3fn_t16_float32",
    "msfp16": "sm8_e8m0_t16",
    "msfp12": "sm4_e8m0_t16",
    "fp8_e4m3": "e4m3fn_float32",
    "fp8_e5m2": "e5m2_float32",
    "int8": "int8_float32",
    "int6": "int6_float32",
    "int4": "int4_float32",
    "uint8": "uint8_float32_uint8",
    "vsq4": "int4_u4_t16_float32_t0",
    "vsq6": "int6_u4_t16_float32_t0",
    "vsq8": "int8_u4_t16_float32_t0",
    "nf4": "nf4_float32_t64",
}


def test_strings_in_files_keep_their_meaning():
    assert {name: str(CATALOG[name]) for name in STRINGS} == STRINGS
    for name, text in STRINGS.items():
        assert block_format(text) == CATALOG[name]


@pytest.mark.parametrize("name", CATALOG)
def test_every_name_prints_as_a_string_that_makes_it(name):
    text = str(CATALOG[name])
    assert block_format(text) == block_format(name) == CATALOG[name]
    assert name_of(block_format(text)) == name


@pytest.mark.parametrize("text", ["axs6_t8", "mxfp8_e4m3-rceil", "mxint8-even_t64", "mx9_t32"])
def test_names_with_other_rules_and_blocks(text):
    fmt = block_format(text)
    assert name_of(fmt) == text
    assert block_format(str(fmt)) == fmt


EMAX = {
    "axs6": -1, "mx9": 0, "mx6": 0, "mx4": 0, "mxint8": 0, "mxfp8_e4m3": 8, "mxfp8_e5m2": 15,
    "mxfp6_e2m3": 2, "mxfp6_e3m2": 4, "mxfp4": 2,
}  # fmt: skip


def test_the_binade_that_a_rule_fills():
    assert {name: CATALOG[name].element.emax for name in EMAX} == EMAX


def test_bits_a_value():
    assert CATALOG["axs6"].bits_a_value == (Fraction(101, 16), Fraction(13, 2), 8)
    assert CATALOG["mx9"].bits_a_value == (9, 9, 10)
    assert CATALOG["nvfp4"].bits_a_value == (Fraction(9, 2), Fraction(9, 2), 6)
    assert CATALOG["vsq6"].bits_a_value == (Fraction(25, 4), Fraction(13, 2), 8)


PUBLIC = {
    "mxfp8_e5m2": ml_dtypes.float8_e5m2,
    "mxfp8_e4m3": ml_dtypes.float8_e4m3fn,
    "mxfp6_e3m2": ml_dtypes.float6_e3m2fn,
    "mxfp6_e2m3": ml_dtypes.float6_e2m3fn,
    "mxfp4": ml_dtypes.float4_e2m1fn,
    "fp8_e4m3fnuz": ml_dtypes.float8_e4m3fnuz,
    "fp8_e5m2fnuz": ml_dtypes.float8_e5m2fnuz,
    "e4m3b11fnuz_float32": ml_dtypes.float8_e4m3b11fnuz,
}


@pytest.mark.parametrize("name", PUBLIC)
def test_codes_are_those_of_ml_dtypes(name):
    element = block_format(name).element
    codes = np.arange(1 << element.width, dtype=np.uint8)
    values = codes.view(PUBLIC[name]).astype(np.float64)
    assert np.array_equal(np.isnan(values), element.nan_codes)
    assert np.array_equal((values == np.inf) * 1 - (values == -np.inf), element.infinite_codes)
    finite = np.isfinite(values)
    assert np.array_equal(values[finite], (element.integers * float(element.unit))[finite])
    assert float(element.largest) == ml_dtypes.finfo(PUBLIC[name]).max


@pytest.mark.parametrize("dtype", [np.float16, ml_dtypes.bfloat16])
@pytest.mark.parametrize("name", ["fp8_e4m3", "fp8_e5m2", *list(PUBLIC)[-3:]])
def test_every_number_is_rounded_as_by_ml_dtypes(name, dtype):
    """Under a scale of 1; what ml_dtypes has as no number in range saturates."""
    x = np.arange(1 << 16, dtype=np.uint16).view(dtype)
    x = x[np.isfinite(x.astype(np.float32))]
    fmt = block_format(name)
    element, sign = fmt.element, np.signbit(x.astype(np.float32)) * np.uint8(0x80)
    expected = x.astype(
        {"fp8_e4m3": ml_dtypes.float8_e4m3fn, "fp8_e5m2": ml_dtypes.float8_e5m2, **PUBLIC}[name]
    )
    over = ~np.isfinite(expected.astype(np.float32))
    assert over.any()
    codes = np.where(over, sign | np.uint8(element.largest_code), expected.view(np.uint8))
    assert np.array_equal(encode(x, fmt, scale=1).codes.ravel()[: x.size], codes)


@pytest.mark.parametrize("name", ["fp8_e4m3fnuz", "e5m2inuz_e8m0_t32", "e1m1inuz_e4m0_t8s4o2"])
@pytest.mark.parametrize("rounding", ["nearest", "toward_zero", "stochastic"])
def test_zero_has_one_code_where_minus_zero_is_nan(name, rounding):
    """-0.0, and negative values far below the smallest, and past what FP32 holds."""
    x = np.array([1, -0.0, -1e-12, -1e-30, -1e-45, -(2.0**-1074), 0, np.nan])
    words = {"random": np.zeros(8, np.uint64)} if rounding == "stochastic" else {}
    blocks = encode(x, name, rounding=rounding, nonfinite="propagate", **words)
    codes = blocks.codes.ravel()[:8]
    nan = blocks.format.element.sign_bit
    assert codes[1:7].tolist() == [0] * 6
    assert codes[7] == nan
    assert np.isnan(decode(blocks)[7])
    assert not np.signbit(decode(blocks)[:7]).any()


def test_two_s_complement_and_unsigned_codes():
    assert TwosComplement(3).integers.tolist() == [0, 1, 2, 3, -4, -3, -2, -1]
    assert Unsigned(2).integers.tolist() == [0, 1, 2, 3]
    assert SignMagnitude(2, -1).integers.tolist() == [0, 1, 2, 3, 0, -1, -2, -3]


def elements():
    floats = st.builds(
        Float, st.integers(2, 5), st.integers(1, 2), st.sampled_from(Specials),
        st.none() | st.integers(-3, 20),
    )  # fmt: skip
    signs = st.builds(
        SignMagnitude, st.integers(1, 7), st.integers(-9, 9), st.booleans(), st.booleans()
    )
    return floats | signs | st.builds(TwosComplement, st.integers(2, 8), st.integers(-9, 9))


SCALES = st.builds(Exponent, st.integers(4, 8), st.sampled_from(Rule), st.booleans())
NARROW = st.sampled_from(
    [
        *(BF16, FP16, Float(4, 3, Specials.NAN), Float(4, 3, Specials.FNUZ)),
        Float(6, 2, Specials.INUZ, signed=False),
    ]
)
DTYPES = NARROW | st.just(FP32)


@st.composite
def formats(draw):
    sizes = sorted(draw(st.sets(st.sampled_from([2, 4, 8, 16, 32, 64, 128]), min_size=3)))
    wide = draw(st.sampled_from([CHANNEL, TENSOR]))
    levels = draw(
        st.sampled_from(
            [
                (Level(draw(SCALES), sizes[0]),),
                (Level(Shift(draw(st.integers(1, 4))), sizes[0]), Level(draw(SCALES), sizes[1])),
                (
                    Level(Shift(2), sizes[0]),
                    Level(Shift(1), sizes[1]),
                    Level(draw(SCALES), sizes[2]),
                    Level(Real(), wide),
                ),
                (Level(Integer(draw(st.integers(1, 16))), sizes[0]), Level(Real(FP32), wide)),
                (Level(Real(draw(NARROW)), sizes[0]), Level(Real(FP32), wide)),
                (Level(Real(draw(DTYPES)), wide),),
            ]
        )
    )
    return BlockFormat(draw(elements()), levels)


@given(formats())
def test_every_format_prints_as_the_string_that_makes_it(fmt):
    assert block_format(str(fmt)) == fmt
    assert block_format(name_of(fmt)) == fmt
    assert hash(block_format(str(fmt))) == hash(fmt)


WRONG = {
    "mx8": "'mx8' is no block format: a name, or an element such as e4m3fn or int8 is needed at "
    "'mx8' (character 1); the nearest name is mx9",
    "e4m3fn": "'e4m3fn' is no block format: a scale, such as e8m0 or float32, is needed at its end",
    "e4m3fn_e8m1q_t32": "a scale, such as e8m0 or float32, is needed at 'e8m1q' (character 8)",
    "int8_e8m0_t16_": "a scale is needed at its end",
    "_t33": "is needed at '_t33' (character 1); the nearest name is ",
    "s3o1": "is needed at 's3o1' (character 1); the nearest name is ",
    "MXFP4": "is needed at 'MXFP4' (character 1); the nearest name is mxfp4",
    "mxfp8": "the nearest name is mxfp8_e4m3",
    "mx9_t33": "'mx9_t33' is no block format: a group must be a power of two, not 33, at 't33' "
    "(character 5); the nearest name is mx9",
    "mx9_t16s2o1": "a block alone, such as t16, is needed at 't16s2o1' (character 5); the nearest "
    "name is mx9",
    "mxfp4-up": "rule must be one of floor, ceil, even, rceil, not 'up', at 'up' (character 7)",
    "int8-even": "int8_float32 has no exponent scale, so no rule 'even' for it, at 'even' ",
    "axs6_t64": "block must be one of 8, 16, 32, not 64, at 't64' (character 6)",
    "e4m3fn_e8m0_t33": "a group must be a power of two, not 33, at 't33' (character 13); the "
    "nearest name is mxfp8_e4m3",
    "int8_e8m0_t16s3o1": "a group must be a power of two, not 3, at 't16s3o1' (character 11); the "
    "nearest name is mx9",
    "int8_e8m0_t16s16o1": "groups must grow from level to level, and 16 after 16 does not, at ",
    "e4m3fn_e9m0_t32": "bits must be an integer from 4 to 8, not 9, at 'e9m0' (character 8)",
    "e4m3fn_e8m0-up_t32": "rule must be one of floor, ceil, even, rceil, not 'up', at 'e8m0-up' ",
    "int9_e8m0_t32": "bits must be an integer from 2 to 8, not 9, at 'int9' (character 1)",
    "int08_float32": "is needed at 'int08' (character 1)",
    "int\u0668_float32": "(character 1)",
    "e4m9fn_e8m0_t32": "an element must have at most 8 bits, not 14, at 'e4m9fn' (character 1)",
    "e4m3fnb99_e8m0_t32": "exponents of an element must be from -64 to 64, not -101 to -84, at ",
    "e6m1_e8m0_t32": "an element must have a largest value below 2^62 of its smallest ones, not ",
    "int8_e11m52_t32": "a real scale must be float32, or have at most 16 bits and normal numbers "
    "that float32 has, unlike fp64, at 'e11m52' (character 6)",
    "int8_e8m7b500_t32": "that float32 has, unlike e8m7, at 'e8m7b500' (character 6)",
    "int8_e1m1_t32": "that float32 has, unlike e1m1, at 'e1m1' (character 6)",
    "ue5m3_e8m0_t32": "an element must have a sign, unlike ue5m3; a scale need not, at 'ue5m3' ",
    "e2m1fn_ue8m3_t16": "that float32 has, unlike ue8m3, at 'ue8m3' (character 8); the nearest "
    "name is nvfp4_ue5m3",
    "e2m1fn_ue5m12_t16": "have at most 16 bits and normal numbers that float32 has, unlike ue5m12",
    "e2m1fn_ue5m0_t16": "a scale, such as e8m0 or float32, is needed at 'ue5m0' (character 8)",
    "int8_ue4m3fnuz_t16": "specials of an unsigned number must be nan, none or inuz, not fnuz, at ",
    "e4m3b8fnuzb9_e8m0": "one bias alone is possible, not 2, at 'e4m3b8fnuzb9' (character 1)",
    "e4m3fnuzb2048_e8m0": "exponent_bias must be an integer from -2047 to 2047, not 2048, at ",
    "e4m3fnuzb99_e8m0": "exponents of an element must be from -64 to 64, not -101 to -84, at ",
    "e4m0fnuz_e8m0": "a name, or an element such as e4m3fn or int8 is needed at 'e4m0fnuz' ",
    "binary2p1sf_e8m0": "width must be an integer from 3 to 16, not 2, at 'binary2p1sf' ",
    "binary17p3sf_e8m0": "width must be an integer from 3 to 16, not 17, at 'binary17p3sf' ",
    "binary9p3sf_e8m0": "an element must have at most 8 bits, not 9, at 'binary9p3sf' ",
    "binary8p1sf_e8m0": "precision must be an integer from 2 to 7, not 1, at 'binary8p1sf' ",
    "binary8p8se_e8m0": "precision must be an integer from 2 to 7, not 8, at 'binary8p8se' ",
    "binary8p2se_e8m0": "an element must have a largest value below 2^62 of its smallest ones",
    "binary8p3uf_e8m0": "an element must have a sign, unlike ue6m2; a scale need not, at ",
    "binary8p3s_e8m0": "a name, or an element such as e4m3fn or int8 is needed at 'binary8p3s' ",
    "int8_binary16p2se_t8": "exponent_bits must be an integer from 1 to 11, not 14, at ",
    "uint8_float32_uint4": "a zero point needs elements of its width, uint4, at 'float32' ",
    "int8_e8m0_t16_float32_t8": "groups must grow from level to level, and 8 after 16 does not, at "
    "'float32' (character 15); the nearest name is ",
    "int8_e8m0_t32_modes": "modes need elements sm6dz, not int8, at 'modes' (character 15)",
    "sm6dz_e8m0f_t64_modes": "block must be one of 8, 16, 32, not 64, at 'modes' (character 17)",
    "sm6dz_e8m0f_t32_modes_t8": "the end is needed at 't8' (character 23)",
    "int8_float32_t16_e8m0_t32": "scales must come in the order shift, exponent, integer, real",
    "uint8_float32": "unsigned elements, and they alone, need a scale with a zero point",
    "sm6dz_e8m0_t32_float32_modes": "modes need one exponent scale of blocks alone, not exponent "
    "of 32 and real of tensor",
    "int8_e8m0_t16s2o1_modes": "modes need one exponent scale of blocks alone, not shift of 2 and",
    "int8_float32_t16_modes": "modes need one exponent scale of blocks alone, not real of 16",
    "sm6dz_e8m0_modes": "modes need one exponent scale of blocks alone, not exponent of tensor",
    "int8_u4_t16": "an integer scale needs one real scale above it",
    "int8_u4_t16_bfloat16": "the real scale above an integer scale must be float32",
    "int8_u4_t16s4o1_float32": "a shift needs an exponent or a real scale above it, at 'u4' ",
    "int8_bfloat16_t0s4o1": "a shift needs an exponent or a real scale of blocks above it, at ",
    "int8_e4m3fnh_t16": "a number with a sign must have subnormal values, at 'e4m3fnh' (charac",
    "int8_float32-bf16": "arithmetic of a float32 scale must be fp32, not bf16, at 'float32-bf16'",
    "uint8_ue5m3-bf16_uint8_t8": "arithmetic of a scale with a zero point must be fp32, not bf16",
    "int8_ue5m3-bf16_t8_float32": "a real scale in bf16 must be the only one, at 'float32' ",
    "int8_bfloat16-bf16_t8": "a scale in bf16 must be at most 2^126, and the largest of bf16 is ",
    "": "is needed at its end",
}


@pytest.mark.parametrize("text", WRONG)
def test_a_string_that_is_no_format(text):
    with pytest.raises(ValueError, match=re.escape(WRONG[text])) as caught:
        block_format(text)
    assert "\n" not in str(caught.value)


def test_a_format_of_another_type():
    with pytest.raises(TypeError, match="format must be a string or a BlockFormat, not int"):
        block_format(32)


E8M0 = Level(Exponent(), 32)


@pytest.mark.parametrize(
    ("make", "message"),
    [
        (lambda: BlockFormat("int8", [E8M0]), "element must be SignMagnitude or .*, not str"),
        (lambda: BlockFormat(FP32, [E8M0]), "an element must have at most 8 bits, not 32"),
        (lambda: BlockFormat(TwosComplement(8), [32]), "a level must be Level, not int"),
        (lambda: BlockFormat(TwosComplement(8), []), "needs at least one level of scales"),
        (lambda: BlockFormat(TwosComplement(8), [E8M0, E8M0]), "and 32 after 32 does not"),
        (
            lambda: BlockFormat(TwosComplement(8), [E8M0], (Mode.SPARSE,)),
            "modes must be dense alone, or dense, sparse, high_precision, not",
        ),
        (lambda: Level("e8m0", 32), "scale must be Exponent or .* or Real, not str"),
        (lambda: Level(Exponent(), "row"), "a group must be a power of two .*, not 'row'"),
        (lambda: Exponent(8, "up"), "rule must be one of floor, ceil, even, rceil, not 'up'"),
        (lambda: Exponent(8, "floor", 1), "nan must be True or False, not 1"),
        (lambda: Real("float32"), "dtype must be Float, not str"),
        (lambda: Real(FP32, 1), "zero_point must be True or False, not 1"),
        (
            lambda: Float(4, 3, "fn"),
            "specials must be one of ieee, nan, none, fnuz, inuz, not 'fn'",
        ),
        (
            lambda: Float(5, 3, signed=False),
            "unsigned number must be nan, none or inuz, not ieee",
        ),
        (lambda: Float(5, 3, "nan", signed=0), "signed must be True or False, not 0"),
        (lambda: Float(5, 3, subnormals=False), "a number with a sign must have subnormal values"),
        (lambda: Real(FP16, arithmetic=FP16), "arithmetic must be fp32 or bf16, not fp16"),
        (lambda: Float(4, 0), "fraction_bits must be an integer from 1 to 52, not 0"),
        (lambda: Float(4, 3, "nan", 1.5), "exponent_bias must be an integer .*, not 1.5"),
        (lambda: SignMagnitude(8, 0), "magnitude_bits must be an integer from 1 to 7, not 8"),
        (lambda: TwosComplement(9), "bits must be an integer from 2 to 8, not 9"),
        (lambda: SignMagnitude(5, 0, False, 1), "signed_zero must be True or False, not 1"),
        (lambda: SignMagnitude(5, 0, ties_away=1), "ties_away must be True or False, not 1"),
        (lambda: TwosComplement(5, 0, 1), "ties_away must be True or False, not 1"),
        (lambda: SignMagnitude(5, 0, 1), "full_scale must be True or False, not 1"),
    ],
)
def test_parts_that_make_no_format(make, message):
    with pytest.raises((TypeError, ValueError), match=message) as caught:
        make()
    assert "\n" not in str(caught.value)


def test_a_block_or_rule_that_a_format_cannot_have():
    with pytest.raises(ValueError, match="int8_float32 has no blocks, so block=8"):
        CATALOG["int8"].with_block(8)
    with pytest.raises(ValueError, match="block must be one of 8, 16, 32, not 64"):
        CATALOG["axs6"].with_block(64)
    with pytest.raises(ValueError, match="no exponent scale, so no rule 'ceil'"):
        CATALOG["nvfp4"].with_rule("ceil")
    with pytest.raises(ValueError, match="rule must be one of floor, ceil, even, rceil, not 'up'"):
        CATALOG["mxfp4"].with_rule("up")


@pytest.mark.parametrize(
    ("name", "precision", "fixed", "ends"),
    [
        ("axs6", 4, True, (-31, 31)),
        ("mx9", 6, True, (-127, 127)),
        ("mxfp8_e4m3", 3, False, (-448 * 512, 448 * 512)),
        ("mxfp4", 1, False, (-12, 12)),
        ("mxint8", 6, True, (-128, 127)),
        ("uint8", 7, True, (0, 255)),
        ("int2_e8m0_t8", 0, True, (-2, 1)),
    ],
)
def test_integers_of_elements(name, precision, fixed, ends):
    element = block_format(name).element
    assert (element.precision, element.fixed) == (precision, fixed)
    assert (element.integers.min(), element.integers.max()) == ends
    numbers = [element.integer(code) for code in range(len(element.integers))]
    assert element.integers.tolist() == [x if isinstance(x, int) else 0 for x in numbers]


def test_scales_of_a_tensor_are_above_those_of_channels():
    fmt = block_format("int8_bfloat16_t0_float32")
    assert [str(level.group) for level in fmt.levels] == ["channel", "tensor"]
    with pytest.raises(ValueError, match="groups must grow from level to level, and channel after"):
        BlockFormat(fmt.element, fmt.levels[::-1])


def test_a_choice_of_scales_is_one_of_its_names() -> None:
    plain = block_format("mxfp4")
    chosen = BlockFormat(plain.element, plain.levels, choice="mse")  # type: ignore[arg-type]
    assert chosen == block_format("mxfp4_mse")
    assert chosen.choice is ScaleChoice.MSE
    with pytest.raises(ValueError, match=r"^choice must be one of max, .*, not 'best'"):
        BlockFormat(plain.element, plain.levels, choice="best")  # type: ignore[arg-type]


@pytest.mark.parametrize(
    ("name", "block", "scales"),
    [("mxfp4", 12, 254), ("mx6", 15 * 2, 254), ("int8_e5m0_t8s4o2", 127 * 2**3, 31)],
)
def test_binades(name: str, block: int, scales: int) -> None:
    """Those of a block, with scales of smaller groups, and what its own scale adds."""
    inner, whole = block_format(name).binades
    assert inner == pytest.approx(np.log2(block))
    assert whole == pytest.approx(np.log2(block) + scales)
