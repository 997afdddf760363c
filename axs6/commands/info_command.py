"""`axs6 info`."""

from dataclasses import asdict
from pathlib import Path
from typing import Annotated

import typer

from axs6.commands.options import Json


def run(
    source: Annotated[Path, typer.Argument(help="A container that `axs6 encode` wrote.")],
    json: Json = None,
) -> None:
    """Check every block of a container, and show how its tensors are encoded.

    Example: axs6 info packed.safetensors
    """
    from rich.table import Table

    from axs6.commands.output import (
        check_writable,
        console,
        json_path,
        print_table,
        shape_text,
        write_json,
    )
    from axs6.files import describe_file

    check_writable(json_path(json), inputs=[source])
    found = describe_file(source)
    table = Table("tensor", "dtype", "shape", "encoded", "blocks", box=None, pad_edge=False)
    table.add_column("bytes", justify="right")
    for each in found:
        how = each.encoded
        table.add_row(
            each.name,
            each.dtype,
            shape_text(each.shape),
            str(how) if how else "",
            ", ".join(f"{count:,} {mode}" for mode, count in each.modes.items()),
            f"{each.bytes:,}",
        )
    out = console(json)
    print_table(out, table)
    out.print(f"{sum(sum(each.modes.values()) for each in found):,} blocks, none of them wrong")
    write_json(json, [asdict(each) for each in found])
