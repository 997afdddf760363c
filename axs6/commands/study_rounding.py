"""`axs6 study rounding`."""

from typing import Annotated, Any

import typer

from axs6.commands.options import RESULTS, with_options


@with_options(results=RESULTS)
def rounding(
    bits: Annotated[
        list[int] | None,
        typer.Option(
            help="Bits of the random words; can be repeated.",
            show_default="4, 8, 16",
            metavar="R",
        ),
    ] = None,
    values: Annotated[int, typer.Option(help="Number of values.", metavar="N")] = 1 << 20,
    block: Annotated[int, typer.Option(help="Values per block: 8, 16 or 32.", metavar="B")] = 32,
    *,
    results: dict[str, Any],
) -> None:
    """Compare bias and variance of stochastic rounding with predictions from its definition.

    The values are normally distributed; the random words come from the hardware's shift registers.
    A step is 1 / 31 of a block's scale.

    Example: axs6 study rounding --bits 8
    """
    from dataclasses import asdict

    from axs6.commands.output import print_table
    from axs6.commands.results import ResultFiles
    from axs6.studies.rounding import WIDTHS, rounding_table, study_rounding

    files = ResultFiles(**results)
    files.check()
    rows = study_rounding(bits or WIDTHS, values, block)
    out = files.console()
    table = rounding_table(rows)
    out.print(f"{values:,} values in blocks of {block}; steps and their squares")
    print_table(out, table)
    files.write([asdict(row) for row in rows], table)
