"""The power of a mapped design by OpenSTA: on counted activity, and on its own default."""

import re
from dataclasses import asdict, dataclass
from itertools import pairwise
from typing import Any, Final

from axs6.sim.process import temporary_folder
from axs6.synth.errors import SynthesisError
from axs6.synth.netlist import NO_WIRES, MappedDesign, compact_library
from axs6.synth.opensta import check_opensta, run_opensta

_TOTAL = re.compile(r"^Total +([-+.e\d]+) +([-+.e\d]+) +([-+.e\d]+) +([-+.e\d]+)", re.M)
_CELL = re.compile(r'\bcell\s*\(\s*"?\w+"?\s*\)\s*\{')
_REGISTER = re.compile(r"\b(ff|latch|statetable)\s*\(")
_PIN_OR_FUNCTION = re.compile(r'\bpin\s*\(\s*"?(\w+)"?\s*\)|\bfunction\s*:\s*"[^"]*"')

_ANNOTATE: Final = r"""
set period [get_property [get_clocks clock] period]
foreach port [all_inputs] { set input([get_full_name $port]) $port }
foreach line [split [read [open activity.saif]] "\n"] {
  if {[regexp {^\(DURATION (\d+)} $line - duration]} {
    set cycles [expr {$duration / ($period * TIME_UNIT)}]
  } elseif {[regexp {^\(INSTANCE (\w+)} $line - instance]} {
  } elseif {[regexp {^\((\S+) .*\(T1 (\d+)\).*\(TC (\d+)\)} $line - name ones toggles]} {
    set name [string map {\\ {}} $name]
    set numbers [list [expr {$toggles / $cycles}] [expr {$ones / double($duration)}]]
    if {$instance ne "TOP"} {
      sta::set_power_pin_activity [get_pins $instance/$name] {*}$numbers
      foreach state [get_pins -quiet $instance/axs6_$name] {
        sta::set_power_pin_activity $state {*}$numbers
      }
    } elseif {[info exists input($name)]} {
      sta::set_power_input_port_activity $input($name) {*}$numbers
    }
  }
}
"""
"""Reads `activity.saif` where OpenSTA has no `read_saif`: activities are in toggles a cycle."""


@dataclass(frozen=True)
class Power:
    """The energy of an item by OpenSTA, in femtojoules: its power times the clock's period."""

    internal: float
    switching: float
    leakage: float
    total: float


@dataclass(frozen=True)
class PowerTools:
    """The energy of an item of one mapped design by two tools, in femtojoules.

    Args:
        axs6: of the nets that cells drive, by `axs6.synth.energy`; OpenSTA's `switching` is of the
            same nets.
        opensta: on the activity that was counted.
        opensta_default: on OpenSTA's own assumption: inputs that toggle in one cycle of ten.
        period_ps: of the clock.
    """

    axs6: float
    opensta: Power
    opensta_default: Power
    period_ps: float

    def to_dict(self) -> dict[str, Any]:
        """Return plain dictionaries for JSON, keys in a fixed order."""
        return asdict(self)


def power_tools(
    design: MappedDesign, activity: str, energy: float, timeout: float = 600
) -> PowerTools:
    """Ask OpenSTA for the power of a mapped design, without wires and loads at its outputs.

    Args:
        design: what takes an item in each cycle.
        activity: SAIF text as `axs6.synth.switching.switching_file` gives it.
        energy: of an item by `axs6.synth.energy`, of the nets that cells drive.
        timeout: limit in seconds.

    Raises:
        SynthesisError: OpenSTA is missing, fails, or exceeds the limit.
    """
    check_opensta()
    text = design.liberty.read_text(errors="replace") if design.liberty else compact_library()
    annotate = _ANNOTATE.replace("TOP", design.top)
    annotate = annotate.replace("TIME_UNIT", f"{design.library.time_unit:.1f}")
    files = {
        "library.lib": text,
        "states.lib": with_states(text),
        "netlist.v": design.verilog,
        "netlist.sdc": design.constraints,
        "activity.saif": activity,
        "annotate.tcl": annotate,
        "default.tcl": _script("read_liberty library.lib", "", design.top),
        "counted.tcl": _script(
            "set reads [llength [info commands read_saif]]\n"
            "if {$reads} { read_liberty library.lib } else { read_liberty states.lib }",
            f"if {{$reads}} {{ read_saif -scope {design.top} activity.saif }} else "
            "{ source annotate.tcl }",
            design.top,
        ),
    }
    with temporary_folder("axs6-opensta-") as folder:
        for file, content in files.items():
            (folder / file).write_text(content, encoding="utf-8")
        default, counted = (
            _power(
                run_opensta(["-no_init", "-no_splash", "-exit", script], folder, timeout), design
            )
            for script in ("default.tcl", "counted.tcl")
        )
    return PowerTools(energy, counted, default, design.period_ps)


def with_states(liberty: str) -> str:
    """Return a library in which the output of a gate is a state of its cell.

    OpenSTA before 2.6 computes the activity of a gate's output from those of its inputs, whatever
    it was told; that of a state stays.
    """
    starts = [match.start() for match in _CELL.finditer(liberty)]
    cells = [liberty[a:b] for a, b in pairwise([*starts, len(liberty)])]
    return liberty[: starts[0]] + "".join(map(_as_states, cells))


def _as_states(cell: str) -> str:
    if _REGISTER.search(cell):
        return cell
    outputs: list[str] = []
    pin = ""

    def state(match: re.Match[str]) -> str:
        nonlocal pin
        if match[1]:
            pin = match[1]
            return match[0]
        outputs.append(pin)
        return f'function : "axs6_{pin}"'

    text = _PIN_OR_FUNCTION.sub(state, cell)
    head, brace, body = text.partition("{")
    states = (
        f'ff (axs6_{each}, axs6_{each}_n) {{ next_state : "axs6_{each}"; '
        f'clocked_on : "axs6_{each}"; }}\n'
        for each in outputs
    )
    return "".join([head, brace, "\n", *states, body])


def _script(library: str, activity: str, top: str) -> str:
    return "\n".join(
        [
            library,
            "read_verilog netlist.v",
            f"link_design {top}",
            "read_sdc netlist.sdc",
            NO_WIRES,
            "set_load -pin_load 0 [all_outputs]",
            activity,
            "report_power -digits 9",
            "exit",
            "",
        ]
    )


def _power(said: str, design: MappedDesign) -> Power:
    """What OpenSTA printed in watts, as femtojoules in a cycle."""
    found = _TOTAL.search(said)
    if found is None:
        raise SynthesisError("OpenSTA failed: it gave no power of the design")
    return Power(*(1e3 * design.period_ps * float(watts) for watts in found.groups()))
