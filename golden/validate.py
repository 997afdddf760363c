"""Comparison of the golden model with the definitions of the block formats, bit for bit.

The model works on arrays of integers; the other side works on one value at a time in fractions
and shares no code with it: `axs6.golden.exact` for AXS-6 with its modes and dot products,
`exact_encode`, `exact_blocks` and `exact_dot` beside it for every block format. The inputs, in
`axs6.golden.cases`, `cases_fp32`, `cases_formats` and `cases_dot`, sit at every border that a
format names, and at random places between.
"""

from collections.abc import Callable, Collection, Iterator, Sequence
from dataclasses import dataclass
from functools import partial
from typing import Any, Final

import numpy as np

from axs6.golden import checks_decode, checks_dot, checks_encode, checks_formats, checks_sums
from axs6.golden.arguments import check_integer
from axs6.golden.comparison import GOLDEN, Comparison, Model
from axs6.golden.subjects import Subject


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


def validate(
    seed: int = 0,
    blocks: int = 2000,
    progress: Callable[[Check, int], object] | None = None,
    model: Model = GOLDEN,
    names: Collection[str] | None = None,
    formats: Sequence[str] = (),
) -> list[Check]:
    """Run every check of AXS-6, or those named, and those of other block formats.

    Args:
        seed: seed of the random inputs.
        blocks: random blocks for each input dtype and block size, and the measure of the other
            random inputs; inputs at the borders of the format are always all compared.
        progress: called after each check with its outcome and the number of checks to run.
        model: the functions to validate.
        names: keys of `CHECKS` to run; None runs all.
        formats: names or strings of block formats, each of which is two more checks: one of its
            dot products, one of all else.

    Returns:
        The outcomes, in the order of `CHECKS` and `formats`.

    Raises:
        ValueError: `seed` is negative, `blocks` is not positive, or a name is unknown.
    """
    check_integer("seed", seed, 0)
    check_integer("blocks", blocks, 1)
    chosen = CHECKS.keys() if names is None else names
    for name in chosen:
        if name not in CHECKS:
            raise ValueError(f"names must be among {', '.join(CHECKS)}, not {name!r}")
    planned = [
        (name, [seed, number], check)
        for number, (name, check) in enumerate(CHECKS.items())
        if name in chosen
    ]
    for name in formats:
        subject = Subject.of(name)
        of_format = partial(checks_formats.compare_format, subject=subject)
        products = partial(checks_dot.compare_products, subject=subject, names=checks_formats.ALL)
        planned.append((f"format {name}", [seed, *name.encode()], of_format))
        planned.append((f"format {name}: dot products", [seed, 1, *name.encode()], products))
    results = []
    for name, seeds, check in planned:
        rng = np.random.default_rng(seeds)
        results.append(_run(name, check(model, rng, blocks)))
        if progress:
            progress(results[-1], len(planned))
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


CHECKS: Final[dict[str, Callable[[Model, np.random.Generator, int], Iterator[Comparison]]]] = {
    "encode: special values": checks_encode.encode_special,
    "encode: rounding thresholds": checks_encode.encode_thresholds,
    "encode: random blocks": checks_encode.encode_random,
    "encode: block modes": checks_encode.encode_modes,
    "encode: stochastic rounding": checks_encode.encode_stochastic,
    "decode: every code": checks_decode.decode_all,
    "decode: high-precision codes": checks_decode.decode_precise,
    "pack and unpack": checks_decode.pack_bytes,
    "block dot product": checks_sums.block_dots,
    "accumulate: fp32 and exact": checks_sums.accumulations,
    "fp32 addition": checks_sums.additions,
    "fp32 division by 961/1024": checks_sums.divisions,
    "matmul": checks_sums.matrix_products,
    "other formats": checks_formats.compare_catalog,
    "other formats: dot products": checks_dot.compare_catalog,
}
"""Every check of `validate` by its name."""
