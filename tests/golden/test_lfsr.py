import numpy as np
import pytest

from axs6.golden import encode
from axs6.golden.decode import decode
from axs6.golden.lfsr import LFSR_TAPS, PERIOD, RANDOM_SEED, Lfsr, lane_seeds, leap


def stepped(state: int, steps: int) -> int:
    for _ in range(steps):
        new = sum(state >> tap for tap in LFSR_TAPS) & 1
        state = (state << 1 | new) & PERIOD
    return state


def test_a_leap_is_its_steps():
    state = 0xDEADBEEF
    for steps in (1, 2, 15, 16, 32, 100):
        columns = leap(steps).tolist()
        leapt = 0
        for bit in range(32):
            leapt ^= columns[bit] * (state >> bit & 1)
        assert leapt == stepped(state, steps)


def test_the_period_is_maximal():
    """2^32 - 1 steps are none, and no proper divisor of that is: its primes are Fermat's first."""
    nothing = leap(0)
    assert np.array_equal(leap(PERIOD), nothing)
    assert PERIOD == 3 * 5 * 17 * 257 * 65537
    for prime in (3, 5, 17, 257, 65537):
        assert not np.array_equal(leap(PERIOD // prime), nothing)


@pytest.mark.parametrize("bits", [1, 4, 16, 32])
def test_words_are_the_low_bits_of_successive_states(bits):
    source = Lfsr(3, 12345, bits)
    states = [int(state) for state in lane_seeds(3, 12345)]
    for count in (1, 0, 5, 9):
        words = source.draw(count)
        assert words.shape == (count, 3)
        for row in words.tolist():
            assert row == [state & (1 << bits) - 1 for state in states]
            states = [stepped(state, bits) for state in states]
        assert source.states.tolist() == states


def test_lanes_start_far_apart():
    seeds = lane_seeds(32)
    assert len(set(seeds.tolist())) == 32
    assert seeds[0] == RANDOM_SEED
    apart = leap(0x9E3779B9 // 32).tolist()
    for a, b in zip(seeds.tolist(), seeds.tolist()[1:], strict=False):
        moved = 0
        for bit in range(32):
            moved ^= apart[bit] * (a >> bit & 1)
        assert moved == b


@pytest.mark.parametrize("seed", [0, -1, 1 << 32, 1.0, True])
def test_seed(seed):
    with pytest.raises(
        ValueError, match=rf"^seed must be an integer from 1 to 4294967295, not {seed}$"
    ):
        Lfsr(32, seed)


@pytest.mark.parametrize("bits", [4, 8, 16])
def test_rounding_is_unbiased_to_four_standard_errors(bits):
    """The mean magnitude is the floor that R bits leave of the exact one: no lane is off."""
    count = 20_000
    rng = np.random.default_rng(1)
    x = np.abs(rng.standard_normal(32)).astype(np.float32)
    x[0] = x.max() * 1.01
    words = Lfsr(32, 7, bits).draw(count)
    blocks = encode(
        np.tile(x, (count, 1)), block=32, rounding="stochastic", random=words, random_bits=bits
    )
    magnitudes = (blocks.codes[:, 0] & 31).astype(np.int64)
    exact = 31 * x.astype(np.float64) / 2.0 ** (int(blocks.exponents[0, 0]) - 127)
    predicted = np.floor(exact * 2**bits) / 2**bits
    fraction = predicted - np.floor(predicted)
    allowed = 4 * np.sqrt(fraction * (1 - fraction) / count)
    assert (np.abs(magnitudes.mean(axis=0) - predicted) <= allowed).all()
    assert ((exact - predicted >= 0) & (exact - predicted < 2.0**-bits)).all()
    # Of all values together, decoded: the bias is below half a step of 2^-R, and found within that.
    errors = decode(blocks, np.float64) - x.astype(np.float64)
    scale = 2.0 ** (int(blocks.exponents[0, 0]) - 127) / 31
    bias = (predicted - exact).mean() * scale
    standard_error = scale * np.sqrt((fraction * (1 - fraction)).sum() / count) / 32
    assert abs(errors.mean() - bias) <= 4 * standard_error


def largest_correlation(words):
    """Of words (n, lanes): any two lanes in one draw, and any lane with any, 1 to 3 draws later.

    In multiples of 1 / sqrt(n), the standard error where there is none.
    """
    count = len(words)
    centred = (words - words.mean(axis=0)) / words.std(axis=0)
    between = np.abs(centred.T @ centred)
    np.fill_diagonal(between, 0)
    later = [np.abs(centred[:-by].T @ centred[by:]).max() for by in (1, 2, 3)]
    return max(between.max(), *later) / np.sqrt(count)


@pytest.mark.parametrize("bits", [4, 8, 16])
def test_lanes_and_draws_are_independent(bits):
    """Among 3,568 pairs, chance goes beyond 5 standard errors once in 500 times."""
    words = Lfsr(32, 99, bits).draw(40_000).astype(np.float64)
    assert largest_correlation(words) < 5


def test_lanes_and_draws_that_are_not_independent_are_seen():
    words = Lfsr(32, 99, 16).draw(40_000).astype(np.float64)
    # A lane that repeats another, or comes one draw after it.
    for late in (0, 1):
        twin = words.copy()
        twin[late:, 7] = words[: len(words) - late, 3]
        assert largest_correlation(twin) > 100
    # Words that share bits with the next: registers that move one step a draw, not 16.
    slow = Lfsr(2, 99, 1)
    states = []
    for _ in range(5_000):
        states.append(slow.states & 0xFFFF)
        slow.draw(1)
    assert largest_correlation(np.array(states, float)) > 30


@pytest.mark.parametrize("bits", [4, 8, 16])
def test_the_variance_of_rounding_is_that_of_its_fractions(bits):
    """A magnitude whose mean has the fraction f varies by f (1 - f), to four standard errors."""
    count = 20_000
    x = np.random.default_rng(2).standard_normal(32).astype(np.float32)
    words = Lfsr(32, 11, bits).draw(count)
    blocks = encode(
        np.tile(x, (count, 1)), block=32, rounding="stochastic", random=words, random_bits=bits
    )
    magnitudes = (blocks.codes[:, 0] & 31).astype(np.float64)
    exact = 31 * np.abs(x.astype(np.float64)) / 2.0 ** (int(blocks.exponents[0, 0]) - 127)
    fraction = np.floor(exact * 2**bits) / 2**bits % 1
    variance = fraction * (1 - fraction)
    squares = (magnitudes - np.floor(exact) - fraction) ** 2
    allowed = 4 * np.sqrt(variance * (1 - 4 * variance) / count) + 1e-12
    assert (np.abs(squares.mean(axis=0) - variance) <= allowed).all()
