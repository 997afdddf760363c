"""Requirements of a library for mapping gates and timing them.

ABC and the reports of delays rely on them: ABC crashes otherwise.
"""

from collections.abc import Sequence
from itertools import product

from axs6.synth.cells import EDGES, Cell, CellLibrary
from axs6.synth.errors import TOO_FEW, SynthesisError

_MOST_INPUTS = 8
"""Gates of more inputs are not looked into: their truth tables would be too large."""


def check_library(library: CellLibrary, source: str) -> None:
    """Check the cells that logic is mapped to; `source` is the library, for messages.

    Raises:
        SynthesisError: the function of a gate is no expression of its inputs, a timing lacks
            tables, some gates have delays and another has not, or there is no inverter, no gate
            of two inputs or no third gate.
    """
    usable = [cell for cell in library.cells.values() if not cell.dont_use]
    gates = [cell for cell in usable if not cell.is_register and any(cell.functions.values())]
    for cell in usable:
        _check_tables(cell, source)
    timed = any(cell.arcs for cell in gates)
    for gate in gates:
        for output, function in gate.functions.items():
            if function and len(gate.inputs) <= _MOST_INPUTS:
                _check_output(gate, output, source, timed=timed)
    _check_kinds(library, gates, source)


def _place(source: str, cell: Cell, pin: str) -> str:
    return f"{source}, cell {cell.name}, pin {pin}"


def _check_tables(cell: Cell, source: str) -> None:
    """Check that each timing has delays, and slews beside them."""
    for arc in cell.arcs:
        missing = [f"{edge}_transition" for edge in arc.delay if edge not in arc.slew]
        if not arc.delay:
            missing = [f"cell_{edge}" for edge in EDGES]
        if missing:
            raise SynthesisError(
                f"{_place(source, cell, arc.output)}: timing from {arc.source} must have "
                f"{' and '.join(missing)}, and does not"
            )


def _check_output(gate: Cell, output: str, source: str, *, timed: bool) -> None:
    """Check the function of an output and, with `timed`, that there are delays of both edges."""
    truth = gate.truth(output)
    if truth is None:
        raise SynthesisError(
            f"{_place(source, gate, output)}: function must be an expression of "
            f"{', '.join(gate.inputs) or '0 and 1'}, not {gate.functions[output]!r}"
        )
    for i, pin in enumerate(gate.inputs):
        if not timed or not _depends(truth, i, len(gate.inputs)):
            continue
        arcs = [arc for arc in gate.arcs if (arc.source, arc.output) == (pin, output)]
        if not arcs:
            raise SynthesisError(
                f"{_place(source, gate, output)} must have timing from {pin}, since other gates "
                "have delays, and has none"
            )
        if missing := [edge for edge in EDGES if all(edge not in arc.delay for arc in arcs)]:
            raise SynthesisError(
                f"{_place(source, gate, output)}: timing from {pin} must have "
                f"cell_{missing[0]}, and does not"
            )


def _depends(truth: int, i: int, inputs: int) -> bool:
    """Say whether a function depends on its input i."""
    low = (row for row in range(1 << inputs) if not row >> i & 1)
    return any((truth >> row ^ truth >> (row | 1 << i)) & 1 for row in low)


def _check_kinds(library: CellLibrary, gates: Sequence[Cell], source: str) -> None:
    """Check that the library has the gates that ABC needs."""
    if library.inverter is None:
        raise SynthesisError(f"{source} must have an inverter and has none")
    rows = (0b0001, 0b0010, 0b0100, 0b1000)
    if not any(library.gates(2, row ^ mask) for row, mask in product(rows, (0, 0b1111))):
        raise SynthesisError(
            f"{source} must have a gate of two inputs, NAND, NOR, AND or OR, and has none"
        )
    kinds = {_kind(gate): gate.name for gate in gates}
    if len(kinds) < 3:
        names = " and ".join(sorted(kinds.values()))
        raise SynthesisError(f"{source} {TOO_FEW} and has only those of {names}")


def _kind(gate: Cell) -> tuple[int, tuple[int | str | None, ...]]:
    """Return the number of inputs and the functions, which ABC tells gates apart by."""
    small = len(gate.inputs) <= _MOST_INPUTS
    functions = tuple(
        gate.truth(output) if small else function for output, function in gate.functions.items()
    )
    return len(gate.inputs), functions
