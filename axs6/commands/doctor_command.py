"""`axs6 doctor`."""

from pathlib import Path
from typing import Annotated, Any

import typer

from axs6.commands.options import RESULTS, with_options

EXTRA = "files"


@with_options(results=RESULTS)
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
    *,
    results: dict[str, Any],
) -> None:
    """Examine a checkpoint: name what is wrong in it, or looks so, with the tensor.

    It looks for scales that are NaN, 0, negative or odd, scales of the tensor that look inverted,
    scales that look swizzled, saturated blocks, unused codes, shapes that do not fit together, and
    a configuration that says something else. Beside a reference it also finds exchanged nibbles.

    Exit status: 0 if nothing is found, 1 if something is.

    Example: axs6 doctor model-nvfp4 --against model
    """
    import dataclasses

    from rich.text import Text

    from axs6.commands.output import files_of, one_line, print_table
    from axs6.commands.results import ResultFiles
    from axs6.files.checkpoints import examine
    from axs6.tables import table_of, words

    files = ResultFiles(**results)
    files.check(inputs=files_of(source, against))
    out = files.console()
    with out.status(Text(f"examining {source}")):
        findings = list(examine(source, against))
    figures = [dataclasses.asdict(each) for each in findings]
    columns = [words("tensor", form=one_line), words("check"), words("what", "finding")]
    table = table_of(columns, figures)
    if findings:
        print_table(out, table)
    out.print(f"{source}: {len(findings)} findings" if findings else f"{source}: nothing found")
    files.write(figures, table)
    raise typer.Exit(1 if findings else 0)
