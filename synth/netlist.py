"""A mapped design for other tools: Verilog of library cells, and constraints for its timing."""

import math
import re
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from axs6.hw.core.clock import clock_text
from axs6.sim.process import temporary_folder
from axs6.synth import sky130
from axs6.synth.cells import CellLibrary
from axs6.synth.closing import goal_for_clock
from axs6.synth.errors import SynthesisError
from axs6.synth.flow import Flow, Synthesis, check_run, flow
from axs6.synth.graph import MappedNetlist
from axs6.synth.names import check_name
from axs6.synth.process import Limit, run_jobs
from axs6.synth.structural import NetNames, structural
from axs6.synth.timing import library_timing

NO_WIRES = "set_load 0 [get_nets *]"
"""The constraint that no net has a capacitance beside its pins, whatever the library says."""

_THRESHOLDS = {
    f"{what}_threshold_pct_{edge}": percent
    for what, percent in (("input", 50), ("output", 50), ("slew_lower", 20), ("slew_upper", 80))
    for edge in ("rise", "fall")
}
"""Percent of the voltage between which the delays and slews of sky130 are published."""

_CONDITIONS = (
    "  operating_conditions (typical) { process : 1; temperature : 25; voltage : 1.8; }",
    "  default_operating_conditions : typical;",
)
"""What powers need: OpenSTA takes the voltage from here."""

_MARGIN = 1.05
"""The period in constraints without a clock of the user's, over the longest path. Tools differ by
up to 3 % (docs/cost.md): with the path as the period, some would miss it by picoseconds."""

_STIME = re.compile(r"\bDelay = +([\d.]+) ps")


@dataclass(frozen=True)
class MappedDesign:
    """A mapped design with what a timing tool needs to read it.

    Args:
        top: name of the module.
        module: of a Yosys JSON netlist.
        names: of its nets and instances in the Verilog.
        verilog: structural Verilog, one module of library cells.
        models: Verilog of these cells by their functions, without delays.
        constraints: SDC: clock, driving cells, loads, no wires; in the library's units.
        liberty: the user's library, None for the compact one of sky130.
        library: its cells.
        period_ps: of the clock in the constraints, which is virtual where there are no registers:
            the user's clock, else the longest path and 5 %.
        delay_ps: the longest path by `axs6.synth.timing`.
        stime_ps: the longest path by ABC's `stime`, None where ABC did not see all of the design:
            it sees neither registers nor adder cells.
    """

    top: str
    module: Mapping[str, Any]
    names: NetNames
    verilog: str
    models: str
    constraints: str
    liberty: Path | None
    library: CellLibrary
    period_ps: float
    delay_ps: float
    stime_ps: float | None

    def files(self, path: Path) -> dict[str, str]:
        """Return the files of `--netlist`: contents by file name, the Verilog first."""
        names = companions(path, self.liberty)
        texts = [self.verilog, self.constraints, self.models, compact_library()]
        return {each.name: text for each, text in zip(names, texts, strict=False)}


def companions(path: Path, liberty: Path | None) -> list[Path]:
    """Return the Verilog file, and beside it the SDC and models of the cells.

    For the built-in library its Liberty file too.

    Raises:
        ValueError: two of them would be one file.
    """
    suffixes = [".sdc", ".cells.v"] if liberty else [".sdc", ".cells.v", ".lib"]
    if path.suffix in suffixes:
        raise ValueError(f"the netlist must not be a {path.suffix} file, which goes beside it")
    return [path, *map(path.with_suffix, suffixes)]


def compact_library() -> str:
    """Return the Liberty text of the compact sky130 library with what timing tools ask for."""
    head, *rest = sky130.liberty().split("\n")
    thresholds = (f"  {name} : {value};" for name, value in _THRESHOLDS.items())
    return "\n".join([head, *thresholds, *_CONDITIONS, *rest])


def timed_flow(options: Synthesis) -> Flow:
    """Return the flow of a design whose netlist other tools are to time.

    Raises:
        SynthesisError: as `axs6.synth.flow.flow`, or there is no library with delays.
    """
    plan = flow(options)
    if plan.cells is None:
        raise SynthesisError(
            f"a netlist for timing needs a cell library, but {plan.source} has none: "
            "--target sky130 or --liberty FILE"
        )
    if plan.around is None:
        raise SynthesisError(f"{plan.source} must have delays for a netlist to be timed")
    return plan


