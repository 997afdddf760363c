"""Comparison of formats: every cell is measured once and cached."""

from collections.abc import Callable, Iterable, Mapping
from pathlib import Path
from typing import Any, Final

from axs6.golden.arguments import check_integer
from axs6.golden.formats import CATALOG, BlockFormat, block_format, name_of
from axs6.studies.comparison import errors, hardware, language
from axs6.studies.comparison.columns import GROUPS, ColumnGroup, choose_columns
from axs6.studies.comparison.errors import FP32, Found
from axs6.studies.comparison.hardware import Advance
from axs6.studies.comparison.table import Cell, FormatComparison

VECTORS: Final = 2_000
"""Random vectors of each distribution."""

Progress = Callable[[str, int, int], None]
"""Called with the name of the measured cell, the number of cells done, and the total."""


def compare(
    formats: Iterable[str | BlockFormat] | None = None,
    columns: Iterable[str] | None = None,
    *,
    vectors: int = VECTORS,
    liberty: Path | None = None,
    progress: Progress = lambda line, done, total: None,
    **runs: Any,
) -> FormatComparison:
    """Measure block formats in one table.

    Every figure is cached (`axs6.sim.cache`) under a key of all its inputs, so an interrupted
    comparison resumes where it stopped. A missing figure has its reason instead.

    Args:
        formats: names, strings or BlockFormats; None for the catalog. Each is measured once.
        columns: groups of `axs6.studies.comparison.columns.GROUPS` and single columns, such as
            `cost.mac_area`; None for all of them.
        vectors: random vectors of each distribution, at least 1.
        liberty: cell library of areas, delays and energies; None for the compact sky130 library.
        progress: called as cells are measured.
        runs: `timeout`, `jobs` and `scheduler`, as of `axs6.synth.sweep.sweep`, for designs.

    Raises:
        TypeError, ValueError: an argument is refused; the message says why.
        SynthesisError, RuntimeError: as of `sweep`.
        OSError: the cache cannot be written.
    """
    check_integer("vectors", vectors, 1)
    groups = choose_columns(GROUPS if columns is None else columns, GROUPS)
    names = names_of(CATALOG if formats is None else formats)
    settings = hardware.options(liberty, **runs)

    def measure(group: str, advance: Advance) -> Found:
        return {
            "bits": lambda: errors.bits(names),
            "qsnr": lambda: errors.qsnr(names, vectors),
            "recorded": lambda: errors.recorded(names),
            "cost": lambda: hardware.cost(names, settings, advance),
            "energy": lambda: hardware.energy(names, settings, advance),
            "accuracy": lambda: errors.accuracy(names),
            "perplexity": lambda: language.perplexity(names),
            "token": lambda: language.token(names, settings, advance),
        }[group]()

    return gathered(names, groups, measure, {"random vectors": vectors}, settings, progress)


def names_of(formats: Iterable[str | BlockFormat]) -> list[str]:
    """The names of formats, each once.

    Raises:
        TypeError, ValueError: one is no format, or there is none.
    """
    names = list(dict.fromkeys(name_of(block_format(each)) for each in formats))
    if not names:
        raise ValueError("formats must be at least one, not none")
    return names


def gathered(
    names: list[str],
    groups: Mapping[str, ColumnGroup],
    measure: Callable[[str, Advance], Found],
    drawn: Mapping[str, Any],
    settings: Mapping[str, Any],
    progress: Progress,
) -> FormatComparison:
    """Measure groups of columns one after the other.

    Args:
        names: of the formats.
        groups: the groups by their names.
        measure: yields the cells of a group, and reports measured designs. drawn: inputs of the
        figures of random vectors. settings: as of `axs6.studies.comparison.hardware.options`.
        progress: called as cells are measured.
    """
    cells: dict[str, dict[str, Cell]] = {name: {} for name in [*names, FP32]}
    total = len(names) * sum(len(group.columns) for group in groups.values())
    done = 0

    def design(line: str) -> None:
        progress(line, done, total)

    for name_of_group, group in groups.items():
        shown = {column.name for column in group.columns}
        for name, column, cell in measure(name_of_group, design):
            if name != FP32 and column not in shown:
                continue
            cells[name][column] = cell
            done += name != FP32
            progress(f"{name}: {column.replace('_', ' ')}", done, total)
    reference = cells.pop(FP32)
    conditions = dict(drawn) if "qsnr" in groups else {}
    if any(name in groups for name in ("cost", "encoder", "energy", "token")):
        library = settings["liberty"]
        conditions["cells"] = library.name if library else "sky130, areas in µm²"
    if reference:
        conditions["models in FP32"] = reference
    return FormatComparison(dict(groups), cells, conditions)
