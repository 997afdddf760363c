"""The goal of mapping that meets a clock with the smallest design."""

import json
from collections.abc import Mapping
from dataclasses import replace
from pathlib import Path
from typing import Any

from axs6.synth.flow import Flow, Synthesis, flow
from axs6.synth.process import Limit, run_jobs
from axs6.synth.report import Timing
from axs6.synth.scripts import FOR_CLOCK
from axs6.synth.targets import FPGAS, NETLIST
from axs6.synth.timing import level_timing, library_timing


def goal_for_clock(
    options: Synthesis, verilog: str, top: str, folder: Path, limit: Limit
) -> Synthesis:
    """Return the options with a goal: the first of `FOR_CLOCK` whose design meets the clock.

    If none meets it, the last, whose design does not depend on the clock. Without a clock, with a
    goal of the user's own or on an FPGA the options are returned as they are.

    Args:
        options: how the design is synthesised.
        verilog: text of the design.
        top: name of its top module.
        folder: where the files of the runs go and stay, each in its `flat_job`.
        limit: when they must have ended.

    Raises:
        SynthesisError: as `axs6.synth.area.area`.
    """
    if options.clock is None or options.optimise is not None or options.target in FPGAS:
        return options
    for goal in FOR_CLOCK[:-1]:
        plan = flow(replace(options, optimise=goal))
        job = flat_job(folder, plan)
        plan.write(job, verilog, top, flatten=True)
        run_jobs([job], limit=limit, source=plan.source)
        module = json.loads((job / NETLIST).read_text())["modules"][top]
        found = timing(plan, module)
        if found and found.slack_ps is not None and found.slack_ps >= 0:
            return replace(options, optimise=goal)
    return replace(options, optimise=FOR_CLOCK[-1])


def flat_job(folder: Path, plan: Flow) -> Path:
    """The folder of the run that flattens a design, among the runs in `folder`."""
    return folder / f"flat-{plan.goal}"


def timing(plan: Flow, module: Mapping[str, Any]) -> Timing | None:
    """Return the timing of a flat netlist, None on FPGAs: theirs comes from place and route."""
    if plan.kind in FPGAS:
        return None
    if plan.cells is None or plan.around is None:
        return level_timing(module, plan.cells)
    model = "linear model of the compact sky130 library"
    if plan.kind == "liberty":
        model = f"delay tables of {plan.cells.name}"
    return library_timing(module, plan.cells, plan.around, model).held_to(plan.clock)
