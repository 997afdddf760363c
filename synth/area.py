"""Area reports of Verilog designs: in gates, in FPGA cells or in a cell library."""

import json
import re
from collections.abc import Mapping
from importlib import metadata
from typing import Any

from axs6.sim.process import temporary_folder
from axs6.synth.closing import flat_job, goal_for_clock, timing
from axs6.synth.errors import SynthesisError
from axs6.synth.flow import Flow, Synthesis, check_run, flow
from axs6.synth.hierarchy import Module, all_cells, groups
from axs6.synth.place import check_place, place, placer
from axs6.synth.process import Limit, run_jobs
from axs6.synth.report import AreaReport, Part, Resources
from axs6.synth.targets import NETLIST, Costs, figures


def area(
    verilog: str,
    top: str,
    *,
    timeout: float = 600,
    **options: Any,
) -> AreaReport:
    """Synthesise a design with Yosys and report its area and timing.

    The FPGA targets are those of Yosys's own flows, which prefer fast circuits to small ones.

    The total is that of the flattened design. The breakdown by submodule is from a second run that
    keeps the hierarchy; its parts do not add up exactly to the total, because flattening optimises
    over the borders of modules.

    Args:
        verilog: text of the design (Verilog-2005).
        top: name of its top module.
        timeout: limit in seconds for all of it.
        options: of `axs6.synth.flow.Synthesis`, such as `target` and `liberty`.

    Raises:
        SynthesisError: in one line, an unknown target or top module, a file that is no Liberty
            library or lacks a cell that the design needs, Verilog that Yosys rejects, a design
            that does not fit the FPGA, or a run over the time limit.
    """
    check_run(top, timeout)
    chosen = Synthesis(**options)
    plan = flow(chosen)
    if chosen.fmax:
        check_place(plan.kind)
    limit = Limit(timeout)
    with temporary_folder("axs6-area-") as folder:
        plan = flow(goal_for_clock(chosen, verilog, top, folder, limit))
        jobs = [flat_job(folder, plan)]
        if not jobs[0].exists():
            plan.write(jobs[0], verilog, top, flatten=True)
        if chosen.breakdown and _may_have_parts(verilog):
            jobs.append(folder / "nested")
            plan.write(jobs[1], verilog, top, flatten=False)
        flat, *nested = run_jobs(jobs, limit=limit, source=plan.source)
        module = json.loads((jobs[0] / NETLIST).read_text())["modules"][top]
        timed, placement = timing(plan, module), None
        if chosen.fmax:
            placed, placement = place(verilog, top, module["ports"], plan.kind, folder, limit)
            timed = placed.held_to(chosen.clock)
    total = _Measured(plan, flat)
    parted = _Measured(plan, nested[0] if any(nested) else flat)
    return AreaReport(
        top=top,
        target=plan.kind,
        library=str(plan.liberty) if plan.liberty else None,
        total=total.resources(top),
        unflattened=parted.resources(top),
        parts=parted.parts(top),
        tools={
            "pyosys": metadata.version("pyosys"),
            "yosys": flat["yosys"],
            **(placer(plan.kind) if chosen.fmax else {}),
        },
        optimise=plan.optimise,
        adder_cells=chosen.adder_cells,
        timing=timed,
        placement=placement,
    )


def modules_area(
    verilog: str, top: str, *, target: str = "generic", timeout: float = 600
) -> Resources:
    """Synthesise each module of a design by itself and return the total of all instances.

    Nothing is optimised across module boundaries, so the sum is above the total of `area`; equal
    modules are synthesised once, so a large design takes seconds where `area` takes minutes.

    Args:
        verilog, top, target, timeout: as for `area`.

    Raises:
        SynthesisError: as `area`, or a design without submodules.
    """
    check_run(top, timeout)
    plan = flow(Synthesis(target=target))
    with temporary_folder("axs6-area-") as folder:
        job = folder / "nested"
        plan.write(job, verilog, top, flatten=False)
        (result,) = run_jobs([job], limit=Limit(timeout), source=plan.source)
    if result is None:
        raise SynthesisError(f"the design {top!r} must have submodules and has none")
    return _Measured(plan, result).resources(top)


def _may_have_parts(verilog: str) -> bool:
    """Whether there is more than one module, as far as the text shows."""
    return "`include" in verilog or len(re.findall(r"(?<!end)module\b", verilog)) > 1


class _Measured:
    """The result of one run, which gives the resources of its modules."""

    def __init__(self, plan: Flow, result: Mapping[str, Any]) -> None:
        self._target = plan.kind
        self._costs = Costs(plan.source, result["areas"], frozenset(result["registers"]))
        self._modules = {
            name: Module(module["cells"], module["instances"])
            for name, module in result["modules"].items()
        }

    def resources(self, module: str) -> Resources:
        cells = all_cells(self._modules, module)
        return Resources(figures(self._target, cells, self._costs), dict(sorted(cells.items())))

    def parts(self, top: str) -> tuple[Part, ...]:
        return tuple(
            Part(group.path, group.module, group.instances, self.resources(group.module))
            for group in groups(self._modules, top)
        )
