"""`axs6 compare`."""

import shlex
import sys
from collections.abc import Iterable, Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any

import typer

from axs6.commands.completion import format_names
from axs6.commands.options import REPORT, RUNS, with_options
from axs6.commands.packages import need

if TYPE_CHECKING:
    from rich.console import Console

    from axs6.studies.comparison.compare import Progress
    from axs6.studies.comparison.table import FormatComparison

EXTRA = "compare"

NEEDED = {
    "recorded": ("torch", "sklearn"),
    "cost": ("amaranth", "pyosys"),
    "encoder": ("amaranth", "pyosys"),
    "dot": ("amaranth", "pyosys"),
    "energy": ("amaranth", "pyosys", "torch", "sklearn"),
    "accuracy": ("torch", "sklearn"),
    "token": ("amaranth", "pyosys", "torch", "sklearn"),
}
"""Packages of groups of columns."""


@with_options(runs=RUNS, report=REPORT)
def run(
    formats: Annotated[
        list[str] | None,
        typer.Argument(
            help="Block formats, names or strings, separated by blanks or commas.",
            show_default="all named formats",
            metavar="[FORMATS]...",
            autocompletion=format_names,
        ),
    ] = None,
    columns: Annotated[
        str | None,
        typer.Option(
            help="Groups of columns, separated by commas: bits, qsnr, recorded, cost, energy, "
            "accuracy, perplexity, token; or single ones: cost.mac_area.",
            show_default="all",
            metavar="COLUMNS",
        ),
    ] = None,
    vectors: Annotated[
        int, typer.Option(help="Vectors of 1,024 random values.", metavar="N")
    ] = 2_000,
    liberty: Annotated[
        Path | None,
        typer.Option(help="Cell library of the hardware.", show_default="compact sky130"),
    ] = None,
    *,
    runs: dict[str, Any],
    report: dict[str, Any],
) -> None:
    """Compare block formats in one table: storage, errors, hardware, accuracy of models.

    bits and qsnr take a minute for all named formats; cost and energy synthesise three units per
    format and take more than half an hour. Figures are cached: nothing is measured twice, and an
    interrupted comparison resumes where it stopped. Missing figures have a footnote saying why.

    Example: axs6 compare --columns bits,qsnr

    Example: axs6 compare mxfp4 nvfp4 --columns bits.bits,qsnr.gauss_db --latex formats.tex

    Example: axs6 compare axs6 mx6 mxfp4 --jobs 2 --html formats.html
    """
    from axs6.commands.report import ReportFiles
    from axs6.golden.formats import block_format, format_list
    from axs6.studies.comparison.columns import GROUPS, choose_columns

    wanted = [*GROUPS] if columns is None else columns.split(",")
    groups = choose_columns(wanted, GROUPS)
    check_packages(groups)
    files = ReportFiles(**report)
    files.check(inputs=[liberty] if liberty else [])
    if "energy" in groups or "token" in groups:
        from axs6.studies.comparison.hardware import synthesis_on
        from axs6.studies.stimuli import DIGITS, find_stimulus
        from axs6.synth.energy import check_energy

        check_energy("block_dot", synthesis_on(liberty))
        find_stimulus(DIGITS.name)
    from axs6.studies.comparison.compare import compare

    chosen = [*map(block_format, format_list(formats or ()))] or None
    out = files.console()
    with measuring(out) as progress:
        found = compare(chosen, wanted, vectors=vectors, liberty=liberty, progress=progress, **runs)
    show(found, out)
    files.write(found.to_dict(), found.table())
    files.write_pages(lambda: found.page(shlex.join(["axs6", *sys.argv[1:]])), out)


def check_packages(groups: Iterable[str]) -> None:
    """Raise ModuleNotFoundError for the first package that groups of columns need and that is not
    installed."""
    need(*(package for group in groups for package in NEEDED.get(group, ())))


@contextmanager
def measuring(out: "Console") -> "Iterator[Progress]":
    """A line of progress on a terminal, for what compares formats."""
    from rich.progress import BarColumn, MofNCompleteColumn, TextColumn, TimeElapsedColumn
    from rich.progress import Progress as Bar

    shown = (TextColumn("{task.description}"), BarColumn(), MofNCompleteColumn())
    with Bar(
        *shown, TimeElapsedColumn(), console=out, transient=True, disable=not out.is_terminal
    ) as bar:
        task = bar.add_task("measuring", total=None)

        def advance(line: str, done: int, total: int) -> None:
            bar.update(task, description=line, completed=done, total=total)

        yield advance


def show(found: "FormatComparison", out: "Console") -> None:
    """Print a comparison with its notes and what its columns are."""
    from axs6.commands.output import print_table
    from axs6.synth.tables import notes
    from axs6.tables import rich_table

    print_table(out, rich_table(found.table()))
    out.print(*notes([*found.notes(), *found.legend()]), sep="\n")
