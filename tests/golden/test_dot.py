import re
from fractions import Fraction

import numpy as np
import pytest
from tiles import small_tiles

from axs6.golden import Blocks, accumulate, block_dot, dot, encode, matmul
from axs6.golden.accumulator import Accumulator
from axs6.golden.check.exact import axs6 as exact
from axs6.golden.dot import block_dot_unit
from axs6.golden.formats import CATALOG, Exponent, Integer, Shift
from axs6.golden.terms import Terms

INFINITY, NAN, ONE = 0x7F800000, 0x7FC00000, 0x3F800000
SCALED_ONE = ONE + 549930
"""1024/961, which is 549929.6 steps of 2^-23 above one."""


def make_blocks(exponents, codes):
    exponents, codes = np.array(exponents, np.uint8), np.array(codes, np.uint8)
    shape = (*exponents.shape[:-1], codes.shape[-2] * codes.shape[-1])
    return Blocks.with_modes(exponents, np.zeros_like(exponents), codes, shape)


def bits(sums, exponents, how="fp32"):
    return int(accumulate(np.array(sums, int), np.array(exponents, int), how).view(np.uint32))


def random_blocks(shape, k, seed, size=8):
    rng = np.random.default_rng(seed)
    x = rng.standard_normal((*shape, k)) * np.exp2(rng.integers(-9, 9, (*shape, k)))
    return encode(x.astype(np.float32), block=size)


def test_block_dot():
    a = make_blocks([100, 255], [[31, 63, 1, 32, 0, 0, 0, 5], [31] * 8])
    b = make_blocks([200, 255], [[31, 31, 33, 31, 7, 7, 7, 37], [63] * 8])
    sums, exponents = block_dot(a, b)
    assert sums.tolist() == [961 - 961 - 1 - 25, -8 * 961]
    assert exponents.tolist() == [300, 510]
    assert (sums.dtype, exponents.dtype) == (np.int16, np.uint16)


@pytest.mark.parametrize(("code", "total"), [(31, 30752), (63, -30752)])
def test_extreme_block_dot(code, total):
    sums, _ = block_dot(make_blocks([0], [[31] * 32]), make_blocks([0], [[code] * 32]))
    assert sums.tolist() == [total]


def test_block_dot_broadcasts():
    a, b = random_blocks((3, 1), 40, 0), random_blocks((2,), 40, 1)
    sums, exponents = block_dot(a, b)
    assert sums.shape == exponents.shape == (3, 2, 5)
    row, _ = block_dot(random_blocks((3, 1), 40, 0), b)
    assert np.array_equal(sums, row)


@pytest.mark.parametrize(
    ("sums", "exponents", "fp32", "by_integers"),
    [
        ([], [], 0, 0),
        ([0], [510], 0, 0),
        ([961], [254], ONE, ONE),
        ([-1], [0], 0, 0x80000000),  # the accumulator starts at +0
        ([961, -961], [254, 254], 0, 0),
        ([30752], [510], INFINITY, INFINITY),
        ([-30752], [510], INFINITY | 1 << 31, INFINITY | 1 << 31),
        ([30752, -30752], [510, 510], NAN, 0),
        ([30752, -30752, 1], [510, 510, 254], NAN, None),
        ([961 * 3, 961], [380, 380], INFINITY, INFINITY),
        ([1024] * 3, [254, 230, 230], SCALED_ONE, SCALED_ONE + 1),  # two halves of the last bit
        ([1024] * 3, [230, 230, 254], SCALED_ONE + 1, SCALED_ONE + 1),
        ([961, 961], [254, 230], None, ONE),  # a tie
        ([961, 961, 1], [254, 230, 0], None, ONE + 1),  # and off it by the smallest term
        ([961, 961, -1], [254, 230, 0], None, ONE),
        ([961, 961, 961], [254, 231, 230], None, ONE + 2),
        ([961, 961, 961, -1], [254, 231, 230, 0], None, ONE + 1),
        ([961], [105], 1, 1),  # 2^-149
        ([961], [104], 0, 0),  # 2^-150, a tie
        ([961, 1], [104, 0], 0, 1),
        ([961 * 3], [104], None, 2),
    ],
)
def test_accumulate(sums, exponents, fp32, by_integers):
    for how, pinned in (("fp32", fp32), ("exact", by_integers)):
        got = bits(sums, exponents, how)
        assert got == exact.accumulate(sums, exponents, how)
        assert pinned in (None, got)


