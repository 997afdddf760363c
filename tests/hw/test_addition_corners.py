"""Pairs of values whose sums are hard, and what encoders are tested with, have what they claim."""

import numpy as np

from axs6.golden.formats import FP16, FP32
from axs6.hw.units.addition_corners import FAR, addition_corners, special_pairs
from axs6.hw.units.encoder_corners import beside_specials, subnormal_search_rows


def _exact(patterns: np.ndarray) -> np.ndarray:
    """Values in units of the least subnormal one, as integers of any size."""
    field = np.maximum(patterns >> FP32.fraction_bits & FP32.exponent_special, 1)
    hidden = patterns >> FP32.fraction_bits & FP32.exponent_special > 0
    fraction = patterns & (1 << FP32.fraction_bits) - 1
    significand = (fraction | hidden.astype(np.int64) << FP32.fraction_bits).astype(object)
    return np.where(patterns & FP32.sign_bit, -1, 1) * (significand << (field - 1).astype(object))


def test_differences_have_all_numbers_of_leading_zeros() -> None:
    pairs = addition_corners()
    values = _exact(pairs)
    sums, largest = np.abs(values.sum(axis=1)), np.abs(values).max(axis=1)
    zeros = {
        large.bit_length() - each.bit_length()
        for each, large in zip(sums.tolist(), largest.tolist(), strict=True)
        if each.bit_count() in (1, 2)
    }
    assert zeros >= set(range(24))
    assert sum(each < 1 << FP32.fraction_bits for each in sums.tolist()) > 100


def test_operands_are_at_all_distances_in_both_orders() -> None:
    fields = addition_corners() >> FP32.fraction_bits & FP32.exponent_special
    distances = set((fields[:, 0] - fields[:, 1]).tolist())
    assert distances >= set(range(1 - FAR, FAR))


def test_infinities_are_beside_numbers_that_lack_one_bit_of_theirs() -> None:
    pairs = special_pairs()
    fields = pairs >> FP32.fraction_bits & FP32.exponent_special
    infinite = pairs & ~FP32.sign_bit == FP32.infinity
    for lane in (0, 1):
        beside = set(fields[infinite[:, lane], 1 - lane].tolist())
        assert beside == {FP32.exponent_special ^ 1 << bit for bit in range(8)} | {255}


def test_the_two_highest_bits_of_subnormal_blocks_are_any() -> None:
    rows = np.concatenate(list(subnormal_search_rows(FP16, 8)))
    rows = rows[(rows < 1 << FP16.fraction_bits).all(axis=1)]
    bits = np.bitwise_or.reduce(rows, axis=1).tolist()
    found = {(x.bit_length(), (x ^ 1 << x.bit_length() >> 1).bit_length()) for x in bits}
    assert found >= {(high, low) for high in range(2, 11) for low in range(1, high)}


def test_specials_come_in_every_lane() -> None:
    found = beside_specials(np.ones((2000, 8), np.int64), FP16)
    special = (found & FP16.infinity) == FP16.infinity
    assert (special.sum(axis=1) == 1).all()
    assert all(len(set(found[special[:, lane], lane].tolist())) == 22 for lane in range(8))
