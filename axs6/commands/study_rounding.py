"""`axs6 study rounding`."""

from typing import TYPE_CHECKING, Annotated

import typer

from axs6.commands.options import Json

if TYPE_CHECKING:
    from rich.table import Table

    from axs6.studies.rounding import RoundingRow


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
    json: Json = None,
) -> None:
    """Compare bias and variance of stochastic rounding with predictions from its definition.

    The values are normally distributed; the random words come from the hardware's shift registers.
    A step is 1 / 31 of a block's scale.

    Example: axs6 study rounding --bits 8
    """
    from dataclasses import asdict

    from axs6.commands.output import check_writable, console, json_path, print_table, write_json
    from axs6.studies.rounding import WIDTHS, study_rounding

    check_writable(json_path(json))
    rows = study_rounding(bits or WIDTHS, values, block)
    out = console(json)
    out.print(f"{values:,} values in blocks of {block}; steps and their squares")
    print_table(out, _table(rows))
    write_json(json, [asdict(row) for row in rows])


def _table(rows: "list[RoundingRow]") -> "Table":
    from rich.table import Table

    table = Table(box=None, pad_edge=False)
    table.add_column("rounding")
    for name in ("R", "worst", "bias", "predicted", "+-", "variance", "predicted", "+-"):
        table.add_column(name, justify="right")
    for row in rows:
        moments = [
            form.format(figure)
            for moment in (row.bias, row.variance)
            for figure, form in (
                (moment.measured, "{:.5f}"),
                (moment.predicted, "{:.5f}"),
                (moment.standard_error, "{:.0e}" if row.random_bits else "-"),
            )
        ]
        width = "-" if row.random_bits is None else str(row.random_bits)
        table.add_row(row.rounding, width, f"{row.worst_bias:.2g}", *moments)
    return table
