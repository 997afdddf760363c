"""Encoding, decoding and packing in every format: what does not need the exact model."""

import re
from dataclasses import replace
from fractions import Fraction
from math import ceil

import ml_dtypes
import numpy as np
import pytest
from tiles import small_tiles

from axs6.golden import decode, encode, pack, unpack
from axs6.golden.blocks import Blocks
from axs6.golden.formats import AXS6, CATALOG, Real, block_format
from axs6.golden.pack import packed_bytes

COMPOSED = (
    "e4m3fn_e8m0-rceil_t32",
    "e3m2fn_e5m0_t16",
    "e4m3fn_e5m0_t32",
    "int8_e8m0_t32s8o2",
    "int7_e8m0-even_t64s16o1s4o2",
    "e2m1fn_e4m3fn_t16",
    "int8_float32_t128",
    "uint6_float32_uint6_t32",
    "sm4d_e8m0_t32",
    "e4m3fn_e5m2_t32_float32_t0",
    "int4_u7_t8_float32",
    "e3m4_e8m0_t32_float32",
    "int8_e8m0_t0",
    "int8_e8m0_t16s4o1_float32_t64",
    "e2m1fn_e4m0_t8_e4m3fn_t16_float32",
    "e2m1fn_e4m3fn_t4x8_float32",
    "int8_e8m0_t2x16s4o1",
    "e2m1inuz_e4m3fnuz_t16",
)
FORMATS = (*(small_tiles(name) for name in CATALOG), *COMPOSED)


def values(shape, seed=0):
    rng = np.random.default_rng(seed)
    x = rng.standard_normal(shape) * 2.0 ** rng.integers(-12, 12, shape)
    x[rng.random(shape) < 0.05] = 0
    return x.astype(np.float32)


def same(a, b):
    assert a.format == b.format
    assert a.shape == b.shape
    assert np.array_equal(a.codes, b.codes)
    assert all(np.array_equal(x, y) for x, y in zip(a.scales, b.scales, strict=True))
    assert (a.zero_points is None) is (b.zero_points is None)
    assert a.zero_points is None or np.array_equal(a.zero_points, b.zero_points)


