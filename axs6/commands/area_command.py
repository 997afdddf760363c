"""`axs6 area`."""

from pathlib import Path
from typing import Annotated, Any

import typer

from axs6.commands.options import Jobs, Json, Scheduler, Timeout, with_unit_options

EXTRA = "synth"


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
        bool, typer.Option("--adder-cells", help="Map full adders to the library's cell.")
    ] = False,
    fmax: Annotated[
        bool, typer.Option("--fmax", help="Place and route for the clock, on ice40 and ecp5.")
    ] = False,
    *,
    parameters: dict[str, Any],
    energy: Annotated[
        bool, typer.Option("--energy", help="Simulate the gates too and report their energy.")
    ] = False,
    stimulus: Annotated[
        str | None, typer.Option(help="Data for --energy: digits (default) or random.")
    ] = None,
    netlist: Annotated[
        Path | None,
        typer.Option(help="Write the mapped Verilog here, its constraints (SDC) beside it."),
    ] = None,
    opensta: Annotated[
        bool,
        typer.Option("--opensta", help="Time the netlist by OpenSTA and ABC too: needs `sta`."),
    ] = False,
    sweep: Annotated[
        str | None,
        typer.Option(
            help="Measure every combination, such as 'stages=0..4 block=8,16,32 target=ice40,ecp5'."
        ),
    ] = None,
    timeout: Timeout = 600,
    jobs: Jobs = 1,
    scheduler: Scheduler = None,
    html: Annotated[Path | None, typer.Option(help="Write a page with pictures here.")] = None,
    markdown: Annotated[
        Path | None, typer.Option(help="Write it as Markdown here, its pictures beside it.")
    ] = None,
    json: Json = None,
) -> None:
    """Synthesise units with Yosys and report what they take, in all and by submodule, and how fast
    they are.

    Results are kept: what was measured before is not measured again, and a sweep that was
    interrupted goes on where it was. Exit status 1 if points of a sweep are missing, 2 if all are.

    Example: axs6 area block_dot --block 32 --target ecp5

    Example: axs6 area block_dot --target sky130 --netlist block_dot.v

    Example: axs6 area dot --sweep "stages=0..4 block=8,16,32" --jobs 2 --html dot.html
    """
    from axs6.commands.area_sweep import measure
    from axs6.studies.stimuli import DIGITS, find_stimulus

    if "," in target:
        raise ValueError(
            f'target must be one target, not {target!r}; for several: --sweep "target={target}"'
        )
    if stimulus is not None and not energy:
        raise ValueError("--stimulus is the data for --energy and needs it")
    complete = measure(
        units,
        sweep,
        stimulus=find_stimulus(stimulus or DIGITS.name) if energy else None,
        netlist=netlist,
        opensta=opensta,
        html=html,
        markdown=markdown,
        json=json,
        parameters=parameters,
        target=target,
        liberty=liberty,
        optimise=optimise,
        adder_cells=adder_cells,
        fmax=fmax,
        timeout=timeout,
        jobs=jobs,
        scheduler=scheduler,
    )
    if not complete:
        raise typer.Exit(1)
