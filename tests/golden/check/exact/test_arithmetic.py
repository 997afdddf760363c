"""FP32 arithmetic of the exact model against the processor's, and where it rounds to less."""

from fractions import Fraction

import numpy as np
import pytest

from axs6.golden.check.cases import fp32 as cases
from axs6.golden.check.exact.accumulator import E8M13_TOWARD_ZERO, Accumulator, Output
from axs6.golden.check.exact.arithmetic import (
    add,
    multiply,
    multiply_add_bits,
    number,
    product_bits,
    rounded,
    sum_bits,
)
from axs6.golden.check.exact.floats import FP16, FP32, FP32_NAN, Special

PLAIN = Accumulator()
MINUS, ONE, INFINITY = 1 << 31, 0x3F800000, 0x7F800000


def pairs():
    corners = cases.corners()
    random = cases.random_pairs(2000, np.random.default_rng(3))
    return np.concatenate([np.stack(np.meshgrid(corners, corners)).reshape(2, -1), random], axis=1)


def test_sums_as_ieee():
    a, b = pairs()
    with np.errstate(all="ignore"):
        total = a.view(np.float32) + b.view(np.float32)
    expected = np.where(np.isnan(total), np.uint32(FP32_NAN), total.view(np.uint32)).tolist()
    got = [sum_bits(x, y, Output(), PLAIN) for x, y in zip(a.tolist(), b.tolist(), strict=True)]
    assert got == expected


def test_products_as_ieee():
    a, b = pairs()
    b &= np.uint32(MINUS - 1)
    with np.errstate(all="ignore"):
        product = a.view(np.float32) * b.view(np.float32)
    expected = np.where(np.isnan(product), np.uint32(FP32_NAN), product.view(np.uint32)).tolist()
    for x, y, bits in zip(a.tolist(), b.tolist(), expected, strict=True):
        value = Special.NEGATIVE_ZERO if x == MINUS else number(x)
        assert product_bits(value, number(y), PLAIN) == bits
        if bits != MINUS:
            assert multiply_add_bits(x, number(y), 0, PLAIN) == bits


@pytest.mark.parametrize(
    ("x", "factor", "y", "expected"),
    [
        (MINUS, 1, MINUS, MINUS),
        (MINUS, 0, MINUS, MINUS),
        (MINUS | ONE, 0, MINUS, MINUS),
        (ONE, 0, MINUS, 0),
        (MINUS, 1, 0, 0),
        (0, 1, MINUS, 0),
        (ONE, 1, MINUS, ONE),
        (ONE, 1, MINUS | ONE, 0),
        (ONE, Fraction(1, 1 << 24), ONE, ONE),
        (ONE + 1, 1 + Fraction(1, 1 << 23), MINUS | ONE + 2, 0x28800000),
        (INFINITY, 0, ONE, FP32_NAN),
        (INFINITY, 1, MINUS | INFINITY, FP32_NAN),
        (ONE, 1, INFINITY, INFINITY),
    ],
)
def test_a_product_and_a_sum_are_rounded_once(x, factor, y, expected):
    assert multiply_add_bits(x, Fraction(factor), y, PLAIN) == expected


@pytest.mark.parametrize(
    ("x", "output", "expected"),
    [
        (Fraction(65519), Output(FP16), 65504.0),
        (Fraction(65520), Output(FP16), np.inf),
        (-Fraction(65520), Output(FP16), -np.inf),
        (Fraction(65535), Output(FP16, toward_zero=True), 65504.0),
        (Fraction(65536), Output(FP16, toward_zero=True), np.inf),
        (Fraction(5, 1 << 25), Output(FP16), 2.0**-23),
        (Fraction(3, 1 << 25), Output(FP16), 2.0**-23),
        (Fraction(1, 1 << 25), Output(FP16), 0.0),
        (Fraction(7, 1 << 25), Output(FP16, toward_zero=True), 3 * 2.0**-24),
        (1 + Fraction(1, 1 << 11), Output(FP16), 1.0),
        (1 + Fraction(3, 1 << 11), Output(FP16), 1 + 2.0**-9),
        (1 + Fraction(3, 1 << 14), E8M13_TOWARD_ZERO, 1 + 2.0**-13),
        (Fraction(2) ** 128, Output(FP32), np.inf),
        (Fraction(0), Output(FP16), 0.0),
    ],
)
def test_rounded_to_an_output(x, output, expected):
    assert rounded(x, output, PLAIN) == int(np.float32(expected).view(np.uint32))


def test_what_is_no_number():
    core = Accumulator(nan=0x7FFFFFFF)
    assert rounded(Special.NAN, Output(), core) == 0x7FFFFFFF
    assert rounded(Special.INFINITY, Output(), core) == INFINITY
    assert rounded(Special.NEGATIVE_INFINITY, Output(), core) == MINUS | INFINITY
    assert add([Special.INFINITY, Fraction(-1), Special.INFINITY]) is Special.INFINITY
    assert add([Special.INFINITY, Special.NEGATIVE_INFINITY]) is Special.NAN
    assert add([Fraction(1), Special.NAN]) is Special.NAN
    assert multiply(Special.NEGATIVE_ZERO, Special.INFINITY) is Special.NAN
    assert multiply(Special.NEGATIVE_INFINITY, Fraction(-1)) is Special.INFINITY
    assert multiply(Special.NEGATIVE_INFINITY, Fraction(1)) is Special.NEGATIVE_INFINITY
    assert multiply(Special.NEGATIVE_ZERO, Fraction(3)) == 0
