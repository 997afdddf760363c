"""Mapped netlists for simulation: a design after synthesis, its gates as logic functions."""

import json
from hashlib import sha256
from importlib.metadata import version
from pathlib import Path
from typing import Any

from axs6.sim.cache import cached, sources
from axs6.sim.process import temporary_folder
from axs6.synth.errors import SynthesisError
from axs6.synth.flow import Synthesis, check_run, flow
from axs6.synth.process import Limit, check_pyosys, run_jobs
from axs6.synth.targets import expansion

_FILE = "netlist.json"


def mapped_netlist(
    verilog: str,
    top: str,
    *,
    timeout: float = 600,
    **options: Any,
) -> str:
    """Synthesise a design as `axs6.synth.area` does and return its gates.

    The result is cached under a key of all inputs.

    Args:
        verilog: text of the design (Verilog-2005).
        top: name of its top module.
        timeout: limit in seconds.
        options: of `axs6.synth.flow.Synthesis`, as for `axs6.synth.area.area`.

    Returns:
        Yosys JSON of one module `top` without hierarchy, each gate written as its function, for
        `axs6.sim.batch.engine.GateModel`. Beside the modules, `mapped` is the module before that,
        of mapped cells; a net has the same name in both.

    Raises:
        SynthesisError: as `axs6.synth.area.area`.
        OSError: the cache cannot be written.
    """
    check_run(top, timeout)
    plan = flow(Synthesis(**options))
    check_pyosys()
    with temporary_folder("axs6-mapped-") as name:
        job = name / "flat"
        plan.write(job, verilog, top, flatten=True, expand=expansion(plan.kind, top))

        def build(folder: Path) -> None:
            (netlist,) = run_jobs([job], limit=Limit(timeout), source=plan.source)
            _check_cells(netlist, plan.source)
            (folder / _FILE).write_text(json.dumps(netlist), encoding="utf-8")

        return (cached("netlist", _key(job), build) / _FILE).read_text(encoding="utf-8")


def _key(job: Path) -> list[str]:
    """Everything that decides the worker's result."""
    files = {path.name: path.read_bytes() for path in sorted(job.iterdir())}
    digests = [f"{name} {sha256(content).hexdigest()}" for name, content in files.items()]
    return [sources("axs6.synth"), version("pyosys"), *digests]


def _check_cells(netlist: dict[str, Any], source: str) -> None:
    """Raise SynthesisError unless every cell has been replaced by its logic."""
    cells = netlist["modules"]["top"]["cells"].values()
    if bare := sorted({cell["type"] for cell in cells if not cell["type"].startswith("$")}):
        raise SynthesisError(f"{source} has no model of the cell {bare[0]} to simulate it by")
