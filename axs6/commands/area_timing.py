"""The mapped netlist of `axs6 area --netlist`, and its timing by other tools (`--opensta`)."""

from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from rich.console import Console
from rich.text import Text

from axs6.commands.output import print_table, write_files
from axs6.hw.verilog import Generated
from axs6.synth.flow import Synthesis
from axs6.synth.netlist import companions, mapped_design, timed_flow
from axs6.synth.opensta import TimingTools, check_opensta, timing_tools
from axs6.synth.pages.document import Table
from axs6.synth.tables import rich_table


@dataclass(frozen=True)
class TimedOutput:
    """File for the mapped Verilog of a unit, if any, and whether OpenSTA times it."""

    netlist: Path | None = None
    opensta: bool = False

    def check(self, units: Sequence[str], expression: str | None, options: Synthesis) -> None:
        """Check the options before any synthesis.

        Raises:
            ValueError: for a sweep, or a netlist of several units.
            SynthesisError: no library with delays, or no OpenSTA.
        """
        if not (self.netlist or self.opensta):
            return
        if expression is not None:
            option = "--netlist" if self.netlist else "--opensta"
            raise ValueError(f"{option} works on units, not sweeps: leave out one of the two")
        if self.netlist and len(units) > 1:
            raise ValueError(f"--netlist is for one unit, not {len(units)}")
        timed_flow(options)
        if self.opensta:
            check_opensta()

    def paths(self, liberty: Path | None) -> list[Path]:
        """Return the files to write, of which the first is the Verilog.

        Raises:
            ValueError: two of them would be one file.
        """
        return companions(self.netlist, liberty) if self.netlist else []

    def run(
        self, design: Generated, options: Synthesis, timeout: float, out: Console
    ) -> dict[str, Any]:
        """Map a unit, write its files and show its timing by several tools, as asked for.

        Args:
            design: the unit.
            options: how it is synthesised.
            timeout: limit in seconds, of each tool.
            out: where the timing is shown.

        Returns:
            What goes into the unit's JSON.
        """
        if not (self.netlist or self.opensta):
            return {}
        mapped = mapped_design(design.verilog, design.module, timeout=timeout, **vars(options))
        if self.netlist:
            written = write_files(self.netlist.parent, mapped.files(self.netlist))
            out.print(f"wrote {', '.join(map(str, written))}")
        if not self.opensta:
            return {}
        tools = timing_tools(mapped, timeout)
        out.print(Text(f"Longest path of {design.module} by tool", style="bold"))
        print_table(out, rich_table(_table(tools)))
        return {"timing_tools": tools.to_dict()}


def _table(tools: TimingTools) -> Table:
    rows = {
        "axs6": tools.axs6_ps,
        "ABC stime": tools.abc_stime_ps,
        "OpenSTA": tools.opensta_ps,
        f"OpenSTA, wire load {tools.wire_load}": tools.opensta_wire_load_ps,
    }
    return Table(
        ("tool", "delay ps"),
        tuple((name, f"{delay:,.1f}") for name, delay in rows.items() if delay is not None),
        left=1,
    )