def mapped_design(
    verilog: str,
    top: str,
    *,
    timeout: float = 600,
    **options: Any,
) -> MappedDesign:
    """Synthesise a design as `axs6.synth.area` does and return its netlist and constraints.

    Args:
        verilog: text of the design (Verilog-2005).
        top: name of its top module.
        timeout: limit in seconds.
        options: of `axs6.synth.flow.Synthesis`, as for `axs6.synth.area.area`.

    Raises:
        SynthesisError: as `axs6.synth.area.area`, there is no library with delays, or a port has
            a name with other characters than letters, digits and _.
    """
    check_run(top, timeout)
    chosen = Synthesis(**options)
    timed_flow(chosen)
    limit = Limit(timeout)
    with temporary_folder("axs6-netlist-") as folder:
        chosen = goal_for_clock(chosen, verilog, top, folder, limit)
        plan = timed_flow(chosen)
        job = folder / "flat"
        plan.write(job, verilog, top, flatten=True, expand=[])
        (result,) = run_jobs([job], limit=limit, source=plan.source)
        log = (job / "log.txt").read_text(errors="replace")
    module = result["modules"][top]
    for port in module["ports"]:
        check_name(port, f"a port of {top}")
    library, around = plan.cells, plan.around
    assert library is not None
    assert around is not None
    delay = library_timing(module, library, around, "").delay_ps or 0.0
    period = chosen.clock
    if period is None:
        unit = library.time_unit / 1000
        period = unit * max(1, math.ceil(_MARGIN * delay / unit))
    netlist = MappedNetlist(module, library.direction)
    names = NetNames(module, netlist)
    clocks = _clocks(netlist, library)
    said = _STIME.findall(log)
    whole = bool(said) and not chosen.adder_cells and not clocks
    return MappedDesign(
        top,
        module,
        names,
        structural(module, top, names),
        f"// Cells of the library {library.name} by their functions, without delays.\n"
        + result["models"],
        _constraints(module, top, clocks, plan, (period, delay)),
        chosen.liberty,
        library,
        period,
        delay,
        float(said[-1]) if whole else None,
    )


def _clocks(netlist: MappedNetlist, library: CellLibrary) -> list[str]:
    """Return the input ports that are clocks of registers."""
    nets = {
        instance.inputs.get(arc.source)
        for instance in netlist.instances
        if library[instance.cell].is_register
        for arc in library[instance.cell].arcs
    }
    return [name for net, name in netlist.inputs.items() if net in nets]


def _constraints(
    module: Mapping[str, Any],
    top: str,
    clocks: Sequence[str],
    plan: Flow,
    times: tuple[float, float],
) -> str:
    """Return SDC with the surroundings of a module that `axs6.synth.timing` assumes.

    Args:
        module: of a Yosys JSON netlist.
        top: its name.
        clocks: input ports that are clocks; without any the clock is virtual.
        plan: has the library and what is around the module.
        times: the clock's period and the longest path, in picoseconds.
    """
    library, around = plan.cells, plan.around
    assert library is not None
    assert around is not None
    period, delay = times
    why = "as asked for" if plan.clock is not None else "5 % more than the longest path"
    inputs = [name for name in _names(module, "input") if name not in clocks]
    outputs = _names(module, "output")
    at = f" {_ports(clocks)}" if clocks else ""
    lines = [
        f"# Constraints of {top}, in units of the library {library.name}:",
        f"# {library.time_unit:g} ps and {library.load_unit:g} fF.",
        f"# The clock is {clock_text(period)}, {why}. The longest path by axs6 takes",
        f"# {delay:.10g} ps: a slack of {period - delay:+.10g} ps.",
        f"create_clock -name clock -period {period / library.time_unit:.10g}{at}",
        f"set_input_delay 0 -clock clock {_ports(inputs)}",
        f"set_output_delay 0 -clock clock {_ports(outputs)}",
        "# A cell drives each input. Outputs have a load: one for all that are the same net.",
        f"set_driving_cell -lib_cell {around.driver.name} {_ports(inputs)}",
        f"set_load -pin_load {around.load / library.load_unit:.10g} {_ports(_loaded(module))}",
        "# Nets have no wires. Without this, they have what the library assumes by default.",
        NO_WIRES,
    ]
    return "\n".join([*lines, ""])


def _ports(names: Sequence[str]) -> str:
    return f"[get_ports {{{' '.join(names)}}}]"


def _names(module: Mapping[str, Any], direction: str) -> list[str]:
    """Return the ports of a direction, buses as `NAME[*]`."""
    return [
        name if len(port["bits"]) == 1 else f"{name}[*]"
        for name, port in module["ports"].items()
        if port["direction"] == direction
    ]


def _loaded(module: Mapping[str, Any]) -> list[str]:
    """Return the outputs with a load: the first bit that is a net, a whole bus as `NAME[*]`."""
    seen: set[int | str] = set()
    loaded = []
    for name, port in module["ports"].items():
        if port["direction"] != "output":
            continue
        bits = [k for k, bit in enumerate(port["bits"]) if bit not in seen]
        seen.update(port["bits"])
        if len(port["bits"]) == 1:
            loaded += [name] * len(bits)
        elif len(set(port["bits"])) == len(bits) == len(port["bits"]):
            loaded.append(f"{name}[*]")
        else:
            first = {port["bits"][k]: k for k in reversed(bits)}
            loaded += [f"{name}[{k}]" for k in sorted(first.values())]
    return loaded
