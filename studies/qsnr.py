"""QSNR of block formats on the distribution of the shared-microexponents paper."""

from collections.abc import Callable, Iterable, Sequence
from dataclasses import asdict, dataclass
from typing import Any, Final

import numpy as np
from numpy.typing import NDArray

from axs6.golden import BlockFormat, block_format, decode, encode
from axs6.golden.arguments import check_integer
from axs6.golden.formats import CATALOG, TENSOR, name_of
from axs6.golden.metrics import ErrorSums
from axs6.studies.distributions import LENGTH, draw
from axs6.tables import Column, Table, Tabular, table_of, words

VECTORS: Final = 10_000
"""Default number of vectors."""

FORMATS: Final = (
    "axs6",
    "axs6_t16",
    "axs6_t8",
    *(name for name in CATALOG if name != "axs6"),
    "int6_u8_t16_float32_t0",
    "int8_float32_t0",
    "int6_float32_t0",
)
"""Default formats: the catalog; AXS-6 with smaller blocks;
VSQ with 6 bits and scales of 8; integers with a scale for each vector."""


@dataclass(frozen=True)
class QsnrClaim:
    """The paper's claim about two formats.

    Args:
        better, worse: the formats.
        paper: the difference in dB, as the paper states it. what: description of the first, if
        strings are unclear.
    """

    better: str
    worse: str
    paper: str
    what: str = ""


def _claims(name: str, bits: int) -> tuple[QsnrClaim, ...]:
    """Other shifts than those of a microexponent format, which have 1 bit for 2 values."""
    return (
        QsnrClaim(f"int{bits}_e8m0_t16s2o2", name, "0.5", "2 bits a shift, not 1"),
        QsnrClaim(name, f"int{bits}_e8m0_t16s8o1", "about 2", "2 values a shift, not 8"),
        QsnrClaim(f"int{bits}_e8m0_t16s1o1", name, "0.7", "1 value a shift, not 2"),
    )


CLAIMS: Final = (
    QsnrClaim("mx9", "msfp16", "3.6"),
    QsnrClaim("mx9", "mxfp8_e4m3", "about 16"),
    QsnrClaim("mx9", "fp8_e4m3", "about 16"),
    QsnrClaim("fp8_e4m3", "mx6", "more than 0"),
    QsnrClaim("mx6", "fp8_e5m2", "more than 0"),
    *_claims("mx9", 8),
    *_claims("mx6", 5),
    *_claims("mx4", 3),
)
"""Differences of section IV-C."""


@dataclass(frozen=True)
class QsnrRow:
    """A format and its figures.

    Args:
        format: its name, or its string if it has none. bits: bits per value with the scales of
        blocks. qsnr_db: `axs6.qsnr` of all vectors.
    """

    format: str
    bits: float
    qsnr_db: float


@dataclass(frozen=True)
class Difference:
    """A claim and its measurement: the difference of the formats in dB."""

    claim: QsnrClaim
    measured: float


COLUMNS = (words("format"), Column("bits", "bits", "g"), Column("qsnr_db", "QSNR dB", ".2f"))
DIFFERENCES = (
    words("difference"),
    Column("db", "dB", ".2f"),
    Column("paper", "in the paper"),
    words("what", "of what"),
)


@dataclass(frozen=True)
class QsnrStudy(Tabular):
    """Results of the study.

    Args:
        vectors, length: number and length of the vectors. seed: of the values. rows: the formats.
        differences: the paper's claims, with the default formats.
    """

    vectors: int
    length: int
    seed: int
    rows: list[QsnrRow]
    differences: list[Difference]

    def table(self) -> Table:
        """A row for each format."""
        return table_of(COLUMNS, map(vars, self.rows))

    def differences_table(self) -> Table:
        """The paper's claims."""
        rows = [
            {**vars(x.claim), "difference": f"{x.claim.better} - {x.claim.worse}", "db": x.measured}
            for x in self.differences
        ]
        return table_of(DIFFERENCES, rows)

    def to_dict(self) -> dict[str, Any]:
        """The study for JSON."""
        return {"study": "qsnr", **asdict(self)}


