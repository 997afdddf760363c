"""Comparison of the golden model with the definitions of AXS-6, bit for bit.

The model works on arrays of integers; the other side, `axs6.golden.exact`, works on one value at
a time in fractions and shares no code with it. The inputs, in `axs6.golden.cases` and
`axs6.golden.cases_fp32`, sit at every border that the format names, and at random places between.
"""

from collections.abc import Callable, Collection, Iterator, Sequence
from dataclasses import dataclass
from functools import cache
from itertools import pairwise
from typing import Any, Final, NamedTuple

import numpy as np
from numpy.typing import NDArray

from axs6.golden import cases, cases_fp32, exact, fp32
from axs6.golden.blocks import Blocks
from axs6.golden.decode import decode
from axs6.golden.dot import accumulate, block_dot, matmul
from axs6.golden.encode import encode
from axs6.golden.pack import pack, unpack
from axs6.golden.spec import (
    AUTO,
    BLOCK_SIZES,
    DETERMINISTIC,
    RANDOM_BITS_MAX,
    Accumulate,
    Mode,
    Rounding,
    code_formats,
)

OUTPUTS = (("float32", exact.FP32), ("bfloat16", exact.BF16), ("float64", exact.FP64))
MODES = (Mode.SPARSE.label, Mode.HIGH_PRECISION.label, AUTO)
"""Modes beside dense."""
MATRICES = ((1, 1, 0), (2, 3, 1), (3, 2, 7), (2, 2, 33), (3, 4, 50), (2, 3, 130))
"""Rows of a, rows of b, and K of the matrix products compared."""


@dataclass(frozen=True)
class Model:
    """The functions that are validated; a test hands in wrong ones to see them reported."""

    encode: Callable[..., Blocks] = encode
    decode: Callable[..., NDArray[Any]] = decode
    pack: Callable[..., bytes] = pack
    unpack: Callable[..., Blocks] = unpack
    block_dot: Callable[..., tuple[NDArray[np.int16], NDArray[np.uint16]]] = block_dot
    accumulate: Callable[..., NDArray[np.float32]] = accumulate
    matmul: Callable[..., NDArray[np.float32]] = matmul
    add: Callable[[fp32.Bits, fp32.Bits], fp32.Bits] = fp32.add
    divide: Callable[[fp32.Bits], fp32.Bits] = fp32.divide_by_scale


GOLDEN: Final = Model()


@dataclass(frozen=True)
class Check:
    """Outcome of one check.

    Args:
        name: what was compared.
        cases: comparisons made; one block, value, vector or matrix is one comparison.
        mismatches: comparisons in which the two sides differ in any bit.
        first: the first of them with its inputs and both answers, numbers in hexadecimal.
    """

    name: str
    cases: int
    mismatches: int
    first: str | None


class Comparison(NamedTuple):
    """One answer of the model beside the one by definition: integers, bytes, or nested tuples."""

    what: str
    inputs: Any
    model: Any
    exact: Any


def validate(
    seed: int = 0,
    blocks: int = 2000,
    progress: Callable[[Check, int], object] | None = None,
    model: Model = GOLDEN,
    names: Collection[str] | None = None,
) -> list[Check]:
    """Run every check, or those named.

    Args:
        seed: seed of the random inputs.
        blocks: random blocks for each input dtype and block size, and the measure of the other
            random inputs; inputs at the borders of the format are always all compared.
        progress: called after each check with its outcome and the number of checks to run.
        model: the functions to validate.
        names: keys of `CHECKS` to run; None runs all.

    Returns:
        The outcomes, in the order of `CHECKS`.

    Raises:
        ValueError: `seed` is negative, `blocks` is not positive, or a name is unknown.
    """
    if seed < 0:
        raise ValueError(f"seed must be 0 or more, not {seed!r}")
    if blocks < 1:
        raise ValueError(f"blocks must be at least 1, not {blocks!r}")
    chosen = CHECKS.keys() if names is None else names
    for name in chosen:
        if name not in CHECKS:
            raise ValueError(f"names must be among {', '.join(CHECKS)}, not {name!r}")
    results = []
    for number, (name, check) in enumerate(CHECKS.items()):
        if name not in chosen:
            continue
        rng = np.random.default_rng([seed, number])
        results.append(_run(name, check(model, rng, blocks)))
        if progress:
            progress(results[-1], len(chosen))
    return results


def _run(name: str, comparisons: Iterator[Comparison]) -> Check:
    count = mismatches = 0
    first = None
    for comparison in comparisons:
        count += 1
        if comparison.model != comparison.exact:
            mismatches += 1
            first = first or _describe(comparison)
    return Check(name, count, mismatches, first)


