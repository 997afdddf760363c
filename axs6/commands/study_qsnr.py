"""`axs6 study qsnr`."""

import logging
from typing import TYPE_CHECKING, Annotated

import typer

from axs6.commands.options import SEVERAL, Json

if TYPE_CHECKING:
    from rich.table import Table

    from axs6.studies.qsnr import QsnrStudy


def qsnr(
    formats: Annotated[
        list[str] | None,
        typer.Option(
            "--format",
            help=SEVERAL,
            show_default="named formats and a few more",
            metavar="FORMAT",
        ),
    ] = None,
    vectors: Annotated[int, typer.Option(help="Vectors of 1,024 values.", metavar="N")] = 10_000,
    json: Json = None,
) -> None:
    """Measure the ratio of signal to quantisation noise of block formats.

    The values of each vector are normally distributed; the standard deviation is the magnitude of
    another normally distributed number, as in the shared-microexponents paper. The paper's
    differences are shown next to the measured ones.

    Example: axs6 study qsnr --format mx9 --format e4m3fn_e8m0_t32 --vectors 1000
    """
    from axs6.commands.output import check_writable, console, json_path, print_table, write_json
    from axs6.golden.formats import block_format, format_list
    from axs6.studies.qsnr import study_qsnr

    shown = None if formats is None else [*map(block_format, format_list(formats))]
    check_writable(json_path(json))
    out = console(json)
    log = logging.getLogger("axs6")
    log.info("measuring")
    with out.status("measuring") as status:
        study = study_qsnr(shown, vectors, progress=status.update)
    out.print(
        f"{study.vectors:,} vectors of {study.length:,} values, N(0, |N(0, 1)|), seed {study.seed}"
    )
    for table in _tables(study):
        out.print()
        print_table(out, table)
    write_json(json, study.to_dict())


def _tables(study: "QsnrStudy") -> "list[Table]":
    from rich.table import Table

    formats, differences = (Table(box=None, pad_edge=False) for _ in range(2))
    for table, names in (
        (formats, ("format", "bits", "QSNR dB")),
        (differences, ("difference", "dB", "in the paper")),
    ):
        for name in names:
            table.add_column(name, justify="left" if name == names[0] else "right")
    differences.add_column("of what")
    for row in study.rows:
        formats.add_row(row.format, f"{row.bits:g}", f"{row.qsnr_db:.2f}")
    for each in study.differences:
        claim = each.claim
        pair = f"{claim.better} - {claim.worse}"
        differences.add_row(pair, f"{each.measured:.2f}", claim.paper, claim.what)
    return [formats, differences] if study.differences else [formats]
