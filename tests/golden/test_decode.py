from fractions import Fraction

import ml_dtypes
import numpy as np
import pytest

from axs6.golden import Blocks, decode, encode
from axs6.golden.blocks import scale_shape
from axs6.golden.check.exact import axs6 as exact
from axs6.golden.check.exact.floats import BF16, FP32, FP64, round_to_float
from axs6.golden.formats import Real, Shift, block_format
from axs6.golden.scaling import code_dtype, real_values

FORMATS = {"float32": FP32, "bfloat16": BF16, "float64": FP64}
UNSIGNED = {"float32": np.uint32, "bfloat16": np.uint16, "float64": np.uint64}


def all_codes():
    """Every exponent with every code, as 512 blocks of 32."""
    exponents = np.repeat(np.arange(256, dtype=np.uint8), 2).reshape(1, -1)
    codes = np.tile(np.arange(64, dtype=np.uint8), 256).reshape(1, -1, 32)
    return Blocks.with_modes(exponents, np.zeros_like(exponents), codes, (1, codes.size))


def decode_one(exponent, code, dtype):
    codes = np.zeros((1, 8), np.uint8)
    codes[0, 0] = code
    blocks = Blocks.with_modes(np.array([exponent], np.uint8), np.zeros(1, np.uint8), codes, (8,))
    return int(decode(blocks, dtype).view(UNSIGNED[dtype])[0])


@pytest.mark.parametrize(
    ("exponent", "code", "float32", "bfloat16"),
    [
        (127, 0, 0x00000000, 0x0000),
        (127, 32, 0x80000000, 0x8000),
        (127, 31, 0x3F800000, 0x3F80),  # 31/31 is one
        (127, 63, 0xBF800000, 0xBF80),
        (127, 16, 0x3F042108, 0x3F04),  # 0.10000100001000010000100001...
        (127, 1, 0x3D042108, 0x3D04),
        (255, 31, 0x7F7FFFFF, 0x7F7F),  # 2^128 saturates
        (255, 63, 0xFF7FFFFF, 0xFF7F),
        (254, 31, 0x7F000000, 0x7F00),
        (0, 31, 0x00400000, 0x0040),
        (0, 1, 135300, 2),  # 2^22/31 = 135300.13 and 2^6/31 = 2.06 steps of the subnormals
        (0, 33, 0x80000000 + 135300, 0x8002),
        (0, 30, 4059004, 62),  # 4059003.87 and 61.94
        (1, 31, 0x00800000, 0x0080),
    ],
)
def test_one_code(exponent, code, float32, bfloat16):
    assert decode_one(exponent, code, "float32") == float32
    assert decode_one(exponent, code, "bfloat16") == bfloat16


@pytest.mark.parametrize("dtype", ["float32", "bfloat16", "float64"])
def test_codes_of_high_precision_by_definition(dtype):
    """Seven bits at even indices and five at odd ones, beside a dense block."""
    exponents = np.uint8([0, 1, 127, 254, 255, 127])
    modes = np.uint8([2, 2, 2, 2, 2, 0])
    codes = np.zeros((6, 32), np.uint8)
    codes[:5, ::2] = np.arange(80).reshape(5, 16) + 40
    codes[:5, 1::2] = np.arange(80).reshape(5, 16) % 32
    codes[5] = np.arange(32)
    got = decode(Blocks.with_modes(exponents, modes, codes, (192,)), dtype)
    assert got.view(UNSIGNED[dtype]).tolist() == [
        exact.decode_bits(e, code, FORMATS[dtype], (6, 4)[index % 2] if mode else 5)
        for e, mode, row in zip(exponents.tolist(), modes.tolist(), codes.tolist(), strict=True)
        for index, code in enumerate(row)
    ]


@pytest.mark.parametrize("dtype", ["float32", "bfloat16", "float64"])
def test_every_code_by_definition(dtype):
    got = decode(all_codes(), dtype).view(UNSIGNED[dtype]).ravel().tolist()
    fmt = FORMATS[dtype]
    assert got == [exact.decode_bits(e, code, fmt) for e in range(256) for code in range(64)]


