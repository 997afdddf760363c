from fractions import Fraction
from math import floor

import ml_dtypes
import numpy as np
import pytest

from axs6.golden import floats
from axs6.golden.formats import BF16, FP16, FP32, FP64, Float, NotANumber, Specials

E4M3 = Float(4, 3, Specials.NAN)
E2M1 = Float(2, 1, Specials.NONE)
E8M13 = Float(8, 13)
DTYPES = [FP32, BF16, FP16, FP64, E8M13, E4M3, E2M1, Float(5, 2, exponent_bias=20)]


def value(dtype, pattern):
    """The number that a pattern is, or what it is instead."""
    integer = dtype.integer(pattern)
    return integer if isinstance(integer, NotANumber) else integer * dtype.unit


def by_definition(dtype, x, toward_zero):
    """x on the grid of `dtype`, or the infinity or the largest value in place of what is beyond."""
    quantum = dtype.unit * 2 ** max(0, floats_log2(abs(x) / dtype.unit) - dtype.fraction_bits - 2)
    while abs(x) >= quantum * 2 ** (dtype.fraction_bits + 1):
        quantum *= 2
    count = floor(abs(x) / quantum) if toward_zero else round(abs(x) / quantum)
    if count * quantum <= dtype.largest:
        return count * quantum * (-1 if x < 0 else 1)
    if dtype.has_infinity:
        return NotANumber.NEGATIVE_INFINITY if x < 0 else NotANumber.INFINITY
    return dtype.largest * (-1 if x < 0 else 1)


def random_numbers(dtype, rng, count=600):
    """Signs, significands of all lengths and exponents, from below the smallest value to beyond."""
    significand = rng.integers(1 << 61, 1 << 62, count, np.uint64) >> rng.integers(
        0, 62, count, np.uint64
    )
    significand[: count // 4] &= ~np.uint64(0) << rng.integers(30, 60, count // 4, np.uint64)
    lowest, highest = dtype.emin - dtype.fraction_bits, floats_log2(dtype.largest)
    length = floats.bit_length(significand)
    exponent = rng.integers(lowest - 3, highest + 3, count) - length
    return rng.integers(0, 2, count, bool), significand, exponent


def floats_log2(x):
    return x.numerator.bit_length() - x.denominator.bit_length()


@pytest.mark.parametrize("toward_zero", [False, True])
@pytest.mark.parametrize("dtype", DTYPES, ids=str)
def test_rounded_as_by_definition(dtype, toward_zero):
    rng = np.random.default_rng([dtype.width, toward_zero])
    negative, significand, exponent = random_numbers(dtype, rng)
    got = floats.round_to_float(
        dtype, negative, significand, exponent, toward_zero=toward_zero
    ).tolist()
    for pattern, n, s, e in zip(
        got, negative.tolist(), significand.tolist(), exponent.tolist(), strict=True
    ):
        x = (-1 if n else 1) * s * Fraction(2) ** e
        assert value(dtype, pattern) == by_definition(dtype, x, toward_zero)
        assert bool(pattern & dtype.sign_bit) == n


@pytest.mark.parametrize("toward_zero", [False, True])
def test_a_tail_below_the_significand_decides_ties(toward_zero):
    significand = np.array([0b101 << 30, 0b111 << 30, (0b101 << 30) - 1], np.uint64)
    negative, exponent = np.zeros(3, bool), np.zeros(3, np.int64)
    for tail in (False, True):
        got = floats.round_to_float(E2M1, negative, significand, exponent - 30, tail, toward_zero)
        above = Fraction(tail, 1 << 40)
        numbers = [5 + above, 7 + above, 5 - Fraction(1, 1 << 30) + above]
        expected = [by_definition(E2M1, x, toward_zero) for x in numbers]
        assert [value(E2M1, p) for p in got.tolist()] == expected


def test_too_large_is_infinite_in_either_rounding():
    one = np.array([1], np.uint64)
    for toward_zero in (False, True):
        for dtype, pattern in ((FP32, FP32.infinity), (E4M3, 0x7E), (E2M1, 7)):
            for exponent in (128, 1 << 20):
                got = floats.round_to_float(
                    dtype, np.array([False]), one, np.array([exponent]), toward_zero=toward_zero
                )
                assert got.tolist() == [pattern]


NORMAL = Float(5, 3, Specials.NAN, signed=False, subnormals=False)


@pytest.mark.parametrize("dtype", [FP16, BF16, E4M3, E2M1, NORMAL], ids=str)
def test_split_gives_every_value(dtype):
    patterns = np.arange(1 << dtype.width, dtype=np.uint16)
    parts = zip(*(x.tolist() for x in floats.split(dtype, patterns)), strict=True)
    for pattern, (negative, significand, exponent) in enumerate(parts):
        number = value(dtype, pattern)
        if not isinstance(number, NotANumber):
            assert (-1 if negative else 1) * significand * Fraction(2) ** exponent == number
            assert negative == bool(pattern & dtype.sign_bit)


def test_bf16_bits_as_ml_dtypes():
    high = np.uint32([0x0000, 0x0001, 0x007F, 0x0080, 0x3F80, 0x3F81, 0x7F7F, 0x7F80, 0x7FC1])
    low = np.uint32([0, 1, 0x7FFF, 0x8000, 0x8001, 0xFFFF])
    magnitudes = (high[:, None] << 16 | low).ravel()
    values = np.concatenate([magnitudes, magnitudes | np.uint32(1 << 31)]).view(np.float32)
    got = floats.bf16_bits(values)
    with np.errstate(invalid="ignore"):
        expected = values.astype(ml_dtypes.bfloat16).view(np.uint16)
    nan = np.isnan(values)
    assert np.array_equal(got[~nan], expected[~nan])
    assert got[nan].tolist() == (values.view(np.uint32)[nan] >> 16 | 0x40).tolist()


def test_bit_length():
    numbers = [0, *(x for n in range(64) for x in ((1 << n) - 1, 1 << n, (1 << n) + 1))]
    assert floats.bit_length(np.array(numbers, np.uint64)).tolist() == [
        x.bit_length() for x in numbers
    ]
