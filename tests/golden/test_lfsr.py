import numpy as np
import pytest

from axs6.golden import encode
from axs6.golden.decode import decode
from axs6.golden.lfsr import LFSR_TAPS, PERIOD, Lfsr, lane_seeds, leap
from axs6.golden.spec import RANDOM_SEED


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
    apart = leap(PERIOD // 32).tolist()
    for a, b in zip(seeds.tolist(), seeds.tolist()[1:], strict=False):
        moved = 0
        for bit in range(32):
            moved ^= apart[bit] * (a >> bit & 1)
        assert moved == b


@pytest.mark.parametrize("seed", [0, -1, 1 << 32, 1.0, True])
def test_seed(seed):
    with pytest.raises(
        ValueError, match=rf"^seed must be an integer from 1 to 2\^32 - 1, not {seed}$"
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
    blocks = encode(np.tile(x, (count, 1)), 32, "stochastic", random=words, random_bits=bits)
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


@pytest.mark.parametrize("bits", [4, 16])
def test_lanes_and_draws_are_independent(bits):
    """Correlations of lanes, and of a lane with its next words, are those of chance."""
    count = 40_000
    words = Lfsr(32, 99, bits).draw(count).astype(np.float64)
    centred = (words - words.mean(axis=0)) / words.std(axis=0)
    between = centred.T @ centred / count
    off_diagonal = between[~np.eye(32, dtype=bool)]
    assert np.abs(off_diagonal).max() < 5 / np.sqrt(count)
    for distance in (1, 2, 3):
        along = (centred[:-distance] * centred[distance:]).mean(axis=0)
        assert np.abs(along).max() < 5 / np.sqrt(count)
