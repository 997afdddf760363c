"""Contents of an area report."""

from collections.abc import Mapping
from dataclasses import asdict, dataclass, replace
from pathlib import PurePath
from typing import Any, Final

from axs6.tables import html_text

_AREA_UNITS: Final[Mapping[str, str]] = {"generic": "gate equivalents", "sky130": "µm²"}


@dataclass(frozen=True)
class Resources:
    """Resources of a design or a part of it.

    `figures` are the sums of the target, in this order:

    - generic: `gate_equivalents` (areas of a two-input NAND), `transistors` (estimate), `gates`
      (combinational), `flip_flops`;
    - ice40, ecp5, xc7: `luts`, `flip_flops`, `carries` (an ECP5 CCU2C holds two LUTs that `luts`
      does not count), `dsps`, `block_rams`; an xc7 inverter counts as a LUT, and a
      shift register that xc7 puts into an SRL is only among `cells`;
    - sky130 or a library: `area` and `sequential_area` in `AreaReport.area_unit` (a library's are
      usually square micrometres), `sequential_share` (0 to 1), `flip_flops` (latches included).

    `cells` are counts by cell type, sorted by name.
    """

    figures: dict[str, int | float]
    cells: dict[str, int]

    def to_dict(self) -> dict[str, Any]:
        """Return plain dictionaries for JSON, keys in a fixed order."""
        return {"figures": dict(self.figures), "cells": dict(self.cells)}


@dataclass(frozen=True)
class Part:
    """A submodule, or all equal ones below one parent.

    `path` leads from the top by instance names, such as `dot/accumulator/adder`; numbers of equal
    instances are drawn together: `lane[0-31]`. `instances` counts them in the whole design.
    `each` is what one instance takes, with everything below it.
    """

    path: str
    module: str
    instances: int
    each: Resources

    def to_dict(self) -> dict[str, Any]:
        """Return plain dictionaries for JSON, keys in a fixed order."""
        return {
            "path": self.path,
            "module": self.module,
            "instances": self.instances,
            "each": self.each.to_dict(),
        }


@dataclass(frozen=True)
class Timing:
    """How fast a mapped design is.

    `model` says in words what the figures rest on. `delay_ps` is the longest path: from the clock
    edge or an input port, to a register (its setup time included) or an output port. `levels`
    counts its cells, and `start` and `end` name its ends. `fmax_mhz` is the clock that this path
    allows where the design has registers, ports counting as registered elsewhere without delay.
    `clock_ps` is the period of the clock that was asked for, and `slack_ps` what the longest path
    leaves of it, below 0 where the clock is not met. None stands for what the target's model does
    not give, or was not asked for.
    """

    model: str
    delay_ps: float | None = None
    levels: int | None = None
    fmax_mhz: float | None = None
    start: str | None = None
    end: str | None = None
    clock_ps: float | None = None
    slack_ps: float | None = None

    def held_to(self, clock: float | None) -> "Timing":
        """The same with the slack for a clock, whose period is in picoseconds, if there is one."""
        if clock is None or self.delay_ps is None:
            return self
        return replace(self, clock_ps=clock, slack_ps=round(clock - self.delay_ps, 3))

    def to_dict(self) -> dict[str, Any]:
        """Return plain dictionaries for JSON, keys in a fixed order."""
        return asdict(self)


@dataclass(frozen=True)
class Placement:
    """Result of place and route: the device, the seed, and its cells by type.

    `used` and `available` count the same types; the registers around the unit that make its ports
    registered are among those used.
    """

    device: str
    seed: int
    used: dict[str, int]
    available: dict[str, int]

    def to_dict(self) -> dict[str, Any]:
        """Return plain dictionaries for JSON, keys in a fixed order."""
        return asdict(self)


@dataclass(frozen=True)
class AreaReport:
    """The area of one design on one target.

    `target` is the target's name or `liberty`, and `library` the file of the latter. `optimise` is
    what the gates were mapped for (None on FPGAs), and `adder_cells` says whether full adders
    became cells of the library. `timing` is None where only place and route would give it
    and was not asked for; `placement` is what the latter said.

    `total` comes from the flattened design. `unflattened` and `parts` come from a second run that
    keeps the hierarchy: the parts add up to `unflattened` together with the logic between them, and
    not exactly to `total`, because flattening optimises over the borders of modules. `tools` maps
    the programs used to their versions.
    """

    top: str
    target: str
    library: str | None
    total: Resources
    unflattened: Resources
    parts: tuple[Part, ...]
    tools: dict[str, str]
    optimise: str | None = "area"
    adder_cells: bool = False
    timing: Timing | None = None
    placement: Placement | None = None

    @property
    def area_unit(self) -> str | None:
        """Unit of areas, None on FPGAs; a library does not state its unit."""
        if self.library:
            return f"units of {PurePath(self.library).name}"
        return _AREA_UNITS.get(self.target)

    def _repr_html_(self) -> str:
        """The totals and the timing, then the submodules, in a notebook."""
        from axs6.synth.pages.tables import parts_table, totals_table

        name = f"{self.top} on {self.library or self.target}"
        shown = html_text(replace(totals_table(self), notes=[name]))
        return shown + (html_text(parts_table(self)) if self.parts else "")

    def to_dict(self) -> dict[str, Any]:
        """Return plain dictionaries for JSON, keys in a fixed order."""
        return {
            "top": self.top,
            "target": self.target,
            "library": self.library,
            "area_unit": self.area_unit,
            "optimise": self.optimise,
            "adder_cells": self.adder_cells,
            "timing": self.timing.to_dict() if self.timing else None,
            "placement": self.placement.to_dict() if self.placement else None,
            "total": self.total.to_dict(),
            "unflattened": self.unflattened.to_dict(),
            "parts": [part.to_dict() for part in self.parts],
            "tools": dict(self.tools),
        }
