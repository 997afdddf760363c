"""`axs6 study scales`."""

from pathlib import Path
from typing import Annotated, Any

import typer

from axs6.commands.completion import format_names
from axs6.commands.options import RESULTS, RUNS, SEVERAL, with_options


@with_options(runs=RUNS, results=RESULTS)
def scales(
    formats: Annotated[
        list[str] | None,
        typer.Option(
            "--format",
            help=SEVERAL,
            show_default="named formats with an exponent",
            metavar="FORMAT",
            autocompletion=format_names,
        ),
    ] = None,
    columns: Annotated[
        str,
        typer.Option(
            help="Groups of columns, separated by commas: qsnr, encoder, accuracy; or single "
            "ones: encoder.encoder_area.",
            metavar="COLUMNS",
        ),
    ] = "qsnr",
    vectors: Annotated[int, typer.Option(help="Vectors of 1,024 values.", metavar="N")] = 2_000,
    liberty: Annotated[
        Path | None,
        typer.Option(help="Cell library of the encoders.", show_default="compact sky130"),
    ] = None,
    *,
    runs: dict[str, Any],
    results: dict[str, Any],
) -> None:
    """Measure formats under each rule of their exponent scale: floor, ceil, even and rceil.

    The values have the distribution of `axs6 study qsnr`. A value saturates if it exceeds the
    largest element under its scale. Encoders and the accuracy of models are the same as in `axs6
    compare`, and share its cache.

    Example: axs6 study scales --format mxfp4 --columns qsnr,encoder,accuracy
    """
    from axs6.commands.compare_command import check_packages, measuring, show
    from axs6.commands.results import ResultFiles
    from axs6.golden.formats import format_list
    from axs6.studies.comparison.columns import choose_columns
    from axs6.studies.comparison.rules import GROUPS, compare_rules

    wanted = columns.split(",")
    groups = choose_columns(wanted, GROUPS)
    check_packages(groups)
    files = ResultFiles(**results)
    files.check(inputs=[liberty] if liberty else [])
    out = files.console()
    with measuring(out) as progress:
        found = compare_rules(
            formats and format_list(formats),
            wanted,
            vectors=vectors,
            liberty=liberty,
            progress=progress,
            **runs,
        )
    show(found, out)
    files.write(found.to_dict(), found.table())
