"""`axs6 study pareto`."""

import logging
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any

import typer

from axs6.commands.completion import format_names
from axs6.commands.options import RESULTS, SEVERAL, Jobs, with_options

if TYPE_CHECKING:
    from rich.console import Console

    from axs6.studies.pareto.data import Conditions
    from axs6.studies.pareto.results import ParetoStudy

FILES = ("pareto.md", "pareto.svg")


@with_options(results=RESULTS)
def pareto(
    data: Annotated[
        Path, typer.Option(help="File of the measured points; a run resumes from it.")
    ] = Path("pareto.jsonl"),
    formats: Annotated[
        list[str] | None,
        typer.Option(
            "--format",
            help=f"{SEVERAL} They are measured again if the file has them.",
            show_default="all formats missing in the file",
            metavar="FORMAT",
            autocompletion=format_names,
        ),
    ] = None,
    most: Annotated[
        int | None,
        typer.Option(
            help="Measure N formats at most; 0 only shows the results in the file.",
            show_default="all",
            metavar="N",
            min=0,
        ),
    ] = None,
    reduction: Annotated[
        int, typer.Option(help="Number of lanes of a dot product.", metavar="R")
    ] = 64,
    vectors: Annotated[int, typer.Option(help="Vectors of 1,024 values.", metavar="N")] = 10_000,
    jobs: Jobs = 1,
    output: Annotated[
        Path | None,
        typer.Option("-o", "--output", help="Folder for pareto.md and pareto.svg."),
    ] = None,
    *,
    results: dict[str, Any],
) -> None:
    """Measure hundreds of block formats: QSNR against area times memory, and the frontier.

    Area is the area of a dot product on sky130, with registers at its inputs and outputs and the
    accumulator "paper", relative to the larger of the FP8 dot products. Memory is that of 256
    values in lines of 64 bytes.

    A stopped run resumes where it stopped. Points measured with other versions of the tools or
    other settings are measured again. Exit status 1 if a synthesis fails.

    Example: axs6 study pareto --data pareto.jsonl --most 20 --jobs 2

    Example: axs6 study pareto --format mx6 --reduction 16
    """
    from axs6.commands.output import write_files
    from axs6.commands.packages import need
    from axs6.commands.results import ResultFiles
    from axs6.golden.formats import block_format, format_list, name_of
    from axs6.studies.pareto.data import Conditions, read_rows
    from axs6.studies.pareto.results import study_of
    from axs6.studies.pareto.space import space
    from axs6.studies.pareto.tables import tables

    if output is not None:
        need("matplotlib")
    files = [] if output is None else [output / name for name in FILES]
    figures = ResultFiles(**results)
    figures.check(data, *files)
    wanted = [name_of(block_format(each)) for each in format_list(formats or ())]
    conditions = Conditions.here(reduction, vectors)
    out = figures.console()
    failed = {} if most == 0 else _measured(data, conditions, wanted, most, jobs, out)
    configurations = space()
    study = study_of(read_rows(data), [each.name for each in configurations], conditions)
    _show(study, wanted, out)
    for name, reason in failed.items():
        out.print(f"failed {name}: {reason}")
    if output is not None:
        from axs6.studies.pareto.picture import picture
        from axs6.studies.pareto.tables import markdown

        pages = (markdown(study), picture(study, configurations))
        write_files(output, dict(zip(FILES, pages, strict=True)))
        out.print(f"wrote {', '.join(map(str, files))}")
    (_, table), *_ = tables(study, wanted)
    figures.write(study.to_dict(), table)
    if failed:
        raise typer.Exit(1)


def _measured(
    data: Path,
    conditions: "Conditions",
    wanted: list[str],
    most: int | None,
    jobs: int,
    out: "Console",
) -> dict[str, str]:
    """Measure the formats that are wanted, and what they are compared with; or those missing.

    Returns:
        Those whose synthesis failed, and why.
    """
    from axs6.studies.pareto.run import measure
    from axs6.studies.pareto.space import BASELINE, space

    log = logging.getLogger("axs6")
    order = [each.name for each in space()]
    with out.status("measuring") as status:

        def show(name: str, done: int, total: int) -> None:
            log.info("measured %s (%d of %d)", name, done, total)
            status.update(f"measured {name}: {done:,} of {total:,}")

        def run(names: list[str], again: bool, most: int | None = None) -> dict[str, str]:
            return measure(
                data,
                names,
                conditions,
                order=order,
                again=again,
                most=most,
                jobs=jobs,
                progress=show,
            )

        if wanted:
            return run([*BASELINE], again=False) | run(wanted, again=True)
        return run(order, again=False, most=most)


def _show(study: "ParetoStudy", wanted: list[str], out: "Console") -> None:
    """Print the tables: of the formats that are wanted alone, where there are such."""
    from rich.text import Text

    from axs6.commands.output import print_table
    from axs6.studies.pareto.tables import counts, tables
    from axs6.tables import rich_table

    out.print(counts(study))
    for title, table in tables(study, wanted):
        out.print()
        out.print(Text(title, style="bold"))
        print_table(out, rich_table(table))
    for name, reason in study.unbuildable.items():
        if not wanted or name in wanted:
            out.print(f"no hardware for {name}: {reason}")
