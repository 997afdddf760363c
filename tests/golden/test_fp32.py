from fractions import Fraction

import numpy as np
import pytest
from fused import fused

from axs6.golden import fp32
from axs6.golden.check.cases import fp32 as fp32_cases
from axs6.golden.check.exact import axs6 as exact
from axs6.golden.check.exact import floats
from axs6.golden.check.exact.floats import add_fp32, float_value, power, round_to_float
from axs6.golden.formats import FP16, FP32, Float


def canonical(x):
    """Bit patterns of float32 values, every NaN as the one that the project produces."""
    return np.where(np.isnan(x), np.uint32(FP32.quiet_nan), x.view(np.uint32))


def ieee_sum(a, b):
    with np.errstate(all="ignore"):
        return canonical(a.view(np.float32) + b.view(np.float32))


def test_add_as_ieee_on_corners():
    corners = fp32_cases.corners()
    a, b = np.repeat(corners, len(corners)), np.tile(corners, len(corners))
    assert np.array_equal(fp32.add(a, b), ieee_sum(a, b))


@pytest.mark.parametrize("seed", range(4))
def test_add_as_ieee_on_random_pairs(seed):
    a, b = fp32_cases.random_pairs(200_000, np.random.default_rng(seed))
    assert np.array_equal(fp32.add(a, b), ieee_sum(a, b))


def test_add_broadcasts():
    a, b = np.uint32([[0x3F800000], [0x40000000]]), np.uint32([0, 0x3F800000, 0xBF800000])
    one, two, three = 0x3F800000, 0x40000000, 0x40400000
    assert fp32.add(a, b).tolist() == [[one, two, 0], [two, three, one]]


@pytest.mark.parametrize("seed", range(4))
def test_multiply_add(seed):
    rng = np.random.default_rng(seed)
    a, b = fp32_cases.random_pairs(100_000, rng)
    c = rng.permutation(a)
    products = fp32.multiply(a, b)
    corners = fp32_cases.corners()
    some = rng.choice(corners, (3, 50_000))
    for x, y, z in ((a, b, c), (a, b, products ^ np.uint32(1 << 31)), some):
        exact = canonical(fused(*(each.view(np.float32) for each in (x, y, z))))
        assert np.array_equal(fp32.multiply_add(x, y, z), exact)
    assert (fp32.multiply_add(a, b, c) != fp32.add(products, c)).any()


@pytest.mark.parametrize("special", [0x7F800000, 0xFF800000, 0x7FC00000])
@pytest.mark.parametrize("place", range(3))
def test_one_special_operand_among_numbers(place, special):
    one, two, three = 0x3F800000, 0x40000000, 0x40400000
    operands = np.full((3, 2), one, np.uint32)
    operands[place, 1] = special
    a, b, c = operands
    assert fp32.multiply_add(a, b, c).tolist() == [two, special]
    assert fp32.add(a, fp32.add(b, c)).tolist() == [three, special]
    assert fp32.multiply(a, fp32.multiply(b, c)).tolist() == [one, special]


def test_nan_is_canonical():
    nans = np.uint32([0x7F800001, 0xFFC00000, 0xFFFFFFFF])
    assert (fp32.add(nans, np.uint32([0])) == 0x7FC00000).all()
    assert (fp32.add(np.uint32([0x7F800000]), nans) == 0x7FC00000).all()
    assert (fp32.divide_by_scale(nans, 961) == 0x7FC00000).all()


def test_add_rounds_to_a_dtype():
    """Truncated to E8M13, whose patterns are those of FP32 with ten zeros."""
    narrow = Float(8, 13)
    a, b = fp32_cases.random_pairs(3000, np.random.default_rng(11))
    a, b = (x & np.uint32(~0x3FF & 0xFFFFFFFF) for x in (a, b))
    got = fp32.add(a, b, narrow, toward_zero=True).tolist()
    for x, y, bits in zip(a.tolist(), b.tolist(), got, strict=True):
        exactly = float_value(x, floats.FP32), float_value(y, floats.FP32)
        if all(isinstance(v, Fraction) for v in exactly) and sum(exactly):
            total = sum(exactly)
            nearest = round_to_float(total, floats.FP32)
            down = nearest & ~0x3FF
            if nearest & 0x3FF == 0:
                beyond = abs(float_value(nearest, floats.FP32)) > abs(total)
                down -= 0x400 if beyond else 0
            assert bits == down
        else:
            assert bits == add_fp32(x, y)