def study_qsnr(
    formats: Iterable[str | BlockFormat] | None = None,
    vectors: int = VECTORS,
    seed: int = 0,
    progress: Callable[[str], None] = lambda line: None,
) -> QsnrStudy:
    """Measure the QSNR of formats on vectors of normally distributed values.

    The standard deviation of each vector is the magnitude of a normally distributed number. Values
    are rounded to FP32, each vector is a channel, and all of them are one tensor.

    Args:
        formats: names, strings or BlockFormats; None measures `FORMATS`, and `CLAIMS` too.
        vectors: number of vectors, at least 1. The first ones do not depend on it. seed: of the
        values. progress: called with a line of text before each chunk of vectors.

    Raises:
        TypeError, ValueError: an argument is refused; the message says why.

    Source: Rouhani et al., With Shared Microexponents, A Little Shifting Goes a Long Way, eq. 3
    and section IV-C.
    """
    check_integer("vectors", vectors, 1)
    check_integer("seed", seed, 0)
    claims = CLAIMS if formats is None else ()
    shown = [block_format(each) for each in (FORMATS if formats is None else formats)]
    named = [block_format(name) for claim in claims for name in (claim.better, claim.worse)]
    found = measure([*shown, *named], vectors, seed, progress)

    def difference(claim: QsnrClaim) -> float:
        better, worse = (found[block_format(name)].qsnr for name in (claim.better, claim.worse))
        return better - worse

    rows = [QsnrRow(name_of(x), float(x.bits_a_value[0]), found[x].qsnr) for x in shown]
    differences = [Difference(claim, difference(claim)) for claim in claims]
    return QsnrStudy(vectors, LENGTH, seed, rows, differences)


def measure(
    formats: Sequence[BlockFormat],
    vectors: int,
    seed: int = 0,
    progress: Callable[[str], None] = lambda line: None,
    distribution: str = "paper",
) -> dict[BlockFormat, ErrorSums]:
    """Values and errors of formats on the vectors of a distribution.

    Args:
        formats: formats of the encoding. vectors, seed: number of vectors, and the seed of their
        values. progress: called with a line of text before each chunk of vectors. distribution: one
        of `axs6.studies.distributions.DISTRIBUTIONS`.
    """
    sums = {fmt: ErrorSums() for fmt in formats}
    ends = None
    if any(level.group == TENSOR for fmt in sums for level in fmt.levels):
        progress("finding the largest value")
        ends = _ends(draw(vectors, seed, distribution))
    done = 0
    for x in draw(vectors, seed, distribution):
        progress(f"vectors {done + 1:,} to {done + len(x):,} of {vectors:,}")
        exact = x.astype(np.float64)
        for fmt, each in sums.items():
            each.add(exact, _decoded(x, fmt, ends))
        done += len(x)
    return sums


def _ends(chunks: Iterable[NDArray[np.float32]]) -> NDArray[np.float32]:
    """Two vectors of the smallest and the largest of all values."""
    found = np.array([(x.min(), x.max()) for x in chunks])
    ends = np.array([[found[:, 0].min()], [found[:, 1].max()]])
    return np.repeat(ends, LENGTH, axis=1)


def _decoded(
    x: NDArray[np.float32], fmt: BlockFormat, ends: NDArray[np.float32] | None
) -> NDArray[np.float64]:
    """Vectors after encoding, as part of a tensor that also contains `ends`. A tensor's scale
    depends only on its smallest and largest values.
    """
    if ends is None or all(level.group != TENSOR for level in fmt.levels):
        return decode(encode(x, fmt), np.float64)
    return decode(encode(np.concatenate([x, ends]), fmt), np.float64)[: len(x)]
