"""Checks of encoding: every input type, block size, rounding and mode."""

from collections.abc import Iterator

import numpy as np

from axs6.golden.check.cases import inputs
from axs6.golden.check.comparison import Comparison, Model, as_exact, magnitude_bits
from axs6.golden.check.exact import axs6 as exact
from axs6.golden.check.exact.floats import Value
from axs6.golden.formats import Mode
from axs6.golden.formats.modes import MODE_BLOCKS
from axs6.golden.modes import AUTO
from axs6.golden.rounding import DETERMINISTIC, RANDOM_BITS_MAX, Rounding

MODES = (Mode.SPARSE.label, Mode.HIGH_PRECISION.label, AUTO)
"""Modes beside dense."""


def encode_special(model: Model, rng: np.random.Generator, blocks: int) -> Iterator[Comparison]:
    """Powers of two and their neighbours, limits, zeros, NaN and Inf in blocks that saturate."""
    for kind in inputs.KINDS:
        for size in MODE_BLOCKS:
            patterns = inputs.special_blocks(kind, size, rng)
            yield from _compare_encode(model, kind, patterns, nonfinite="saturate")


def encode_thresholds(model: Model, rng: np.random.Generator, blocks: int) -> Iterator[Comparison]:
    """Values next to every rounding threshold, at several exponents."""
    for kind in inputs.KINDS:
        for size in MODE_BLOCKS:
            patterns = inputs.threshold_blocks(kind, size)
            yield from _compare_encode(model, kind, patterns, nonfinite="saturate")


def encode_random(model: Model, rng: np.random.Generator, blocks: int) -> Iterator[Comparison]:
    """Random blocks over all exponents, narrow and wide."""
    for kind in inputs.KINDS:
        for size in MODE_BLOCKS:
            yield from _compare_encode(model, kind, inputs.random_blocks(kind, size, blocks, rng))


def _compare_encode(
    model: Model, kind: inputs.InputKind, patterns: inputs.Patterns, **options: str
) -> Iterator[Comparison]:
    size = patterns.shape[1]
    rows, values = patterns.tolist(), _values(kind, patterns)
    for rounding in DETERMINISTIC:
        got = model.encode(kind.array(patterns), block=size, rounding=rounding, **options)
        what = f"encode {kind.name}, {rounding}, block"
        for row, value, block in zip(rows, values, as_exact(got), strict=True):
            yield Comparison(what, row, block, exact.encode_block(value, rounding))


def _values(kind: inputs.InputKind, patterns: inputs.Patterns) -> list[list[Value]]:
    return [[kind.value(pattern) for pattern in row] for row in patterns.tolist()]


def encode_modes(model: Model, rng: np.random.Generator, blocks: int) -> Iterator[Comparison]:
    """Sparse, high-precision and chosen modes: special values, thresholds, blocks with zeros."""
    for kind in inputs.KINDS:
        for size in MODE_BLOCKS:
            given = [
                inputs.special_blocks(kind, size, rng),
                inputs.threshold_blocks(kind, size),
                inputs.blocks_with_zeros(kind, size, max(1, blocks // 32), rng),
            ]
            patterns = np.concatenate([part[:: 1 + 64 * len(part) // blocks] for part in given])
            rows, values = patterns.tolist(), _values(kind, patterns)
            for rounding in DETERMINISTIC:
                for mode in MODES:
                    got = model.encode(
                        kind.array(patterns),
                        block=size,
                        rounding=rounding,
                        mode=mode,
                        nonfinite="saturate",
                    )
                    what = f"encode {kind.name}, {rounding}, {mode}, block"
                    answers = zip(got.modes.ravel().tolist(), as_exact(got), strict=True)
                    for row, value, answer in zip(rows, values, answers, strict=True):
                        by_definition = exact.encode_in_mode(value, rounding, mode)
                        yield Comparison(what, row, answer, by_definition)


def encode_stochastic(model: Model, rng: np.random.Generator, blocks: int) -> Iterator[Comparison]:
    """Stochastic rounding by random words, and by those next to the one that rounds up."""
    for kind in inputs.KINDS:
        for size in MODE_BLOCKS:
            patterns = inputs.random_blocks(kind, size, max(1, blocks // 32), rng)
            rows, values = patterns.tolist(), _values(kind, patterns)
            for bits in (1, 4, 16, RANDOM_BITS_MAX):
                for mode in (Mode.DENSE, Mode.HIGH_PRECISION):
                    largest = [(1 << n) - 1 for n in magnitude_bits(mode)]
                    words = inputs.deciding_words(values, largest, bits, rng)
                    got = model.encode(
                        kind.array(patterns), block=size, rounding=Rounding.STOCHASTIC,
                        mode=mode.label, random=np.array(words, np.uint64), random_bits=bits,
                    )  # fmt: skip
                    what = f"encode {kind.name}, {bits} random bits, {mode.label}, block"
                    widths = magnitude_bits(mode)
                    for row, value, word, answer in zip(
                        rows, values, words, as_exact(got), strict=True
                    ):
                        by_definition = exact.encode_block(
                            value, Rounding.STOCHASTIC, widths, exact.Random(word, bits)
                        )
                        yield Comparison(what, (row, word), answer, by_definition)
