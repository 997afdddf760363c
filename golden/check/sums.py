"""Checks of dot products, of sums over blocks with their FP32 steps, and of matrix products."""

from collections.abc import Iterator

import numpy as np

from axs6.golden.check.cases import fp32 as fp32_cases
from axs6.golden.check.cases import inputs
from axs6.golden.check.comparison import Comparison, Model, as_blocks, as_exact
from axs6.golden.check.exact import axs6 as exact
from axs6.golden.check.exact.floats import add_fp32
from axs6.golden.formats.modes import MODE_BLOCKS

MATRICES = ((1, 1, 0), (2, 3, 1), (3, 2, 7), (2, 2, 33), (3, 4, 50), (2, 3, 130))
"""Rows of a, rows of b, and K of the matrix products compared."""


def block_dots(model: Model, rng: np.random.Generator, blocks: int) -> Iterator[Comparison]:
    """Integer dot products of random and extreme blocks."""
    for size in MODE_BLOCKS:
        left = as_blocks(*inputs.random_codes(size, blocks, rng))
        exponents, codes = inputs.random_codes(size, blocks, rng)
        order = np.concatenate([np.arange(blocks), blocks + rng.permutation(len(codes) - blocks)])
        right = as_blocks(exponents[order], codes[order])
        sums, totals = model.block_dot(left, right)
        answers = zip(sums.tolist(), totals.tolist(), strict=True)
        for a, b, answer in zip(as_exact(left), as_exact(right), answers, strict=True):
            yield Comparison("block_dot, blocks", (a, b), answer, exact.block_dot(a, b))


def accumulations(model: Model, rng: np.random.Generator, blocks: int) -> Iterator[Comparison]:
    """Sums over 0 to 40 blocks: overflow, NaN, subnormals, cancellation, extreme exponents."""
    by_length: dict[int, list[fp32_cases.Terms]] = {}
    for terms in fp32_cases.terms(blocks, rng):
        by_length.setdefault(len(terms), []).append(terms)
    for length, vectors in by_length.items():
        pairs = np.array(vectors, np.int64).reshape(len(vectors), length, 2)
        for accumulator in exact.ACCUMULATORS:
            got = (
                model.accumulate(pairs[..., 0], pairs[..., 1], accumulator).view(np.uint32).tolist()
            )
            for terms, answer in zip(vectors, got, strict=True):
                sums, exponents = [p for p, _ in terms], [e for _, e in terms]
                by_definition = exact.accumulate(sums, exponents, accumulator)
                yield Comparison(f"accumulate {accumulator}, terms", terms, answer, by_definition)


def additions(model: Model, rng: np.random.Generator, blocks: int) -> Iterator[Comparison]:
    """FP32 additions of every two corner values, and of random pairs."""
    corners = fp32_cases.corners()
    a, b = fp32_cases.random_pairs(5 * blocks, rng)
    a = np.concatenate([np.repeat(corners, len(corners)), a])
    b = np.concatenate([np.tile(corners, len(corners)), b])
    got = model.add(a, b).tolist()
    for x, y, answer in zip(a.tolist(), b.tolist(), got, strict=True):
        yield Comparison("fp32 addition", (x, y), answer, add_fp32(x, y))


def divisions(model: Model, rng: np.random.Generator, blocks: int) -> Iterator[Comparison]:
    """FP32 divisions of corner and random values by 961/1024."""
    a = np.concatenate([fp32_cases.corners(), fp32_cases.random_pairs(5 * blocks, rng)[0]])
    for x, answer in zip(a.tolist(), model.divide(a, 961).tolist(), strict=True):
        yield Comparison("fp32 division by 961/1024", (x,), answer, exact.divide_fp32(x))


def matrix_products(model: Model, rng: np.random.Generator, blocks: int) -> Iterator[Comparison]:
    """Products of float32 matrices, encoded first, whose K is not always whole blocks."""
    kind = inputs.KINDS[0]
    for size in MODE_BLOCKS:
        for m, n, k in MATRICES:
            a, b = (inputs.random_blocks(kind, k, rows, rng) for rows in (m, n))
            for accumulator in exact.ACCUMULATORS:
                left, right = (model.encode(kind.array(x), block=size) for x in (a, b))
                got = model.matmul(left, right, accumulator).view(np.uint32).tolist()
                rows, columns = (
                    [
                        exact.encode_vector([kind.value(p) for p in row], size, "nearest")
                        for row in x.tolist()
                    ]
                    for x in (a, b)
                )
                answer = [
                    [exact.vector_dot(row, column, accumulator) for column in columns]
                    for row in rows
                ]
                what = f"matmul {accumulator}, block size {size}, matrices"
                yield Comparison(what, (a.tolist(), b.tolist()), got, answer)