@pytest.mark.parametrize("how", ["fp32", "exact"])
def test_accumulate_shapes(how):
    rng = np.random.default_rng(3)
    sums, exponents = rng.integers(-30752, 30753, (2, 3, 9)), rng.integers(200, 300, (2, 3, 9))
    y = accumulate(sums, exponents, how)
    assert (y.shape, y.dtype) == ((2, 3), np.float32)
    assert y[1, 2].view(np.uint32) == bits(sums[1, 2], exponents[1, 2], how)
    assert (
        accumulate(sums[..., :0], exponents[..., :0], how).view(np.uint32).tolist() == [[0] * 3] * 2
    )
    assert accumulate(sums[:, :0], exponents[:, :0], how).shape == (2, 0)


@pytest.mark.parametrize("how", ["fp32", "exact"])
@pytest.mark.parametrize("size", [8, 16, 32])
def test_matmul_is_accumulated_block_dots(how, size):
    a, b = random_blocks((5,), 77, 1, size), random_blocks((4,), 77, 2, size)
    y = matmul(a, b, how)
    wide_a = Blocks.with_modes(a.exponents[:, None], a.modes[:, None], a.codes[:, None], (5, 1, 77))
    expected = accumulate(*block_dot(wide_a, b), how)
    assert y.dtype == np.float32
    assert y.tobytes() == expected.tobytes()


def test_matmul_is_near_the_product():
    rng = np.random.default_rng(8)
    a, b = rng.standard_normal((6, 200)), rng.standard_normal((7, 200))
    error = matmul(encode(a), encode(b)) - a @ b.T
    assert np.sqrt((error**2).mean()) < 0.06 * np.sqrt(200)


@pytest.mark.parametrize("how", ["fp32", "exact"])
def test_matmul_of_few_rows_at_a_time(how, monkeypatch):
    a, b = random_blocks((5,), 40, 4), random_blocks((3,), 40, 5)
    whole = matmul(a, b, how)
    monkeypatch.setattr(dot, "TILE_TERMS", 6)
    assert matmul(a, b, how).tobytes() == whole.tobytes()


@pytest.mark.parametrize("name", ["int8_float32_t0", "nvfp4"])
def test_matmul_of_few_rows_under_outer_scales(name, monkeypatch):
    rng = np.random.default_rng(9)
    a, b = (encode(rng.standard_normal((rows, 40)), name) for rows in (5, 3))
    whole = matmul(a, b)
    monkeypatch.setattr(dot, "TILE_TERMS", 6)
    assert matmul(a, b).tobytes() == whole.tobytes()


@pytest.mark.parametrize("how", ["fp32", "exact"])
@pytest.mark.parametrize("shape", [(2, 3, 0), (0, 3, 5), (2, 0, 5), (0, 0, 0)])
def test_empty_matmul(how, shape):
    m, n, k = shape
    y = matmul(encode(np.zeros((m, k))), encode(np.zeros((n, k))), how)
    assert y.shape == (m, n)
    assert not y.view(np.uint32).any()


def test_block_sizes_differ():
    a, b = encode(np.ones((1, 32)), block=8), encode(np.ones((1, 32)), block=16)
    message = r"^a and b must have the same block, not 8 and 16$"
    with pytest.raises(ValueError, match=message):
        block_dot(a, b)
    with pytest.raises(ValueError, match=message):
        matmul(a, b)


@pytest.mark.parametrize("product", [block_dot, matmul])
def test_high_precision_blocks_are_refused(product):
    dense, precise = (
        encode(np.ones((2, 16)), block=8),
        encode(np.ones((2, 16)), block=8, mode="high_precision"),
    )
    for name, operands in (("a", (precise, dense)), ("b", (dense, precise))):
        message = f"^block 0 of {name} is high-precision, which has no dot product"
        with pytest.raises(ValueError, match=message):
            product(*operands)