def test_float64_as_ieee_division():
    codes = np.tile(np.arange(64), 256)
    signed = np.where(codes & 32, -1.0, 1.0) * (codes & 31)
    expected = np.ldexp(signed / 31, np.repeat(np.arange(256), 64) - 127)
    assert decode(all_codes(), np.float64).tobytes() == expected.tobytes()


def test_float32_normals_as_ieee_division():
    codes = np.tile(np.arange(64), 249)
    signed = np.where(codes & 32, -1, 1).astype(np.float32) * (codes & 31).astype(np.float32)
    expected = np.ldexp(signed / np.float32(31), np.repeat(np.arange(6, 255), 64) - 127)
    assert decode(all_codes())[0, 6 * 64 : 255 * 64].tobytes() == expected.tobytes()


def test_float64_keeps_what_float32_saturates():
    blocks = encode(np.array([np.inf, -np.inf], np.float32), block=8, nonfinite="saturate")
    largest = np.finfo(np.float32).max
    assert decode(blocks, np.float64).tolist() == [2.0**128, -(2.0**128)]
    assert decode(blocks).tolist() == [largest, -largest]


def test_bfloat16_arrays_and_patterns():
    blocks = encode(np.linspace(-2, 2, 50, dtype=np.float32))
    typed = decode(blocks, ml_dtypes.bfloat16)
    assert typed.dtype == ml_dtypes.bfloat16
    assert decode(blocks, "bfloat16").dtype == np.uint16
    assert typed.tobytes() == decode(blocks, "bfloat16").tobytes()


@pytest.mark.parametrize(
    "shape", [(5,), (32,), (2, 33), (2, 3, 7), (0,), (0, 5), (3, 0), (2, 0, 4)]
)
@pytest.mark.parametrize("size", [8, 32])
def test_shape(shape, size):
    assert decode(encode(np.ones(shape, np.float32), block=size)).shape == shape


def test_many_blocks():
    x = np.random.default_rng(0).standard_normal((3, 40000)).astype(np.float32)
    y = decode(encode(x))
    for row in range(3):
        for start in (0, 20000, 39968):
            part = slice(start, start + 32)
            assert np.array_equal(y[row, part], decode(encode(x[row, part])))


def test_error_is_half_a_step_at_most():
    x = np.random.default_rng(1).standard_normal((500, 32))
    blocks = encode(x)
    step = np.ldexp(1 / 31, blocks.exponents.astype(int) - 127)
    assert (abs(decode(blocks, np.float64) - x) <= step * (0.5 + 2**-40)).all()


@pytest.mark.parametrize("dtype", [np.float16, np.int32, "uint16"])
def test_dtype(dtype):
    message = f"^dtype must be float32, float64 or bfloat16, not {np.dtype(dtype)}$"
    with pytest.raises(TypeError, match=message):
        decode(all_codes(), dtype)


@pytest.mark.parametrize("dtype", [">f4", "<f4", ">f8", "<f8"])
def test_values_come_in_the_byte_order_asked_for(dtype):
    blocks = encode(np.linspace(-3, 3, 100, dtype=np.float32))
    values = decode(blocks, dtype)
    assert values.dtype == np.dtype(dtype)
    assert np.array_equal(values, decode(blocks, f"f{values.itemsize}"))
    again = encode(values)
    assert np.array_equal(again.codes, encode(values.astype(f"f{values.itemsize}")).codes)


PRODUCTS = (
    *("hif4", "nvfp4_ue5m3", "mxfp4_16", "int8_bfloat16_t8", "e2m3fn_e8m5_t2", "if4", "razer"),
    *("nf4+nf4q6_bfloat16_t16", "int4q6_float16_t4s2o1", "int8_float16_t4_e4m2_t8"),
)
"""Formats whose values FP32 holds, but where they are too small or too large, and others."""

