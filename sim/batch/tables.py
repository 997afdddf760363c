"""Logic of single bits as tables of three inputs, which vector units evaluate in one instruction.

Covers the cells with cuts, as mappers for lookup tables do: for each cell the sets of up to three
bits that determine it, of those the one with the least area flow (Manohararajah, Brown and
Vranesic, "Heuristics for area minimization in LUT-based FPGA technology mapping", 2004). A full
adder becomes two tables.
"""

from collections import Counter
from collections.abc import Callable, Iterable, Mapping
from itertools import product
from typing import TypeGuard

from axs6.sim.batch.netlist import Call, Cell, Netlist, Operand, Piece, Word

TABLE = "$table"
"""Type of the cells that look up bits `A`, `B` and `C`, highest first, in parameter `TABLE`."""

PORTS = "ABC"
PATTERNS = (0xF0, 0xCC, 0xAA)
"""Bit i is what each port has in row i of a table."""

CUTS = 8
"""Cuts kept for each cell."""

LOGIC: Mapping[str, Callable[[Mapping[str, int]], int]] = {
    "$and": lambda x: x["A"] & x["B"],
    "$or": lambda x: x["A"] | x["B"],
    "$xor": lambda x: x["A"] ^ x["B"],
    "$xnor": lambda x: ~(x["A"] ^ x["B"]),
    "$not": lambda x: ~x["A"],
    "$mux": lambda x: x["A"] & ~x["S"] | x["B"] & x["S"],
}
"""What cells of one bit compute."""

Cut = frozenset[Piece]


def with_tables(netlist: Netlist) -> Netlist:
    """The netlist, changed, and its functions: tables in the place of cells of one bit."""
    for each in (*netlist.functions, netlist):
        each.cells = _Cover(each).cells()
    return netlist


class _Cover:
    def __init__(self, netlist: Netlist) -> None:
        self._netlist = netlist
        self._logic = {_bit(cell.output): cell for cell in netlist.cells if _is_logic(cell)}
        self._readers = Counter(bit for operand in _operands(netlist) for bit in operand)
        self._cuts: dict[Piece, list[Cut]] = {}
        self._flow: dict[Piece, float] = {}
        for bit, cell in self._logic.items():
            self._find_cuts(bit, cell)

    def cells(self) -> list[Cell | Call]:
        """The cells that remain, and tables in the place of others."""
        read = {id(cell): cell.read for cell in self._netlist.cells if not _is_logic(cell)}
        needed = {_bit(word) for words in read.values() for word in words if word.width == 1}
        needed |= {bit for operand in _ends(self._netlist) for bit in operand}
        cells: list[Cell | Call] = []
        for cell in reversed(self._netlist.cells):
            bit = _bit(cell.driven[0]) if id(cell) not in read else None
            if bit is None:
                cells.append(cell)
            elif bit in needed:
                cut = self._cuts[bit][0]
                cells.append(self._table(bit, cut))
                needed |= cut
        return cells[::-1]

    def _find_cuts(self, bit: Piece, cell: Cell) -> None:
        choices = [self._choices(operand[0]) for operand in cell.operands.values()]
        found = {cut for picked in product(*choices) if len(cut := frozenset().union(*picked)) <= 3}
        flow = {cut: 1 + sum(self._share(leaf) for leaf in cut) for cut in found}
        order = {cut: place for place, cut in enumerate(sorted(found, key=self._names))}
        self._cuts[bit] = sorted(found, key=lambda cut: (flow[cut], len(cut), order[cut]))[:CUTS]
        self._flow[bit] = flow[self._cuts[bit][0]]

    def _choices(self, piece: Piece) -> list[Cut]:
        if piece.word is None:
            return [frozenset()]
        return [frozenset([piece]), *self._cuts.get(piece, [])]

    def _share(self, leaf: Piece) -> float:
        return self._flow.get(leaf, 0.0) / max(1, self._readers[leaf])

    @staticmethod
    def _names(cut: Cut) -> list[tuple[str, int]]:
        return sorted((leaf.word.name, leaf.offset) for leaf in cut if leaf.word is not None)

    def _table(self, bit: Piece, cut: Cut) -> Cell:
        cell = self._logic[bit]
        if cut == {op[0] for op in cell.operands.values()} and len(cut) < len(PORTS):
            return cell
        leaves = sorted(cut, key=lambda leaf: self._names(frozenset([leaf])))
        values = dict(zip(leaves, PATTERNS, strict=False))
        parameters = {"TABLE": self._value(bit, values) & 0xFF}
        padded = [*leaves, *[Piece(None, 0, 1)] * (len(PORTS) - len(leaves))]
        operands = {port: (leaf,) for port, leaf in zip(PORTS, padded, strict=True)}
        return Cell(TABLE, parameters, operands, cell.output)

    def _value(self, piece: Piece, values: dict[Piece, int]) -> int:
        if piece.word is None:
            return -piece.value
        if piece not in values:
            cell = self._logic[piece]
            inputs = {port: self._value(op[0], values) for port, op in cell.operands.items()}
            values[piece] = LOGIC[cell.kind](inputs)
        return values[piece]


def _is_logic(cell: Cell | Call) -> TypeGuard[Cell]:
    return (
        isinstance(cell, Cell)
        and cell.kind in LOGIC
        and cell.output.width == 1
        and all(len(op) == 1 and op[0].width == 1 for op in cell.operands.values())
    )


def _bit(word: Word) -> Piece:
    return Piece(word, 0, 1)


def _ends(netlist: Netlist) -> Iterable[Operand]:
    """What registers and outputs read."""
    for outputs in netlist.outputs.values():
        yield from outputs
    for register in netlist.registers:
        yield from (op for op in (register.data, register.enable, register.reset) if op is not None)


def _operands(netlist: Netlist) -> Iterable[Operand]:
    for cell in netlist.cells:
        yield from cell.operands.values() if isinstance(cell, Cell) else cell.operands
    yield from _ends(netlist)
