"""What the steps of AMD's matrix cores do to numbers for which they are worked out by hand."""

import numpy as np

from axs6.golden import Blocks, encode, matmul
from axs6.golden.formats import NotANumber

from .test_sums import dot, fp32, row, two

E5M2 = "fp8_e5m2"


def test_cdna1_rounds_a_step_once():
    """1 + 2^-24 + 2^-30, in steps of four products and of one."""
    a = [1, two(-12), two(-15), 0]
    assert dot(a, a, "cdna1", E5M2) == fp32(1) + 1
    assert dot(a, a, "cdna_fp32", E5M2) == fp32(1)


def test_cdna2_adds_in_pairs():
    """(1 + 2^-24) + (2^-24 + 0), each rounded to nearest even."""
    a, b = [1, two(-12), two(-12), 0], [1, two(-12), two(-12), 0]
    assert dot(a, b, "cdna2", E5M2) == fp32(1)
    assert dot(a, b, "cdna1", E5M2) == fp32(1) + 1
    assert dot([0, *a[1:], 1], [0, *b[1:], 1], "cdna2", E5M2) == fp32(1) + 1


def test_cdna2_adds_pairs_of_any_number_of_products():
    """24 products make three sums of eight, of which the last one waits."""
    one = encode(np.repeat([1, 2, 4], 8)[None], "e4m3fn_e8m0_t8")
    assert matmul(one, one, "cdna2_bf16,reduction=24").tolist() == [[8 * (1 + 4 + 16)]]


def test_cdna2_takes_subnormal_operands_for_zeros():
    """2^-15 is subnormal in FP16, and 2^-14 is not."""
    for x, kept in ((two(-15), False), (two(-14), True)):
        assert dot([x], [1], "cdna2", E5M2) == (fp32(x) if kept else 0)
        assert dot([x], [1], "cdna2_bf16", E5M2) == fp32(x)


def test_cdna3_drops_bits_of_sums_toward_minus_infinity():
    """-2^-26 beside 1: a term of the same group, of the other group, and of the next step."""
    small = -two(-13), two(-13)
    assert dot([1, small[0]], [1, small[1]], "cdna3", E5M2) == fp32(1)
    assert dot([1, small[0]], [1, small[1]], "cdna3_fp8", E5M2) == fp32(1) - 1
    assert dot([1, 0, small[0]], [1, 0, small[1]], "cdna3_fp8", E5M2) == fp32(1)
    assert dot([1, *[0] * 15, small[0]], [1, *[0] * 15, small[1]], "cdna3", E5M2) == fp32(1)


def test_cdna3_keeps_eight_bits_below_the_last_one():
    """1 + 2^-24 + 2^-32 is a tie, since 2^-32 is dropped; with 2^-31 it is none."""
    first, half = [1, *[0] * 7], two(-12)
    a, b = [*first, half, two(-16)], [*first, half, two(-16)]
    assert dot(a, b, "cdna3", E5M2) == fp32(1)
    b[-1] = two(-15)
    assert dot(a, b, "cdna3", E5M2) == fp32(1) + 1


def test_the_accumulator_of_cdna3_has_a_reach():
    """-1 beside 2^26 counts as 0 in FP8, and as -4 where its bits are dropped."""
    a, b = [-1, *[0] * 15, two(13)], [1, *[0] * 15, two(13)]
    assert dot(a, b, "cdna3_fp8", E5M2) == fp32(two(26))
    assert dot(a, b, "cdna3_fp8,reach=none", E5M2) == fp32(two(26)) - 1
    assert dot(a, b, "cdna3", E5M2) == fp32(two(26)) - 1


def test_negative_sums_become_minus_zero():
    """-2^-159, which is too small for FP32, in the last step: 0 added to -0 is +0."""
    a, b = [*[0] * 31, -two(-16)], [*[0] * 31, two(-16)]
    for how in ("cdna1", "cdna3", "cdna3_fp8"):
        assert dot(a, b, how, "mxfp8_e5m2", exponents=[-127]) == 1 << 31
        assert dot(a, b, f"{how},minus_zero=false", "mxfp8_e5m2", exponents=[-127]) == 0


def test_sums_that_cancel_are_exact():
    """1 - 1 +- 2^-10: the exponent of the terms is far above that of their sum."""
    for sign in (1, -1):
        a, b = [1, 1, sign * two(-6)], [1, -1, two(-4)]
        for how in ("cdna3", "cdna3_fp8"):
            assert dot(a, b, how, E5M2) == fp32(sign * two(-10))


def test_terms_of_2_to_the_128_are_infinite_in_cdna3():
    """One term of a step, two of unlike signs, and the largest that is none."""
    infinity, rest = 0x7F800000, [0] * 29
    for a, result in (
        ([2, 1, 1], infinity),
        ([-2, 1, 1], infinity | 1 << 31),
        ([2, -2, 1], 0x7FFFFFFF),
        ([1, 0, 0], fp32(two(127))),
    ):
        got = dot([*a, *rest], [1] * 32, "cdna3", "mxfp8_e5m2", exponents=[127])
        assert got == result


def test_cdna2_takes_values_for_zeros_in_each_block():
    """Half of the smallest normal operand, 2^-126 of BF16, under each of two scales."""
    a = [*[0] * 31, 1, *[0] * 31, 1]
    assert dot(a, [1] * 64, "cdna2_bf16", "mxfp8_e5m2") == fp32(2)
    got = dot(a, [1] * 64, "cdna2_bf16", "mxfp8_e5m2", exponents=[-127, 0])
    assert got == fp32(1)
    got = dot(a, [1] * 64, "cdna2_bf16", "mxfp8_e5m2", exponents=[0, -126])
    assert got == fp32(1)


def test_a_special_product_leaves_other_rows_as_they_are():
    one, other = row([1, 2, 3], E5M2), row([NotANumber.INFINITY, 2, 3], E5M2)
    both = Blocks(one.format, one.scales, np.vstack([one.codes, other.codes]), (2, 32))
    for how in ("cdna1", "cdna2", "cdna3", "cdna3_fp8"):
        found = matmul(both, row([1, 1, 1], E5M2), how).view(np.uint32)
        assert found.ravel().tolist() == [fp32(6), 0x7F800000]
