"""OpenSTA, if installed: the longest path of a mapped design by another tool."""

import os
import re
import shutil
import subprocess
from dataclasses import asdict, dataclass
from pathlib import Path
from typing import Any, Final

from axs6.sim.process import child_process, temporary_folder, wait
from axs6.synth.errors import SynthesisError
from axs6.synth.netlist import NO_WIRES, MappedDesign, compact_library

_TOOL: Final = "sta"
_SLACK = re.compile(r"^ *(-?[\d.]+) +slack\b", re.M)
_NO_PATH = "No paths found"
_MARK = "axs6 report"


@dataclass(frozen=True)
class TimingTools:
    """The longest path of one mapped design by several tools, in picoseconds.

    Args:
        axs6_ps: by `axs6.synth.timing`.
        abc_stime_ps: by ABC's `stime`; None where ABC did not see all of the design.
        opensta_ps: by OpenSTA, without wires as in the former two.
        opensta_wire_load_ps: the same with the library's default wire load, if it has one.
        wire_load: name of that.
        opensta: version.
    """

    axs6_ps: float
    abc_stime_ps: float | None
    opensta_ps: float
    opensta_wire_load_ps: float | None
    wire_load: str | None
    opensta: str

    def to_dict(self) -> dict[str, Any]:
        """Return plain dictionaries for JSON, keys in a fixed order."""
        return asdict(self)


def check_opensta() -> None:
    """Raise SynthesisError where OpenSTA is missing."""
    if shutil.which(_TOOL) is None:
        raise SynthesisError(
            f"--opensta needs OpenSTA's {_TOOL} on PATH (on Debian: apt install opensta)"
        )


def timing_tools(design: MappedDesign, timeout: float = 600) -> TimingTools:
    """Time a mapped design by OpenSTA, and return that beside the other tools' figures.

    Args:
        design: what is timed.
        timeout: limit in seconds.

    Raises:
        SynthesisError: OpenSTA is missing, fails, or exceeds the limit.
    """
    check_opensta()
    wired = design.constraints.replace(f"{NO_WIRES}\n", "")
    report = ["report_checks -path_delay max -digits 6", f'puts "{_MARK}"']
    commands = [
        "read_liberty library.lib",
        "read_verilog netlist.v",
        f"link_design {design.top}",
        "read_sdc netlist.sdc",
        *report,
        NO_WIRES,
        *report,
        "exit",
    ]
    files = {"run.tcl": "\n".join(commands), "netlist.v": design.verilog, "netlist.sdc": wired}
    with temporary_folder("axs6-opensta-") as folder:
        for file, text in files.items():
            (folder / file).write_text(text, encoding="utf-8")
        if design.liberty:
            (folder / "library.lib").symlink_to(design.liberty.resolve())
        else:
            (folder / "library.lib").write_text(compact_library(), encoding="utf-8")
        version = run_opensta(["-version"], folder, timeout)
        said = run_opensta(["-no_init", "-no_splash", "-exit", "run.tcl"], folder, timeout)
    with_wires, without, *_ = (_delay(part, design) for part in said.split(_MARK)[:2])
    wire_load = design.library.wire_load
    return TimingTools(
        design.delay_ps,
        design.stime_ps,
        without,
        with_wires if wire_load else None,
        wire_load,
        version.strip(),
    )


def run_opensta(arguments: list[str], folder: Path, timeout: float) -> str:
    """Run OpenSTA in a folder and return what it printed."""
    log = folder / "log.txt"
    with child_process([_TOOL, *arguments], log, dict(os.environ), folder) as child:
        try:
            wait(child, timeout)
        except subprocess.TimeoutExpired:
            raise SynthesisError(f"OpenSTA did not finish within {timeout:g} s") from None
    said = log.read_text(errors="replace")
    errors = [line for line in said.splitlines() if line.startswith("Error")]
    if errors or child.returncode:
        line = (errors or said.split("\n") or [""])[0] or f"exit status {child.returncode}"
        raise SynthesisError(f"OpenSTA failed: {line}")
    return said


def _delay(report: str, design: MappedDesign) -> float:
    """Return the longest path in picoseconds: the clock's period less the slack."""
    if _NO_PATH in report:
        return 0.0
    found = _SLACK.search(report)
    if found is None:
        raise SynthesisError("OpenSTA failed: it gave no slack of the design")
    return round(design.period_ps - float(found[1]) * design.library.time_unit, 3)
