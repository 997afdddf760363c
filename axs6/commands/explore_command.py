"""`axs6 explore`."""

from pathlib import Path
from typing import Annotated

import typer

EXTRA = "cli"


def run(
    output: Annotated[Path, typer.Option("-o", "--output", help="The HTML file.", metavar="FILE")],
) -> None:
    """Write a page that shows values in block formats, bit by bit, and the costs of formats.

    The page is one file, which a browser opens without a server or network. It shows your values in
    any two formats side by side; areas, delays and energies of hardware; and errors of
    accumulators.

    Example: axs6 explore -o explore.html
    """
    from axs6.commands.output import check_writable, console, write_file
    from axs6.studies.explorer.page import page

    check_writable(output)
    write_file(output, page())
    console().print(f"wrote {output}")
