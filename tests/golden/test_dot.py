import re

import numpy as np
import pytest

from axs6.golden import Blocks, accumulate, block_dot, dot, encode, exact, matmul

INFINITY, NAN, ONE = 0x7F800000, 0x7FC00000, 0x3F800000
SCALED_ONE = ONE + 549930
"""1024/961, which is 549929.6 steps of 2^-23 above one."""


def make_blocks(exponents, codes):
    exponents, codes = np.array(exponents, np.uint8), np.array(codes, np.uint8)
    shape = (*exponents.shape[:-1], codes.shape[-2] * codes.shape[-1])
    return Blocks(exponents, np.zeros_like(exponents), codes, shape)


def bits(sums, exponents, how="fp32"):
    return int(accumulate(np.array(sums, int), np.array(exponents, int), how).view(np.uint32))


def random_blocks(shape, k, seed, size=8):
    rng = np.random.default_rng(seed)
    x = rng.standard_normal((*shape, k)) * np.exp2(rng.integers(-9, 9, (*shape, k)))
    return encode(x.astype(np.float32), size)


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
    wide_a = Blocks(a.exponents[:, None], a.modes[:, None], a.codes[:, None], (5, 1, 77))
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
    monkeypatch.setattr(dot, "MATMUL_VALUES", 6)
    assert matmul(a, b, how).tobytes() == whole.tobytes()


@pytest.mark.parametrize("how", ["fp32", "exact"])
@pytest.mark.parametrize("shape", [(2, 3, 0), (0, 3, 5), (2, 0, 5), (0, 0, 0)])
def test_empty_matmul(how, shape):
    m, n, k = shape
    y = matmul(encode(np.zeros((m, k))), encode(np.zeros((n, k))), how)
    assert y.shape == (m, n)
    assert not y.view(np.uint32).any()


def test_block_sizes_differ():
    a, b = encode(np.ones((1, 32)), 8), encode(np.ones((1, 32)), 16)
    message = r"^a and b must have the same block, not 8 and 16$"
    with pytest.raises(ValueError, match=message):
        block_dot(a, b)
    with pytest.raises(ValueError, match=message):
        matmul(a, b)


@pytest.mark.parametrize("product", [block_dot, matmul])
def test_high_precision_blocks_are_refused(product):
    dense, precise = encode(np.ones((2, 16)), 8), encode(np.ones((2, 16)), 8, mode="high_precision")
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
        block_dot(encode(np.ones((2, 8)), 8), encode(np.ones((3, 8)), 8))


@pytest.mark.parametrize(("a", "b"), [((2, 8), (3, 9)), ((8,), (8,)), ((1, 2, 8), (2, 8))])
def test_matmul_shapes(a, b):
    message = f"a and b must have shapes (M, K) and (N, K), not {a} and {b}"
    with pytest.raises(ValueError, match=f"^{re.escape(message)}$"):
        matmul(encode(np.ones(a), 8), encode(np.ones(b), 8))


@pytest.mark.parametrize(("p", "e"), [((2,), (3,)), ((), ()), ((2, 3), (3,))])
def test_accumulate_shapes_differ(p, e):
    message = f"sums and exponents must have one shape (..., n), not {p}, {e}"
    with pytest.raises(ValueError, match=f"^{re.escape(message)}$"):
        accumulate(np.zeros(p, int), np.zeros(e, int))


def test_unknown_accumulation():
    message = r"^accumulate must be one of fp32, exact, not 'tree'$"
    with pytest.raises(ValueError, match=message):
        accumulate(np.zeros(1, int), np.zeros(1, int), "tree")
    with pytest.raises(ValueError, match=message):
        matmul(encode(np.ones((1, 8))), encode(np.ones((1, 8))), "tree")
