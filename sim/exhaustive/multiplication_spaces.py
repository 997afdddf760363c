"""Spaces of the FP32 multiplication by an outer scale.

Significands are multiplied exactly, and the product is rounded as a sum is. So all pairs of factors
of few bits are compared; all significands beside others that reach every row of the multiplier,
each alone and all of them; and all significands at every place where a subnormal product is cut.
"""

from collections.abc import Callable
from itertools import product

import numpy as np
from numpy.typing import NDArray

from axs6.golden import fp32
from axs6.golden.formats import BF16, FP32
from axs6.hw.core.parameters import STRUCTURE
from axs6.hw.core.pipeline import Pipeline
from axs6.hw.fp32.multiply import multiplication_steps
from axs6.sim.exhaustive.fp32_spaces import addition_corners
from axs6.sim.exhaustive.space import Design, Items, Space, named, sliced

ALL_FRACTIONS = 1 << FP32.fraction_bits

FRACTIONS = (
    *(1 << bit for bit in range(FP32.fraction_bits)),
    *(0, 0x2AAAAA, 0x555555, 0x3FFFFF, 0x7FFFFE, 0x7FFFFF),
)
"""Fractions of the factors by which every fraction is multiplied: each bit alone, and many."""

DEPTHS = range(-1, FP32.fraction_bits + 3)
"""How far below the smallest normal number products are, from twice it to nothing."""

ODD = 0x2AAAAB
"""Fraction of a factor that gives long products."""

SIDES = ("value", "outer")


def multiplication_spaces(view: str = STRUCTURE) -> list[Space]:
    """The spaces of the multiplication in one view."""
    design = Design("FP32 multiplication", lambda: Pipeline(multiplication_steps(view), 0))
    return [
        _space("corners", *_corners(), design, view, {"golden model": _golden}),
        _space("bf16", *_every_bf16(), design, view, {"processor": _processor}),
        _space("fractions", *_fractions(), design, view, {"processor": _processor}),
        _space("depths", *_depths(), design, view, {"processor": _processor}),
    ]


Inputs = Callable[[int], Items]


def _space(
    name: str,
    formula: str,
    size: int,
    chunks: int,
    inputs: Inputs,
    design: Design,
    view: str,
    references: dict[str, Callable[[Items], Items]],
) -> Space:
    return Space(
        name=named(f"multiplication-{name}", view),
        formula=formula,
        cases=size * chunks,
        chunks=chunks,
        design=design,
        inputs=inputs,
        references=references,
    )


def _corners() -> tuple[str, int, int, Inputs]:
    """Every pair of corner values."""
    corners = addition_corners()
    count = len(corners)

    def inputs(chunk: int) -> Items:
        return {"value": np.repeat(corners, count), "outer": np.tile(corners, count)}

    return f"{count:,} corners x {count:,} corners", count**2, 1, inputs


def _every_bf16() -> tuple[str, int, int, Inputs]:
    """Every pair of factors that bf16 has."""
    count, rows = 1 << BF16.width, 1 << 6
    below = np.uint32(FP32.fraction_bits - BF16.fraction_bits)
    every = np.arange(count, dtype=np.uint32) << below

    def inputs(chunk: int) -> Items:
        some = every[chunk * rows : (chunk + 1) * rows]
        return {"value": np.repeat(some, count), "outer": np.tile(every, rows)}

    return "2^16 bf16 factors x 2^16 bf16 factors", rows * count, count // rows, inputs


def _fractions() -> tuple[str, int, int, Inputs]:
    """Every fraction beside some, on either side; the sign and the binade change."""
    given = list(product(SIDES, FRACTIONS))

    def inputs(chunk: int) -> Items:
        side, fraction = given[chunk]
        field = FP32.bias + chunk % 3 << FP32.fraction_bits
        return _sides(side, field | fraction, FP32.bias << FP32.fraction_bits)

    formula = f"2^23 fractions x {len(FRACTIONS)} fractions x 2 sides"
    return formula, ALL_FRACTIONS, len(given), inputs


def _depths() -> tuple[str, int, int, Inputs]:
    """Every fraction in products below, at, and above the smallest normal number."""

    def inputs(chunk: int) -> Items:
        other = (FP32.bias - DEPTHS[chunk]) // 2 << FP32.fraction_bits
        field = (FP32.bias - DEPTHS[chunk] + 1) // 2 << FP32.fraction_bits
        return _sides(SIDES[chunk % 2], FP32.sign_bit | field | ODD, other)

    return f"2^23 fractions x {len(DEPTHS)} depths", ALL_FRACTIONS, len(DEPTHS), inputs


def _sides(side: str, factor: int, others: int) -> Items:
    """One factor on a side, and on the other all fractions under an exponent field."""
    (other,) = (name for name in SIDES if name != side)
    every = np.uint32(others) + np.arange(ALL_FRACTIONS, dtype=np.uint32)
    return {side: np.full(ALL_FRACTIONS, factor, np.uint32), other: every}


def _golden(items: Items) -> Items:
    return {"value": sliced(fp32.multiply, (items["value"], items["outer"]))}


def _processor(items: Items) -> Items:
    """Products of the processor at hand, its NaNs made canonical."""
    with np.errstate(all="ignore"):
        result: NDArray[np.float32] = items["value"].view(np.float32) * items["outer"].view(
            np.float32
        )
    return {"value": np.where(np.isnan(result), np.uint32(FP32.quiet_nan), result.view(np.uint32))}
