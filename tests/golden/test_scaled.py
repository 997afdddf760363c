"""Accumulators whose promotion multiplies by the scales of blocks, as DeepSeek-V3's on Hopper."""

import re
from dataclasses import replace

import numpy as np
import pytest
from fused import fused

from axs6.golden import Blocks, accumulate, encode, matmul
from axs6.golden.accumulator import accumulator
from axs6.golden.check.dot import ACCUMULATORS as COMPARED
from axs6.golden.check.exact.dot import Operand, dot
from axs6.golden.check.subjects import CheckedFormat, as_rows
from axs6.golden.formats import block_format

ROW = "e4m3fn_float32_t128"
SCALED = "hopper_fp8_scaled"
ONE, INFINITY, SIGN, NAN = 0x3F800000, 0x7F800000, 1 << 31, 0x7FFFFFFF


@pytest.fixture
def rng():
    return np.random.default_rng(0)


def exponents(x):
    """floor(log2 |x|), that of 0 far below."""
    return np.where(x == 0, -1000, np.frexp(x)[1] - 1)


def tensor_core(a, b, total):
    """`total` after 32 products of E4M3 elements (M, 32) and (N, 32), in float64."""
    of_lanes = [np.maximum(exponents(x), np.where(x == 0, -1000, -6)) for x in (a, b)]
    products = a[:, None] * b[None]
    powers = np.where(products == 0, -1000, of_lanes[0][:, None] + of_lanes[1][None])
    top = np.maximum(np.maximum(powers.max(-1), exponents(total)), -133)
    unit = np.ldexp(1.0, top - 13)
    whole = np.trunc(products / unit[..., None]).sum(-1) + np.trunc(total / unit)
    kept = np.float32(whole * unit).view(np.uint32) & np.uint32(~0x3FF & 0xFFFFFFFF)
    return kept.view(np.float32).astype(np.float64)


def promoted(partial, x, y, result):
    """One of the kernel's multiply-adds."""
    return fused(partial, x * y, result)


def deepgemm(a, b, scales_a, scales_b, step=promoted):
    """The kernel's loop over 128 values at a time: elements (M, n, 128), FP32 scales (M, n)."""
    result = np.zeros((len(a), len(b)), np.float32)
    for k in range(a.shape[1]):
        partial = np.zeros(result.shape)
        for lane in range(0, 128, 32):
            here = slice(lane, lane + 32)
            partial = tensor_core(a[:, k, here], b[:, k, here], partial)
        result = step(np.float32(partial), scales_a[:, None, k], scales_b[None, :, k], result)
    return result


def elements(blocks):
    """Elements and FP32 scales of a matrix."""
    blocks = blocks.untiled
    values = blocks.format.element.integers * float(blocks.format.element.unit)
    return values[blocks.codes], blocks.scales[-1].view(np.float32)


def matrices(rng, rows, columns, length):
    """Activations and weights, whose values come in all sizes."""
    x, w = (rng.standard_normal((n, length)) * 2.0 ** rng.integers(-9, 1, (n, length))
            for n in (rows, columns))  # fmt: skip
    return encode(x, ROW), encode(w, "fp8_block")


WRONG = {
    "the product rounded too": lambda partial, x, y, result: partial * (x * y) + result,
    "one scale after the other": lambda partial, x, y, result: fused(partial * x, y, result),
    "no scale of the weight": lambda partial, x, y, result: fused(partial, x, result),
}


def test_as_restated_in_float32(rng):
    a, b = matrices(rng, 7, 150, 500)
    (left, scales), (right, others) = elements(a), elements(b)
    expected = deepgemm(left, right, scales, others)
    got = matmul(a, b, SCALED)
    assert got.view(np.uint32).tolist() == expected.view(np.uint32).tolist()
    assert (got != matmul(a, b, "hopper_fp8,promote=4")).mean() > 0.9
    for wrong in WRONG.values():
        assert (deepgemm(left, right, scales, others, wrong) != expected).any()


def block(scale, codes, name=ROW):
    """One block with these first codes."""
    fmt = block_format(name)
    whole = np.zeros((1, 1, fmt.block), np.uint8)
    whole[..., : len(codes)] = codes
    dtype = np.uint32 if fmt.blocked[-1].scale.bits == 32 else np.uint8
    return Blocks(fmt, (np.array([[scale]], dtype),), whole, (1, fmt.block))


