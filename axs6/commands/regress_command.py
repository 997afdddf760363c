"""`axs6 regress`."""

from pathlib import Path
from typing import Annotated, Any

import typer

from axs6.commands.options import Json, with_unit_options

WAVES_FOLDER = Path("waves")


@with_unit_options
def run(
    units: Annotated[list[str] | None, typer.Argument(help="Units; all of them if none.")] = None,
    *,
    parameters: dict[str, Any],
    simulator: Annotated[str, typer.Option(help="verilator or icarus.")] = "verilator",
    seed: Annotated[int, typer.Option(help="Of the random items and stalls.")] = 0,
    items: Annotated[int, typer.Option(help="Random items at full rate, for each unit.")] = 10_000,
    waves: Annotated[bool, typer.Option("--waves", help="Keep waveforms, in ./waves.")] = False,
    junit: Annotated[Path | None, typer.Option(help="Write a JUnit XML report here.")] = None,
    json: Json = None,
) -> None:
    """Compare units in a Verilog simulator with the golden model, bit for bit.

    Every unit runs in configurations that between them use every value of every parameter that
    is not given: corner cases, random items at full rate, random stalls, and a reset in flight.
    The first build of a configuration takes some seconds; later runs take it from the cache.

    Example: axs6 regress dot --block 32 --seed 7 --junit report.xml
    """
    from axs6.commands.output import (
        check_writable,
        console,
        json_path,
        verdict,
        write_file,
        write_json,
    )
    from axs6.hw.registry import ALL_UNITS, find
    from axs6.sim.regress import Regression, configurations, regress
    from axs6.sim.regress import junit as junit_xml

    out = console(json)
    runs = [
        (unit, each) for unit in units or ALL_UNITS for each in configurations(unit, parameters)
    ]
    for unit, configuration in runs:
        find(unit).build(**configuration)
    check_writable(junit, json_path(json))
    outcomes: list[Regression] = []
    try:
        for unit, configuration in runs:
            outcome = regress(
                unit,
                configuration,
                simulator=simulator,
                seed=seed,
                items=items,
                waves=WAVES_FOLDER if waves else None,
            )
            outcomes.append(outcome)
            count = f"{outcome.items:,} items, {outcome.outputs:,} outputs equal"
            said = f"{outcome.title}: {len(outcome.tests)} tests, {count}"
            out.print(verdict(outcome.passed, said))
            for name, reason in outcome.failures:
                out.print(f"     {name}: {reason}")
    finally:
        if junit is not None and outcomes:
            write_file(junit, junit_xml(outcomes))
        if outcomes:
            write_json(json, [outcome.to_dict() for outcome in outcomes])
    failed = sum(not outcome.passed for outcome in outcomes)
    out.print(f"{len(outcomes) - failed} passed, {failed} failed ({simulator}, seed {seed})")
    if failed or not outcomes:
        raise typer.Exit(1)
