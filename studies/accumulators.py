"""Error of dot products against the bits that an accumulator keeps of its aligned terms."""

import math
from collections.abc import Callable, Iterable
from dataclasses import asdict, dataclass, replace
from typing import Any, Final

import numpy as np
from numpy.typing import NDArray

from axs6.golden import BlockFormat, block_format, encode, matmul
from axs6.golden.accumulator import accumulator
from axs6.golden.arguments import check_integer
from axs6.golden.formats import name_of
from axs6.tables import Column, Table, Tabular, words

LENGTH: Final = 4096
SIDE: Final = 16
"""Products of a dot product, and rows of each of the two matrices."""

FORMATS: Final = ("mxfp8_e4m3", "mxfp4", "mx9", "axs6")
ACCUMULATORS: Final = ("blackwell", "blackwell,promote=4", "paper")
"""32 lanes a step, toward zero, with the accumulator among the terms, as in tensor cores; the same,
added to an FP32 sum after every fourth step; the pipeline of the shared-microexponents paper."""

FRACTIONS: Final = tuple(range(8, 36))


@dataclass(frozen=True)
class AccumulatorSeries:
    """A format and an accumulator.

    Args:
        format: the name of both operands' format.
        accumulator: its string; its fraction is replaced. error_db: for each fraction the power of
        the error over the power of exact results, in dB; None if every result is exact. format_db:
        the same for exact accumulation relative to the values before encoding.
    """

    format: str
    accumulator: str
    error_db: list[float | None]
    format_db: float | None


@dataclass(frozen=True)
class AccumulatorStudy(Tabular):
    """Results of the study.

    Args:
        products, length: number and length of dot products. seed: of the values. fractions: bits
        kept of an aligned term. series: formats with accumulators.
    """

    products: int
    length: int
    seed: int
    fractions: list[int]
    series: list[AccumulatorSeries]

    def table(self) -> Table:
        """A row for each format and accumulator, over the fractions."""
        columns = [
            words("format"),
            words("accumulator"),
            *(
                Column(name, title, ".1f", none="exact")
                for name, title in [
                    ("format_db", "of the format"),
                    *((f"error_db_{width}", f"f = {width}") for width in self.fractions),
                ]
            ),
        ]
        rows = [(x.format, x.accumulator, x.format_db, *x.error_db) for x in self.series]
        return Table(columns, rows)

    def to_dict(self) -> dict[str, Any]:
        """The study for JSON."""
        return {"study": "accumulators", **asdict(self)}


def study_accumulators(
    formats: Iterable[str | BlockFormat] | None = None,
    accumulators: Iterable[str] | None = None,
    fractions: Iterable[int] | None = None,
    length: int = LENGTH,
    seed: int = 0,
    progress: Callable[[str], None] = lambda line: None,
) -> AccumulatorStudy:
    """Measure the error that the width of an accumulator adds to the error of a block format.

    256 dot products of the rows of two matrices. Values are normally distributed, the standard
    deviation of each row is the magnitude of a normally distributed number, and all are rounded to
    FP32. `error_db` compares with exact accumulation of the same encoded values.

    Args:
        formats: names, strings or BlockFormats; None for `FORMATS`.
        accumulators: as `accumulator` reads them, their fractions replaced; None for
            `ACCUMULATORS`.
        fractions: bits kept of an aligned term; None for `FRACTIONS`.
        length: products of a dot product, at least 1.
        seed: of the values.
        progress: called with a line of text before each format and accumulator.

    Raises:
        TypeError, ValueError: an argument is refused; the message says why.
    """
    check_integer("length", length, 1)
    check_integer("seed", seed, 0)
    chosen = [block_format(each) for each in (FORMATS if formats is None else formats)]
    ways = list(ACCUMULATORS if accumulators is None else accumulators)
    widths = list(FRACTIONS if fractions is None else fractions)
    kept = {way: [replace(accumulator(way), fraction=width) for width in widths] for way in ways}
    rng = np.random.default_rng(seed)
    x, y = (_draw(rng, length) for _ in range(2))
    true = x.astype(np.float64) @ y.astype(np.float64).T
    series = []
    for fmt in chosen:
        a, b = encode(x, fmt), encode(y, fmt)
        exact = matmul(a, b, "exact").astype(np.float64)
        for way in ways:
            progress(f"{name_of(fmt)}, {way}")
            errors = [_decibels(matmul(a, b, each), exact) for each in kept[way]]
            series.append(AccumulatorSeries(name_of(fmt), way, errors, _decibels(exact, true)))
    return AccumulatorStudy(SIDE * SIDE, length, seed, widths, series)


def _draw(rng: np.random.Generator, length: int) -> NDArray[np.float32]:
    """SIDE rows of values."""
    deviations = np.abs(rng.standard_normal((SIDE, 1)))
    return (deviations * rng.standard_normal((SIDE, length))).astype(np.float32)


def _decibels(found: NDArray[Any], right: NDArray[np.float64]) -> float | None:
    """Power of the differences over the power of the exact results, in dB; None without a
    difference."""
    noise = float(((found.astype(np.float64) - right) ** 2).sum())
    return 10 * math.log10(noise / float((right**2).sum())) if noise else None
