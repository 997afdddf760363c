"""Vectors of dot products: of two blocks, of two vectors of blocks, and of the rows of matrices."""

from collections.abc import Iterator, Sequence
from typing import Any, Final

import numpy as np
from numpy.typing import NDArray

from axs6.golden import dot
from axs6.golden.blocks import Blocks
from axs6.golden.check.cases import fp32 as fp32_cases
from axs6.golden.check.cases import inputs
from axs6.golden.check.exact import axs6 as exact
from axs6.golden.check.exact.floats import FP32, float_value
from axs6.golden.encode import encode
from axs6.golden.formats.modes import MODE_BLOCKS
from axs6.golden.rounding import Rounding
from axs6.golden.vectors.subject import NUMBER, NUMBERS, PATTERN, PATTERNS, Case, Subject

Block = exact.Block


def _sides(a: Sequence[Block], b: Sequence[Block]) -> dict[str, Any]:
    """The fields of two vectors of dense blocks."""
    fields: dict[str, Any] = {"block": len(a[0][1])}
    for side, blocks in (("a", a), ("b", b)):
        fields[f"{side}_exponents"] = [exponent for exponent, _ in blocks]
        fields[f"{side}_codes"] = [code for _, codes in blocks for code in codes]
    return fields


def _definition(block: int, exponents: Sequence[int], codes: Sequence[int]) -> list[Block]:
    """Blocks for the exact model."""
    return [
        (exponent, list(codes[k * block : (k + 1) * block])) for k, exponent in enumerate(exponents)
    ]


def _golden(block: int, exponents: Sequence[int], codes: Sequence[int]) -> Blocks:
    """A matrix of one row of dense blocks for the golden model."""
    shape = (1, len(exponents))
    given = np.array(exponents, np.uint8).reshape(shape)
    values = np.array(codes, np.uint8).reshape(*shape, block)
    return Blocks.with_modes(given, np.zeros(shape, np.uint8), values, (1, len(codes)))


def _pair(name: str, a: Block, b: Block) -> Case:
    fields = ("block", "a_exponent", "a_codes", "b_exponent", "b_codes")
    return Case(name, dict(zip(fields, (len(a[1]), *a, *b), strict=True)))


