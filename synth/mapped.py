"""Mapped netlists to simulate: a design after synthesis, its gates as their logic."""

import json
import tempfile
from pathlib import Path

from axs6.synth.errors import SynthesisError
from axs6.synth.flow import check_run, flow
from axs6.synth.process import Limit, run_jobs
from axs6.synth.targets import expansion


def mapped_netlist(
    verilog: str,
    top: str,
    *,
    target: str = "generic",
    liberty: Path | None = None,
    optimise: str = "area",
    adder_cells: bool = False,
    timeout: float = 600,
) -> str:
    """Synthesise a design as `axs6.synth.area` does and return the gates that it takes.

    Args:
        verilog: text of the design (Verilog-2005).
        top: name of its top module.
        target, liberty, optimise, adder_cells: as for `axs6.synth.area.area`.
        timeout: limit in seconds.

    Returns:
        Yosys JSON of one module `top` without hierarchy, each gate written as its function, for
        `axs6.sim.batch.engine.GateModel`. Beside the modules, `mapped` is the module before that,
        of mapped cells; a net has the same name in both.

    Raises:
        SynthesisError: as `axs6.synth.area.area`.
    """
    check_run(top, timeout)
    plan = flow(target, liberty, optimise, adder_cells)
    commands = expansion(plan.kind, top)
    with tempfile.TemporaryDirectory(prefix="axs6-mapped-") as folder:
        job = Path(folder, "flat")
        plan.write(job, verilog, top, flatten=True, expand=commands)
        (netlist,) = run_jobs([job], limit=Limit(timeout), source=plan.source)
    cells = netlist["modules"]["top"]["cells"].values()
    if bare := sorted({cell["type"] for cell in cells if not cell["type"].startswith("$")}):
        raise SynthesisError(f"{plan.source} has no model of the cell {bare[0]} to simulate it by")
    return json.dumps(netlist)
