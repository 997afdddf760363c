"""Checks of dot products of block formats of any kind, in accumulators of every kind."""

from collections.abc import Iterator
from fractions import Fraction
from functools import cache
from typing import Final

import numpy as np

from axs6.golden.accumulator import accumulator
from axs6.golden.blocks import Blocks
from axs6.golden.check.cases.dot import Look, operands
from axs6.golden.check.comparison import Comparison, Model
from axs6.golden.check.exact import accumulator as exact
from axs6.golden.check.exact import dot as exact_dot
from axs6.golden.check.exact.accumulator import Output
from axs6.golden.check.exact.blocks import Block
from axs6.golden.check.exact.dot import ExactRow, Products
from axs6.golden.check.exact.floats import Format, Special
from axs6.golden.check.subjects import CheckedFormat, as_rows, plain
from axs6.golden.dot import block_dot_unit
from axs6.golden.formats import CATALOG, BlockFormat, block_format
from axs6.golden.terms import Terms

ACCUMULATORS: Final = {
    **exact.ACCUMULATORS,
    "hopper_fp8,promote=2": exact.ACCUMULATORS["hopper_fp8"]._replace(promote=2),
    "hopper_fp8,promote=1,scaled=true": exact.ACCUMULATORS["hopper_fp8"]._replace(
        promote=1, scaled=True
    ),
    "fp32,promote=1,scaled=true": exact.Accumulator(promote=1, scaled=True),
    "cdna1,reduction=16,promote=1,scaled=true": exact.ACCUMULATORS["cdna1"]._replace(
        reduction=16, promote=1, scaled=True
    ),
    "fp32,fraction=9,fused=true,output=bf16": exact.Accumulator(
        fraction=9, fused=True, output=Output(Format(8, 7))
    ),
    "fp32,fraction=12,alignment=zero": exact.Accumulator(fraction=12, toward_zero=True),
    "fp32,reduction=32,fraction=47,fused=true,term=8": exact.Accumulator(
        reduction=32, fraction=47, fused=True, joined=8
    ),
    "fp32,reduction=64,fraction=47,alignment=zero,fused=true,term=16": exact.Accumulator(
        reduction=64, fraction=47, toward_zero=True, fused=True, joined=16
    ),
    "cdna3,reduction=32,alignment=floor,groups=4": exact.ACCUMULATORS["cdna3"]._replace(
        reduction=32, toward_zero=False, groups=4
    ),
    "fp32,reduction=16,output=bf16,pairwise=true": exact.Accumulator(
        reduction=16, output=Output(Format(8, 7)), pairs=True
    ),
    "exact,reduction=32,fraction=47,term=16": exact.Accumulator(
        reduction=32, fraction=47, joined=16, wide=True
    ),
}
"""Accumulators compared: all that have names, and some more, by what the model calls them.

Three of the last five have sums of more than 64 bits in formats of wide range, such as MXFP8.
"""


def fits(a: BlockFormat, b: BlockFormat, text: str) -> bool:
    """Whether the model has dot products of two formats in an accumulator.

    It has none if values would have too many bits, or steps are neither multiples nor parts of
    blocks.
    """
    try:
        Terms.of(a, b, accumulator(text))
    except ValueError:
        return False
    return True


def partners(fmt: BlockFormat, names: tuple[str, ...]) -> list[str]:
    """The formats of `names` whose levels have the same groups in a block."""
    groups = [level.group for level in fmt.blocked]
    return [
        name
        for name in names
        if [level.group for level in block_format(name).blocked] == groups
        and block_format(name) != fmt
        and fits(fmt, block_format(name), "fp32")
    ]


