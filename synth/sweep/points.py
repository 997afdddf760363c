"""The points of a sweep and their measurements."""

import itertools
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field, replace
from typing import Any

from axs6.hw.registry import find
from axs6.hw.verilog import Generated
from axs6.synth.energy_report import EnergyReport
from axs6.synth.energy_stimulus import Stimulus
from axs6.synth.flow import Synthesis
from axs6.synth.report import AreaReport
from axs6.synth.sweep.axes import SETTINGS, Axes
from axs6.synth.targets import WITH_DSPS
from axs6.tables import Table, Tabular


@dataclass(frozen=True)
class Point:
    """One design to measure: a unit with all of its parameters, and how it is synthesised.

    With `between_registers` it is what `axs6.synth.registered.registered` makes of the unit.
    `stimulus` is that of `axs6.synth.energy.energy` if the energy is to be measured too.
    """

    unit: str
    parameters: dict[str, Any]
    options: Synthesis
    between_registers: bool = False
    stimulus: Stimulus | None = None

    def value(self, axis: str) -> Any:
        """The point's value of a swept parameter or setting."""
        return getattr(self.options, axis) if axis in SETTINGS else self.parameters[axis]

    @property
    def subject(self) -> str:
        """The subject of the point's figures: its unit on its target or library."""
        liberty = self.options.liberty
        return f"{self.unit} on {liberty.name if liberty else self.options.target}"

    @property
    def view(self) -> str | None:
        """The view of the unit's datapath; None if it has one description alone."""
        one = not find(self.unit).has_views(self.parameters)
        return None if one else str(self.parameters["view"])

    def label(self, axes: Sequence[str]) -> str:
        """The unit and its values on some axes: `block_dot block=8 stages=2`."""
        return f"{self.unit} {self.settings(axes)}".rstrip()

    def settings(self, axes: Sequence[str]) -> str:
        """The values on some axes: `block=8 stages=2`."""
        return " ".join(f"{axis}={self.value(axis)}" for axis in axes)


def all_figures(report: AreaReport) -> dict[str, float]:
    """Every number of a flattened design by name: those of its area, then of its timing."""
    timing = report.timing.to_dict() if report.timing else {}
    numbers = {name: value for name, value in timing.items() if isinstance(value, int | float)}
    return {**report.total.figures, **numbers}


@dataclass(frozen=True)
class Measured:
    """The Verilog of a point, its report, and its energy if the point has a stimulus."""

    design: Generated = field(repr=False)
    report: AreaReport
    energy: EnergyReport | None = None

    @property
    def latency(self) -> int:
        """Cycles from an input to its output."""
        return int(self.design.manifest["latency"])

    @property
    def figures(self) -> dict[str, float]:
        """As `all_figures` of the report."""
        return all_figures(self.report)


@dataclass(frozen=True)
class Result:
    """A point with its measurement, or with the reason why it is missing.

    `cached` says that the figures were measured earlier; it is no part of `to_dict`.
    """

    point: Point
    measured: Measured | None = None
    reason: str | None = None
    cached: bool = False

    def to_dict(self) -> dict[str, Any]:
        """Return plain dictionaries for JSON, keys in a fixed order."""
        outcome: dict[str, Any] = {"missing": self.reason}
        if self.measured:
            report = self.measured.report.to_dict()
            outcome = {"latency": self.measured.latency, "figures": self.measured.figures, **report}
            if self.measured.energy:
                outcome["energy"] = self.measured.energy.to_dict()
        return {"unit": self.point.unit, "parameters": self.point.parameters, **outcome}


@dataclass(frozen=True)
class Sweep(Tabular):
    """The results of every combination of the axes' values, for each unit.

    `axes` is empty where each unit is measured once. The results are in the order of the units,
    then of the first axis, the second and so on.
    """

    units: tuple[str, ...]
    axes: Axes
    results: tuple[Result, ...]

    def table(self) -> Table:
        """A row for each point."""
        from axs6.synth.pages.tables import results_table

        return results_table(self)

    @property
    def missing(self) -> tuple[Result, ...]:
        """The results without a report."""
        return tuple(result for result in self.results if result.measured is None)

    @property
    def subjects(self) -> dict[str, list[Result]]:
        """The results of each unit on each target, whose figures compare, by `Point.subject`."""
        groups: dict[str, list[Result]] = {}
        for result in self.results:
            groups.setdefault(result.point.subject, []).append(result)
        return groups

    @property
    def tools(self) -> dict[str, str]:
        """Versions of the programs that measured the points, by name."""
        versions: dict[str, str] = {}
        for result in self.results:
            if result.measured:
                versions |= result.measured.report.tools
        return versions

    def to_dict(self) -> dict[str, Any]:
        """Return plain dictionaries and lists for JSON, keys in a fixed order."""
        return {
            "units": list(self.units),
            "axes": {name: list(values) for name, values in self.axes.items()},
            "points": [result.to_dict() for result in self.results],
            "missing": len(self.missing),
            "tools": self.tools,
        }


def all_points(
    units: Sequence[str],
    axes: Axes,
    parameters: Mapping[str, Any],
    options: Synthesis,
    stimulus: Stimulus | None = None,
) -> list[Point]:
    """Every combination of the axes' values, for each unit.

    Args:
        units: names in the registry.
        axes: values of the swept parameters and settings.
        parameters: those that all points have; the others keep their defaults, but for the view,
            which suits the target.
        options: how all points are synthesised, but for what is swept.
        stimulus: that of all points, if their energy is to be measured.

    Raises:
        ValueError: an unknown unit or parameter, or one that is both given and swept.
    """
    for name in axes:
        if name in parameters:
            raise ValueError(f"sweep: {name} is swept and also given as {parameters[name]}")
    if "target" in axes and options.liberty:
        raise ValueError("sweep: a library and target cannot go together: give one")
    points = []
    for unit in units:
        known = find(unit)
        for values in itertools.product(*axes.values()):
            swept = dict(zip(axes, values, strict=True))
            settings = {name: swept.pop(name) for name in SETTINGS if name in swept}
            each = replace(options, **settings)
            view = known.suited_view(dsps=each.target in WITH_DSPS)
            everything = known.in_view(view, {**parameters, **swept})
            points.append(Point(unit, everything, each, stimulus=stimulus))
    return points
