"""`axs6 study scales`."""

from typing import TYPE_CHECKING, Annotated

import typer

from axs6.commands.options import Json

if TYPE_CHECKING:
    from rich.table import Table

    from axs6.sim.study.scales import ScaleStudy


def scales(
    formats: Annotated[
        list[str] | None,
        typer.Option(
            "--format",
            help="This block format alone, a name or a string; may be repeated.",
            show_default="those with names and an exponent",
            metavar="FORMAT",
        ),
    ] = None,
    vectors: Annotated[int, typer.Option(help="Vectors of 1,024 values.", metavar="N")] = 2_000,
    json: Json = None,
) -> None:
    """Measure formats under each rule of their exponent scale: floor, ceil, even and rceil.

    The values are those of `axs6 study qsnr`. Saturated are those above the largest element under
    their scale.

    Example: axs6 study scales --format mxfp4 --vectors 500
    """
    from axs6.commands.output import check_writable, console, json_path, print_table, write_json
    from axs6.sim.study.scales import study_scales

    check_writable(json_path(json))
    out = console(json)
    with out.status("measuring") as status:
        study = study_scales(formats, vectors, progress=status.update)
    out.print(
        f"{study.vectors:,} vectors of {study.length:,} values, seed {study.seed}: "
        "QSNR in dB, and the share of values that saturate"
    )
    print_table(out, _table(study))
    write_json(json, study.to_dict())


def _table(study: "ScaleStudy") -> "Table":
    from rich.table import Table

    table = Table("format", box=None, pad_edge=False)
    rules = list(dict.fromkeys(row.rule for row in study.rows))
    for rule in rules:
        table.add_column(rule, justify="right")
        table.add_column("saturated", justify="right")
    for start in range(0, len(study.rows), len(rules)):
        rows = study.rows[start : start + len(rules)]
        cells = [text for x in rows for text in (f"{x.qsnr_db:.2f}", f"{x.saturated:.3%}")]
        table.add_row(rows[0].format, *cells)
    return table
