"""`axs6 generate`."""

import logging
from collections.abc import Mapping
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any

import typer

from axs6.commands.options import UNIT_OPTIONS, Clock, Unit, with_options

if TYPE_CHECKING:
    from axs6.hw.units.unit import Unit as HardwareUnit

EXTRA = "hw"

REASONS = {
    "structure": "gates, the smaller where no products of lanes become DSP blocks",
    "behaviour": "words, whose products become DSP blocks and whose sums become carry chains",
}
"""Why a view is taken."""


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
            help="packed: one port for a payload; fields: one port for each of its fields; keep: "
            "tkeep beside tdata on AXI4-Stream."
        ),
    ] = "packed",
    reset: Annotated[
        str,
        typer.Option(
            help="sync-high, sync-low, async-high or async-low: at the next clock edge or at once, "
            "while 1 or while 0.",
            metavar="KIND",
        ),
    ] = "sync-high",
    clock: Clock = None,
    purpose: Annotated[
        str | None,
        typer.Option(
            "--for",
            help="fpga or asic: take the view that is smaller there, unless --view is given.",
            metavar="KIND",
        ),
    ] = None,
    parameters: dict[str, Any],
) -> None:
    """Write a unit as Verilog-2005, with a JSON manifest of its ports, widths and latency.

    It also writes an instance to copy (.vh), a SystemVerilog package of widths, offsets and types,
    interfaces, assertions of the handshakes, a VHDL component and a core file of FuseSoC; with
    --clock also constraints (.sdc) and files by which LibreLane, OpenROAD-flow-scripts and Vivado
    take the unit.
    Files of another design under the same name are kept, and the command ends with an error.

    Example: axs6 generate dot --block 32 --stages 4 --clock 2.5ns -o rtl

    Example: axs6 generate block_dot --format int8 --for fpga -o rtl
    """
    from axs6.commands.output import console, write_generated
    from axs6.hw.registry import BUS_UNITS, find
    from axs6.hw.verilog import generate

    said = None
    if purpose is not None:
        parameters, said = _for(find(unit), purpose, parameters)
    made = generate(unit, name=name, ports=ports, reset=reset, **parameters)
    paths = write_generated(output, made, clock)
    latency, interval = made.manifest["latency"], made.manifest["interval"]
    out = console()
    for path in paths:
        out.print(f"wrote {path}")
    out.print(f"latency {latency}, interval {interval} (cycles)")
    if said:
        out.print(said)
    turns = parameters.get("interleave", 1)
    if unit in BUS_UNITS and turns > 1:
        logging.getLogger("axs6").warning(
            "beats of %s take turns among %d vectors: packets that are whole vectors, one after "
            "the other, need --interleave 1",
            *(made.module, turns),
        )


def _for(
    unit: "HardwareUnit", purpose: str, parameters: Mapping[str, Any]
) -> tuple[dict[str, Any], str]:
    """The parameters with the view that suits, and a line that says which it is and why.

    Raises:
        ValueError: `purpose` is neither `fpga` nor `asic`, or as `Unit.parameters`.
    """
    from axs6.hw.core.parameters import one_of

    view = unit.suited_view(dsps=one_of("--for", purpose, ("asic", "fpga")) == "fpga")
    chosen = unit.in_view(view, parameters)
    if not unit.has_views(parameters):
        return dict(parameters), f"view: {unit.name} has one description, for {purpose} too"
    if "view" in parameters:
        return chosen, f"view: {chosen['view']}, as --view says; for {purpose} it would be {view}"
    return chosen, f"view: {view}, for {purpose}: {REASONS[view]}"
