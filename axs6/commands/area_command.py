"""`axs6 area`."""

from pathlib import Path
from typing import Annotated, Any

import typer

from axs6.commands.completion import units
from axs6.commands.options import REPORT, RUNS, SYNTHESIS, UNIT_OPTIONS, Group, with_options

TIMED: Group = {
    "netlist": Annotated[
        Path | None,
        typer.Option(
            help="Write the mapped Verilog to this file, with its constraints (SDC) and models of "
            "its cells next to it."
        ),
    ],
    "saif": Annotated[
        Path | None,
        typer.Option(
            help="Write the switching of the mapped netlist's nets to this file; needs --energy."
        ),
    ],
    "opensta": (
        Annotated[
            bool,
            typer.Option(
                "--opensta",
                help="Also time the netlist with OpenSTA and ABC and, with --energy, report "
                "OpenSTA's power; needs `sta`.",
            ),
        ],
        False,
    ),
}
"""The options of `axs6.commands.area_timing.TimedOutput`."""

EXTRA = "synth"


@with_options(synthesis=SYNTHESIS, parameters=UNIT_OPTIONS, timed=TIMED, runs=RUNS, report=REPORT)
def run(
    units: Annotated[
        list[str], typer.Argument(help="Units; `axs6 list` shows them.", autocompletion=units)
    ],
    *,
    synthesis: dict[str, Any],
    parameters: dict[str, Any],
    energy: Annotated[
        bool, typer.Option("--energy", help="Also simulate the gates and report their energy.")
    ] = False,
    stimulus: Annotated[
        str | None, typer.Option(help="Data for --energy: digits (default) or random.")
    ] = None,
    timed: dict[str, Any],
    sweep: Annotated[
        str | None,
        typer.Option(
            help="Measure every combination, such as 'stages=0..4 block=8,16,32 target=ice40,ecp5'."
        ),
    ] = None,
    runs: dict[str, Any],
    report: dict[str, Any],
) -> None:
    """Synthesise units with Yosys and report timing and area, also by submodule.

    Results are cached: nothing is measured twice, and an interrupted sweep resumes where it
    stopped. Exit status 1 if points of a sweep are missing or the clock of --clock is not met, 2
    if nothing could be measured.

    Example: axs6 area block_dot --block 32 --target ecp5

    Example: axs6 area block_dot --target sky130 --netlist block_dot.v

    Example: axs6 area block_dot --target sky130 --energy --netlist dot.v --saif dot.saif

    Example: axs6 area block_dot --stages 3 --target sky130 --clock 3ns

    Example: axs6 area dot --sweep "stages=0..4 block=8,16,32" --jobs 2 --html dot.html
    """
    from axs6.commands.area_sweep import measure
    from axs6.commands.area_timing import TimedOutput
    from axs6.commands.report import ReportFiles
    from axs6.studies.stimuli import DIGITS, find_stimulus
    from axs6.synth.flow import Synthesis

    target = synthesis["target"]
    if "," in target:
        raise ValueError(
            f'target must be one target, not {target!r}; for several: --sweep "target={target}"'
        )
    if stimulus is not None and not energy:
        raise ValueError("--stimulus needs --energy")
    if "saif" in timed and not energy:
        raise ValueError("--saif needs --energy")
    complete = measure(
        units,
        sweep,
        parameters,
        Synthesis(**synthesis),
        stimulus=find_stimulus(stimulus or DIGITS.name) if energy else None,
        timed=TimedOutput(**timed),
        runs=runs,
        report=ReportFiles(**report),
    )
    if not complete:
        raise typer.Exit(1)
