"""`axs6 study accumulators`."""

from typing import TYPE_CHECKING, Annotated

import typer

from axs6.commands.options import Json

if TYPE_CHECKING:
    from rich.table import Table

    from axs6.sim.study.accumulators import AccumulatorStudy


def accumulators(
    formats: Annotated[
        list[str] | None,
        typer.Option(
            "--format",
            help="This block format alone, a name or a string; may be repeated.",
            show_default="mxfp8_e4m3, mxfp4, mx9, axs6",
            metavar="FORMAT",
        ),
    ] = None,
    names: Annotated[
        list[str] | None,
        typer.Option(
            "--accumulator",
            help="This accumulator alone, its fraction replaced; may be repeated.",
            show_default="blackwell; blackwell,promote=4; paper",
            metavar="NAME",
        ),
    ] = None,
    fractions: Annotated[
        list[int] | None,
        typer.Option(
            "--fraction",
            help="Bits kept of an aligned term; may be repeated.",
            show_default="8 to 35",
            metavar="F",
        ),
    ] = None,
    length: Annotated[int, typer.Option(help="Products of a dot product.", metavar="K")] = 4096,
    json: Json = None,
) -> None:
    """Measure the error of dot products against the bits that an accumulator keeps of its terms.

    The error is that from exact accumulation, in dB: what the accumulator adds to the error of the
    format, which is shown beside it. "exact" says that no result differs.

    Example: axs6 study accumulators --format mx9 --fraction 13 --fraction 25
    """
    from axs6.commands.output import check_writable, console, json_path, print_table, write_json
    from axs6.sim.study.accumulators import study_accumulators

    check_writable(json_path(json))
    out = console(json)
    with out.status("measuring") as status:
        study = study_accumulators(formats, names, fractions, length, progress=status.update)
    out.print(f"{study.products} dot products of {study.length:,} products, seed {study.seed}; dB")
    print_table(out, _table(study))
    write_json(json, study.to_dict())


def _table(study: "AccumulatorStudy") -> "Table":
    from rich.table import Table

    table = Table("format", "accumulator", box=None, pad_edge=False)
    for name in ("of the format", *(f"f = {width}" for width in study.fractions)):
        table.add_column(name, justify="right")
    for each in study.series:
        cells = ["exact" if x is None else f"{x:.1f}" for x in (each.format_db, *each.error_db)]
        table.add_row(each.format, each.accumulator, *cells)
    return table
