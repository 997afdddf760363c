"""`axs6 area`."""

from pathlib import Path
from typing import Annotated, Any

import typer

from axs6.commands.options import Json, with_unit_options


@with_unit_options
def run(
    units: Annotated[list[str], typer.Argument(help="Units; `axs6 list` shows them.")],
    target: Annotated[str, typer.Option(help="generic, sky130, ice40, ecp5 or xc7.")] = "generic",
    liberty: Annotated[
        Path | None, typer.Option(help="Cell library to map to, in place of a target.")
    ] = None,
    optimise: Annotated[
        str, typer.Option(help="What gates are mapped for: area or speed.")
    ] = "area",
    adder_cells: Annotated[
        bool, typer.Option("--adder-cells", help="Map adders to the library's adder cells.")
    ] = False,
    fmax: Annotated[
        bool, typer.Option("--fmax", help="Place and route for the clock, on ice40 and ecp5.")
    ] = False,
    *,
    parameters: dict[str, Any],
    timeout: Annotated[float, typer.Option(help="Seconds that synthesis may take.")] = 600,
    energy: Annotated[
        bool, typer.Option("--energy", help="Simulate the gates too and report their energy.")
    ] = False,
    stimulus: Annotated[
        str | None, typer.Option(help="Data for --energy: digits (default) or random.")
    ] = None,
    json: Json = None,
) -> None:
    """Synthesise units with Yosys and report what they take, in all and by submodule, and how fast
    they are.

    Example: axs6 area block_dot --block 32 --target ecp5
    """
    from axs6.commands.output import console, write_json
    from axs6.hw.verilog import generate
    from axs6.synth import energy_tables
    from axs6.synth.area import area
    from axs6.synth.energy import energy as measured_energy
    from axs6.synth.tables import render

    if stimulus is not None and not energy:
        raise ValueError("--stimulus is the data for --energy and needs it")
    out = console(json)
    made = [generate(unit, **parameters) for unit in units]
    reports = []
    options: dict[str, Any] = {
        "target": target,
        "liberty": liberty,
        "optimise": optimise,
        "adder_cells": adder_cells,
        "timeout": timeout,
    }
    for unit, each in zip(units, made, strict=True):
        settings = each.manifest["parameters"]
        used = None
        if energy:
            used = measured_energy(unit, settings, stimulus=stimulus or "digits", **options)
        report = area(each.verilog, each.module, fmax=fmax, **options)
        reports.append({"parameters": settings, **report.to_dict()})
        out.print(render(report))
        if used:
            reports[-1]["energy"] = used.to_dict()
            out.print(energy_tables.render(unit, used))
    write_json(json, reports)
