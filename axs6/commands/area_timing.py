"""The mapped netlist of `axs6 area --netlist`, its switching (`--saif`), and other tools' figures
(`--opensta`)."""

from collections.abc import Sequence
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any

from rich.console import Console
from rich.text import Text

from axs6.commands.output import print_table, write_file, write_files
from axs6.hw.registry import find
from axs6.hw.verilog import Generated
from axs6.synth.energy import stimulus_items
from axs6.synth.flow import Synthesis
from axs6.synth.mapped import mapped_netlist
from axs6.synth.netlist import MappedDesign, companions, mapped_design, timed_flow
from axs6.synth.opensta import TimingTools, check_opensta, timing_tools
from axs6.synth.opensta_power import PowerTools, power_tools
from axs6.synth.sweep import Result
from axs6.synth.sweep.points import Point
from axs6.synth.switching import switching_file
from axs6.tables import Table, rich_table, text_table


@dataclass(frozen=True)
class TimedOutput:
    """Files for the mapped Verilog of a unit and its switching, and whether to ask OpenSTA."""

    netlist: Path | None = None
    opensta: bool = False
    saif: Path | None = None

    @property
    def option(self) -> str | None:
        """The first option that was given."""
        given = {"--netlist": self.netlist, "--saif": self.saif, "--opensta": self.opensta}
        return next((option for option, value in given.items() if value), None)

    def check(self, units: Sequence[str], expression: str | None, options: Synthesis) -> None:
        """Check the options before any synthesis.

        Raises:
            ValueError: for a sweep, or a file of several units.
            SynthesisError: no library with delays, or no OpenSTA.
        """
        if self.option is None:
            return
        if expression is not None:
            raise ValueError(f"{self.option} works on units, not sweeps: leave out one of the two")
        if (self.netlist or self.saif) and len(units) > 1:
            raise ValueError(f"{self.option} is for one unit, not {len(units)}")
        timed_flow(options)
        if self.opensta:
            check_opensta()

    def paths(self, liberty: Path | None) -> list[Path]:
        """Return the files to write.

        Raises:
            ValueError: two of those of the netlist would be one file.
        """
        netlist = companions(self.netlist, liberty) if self.netlist else []
        return [*netlist, *([self.saif] if self.saif else [])]

    def run(self, result: Result, timeout: float, out: Console) -> dict[str, Any]:
        """Map a unit, write its files and show what other tools say of it, as asked for.

        Args:
            result: the unit's measurement, with its energy for what needs that.
            timeout: limit in seconds, of each tool.
            out: where the figures are shown.

        Returns:
            What goes into the unit's JSON.
        """
        measured = result.measured
        if self.option is None or measured is None:
            return {}
        made, point = measured.design, result.point
        options = replace(point.options, optimise=measured.report.optimise)
        mapped = mapped_design(made.verilog, made.module, timeout=timeout, **vars(options))
        if self.netlist:
            written = write_files(self.netlist.parent, mapped.files(self.netlist))
            out.print(f"wrote {', '.join(map(str, written))}")
        activity = None
        if measured.energy is not None and (self.saif or self.opensta):
            activity = _activity(mapped, made, point, options, timeout)
        if self.saif and activity:
            write_file(self.saif, activity)
            out.print(f"wrote {self.saif}")
        found: dict[str, Any] = {}
        if self.opensta:
            tools = timing_tools(mapped, timeout)
            _show(f"Longest path of {made.module} by tool", _timing_table(tools), out)
            found["timing_tools"] = tools.to_dict()
        if self.opensta and activity and measured.energy is not None:
            parts = measured.energy.measured.parts
            power = power_tools(mapped, activity, parts["gates"] + parts["flip_flops"], timeout)
            _show(f"Energy of {made.module} by tool, fJ an item", _power_table(power), out)
            found["power_tools"] = power.to_dict()
        return found


def _activity(
    mapped: MappedDesign, made: Generated, point: Point, options: Synthesis, timeout: float
) -> str:
    """SAIF of a mapped unit on the data that its energy was measured with."""
    assert point.stimulus is not None
    parameters = find(point.unit).parameters(point.parameters)
    return switching_file(
        mapped,
        mapped_netlist(made.verilog, made.module, timeout=timeout, **vars(options)),
        find(point.unit).build(**parameters),
        stimulus_items(point.unit, parameters, point.stimulus),
        point.stimulus.name,
    )


def _show(title: str, table: Table, out: Console) -> None:
    out.print(Text(title, style="bold"))
    print_table(out, rich_table(table))


def _timing_table(tools: TimingTools) -> Table:
    rows = {
        "axs6": tools.axs6_ps,
        "ABC stime": tools.abc_stime_ps,
        "OpenSTA": tools.opensta_ps,
        f"OpenSTA, wire load {tools.wire_load}": tools.opensta_wire_load_ps,
    }
    return text_table(
        ("tool", "delay ps"),
        [(name, f"{delay:,.1f}") for name, delay in rows.items() if delay is not None],
    )


def _power_table(tools: PowerTools) -> Table:
    rows = {
        "OpenSTA": tools.opensta,
        "OpenSTA, its default activity": tools.opensta_default,
    }
    own = ("axs6, nets that cells drive", f"{tools.axs6:,.1f}", "-", "-", "-")
    found = (
        (name, *(f"{each:,.1f}" for each in (p.switching, p.internal, p.leakage, p.total)))
        for name, p in rows.items()
    )
    return text_table(("tool", "switching", "internal", "leakage", "total"), (own, *found))
