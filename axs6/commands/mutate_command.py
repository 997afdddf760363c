"""`axs6 mutate`."""

from typing import Annotated, Any

import typer

from axs6.commands.options import RESULTS, UNIT_OPTIONS, Unit, with_options

EXTRA = "proof"


@with_options(parameters=UNIT_OPTIONS, results=RESULTS)
def run(
    unit: Unit,
    *,
    parameters: dict[str, Any],
    mutants: Annotated[int, typer.Option(help="Number of mutants, up to 511.", metavar="N")] = 511,
    items: Annotated[int, typer.Option(help="Number of random items.", metavar="N")] = 10_000,
    seed: Annotated[int, typer.Option(help="Seed of mutants and items.")] = 1,
    timeout: Annotated[float, typer.Option(help="Time limit for all survivors, in seconds.")] = 300,
    results: dict[str, Any],
) -> None:
    """Count the faults in a unit that corner cases and random items find.

    Each mutant is the unit with one fault. All of them run in one pass of the batch simulator. A
    SAT solver checks the mutants that survive: it shows that they equal the unit, or gives an item
    that tells them apart. Those that it does not decide in time are open. The exit status is 1
    unless all mutants that do not equal the unit are killed.

    Example: axs6 mutate decoder --format nvfp4
    """
    from axs6.commands.output import verdict
    from axs6.commands.packages import need
    from axs6.commands.results import ResultFiles
    from axs6.proof.score import mutation_score
    from axs6.proof.verdicts import Verdict
    from axs6.tables import Column, table_of, words

    need("pysat")
    files = ResultFiles(**results)
    files.check()
    out = files.console()
    found = mutation_score(unit, parameters, count=mutants, items=items, seed=seed, seconds=timeout)
    counts = {each: len(found.having(each)) for each in Verdict}
    said = [f"{found.killed} killed", *(f"{count} {each}" for each, count in counts.items())]
    text = f"{unit}: {found.total} mutants, {', '.join(said)}; score {100 * found.score:.1f} %"
    if found.over:
        text += f"; not all survivors were decided within {timeout:g} s"
    passed = not counts[Verdict.DIFFERENT] and not counts[Verdict.OPEN]
    out.print(verdict(passed, text))
    for each in found.having(Verdict.DIFFERENT) + found.having(Verdict.OPEN):
        out.print(f"     {each.decision.verdict}: {each.mutation}", highlight=False)
        if each.decision.numbers is not None:
            item = ", ".join(f"{name} = {x}" for name, x in each.decision.numbers.items())
            out.print(f"       killed by {item}", highlight=False)
    row: dict[str, Any] = {**found.to_dict(), "mutants": found.total}
    row |= {str(each): count for each, count in counts.items()}
    columns = [
        words("unit"),
        Column("parameters", None),
        *(Column(name, name, ",") for name in ("mutants", "killed", *map(str, Verdict))),
        Column("score", "score", ".1%"),
    ]
    files.write(found.to_dict(), table_of(columns, [row]))
    if not passed:
        raise typer.Exit(1)
