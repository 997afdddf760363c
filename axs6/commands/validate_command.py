"""`axs6 validate`."""

from collections.abc import Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any

import typer

from axs6.commands.completion import format_names
from axs6.commands.options import RESULTS, SEVERAL, with_options

if TYPE_CHECKING:
    from axs6.commands.results import ResultFiles

EXTRA = "hw"

SAMPLES = 2000


@with_options(results=RESULTS)
def run(
    seed: Annotated[int, typer.Option(help="Seed of the random inputs.")] = 0,
    samples: Annotated[
        int | None,
        typer.Option(
            help="Number of random blocks for each dtype and block size.",
            metavar="N",
            show_default=str(SAMPLES),
        ),
    ] = None,
    formats: Annotated[
        list[str] | None,
        typer.Option(
            "--format",
            help=f"{SEVERAL} all means every format.",
            metavar="FORMAT",
            autocompletion=format_names,
            show_default="axs6, and a sample of the others",
        ),
    ] = None,
    jobs: Annotated[
        int | None,
        typer.Option(help="Checks that run in parallel.", metavar="N", show_default="1"),
    ] = None,
    exhaustive: Annotated[
        bool, typer.Option("--exhaustive", help="Compare the simulated RTL over whole spaces.")
    ] = False,
    only: Annotated[
        list[str] | None,
        typer.Option(
            help="With --exhaustive: only spaces with TEXT in their name.", metavar="TEXT"
        ),
    ] = None,
    share: Annotated[
        str | None,
        typer.Option(help="With --exhaustive: part N of M of each space.", metavar="N/M"),
    ] = None,
    state: Annotated[
        Path | None,
        typer.Option(
            help="With --exhaustive: state file, from which an interrupted run resumes.",
            show_default="in the cache",
        ),
    ] = None,
    view: Annotated[
        str | None,
        typer.Option(
            help="With --exhaustive: view of the hardware, structure or behaviour.",
            show_default="structure",
        ),
    ] = None,
    *,
    results: dict[str, Any],
) -> None:
    """Compare the golden model with exact rational arithmetic that shares no code with it.

    With --exhaustive, compare the RTL in the batch simulator with the golden model instead, on
    billions of inputs: every case of each space. Run the command again to resume an interrupted
    run, unless hardware or model have changed.

    Example: axs6 validate --format mxfp4,nvfp4

    Example: axs6 validate --format all --jobs 2
    """
    from axs6.commands.results import ResultFiles

    files = ResultFiles(**results)
    if not exhaustive:
        for name, value in (("only", only), ("share", share), ("state", state), ("view", view)):
            if value:
                raise ValueError(f"--{name} needs --exhaustive")
        count = SAMPLES if samples is None else samples
        _against_definitions(seed, count, formats, 1 if jobs is None else jobs, files)
        return
    for name, given in (("samples", samples), ("format", formats), ("jobs", jobs)):
        if given is not None:
            raise ValueError(f"--{name} does not go with --exhaustive")
    from axs6.commands.exhaustive import enumerate_spaces

    enumerate_spaces(seed, view or "structure", only or [], share or "1/1", state, files)


def _against_definitions(
    seed: int, samples: int, formats: Sequence[str] | None, jobs: int, files: "ResultFiles"
) -> None:
    """The golden model against the exact one."""
    from dataclasses import asdict

    from axs6.commands.output import verdict
    from axs6.golden.check.formats import ALL
    from axs6.golden.check.validate import Check, validate
    from axs6.golden.formats import AXS6, block_format, format_list
    from axs6.tables import Column, table_of, words

    files.check()
    out = files.console()

    def show(check: Check, total: int) -> None:
        said = f"{check.name}: {check.cases:,} cases, {check.mismatches:,} differ"
        out.print(verdict(not check.mismatches, said))
        if check.first is not None:
            out.print(f"     {check.first}")

    options: dict[str, Any] = {"jobs": jobs}
    if formats is not None:
        chosen = tuple(format_list(formats))
        chosen = ALL if chosen == ("all",) else chosen
        whole = AXS6 in map(block_format, chosen)
        options |= {"formats": chosen, "names": None if whole else ()}
    checks = validate(seed, samples, show, **options)
    cases = sum(check.cases for check in checks)
    mismatches = sum(check.mismatches for check in checks)
    out.print(f"{cases:,} cases compared, {mismatches:,} differ (seed {seed})")
    counts = (Column(name, name, ",") for name in ("cases", "mismatches"))
    rows = [asdict(check) for check in checks]
    files.write(rows, table_of([words("name", "check"), *counts, Column("first", None)], rows))
    if mismatches:
        raise typer.Exit(1)
