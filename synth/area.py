"""Area reports: what a Verilog design takes in gates, in FPGA cells or in a cell library."""

import json
import tempfile
from collections.abc import Mapping, Sequence
from importlib import metadata
from pathlib import Path
from typing import Any

from axs6.synth import gates
from axs6.synth.errors import SynthesisError
from axs6.synth.hierarchy import Module, all_cells, groups
from axs6.synth.process import run_jobs
from axs6.synth.report import AreaReport, Part, Resources
from axs6.synth.targets import (
    ABC_SCRIPT,
    GATES,
    GENLIB,
    LIBRARY,
    MAP_SCRIPT,
    TARGETS,
    Costs,
    commands,
    figures,
)


def area(
    verilog: str,
    top: str,
    *,
    target: str = "generic",
    liberty: Path | None = None,
    optimise: str = "area",
    adder_cells: bool = False,
    fmax: bool = False,
    timeout: float = 600,
) -> AreaReport:
    """Synthesise a design with Yosys, without timing constraints, and report what it takes.

    Gates are mapped for small area; the FPGA targets are those of Yosys's own flows, which prefer
    fast circuits to small ones.

    The total is that of the flattened design. The breakdown by submodule is from a second run that
    keeps the hierarchy; its parts do not add up exactly to the total, because flattening optimises
    over the borders of modules.

    Args:
        verilog: text of the design (Verilog-2005).
        top: name of its top module.
        target: `generic` (gates of `axs6.synth.gates`), or `ice40`, `ecp5` or `xc7` (memories
            are inferred and, on the last two, DSP blocks; no I/O buffers).
        liberty: Liberty file of standard cells to map to instead.
        timeout: limit in seconds for all of it.

    Raises:
        SynthesisError: in one line, an unknown target or top module, a file that is no Liberty
            library or lacks a gate or register that the design needs, Verilog that Yosys rejects,
            or a run over the time limit.
    """
    source = check(top, target, liberty, timeout)
    kind = "liberty" if liberty else target
    with tempfile.TemporaryDirectory(prefix="axs6-area-") as folder:
        jobs = [Path(folder, "flat"), Path(folder, "nested")]
        for job in jobs:
            write_job(job, verilog, top, kind, liberty, flatten=job.name == "flat")
        flat, nested = run_jobs(jobs, timeout=timeout, source=source)
    total = _Measured(kind, source, flat)
    parted = _Measured(kind, source, nested or flat)
    return AreaReport(
        top=top,
        target=kind,
        library=str(liberty) if liberty else None,
        total=total.resources(top),
        unflattened=parted.resources(top),
        parts=parted.parts(top),
        tools={"pyosys": metadata.version("pyosys"), "yosys": flat["yosys"]},
    )


class _Measured:
    """The result of one run, which gives the resources of its modules."""

    def __init__(self, target: str, source: str, result: Mapping[str, Any]) -> None:
        self._target = target
        self._costs = Costs(source, result["areas"], frozenset(result["registers"]))
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


def check(top: str, target: str, liberty: Path | None, timeout: float) -> str:
    """Check the arguments and return how messages name the target."""
    if not timeout > 0:
        raise SynthesisError(f"timeout must be more than 0 seconds, not {timeout:g}")
    if not top or any(c.isspace() or c == ";" for c in top):
        raise SynthesisError(f"the top module must be a Verilog name, not {top!r}")
    if liberty is None:
        if target not in TARGETS:
            raise SynthesisError(f"target must be one of {', '.join(TARGETS)}, not {target!r}")
        return f"target {target}"
    if target != "generic":
        raise SynthesisError(f"a library and target {target!r} cannot go together: give one")
    try:
        with liberty.open("rb") as file:
            empty = not file.read(1)
    except OSError as error:
        raise SynthesisError(f"cannot read the library {liberty}: {error.strerror}") from None
    if empty:
        raise SynthesisError(f"the library {liberty} must be a Liberty file and is empty")
    return f"library {liberty}"


def write_job(
    job: Path,
    verilog: str,
    top: str,
    target: str,
    liberty: Path | None,
    *,
    flatten: bool,
    expand: Sequence[str] = (),
) -> None:
    """Write the files that a worker and the commands of its target read."""
    job.mkdir()
    registers, rest = commands(target, top, flatten=flatten)
    content = {
        "top": top,
        "flatten": flatten,
        "registers": registers,
        "rest": rest,
        "liberty": LIBRARY if liberty else None,
        "expand": list(expand),
    }
    (job / "job.json").write_text(json.dumps(content))
    (job / "design.v").write_text(verilog, encoding="utf-8")
    (job / MAP_SCRIPT).write_text(ABC_SCRIPT)
    (job / GENLIB).write_text(gates.genlib())
    (job / GATES).write_text(gates.verilog())
    if liberty:
        (job / LIBRARY).symlink_to(liberty.resolve())
