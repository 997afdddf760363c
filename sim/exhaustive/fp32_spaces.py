"""Spaces of the FP32 cores: addition, the final division, and reciprocals."""

from collections.abc import Callable, Sequence
from functools import partial
from itertools import product
from typing import Any

import numpy as np
from numpy.typing import NDArray

from axs6.golden import fp32
from axs6.golden.check.cases import fp32 as fp32_cases
from axs6.golden.formats import FP32
from axs6.hw.core.pipeline import Pipeline, Step
from axs6.hw.dot.shape import DotShape
from axs6.hw.fp32.add import addition_steps
from axs6.hw.fp32.common import SIGNIFICAND
from axs6.hw.fp32.divide import RECIPROCALS, division_steps
from axs6.hw.fp32.quotient import ONE, Normal, Quotient, quotient_steps
from axs6.sim.exhaustive.space import Design, Items, Space, sliced

DIVISION_CHUNK = 1 << 22

DIVIDED_FIELDS = (0, 1, 2, FP32.exponent_special - 1, FP32.exponent_special)
"""Exponent fields at which every fraction is divided by other divisors than that of AXS-6: that of
subnormal numbers, whose quotients may be normal; the least of normal ones; the largest, whose
quotients may be infinite; and that of infinities and NaN. At most 1 is added to any field."""

RANDOM_PAIRS = 1 << 28
RANDOM_CHUNK = 1 << 20

CORNER_FIELDS = (
    *(0, 1, 2, 3, 4, *range(22, 35)),
    *(126, 127, 128, *range(224, 233), 252, 253, 254),
)
"""Exponent fields of corner operands: both ends, and the distances at which an operand of the
ends falls off the significand of the other."""

CORNER_FRACTIONS = (
    *(0, 1, 2, 3, 4, 0x2AAAAA, 0x3FFFFF, 0x400000, 0x400001, 0x555555),
    *(0x7FFFFB, 0x7FFFFC, 0x7FFFFD, 0x7FFFFE, 0x7FFFFF),
)


def fp32_spaces(seed: int) -> list[Space]:
    """The spaces of these cores; `seed` is that of the random pairs."""
    adder = _core("FP32 adder", addition_steps)
    own = DotShape.of("axs6").divisor
    others = [divided_space(divisor) for divisor in RECIPROCALS if divisor != own]
    divisions = [division_space(own), *others, reciprocal_space()]
    return [corner_space(adder), random_space(adder, seed), *divisions]


def _core(name: str, steps: Callable[[], Sequence[Step]]) -> Design:
    return Design(name, lambda: Pipeline(steps(), 0))


def division_space(divisor: int) -> Space:
    """Every FP32 pattern divided by divisor / 2^n: all significands at all exponents, and specials.

    Args:
        divisor: 961 for AXS-6.
    """

    def inputs(chunk: int) -> Items:
        first = chunk * DIVISION_CHUNK
        return {"value": first + np.arange(DIVISION_CHUNK, dtype=np.uint32)}

    return Space(
        name="division",
        formula="2^23 fractions x 2^8 exponent fields x 2 signs",
        cases=1 << FP32.width,
        chunks=(1 << FP32.width) // DIVISION_CHUNK,
        inputs=inputs,
        **_division(divisor),
    )


def divided_space(divisor: int) -> Space:
    """Every fraction divided by another divisor, at the ends of the exponents.

    Args:
        divisor: one that there is hardware for.
    """
    size = FP32.smallest_normal

    def inputs(chunk: int) -> Items:
        field = np.uint32(DIVIDED_FIELDS[chunk] << FP32.fraction_bits)
        sign = np.uint32(chunk % 2 * FP32.sign_bit)
        return {"value": np.arange(size, dtype=np.uint32) | field | sign}

    return Space(
        name=f"division-{divisor}",
        formula=f"2^{FP32.fraction_bits} fractions x {len(DIVIDED_FIELDS)} exponent fields",
        cases=size * len(DIVIDED_FIELDS),
        chunks=len(DIVIDED_FIELDS),
        inputs=inputs,
        **_division(divisor),
    )


