"""Configurations of open layout flows beside a unit's Verilog: LibreLane and OpenROAD-flow-scripts.

They say what the tool knows: the module, its files, its clock. Process, sizes and density are the
user's.
"""

import json

from axs6.hw.verilog import Generated


def librelane(made: Generated, period: float) -> str:
    """A configuration of LibreLane's flow `Classic`; the process is chosen by its `--pdk`.

    Args:
        made: the unit.
        period: of its clock, in picoseconds.

    Source: LibreLane's reference of configuration files, version 3 of their format.
    """
    sdc = f"dir::{made.module}.sdc"
    content = {
        "meta": {"version": 3, "flow": "Classic"},
        "DESIGN_NAME": made.module,
        "VERILOG_FILES": [f"dir::{made.module}.v"],
        "CLOCK_PORT": made.manifest["clock"],
        "CLOCK_PERIOD": period / 1e3,
        "PNR_SDC_FILE": sdc,
        "SIGNOFF_SDC_FILE": sdc,
    }
    return json.dumps(content, indent=2) + "\n"


def openroad(made: Generated) -> str:
    """A `config.mk` of OpenROAD-flow-scripts, for `make DESIGN_CONFIG=MODULE.mk`.

    Source: the flow's reference of variables.
    """
    return "\n".join(
        [
            "here := $(dir $(abspath $(lastword $(MAKEFILE_LIST))))",
            f"export DESIGN_NAME = {made.module}",
            "export PLATFORM ?= sky130hd",
            f"export VERILOG_FILES = $(here){made.module}.v",
            f"export SDC_FILE = $(here){made.module}.sdc",
            "export CORE_UTILIZATION ?= 40",
            "",
        ]
    )