DIVIDED = (
    *(f"sm{bits}d_e8m0_t64" for bits in range(3, 9)),
    *("int8d_e8m0_t16s2o1", "sm8dq-3_e8m0_t4", "sm8d_float32_t8", "sm7d_e5m2_t16_float32_t0"),
    *("sm8d_float16_t4_float16_t8_float32", "int8_float16_t4_float16_t8_float32"),
)


def random_blocks(fmt, rng):
    """Blocks of random codes under random scales, all of them numbers."""
    shape = (2, 16 * fmt.block)
    scales = []
    for level in fmt.levels[::-1]:
        codes = rng.integers(
            1, level.scale.largest_code + 1, scale_shape(level, (2,), 16, fmt.block)
        )
        scales.append(codes.astype(code_dtype(level.scale.bits)))
    codes = rng.integers(0, 1 << fmt.element.width, (2, 16, fmt.block))
    return Blocks(fmt, tuple(scales), codes.astype(np.uint8), shape)


def exact_values(blocks):
    """The values as fractions, by the definition."""
    element, levels = blocks.format.element, blocks.format.levels[::-1]
    codes = blocks.codes.astype(int)
    if blocks.selected is not None:
        each = np.repeat(blocks.selected, int(blocks.format.levels[0].group), -1).reshape(
            codes.shape
        )
        codes += each.astype(int) << element.width
    found = [int(x) * element.unit for x in element.integers[codes].ravel()]
    for level, codes in zip(levels, blocks.scales, strict=True):
        factors = [factor(level.scale, code) for code in codes.ravel()]
        each = len(found) // len(factors)
        found = [x * factors[i // each] for i, x in enumerate(found)]
    return found


def factor(scale, code):
    if isinstance(scale, Real):
        return Fraction(float(real_values(scale.dtype, np.array([code]))[0]))
    if isinstance(scale, Shift):
        return Fraction(2) ** -int(code)
    return Fraction(2) ** (int(code) - scale.bias)


@pytest.mark.parametrize("name", PRODUCTS + DIVIDED)
def test_one_rounding(name):
    blocks = random_blocks(block_format(name), np.random.default_rng(1))
    exact = exact_values(blocks)
    assert decode(blocks, np.float64).ravel().tolist() == [float(x) for x in exact]
    for dtype, fmt in (("float32", FP32), ("bfloat16", BF16)):
        got = decode(blocks, dtype).view(UNSIGNED[dtype]).ravel().tolist()
        right = [round_to_float(abs(x), fmt, saturate=True) for x in exact]
        assert [x & fmt.sign - 1 for x in got] == right


@pytest.mark.parametrize("fields", [(1, 107), (253, 129)])
def test_products_beyond_fp32_beside_one_that_it_holds(fields):
    fmt = block_format("int8_bfloat16_t4_bfloat16_t8")
    first, second = ((field << 7) + np.arange(0, 128, 9) for field in fields)
    outer, inner = (np.append(x, 127 << 7) for x in np.meshgrid(first, second))
    scales = (outer[:, None], np.repeat(inner, 2).reshape(-1, 1, 2))
    codes = np.resize(np.array([127, 85, 1, 129], np.uint8), (len(outer), 1, 8))
    given = tuple(x.astype(np.uint16) for x in scales)
    blocks = Blocks(fmt, given, codes, (len(outer), 8))
    found = decode(blocks).view(np.uint32).ravel().tolist()
    right = [round_to_float(abs(x), FP32, saturate=True) for x in exact_values(blocks)]
    assert [x & FP32.sign - 1 for x in found] == right


@pytest.mark.parametrize(
    ("name", "found"),
    [
        ("int8_float16_t4_float16_t8_float16_t16_float32", "4 with 57"),
        ("int8_e2m13_t4_e2m13_t8_float32", "3 with 52"),
        ("int8_e8m1_t4_e8m1_t8_e8m1_t16_float32", "4 with 30"),
    ],
)
def test_formats_whose_values_float64_does_not_hold(name, found):
    with pytest.raises(ValueError, match=f"at most 3 real scales, .* of 46 bits .*, not {found}"):
        block_format(name)
