"""Bias and variance of rounding, predicted and measured."""

from collections.abc import Iterable
from dataclasses import dataclass
from math import sqrt
from typing import Any

import numpy as np
from numpy.typing import NDArray

from axs6.golden import encode
from axs6.golden.arguments import check_integer
from axs6.golden.formats import AXS6
from axs6.golden.formats.catalog import AXS6_ELEMENT, AXS6_SCALE
from axs6.golden.lfsr import RANDOM_SEED, Lfsr
from axs6.golden.rounding import Rounding, check_random_bits
from axs6.tables import Column, Table, table_of, words

WIDTHS = (4, 8, 16)
"""Default widths of the random words."""

Floats = NDArray[np.float64]


@dataclass(frozen=True)
class MeanError:
    """A mean over all values, in steps of a block's codes, or their squares.

    Args:
        predicted: computed from the definition for these values. measured: on the encoded values.
        standard_error: of `measured` about `predicted`, from the random words.
    """

    predicted: float
    measured: float
    standard_error: float

    @property
    def deviation(self) -> float:
        """Measured minus predicted, in standard errors; 0 without random words."""
        difference = self.measured - self.predicted
        return difference / self.standard_error if self.standard_error else difference


@dataclass(frozen=True)
class RoundingRow:
    """One way of rounding.

    Args:
        rounding: its name.
        random_bits: width of the random words; None without.
        worst_bias: the largest difference of a value's mean from the value, in steps.
        bias: mean of the rounding error of the magnitudes, in steps.
        variance: variance of the rounding error of the magnitudes, in squares of a step.
    """

    rounding: str
    random_bits: int | None
    worst_bias: float
    bias: MeanError
    variance: MeanError


COLUMNS = (
    words("rounding"),
    Column("random_bits", "R"),
    Column("worst_bias", "worst", ".2g"),
    *(
        Column(f"{moment}_{part}".removesuffix("_measured"), title, form)
        for moment in ("bias", "variance")
        for part, title, form in (
            ("measured", moment, ".5f"),
            ("predicted", "predicted", ".5f"),
            ("error", "+-", ".0e"),
        )
    ),
)


def rounding_table(rows: Iterable[RoundingRow]) -> Table:
    """A row for each way of rounding; without random words a figure has no error."""
    found = []
    for row in rows:
        figures: dict[str, Any] = dict(vars(row))
        for name, moment in (("bias", row.bias), ("variance", row.variance)):
            figures |= {name: moment.measured, f"{name}_predicted": moment.predicted}
            figures[f"{name}_error"] = moment.standard_error if row.random_bits else None
        found.append(figures)
    return table_of(COLUMNS, found)


def study_rounding(
    widths: Iterable[int] = WIDTHS,
    values: int = 1 << 20,
    block: int = 32,
    seed: int = RANDOM_SEED,
) -> list[RoundingRow]:
    """Round normally distributed values to nearest, and by random words of several widths.

    Args:
        widths: of the random words, 1 to 32.
        values: number of FP32 values, rounded up to whole blocks. block: values per block: 8, 16 or
        32. seed: of the values, and of the registers that generate the words.

    Returns:
        A row for rounding to nearest, then one for each width. A step is 1 / 31 of a block's scale.

    Raises:
        ValueError: a parameter is out of range.

    Source: docs/rounding.md.
    """
    widths = [check_random_bits(bits) for bits in widths]
    size = AXS6.with_block(block).block
    check_integer("values", values, 1)
    x = np.random.default_rng(seed).standard_normal((-(-values // size), size)).astype(np.float32)
    return [_row(x, bits, seed) for bits in (None, *widths)]


def _row(x: NDArray[np.float32], bits: int | None, seed: int) -> RoundingRow:
    if bits is None:
        rounding, encoded = Rounding.NEAREST, encode(x, block=x.shape[1])
    else:
        rounding, words = Rounding.STOCHASTIC, Lfsr(x.shape[1], seed, bits).draw(len(x))
        encoded = encode(x, block=x.shape[1], rounding=rounding, random=words, random_bits=bits)
    powers = np.ldexp(1.0, AXS6_SCALE.bias - encoded.exponents.astype(np.int32))
    # 29 significant bits: exact in float64, as is the mean over all words.
    exact = AXS6_ELEMENT.largest_code * np.abs(x.astype(np.float64)) * powers
    mean = np.floor(exact + 0.5) if bits is None else np.floor(exact * 2.0**bits) / 2.0**bits
    errors = (encoded.codes[:, 0] & AXS6_ELEMENT.largest_code) - exact
    bias, variance = _moments(exact, mean, errors)
    return RoundingRow(str(rounding), bits, float(np.abs(mean - exact).max()), bias, variance)


def _moments(exact: Floats, mean: Floats, errors: Floats) -> tuple[MeanError, MeanError]:
    """Bias and variance of errors whose magnitudes vary between two integers about `mean`."""
    low = np.floor(mean)
    up = mean - low
    spread, off = up * (1 - up), mean - exact
    bias = MeanError(float(off.mean()), float(errors.mean()), sqrt(spread.sum()) / exact.size)
    # The square of an error varies between those of `low` and of `low` + 1.
    square_spread = spread * (2 * (low - exact) + 1) ** 2
    variance = MeanError(
        float((spread + off**2).mean()) - bias.predicted**2,
        float(errors.var()),
        sqrt(square_spread.sum()) / exact.size,
    )
    return bias, variance
