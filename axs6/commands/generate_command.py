"""`axs6 generate`."""

from pathlib import Path
from typing import Annotated, Any

import typer

from axs6.commands.options import Unit, with_unit_options


@with_unit_options
def run(
    unit: Unit,
    output: Annotated[Path, typer.Option("-o", "--output", help="Folder for the files.")],
    *,
    name: Annotated[
        str | None, typer.Option(help="Of the module and the files; axs6_UNIT if not given.")
    ] = None,
    ports: Annotated[
        str, typer.Option(help="packed, or fields: a port for each field of a payload.")
    ] = "packed",
    parameters: dict[str, Any],
) -> None:
    """Write a unit as Verilog-2005, with a JSON manifest of its ports, widths and latency.

    Beside them go an instance to copy (.vh) and a SystemVerilog package of widths and offsets.

    Example: axs6 generate dot --block 32 --stages 4 -o rtl
    """
    from axs6.commands.output import console, write_generated
    from axs6.hw.verilog import generate

    made = generate(unit, name=name, ports=ports, **parameters)
    paths = write_generated(output, made)
    latency, interval = made.manifest["latency"], made.manifest["interval"]
    out = console()
    for path in paths:
        out.print(f"wrote {path}")
    out.print(f"latency {latency}, interval {interval} (cycles)")
