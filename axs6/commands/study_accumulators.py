"""`axs6 study accumulators`."""

from collections.abc import Iterable, Sequence
from dataclasses import replace
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any

import typer

from axs6.commands.completion import accumulator_names, format_names
from axs6.commands.options import RESULTS, RUNS, SEVERAL, with_options

if TYPE_CHECKING:
    from rich.console import Console

    from axs6.studies.comparison.accumulators import Cells
    from axs6.studies.comparison.columns import ColumnGroup
    from axs6.tables import Column, Table


@with_options(runs=RUNS, results=RESULTS)
def accumulators(
    formats: Annotated[
        list[str] | None,
        typer.Option(
            "--format",
            help=SEVERAL,
            show_default="mxfp8_e4m3, mxfp4, mx9, axs6",
            metavar="FORMAT",
            autocompletion=format_names,
        ),
    ] = None,
    names: Annotated[
        list[str] | None,
        typer.Option(
            "--accumulator",
            help="Accumulator whose fraction is varied; can be repeated.",
            autocompletion=accumulator_names,
            show_default="blackwell; blackwell,promote=4; paper",
            metavar="NAME",
        ),
    ] = None,
    fractions: Annotated[
        list[int] | None,
        typer.Option(
            "--fraction",
            help="Number of fraction bits kept of an aligned term; can be repeated.",
            show_default="8 to 35",
            metavar="F",
        ),
    ] = None,
    length: Annotated[
        int, typer.Option(help="Number of products in a dot product.", metavar="K")
    ] = 4096,
    columns: Annotated[
        str | None,
        typer.Option(
            help="More groups of columns, separated by commas: dot, accuracy; or single ones: "
            "dot.area.",
            show_default="none",
            metavar="COLUMNS",
        ),
    ] = None,
    liberty: Annotated[
        Path | None,
        typer.Option(help="Cell library of the dot products.", show_default="compact sky130"),
    ] = None,
    *,
    runs: dict[str, Any],
    results: dict[str, Any],
) -> None:
    """Measure the error of dot products for each number of bits that an accumulator keeps.

    The error is relative to exact accumulation, in dB. The error of the format is shown next to it.
    "exact" means that no result differs.

    --columns dot adds area and delay of the hardware, one synthesis for each design; --columns
    accuracy adds the accuracy of the models of `axs6 compare`. These figures share its cache.

    Example: axs6 study accumulators --format mx9 --fraction 13 --fraction 25 --columns dot
    """
    from axs6.commands.compare_command import check_packages, measuring
    from axs6.commands.output import print_table
    from axs6.commands.results import ResultFiles
    from axs6.golden.formats import format_list
    from axs6.studies.accumulators import study_accumulators
    from axs6.studies.comparison.accumulators import GROUPS, compare_accumulators
    from axs6.studies.comparison.columns import choose_columns

    wanted = columns.split(",") if columns else []
    groups = choose_columns(wanted, GROUPS) if wanted else {}
    check_packages(groups)
    files = ResultFiles(**results)
    files.check(inputs=[liberty] if liberty else [])
    out = files.console()
    with out.status("measuring") as status:
        chosen = formats and format_list(formats)
        study = study_accumulators(chosen, names, fractions, length, progress=status.update)
    out.print(f"{study.products} dot products of {study.length:,} products, seed {study.seed}; dB")
    print_table(out, study.table())
    report = study.to_dict()
    if groups:
        ways = [(each.format, each.accumulator) for each in study.series]
        with measuring(out) as progress:
            found = compare_accumulators(
                ways,
                study.fractions,
                wanted,
                liberty=liberty,
                progress=progress,
                **runs,
            )
        _show(found, groups.values(), study.fractions, out)
        for way, series in zip(ways, report["series"], strict=True):
            series |= _figures(found[way])
    files.write(report, study.table())


def _show(
    found: "Cells", groups: "Iterable[ColumnGroup]", fractions: Sequence[int], out: "Console"
) -> None:
    """Print a table for each column, and the notes of all."""
    from axs6.commands.output import print_table
    from axs6.studies.comparison.table import numbered, reasons_of
    from axs6.synth.tables import notes

    reasons = reasons_of(
        cell for row in found.values() for column in row.values() for cell in column
    )
    for column in (column for group in groups for column in group.columns):
        out.print(f"\n{column.title}")
        print_table(out, _cells(found, column, fractions, reasons))
    out.print(*notes([*numbered(reasons), *(group.what for group in groups)]), sep="\n")


def _figures(row: "dict[str, list[float | str]]") -> dict[str, Any]:
    """The cells of a series for JSON: None where there is no figure, with the reasons."""
    figures = {
        name: [None if isinstance(x, str) else x for x in cells] for name, cells in row.items()
    }
    missing = {name: sorted({x for x in each if isinstance(x, str)}) for name, each in row.items()}
    return {**figures, "missing": {name: reasons for name, reasons in missing.items() if reasons}}


def _cells(
    found: "Cells", column: "Column", fractions: Sequence[int], reasons: list[str]
) -> "Table":
    """A column of figures: a row for each format and accumulator, over the fractions."""
    from axs6.studies.comparison.table import marked
    from axs6.tables import Table, words

    shown = [replace(column, title=f"f = {width}") for width in fractions]
    rows = [
        (name, way, *(marked(cell, reasons) for cell in row[column.name]))
        for (name, way), row in found.items()
    ]
    return Table([words("format"), words("accumulator"), *shown], rows)
