"""Accumulators compared: area and delay of dot products, and accuracy of models."""

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import replace
from itertools import product
from pathlib import Path
from typing import Any, Final

from axs6.golden.accumulator import accumulator
from axs6.studies.comparison import columns as compared
from axs6.studies.comparison import errors, hardware
from axs6.studies.comparison.columns import ColumnGroup, choose_columns
from axs6.studies.comparison.compare import Progress
from axs6.studies.comparison.errors import Found
from axs6.studies.comparison.hardware import Advance
from axs6.studies.comparison.table import Cell
from axs6.tables import Column

GROUPS: Final[Mapping[str, ColumnGroup]] = {
    "dot": ColumnGroup(
        (Column("area", "area, µm²", ",.0f"), Column("delay_ps", "delay, ps", ",.0f")),
        "area, delay: those of the unit dot with the accumulator, without registers but that of "
        "the sum",
    ),
    "accuracy": compared.GROUPS["accuracy"],
}
"""The groups of columns by their names."""

Way = tuple[str, str]
"""A format and an accumulator, both by their names."""

Cells = dict[Way, dict[str, list[Cell]]]
"""The cells of formats with accumulators: by column, one for each fraction."""


def compare_accumulators(
    ways: Sequence[Way],
    fractions: Sequence[int],
    columns: Iterable[str],
    *,
    liberty: Path | None = None,
    progress: Progress = lambda line, done, total: None,
    **runs: Any,
) -> Cells:
    """Measure hardware cost and model accuracy over the bits of an accumulator.

    Figures are cached as in `compare`; a missing one has its reason instead.

    Args:
        ways: formats with accumulators, whose fractions are replaced.
        fractions: bits kept of an aligned term.
        columns: of `GROUPS`, as of `compare`.
        liberty, progress, runs: as of `compare`.

    Raises:
        TypeError, ValueError, SynthesisError, RuntimeError, OSError: as `compare`.
    """
    groups = choose_columns(columns, GROUPS)
    settings = hardware.options(liberty, **runs)
    wanted = [column.name for group in groups.values() for column in group.columns]
    total = len(ways) * len(fractions) * len(wanted)
    cells: Cells = {way: {name: [] for name in wanted} for way in ways}
    done = 0

    def advance(line: str) -> None:
        progress(line, done, total)

    names = dict.fromkeys(name for _, name in ways)
    for name, fraction, group in product(names, fractions, groups):
        formats = [fmt for fmt, other in ways if other == name]
        kept = str(replace(accumulator(name), fraction=fraction))
        for fmt, column, cell in _measured(group, formats, kept, settings, advance):
            if column not in wanted:
                continue
            cells[fmt, name][column].append(cell)
            done += 1
            progress(f"{fmt}, {name}, f = {fraction}: {column}", done, total)
    return cells


def _measured(
    group: str, formats: Sequence[str], text: str, options: dict[str, Any], advance: Advance
) -> Found:
    if group == "dot":
        return hardware.dot(formats, text, options, advance)
    return errors.accuracy(formats, text)
