"""Files by which tools for layout and FPGAs take a unit that has a clock to meet."""

import json

from axs6.hw.verilog import Generated


def librelane(made: Generated, period: float) -> str:
    """Configuration of LibreLane's Classic flow; the process is chosen by its `--pdk`.

    Args:
        made: the unit. period: of its clock, in picoseconds.

    Source: LibreLane's reference manual, design configuration files (version 3).
    """
    sdc = f"dir::{made.module}.sdc"
    configuration = {
        "meta": {"version": 3, "flow": "Classic"},
        "DESIGN_NAME": made.module,
        "VERILOG_FILES": [f"dir::{made.module}.v"],
        "CLOCK_PORT": made.manifest["clock"],
        "CLOCK_PERIOD": float(f"{period / 1e3:.10g}"),
        "PNR_SDC_FILE": sdc,
        "SIGNOFF_SDC_FILE": sdc,
    }
    return json.dumps(configuration, indent=2) + "\n"


def openroad(made: Generated) -> str:
    """Configuration of OpenROAD-flow-scripts, on sky130hd unless `PLATFORM` is another.

    Source: OpenROAD-flow-scripts, flow variables.
    """
    return f"""# In `flow` of OpenROAD-flow-scripts: make DESIGN_CONFIG=.../{made.module}.mk
HERE := $(dir $(abspath $(lastword $(MAKEFILE_LIST))))
export PLATFORM ?= sky130hd
export DESIGN_NAME = {made.module}
export VERILOG_FILES = $(HERE){made.module}.v
export SDC_FILE = $(HERE){made.module}.sdc
export CORE_UTILIZATION ?= 40
"""


def vivado(made: Generated, period: float) -> str:
    """A script that synthesises, places and routes a unit alone in Vivado, and reports.

    It is an example: the project's tests do not run Vivado.

    Args:
        made: the unit. period: of its clock, in picoseconds.

    Source: Vivado Design Suite Tcl Command Reference Guide (UG835).
    """
    clock = made.manifest["clock"]
    return f"""# vivado -mode batch -source {made.module}.tcl -tclargs PART
# An example, which no test of AXS-6 runs.
set part xc7a100tcsg324-1
if {{$argc > 0}} {{ set part [lindex $argv 0] }}
read_verilog [file join [file dirname [file normalize [info script]]] {made.module}.v]
synth_design -top {made.module} -part $part -mode out_of_context
create_clock -name {clock} -period {period / 1e3:.10g} [get_ports {clock}]
opt_design
place_design
route_design
report_utilization
report_timing_summary
"""
