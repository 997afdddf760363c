"""Comparison of the golden model with the definitions of the block formats, bit for bit.

The model works on arrays of integers; the other side works on one value at a time in fractions
and shares no code with it: `axs6.golden.check.exact`, with AXS-6, its modes and its dot products
in `axs6`, every block format in the other modules. The inputs, in `axs6.golden.check.cases`, are
the limits of a format and random values between them.
"""

from collections.abc import Callable, Collection, Iterator, Sequence
from concurrent.futures import ProcessPoolExecutor
from contextlib import nullcontext
from dataclasses import dataclass
from functools import partial
from multiprocessing import get_context
from typing import Any, Final

import numpy as np

from axs6.golden.arguments import check_integer
from axs6.golden.check import decode, dot, encode, sums
from axs6.golden.check import formats as block_formats
from axs6.golden.check.comparison import GOLDEN, Comparison, Model
from axs6.golden.check.subjects import CheckedFormat

_Compare = Callable[[Model, np.random.Generator, int], Iterator[Comparison]]
_Planned = tuple[str, list[int], _Compare]
"""The name of a check, its seeds, and what makes its comparisons."""


@dataclass(frozen=True)
class Check:
    """Outcome of one check.

    Args:
        name: name of the check. cases: number of comparisons; one block, value, vector or matrix is
        one comparison. mismatches: comparisons in which the two sides differ in any bit. first: the
        first of them with its inputs and both answers, numbers in hexadecimal.
    """

    name: str
    cases: int
    mismatches: int
    first: str | None


def validate(
    seed: int = 0,
    samples: int = 2000,
    progress: Callable[[Check, int], object] | None = None,
    model: Model = GOLDEN,
    names: Collection[str] | None = None,
    formats: Sequence[str] = (),
    jobs: int = 1,
) -> list[Check]:
    """Run every check of AXS-6, or those named, and those of other block formats.

    Args:
        seed: seed of the random inputs.
        samples: random blocks for each input dtype and block size, and the measure of the other
            random inputs; inputs at the borders of the format are always all compared.
        progress: called after each check with its outcome and the number of checks to run.
        model: the functions to validate.
        names: keys of `CHECKS` to run; None runs all.
        formats: names or strings of block formats, each of which is two more checks: one of its
            dot products, one of all else.
        jobs: checks that run in parallel, each in a process; the outcomes are the same.

    Returns:
        The outcomes, in the order of `CHECKS` and `formats`.

    Raises:
        ValueError: `seed` is negative, `samples` or `jobs` is not positive, or a name is unknown.
    """
    check_integer("seed", seed, 0)
    check_integer("samples", samples, 1)
    check_integer("jobs", jobs, 1)
    chosen = CHECKS.keys() if names is None else names
    for name in chosen:
        if name not in CHECKS:
            raise ValueError(f"names must be among {', '.join(CHECKS)}, not {name!r}")
    planned: list[_Planned] = [
        (name, [seed, number], check)
        for number, (name, check) in enumerate(CHECKS.items())
        if name in chosen
    ]
    for name in formats:
        subject = CheckedFormat.of(name)
        of_format = partial(block_formats.compare_format, subject=subject)
        products = partial(dot.compare_products, subject=subject, names=block_formats.ALL)
        planned.append((f"format {name}", [seed, *name.encode()], of_format))
        planned.append((f"format {name}: dot products", [seed, 1, *name.encode()], products))
    outcome = partial(_outcome, model, samples)
    results = []
    alone = jobs == 1
    with nullcontext() if alone else ProcessPoolExecutor(jobs, get_context("spawn")) as pool:
        for check in map(outcome, planned) if pool is None else pool.map(outcome, planned):
            results.append(check)
            if progress:
                progress(check, len(planned))
    return results


def _outcome(model: Model, samples: int, planned: _Planned) -> Check:
    name, seeds, check = planned
    return _run(name, check(model, np.random.default_rng(seeds), samples))


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


CHECKS: Final[dict[str, _Compare]] = {
    "encode: special values": encode.encode_special,
    "encode: rounding thresholds": encode.encode_thresholds,
    "encode: random blocks": encode.encode_random,
    "encode: block modes": encode.encode_modes,
    "encode: stochastic rounding": encode.encode_stochastic,
    "decode: every code": decode.decode_all,
    "decode: high-precision codes": decode.decode_precise,
    "pack and unpack": decode.pack_bytes,
    "block dot product": sums.block_dots,
    "accumulate: fp32 and exact": sums.accumulations,
    "fp32 addition": sums.additions,
    "fp32 division by 961/1024": sums.divisions,
    "matmul": sums.matrix_products,
    "other formats": block_formats.compare_catalog,
    "other formats: dot products": dot.compare_catalog,
}
"""Every check of `validate` by its name."""