def _describe(comparison: Comparison) -> str:
    what, inputs, model, by_definition = comparison
    return f"{what} of {_hex(inputs)}: model {_hex(model)}, by definition {_hex(by_definition)}"


def _hex(x: Any) -> str:
    if isinstance(x, bytes):
        return x.hex()
    if isinstance(x, Sequence):
        return "[" + ", ".join(_hex(item) for item in x) + "]"
    return hex(x)


def encode_special(model: Model, rng: np.random.Generator, blocks: int) -> Iterator[Comparison]:
    """Powers of two and their neighbours, limits, zeros, NaN and Inf in blocks that saturate."""
    for kind in cases.KINDS:
        for size in BLOCK_SIZES:
            patterns = cases.special_blocks(kind, size, rng)
            yield from _compare_encode(model, kind, patterns, nonfinite="saturate")


def encode_thresholds(model: Model, rng: np.random.Generator, blocks: int) -> Iterator[Comparison]:
    """Values next to every rounding threshold, at several exponents."""
    for kind in cases.KINDS:
        for size in BLOCK_SIZES:
            patterns = cases.threshold_blocks(kind, size)
            yield from _compare_encode(model, kind, patterns, nonfinite="saturate")


def encode_random(model: Model, rng: np.random.Generator, blocks: int) -> Iterator[Comparison]:
    """Random blocks over all exponents, narrow and wide."""
    for kind in cases.KINDS:
        for size in BLOCK_SIZES:
            yield from _compare_encode(model, kind, cases.random_blocks(kind, size, blocks, rng))


def _compare_encode(
    model: Model, kind: cases.Kind, patterns: cases.Patterns, **options: str
) -> Iterator[Comparison]:
    size = patterns.shape[1]
    rows, values = patterns.tolist(), _values(kind, patterns)
    for rounding in DETERMINISTIC:
        got = model.encode(kind.array(patterns), size, rounding, **options)
        what = f"encode {kind.name}, {rounding}, block"
        for row, value, block in zip(rows, values, _as_exact(got), strict=True):
            yield Comparison(what, row, block, exact.encode_block(value, rounding))


def _values(kind: cases.Kind, patterns: cases.Patterns) -> list[list[exact.Value]]:
    return [[kind.value(pattern) for pattern in row] for row in patterns.tolist()]