def test_add_rounds_to_fp16():
    a, b = np.uint32([0x3F800000, 0x477FE000, 0x33800000]), np.uint32([0x3A000000, 0x41800000, 0])
    assert fp32.add(a, b, FP16).tolist() == [0x3F800000, 0x7F800000, 0x33800000]


def test_multiply_as_ieee():
    corners = fp32_cases.corners()
    a, b = fp32_cases.random_pairs(200_000, np.random.default_rng(8))
    a = np.concatenate([np.repeat(corners, len(corners)), a])
    b = np.concatenate([np.tile(corners, len(corners)), b])
    with np.errstate(all="ignore"):
        expected = canonical(a.view(np.float32) * b.view(np.float32))
    assert np.array_equal(fp32.multiply(a, b), expected)


@pytest.mark.parametrize("divisor", [3, 31, 31 * 15, 127 * 127])
def test_divide_by_other_denominators(divisor):
    a = fp32_cases.random_pairs(3000, np.random.default_rng(9))[0]
    scale = Fraction(divisor, 1 << divisor.bit_length())
    for x, bits in zip(a.tolist(), fp32.divide_by_scale(a, divisor).tolist(), strict=True):
        exactly = float_value(x, floats.FP32)
        if isinstance(exactly, Fraction) and exactly:
            assert bits == round_to_float(exactly / scale, floats.FP32)


def test_divide_as_ieee():
    """A float64 quotient of normal values rounds on to the right float32 (53 >= 2 * 24 + 2)."""
    a = fp32_cases.random_pairs(400_000, np.random.default_rng(5))[0]
    a = a[(a & 0x7FFFFFFF) >= 0x00800000]
    with np.errstate(all="ignore"):
        quotient = a.view(np.float32).astype(np.float64) * 1024 / 961
        expected = canonical(quotient.astype(np.float32))
    assert np.array_equal(fp32.divide_by_scale(a, 961), expected)


def test_divide_subnormals_by_definition():
    a = np.arange(1, 1 << 23, 2099, dtype=np.uint32) | np.uint32(1 << 31)
    assert fp32.divide_by_scale(a, 961).tolist() == [exact.divide_fp32(x) for x in a.tolist()]


@pytest.mark.parametrize("tail", [Fraction(0), Fraction(1, 3)])
def test_round_to_fp32_with_sticky_bit(tail):
    """A tail below the significand decides ties, and only ties."""
    rng = np.random.default_rng(7)
    significand = rng.integers(1 << 26, 1 << 62, 2000, np.uint64)
    significand[:500] &= ~np.uint64((1 << 28) - 1)
    significand[:500] |= np.uint64(1 << 61)
    exponent = rng.integers(-215, 70, 2000)
    negative = rng.integers(0, 2, 2000, bool)
    got = fp32.round_to_fp32(negative, significand, exponent, np.full(2000, tail > 0))
    expected = [
        round_to_float((-1 if n else 1) * (s + tail) * power(e), floats.FP32)
        for n, s, e in zip(negative.tolist(), significand.tolist(), exponent.tolist(), strict=True)
    ]
    assert got.tolist() == expected


def test_classes():
    bits = np.uint32([0, 0x7F7FFFFF, 0x7F800000, 0xFF800000, 0x7F800001, 0xFFC00000])
    assert fp32.is_infinite(bits).tolist() == [False, False, True, True, False, False]
    assert fp32.is_nan(bits).tolist() == [False, False, False, False, True, True]
