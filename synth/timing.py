"""Timing of mapped netlists: the longest path, in cells of a library or in levels of gates.

With a library this is static timing analysis as ABC's `stime` does it: rising and falling edges
apart, the worst slew at each net, delays from the library's tables, no wire load. Unlike `stime` it
follows registers and adder cells, which ABC does not see: a path starts at an input port or, after
the delay from the clock edge, at a register, and ends at an output port or, before the setup time,
at a register. The clock is ideal.
"""

from collections.abc import Iterable, Mapping
from dataclasses import dataclass, replace
from typing import Any

from axs6.synth import gates
from axs6.synth.cells import EDGES, Arc, Cell, CellLibrary
from axs6.synth.errors import SynthesisError
from axs6.synth.graph import Instance, MappedNetlist, Net
from axs6.synth.report import Timing
from axs6.synth.surroundings import Surroundings

_INVERTED = {"rise": "fall", "fall": "rise"}
_CAUSES = {
    "positive_unate": lambda edge: (edge,),
    "negative_unate": lambda edge: (_INVERTED[edge],),
    "non_unate": lambda edge: EDGES,
}


@dataclass(frozen=True)
class _Arrival:
    """When and with which slew an edge comes at a net, after how many cells, from where."""

    time: float
    slew: float
    levels: int
    start: str


_Edges = Mapping[str, _Arrival]


def library_timing(
    module: Mapping[str, Any], library: CellLibrary, around: Surroundings, model: str
) -> Timing:
    """Return the longest path of a flat module of library cells.

    Args:
        module: of a Yosys JSON netlist.
        library: the cells.
        around: driver and load of the module.
        model: description of the library for the report.

    Raises:
        SynthesisError: a cell is not in the library, a register has no delay from its clock or no
            setup time, or gates drive each other in a loop.
    """
    netlist = MappedNetlist(module, lambda cell, pin: _direction(library[cell], pin))
    arrivals = _arrivals(netlist, library, around)
    ends = [
        (*_latest(arrivals[net]), name)
        for net, name in netlist.outputs.items()
        if arrivals.get(net)
    ]
    registers = False
    for instance in netlist.instances:
        cell = library[instance.cell]
        if cell.is_register:
            registers = True
            _check_register(library, cell, instance)
            ends += _at_register(netlist, instance, cell, arrivals)
    model = (
        f"{model}; inputs driven by {around.driver.name}, outputs loaded with {around.load:g} fF"
    )
    if not ends:
        return Timing(model, 0.0, 0)
    delay, last, end = max(ends, key=lambda found: found[0])
    delay = round(delay, 3)
    return Timing(
        model,
        delay,
        last.levels,
        round(1e6 / delay, 3) if registers and delay else None,
        last.start,
        end,
    )


def _direction(cell: Cell, pin: str) -> str:
    return "input" if pin in cell.inputs else "output" if pin in cell.functions else "other"


def _check_register(library: CellLibrary, cell: Cell, instance: Instance) -> None:
    """Check that no path from or to a register was left out."""
    place = f"library {library.name}, cell {cell.name}"
    for pin in instance.outputs:
        if all(arc.output != pin for arc in cell.arcs):
            raise SynthesisError(
                f"{place}, pin {pin} must have timing from its clock, since gates have delays, "
                "and has none"
            )
    if not cell.setups:
        raise SynthesisError(
            f"{place} must have a setup time, since gates have delays, and has none"
        )


def _arrivals(
    netlist: MappedNetlist, library: CellLibrary, around: Surroundings
) -> dict[Net, _Edges]:
    loads = {
        net: sum(library[reader.cell].inputs[pin] for reader, pin in readers)
        for net, readers in netlist.readers.items()
    }
    for net in netlist.outputs:
        loads[net] = loads.get(net, 0.0) + around.load
    arrivals: dict[Net, _Edges] = {}
    for net, name in netlist.inputs.items():
        source: _Edges = dict.fromkeys(EDGES, _Arrival(0.0, 0.0, -1, name))
        driven = [(arc, source) for arc in around.driver.arcs]
        arrivals[net] = _through(driven, loads.get(net, 0.0))
    for instance in netlist.ordered(lambda cell: library[cell].is_register):
        cell = library[instance.cell]
        for pin, net in instance.outputs.items():
            clock: _Edges = dict.fromkeys(EDGES, _Arrival(0.0, 0.0, 0, netlist.name(net)))
            arcs = [
                (arc, clock if cell.is_register else arrivals.get(instance.inputs[arc.source], {}))
                for arc in cell.arcs
                if arc.output == pin and arc.source in instance.inputs
            ]
            arrivals[net] = _through(arcs, loads.get(net, 0.0))
    return arrivals