@pytest.mark.parametrize(
    ("sums", "exponents", "message"),
    [
        ([0, 30753], [0, 0], r"^sums must be in -30752 to 30752: element \(1,\) is 30753$"),
        ([0, 0], [511, -1], r"^exponents must be in 0 to 510: element \(0,\) is 511$"),
    ],
)
def test_what_no_block_dot_product_gives_is_refused(sums, exponents, message):
    with pytest.raises(ValueError, match=message):
        accumulate(np.array(sums), np.array(exponents))


def test_block_shapes_do_not_broadcast():
    message = r"^a and b must have block shapes that broadcast, not \(2, 1\) and \(3, 1\)$"
    with pytest.raises(ValueError, match=message):
        block_dot(encode(np.ones((2, 8)), block=8), encode(np.ones((3, 8)), block=8))


@pytest.mark.parametrize(("a", "b"), [((2, 8), (3, 9)), ((8,), (8,)), ((1, 2, 8), (2, 8))])
def test_matmul_shapes(a, b):
    message = f"a and b must have shapes (M, K) and (N, K), not {a} and {b}"
    with pytest.raises(ValueError, match=f"^{re.escape(message)}$"):
        matmul(encode(np.ones(a), block=8), encode(np.ones(b), block=8))


@pytest.mark.parametrize(("p", "e"), [((2,), (3,)), ((), ()), ((2, 3), (3,))])
def test_accumulate_shapes_differ(p, e):
    message = f"sums and exponents must have one shape (..., n), not {p}, {e}"
    with pytest.raises(ValueError, match=f"^{re.escape(message)}$"):
        accumulate(np.zeros(p, int), np.zeros(e, int))


def test_unknown_accumulation():
    message = r"^accumulator must be one of fp32, exact, paper, .*, not 'tree'$"
    with pytest.raises(ValueError, match=message):
        accumulate(np.zeros(1, int), np.zeros(1, int), "tree")
    with pytest.raises(ValueError, match=message):
        matmul(encode(np.ones((1, 8))), encode(np.ones((1, 8))), "tree")


WIDTHS = {
    "axs6": 16,
    "mxfp4": 14,
    "mxfp6_e2m3": 18,
    "mx9": 21,
    "mxfp6_e3m2": 24,
    "mxfp8_e4m3": 42,
    "mxfp8_e5m2": 70,
}


@pytest.mark.parametrize("name", WIDTHS)
def test_widths_of_sums(name):
    fmt = CATALOG[name]
    assert Terms.of(fmt, fmt, Accumulator()).width == WIDTHS[name]


def values(blocks):
    """What the blocks hold without scales of channels and tensors, as fractions."""
    blocks = blocks.untiled
    zero = 0 if blocks.zero_points is None else int(blocks.zero_points)
    element = blocks.format.element
    whole = [
        (element.integer(c) - zero) * element.unit for c in blocks.element_codes.ravel().tolist()
    ]
    for level, codes in zip(blocks.format.levels[::-1], blocks.scales, strict=True):
        if level.blocked:
            for lane, code in enumerate(np.repeat(codes.ravel(), level.group).tolist()):
                whole[lane] *= scale_value(level.scale, code)
    return np.array(whole, object).reshape(*blocks.leading, blocks.count, blocks.block)


def scale_value(scale, code):
    if isinstance(scale, Exponent):
        return Fraction(2) ** (code - scale.bias)
    if isinstance(scale, Shift):
        return Fraction(2) ** -code
    return (
        Fraction(code)
        if isinstance(scale, Integer)
        else scale.dtype.integer(int(scale.number(np.int64(code)))) * scale.dtype.unit
    )


@pytest.mark.parametrize(
    ("a", "b"),
    [
        *((small_tiles(name), small_tiles(name)) for name in CATALOG),
        ("axs6", "mxfp8_e5m2"),
        ("mxint8", "mxfp4"),
        ("int8_float32_t32", "e5m2_float32_t32"),
    ],
)
def test_block_dot_of_every_format(a, b):
    rng = np.random.default_rng([ord(c) for c in a + b])
    x, y = (
        encode(rng.standard_normal((2, 75)) * np.exp2(rng.integers(-20, 20, (2, 75))), name)
        for name in (a, b)
    )
    sums, exponents = block_dot(x, y)
    unit = block_dot_unit(a, b)
    assert sums.shape == exponents.shape == (2, x.count)
    bits = Terms.of(x.format, y.format, Accumulator()).width
    assert sums.dtype == (object if bits > 64 else f"int{max(16, 1 << (bits - 1).bit_length())}")
    exact_sums = (values(x) * values(y)).sum(axis=-1)
    for total, p, e in zip(exact_sums.flat, sums.flat, exponents.flat, strict=True):
        assert total == int(p) * Fraction(2) ** int(e) * unit
    got = accumulate(sums, exponents, "exact", (a, b))
    expected = [[float(row.sum())] for row in exact_sums]
    assert got.tolist() == [np.float32(x) for (x,) in expected]


