"""`axs6 compare`."""

import shlex
import sys
from collections.abc import Iterable, Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import TYPE_CHECKING, Annotated

import typer

from axs6.commands.options import Jobs, Json, Scheduler, Timeout
from axs6.commands.packages import need

if TYPE_CHECKING:
    from rich.console import Console

    from axs6.studies.comparison.compare import Progress
    from axs6.studies.comparison.table import Comparison

EXTRA = "compare"

NEEDED = {
    "recorded": ("torch", "sklearn"),
    "cost": ("amaranth", "pyosys"),
    "encoder": ("amaranth", "pyosys"),
    "dot": ("amaranth", "pyosys"),
    "energy": ("amaranth", "pyosys", "torch", "sklearn"),
    "accuracy": ("torch", "sklearn"),
}
"""Packages of groups of columns."""


def run(
    formats: Annotated[
        list[str] | None,
        typer.Argument(
            help="Block formats, names or strings.",
            show_default="all that have names",
            metavar="[FORMATS]...",
        ),
    ] = None,
    columns: Annotated[
        str | None,
        typer.Option(
            help="Groups of columns, with commas: bits, qsnr, recorded, cost, energy, accuracy.",
            show_default="all",
            metavar="GROUPS",
        ),
    ] = None,
    vectors: Annotated[
        int, typer.Option(help="Vectors of 1,024 random values.", metavar="N")
    ] = 2_000,
    liberty: Annotated[
        Path | None,
        typer.Option(help="Cell library of the hardware.", show_default="compact sky130"),
    ] = None,
    timeout: Timeout = 600,
    jobs: Jobs = 1,
    scheduler: Scheduler = None,
    html: Annotated[Path | None, typer.Option(help="Write it as a page here.")] = None,
    markdown: Annotated[Path | None, typer.Option(help="Write it as Markdown here.")] = None,
    json: Json = None,
) -> None:
    """Compare block formats in one table: storage, errors, hardware, accuracy of models.

    bits and qsnr take a minute for all formats that have names; cost and energy, which synthesise
    three units of each, more than half an hour. Figures are kept: what was measured before is not
    measured again, and a comparison that was interrupted goes on where it was. Missing figures
    have a footnote saying why.

    Example: axs6 compare --columns bits,qsnr

    Example: axs6 compare axs6 mx6 mxfp4 --jobs 2 --html formats.html
    """
    from axs6.commands.output import check_writable, console, json_path, write_json
    from axs6.golden.formats import block_format
    from axs6.studies.comparison.columns import GROUPS, check_groups

    groups = check_groups(GROUPS if columns is None else columns.split(","), GROUPS)
    need(*(["jinja2", "matplotlib"] if html or markdown else []))
    check_packages(groups)
    check_writable(html, markdown, json_path(json), inputs=[liberty] if liberty else [])
    if "energy" in groups:
        from axs6.studies.stimuli import DIGITS, find_stimulus
        from axs6.synth.energy import check_energy

        target = "generic" if liberty else "sky130"
        check_energy("block_dot", target=target, liberty=liberty)
        find_stimulus(DIGITS.name)
    from axs6.studies.comparison.compare import compare

    given = [name for each in formats or () for name in each.split(",")]
    chosen = [block_format(name.strip()) for name in given] or None
    out = console(json)
    with measuring(out) as progress:
        found = compare(
            chosen,
            groups,
            vectors=vectors,
            liberty=liberty,
            timeout=timeout,
            jobs=jobs,
            scheduler=scheduler,
            progress=progress,
        )
    show(found, out)
    write_json(json, found.to_dict())
    _write_pages(found, html, markdown, out)


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


def show(found: "Comparison", out: "Console") -> None:
    """Print a comparison with its notes and what its columns are."""
    from axs6.commands.output import print_table
    from axs6.synth.tables import notes, rich_table

    print_table(out, rich_table(found.table()))
    out.print(*notes([*found.notes(), *found.legend()]), sep="\n")


def _write_pages(
    found: "Comparison", html: Path | None, markdown: Path | None, out: "Console"
) -> None:
    if not (html or markdown):
        return
    from axs6.commands.output import write_file, write_files
    from axs6.synth import pages

    page = found.page(shlex.join(["axs6", *sys.argv[1:]]))
    if html:
        write_file(html, pages.html(page))
        out.print(f"wrote {html}")
    if markdown:
        write_files(markdown.parent, pages.markdown(page, markdown.name))
        out.print(f"wrote {markdown}")
