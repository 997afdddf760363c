"""`axs6 generate`."""

import logging
from pathlib import Path
from typing import Annotated, Any

import typer

from axs6.commands.options import UNIT_OPTIONS, Unit, with_options

EXTRA = "hw"


@with_options(parameters=UNIT_OPTIONS)
def run(
    unit: Unit,
    output: Annotated[Path, typer.Option("-o", "--output", help="Folder for the files.")],
    *,
    name: Annotated[
        str | None,
        typer.Option(
            help="Name of the module and the files; by default axs6_UNIT and, if chosen, the "
            "format and the accumulator."
        ),
    ] = None,
    ports: Annotated[
        str,
        typer.Option(
            help="packed: one port for a payload; fields: one port for each of its fields."
        ),
    ] = "packed",
    parameters: dict[str, Any],
) -> None:
    """Write a unit as Verilog-2005, with a JSON manifest of its ports, widths and latency.

    It also writes an instance to copy (.vh) and a SystemVerilog package of widths and offsets.
    Files of another design under the same name are kept, and the command ends with an error.

    Example: axs6 generate dot --block 32 --stages 4 -o rtl
    """
    from axs6.commands.output import console, write_generated
    from axs6.hw.registry import BUS_UNITS
    from axs6.hw.verilog import generate

    made = generate(unit, name=name, ports=ports, **parameters)
    paths = write_generated(output, made)
    latency, interval = made.manifest["latency"], made.manifest["interval"]
    out = console()
    for path in paths:
        out.print(f"wrote {path}")
    out.print(f"latency {latency}, interval {interval} (cycles)")
    turns = parameters.get("interleave", 1)
    if unit in BUS_UNITS and turns > 1:
        logging.getLogger("axs6").warning(
            "beats of %s take turns among %d vectors: packets that are whole vectors, one after "
            "the other, need --interleave 1",
            *(made.module, turns),
        )