def compare_products(
    model: Model,
    rng: np.random.Generator,
    blocks: int,
    subject: CheckedFormat,
    names: tuple[str, ...] = (),
) -> Iterator[Comparison]:
    """All comparisons of the dot products of a format; none if it has no dot products.

    Args:
        model: the functions to validate.
        rng: of the operands.
        blocks: measure of the random share.
        subject: the format.
        names: formats; it is also multiplied with one of them whose levels have the same groups,
            for half of the looks.
    """
    if not fits(subject.fmt, subject.fmt, "fp32"):
        return
    looks = list(Look) * (1 + blocks // 4000)
    for look in looks:
        yield from _compare(model, subject, subject, (1, 2), look, rng)
    others = partners(subject.fmt, names)
    if others:
        pair = (subject, CheckedFormat.of(others[int(rng.integers(len(others)))]))
        a, b = pair if rng.integers(2) else pair[::-1]
        for index in rng.permutation(len(looks))[: len(looks) // 2].tolist():
            yield from _compare(model, a, b, (1, 1), looks[index], rng)


def compare_catalog(model: Model, rng: np.random.Generator, blocks: int) -> Iterator[Comparison]:
    """A sample of the comparisons of each format of the catalog except AXS-6."""
    looks = list(Look)
    for name in CATALOG:
        if name != "axs6":
            subject, look = CheckedFormat.of(name), looks[int(rng.integers(len(looks)))]
            for _ in range(1 + blocks // 4000):
                yield from _compare(model, subject, subject, (1, 1), look, rng)


def _compare(
    model: Model,
    a: CheckedFormat,
    b: CheckedFormat,
    shape: tuple[int, int],
    look: Look,
    rng: np.random.Generator,
) -> Iterator[Comparison]:
    """One product of two matrices, and block by block."""
    left, right = operands(a, b, shape, look, rng)
    rows, columns = as_rows(left), as_rows(right)
    what = f"{a.name} and {b.name}, {look.value}"

    @cache
    def exactly(scaled: bool) -> list[list[Products]]:
        left, right = (
            [ExactRow.of(exact_dot.Operand(x, subject.definition), scaled) for x in some]
            for some, subject in ((rows, a), (columns, b))
        )
        return [[Products.of(x, y) for y in right] for x in left]

    for name, sums in ACCUMULATORS.items():
        if not fits(a.fmt, b.fmt, name):
            continue
        got = model.matmul(left, right, name).view(np.uint32).tolist()
        for m, row in enumerate(exactly(sums.scaled)):
            for n, products in enumerate(row):
                inputs = [plain(block) for block in (*rows[m], *columns[n])]
                text = f"matmul {name} of {what}, rows"
                yield Comparison(text, inputs, got[m][n], products.added(sums))
    yield from _compare_blocks(model, (left, rows[0], a), (right, columns[0], b), what)


Side = tuple[Blocks, list[Block], CheckedFormat]


def _compare_blocks(model: Model, a: Side, b: Side, what: str) -> Iterator[Comparison]:
    """The first rows of two matrices, block by block: the integers, or the refusal of NaN."""
    (left, blocks, x), (right, others, y) = a, b
    by_definition = []
    for block, other in zip(blocks, others, strict=True):
        (p, fp), (q, fq) = (
            exact_dot.without_outer(each, subject.definition)
            for each, subject in ((block, x), (other, y))
        )
        by_definition.append(exact_dot.block_dot(p, q, fp, fq))
    pairs = [(plain(p), plain(q)) for p, q in zip(blocks, others, strict=True)]
    try:
        sums, exponents = model.block_dot(left, _first(right))
    except ValueError:
        refuse = any(isinstance(value, Special) for value in by_definition)
        yield Comparison(f"block_dot of {what}, is refused, blocks", pairs, True, refuse)
        return
    unit, count = block_dot_unit(x.fmt, y.fmt), len(blocks)
    parts, powers = (np.reshape(z, (count, -1)).tolist() for z in (sums, exponents))
    for pair, some, e, value in zip(pairs, parts, powers, by_definition, strict=True):
        total = sum((Fraction(2) ** k * n for n, k in zip(some, e, strict=True)), Fraction(0))
        yield Comparison(f"block_dot of {what}, blocks", pair, _ratio(total * unit), _ratio(value))


def _ratio(value: Fraction | Special) -> tuple[int, ...]:
    return () if isinstance(value, Special) else value.as_integer_ratio()


def _first(blocks: Blocks) -> Blocks:
    """The first row of a matrix."""
    fmt, zero = blocks.format, blocks.zero_points
    scales = tuple(x[:1] if x.ndim else x for x in blocks.scales)
    zero = zero[:1] if zero is not None and zero.ndim else zero
    return Blocks(fmt, scales, blocks.codes[:1], (1, blocks.shape[1]), zero_points=zero)