def product(a, b, how=SCALED):
    """The pattern of the product of two blocks, which the exact model has too."""
    bits = int(matmul(a, b, how).view(np.uint32)[0, 0])
    rows = [as_rows(x)[0] for x in (a, b)]
    names = [CheckedFormat.of(str(x.format)).definition for x in (a, b)]
    operands = (Operand(*x) for x in zip(rows, names, strict=True))
    assert dot(*operands, COMPARED[how]) == bits
    return bits


E4M3_ONE, E4M3_NAN, MINUS_ONE = 0x38, 0x7F, 0xB8


@pytest.mark.parametrize(
    ("scales", "codes", "expected"),
    [
        ((ONE, ONE), (E4M3_ONE, E4M3_ONE), ONE),
        ((ONE, ONE), (E4M3_NAN, E4M3_ONE), NAN),
        ((0x7FC00000, ONE), (E4M3_ONE, E4M3_ONE), NAN),
        ((0x7FC00000, ONE), (0, 0), NAN),
        ((0, ONE), (MINUS_ONE, E4M3_ONE), 0),
        # 2^100 * 2^100 is infinite before it meets a sum: of either sign, or 0.
        ((0x71800000, 0x71800000), (E4M3_ONE, E4M3_ONE), INFINITY),
        ((0x71800000, 0x71800000), (MINUS_ONE, E4M3_ONE), SIGN | INFINITY),
        ((0x71800000, 0x71800000), (0, E4M3_ONE), NAN),
        # A product of scales that is subnormal has fewer bits: (1 + 2^-23)^2 * 2^-140.
        ((0x3F800001, 0x00000200), (E4M3_ONE, E4M3_ONE), 0x200),
        # 2^-100 * 2^-100 is 0.
        ((0x0D800000, 0x0D800000), (0x7E, 0x7E), 0),
        # 2^-149 times 2^-12 rounds to 0, of its sign.
        ((0x00000001, ONE), (0x80 | 0x08, 0x08), SIGN),
    ],
)
def test_special_values(scales, codes, expected):
    a, b = (block(*x) for x in zip(scales, ([c] for c in codes), strict=True))
    assert product(a, b) == expected


def test_a_sum_that_is_infinite():
    a = block(0x3C, [0x7C], "e5m2_e8m0_t32")
    assert product(a, block(0x7F, [0x3C], "e5m2_e8m0_t32"), "hopper_fp8,promote=1,scaled=true") == (
        INFINITY
    )


def test_scales_of_other_kinds(rng):
    """Under powers of two far from overflow, scales inside or outside the sums change no bit."""
    x, y = (rng.standard_normal((5, 96)) for _ in range(2))
    a, b = (encode(each, "mxint8") for each in (x, y))
    assert np.array_equal(matmul(a, b, "fp32"), matmul(a, b, "fp32,promote=1,scaled=true"))
    for name in ("nvfp4_ue5m3", "int4_bfloat16_t32", "uint8_float32_uint8_t32", "axs6", "if4"):
        a, b = (encode(each, name) for each in (x, y))
        got = matmul(a, b, "fp32,promote=1,scaled=true")
        np.testing.assert_allclose(got, matmul(a, b), rtol=1e-4, atol=1e-5)


@pytest.mark.parametrize(
    ("name", "how", "message"),
    [
        (
            "mxfp8_e4m3",
            SCALED,
            "hopper_fp8_scaled multiplies sums of 128 lanes by the scales of blocks, and those of "
            "mxfp8_e4m3 have 32",
        ),
        *(
            (name, SCALED, "hopper_fp8_scaled needs formats with one scale for each block, real "
             f"or an exponent, not {name}")
            for name in ("mx9", "fp8_e4m3", "vsq8", "int8_float32_t0")
        ),
    ],
)  # fmt: skip
def test_what_formats_do_not_have(name, how, message):
    x = encode(np.ones((2, 128)), name)
    with pytest.raises(ValueError, match=f"^{re.escape(message)}$"):
        matmul(x, x, how)


def test_sums_of_blocks_have_no_scales():
    with pytest.raises(ValueError, match=r"^fp32,promote=1,scaled=true multiplies by the scales"):
        accumulate(np.ones(2, int), np.ones(2, int), "fp32,promote=1,scaled=true")


def test_promotion_is_needed():
    with pytest.raises(ValueError, match=r"^scaled needs promote, where the scales of blocks mult"):
        accumulator("hopper_fp8,scaled=true")
    assert str(replace(accumulator("hopper_fp8"), promote=4, scaled=True)) == SCALED


def test_nothing():
    a = encode(np.ones((2, 0)), ROW)
    assert not matmul(a, a, SCALED).view(np.uint32).any()
