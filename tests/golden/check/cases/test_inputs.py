from fractions import Fraction

import numpy as np
import pytest

from axs6.golden.check.cases import fp32 as fp32_cases
from axs6.golden.check.cases import inputs
from axs6.golden.check.exact.floats import Special, floor_log2, power

KINDS = {kind.name: kind for kind in inputs.KINDS}
BLOCK_SIZES = [8, 16, 32]


def values_of(kind, patterns):
    return {kind.value(pattern) for pattern in np.unique(patterns).tolist()}


NOT_FINITE = (Special.NAN, Special.INFINITY, Special.NEGATIVE_INFINITY)


@pytest.mark.parametrize("size", BLOCK_SIZES)
@pytest.mark.parametrize(
    ("name", "expected"),
    [
        ("float32", [power(-149), power(-126), 2**128 - 2**104, *NOT_FINITE]),
        ("float16", [power(-24), Fraction(65504), Special.NAN]),
        ("bfloat16", [power(-133), 2**128 - 2**120, Special.INFINITY]),
        ("float64", [2**128 - 2**75, 2**128, 2**128 + 2**76, power(-1074), *NOT_FINITE]),
        ("float64", [power(-149) - power(-202), 2**128 - 2**104, 1 - power(-24)]),
        ("int8", [-128, 127, -1]),
        ("int64", [-(2**63), 2**63 - 1, 2**53 + 1]),
        ("uint64", [2**64 - 1, 2**63, 2**53 + 1]),
    ],
)
def test_special_values_are_there(name, expected, size):
    kind = KINDS[name]
    patterns = inputs.special_blocks(kind, size, np.random.default_rng(0))
    assert patterns.shape[1] == size
    assert not set(expected) - values_of(kind, patterns)


def test_every_float32_power_of_two_with_neighbours_as_the_maximum():
    kind = KINDS["float32"]
    blocks = inputs.special_blocks(kind, 8, np.random.default_rng(0))
    largest = set((blocks & np.uint64(0x7FFFFFFF)).max(axis=1).tolist())
    powers = [field << 23 for field in range(1, 255)] + [1 << k for k in range(23)]
    assert not {power + step for power in powers for step in (-1, 0, 1)} - largest


def test_negative_zeros_and_tiny_negatives_are_there():
    blocks = inputs.special_blocks(KINDS["float32"], 8, np.random.default_rng(0))
    rows = set(map(tuple, blocks.tolist()))
    negative_zero, tiny, largest = 1 << 31, (1 << 31) + 1, 0x7F7FFFFF
    assert (negative_zero,) * 8 in rows
    assert (0,) * 8 in rows
    assert ((1 << 31) + largest, *[tiny] * 7) in rows


@pytest.mark.parametrize("size", BLOCK_SIZES)
def test_every_threshold_lies_between_two_cases(size):
    kind = KINDS["float32"]
    values = values_of(kind, inputs.threshold_blocks(kind, size) & np.uint64(0x7FFFFFFF))
    for exponent in (0, 1, 127, 254):
        scale = power(exponent - 127)
        for k in range(63):
            pattern = kind.nearest(Fraction(k, 62) * scale)
            around = {kind.value(max(pattern + step, 0)) for step in (-1, 0, 1)}
            assert not around - values


@pytest.mark.parametrize("name", KINDS)
@pytest.mark.parametrize("size", BLOCK_SIZES)
def test_random_blocks_are_finite_and_spread(name, size):
    kind = KINDS[name]
    blocks = inputs.random_blocks(kind, size, 300, np.random.default_rng(0))
    values = values_of(kind, blocks)
    assert not any(isinstance(value, Special) or abs(value) >= 2**128 for value in values)
    exponents = {floor_log2(abs(value)) for value in values if value}
    reachable = 1 + floor_log2(abs(kind.value(kind.largest)))
    assert len(exponents) > min(reachable, 150) // 2


def test_terms_have_every_length_and_stay_in_range():
    terms = list(fp32_cases.terms(100, np.random.default_rng(0)))
    assert {len(t) for t in terms} == set(range(41))
    pairs = [pair for t in terms for pair in t]
    assert max(abs(p) for p, _ in pairs) == 30752
    assert {min(e for _, e in pairs), max(e for _, e in pairs)} == {0, 510}
