"""Cells of a Liberty library: areas, pins, functions and the tables of their delays.

Delays and slews are in picoseconds, capacitances in femtofarads, areas in the library's units.
"""

import math
from bisect import bisect_right
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from functools import cached_property
from itertools import pairwise
from pathlib import Path

from axs6.synth.errors import SynthesisError
from axs6.synth.functions import truth_table
from axs6.synth.liberty import FEMTOFARADS, LibertyGroup, finite, parse, read_library, scale
from axs6.synth.names import IN_LIBRARY, check_name

EDGES = ("rise", "fall")
_SENSES = ("positive_unate", "negative_unate", "non_unate")
_DIRECTIONS = ("input", "output", "inout", "internal")
_THROUGH = ("combinational", "combinational_rise", "combinational_fall")
_FROM_CLOCK = ("rising_edge", "falling_edge")
"""Types of timing through a gate, and from a register's clock."""
_NO_LOGIC = ("dont_use", "is_isolation_cell", "is_level_shifter", "always_on")
"""Attributes of cells that no logic is mapped to; the latter three stand between power domains."""
_PICOSECONDS = {"ns": 1e3, "ps": 1.0, "us": 1e6, "fs": 1e-3}
_LOADS = ("total_output_net_capacitance",)
_SLEWS = ("input_net_transition", "input_transition_time", "constrained_pin_transition")


@dataclass(frozen=True)
class TimingTable:
    """A table over slew (ps) and load (fF) or, for a setup time, over slew alone.

    Values between the points are interpolated, those beyond them extrapolated, linearly.
    """

    slews: tuple[float, ...]
    loads: tuple[float, ...]
    values: tuple[tuple[float, ...], ...]

    def at(self, slew: float, load: float) -> float:
        """Return the value in picoseconds."""
        i, s = _segment(self.slews, slew)
        j, t = _segment(self.loads, load)
        low, high = self.values[i], self.values[i + 1] if s else self.values[i]
        k = j + 1 if t else j
        first = low[j] + t * (low[k] - low[j])
        second = high[j] + t * (high[k] - high[j])
        return first + s * (second - first)


def _segment(points: Sequence[float], x: float) -> tuple[int, float]:
    """Return where x lies: the point before it and the fraction of the way to the next."""
    if len(points) == 1:
        return 0, 0.0
    i = min(max(bisect_right(points, x), 1), len(points) - 1) - 1
    return i, (x - points[i]) / (points[i + 1] - points[i])


@dataclass(frozen=True)
class Arc:
    """From an input pin to an output pin: the tables of delay and slew for each output edge.

    `sense` is `positive_unate`, `negative_unate` or `non_unate`.
    """

    source: str
    output: str
    sense: str
    delay: Mapping[str, TimingTable]
    slew: Mapping[str, TimingTable]


@dataclass(frozen=True)
class Cell:
    """A cell: `inputs` maps pins to capacitances, `functions` outputs to expressions.

    `dont_use` says that no logic is mapped to it: the library says so, or it is for the borders of
    power domains. `arcs` are those through a gate, or from a register's clock to its outputs;
    `setups` the setup times of a register's inputs, by the edge of the input.
    """

    name: str
    area: float
    inputs: Mapping[str, float]
    functions: Mapping[str, str]
    is_register: bool
    dont_use: bool
    arcs: tuple[Arc, ...] = ()
    setups: Mapping[str, Mapping[str, TimingTable]] = field(default_factory=dict)

    def truth(self, output: str) -> int | None:
        """Return the truth table of an output over the inputs, None for one that has state."""
        if self.is_register:
            return None
        return truth_table(self.functions[output], tuple(self.inputs))


@dataclass(frozen=True)
class CellLibrary:
    """A library's name and cells.

    `time_unit` and `load_unit` are the file's own units, in picoseconds and femtofarads.
    `wire_load` is the wire load that the file asks for where a design names none, if it does.
    """

    name: str
    cells: Mapping[str, Cell]
    time_unit: float
    load_unit: float
    wire_load: str | None

    @property
    def dont_use(self) -> list[str]:
        """Names of the cells that no logic is mapped to."""
        return [name for name, cell in self.cells.items() if cell.dont_use]

    @cached_property
    def inverter(self) -> Cell | None:
        """The smallest inverter."""
        return self.smallest(1, 0b01)

    @cached_property
    def buffer(self) -> Cell | None:
        """The smallest buffer."""
        return self.smallest(1, 0b10)

    def smallest(self, inputs: int, truth: int) -> Cell | None:
        """Return the smallest gate of one output with this truth table; of equals, by name."""
        return min(self.gates(inputs, truth), key=lambda cell: (cell.area, cell.name), default=None)

    def gates(self, inputs: int, truth: int) -> list[Cell]:
        """Return the gates of one output with this truth table."""
        return [
            cell
            for cell in self.cells.values()
            if len(cell.inputs) == inputs
            and len(cell.functions) == 1
            and not cell.dont_use
            and cell.truth(next(iter(cell.functions))) == truth
        ]

    def direction(self, cell: str, pin: str) -> str:
        """Return the direction of a pin: `input` or `output`.

        Raises:
            SynthesisError: there is no such cell.
        """
        return "input" if pin in self[cell].inputs else "output"

    def __getitem__(self, name: str) -> Cell:
        """Return a cell.

        Raises:
            SynthesisError: there is none of this name.
        """
        if name not in self.cells:
            raise SynthesisError(f"library {self.name} has no cell {name}")
        return self.cells[name]


