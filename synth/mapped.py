"""Mapped netlists to simulate: a design after synthesis, its gates as their logic."""

import json
import tempfile
from pathlib import Path

from axs6.synth.area import check, write_job
from axs6.synth.process import run_jobs
from axs6.synth.targets import expansion


def mapped_netlist(
    verilog: str,
    top: str,
    *,
    target: str = "generic",
    liberty: Path | None = None,
    timeout: float = 600,
) -> str:
    """Synthesise a design as `axs6.synth.area` does and return the gates that it takes.

    Args:
        verilog: text of the design (Verilog-2005).
        top: name of its top module.
        target: `generic`.
        liberty: Liberty file of standard cells to map to instead.
        timeout: limit in seconds.

    Returns:
        Yosys JSON of one module `top` without hierarchy, each gate written as its function, for
        `axs6.sim.batch.engine.GateModel`. Beside the modules, `mapped` is the module before that,
        of mapped cells; a net has the same name in both.

    Raises:
        SynthesisError: as `axs6.synth.area.area`, or an FPGA target.
    """
    source = check(top, target, liberty, timeout)
    kind = "liberty" if liberty else target
    commands = expansion(kind, top)
    with tempfile.TemporaryDirectory(prefix="axs6-mapped-") as folder:
        job = Path(folder, "flat")
        write_job(job, verilog, top, kind, liberty, flatten=True, expand=commands)
        (netlist,) = run_jobs([job], timeout=timeout, source=source)
    return json.dumps(netlist)