def encode_modes(model: Model, rng: np.random.Generator, blocks: int) -> Iterator[Comparison]:
    """Sparse, high-precision and chosen modes: special values, thresholds, blocks with zeros."""
    for kind in cases.KINDS:
        for size in BLOCK_SIZES:
            given = [
                cases.special_blocks(kind, size, rng),
                cases.threshold_blocks(kind, size),
                cases.blocks_with_zeros(kind, size, max(1, blocks // 32), rng),
            ]
            patterns = np.concatenate([part[:: 1 + 64 * len(part) // blocks] for part in given])
            rows, values = patterns.tolist(), _values(kind, patterns)
            for rounding in DETERMINISTIC:
                for mode in MODES:
                    got = model.encode(
                        kind.array(patterns), size, rounding, mode, nonfinite="saturate"
                    )
                    what = f"encode {kind.name}, {rounding}, {mode}, block"
                    answers = zip(got.modes.ravel().tolist(), _as_exact(got), strict=True)
                    for row, value, answer in zip(rows, values, answers, strict=True):
                        by_definition = exact.encode_in_mode(value, rounding, mode)
                        yield Comparison(what, row, answer, by_definition)


def encode_stochastic(model: Model, rng: np.random.Generator, blocks: int) -> Iterator[Comparison]:
    """Stochastic rounding by random words, and by those next to the one that rounds up."""
    for kind in cases.KINDS:
        for size in BLOCK_SIZES:
            patterns = cases.random_blocks(kind, size, max(1, blocks // 32), rng)
            rows, values = patterns.tolist(), _values(kind, patterns)
            for bits in (1, 4, 16, RANDOM_BITS_MAX):
                for mode in (Mode.DENSE, Mode.HIGH_PRECISION):
                    largest = [(1 << n) - 1 for n in _magnitude_bits(mode)]
                    words = cases.deciding_words(values, largest, bits, rng)
                    got = model.encode(
                        kind.array(patterns), size, Rounding.STOCHASTIC, mode.label,
                        random=np.array(words, np.uint64), random_bits=bits,
                    )  # fmt: skip
                    what = f"encode {kind.name}, {bits} random bits, {mode.label}, block"
                    widths = _magnitude_bits(mode)
                    for row, value, word, answer in zip(
                        rows, values, words, _as_exact(got), strict=True
                    ):
                        by_definition = exact.encode_block(
                            value, Rounding.STOCHASTIC, widths, exact.Random(word, bits)
                        )
                        yield Comparison(what, (row, word), answer, by_definition)


def _magnitude_bits(mode: Mode) -> tuple[int, int]:
    even, odd = code_formats(mode)
    return even.magnitude_bits, odd.magnitude_bits


def _as_exact(blocks: Blocks) -> list[exact.Block]:
    exponents = blocks.exponents.ravel().tolist()
    codes = blocks.codes.reshape(-1, blocks.block_size).tolist()
    return list(zip(exponents, codes, strict=True))


def _as_blocks(
    exponents: NDArray[np.uint8], codes: NDArray[np.uint8], mode: Mode = Mode.DENSE
) -> Blocks:
    """Blocks of one mode of exponents (..., n) and codes (..., n, B)."""
    shape = (*exponents.shape[:-1], codes.shape[-2] * codes.shape[-1])
    return Blocks(exponents, np.full_like(exponents, mode), codes, shape)


def decode_all(model: Model, rng: np.random.Generator, blocks: int) -> Iterator[Comparison]:
    """Every code at every exponent, in every output format."""
    pairs = [(exponent, code) for exponent in range(256) for code in range(64)]
    for name, fmt in OUTPUTS:
        expected = [exact.decode_bits(exponent, code, fmt) for exponent, code in pairs]
        unsigned = f"u{(fmt.exponent_bits + fmt.fraction_bits + 1) // 8}"
        for size in BLOCK_SIZES:
            exponents = np.repeat(np.arange(256, dtype=np.uint8), 64 // size)
            codes = np.tile(np.arange(64, dtype=np.uint8), 256).reshape(-1, size)
            got = model.decode(_as_blocks(exponents, codes), name).view(unsigned).ravel().tolist()
            for pair, answer, by_definition in zip(pairs, got, expected, strict=True):
                yield Comparison(f"decode to {name}, code", pair, answer, by_definition)


def decode_precise(model: Model, rng: np.random.Generator, blocks: int) -> Iterator[Comparison]:
    """Every code of high-precision blocks at every exponent, in every output format."""
    for name, fmt in OUTPUTS:
        unsigned = f"u{(fmt.exponent_bits + fmt.fraction_bits + 1) // 8}"
        for size in BLOCK_SIZES:
            exponents = np.repeat(np.arange(256, dtype=np.uint8), 256 // size)
            codes = np.empty((len(exponents), size), np.uint8)
            codes[:, ::2] = np.resize(np.arange(128, dtype=np.uint8), codes[:, ::2].shape)
            codes[:, 1::2] = np.resize(np.arange(32, dtype=np.uint8), codes[:, 1::2].shape)
            array = _as_blocks(exponents, codes, mode=Mode.HIGH_PRECISION)
            got = model.decode(array, name).view(unsigned).reshape(codes.shape).tolist()
            for exponent, row, answers in zip(exponents.tolist(), codes.tolist(), got, strict=True):
                for index, (code, answer) in enumerate(zip(row, answers, strict=True)):
                    n = _magnitude_bits(Mode.HIGH_PRECISION)[index % 2]
                    by_definition = _decoded(exponent, code, fmt, n)
                    what = f"decode to {name}, {n} magnitude bits, code"
                    yield Comparison(what, (exponent, code), answer, by_definition)


_decoded = cache(exact.decode_bits)


def pack_bytes(model: Model, rng: np.random.Generator, blocks: int) -> Iterator[Comparison]:
    """Bytes of blocks of all modes, and blocks from bytes, packed tightly and aligned."""
    for size in BLOCK_SIZES:
        exponents, modes, codes = cases.random_codes_in_modes(size, blocks, rng)
        given = list(zip(modes.tolist(), exponents.tolist(), codes.tolist(), strict=True))
        array = Blocks(exponents, modes, codes, (codes.size,))
        for align in (1, 32):
            packed = [exact.pack_block(e, c, align, mode) for mode, e, c in given]
            data = model.pack(array, align)
            ends = np.cumsum([len(piece) for piece in packed]).tolist()
            pieces = [data[a:b] for a, b in pairwise([0, *ends])]
            for block, piece, by_definition in zip(given, pieces, packed, strict=True):
                yield Comparison(f"pack align={align}, block", block, piece, by_definition)
            got = model.unpack(b"".join(packed), array.shape, size, align)
            back = [
                (mode, *rest) for mode, rest in zip(got.modes.tolist(), _as_exact(got), strict=True)
            ]
            for block, piece, answer in zip(given, packed, back, strict=True):
                yield Comparison(f"unpack align={align}, bytes", piece, answer, block)


def block_dots(model: Model, rng: np.random.Generator, blocks: int) -> Iterator[Comparison]:
    """Integer dot products of random and extreme blocks."""
    for size in BLOCK_SIZES:
        left = _as_blocks(*cases.random_codes(size, blocks, rng))
        exponents, codes = cases.random_codes(size, blocks, rng)
        order = np.concatenate([np.arange(blocks), blocks + rng.permutation(len(codes) - blocks)])
        right = _as_blocks(exponents[order], codes[order])
        sums, totals = model.block_dot(left, right)
        answers = zip(sums.tolist(), totals.tolist(), strict=True)
        for a, b, answer in zip(_as_exact(left), _as_exact(right), answers, strict=True):
            yield Comparison("block_dot, blocks", (a, b), answer, exact.block_dot(a, b))


def accumulations(model: Model, rng: np.random.Generator, blocks: int) -> Iterator[Comparison]:
    """Sums over 0 to 40 blocks: overflow, NaN, subnormals, cancellation, extreme exponents."""
    by_length: dict[int, list[cases_fp32.Terms]] = {}
    for terms in cases_fp32.terms(blocks, rng):
        by_length.setdefault(len(terms), []).append(terms)
    for length, vectors in by_length.items():
        pairs = np.array(vectors, np.int64).reshape(len(vectors), length, 2)
        for how in Accumulate:
            got = model.accumulate(pairs[..., 0], pairs[..., 1], how).view(np.uint32).tolist()
            for terms, answer in zip(vectors, got, strict=True):
                sums, exponents = [p for p, _ in terms], [e for _, e in terms]
                by_definition = exact.accumulate(sums, exponents, how)
                yield Comparison(f"accumulate {how}, terms", terms, answer, by_definition)


def additions(model: Model, rng: np.random.Generator, blocks: int) -> Iterator[Comparison]:
    """FP32 additions of every two corner values, and of random pairs."""
    corners = cases_fp32.corners()
    a, b = cases_fp32.random_pairs(5 * blocks, rng)
    a = np.concatenate([np.repeat(corners, len(corners)), a])
    b = np.concatenate([np.tile(corners, len(corners)), b])
    got = model.add(a, b).tolist()
    for x, y, answer in zip(a.tolist(), b.tolist(), got, strict=True):
        yield Comparison("fp32 addition", (x, y), answer, exact.add_fp32(x, y))


def divisions(model: Model, rng: np.random.Generator, blocks: int) -> Iterator[Comparison]:
    """FP32 divisions of corner and random values by 961/1024."""
    a = np.concatenate([cases_fp32.corners(), cases_fp32.random_pairs(5 * blocks, rng)[0]])
    for x, answer in zip(a.tolist(), model.divide(a).tolist(), strict=True):
        yield Comparison("fp32 division by 961/1024", (x,), answer, exact.divide_fp32(x))


def matrix_products(model: Model, rng: np.random.Generator, blocks: int) -> Iterator[Comparison]:
    """Products of float32 matrices, encoded first, whose K is not always whole blocks."""
    kind = cases.KINDS[0]
    for size in BLOCK_SIZES:
        for m, n, k in MATRICES:
            a, b = (cases.random_blocks(kind, k, rows, rng) for rows in (m, n))
            for how in Accumulate:
                left, right = (model.encode(kind.array(x), size) for x in (a, b))
                got = model.matmul(left, right, how).view(np.uint32).tolist()
                rows, columns = (
                    [
                        exact.encode_vector([kind.value(p) for p in row], size, "nearest")
                        for row in x.tolist()
                    ]
                    for x in (a, b)
                )
                answer = [
                    [exact.vector_dot(row, column, how) for column in columns] for row in rows
                ]
                what = f"matmul {how}, block size {size}, matrices"
                yield Comparison(what, (a.tolist(), b.tolist()), got, answer)


CHECKS: Final[dict[str, Callable[[Model, np.random.Generator, int], Iterator[Comparison]]]] = {
    "encode: special values": encode_special,
    "encode: rounding thresholds": encode_thresholds,
    "encode: random blocks": encode_random,
    "encode: block modes": encode_modes,
    "encode: stochastic rounding": encode_stochastic,
    "decode: every code": decode_all,
    "decode: high-precision codes": decode_precise,
    "pack and unpack": pack_bytes,
    "block dot product": block_dots,
    "accumulate: fp32 and exact": accumulations,
    "fp32 addition": additions,
    "fp32 division by 961/1024": divisions,
    "matmul": matrix_products,
}
"""Every check of `validate` by its name."""
