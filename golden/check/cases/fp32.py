"""Inputs on which `validate` compares sums of blocks and FP32 arithmetic with the definitions."""

from collections.abc import Iterator

import numpy as np
from numpy.typing import NDArray

SIGN = np.uint32(1 << 31)

Terms = list[tuple[int, int]]
"""Block sums P and exponent sums of successive blocks."""

SUM_LIMIT = 32 * 961


def fixed_terms(full: int) -> dict[str, Terms]:
    """Terms at the borders of FP32 by what they are, where `full` is the largest sum of a block."""
    # The largest exponent sum of a full block whose term, full * 2^(top - 264), is below 2^128.
    top = 392 - full.bit_length()
    return {
        "no_block": [],
        "zero": [(0, 0)],
        "zero_at_any_exponent": [(0, 510), (0, 0)],
        "smallest": [(1, 0)],
        "smallest_negative": [(-1, 0)],
        "smallest_cancels": [(-1, 0), (1, 0)],
        "smallest_before_the_largest_exponent": [(-1, 0), (-1, 510)],
        "term_overflows": [(full, 510)],
        "negative_term_overflows": [(-full, 510)],
        "opposite_infinities": [(full, 510), (-full, 510)],
        "nan_stays": [(full, 510), (-full, 510), (1, 254)],
        "infinity_stays": [(full, 510), (-1, 0)],
        "accumulator_overflows": [(full, top - 1), (full, top - 1), (full, top - 1)],
        "largest_cancels": [(full, top), (-full, top), (1, 0)],
        "division_overflows": [(full, top)],
        "division_just_below_overflow": [(31 - full, top)],
        "tie_down": [(1, 264), (1, 240)],
        "tie_up": [(1, 264), (1, 241), (1, 240)],
        "tie_and_the_smallest": [(1, 264), (1, 240), (1, 0)],
        "tie_after_the_smallest": [(1, 0), (1, 240), (1, 264)],
        "tie_less_the_smallest": [(1, 264), (1, 240), (-1, 0)],
        "tie_of_the_exact_result": [(961, 264), (961, 240)],
        "above_a_tie_of_the_exact_result": [(961, 264), (961, 240), (1, 0)],
        "below_a_tie_of_the_exact_result": [(961, 264), (961, 240), (-1, 0)],
        "above_half_the_smallest_subnormal": [(961, 104), (961, 80), (1, 0)],
        "half_the_smallest_subnormal_is_lost": [(1, 115), (1, 114)],
        "difference_of_subnormals": [(1, 116), (-1, 115)],
        "below_the_subnormals": [(1, 105)],
        "smallest_subnormal": [(1, 115)],
        "negative_subnormal_tie": [(-3, 114)],
        "subnormal_tie_of_the_exact_result": [(961, 105), (961, 104)],
        "below_a_subnormal_tie_of_the_exact_result": [(961, 105), (961, 104), (-1, 0)],
    }


FIXED_TERMS = tuple(fixed_terms(SUM_LIMIT).values())


def ties() -> Iterator[Terms]:
    """Sums halfway between two FP32 values but for one bit, at each place below the half."""
    for exponent in range(264, 296):
        for below in range(25, 68):
            yield [(961, exponent), (961, exponent - 24), (961, exponent - below)]


def terms(count: int, rng: np.random.Generator) -> Iterator[Terms]:
    """The fixed lists of terms, then about `count` random ones of 0 to 40 blocks."""
    yield from FIXED_TERMS
    yield from ties()
    regimes = (
        (0, 511),  # everything
        (250, 262),  # near one
        (90, 136),  # subnormal results
        (368, 384),  # the largest finite results
        (0, 24),  # below every FP32 value
        (486, 511),  # above every FP32 value
    )
    for n in range(41):
        for low, high in regimes:
            for cancels in (False, True):
                for _ in range(-(-count // (41 * len(regimes) * 2))):
                    yield _random_terms(n, low, high, cancels, rng)


def _random_terms(n: int, low: int, high: int, cancels: bool, rng: np.random.Generator) -> Terms:
    limit = int(rng.choice([1, 32, 961, SUM_LIMIT]))
    sums = rng.integers(-limit, limit + 1, n)
    exponents = rng.integers(low, high, n)
    if cancels:
        half = n // 2
        sums[n - half :] = -sums[:half][::-1]
        exponents[n - half :] = exponents[:half][::-1]
        sums[half : n - half] = 0
    return list(zip(sums.tolist(), exponents.tolist(), strict=True))


def corners() -> NDArray[np.uint32]:
    """FP32 patterns of every class and the values next to its borders, of both signs."""
    binade = 1 << 23
    one, top = 127 * binade, 254 * binade
    near_powers = (
        *(binade, 2 * binade, 24 * binade, 25 * binade),
        *(one - k * binade for k in (1, 2, 22, 23, 24, 25, 26, 35, 36, 37, 40, 63, 64)),
        *(one, one + binade, one + 23 * binade, one + 24 * binade, one + 25 * binade),
        *(top, top - 23 * binade, top - 24 * binade, top - 25 * binade),
    )
    magnitudes = {power + step for power in near_powers for step in (-1, 0, 1)}
    magnitudes |= {0, 1, 2, 3, binade // 2 - 1, binade // 2, binade // 2 + 1}
    magnitudes |= {one + binade // 2, one + 0x555555, one + 0x2AAAAA, 255 * binade - 2}
    # The largest finite value, infinity, and NaNs: signalling, quiet, all ones.
    magnitudes |= {255 * binade - 1, 255 * binade, 0x7F800001, 0x7FC00000, 0x7FFFFFFF}
    patterns = np.array(sorted(magnitudes), np.uint32)
    return np.concatenate([patterns, patterns | SIGN])


def random_pairs(
    count: int, rng: np.random.Generator
) -> tuple[NDArray[np.uint32], NDArray[np.uint32]]:
    """Pairs of FP32 patterns: half unrelated, half within 64 binades, some nearly opposite."""
    a = rng.integers(0, 1 << 32, count, np.uint32)
    b = rng.integers(0, 1 << 32, count, np.uint32)
    near = slice(count // 2, None)
    magnitude = (a[near] & ~SIGN).astype(np.int64)
    reach = rng.choice([4, 1 << 23, 26 << 23, 64 << 23], len(magnitude))
    moved = magnitude + rng.integers(-reach, reach + 1)
    b[near] = np.clip(moved, 0, (1 << 31) - 1).astype(np.uint32) | b[near] & SIGN
    return a, b
