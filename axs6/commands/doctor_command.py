"""`axs6 doctor`."""

from pathlib import Path
from typing import Annotated

import typer

from axs6.commands.options import Json

EXTRA = "files"


def run(
    source: Annotated[
        Path,
        typer.Argument(
            help="A checkpoint: a folder of .safetensors files, such a file, or a .gguf file."
        ),
    ],
    against: Annotated[
        Path | None,
        typer.Option(
            help="A checkpoint or model with the values that it should have.", metavar="PATH"
        ),
    ] = None,
    json: Json = None,
) -> None:
    """Examine a checkpoint: name what is wrong in it, or looks so, with the tensor.

    It looks for scales that are NaN, 0, negative or odd, scales of the tensor that look inverted,
    scales that look swizzled, saturated blocks, unused codes, shapes that do not fit together, and
    a configuration that says something else. Beside a reference it also finds exchanged nibbles.

    Exit status: 0 if nothing is found, 1 if something is.

    Example: axs6 doctor model-nvfp4 --against model
    """
    import dataclasses

    from rich.table import Table
    from rich.text import Text

    from axs6.commands.output import (
        check_writable,
        console,
        files_of,
        json_path,
        print_table,
        write_json,
    )
    from axs6.files.checkpoints import examine
    from axs6.terminal import shown

    figures = json_path(json)
    check_writable(figures, inputs=files_of(source, against))
    out = console(json)
    with out.status(Text(f"examining {source}")):
        findings = list(examine(source, against))
    table = Table("tensor", "check", "finding", box=None, pad_edge=False)
    for each in findings:
        table.add_row(shown(each.tensor, keep=""), each.check, each.what)
    if findings:
        print_table(out, table)
    out.print(f"{source}: {len(findings)} findings" if findings else f"{source}: nothing found")
    write_json(json, [dataclasses.asdict(each) for each in findings])
    raise typer.Exit(1 if findings else 0)
