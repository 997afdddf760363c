"""Output of `axs6 validate --exhaustive`: a line for each space, and the progress of the run."""

import logging
import os
from collections.abc import Sequence
from dataclasses import asdict
from pathlib import Path
from time import perf_counter

import typer
from rich.console import Console
from rich.progress import BarColumn, Progress, TaskProgressColumn, TextColumn, TimeRemainingColumn

from axs6.commands.output import verdict
from axs6.commands.results import ResultFiles
from axs6.sim.exhaustive.catalog import all_spaces, choose
from axs6.sim.exhaustive.runner import Share, SpaceOutcome, compile_designs, run_space
from axs6.sim.exhaustive.space import Space
from axs6.sim.exhaustive.state import State, default_state
from axs6.tables import Column, table_of, words

COLUMNS = (
    words("space"),
    Column("formula", None),
    *(Column(name, name, ",") for name in ("cases", "compared", "earlier")),
    Column("seconds", "seconds", ".1f"),
    Column("difference", None),
)
"""Columns of `SpaceOutcome`."""


def enumerate_spaces(
    seed: int,
    view: str,
    only: Sequence[str],
    share: str,
    state: Path | None,
    files: ResultFiles,
) -> None:
    """Compare spaces, up to the first difference; the exit status is 1 if there is one.

    Args:
        seed: of the random pairs of the adder.
        view: of the hardware.
        only: parts of the names of the spaces; none for all of them.
        share: part of each space, N/M.
        state: file with what earlier runs compared; None for the one in the cache.
        files: where the outcomes go.
    """
    out = files.console()
    spaces = choose(all_spaces(seed, view), only)
    part = Share.parse(share)
    path = default_state() if state is None else state
    record = State(path)
    files.check(path)
    started = perf_counter()
    outcomes: list[SpaceOutcome] = []
    try:
        with _progress(out) as progress:
            _run(spaces, part, record, progress, outcomes)
    finally:
        if outcomes:
            rows = [asdict(outcome) for outcome in outcomes]
            files.write(rows, table_of(COLUMNS, rows))
    cases = sum(outcome.compared + outcome.earlier for outcome in outcomes)
    earlier = sum(outcome.earlier for outcome in outcomes)
    before = f", {earlier:,} of them in earlier runs ({path})" if earlier else ""
    differ = any(outcome.difference for outcome in outcomes)
    end = "stopped at a difference" if differ else "0 differ"
    out.print(f"{cases:,} cases equal{before}, {end} ({perf_counter() - started:.0f} s)")
    if differ:
        raise typer.Exit(1)


def _progress(out: Console) -> Progress:
    """A bar over all cases, on a terminal alone."""
    return Progress(
        TextColumn("{task.description}"),
        BarColumn(),
        TaskProgressColumn(),
        TimeRemainingColumn(),
        console=out,
        transient=True,
        disable=not out.is_terminal,
    )


def _run(
    spaces: Sequence[Space],
    share: Share,
    state: State,
    progress: Progress,
    outcomes: list[SpaceOutcome],
) -> None:
    """Run spaces one after the other, adding to `outcomes`, until one differs."""
    threads = os.cpu_count() or 1
    task = progress.add_task("compiling", total=None)
    for space in spaces:
        if not state.enter(space):
            progress.console.print(f"{space.name} starts again: the hardware or the model changed")
    missing = {
        space.name: sum(not state.is_done(space, k) for k in share.chunks(space.chunks))
        for space in spaces
    }
    compile_designs([space for space in spaces if missing[space.name]], threads)
    total = sum(missing[space.name] * space.chunk_cases for space in spaces)
    progress.update(task, total=total)
    for space in spaces:
        progress.update(task, description=space.name)
        logging.getLogger("axs6").info("comparing %s", space.name)
        outcome = run_space(
            space, state, share, threads, lambda cases: progress.advance(task, cases)
        )
        outcomes.append(outcome)
        _show(progress.console, outcome)
        if outcome.difference is not None:
            break


def _show(out: Console, outcome: SpaceOutcome) -> None:
    cases = outcome.compared + outcome.earlier
    part = "" if cases == outcome.cases else f" of {outcome.cases:,}"
    before = " in earlier runs" if outcome.earlier and not outcome.compared else ""
    time = f", {outcome.seconds:.1f} s" if outcome.compared else ""
    said = f"{outcome.space}: {cases:,}{part} cases equal{before}{time} ({outcome.formula})"
    out.print(verdict(outcome.difference is None, said))
    if outcome.difference is not None:
        out.print(f"     {outcome.difference}")
