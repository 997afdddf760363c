"""Place and route: how fast a unit's clock can be on an FPGA, by nextpnr in a child process.

The unit stands between registers. A chain of flip-flops holds a bit for each input port bit; each
output bit goes to a flip-flop, and a second chain folds those into one bit by exclusive or. Thus
every path through the unit is from register to register, only clock, reset and two data pins are
needed, and nothing of the unit can be optimised away.
"""

import json
import os
import re
import subprocess
import sys
from collections.abc import Mapping
from dataclasses import dataclass
from importlib.metadata import PackageNotFoundError, version
from importlib.util import find_spec
from pathlib import Path
from typing import Any, Final

from axs6.install import install_command
from axs6.sim.process import child_process
from axs6.synth.errors import SynthesisError
from axs6.synth.flow import Synthesis, flow
from axs6.synth.names import check_name
from axs6.synth.process import Limit, run_jobs
from axs6.synth.report import Placement, Timing
from axs6.synth.targets import FPGAS, NETLIST

SEED: Final = 1
_CLOCK, _RESET = "clk", "rst"
_FREQUENCY = "500"
"""Target clock of nextpnr in MHz: more than a unit reaches, so that it keeps optimising."""


_START: Final = "import sys, yowasp_{0} as tool; sys.exit(tool.run_{0}(sys.argv[1:]))"


_TIMING: Final = ("--placer-heap-timingweight", "60", "--placer-heap-critexp", "4")
"""Weight of delays in the placer. With nextpnr's own numbers, 10 and 2, one netlist of a 2 x 2
tile of MXFP8 E4M3 had 121 MHz on an ECP5, with these 150; weights of 30, 45, 80 and 100 gave 143,
146, 137 and 139."""


@dataclass(frozen=True)
class _Device:
    name: str
    tool: str
    flip_flops: int
    options: tuple[str, ...]


_DEVICES: Final = {
    "ice40": _Device("iCE40HX8K-CT256", "nextpnr_ice40", 7680, ("--hx8k", "--package", "ct256")),
    "ecp5": _Device(
        "LFE5U-85F-6CABGA756",
        "nextpnr_ecp5",
        83640,
        ("--85k", "--speed", "6", "--package", "CABGA756", "--lpf-allow-unconstrained"),
    ),
}


def check_place(target: str) -> None:
    """Check that place and route for a target is there.

    Raises:
        SynthesisError: it is not.
    """
    if target not in FPGAS:
        raise SynthesisError(
            f"Fmax by place and route is for FPGAs, not {target}, whose report "
            "has its timing anyway"
        )
    if target not in _DEVICES:
        raise SynthesisError(
            f"Fmax needs an open place and route, but {target} has none; "
            f"target must be one of {', '.join(_DEVICES)}"
        )
    package = f"yowasp_{_DEVICES[target].tool}"
    if find_spec(package) is None:
        raise SynthesisError(
            f"Fmax on {target} needs {package.replace('_', '-')}: {install_command('fpga')}"
        )


def check_ports(target: str, inputs: int, outputs: int) -> None:
    """Check that a target has the registers that stand around a unit.

    Args:
        target: as for `place`.
        inputs, outputs: bits of the ports that go each way.

    Raises:
        SynthesisError: it has too few, whatever the unit itself takes.
    """
    device, needed = _DEVICES[target], inputs + 2 * outputs
    if needed > device.flip_flops:
        raise SynthesisError(
            f"target {target}: ports of {inputs:,} bits in and {outputs:,} out need {needed:,} "
            f"flip-flops around them for Fmax; {device.name} has {device.flip_flops:,}"
        )


def placer(target: str) -> dict[str, str]:
    """Return the package that places and routes for a target and its version, if it is there."""
    if target not in _DEVICES:
        return {}
    package = f"yowasp-{_DEVICES[target].tool}".replace("_", "-")
    try:
        return {package: version(package)}
    except PackageNotFoundError:
        return {}