def block_dot_cases() -> Iterator[Case]:
    """The largest sums, zeros of both signs, every lane by itself, and random pairs."""
    for block in MODE_BLOCKS:
        most, least, one = [31] * block, [63] * block, [1] * block
        alternating = [31, 63] * (block // 2)
        for name, a, b in (
            ("largest", (255, most), (255, most)),
            ("largest_of_negatives", (254, least), (127, least)),
            ("smallest", (0, most), (255, least)),
            ("next_to_largest", (127, most), (127, [30, *most[1:]])),
            ("zeros", (0, [0] * block), (0, [0] * block)),
            ("negative_zeros", (0, [32] * block), (255, least)),
            ("opposite_products", (1, alternating), (0, most)),
            ("ones", (127, one), (127, one)),
            ("minus_ones", (127, one), (127, [33] * block)),
        ):
            yield _pair(name, a, b)
        for lane in range(block):
            alone = [0] * lane + [min(lane + 1, 31)] + [0] * (block - lane - 1)
            others = [31 - k % 31 | 32 * (lane % 2) for k in range(block)]
            yield _pair(f"lane_{lane}_alone", (lane, alone), (200, others))
        rng = np.random.default_rng([10, block])
        left, right = _random_blocks(block, 40, rng), _random_blocks(block, 40, rng)
        for a, b in zip(left, right, strict=True):
            yield _pair("random", a, b)


def _random_blocks(block: int, count: int, rng: np.random.Generator) -> list[Block]:
    exponents, codes = inputs.random_codes(block, count, rng)
    return list(zip(exponents[:count].tolist(), codes[:count].tolist(), strict=True))


def block_dot_by_definition(
    block: int, a_exponent: int, a_codes: list[int], b_exponent: int, b_codes: list[int]
) -> tuple[int, int]:
    """The integer sum and the sum of the exponents."""
    return exact.block_dot((a_exponent, a_codes), (b_exponent, b_codes))


def block_dot_by_golden(
    block: int, a_exponent: int, a_codes: list[int], b_exponent: int, b_codes: list[int]
) -> tuple[int, int]:
    """As `block_dot_by_definition`."""
    a, b = _golden(block, [a_exponent], a_codes), _golden(block, [b_exponent], b_codes)
    sums, exponents = dot.block_dot(a, b)
    return int(sums[0, 0]), int(exponents[0, 0])


BLOCK_DOT: Final = Subject(
    name="block_dot",
    title="pairs of dense blocks, and their integer dot products",
    inputs={
        "block": NUMBER,
        "a_exponent": NUMBER,
        "a_codes": PATTERNS,
        "b_exponent": NUMBER,
        "b_codes": PATTERNS,
    },
    outputs={"sum": NUMBER, "exponent": NUMBER},
    cases=block_dot_cases,
    exact=block_dot_by_definition,
    golden=block_dot_by_golden,
)


def dot_cases() -> Iterator[Case]:
    """Terms at the borders of FP32, and random vectors in parts of its range."""
    for block in MODE_BLOCKS:
        for name, terms in fp32_cases.fixed_terms(block * 31**2).items():
            if terms:
                yield Case(name, _sides(*zip(*(_operands(block, *t) for t in terms), strict=True)))
        rng = np.random.default_rng([11, block])
        for name, low, high in (
            ("random_anywhere", 0, 256),
            ("random_near_one", 120, 134),
            ("random_subnormal", 45, 68),
            ("random_large", 180, 192),
        ):
            for count in (1, 2, 3, 5, 8):
                yield Case(name, _sides(*_random_vectors(block, count, low, high, rng)))
        for count in (2, 4, 6):
            a, b = _random_vectors(block, count // 2, 100, 150, rng)
            opposite = [(exponent, [code ^ 32 for code in codes]) for exponent, codes in b]
            yield Case("random_cancels", _sides([*a, *reversed(a)], [*b, *reversed(opposite)]))


def _operands(block: int, total: int, exponent: int) -> tuple[Block, Block]:
    """Two blocks with this sum of products and of exponents.

    As many products of 31 by 31 as go in, one of 31, and one of what remains.
    """
    full, rest = divmod(abs(total), 31**2)
    a = [31] * full + [31, rest % 31][: block - full]
    b = [31] * full + [rest // 31, 1][: block - full]
    a, b = ([*each, *[0] * (block - len(each))] for each in (a, b))
    first = min(exponent, 255)
    return (first, [code | 32 for code in a] if total < 0 else a), (exponent - first, b)


def _random_vectors(
    block: int, count: int, low: int, high: int, rng: np.random.Generator
) -> tuple[list[Block], list[Block]]:
    """Two vectors of random codes, their exponents in a range."""
    exponents = rng.integers(low, high, (2, count)).tolist()
    codes = rng.integers(0, 64, (2, count, block)).tolist()
    a, b = (list(zip(*each, strict=True)) for each in zip(exponents, codes, strict=True))
    return a, b


def dot_by_definition(
    block: int,
    a_exponents: list[int],
    a_codes: list[int],
    b_exponents: list[int],
    b_codes: list[int],
) -> tuple[int, ...]:
    """FP32 patterns of the sums accumulated in FP32 and exactly."""
    a, b = _definition(block, a_exponents, a_codes), _definition(block, b_exponents, b_codes)
    return tuple(exact.vector_dot(a, b, accumulator) for accumulator in exact.ACCUMULATORS)


def dot_by_golden(
    block: int,
    a_exponents: list[int],
    a_codes: list[int],
    b_exponents: list[int],
    b_codes: list[int],
) -> tuple[int, ...]:
    """As `dot_by_definition`."""
    a, b = _golden(block, a_exponents, a_codes), _golden(block, b_exponents, b_codes)
    return tuple(_patterns(dot.matmul(a, b, accumulator))[0] for accumulator in exact.ACCUMULATORS)


def _patterns(y: NDArray[np.float32]) -> list[int]:
    return y.view(np.uint32).ravel().tolist()


DOT: Final = Subject(
    name="dot",
    title="pairs of vectors of dense blocks, and their dot products",
    inputs={
        "block": NUMBER,
        "a_exponents": NUMBERS,
        "a_codes": PATTERNS,
        "b_exponents": NUMBERS,
        "b_codes": PATTERNS,
    },
    outputs=dict.fromkeys(exact.ACCUMULATORS, PATTERN),
    cases=dot_cases,
    exact=dot_by_definition,
    golden=dot_by_golden,
)

SHAPES: Final = ((1, 1, 1), (2, 3, 8), (3, 2, 33), (1, 4, 40), (2, 2, 64))
"""Rows of a, rows of b, and K, which is not always whole blocks."""


def matmul_cases() -> Iterator[Case]:
    """Products of random matrices, padded with zeros where K is not whole blocks."""
    kind = inputs.KINDS[0]
    for block in MODE_BLOCKS:
        rng = np.random.default_rng([12, block])
        for m, n, k in SHAPES:
            near_one = kind.below(
                np.full((m + n, k), 128 << 23, np.uint64), np.full((m + n, k), 6), rng
            )
            values = kind.with_sign(near_one, rng.integers(0, 2, near_one.shape, bool))
            a, b = (part.ravel().tolist() for part in (values[:m], values[m:]))
            fields = {"block": block, "m": m, "n": n, "k": k, "a": a, "b": b}
            yield Case("padded" if k % block else "whole_blocks", fields)


def matmul_by_definition(
    block: int, m: int, n: int, k: int, a: list[int], b: list[int]
) -> tuple[list[int], ...]:
    """FP32 patterns of the product, row by row, accumulated in FP32 and exactly."""
    left, right = (
        [
            exact.encode_vector(
                [float_value(p, FP32) for p in x[row * k : (row + 1) * k]],
                block,
                Rounding.NEAREST,
            )
            for row in range(rows)
        ]
        for x, rows in ((a, m), (b, n))
    )
    return tuple(
        [exact.vector_dot(row, column, accumulator) for row in left for column in right]
        for accumulator in exact.ACCUMULATORS
    )


def matmul_by_golden(
    block: int, m: int, n: int, k: int, a: list[int], b: list[int]
) -> tuple[list[int], ...]:
    """As `matmul_by_definition`."""
    left, right = (
        encode(np.array(x, np.uint32).view(np.float32).reshape(rows, k), block=block)
        for x, rows in ((a, m), (b, n))
    )
    return tuple(
        _patterns(dot.matmul(left, right, accumulator)) for accumulator in exact.ACCUMULATORS
    )


MATMUL: Final = Subject(
    name="matmul",
    title="pairs of FP32 matrices, encoded to nearest, and their product a b^T",
    inputs={
        "block": NUMBER,
        "m": NUMBER,
        "n": NUMBER,
        "k": NUMBER,
        "a": PATTERNS,
        "b": PATTERNS,
    },
    outputs=dict.fromkeys(exact.ACCUMULATORS, PATTERNS),
    cases=matmul_cases,
    exact=matmul_by_definition,
    golden=matmul_by_golden,
)
