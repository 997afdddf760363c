"""`axs6 verify`."""

from collections.abc import Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any

import typer

from axs6.commands.options import RESULTS, with_options

if TYPE_CHECKING:
    from axs6.proof.campaign_results import Result
    from axs6.tables import Table

EXTRA = "proof"


@with_options(results=RESULTS)
def run(
    only: Annotated[
        list[str] | None,
        typer.Option(
            help="Only checks with TEXT in their command; can be repeated.", metavar="TEXT"
        ),
    ] = None,
    share: Annotated[str, typer.Option(help="Part N of M of the checks.", metavar="N/M")] = "1/1",
    state: Annotated[
        Path | None,
        typer.Option(
            help="State file, from which an interrupted run resumes.", show_default="in the cache"
        ),
    ] = None,
    jobs: Annotated[
        int | None,
        typer.Option(
            help="Number of checks in parallel.", metavar="N", show_default="one for each core"
        ),
    ] = None,
    timeout: Annotated[float, typer.Option(help="Time limit of each check, in seconds.")] = 1800,
    report: Annotated[
        bool, typer.Option("--report", help="Print the results of earlier runs; run nothing.")
    ] = False,
    *,
    results: dict[str, Any],
) -> None:
    """Run every proof, every mutation score and every enumeration.

    Each check is a command of its own, which is printed with its outcome and repeats it. Checks
    that passed, or left mutants open, are kept until the design or the sources of the check
    change: run the command again to resume an interrupted run, with --state on any machine. The
    exit status is 1 if a claim is refuted or open, or a mutant is alive.

    Example: axs6 verify --only block_dot --jobs 2
    """
    import os
    from dataclasses import asdict

    from axs6.commands.output import verdict
    from axs6.commands.packages import need
    from axs6.commands.results import ResultFiles
    from axs6.golden.arguments import check_integer
    from axs6.proof.campaign import Check, all_unproved, checks, choose
    from axs6.proof.campaign_results import Kept, run_check
    from axs6.sim.control import in_threads
    from axs6.sim.exhaustive.runner import Share

    need("pysat", "bitwuzla", "pyosys")
    jobs = jobs or os.cpu_count() or 1
    check_integer("jobs", jobs, 1)
    part = Share.parse(share)
    chosen = choose(checks(), only or [], part)
    kept = Kept(state)
    files = ResultFiles(**results)
    files.check(state)
    out = files.console()

    def find(check: Check) -> "Result | None":
        result = kept.get(check)
        earlier = " in an earlier run" if result else ""
        if result is None and not report:
            result = run_check(check, timeout)
            kept.put(check, result)
        if result is not None:
            out.print(verdict(result.passed, f"{result}{earlier}"), soft_wrap=True)
        return result

    found = [x for x in in_threads(find, chosen, min(jobs, len(chosen))) if x is not None]
    for line in all_unproved() if not only and part.of == 1 else ():
        out.print(f"no proof of {line}", highlight=False, soft_wrap=True)
    unknown = f", {len(chosen) - len(found)} without a result" if report else ""
    out.print(f"{_summary(found)}{unknown}")
    files.write([asdict(each) for each in found], _table(found))
    if not all(each.passed for each in found):
        raise typer.Exit(1)


def _table(results: "Sequence[Result]") -> "Table":
    """A row for each check, with a column for whatever is counted."""
    from axs6.tables import Column, table_of, words

    counts = dict.fromkeys(name for each in results for name in each.counts)
    names = {name: name.replace(" ", "_") for name in counts}
    columns = [
        words("command"),
        *(Column(name, None) for name in ("kind", "unit", "format", "said")),
        Column("passed", "passed", lambda passed: "yes" if passed else "no"),
        Column("seconds", "seconds", ".1f"),
        *(Column(name, title, ",") for title, name in names.items()),
    ]
    rows = [
        {**vars(each), **{names[name]: count for name, count in each.counts.items()}}
        for each in results
    ]
    return table_of(columns, rows)


def _summary(results: "Sequence[Result]") -> str:
    def total(name: str) -> int:
        return sum(each.counts.get(name, 0) for each in results)

    killed = total("killed")
    unlike = killed + total("different") + total("open")
    parts = [f"{sum(each.passed for each in results)} of {len(results)} checks passed"]
    if total("claims proved"):
        parts.append(f"{total('claims proved'):,} claims proved")
    if unlike:
        parts.append(f"{killed:,} of {unlike:,} mutants that differ killed")
    if total("cases equal"):
        parts.append(f"{total('cases equal'):,} cases equal")
    return ", ".join(parts)