def place(
    verilog: str, top: str, ports: Mapping[str, Any], target: str, folder: Path, limit: Limit
) -> tuple[Timing, Placement]:
    """Place and route a design between registers and return its clock and resources.

    Args:
        verilog: text of the design.
        top: name of its top module, which has the clock `clk`.
        ports: of the module, as in a Yosys JSON netlist.
        target: `ice40` (HX8K) or `ecp5` (85F, speed grade 6).
        folder: where the files of the run go.
        limit: when it must have ended.

    Raises:
        SynthesisError: the design has no clock, does not fit, or the time ran out.
    """
    device = _DEVICES[target]
    job = folder / "place"
    text = f"{verilog}\n{wrapper(top, ports)}"
    flow(Synthesis(target=target)).write(job, text, "registered", flatten=True, expand=[])
    run_jobs([job], limit=limit, source=f"target {target}")
    report = _nextpnr(device, job, target, limit)
    ((_, clock),) = report["fmax"].items()
    path = next(p["path"] for p in report["critical_paths"] if p["from"] == p["to"])
    fmax = round(clock["achieved"], 3)
    timing = Timing(
        f"nextpnr on {device.name}, seed {SEED}, every port registered",
        round(1e6 / fmax, 3),
        sum(step["type"] == "logic" for step in path),
        fmax,
        path[0]["from"]["cell"],
        path[-1]["to"]["cell"],
    )
    used = {name: each for name, each in report["utilization"].items() if each["used"]}
    return timing, Placement(
        device.name,
        SEED,
        {name: each["used"] for name, each in used.items()},
        {name: each["available"] for name, each in used.items()},
    )


def wrapper(top: str, ports: Mapping[str, Any]) -> str:
    """Return the module `registered`: an instance of `top` between chains of registers.

    Raises:
        SynthesisError: `top` has no clock, a port that goes both ways, or one with other
            characters than letters, digits and _ in its name.
    """
    if _CLOCK not in ports:
        raise SynthesisError(f"Fmax needs a port {_CLOCK!r}; {top} has {', '.join(ports)}")
    special = {_CLOCK: "clk", _RESET: "reset"}
    connections = [f".{name}({net})" for name, net in special.items() if name in ports]
    at = {"input": 0, "output": 0}
    for name, port in ports.items():
        check_name(name, f"a port of {top}")
        if name in special:
            continue
        direction, width = port["direction"], len(port["bits"])
        if direction not in at:
            raise SynthesisError(f"Fmax needs ports that go one way; {top} has the inout {name!r}")
        low = at[direction]
        net = {"input": "held", "output": "given"}[direction]
        connections.append(f".{name}({net}[{low + width - 1}:{low}])")
        at[direction] += width
    inputs, outputs = max(at["input"], 1), max(at["output"], 1)
    return f"""
module registered(input clk, rst, d, output q);
  reg reset;
  reg [{inputs - 1}:0] held;
  wire [{outputs - 1}:0] given;
  reg [{outputs - 1}:0] taken;
  reg [{outputs}:0] folded;
  always @(posedge clk) begin
    reset <= rst;
    held <= {{held, d}};
    taken <= given;
    folded <= {{folded, 1'b0}} ^ taken;
  end
  assign q = folded[{outputs}];
  {top} unit ({", ".join(connections)});
endmodule
"""


def _nextpnr(device: _Device, job: Path, target: str, limit: Limit) -> dict[str, Any]:
    log, report = job / "place.log", job / "report.json"
    command = [
        sys.executable, "-P", "-c", _START.format(device.tool), *device.options,
        "--json", NETLIST, "--report", report.name, "--seed", str(SEED), "--threads", "1", *_TIMING,
        "--freq", _FREQUENCY, "--timing-allow-fail",
    ]  # fmt: skip
    with child_process(command, log, os.environ, job) as child:
        try:
            code = child.wait(limit.left)
        except subprocess.TimeoutExpired:
            raise SynthesisError(
                f"target {target}: place and route did not finish within {limit.seconds:g} s"
            ) from None
    if code:
        raise _failure(log.read_text(errors="replace"), device, target)
    result: dict[str, Any] = json.loads(report.read_text())
    return result


def _failure(log: str, device: _Device, target: str) -> SynthesisError:
    """Turn nextpnr's log into an error; a type of cell beyond 100 % means it does not fit."""
    for name, used, available in re.findall(r"(\w+):\s*(\d+)/\s*(\d+)\s+\d+%", log):
        if int(used) > int(available):
            return SynthesisError(
                f"target {target}: the design needs {used} {name}; {device.name} has {available}"
            )
    lines = [line.strip() for line in log.splitlines() if line.strip()] or ["no output"]
    said = next((line for line in lines if "ERROR" in line), lines[-1])
    return SynthesisError(f"target {target}: nextpnr failed: {said}")
