"""`axs6 study qsnr`."""

import logging
from typing import Annotated, Any

import typer

from axs6.commands.completion import format_names
from axs6.commands.options import RESULTS, SEVERAL, with_options


@with_options(results=RESULTS)
def qsnr(
    formats: Annotated[
        list[str] | None,
        typer.Option(
            "--format",
            help=SEVERAL,
            show_default="named formats and a few more",
            metavar="FORMAT",
            autocompletion=format_names,
        ),
    ] = None,
    vectors: Annotated[int, typer.Option(help="Vectors of 1,024 values.", metavar="N")] = 10_000,
    *,
    results: dict[str, Any],
) -> None:
    """Measure the ratio of signal to quantisation noise of block formats.

    The values of each vector are normally distributed; the standard deviation is the magnitude of
    another normally distributed number, as in the shared-microexponents paper. The paper's
    differences are shown next to the measured ones.

    Example: axs6 study qsnr --format mx9 --format e4m3fn_e8m0_t32 --vectors 1000
    """
    from axs6.commands.output import print_table
    from axs6.commands.results import ResultFiles
    from axs6.golden.formats import block_format, format_list
    from axs6.studies.qsnr import study_qsnr

    shown = None if formats is None else [*map(block_format, format_list(formats))]
    files = ResultFiles(**results)
    files.check()
    out = files.console()
    log = logging.getLogger("axs6")
    log.info("measuring")
    with out.status("measuring") as status:
        study = study_qsnr(shown, vectors, progress=status.update)
    out.print(
        f"{study.vectors:,} vectors of {study.length:,} values, N(0, |N(0, 1)|), seed {study.seed}"
    )
    for table in [study.table(), *([study.differences_table()] if study.differences else [])]:
        out.print()
        print_table(out, table)
    files.write(study.to_dict(), study.table())
