"""Random words as the hardware makes them: a maximal-length shift register for each lane."""

from typing import Final

import numpy as np
from numpy.typing import NDArray

from axs6.golden.arguments import check_integer
from axs6.golden.rounding import RANDOM_BITS, check_random_bits

LFSR_BITS: Final = 32
LFSR_TAPS: Final = (31, 21, 1, 0)
"""Bits of the state whose sum enters at bit 0: x^32 + x^22 + x^2 + x + 1, which is primitive."""

RANDOM_SEED: Final = 0x9E3779B9
"""Default state of the first lane's shift register: an irregular pattern of bits."""

PERIOD: Final = (1 << LFSR_BITS) - 1

SPREAD: Final = 0x9E3779B9
"""Steps over which the lanes are spread: the period over the golden ratio.

Lanes a power of two of steps apart would be tied by the same sum of five bits as the steps of one
register are, in the same draw.
"""

Map = NDArray[np.uint32]
"""A linear map of states over GF(2): what each bit of a state, from bit 0 up, becomes."""


def leap(steps: int) -> Map:
    """The map of `steps` steps of the register."""
    return _power(_step(), steps)


def check_seed(seed: int) -> int:
    """Return `seed`, or raise ValueError unless it is from 1 to 2^32 - 1: a state 0 would stay."""
    return check_integer("seed", seed, 1, PERIOD)


def lane_seeds(lanes: int, seed: int = RANDOM_SEED) -> NDArray[np.uint32]:
    """First states of lanes, `seed` that of lane 0, each SPREAD // lanes steps behind the last.

    No lane reaches the start of another within that number of steps; a word takes one step a bit.

    Raises:
        ValueError: `seed` is not from 1 to 2^32 - 1.
    """
    apart = leap(SPREAD // lanes)
    states = np.empty(lanes, np.uint32)
    state = np.array([check_seed(seed)], np.uint32)
    for lane in range(lanes):
        states[lane] = state[0]
        state = _apply(apart, state)
    return states


class Lfsr:
    """Random words of `bits` bits, one for each lane and draw: the low bits of the lane's state.

    After each draw every register moves on by `bits` steps, so that no bit occurs in two words.

    Args:
        lanes: number of registers.
        seed: state of lane 0, 1 to 2^32 - 1; see `lane_seeds`.
        bits: width of a word, 1 to 32.

    Raises:
        ValueError: `seed` or `bits` is out of range.
    """

    def __init__(self, lanes: int, seed: int = RANDOM_SEED, bits: int = RANDOM_BITS) -> None:
        self.bits = check_random_bits(bits)
        self.states = lane_seeds(lanes, seed)

    def draw(self, count: int) -> NDArray[np.uint32]:
        """The next words, of shape (count, lanes)."""
        states, forward = self.states[None], leap(self.bits)
        while len(states) <= count:
            states = np.concatenate([states, _apply(forward, states)])
            forward = _apply(forward, forward)
        self.states = states[count]
        return states[:count] & np.uint32((1 << self.bits) - 1)


def _step() -> Map:
    """One step: every bit moves up, those at the taps also to bit 0; the top bit falls off."""
    columns = np.uint32(1) << np.arange(1, LFSR_BITS + 1, dtype=np.uint64) & np.uint64(PERIOD)
    columns[list(LFSR_TAPS)] |= np.uint64(1)
    return columns.astype(np.uint32)


def _apply(columns: Map, states: NDArray[np.uint32]) -> NDArray[np.uint32]:
    result = np.zeros_like(states)
    for bit, column in enumerate(columns):
        result ^= (states >> np.uint32(bit) & np.uint32(1)) * column
    return result


def _power(columns: Map, exponent: int) -> Map:
    result = np.uint32(1) << np.arange(LFSR_BITS, dtype=np.uint32)
    while exponent:
        if exponent & 1:
            result = _apply(columns, result)
        columns = _apply(columns, columns)
        exponent >>= 1
    return result