def read_cells(path: Path) -> CellLibrary:
    """Read the cells of a Liberty file.

    Raises:
        SynthesisError: the file cannot be read, is no Liberty file or has a fault in a cell.
    """
    return cell_library(*read_library(path))


def cell_library(text: str, source: str) -> CellLibrary:
    """Read the cells from the text of a Liberty file; `source` is for messages.

    Raises:
        SynthesisError: the text is no Liberty file, has a fault in a cell, or a name that could be
            more than a name where it is used (`axs6.synth.names`).
    """
    library = parse(text, source)
    reader = _CellReader(library, source)
    name = library.arguments[0] if library.arguments else source
    if not name.isprintable():
        raise SynthesisError(f"{source}: the library's name must be printable, not {name!r}")
    cells = {cell.name: reader.cell(cell) for cell in library.all("cell")}
    wire_load = library.text("default_wire_load") or None
    return CellLibrary(name, cells, reader.time_unit, reader.load_unit, wire_load)


class _CellReader:
    """Turns groups into cells, in the units of this module; the units are those of the file."""

    def __init__(self, library: LibertyGroup, source: str) -> None:
        self.time_unit = scale(library, "time_unit", _PICOSECONDS, source, "1ns")
        self.load_unit = scale(library, "capacitive_load_unit", FEMTOFARADS, source, "1pf")
        self._templates = {
            group.name: group for group in library.groups if "template" in group.kind
        }

    def cell(self, group: LibertyGroup) -> Cell:
        check_name(group.name, f"{group.within}, cell", IN_LIBRARY)
        pins = {pin.name: pin for pin in group.all("pin")}
        for name in pins:
            check_name(name, f"{group.place}, pin", IN_LIBRARY)
        directions = {n: pin.one_of("direction", _DIRECTIONS) for n, pin in pins.items()}
        inputs = {n: pin for n, pin in pins.items() if directions[n] == "input"}
        outputs = {n: pin for n, pin in pins.items() if directions[n] == "output"}
        register = any(g.kind in ("ff", "latch", "statetable") for g in group.groups)
        arcs = [
            arc
            for name, pin in outputs.items()
            for timing in pin.all("timing")
            for arc in self._arcs(name, timing, register)
        ]
        setups = {name: self._setups(pin) for name, pin in inputs.items()}
        return Cell(
            group.name,
            group.number("area"),
            {name: self.load_unit * pin.number("capacitance") for name, pin in inputs.items()},
            {name: pin.text("function") for name, pin in outputs.items()},
            register,
            any(group.text(mark) == "true" for mark in _NO_LOGIC),
            tuple(arcs),
            {name: setup for name, setup in setups.items() if setup},
        )

    def _arcs(self, output: str, timing: LibertyGroup, register: bool) -> list[Arc]:
        kind = timing.text("timing_type", "combinational")
        if kind not in (_FROM_CLOCK if register else _THROUGH):
            return []
        delay = {e: self._table(t) for e in EDGES for t in timing.all(f"cell_{e}")}
        slew = {e: self._table(t) for e in EDGES for t in timing.all(f"{e}_transition")}
        sense = timing.one_of("timing_sense", _SENSES, "non_unate")
        sources = timing.text("related_pin").split()
        return [Arc(pin, output, sense, delay, slew) for pin in sources]

    def _setups(self, pin: LibertyGroup) -> dict[str, TimingTable]:
        setups = [t for t in pin.all("timing") if t.text("timing_type").startswith("setup_")]
        return {
            e: self._table(t)
            for timing in setups
            for e in EDGES
            for t in timing.all(f"{e}_constraint")
        }

    def _table(self, group: LibertyGroup) -> TimingTable:
        """Read a table; one of a setup time loses the axis of the clock's slew to its start."""
        import numpy as np  # workers have this module too, which start faster without

        axes = self._axes(group)
        rows = group.attributes.get("values", ("0",))
        values = [value for row in rows for value in _numbers(group, row)]
        shape = [len(index) for _, index in axes]
        if len(values) != math.prod(shape):
            raise SynthesisError(
                f"{group.place}: a table of these axes must have {math.prod(shape)} values, "
                f"not {len(values)}"
            )
        slews, loads = [0.0], [0.0]
        grid = np.array(values).reshape(shape)
        for axis, (variable, index) in reversed(list(enumerate(axes))):
            if variable in _SLEWS:
                slews = [self.time_unit * x for x in index]
            elif variable in _LOADS:
                loads = [self.load_unit * x for x in index]
            else:
                grid = grid.take(0, axis)
        if len(axes) == 2 and axes[0][0] in _LOADS:
            grid = grid.T
        table = self.time_unit * grid.reshape(len(slews), len(loads))
        return TimingTable(tuple(slews), tuple(loads), tuple(map(tuple, table.tolist())))

    def _axes(self, group: LibertyGroup) -> list[tuple[str, list[float]]]:
        """Return the variable and the points of each axis of a table."""
        template = self._templates.get(group.arguments[0] if group.arguments else "")
        axes = []
        for k in (1, 2):
            variable = template.text(f"variable_{k}") if template else ""
            points = group.text(f"index_{k}") or (template.text(f"index_{k}") if template else "")
            if variable:
                index = _numbers(group, points)
                if any(a >= b for a, b in pairwise(index)) or not index:
                    raise SynthesisError(
                        f"{group.place}: index_{k} must be rising numbers, not {points!r}"
                    )
                axes.append((variable, index))
        return axes


def _numbers(group: LibertyGroup, text: str) -> list[float]:
    try:
        return [finite(word) for word in text.replace(",", " ").split()]
    except ValueError:
        raise SynthesisError(f"{group.place}: a table must hold numbers, not {text!r}") from None
