"""Vectors of encoding: directed and random blocks in every input dtype, rounding and mode."""

from collections.abc import Iterator, Sequence
from typing import Any, Final

import numpy as np

from axs6.golden.check.cases import inputs
from axs6.golden.check.exact import axs6 as exact
from axs6.golden.check.exact import sequences as exact_sequences
from axs6.golden.check.exact.floats import Special
from axs6.golden.encode import encode
from axs6.golden.formats import AXS6, Mode
from axs6.golden.formats.modes import MODE_BLOCKS
from axs6.golden.lfsr import RANDOM_SEED
from axs6.golden.modes import AUTO, elements
from axs6.golden.pack import pack
from axs6.golden.rounding import DETERMINISTIC, Rounding
from axs6.golden.vectors import directed
from axs6.golden.vectors.subject import BYTES, NUMBER, PATTERNS, WORD, Case, Subject

KINDS: Final = {"fp32": inputs.KINDS[0], "bf16": inputs.KINDS[2], "fp16": inputs.KINDS[1]}
"""Kinds of inputs by the names of their dtypes."""

DENSE, SPARSE, PRECISE = Mode.DENSE.label, Mode.SPARSE.label, Mode.HIGH_PRECISION.label
OTHER_MODES: Final = (SPARSE, PRECISE, AUTO)
THRESHOLDS: Final = {
    "fp32": ((8, 127), (32, 0), (32, 255)),
    "bf16": ((32, 127),),
    "fp16": ((32, 127),),
}
"""Block sizes and exponents of the rounding thresholds, by dtype."""

RANDOM_WIDTHS: Final = (4, 8, 16)

Outputs = tuple[int, int, list[int], bytes, int]
"""Exponent, configuration bits, codes, packed bytes, and whether a value was not finite."""


def by_definition(
    block: int,
    dtype: str,
    rounding: str,
    mode: str,
    values: Sequence[int],
    random: exact.Random | None = None,
) -> Outputs:
    """The result of exact fractions for a block of bit patterns."""
    given = [KINDS[dtype].value(pattern) for pattern in values]
    config, (exponent, codes) = exact.encode_in_mode(given, rounding, mode, random)
    invalid = int(any(isinstance(value, Special) for value in given))
    return exponent, config, codes, exact.pack_block(exponent, codes, mode=config), invalid


def by_golden(
    block: int, dtype: str, rounding: str, mode: str, values: Sequence[int], **random: Any
) -> Outputs:
    """The result of the golden model, which refuses invalid values unless told to saturate."""
    x = KINDS[dtype].array(np.array(values, np.uint64))
    blocks = encode(x, block=block, rounding=rounding, mode=mode, nonfinite="saturate", **random)
    try:
        encode(x, block=block, rounding=rounding, mode=mode, **random)
        invalid = 0
    except ValueError:
        invalid = 1
    config, codes = int(blocks.modes[0]), blocks.codes[0].tolist()
    return int(blocks.exponents[0]), config, codes, pack(blocks), invalid


def _case(name: str, form: str, rounding: str, mode: str, values: list[int]) -> Case:
    given = {"block": len(values), "dtype": form, "rounding": str(rounding), "mode": mode}
    return Case(name, {**given, "values": values})


def encode_cases() -> Iterator[Case]:
    """Dense blocks, then the other modes."""
    rng = np.random.default_rng(6)
    for form, kind in KINDS.items():
        for name, values in directed.directed_blocks(kind).items():
            for rounding in DETERMINISTIC:
                yield _case(name, form, rounding, DENSE, values)
            if form == "fp32":
                yield _case(name, form, Rounding.NEAREST, DENSE, values * 4)
        for block, exponent in THRESHOLDS[form]:
            for values in inputs.threshold_blocks(kind, block, [exponent]).tolist():
                for rounding in DETERMINISTIC:
                    yield _case(f"thresholds_exponent_{exponent}", form, rounding, DENSE, values)
        for block in MODE_BLOCKS:
            for values in inputs.random_blocks(kind, block, 10, rng).tolist():
                for rounding in DETERMINISTIC:
                    yield _case("random", form, rounding, DENSE, values)
    yield from _mode_cases(rng)


def _mode_cases(rng: np.random.Generator) -> Iterator[Case]:
    for form, kind in KINDS.items():
        for block in MODE_BLOCKS if form == "fp32" else MODE_BLOCKS[:1]:
            for name, values in directed.blocks_by_zeros(kind, block).items():
                for mode in (SPARSE, AUTO):
                    for rounding in DETERMINISTIC if block == MODE_BLOCKS[0] else DETERMINISTIC[:1]:
                        yield _case(name, form, rounding, mode, values)
            for name, values in directed.blocks_by_error(kind, block).items():
                yield _case(name, form, Rounding.NEAREST, AUTO, values)
        for name, values in directed.directed_blocks(kind).items():
            yield _case(name, form, Rounding.NEAREST, PRECISE, values)
        for block in MODE_BLOCKS:
            for mode in OTHER_MODES:
                for values in inputs.blocks_with_zeros(kind, block, 4, rng).tolist():
                    for rounding in DETERMINISTIC:
                        yield _case("random", form, rounding, mode, values)
    for form, rounding in (("fp32", Rounding.NEAREST), ("bf16", Rounding.TOWARD_ZERO)):
        for values in directed.precise_thresholds(KINDS[form], 32, 127):
            yield _case("thresholds_exponent_127", form, rounding, PRECISE, values)


