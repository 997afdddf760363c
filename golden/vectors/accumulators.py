"""Vectors of the accumulators of tensor cores and matrix cores."""

from collections.abc import Iterator, Sequence
from typing import Final

import numpy as np

from axs6.golden import dot
from axs6.golden.accumulator import ACCUMULATORS
from axs6.golden.blocks import Blocks
from axs6.golden.check.exact import accumulator as exact
from axs6.golden.check.exact import dot as exact_dot
from axs6.golden.check.exact.blocks import Block
from axs6.golden.check.exact.formats import CATALOG
from axs6.golden.formats import block_format
from axs6.golden.vectors.subject import NUMBERS, PATTERN, PATTERNS, WORD, Case, Subject

FORMAT: Final = "mxfp8_e5m2"
"""Format of the operands: products of E5M2 that are far apart, under exponents of 32 values."""

ONE, MINUS, INFINITY, NAN = 0x3C, 0x80, 0x7C, 0x7E
"""Codes of 1, of the sign, of an infinity and of a NaN."""

LANES, BIAS = 32, 127


def accumulator_cases() -> Iterator[Case]:
    """The same dot products in every accumulator that takes the scales of blocks as terms."""
    for name, how in ACCUMULATORS.items():
        if not how.scaled:
            for case, a_scales, a, b_scales, b in operands():
                fields = ("accumulator", "a_scales", "a_codes", "b_scales", "b_codes")
                values = (name, a_scales, _filled(a), b_scales, _filled(b))
                yield Case(case, dict(zip(fields, values, strict=True)))


def _filled(codes: Sequence[int]) -> list[int]:
    """Codes of whole blocks, zeros at the end."""
    return [*codes, *[0] * (-len(codes) % LANES)]


def operands() -> Iterator[tuple[str, list[int], list[int], list[int], list[int]]]:
    """Names of cases, and the scales and codes of both operands."""
    one, tiny, least = [BIAS], [BIAS - 79, BIAS - 80], [0]
    yield "more_than_half", one, [ONE, 0x0C, 0x02], one, [ONE, 0x0C, 0x02]
    yield "below_minus", one, [ONE, 0x08 | MINUS], one, [ONE, 0x08]
    yield "before_2^26", one, [*[0] * 15, ONE | MINUS, 0x70], one, [*[0] * 15, ONE, 0x70]
    yield "pairs", one, [0x0C, ONE, 0x0C, 0x0C], one, [0x0C, ONE, 0x0C, 0x0C]
    yield "too_small", least, [*[0] * 31, 0x01 | MINUS], least, [*[0] * 31, 0x01]
    yield "infinite_terms", [254], [0x7B, 0x7B | MINUS], [254], [0x7B, 0x7B]
    yield "infinity", one, [INFINITY, ONE], one, [ONE | MINUS, ONE]
    yield "nan", one, [ONE, NAN], one, [ONE, ONE]
    rng = np.random.default_rng(30)
    finite = [code for code in range(256) if code & INFINITY != INFINITY]
    for name, a, b in (
        ("random_near_one", [BIAS, BIAS - 1], [BIAS + 1, BIAS]),
        ("random_apart", [BIAS + 9, BIAS - 9], [BIAS, BIAS - 5]),
        ("random_subnormal", tiny, [BIAS - 60, BIAS - 59]),
    ):
        left, right = (rng.choice(finite, 2 * LANES).tolist() for _ in range(2))
        yield name, a, left, b, right
    twins = [
        code ^ MINUS * (lane % 2) for lane, code in enumerate(np.repeat(left[::2], 2).tolist())
    ]
    yield "random_cancels", one * 2, twins, one * 2, np.repeat(right[::2], 2).tolist()


def by_definition(
    accumulator: str,
    a_scales: list[int],
    a_codes: list[int],
    b_scales: list[int],
    b_codes: list[int],
) -> tuple[int]:
    """The FP32 pattern of the dot product."""
    left, right = (
        exact_dot.Operand(
            [
                Block(((scale,),), tuple(codes[k * LANES : (k + 1) * LANES]), None)
                for k, scale in enumerate(scales)
            ],
            CATALOG[FORMAT],
        )
        for scales, codes in ((a_scales, a_codes), (b_scales, b_codes))
    )
    return (exact_dot.dot(left, right, exact.ACCUMULATORS[accumulator]),)


def by_golden(
    accumulator: str,
    a_scales: list[int],
    a_codes: list[int],
    b_scales: list[int],
    b_codes: list[int],
) -> tuple[int]:
    """As `by_definition`."""
    left, right = (
        Blocks(
            block_format(FORMAT),
            (np.array([scales], np.uint8),),
            np.array(codes, np.uint8).reshape(1, len(scales), LANES),
            (1, len(codes)),
        )
        for scales, codes in ((a_scales, a_codes), (b_scales, b_codes))
    )
    return (int(dot.matmul(left, right, accumulator).view(np.uint32)[0, 0]),)


ACCUMULATED: Final = Subject(
    name="accumulators",
    title="accumulators, pairs of vectors of blocks, and their dot products",
    inputs={
        "accumulator": WORD,
        "a_scales": NUMBERS,
        "a_codes": PATTERNS,
        "b_scales": NUMBERS,
        "b_codes": PATTERNS,
    },
    outputs={"fp32": PATTERN},
    cases=accumulator_cases,
    exact=by_definition,
    golden=by_golden,
    of=FORMAT,
)
