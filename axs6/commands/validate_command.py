"""`axs6 validate`."""

from typing import Annotated

import typer

from axs6.commands.options import Json


def run(
    seed: Annotated[int, typer.Option(help="Of the random inputs.")] = 0,
    blocks: Annotated[
        int, typer.Option(help="Random blocks for each dtype and block size.")
    ] = 2000,
    json: Json = None,
) -> None:
    """Compare the golden model with exact rational arithmetic that shares no code with it.

    Example: axs6 validate --blocks 500
    """
    from dataclasses import asdict

    from axs6.commands.output import console, write_json
    from axs6.golden.validate import Check, validate

    out = console(json)

    def show(check: Check, total: int) -> None:
        verdict = "[green]pass[/]" if not check.mismatches else "[red]FAIL[/]"
        out.print(f"{verdict} {check.name}: {check.cases:,} cases, {check.mismatches:,} differ")
        if check.first is not None:
            out.print(f"     {check.first}", markup=False)

    checks = validate(seed, blocks, show)
    cases = sum(check.cases for check in checks)
    mismatches = sum(check.mismatches for check in checks)
    out.print(f"{cases:,} cases compared, {mismatches:,} differ (seed {seed})")
    write_json(json, [asdict(check) for check in checks])
    if mismatches:
        raise typer.Exit(1)