@pytest.mark.parametrize("name", FORMATS)
def test_packed_blocks_come_back(name):
    blocks = encode(values((3, 2, 150)), name)
    data = pack(blocks)
    same(unpack(data, blocks.shape, name), blocks)
    per_block = packed_bytes(name)
    assert per_block == -(-(blocks.format.scale_bits + blocks.format.payload_bits) // 8)
    outer = len(data) - blocks.codes[..., 0].size * per_block
    assert outer == sum(x.nbytes for x in blocks.scales[: len(blocks.format.ahead)]) + (
        blocks.zero_points.nbytes if blocks.format.outer and blocks.zero_points is not None else 0
    )
    with pytest.raises(ValueError, match="data must"):
        unpack(data[:-1], blocks.shape, name)


@pytest.mark.parametrize("name", FORMATS)
def test_any_axis_is_the_last_one_of_the_moved_array(name):
    x = values((40, 3, 5), 1)
    moved = encode(np.moveaxis(x, 0, -1), name)
    blocks = encode(x, name, axis=0)
    assert blocks.shape == x.shape
    assert np.array_equal(blocks.codes, moved.codes)
    assert np.array_equal(decode(blocks), np.moveaxis(decode(moved), -1, 0))


@pytest.mark.parametrize("name", FORMATS)
def test_dtypes_that_hold_the_same_values_have_the_same_codes(name):
    x = values((4, 64), 2).astype(ml_dtypes.bfloat16)
    blocks = encode(x, name)
    for other in (x.astype(np.float32), x.astype(np.float64), x.view(np.uint16)):
        same(encode(other, name), blocks)
    whole = np.arange(-100, 156).reshape(4, 64)
    same(encode(whole, name), encode(whole.astype(np.float32), name))


@pytest.mark.parametrize("name", FORMATS)
def test_zeros_and_empty_arrays(name):
    zeros = encode(np.zeros((2, 40), np.float32), name)
    assert not decode(zeros).any()
    for shape in ((0,), (3, 0), (0, 40))[block_format(name).rows > 1 :]:
        blocks = encode(np.zeros(shape, np.float32), name)
        assert decode(blocks).shape == shape
        same(unpack(pack(blocks), shape, name), blocks)


@pytest.mark.parametrize("name", FORMATS)
def test_what_is_not_finite_is_refused_and_saturates(name):
    x = values((2, 64), 3)
    x[0, 5], x[1, 7], x[1, 9] = np.nan, np.inf, -np.inf
    with pytest.raises(
        ValueError, match=r"^values must be finite and below 2\^128: element \(0, 5\)"
    ):
        encode(x, name)
    finite = np.where(np.isnan(x), np.float32(0), np.nan_to_num(x))
    blocks, near = encode(x, name, nonfinite="saturate"), encode(finite, name)
    assert all(np.array_equal(a, b) for a, b in zip(blocks.scales, near.scales, strict=True))
    y, z = decode(blocks, np.float64), decode(near, np.float64)
    assert y[0, 5] == z[0, 5] == 0
    codes = blocks.codes.reshape(2, -1)[1]
    element = blocks.format.element
    assert codes[7] == element.largest_code
    assert element.integer(int(codes[9])) == (-element.largest_integer if element.signed else 0)
    rest = np.isfinite(x)
    assert np.array_equal(y[rest], z[rest])


@pytest.mark.parametrize("name", FORMATS)
def test_what_is_not_finite_propagates(name):
    x = values((2, 64), 4)
    x[0, 5], x[1, 7] = np.nan, -np.inf
    fmt = block_format(name)
    if not fmt.has_nan:
        with pytest.raises(ValueError, match='nonfinite="propagate" needs a format with NaN'):
            encode(x, name, nonfinite="propagate")
        return
    y = decode(encode(x, name, nonfinite="propagate"))
    clean = decode(encode(np.where(np.isfinite(x), x, np.float32(0)), name))
    assert np.isnan(y[0, 5])
    if fmt.element.has_infinity:
        assert y[1, 7] == -np.inf
    else:
        assert np.isnan(y[1, 7])
    kept = np.isfinite(y)
    assert np.array_equal(y[kept], clean[kept])
    lost = ~kept
    first_nan = next((x for x in fmt.levels if x.scale.nan_code is not None), None)
    assert lost.sum() >= 2
    if fmt.element.has_infinity:
        assert lost.sum() == 2
    elif fmt.element.has_nan:
        assert lost[0].sum() == 1 or first_nan.group == "tensor" or first_nan.tiled


@pytest.mark.parametrize("name", FORMATS)
def test_rounding_toward_zero_is_below_and_stochastic_between(name):
    fmt = block_format(name)
    if not fmt.element.signed:
        return
    x = values((4, 64), 5)
    down = np.abs(decode(encode(x, name, "toward_zero"), np.float64))
    zeros = np.zeros(x.shape, int)
    low = decode(encode(x, name, "stochastic", random=zeros, random_bits=8), np.float64)
    assert np.array_equal(np.abs(low), down)
    most = np.full(x.shape, 255)
    high = np.abs(decode(encode(x, name, "stochastic", random=most, random_bits=8), np.float64))
    near = np.abs(decode(encode(x, name), np.float64))
    assert (down <= near).all()
    assert (near <= high).all()
    assert (down < high).any()
    if not any(isinstance(level.scale, Real) for level in fmt.levels):
        assert (down <= np.abs(x)).all()


def test_a_block_in_place_of_the_format_s():
    assert encode(values((64,)), "mxfp4", block=16).codes.shape == (4, 16)
    assert encode(values((64,)), block=8).format == AXS6.with_block(8)
    with pytest.raises(ValueError, match="int8_float32 has no blocks"):
        encode(values((64,)), "int8", block=8)


def test_delayed_scaling():
    x = values((4, 64))
    blocks = encode(x, "int8", scale=0.5)
    assert blocks.scales[0].view(np.float32) == 0.5
    expected = np.clip(np.rint(x.astype(np.float64) * 2), -127, 127)
    assert np.array_equal(decode(blocks, np.float64), expected / 2)
    per_row = encode(x, "vsq6", scale=np.array([1, 2, 3, 4.0]))
    assert per_row.scales[0].view(np.float32).tolist() == [1, 2, 3, 4]
    for wrong, message in (
        ({"format": "mxfp4", "scale": 1}, "scale is for a real scale of channels or the tensor"),
        ({"format": "int8", "scale": [1, 2]}, r"scale must broadcast to shape \(\), not \(2,\)"),
        ({"format": "int8", "scale": 0}, "scale must hold positive finite numbers, not 0.0"),
        ({"format": "int8", "scale": np.nan}, "scale must hold positive finite numbers, not nan"),
        ({"format": "int8", "scale": 1e300}, "scale must hold positive finite numbers, not inf"),
    ):
        with pytest.raises(ValueError, match=message):
            encode(x, **wrong)


def test_axes_and_dtypes_that_are_none():
    blocks = encode(values((2, 64)), "mx9")
    message = re.escape("axis must be an axis of the shape (2, 64), not ")
    for axis in (2, -3, "x", None, 1.0):
        with pytest.raises(ValueError, match=message):
            encode(values((2, 64)), "mx9", axis=axis)
        with pytest.raises(ValueError, match=message):
            unpack(pack(blocks), (2, 64), "mx9", axis=axis)
    for dtype in (np.float16, "fp32", None, int):
        with pytest.raises(TypeError, match=r"^dtype must be float32, float64 or bfloat16, not "):
            decode(blocks, dtype)
    with pytest.raises(TypeError, match=r"^scale must hold numbers, not 'x'$"):
        encode(values((2, 64)), "int8", scale="x")


def test_formats_without_modes():
    with pytest.raises(ValueError, match="has no modes, so mode must be dense, not 'sparse'"):
        encode(values((64,)), "mx9", mode="sparse")
    blocks = encode(values((64,)), "mx9")
    message = "mx9 has no modes but dense"
    with pytest.raises(ValueError, match=message):
        Blocks(blocks.format, blocks.scales, blocks.codes, (64,), modes=np.ones(4, np.uint8))


def test_scales_outside_their_codes():
    blocks = encode(values((64,)), "nvfp4")
    tensor, fine = blocks.scales
    with pytest.raises(ValueError, match=re.escape("scale 1: 0x80 is not a code of nvfp4")):
        Blocks(blocks.format, (tensor, np.array([1, 0x80, 1, 1], np.uint8)), blocks.codes, (64,))
    infinite = np.array(0x7F800000, np.uint32)
    with pytest.raises(ValueError, match=re.escape("scale 0: 0x7f800000 is not a code of nvfp4")):
        Blocks(blocks.format, (infinite, fine), blocks.codes, (64,))
    with pytest.raises(ValueError, match="nvfp4 has 2 levels of scales, not 1") as caught:
        Blocks(blocks.format, (fine,), blocks.codes, (64,))
    assert "\n" not in str(caught.value)


@pytest.mark.parametrize(
    ("changed", "message"),
    [
        ({"format": "mx9"}, "format must be BlockFormat, not str"),
        ({"shape": "ab"}, "shape must be at least one non-negative integer, not 'ab'"),
        ({"shape": (65,)}, r"in mx9 need codes of shape \(5, 16\), not \(4, 16\)"),
        ({"axis": 1}, r"axis must be an axis of the shape \(64,\), not 1"),
        ({"scales": None}, "scales must be tuple, not NoneType"),
        ({"scales": ([1] * 4, [0] * 32)}, "scales must be uint8, not list"),
        ({"codes": np.zeros((4, 16))}, "codes must be uint8, not float64"),
        ({"codes": None}, "codes must be uint8, not NoneType"),
    ],
)
def test_parts_that_are_no_blocks(changed, message):
    with pytest.raises((TypeError, ValueError), match=message):
        replace(encode(values((64,)), "mx9"), **changed)


def test_zero_points_wider_than_the_element():
    blocks = encode(values((64,)), "uint6_float32_uint6_t32")
    with pytest.raises(ValueError, match=r"^zero point 1: 64 is not a code of uint6_"):
        replace(blocks, zero_points=np.array([63, 64], np.uint8))


def test_codes_wider_than_the_element():
    blocks = encode(values((64,)), "mxfp4")
    codes = blocks.codes.copy()
    codes[1, 3] = 16
    with pytest.raises(ValueError, match=r"^block 1: 16 is not a code of mxfp4$"):
        Blocks(blocks.format, blocks.scales, codes, (64,))


@pytest.mark.parametrize("element", ["int4", "int8", "sm8", "e2m1fn", "e3m2fn", "e4m3fn", "e5m2"])
def test_integer_scales_are_least(element):
    """The least integers with which no value lies above the largest element, 1 to 15."""
    fmt = block_format(f"{element}_u4_t1_float32_t0")
    top = fmt.element.largest
    rng = np.random.default_rng(0)
    for scale in (1.0, 3.0, 1 / 3, 2.0**-126, 1.5 * 2.0**100):
        step = Fraction(float(np.float32(scale)))
        x = np.array([[float(step * top * Fraction(k, 7)) for k in range(112)]], np.float32)
        x = np.concatenate([x, np.nextafter(x, np.float32(0)), np.nextafter(x, np.float32(np.inf))])
        x *= np.where(rng.random(x.shape) < 0.5, -1, 1).astype(np.float32)
        found = encode(x, fmt, scale=scale).scales[-1].reshape(x.shape)
        ratios = [[Fraction(float(v)) / (step * top) for v in row] for row in abs(x)]
        assert found.tolist() == [[min(max(ceil(r), 1), 15) for r in row] for row in ratios]
