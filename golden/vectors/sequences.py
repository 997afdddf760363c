"""Vectors of sequences of steps: shift registers, and error feedback."""

from collections.abc import Iterator, Sequence
from typing import Final

import numpy as np

from axs6.golden.check.cases import inputs
from axs6.golden.check.exact import axs6 as exact
from axs6.golden.check.exact import sequences as exact_sequences
from axs6.golden.check.exact.floats import FP32
from axs6.golden.feedback import encode_with_feedback
from axs6.golden.formats import Mode
from axs6.golden.formats.modes import MODE_BLOCKS
from axs6.golden.lfsr import RANDOM_SEED, Lfsr
from axs6.golden.modes import AUTO
from axs6.golden.pack import pack
from axs6.golden.rounding import Rounding
from axs6.golden.vectors.subject import BYTES, NUMBER, PATTERN, PATTERNS, WORD, Case, Subject

Drawn = tuple[list[int], list[int], list[int]]
"""First states, words of the draws, and the states after them."""


def lfsr_cases() -> Iterator[Case]:
    """Single steps, long runs, and lanes of every block size."""
    for name, seed, lanes, bits, draws in (
        ("one_step_from_1", 1, 1, 1, 1),
        ("one_step_from_the_top_bit", 1 << 31, 1, 1, 1),
        ("one_step_from_bit_21", 1 << 21, 1, 1, 1),
        ("one_step_from_bit_20", 1 << 20, 1, 1, 1),
        ("one_step_from_all_ones", (1 << 32) - 1, 1, 1, 1),
        ("steps_from_1", 1, 1, 1, 64),
        ("words_of_32_bits", RANDOM_SEED, 1, 32, 16),
        ("words_of_16_bits", RANDOM_SEED, 1, 16, 32),
        ("words_of_8_bits", RANDOM_SEED, 2, 8, 16),
        ("words_of_4_bits", RANDOM_SEED, 3, 4, 16),
        ("words_of_13_bits", 12345, 5, 13, 8),
        ("lanes_of_a_block", RANDOM_SEED, 8, 16, 16),
        ("lanes_of_a_block", RANDOM_SEED, 16, 16, 8),
        ("lanes_of_a_block", RANDOM_SEED, 32, 4, 8),
        ("lanes_of_a_block", RANDOM_SEED, 32, 8, 8),
        ("lanes_of_a_block", RANDOM_SEED, 32, 16, 16),
        ("lanes_of_a_block_from_1", 1, 32, 16, 4),
    ):
        fields = {"seed": seed, "lanes": lanes, "bits": bits, "draws": draws}
        yield Case(name, fields)


def lfsr_by_definition(seed: int, lanes: int, bits: int, draws: int) -> Drawn:
    """The result of single steps and polynomials."""
    seeds = exact_sequences.lane_seeds(lanes, seed)
    words, states = exact_sequences.draw(seeds, bits, draws)
    return seeds, words, states


def lfsr_by_golden(seed: int, lanes: int, bits: int, draws: int) -> Drawn:
    """As `lfsr_by_definition`."""
    source = Lfsr(lanes, seed, bits)
    seeds = source.states.tolist()
    return seeds, source.draw(draws).ravel().tolist(), source.states.tolist()


LFSR: Final = Subject(
    name="lfsr",
    title="random words of the shift registers, lane by lane",
    inputs={"seed": PATTERN, "lanes": NUMBER, "bits": NUMBER, "draws": NUMBER},
    outputs={"seeds": PATTERNS, "words": PATTERNS, "states": PATTERNS},
    cases=lfsr_cases,
    exact=lfsr_by_definition,
    golden=lfsr_by_golden,
)

STEPS: Final = 24

Fed = tuple[bytes, list[int]]
"""The packed block, and FP32 patterns of the new errors."""


def feedback_cases() -> Iterator[Case]:
    """Special values, and sequences of steps that each take the errors that the last one left."""
    one, large, infinity, sign = 0x3F800000, 0x7F400000, FP32.infinity, FP32.sign
    special = [infinity, sign | infinity, infinity | 1, large, sign | large, one, infinity, 0]
    errors = [one, one, one, large, sign | large, one, sign | infinity, 0]
    nearest, dense = Rounding.NEAREST, Mode.DENSE.label
    yield from _sequence("values_that_are_not_finite", [special], nearest, dense, errors)
    zeros = [0, sign, 0, sign, one, sign | one, 1, sign | 1]
    others = [0, 0, sign, sign, sign | one, one, sign | 1, 1]
    yield from _sequence("sums_that_are_zero", [zeros], nearest, dense, others)
    anywhere, narrow, tiny = _inputs()
    steady = [narrow[-1]] * STEPS
    for name, steps, rounding, mode in (
        ("the_same_values", steady, nearest, dense),
        ("the_same_values", steady, Rounding.TOWARD_ZERO, dense),
        ("the_same_values", steady, nearest, Mode.HIGH_PRECISION.label),
        ("values_near_one", narrow, nearest, dense),
        ("values_near_one", narrow, nearest, AUTO),
        ("values_anywhere", anywhere, nearest, dense),
        ("subnormal_values", tiny, nearest, dense),
    ):
        yield from _sequence(name, steps, rounding, mode, [0] * MODE_BLOCKS[0])


def _inputs() -> tuple[list[list[int]], ...]:
    """Random blocks of FP32 patterns: of all exponents, near one, and subnormal."""
    kind, rng = inputs.KINDS[0], np.random.default_rng(13)
    shape = (STEPS, MODE_BLOCKS[0])
    anywhere = inputs.random_blocks(kind, shape[1], STEPS, rng)
    near_one = kind.below(np.full(shape, 127 << 23, np.uint64), np.full(shape, 3), rng)
    subnormal = rng.integers(0, 1 << 23, shape, np.uint64)
    signed = (
        kind.with_sign(magnitudes, rng.integers(0, 2, shape, bool))
        for magnitudes in (near_one, subnormal)
    )
    return tuple(patterns.tolist() for patterns in (anywhere, *signed))


def _sequence(
    name: str, steps: Sequence[list[int]], rounding: str, mode: str, errors: list[int]
) -> Iterator[Case]:
    for x in steps:
        given = {"block": len(x), "rounding": str(rounding), "mode": mode}
        yield Case(name, {**given, "x": x, "error": errors})
        errors = exact_sequences.encode_with_feedback(x, errors, rounding, mode).errors


def feedback_by_definition(
    block: int, rounding: str, mode: str, x: list[int], error: list[int]
) -> Fed:
    """The result of exact fractions for one step."""
    config, (exponent, codes), left = exact_sequences.encode_with_feedback(x, error, rounding, mode)
    return exact.pack_block(exponent, codes, mode=config), left


def feedback_by_golden(block: int, rounding: str, mode: str, x: list[int], error: list[int]) -> Fed:
    """The result of the golden model for one step."""
    values, last = (np.array(each, np.uint32).view(np.float32) for each in (x, error))
    blocks, left = encode_with_feedback(
        values, last, block, rounding=rounding, mode=mode, nonfinite="saturate"
    )
    return pack(blocks), left.view(np.uint32).tolist()


FEEDBACK: Final = Subject(
    name="feedback",
    title="encoding with error feedback, step after step",
    inputs={"block": NUMBER, "rounding": WORD, "mode": WORD, "x": PATTERNS, "error": PATTERNS},
    outputs={"packed": BYTES, "new_error": PATTERNS},
    cases=feedback_cases,
    exact=feedback_by_definition,
    golden=feedback_by_golden,
)