ENCODE: Final = Subject(
    name="encode",
    title="blocks of floating-point values, and the AXS-6 blocks they become",
    inputs={
        "block": NUMBER,
        "dtype": WORD,
        "rounding": WORD,
        "mode": WORD,
        "values": PATTERNS,
    },
    outputs={
        "exponent": NUMBER,
        "config": NUMBER,
        "codes": PATTERNS,
        "packed": BYTES,
        "invalid": NUMBER,
    },
    cases=encode_cases,
    exact=by_definition,
    golden=by_golden,
)


def stochastic_cases() -> Iterator[Case]:
    """Words that decide, words that nothing takes, and those of the shift registers."""
    rng = np.random.default_rng(7)
    kind = KINDS["fp32"]
    blocks = directed.directed_blocks(kind)
    for bits in RANDOM_WIDTHS:
        half, most = 1 << bits - 1, (1 << bits) - 1
        for name, mode, words in (
            ("tie_at_half_the_scale", DENSE, [half - 1, half, 0, most] * 2),
            ("tie_at_half_the_scale", PRECISE, [half - 1, half, half, half - 1] * 2),
            ("infinities", DENSE, [most] * 8),
            ("nan_and_infinity", PRECISE, [most] * 8),
            ("negative_zero_beside_one", SPARSE, [most] * 8),
            ("negative_zero_beside_one", DENSE, [0] * 8),
            ("next_below_the_scale", DENSE, [most] * 8),
            ("rounds_to_negative_zero", DENSE, [0, most] * 4),
            ("below_exponent_0", DENSE, [most] * 8),
        ):
            yield _stochastic(name, "fp32", mode, bits, blocks[name], words)
        for form, each in KINDS.items():
            sizes = MODE_BLOCKS if form == "fp32" else MODE_BLOCKS[:1]
            for block in sizes:
                yield from _random_words(form, each, block, bits, rng)
    for block in MODE_BLOCKS:
        states = exact_sequences.lane_seeds(block, RANDOM_SEED)
        drawn = exact_sequences.draw(states, 16, 2).words
        for start in (0, block):
            values = inputs.random_blocks(kind, block, 1, rng)[0].tolist()
            words = drawn[start : start + block]
            yield _stochastic("words_of_shift_registers", "fp32", DENSE, 16, values, words)


def _random_words(
    form: str, kind: inputs.InputKind, block: int, bits: int, rng: np.random.Generator
) -> Iterator[Case]:
    """Random blocks with words next to those that decide."""
    for mode in (Mode.DENSE, Mode.SPARSE, Mode.HIGH_PRECISION, None):
        patterns = inputs.blocks_with_zeros(kind, block, 2, rng).tolist()
        values = [[kind.value(pattern) for pattern in row] for row in patterns]
        largest = [code.largest_code for code in elements(AXS6, mode or Mode.DENSE)]
        words = inputs.deciding_words(values, largest, bits, rng)
        for row, chosen in zip(patterns, words, strict=True):
            yield _stochastic("random", form, mode.label if mode else AUTO, bits, row, chosen)


def _stochastic(
    name: str, form: str, mode: str, bits: int, values: list[int], words: list[int]
) -> Case:
    given = {"block": len(values), "dtype": form, "mode": mode, "bits": bits}
    return Case(name, {**given, "values": values, "random": words})


def stochastic_by_definition(
    block: int, dtype: str, mode: str, bits: int, values: Sequence[int], random: Sequence[int]
) -> Outputs:
    """`by_definition` with random words."""
    words = exact.Random(random, bits)
    return by_definition(block, dtype, Rounding.STOCHASTIC, mode, values, words)


def stochastic_by_golden(
    block: int, dtype: str, mode: str, bits: int, values: Sequence[int], random: Sequence[int]
) -> Outputs:
    """`by_golden` with random words."""
    words = np.array(random, np.uint64)
    return by_golden(
        block, dtype, Rounding.STOCHASTIC, mode, values, random=words, random_bits=bits
    )


STOCHASTIC: Final = Subject(
    name="encode_stochastic",
    title="stochastic rounding by given random words",
    inputs={
        "block": NUMBER,
        "dtype": WORD,
        "mode": WORD,
        "bits": NUMBER,
        "values": PATTERNS,
        "random": PATTERNS,
    },
    outputs=ENCODE.outputs,
    cases=stochastic_cases,
    exact=stochastic_by_definition,
    golden=stochastic_by_golden,
)
