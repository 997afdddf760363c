"""Rules of exponent scales compared: errors, encoders and accuracy of models."""

from collections.abc import Iterable, Mapping
from importlib.metadata import version
from pathlib import Path
from typing import Any, Final

from axs6.golden.arguments import check_integer
from axs6.golden.formats import BlockFormat, Rule, block_format, name_of
from axs6.sim.cache import kept, sources
from axs6.studies.comparison import columns as compared
from axs6.studies.comparison import errors, hardware
from axs6.studies.comparison.columns import ColumnGroup, choose_columns
from axs6.studies.comparison.compare import Progress, gathered, names_of
from axs6.studies.comparison.errors import Found
from axs6.studies.comparison.hardware import Advance
from axs6.studies.comparison.table import FormatComparison
from axs6.studies.scales import FORMATS, VECTORS, ScaleRow, study_scales
from axs6.tables import Column

GROUPS: Final[Mapping[str, ColumnGroup]] = {
    "qsnr": ColumnGroup(
        (Column("qsnr_db", "QSNR dB", ".2f"), Column("saturated", "saturated", ".3%")),
        "QSNR dB: of the vectors of `axs6 study qsnr`; saturated: share of their values above the "
        "largest element under their scale",
    ),
    "encoder": ColumnGroup(
        (Column("encoder_area", "encoder", ",.0f"), Column("encoder_ps", "ps", ",.0f")),
        "encoder, ps: its area and longest path, for a block of bf16 values, without registers",
    ),
    "accuracy": compared.GROUPS["accuracy"],
}
"""The groups of columns by their names."""

ENCODERS: Final = {"encoder_area": "area", "encoder_ps": "delay_ps"}
"""Figures of encoders by their columns."""


def compare_rules(
    formats: Iterable[str | BlockFormat] | None = None,
    columns: Iterable[str] = ("qsnr",),
    *,
    vectors: int = VECTORS,
    liberty: Path | None = None,
    progress: Progress = lambda line, done, total: None,
    **runs: Any,
) -> FormatComparison:
    """Measure formats with each rule of their exponent scale, as `compare` does.

    Args:
        formats: names, strings or BlockFormats with an exponent scale; None for those of the
            catalog.
        columns: of `GROUPS`, as of `compare`.
        vectors, liberty, progress, runs: as of `compare`.

    Raises:
        TypeError, ValueError, SynthesisError, RuntimeError, OSError: as `compare`; a format
            without an exponent scale is refused.
    """
    check_integer("vectors", vectors, 1)
    groups = choose_columns(columns, GROUPS)
    chosen = [block_format(each) for each in (FORMATS if formats is None else formats)]
    names = names_of(fmt.with_rule(rule) for fmt in chosen for rule in Rule)
    settings = hardware.options(liberty, **runs)

    def measure(group: str, advance: Advance) -> Found:
        return {
            "qsnr": lambda: _qsnr(names, vectors),
            "encoder": lambda: hardware.encoder(names, settings, advance, ENCODERS),
            "accuracy": lambda: errors.accuracy(names),
        }[group]()

    return gathered(names, groups, measure, {"random vectors": vectors}, settings, progress)


def _qsnr(names: list[str], vectors: int) -> Found:
    """QSNR and saturated values, all rules of a format at a time."""
    code = [sources("axs6.golden", "axs6.studies"), version("numpy"), str(vectors)]
    for name in names:
        fmt = block_format(name)
        floor = fmt.with_rule(Rule.FLOOR)

        def measured(floor: BlockFormat = floor) -> list[ScaleRow]:
            return study_scales([floor], vectors).rows

        rows = kept("scales", [*code, str(floor)], list[ScaleRow], measured)
        (row,) = (row for row in rows if name_of(floor.with_rule(row.rule)) == name)
        yield name, "qsnr_db", row.qsnr_db
        yield name, "saturated", row.saturated