def test_the_largest_sum_of_e5m2_takes_python_integers():
    fmt = CATALOG["mxfp8_e5m2"]
    codes = np.full((1, 1, 32), fmt.element.largest_code, np.uint8)
    largest = Blocks(fmt, (np.full((1, 1), 127, np.uint8),), codes, (1, 32))
    sums, exponents = block_dot(largest, largest)
    assert sums.tolist() == [[32 * (57344 << 16) ** 2]]
    assert sums[0, 0].bit_length() == WIDTHS["mxfp8_e5m2"] - 1
    for how in ("fp32", "exact"):
        y = accumulate(sums, exponents, how, ("mxfp8_e5m2", "mxfp8_e5m2"))
        assert y.tolist() == [32 * 57344**2]
        assert matmul(largest, largest, how).tolist() == [[32 * 57344**2]]


def test_a_sum_for_each_part_with_an_exponent():
    x = encode(np.arange(32.0)[None], "e4m3fn_e8m0_t16_e4m3fn_t32_float32")
    sums, exponents = block_dot(x, x)
    assert sums.shape == exponents.shape == (1, 2)


def test_accumulated_sums_in_any_accumulator():
    a, b = random_blocks((3,), 200, 1, 32), random_blocks((3,), 200, 2, 32)
    diagonal = np.arange(3)
    for how in ("paper", "blackwell", "hopper_fp8", "fp32,reduction=64,promote=2"):
        y = accumulate(*block_dot(a, b), how)
        assert y.tobytes() == matmul(a, b, how)[diagonal, diagonal].tobytes()


@pytest.mark.parametrize(
    ("name", "how", "lanes"),
    [("mxfp8_e4m3", "paper", 1), ("mxfp4", "blackwell_fp4", 16), ("axs6", "volta", 4)],
)
def test_parts_of_blocks_are_no_sums(name, how, lanes):
    message = rf"adds products of {lanes} lanes of {name}.*, which sums of 32 lanes do not contain$"
    with pytest.raises(ValueError, match=message):
        accumulate(np.zeros(1, int), np.zeros(1, int), how, (name, name))


def test_what_is_no_integer_has_no_block_dot():
    number = encode(np.ones((1, 32)), "mxfp8_e5m2")
    for code, scale in ((0x7C, 127), (0xFC, 127), (0x7D, 127), (0, 255)):
        scales, codes = np.array([[scale]], np.uint8), np.full((1, 1, 32), code, np.uint8)
        other = Blocks(number.format, (scales,), codes, (1, 32))
        with pytest.raises(
            ValueError, match=r"^b holds NaN or infinities, which integers cannot represent$"
        ):
            block_dot(number, other)


@pytest.mark.parametrize("wrong", [np.zeros(2), [0, 0], np.zeros(2, bool)])
def test_sums_and_exponents_are_arrays_of_integers(wrong):
    right = np.zeros(2, np.int64)
    assert accumulate(right, right) == 0
    assert accumulate(right.astype(object), right) == 0
    kind = getattr(wrong, "dtype", "list")
    for name, arguments in (("sums", (wrong, right)), ("exponents", (right, wrong))):
        message = rf"^{name} must be an array of integers, not {kind}$"
        with pytest.raises(TypeError, match=message):
            accumulate(*arguments)


@pytest.mark.parametrize(("name", "nan"), [("mxfp8_e4m3", 255), ("nvfp4", 127)])
def test_one_nan_among_scales_is_that_of_its_row(name, nan):
    ones = encode(np.ones((3, 64)), name)
    scales = ones.scales[-1].copy()
    scales[1, 0] = nan
    found = matmul(Blocks(ones.format, (*ones.scales[:-1], scales), ones.codes, ones.shape), ones)
    assert np.isnan(found[1]).all()
    assert (found[::2] == 64).all()
