"""`axs6 regress`."""

import re
from collections.abc import Mapping, Sequence
from dataclasses import replace
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any

import typer

from axs6.commands.completion import units
from axs6.commands.options import RESULTS, UNIT_OPTIONS, with_options

if TYPE_CHECKING:
    from rich.console import Console

    from axs6.hw.verilog import Generated
    from axs6.sim.coverage import Coverage
    from axs6.sim.regress import Regression
    from axs6.tables import Table

EXTRA = "sim"

WAVES_FOLDER = Path("waves")

LARGE = 100_000_000
"""Waveforms with more bytes are announced before the run."""


@with_options(parameters=UNIT_OPTIONS, results=RESULTS)
def run(
    units: Annotated[
        list[str] | None, typer.Argument(help="Units; all units by default.", autocompletion=units)
    ] = None,
    *,
    parameters: dict[str, Any],
    simulator: Annotated[str, typer.Option(help="verilator or icarus.")] = "verilator",
    seed: Annotated[int, typer.Option(help="Seed of the random items and stalls.")] = 0,
    items: Annotated[
        int, typer.Option(help="Number of random items at full rate, for each unit.")
    ] = 10_000,
    test: Annotated[str | None, typer.Option(help="Run only this test, such as full_rate.")] = None,
    every: Annotated[
        bool, typer.Option("--all", help="Vary all parameters that are not given.")
    ] = False,
    verilog: Annotated[
        list[Path] | None,
        typer.Option(
            help="Test the Verilog in this file, such as a netlist of another tool, in place of "
            "the Verilog of one unit; repeat it for models of cells."
        ),
    ] = None,
    waves: Annotated[
        bool, typer.Option("--waves", help="Keep waveforms in ./waves, as FST files.")
    ] = False,
    coverage: Annotated[
        Path | None,
        typer.Option(
            help="Report which values, gaps, stalls and resets were met, and write them to this "
            "JSON file."
        ),
    ] = None,
    junit: Annotated[
        Path | None, typer.Option(help="Write a JUnit XML report to this file.")
    ] = None,
    results: dict[str, Any],
) -> None:
    """Compare units in a Verilog simulator with the golden model, bit for bit.

    Runs corner cases, random items at full rate, random stalls, and a reset in flight. Without
    parameters, a unit runs in several configurations that together use every value of every
    parameter. If you give parameters, the others take their defaults; --all varies them. The first
    build of a configuration takes some seconds; later runs use the cache.

    Example: axs6 regress dot --block 32 --seed 7 --junit report.xml

    Example: axs6 regress dot --format nvfp4 --coverage met.json
    """
    from axs6.commands.output import write_file
    from axs6.commands.results import ResultFiles
    from axs6.hw.registry import ALL_UNITS, UNITS, find
    from axs6.sim.regress import check_test, configurations, regress
    from axs6.sim.regress import junit as junit_xml

    files = ResultFiles(**results)
    out = files.console()
    check_test(test)
    if verilog:
        if len(units or ()) != 1 or every:
            raise ValueError("--verilog needs one unit, and its parameters without --all")
        runs = [(unit, find(unit).parameters(parameters)) for unit in units or ()]
    else:
        runs = [
            (unit, each)
            for unit in units or (ALL_UNITS if coverage is None else UNITS)
            for each in configurations(unit, parameters, vary=every)
        ]
    for unit, configuration in runs:
        find(unit).build(**configuration)
    given = _given(*runs[0], verilog) if verilog else None
    files.check(junit, coverage)
    outcomes: list[Regression] = []
    try:
        for unit, configuration in runs:
            if waves:
                _warn_of_large(unit, configuration, items, test)
            outcome = regress(
                unit,
                configuration,
                simulator=simulator,
                seed=seed,
                items=items,
                waves=WAVES_FOLDER if waves else None,
                generated=given,
                test=test,
                coverage=coverage is not None,
            )
            outcomes.append(outcome)
            _show(outcome, out)
    finally:
        if junit is not None and outcomes:
            write_file(junit, junit_xml(outcomes))
        if outcomes:
            files.write([outcome.to_dict() for outcome in outcomes], _table(outcomes))
    if coverage is not None:
        _report_coverage(outcomes, coverage, out)
    failed = sum(not outcome.passed for outcome in outcomes)
    out.print(f"{len(outcomes) - failed} passed, {failed} failed ({simulator}, seed {seed})")
    if failed or not outcomes:
        raise typer.Exit(1)


def _warn_of_large(
    unit: str, configuration: Mapping[str, Any], items: int, test: str | None
) -> None:
    """Say how large the waveforms of a run will be, if they are large."""
    from axs6.hw.verilog import generate
    from axs6.sim.waves import wave_size

    size = wave_size(generate(unit, **configuration), items, test)
    if size > LARGE:
        typer.echo(f"waveforms of {unit}: about {size / 1e6:,.0f} MB", err=True)


def _show(outcome: "Regression", out: "Console") -> None:
    """Print the verdict of a run and its failures."""
    from axs6.commands.output import verdict

    count = f"{outcome.items:,} items, {outcome.outputs:,} outputs equal"
    out.print(verdict(outcome.passed, f"{outcome.title}: {len(outcome.tests)} tests, {count}"))
    for name, reason in outcome.failures:
        out.print(f"     {name}: {reason}")


def _table(outcomes: "Sequence[Regression]") -> "Table":
    """A row for each run."""
    from axs6.tables import Column, table_of, words

    columns = [
        words("unit"),
        words("title", "configuration"),
        *(Column(name, None) for name in ("parameters", "simulator", "seed", "failure")),
        Column("passed", "passed", lambda passed: "yes" if passed else "no"),
        *(Column(name, name, ",") for name in ("items", "outputs")),
    ]
    return table_of(columns, [{**each.to_dict(), "title": each.title} for each in outcomes])


def _report_coverage(outcomes: "Sequence[Regression]", path: Path, out: "Console") -> None:
    """Write what was met as JSON, and show it."""
    from axs6.commands.output import print_table, write_json
    from axs6.sim.regress import coverage_of_units

    covered = coverage_of_units(outcomes)
    write_json(str(path), covered)
    print_table(out, _coverage_table(covered))


SHOWN = 4
"""Bins that were not met of which a table names this many."""


def _coverage_table(covered: "Mapping[str, Coverage]") -> "Table":
    """What was met of each group, and bins that were not."""
    from axs6.tables import text_table

    rows: list[tuple[str, ...]] = []
    for unit, groups in covered.items():
        for group, bins in groups.items():
            missing = [name for name, count in bins.items() if not count]
            more = f" and {len(missing) - SHOWN:,} more" if len(missing) > SHOWN else ""
            shown = ", ".join(missing[:SHOWN]) + more
            rows.append((unit, group, f"{len(bins) - len(missing):,}", f"{len(bins):,}", shown))
    return text_table(("unit", "group", "met", "of", "not met"), rows, left=5)


def _given(unit: str, parameters: Mapping[str, Any], paths: Sequence[Path]) -> "Generated":
    """A unit with the text of files in place of its Verilog."""
    from axs6.hw.verilog import generate

    made = generate(unit, **parameters)
    text = "\n".join(path.read_text() for path in paths)
    if not re.search(rf"\bmodule\s+\\?{re.escape(made.module)}\b", text):
        raise ValueError(f"{' and '.join(map(str, paths))} must have the module {made.module}")
    return replace(made, verilog=text)
