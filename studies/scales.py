"""QSNR and share of saturated values for the rules of exponent scales."""

from collections.abc import Callable, Iterable
from dataclasses import asdict, dataclass
from typing import Any, Final

import numpy as np
from numpy.typing import NDArray

from axs6.golden import BlockFormat, block_format, decode, encode
from axs6.golden.arguments import check_integer
from axs6.golden.formats import CATALOG, Rule, name_of
from axs6.golden.metrics import ErrorSums
from axs6.studies.distributions import LENGTH, draw

VECTORS: Final = 2_000
FORMATS: Final = tuple(name for name, fmt in CATALOG.items() if fmt.exponent)
"""Default formats: formats of the catalog with an exponent."""


@dataclass(frozen=True)
class ScaleRow:
    """A format with a rule.

    Args:
        format, rule: their names.
        qsnr_db: `axs6.qsnr` of all values.
        saturated: share of the values that exceed the largest element under their scales.
    """

    format: str
    rule: str
    qsnr_db: float
    saturated: float


@dataclass(frozen=True)
class ScaleStudy:
    """Results of the study, number and length of the vectors, and their seed."""

    vectors: int
    length: int
    seed: int
    rows: list[ScaleRow]

    def to_dict(self) -> dict[str, Any]:
        """The study for JSON."""
        return {"study": "scales", **asdict(self)}


def study_scales(
    formats: Iterable[str | BlockFormat] | None = None,
    vectors: int = VECTORS,
    seed: int = 0,
    progress: Callable[[str], None] = lambda line: None,
) -> ScaleStudy:
    """Measure formats with each rule of their exponent scale, on the vectors of `study_qsnr`.

    Args:
        formats: names, strings or BlockFormats with an exponent scale; None for `FORMATS`.
        vectors: how many, at least 1.
        seed: of the values.
        progress: called with a line of text before each format.

    Raises:
        TypeError, ValueError: an argument is refused, or a format has no exponent scale.
    """
    check_integer("vectors", vectors, 1)
    check_integer("seed", seed, 0)
    chosen = [block_format(each) for each in (FORMATS if formats is None else formats)]
    ruled = [(rule, fmt.with_rule(rule)) for fmt in chosen for rule in Rule]
    rows = []
    for rule, fmt in ruled:
        progress(name_of(fmt))
        sums, saturated = ErrorSums(), 0
        for x in draw(vectors, seed):
            blocks = encode(x, fmt)
            decoded = decode(blocks, np.float64)
            sums.add(x.astype(np.float64), decoded)
            saturated += _beyond(x, decoded, blocks.codes, fmt)
        name = name_of(fmt.with_rule(Rule.FLOOR))
        rows.append(ScaleRow(name, str(rule), sums.qsnr, saturated / sums.values))
    return ScaleStudy(vectors, LENGTH, seed, rows)


def _beyond(
    x: NDArray[np.float32], decoded: NDArray[np.float64], codes: NDArray[np.uint8], fmt: BlockFormat
) -> int:
    """Number of values with the largest element whose magnitude exceeds it."""
    top = np.abs(fmt.element.integers[codes]) == fmt.element.largest_integer
    return int((top.reshape(x.shape) & (np.abs(x) > np.abs(decoded))).sum())