def _division(divisor: int) -> dict[str, Any]:
    """Hardware and reference of a space of a division."""

    def golden(values: fp32.Bits) -> fp32.Bits:
        return fp32.divide_by_scale(values, divisor)

    return {
        "design": _core(f"FP32 division by {divisor}", partial(division_steps, divisor)),
        "references": {"golden model": lambda items: {"value": sliced(golden, (items["value"],))}},
    }


def reciprocal_space() -> Space:
    """1 over every normal FP32 number, as an encoder divides for a scale."""
    quotient = Quotient(ONE, Normal(SIGNIFICAND, FP32.exponent_bits, FP32.bias))
    size = FP32.smallest_normal

    def inputs(chunk: int) -> Items:
        return {
            "dividend.significand": np.ones(size, np.uint8),
            "dividend.place": np.zeros(size, np.uint8),
            "divisor.significand": size + np.arange(size, dtype=np.uint32),
            "divisor.place": np.full(size, 1 + chunk, np.uint8),
        }

    def golden(items: Items) -> Items:
        field = items["divisor.place"].astype(np.uint32) << np.uint32(FP32.fraction_bits)
        pattern = (items["divisor.significand"] & np.uint32(size - 1)) | field
        return {"value": (np.float32(1) / pattern.view(np.float32)).view(np.uint32)}

    fields = FP32.exponent_special - 1
    return Space(
        name="reciprocal",
        formula=f"2^{FP32.fraction_bits} fractions x {fields} exponent fields",
        cases=fields * size,
        chunks=fields,
        design=_core("FP32 reciprocal", partial(quotient_steps, quotient)),
        inputs=inputs,
        references={"processor": golden},
    )


def corner_space(adder: Design) -> Space:
    """Every pair of corner values through an FP32 adder."""
    corners = addition_corners()

    def inputs(chunk: int) -> Items:
        return {"a": np.repeat(corners, len(corners)), "b": np.tile(corners, len(corners))}

    return Space(
        name="addition-corners",
        formula=f"{len(corners)} corners x {len(corners)} corners",
        cases=len(corners) ** 2,
        chunks=1,
        design=adder,
        inputs=inputs,
        references=_ADDITION_REFERENCES,
    )


def addition_corners() -> NDArray[np.uint32]:
    """Operands of every class: sign, exponent at an end or at a critical distance, fraction."""
    grid = [
        field << FP32.fraction_bits | fraction
        for field, fraction in product(CORNER_FIELDS, CORNER_FRACTIONS)
    ]
    magnitudes = np.array(grid, np.uint32)
    signed = np.concatenate([magnitudes, magnitudes | np.uint32(FP32.sign_bit)])
    return np.unique(np.concatenate([fp32_cases.corners(), signed]))


def random_space(adder: Design, seed: int) -> Space:
    """Random pairs through an FP32 adder, half of them of similar magnitude."""

    def inputs(chunk: int) -> Items:
        a, b = fp32_cases.random_pairs(RANDOM_CHUNK, np.random.default_rng([seed, chunk]))
        return {"a": a, "b": b}

    return Space(
        name="addition-random",
        formula=f"2^28 random pairs, seed {seed}",
        cases=RANDOM_PAIRS,
        chunks=RANDOM_PAIRS // RANDOM_CHUNK,
        design=adder,
        inputs=inputs,
        references=_ADDITION_REFERENCES,
    )


def _golden_sum(items: Items) -> Items:
    return {"value": sliced(fp32.add, (items["a"], items["b"]))}


def _processor_sum(items: Items) -> Items:
    """Sums of the processor at hand, its NaNs made canonical."""
    with np.errstate(all="ignore"):
        total = items["a"].view(np.float32) + items["b"].view(np.float32)
    return {"value": np.where(np.isnan(total), np.uint32(FP32.quiet_nan), total.view(np.uint32))}


_ADDITION_REFERENCES = {"golden model": _golden_sum, "processor": _processor_sum}