def _through(arcs: Iterable[tuple[Arc, _Edges]], load: float) -> dict[str, _Arrival]:
    """Return the arrivals behind a cell's arcs: the latest edge of each kind, the worst slew."""
    found: dict[str, _Arrival] = {}
    for arc, source in arcs:
        for edge, table in arc.delay.items():
            for cause in _CAUSES[arc.sense](edge):
                before = source.get(cause)
                if before is None:
                    continue
                time = before.time + table.at(before.slew, load)
                slew = arc.slew[edge].at(before.slew, load)
                best = found.get(edge)
                if best is None:
                    found[edge] = _Arrival(time, slew, before.levels + 1, before.start)
                elif time > best.time:
                    worst = max(slew, best.slew)
                    found[edge] = _Arrival(time, worst, before.levels + 1, before.start)
                elif slew > best.slew:
                    found[edge] = replace(best, slew=slew)
    return found


def _latest(edges: Mapping[str, _Arrival]) -> tuple[float, _Arrival]:
    last = max(edges.values(), key=lambda arrival: arrival.time)
    return last.time, last


def _at_register(
    netlist: MappedNetlist,
    instance: Instance,
    cell: Cell,
    arrivals: Mapping[Net, Mapping[str, _Arrival]],
) -> list[tuple[float, _Arrival, str]]:
    """Return the paths that end at a register: when each must start before the clock edge."""
    state = next(iter(instance.outputs.values()), None)
    end = netlist.name(state) if state is not None else instance.name
    return [
        (arrival.time + table.at(arrival.slew, 0.0), arrival, end)
        for pin, setup in cell.setups.items()
        if pin in instance.inputs
        for edge, table in setup.items()
        if (arrival := arrivals.get(instance.inputs[pin], {}).get(edge)) is not None
    ]


def level_timing(module: Mapping[str, Any], library: CellLibrary | None = None) -> Timing:
    """Return the levels of gates on the longest path of a flat module.

    Args:
        module: of a Yosys JSON netlist.
        library: its cells; None stands for the generic gates.

    Raises:
        SynthesisError: a cell is not in the library, or gates drive each other in a loop.
    """

    def direction(cell: str, pin: str) -> str:
        if library is not None:
            return _direction(library[cell], pin)
        return "output" if pin in "YQ" else "input"

    def is_register(cell: str) -> bool:
        return library[cell].is_register if library is not None else not gates.is_gate(cell)

    netlist = MappedNetlist(module, direction)
    levels: dict[Net, tuple[int, str]] = {net: (0, name) for net, name in netlist.inputs.items()}
    for instance in netlist.ordered(is_register):
        sources = [levels[net] for net in instance.inputs.values() if net in levels]
        most, start = max(sources, key=lambda source: source[0], default=(0, "a constant"))
        for net in instance.outputs.values():
            registered = is_register(instance.cell)
            levels[net] = (0, netlist.name(net)) if registered else (most + 1, start)
    ends = [(*levels[net], name) for net, name in netlist.outputs.items() if net in levels]
    for instance in netlist.instances:
        if is_register(instance.cell):
            end = netlist.name(next(iter(instance.outputs.values())))
            ends += [(*levels[net], end) for net in instance.inputs.values() if net in levels]
    model = "levels of gates" if library is None else "levels of cells"
    if not ends:
        return Timing(model, levels=0)
    most, start, end = max(ends, key=lambda found: found[0])
    return Timing(model, levels=most, start=start, end=end)
