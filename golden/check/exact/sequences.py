"""Sequences by definition: the shift register and error feedback.

It keeps to the wording of docs/format.md and shares no code with the golden model.
"""

from collections.abc import Sequence
from typing import Final, NamedTuple

from axs6.golden.check.exact import axs6 as exact
from axs6.golden.check.exact.floats import FP32, Special, add_fp32, float_value

STATE: Final = 2**32 - 1
"""All bits of a state, and the number of states that are not 0."""

POLYNOMIAL: Final = 1 << 32 | 1 << 31 | 1 << 30 | 1 << 10 | 1
"""The recurrence of a step: 32 steps give the sum of those after 31, 30, 10 and 0, since the bit
that enters at n is the sum of those that entered at n - 1, n - 2, n - 22 and n - 32."""


def step(state: int) -> int:
    """Every bit moves up by one, and the sum of bits 31, 21, 1 and 0 enters at bit 0."""
    entering = (state >> 31 ^ state >> 21 ^ state >> 1 ^ state) & 1
    return (state << 1 | entering) & STATE


def leap(state: int, steps: int) -> int:
    """The state after any number of steps: the sum of those in the remainder of x^steps."""
    remainder, result = power_of_x(steps), 0
    while remainder:
        if remainder & 1:
            result ^= state
        state, remainder = step(state), remainder >> 1
    return result


def power_of_x(n: int) -> int:
    """x^n modulo the polynomial, bit k the coefficient of x^k."""
    result = 1
    for bit in f"{n:b}":
        square = sum((result >> k & 1) << 2 * k for k in range(32)) << int(bit)
        for k in range(square.bit_length() - 1, 31, -1):
            if square >> k & 1:
                square ^= POLYNOMIAL << k - 32
        result = square
    return result


def lane_seeds(lanes: int, seed: int) -> list[int]:
    """First states of lanes, floor(0x9e3779b9 / lanes) steps apart."""
    return [leap(seed, lane * (0x9E3779B9 // lanes)) for lane in range(lanes)]


class Drawn(NamedTuple):
    """Words of draws, lane after lane of each, and the states of the lanes that follow."""

    words: list[int]
    states: list[int]


def draw(seeds: Sequence[int], bits: int, draws: int) -> Drawn:
    """Words of `bits` bits: the low bits of each state, which then takes `bits` steps."""
    states, words = list(seeds), []
    for _ in range(draws):
        words += [state % 2**bits for state in states]
        states = [leap(state, bits) for state in states]
    return Drawn(words, states)


class Fed(NamedTuple):
    """Configuration bits and block of corrected values, and the FP32 patterns of new errors."""

    mode: int
    block: exact.Block
    errors: list[int]


def encode_with_feedback(x: Sequence[int], errors: Sequence[int], rounding: str, mode: str) -> Fed:
    """c = fp32(x + error) is encoded, and fp32(c - decoded) is the new error; FP32 patterns.

    A c that is not finite leaves +0.
    """
    corrected = [add_fp32(a, b) for a, b in zip(x, errors, strict=True)]
    values = [float_value(c, FP32) for c in corrected]
    config, (exponent, codes) = exact.encode_in_mode(values, rounding, mode)
    widths = exact.PRECISE_BITS if config == 2 else exact.DENSE_BITS
    left = []
    for index, (c, value, code) in enumerate(zip(corrected, values, codes, strict=True)):
        decoded = exact.decode_bits(exponent, code, FP32, widths[index % 2])
        finite = not isinstance(value, Special)
        left.append(add_fp32(c, decoded ^ FP32.sign) if finite else 0)
    return Fed(config, (exponent, codes), left)
