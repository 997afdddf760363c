"""Logic of single bits as tables of three inputs, which vector units evaluate in one instruction.

Covers the gates with cuts, as mappers for lookup tables do: for each gate the sets of up to three
bits that determine it, of those the one with the least area flow (Manohararajah, Brown and
Vranesic, "Heuristics for area minimization in LUT-based FPGA technology mapping", 2004), and at
last the one that adds the fewest tables to the others' ("exact area": Mishchenko, Chatterjee and
Brayton, "Improvements to technology mapping for LUT-based FPGAs", 2006). A full adder becomes two
tables.
"""

from collections import Counter
from collections.abc import Iterable
from dataclasses import dataclass

from axs6.sim.batch.logic import Literal, Logic
from axs6.sim.batch.netlist import Call, Netlist

PATTERNS = (0xF0, 0xCC, 0xAA)
"""Bit i is what each of the three inputs has in row i of a table."""

CUTS = 6
"""Cuts kept for each gate."""

ROUNDS = 2
"""Covers made by area flow; each but the first counts the readers that the one before left."""

EXACT_ROUNDS = 2
"""Times that the cuts of a cover are tried in place of each other."""

Cut = frozenset[int]
"""Numbers of the nodes that determine another."""


@dataclass(frozen=True, eq=False)
class LookupTable:
    """A lookup: bit i of `table` where `read`, highest first, has the value i."""

    table: int
    read: tuple[Literal, ...]
    driven: tuple[Literal]


Operation = LookupTable | Call


def with_tables(netlist: Netlist) -> list[Operation]:
    """Tables and calls that compute all that outputs, registers and calls read.

    They stand in no particular order. A bit and its complement are two bits here.
    """
    wanted = [bit for bit in dict.fromkeys(netlist.ends()) if bit > 1]
    cover = _Cover(netlist.logic, wanted)
    return [*cover.tables(), *netlist.calls]


class _Cover:
    """The cut of each gate, and which gates get a table."""

    def __init__(self, logic: Logic, wanted: Iterable[Literal]) -> None:
        self._nodes = logic.nodes
        self._wanted = tuple(wanted)
        self._gates = self._reached()
        self._cuts: dict[int, list[Cut]] = {}
        self._readers = Counter(bit >> 1 for bit in self._wanted)
        for node in self._gates:
            self._readers.update(bit >> 1 for bit in self._nodes[node].operands)
        for _ in range(ROUNDS):
            self._flow: dict[int, float] = {}
            for node in self._gates:
                self._find_cuts(node)
            self._chosen = self._choose()
            self._readers = Counter(bit >> 1 for bit in self._wanted)
            for node in self._chosen:
                self._readers.update(self._cuts[node][0])
        for _ in range(EXACT_ROUNDS):
            for node in self._gates:
                if self._readers[node]:
                    self._exchange(node)
        self._chosen = self._choose()

    def tables(self) -> list[LookupTable]:
        """A table for each bit that is read and is not a leaf."""
        leaves = (2 * leaf for node in self._chosen for leaf in self._cuts[node][0])
        read = dict.fromkeys((*self._wanted, *leaves))
        return [self._table(bit) for bit in read if bit & 1 or self._is_gate(bit >> 1)]

    def _is_gate(self, node: int) -> bool:
        return bool(self._nodes[node].operands)

    def _reached(self) -> list[int]:
        """Gates that take part in the wanted bits, each after those that it reads."""
        found: set[int] = set()
        waiting = [bit >> 1 for bit in self._wanted]
        while waiting:
            node = waiting.pop()
            if node not in found and self._is_gate(node):
                found.add(node)
                waiting += [bit >> 1 for bit in self._nodes[node].operands]
        return sorted(found)

    def _find_cuts(self, node: int) -> None:
        found: set[Cut] = {frozenset()}
        for bit in self._nodes[node].operands:
            choices = [frozenset([bit >> 1]), *self._cuts.get(bit >> 1, [])]
            found = {a | b for a in found for b in choices if len(a | b) <= len(PATTERNS)}
        flow = {cut: 1 + sum(map(self._share, cut)) for cut in found}
        best = sorted(found, key=lambda cut: (flow[cut], len(cut), sorted(cut)))[:CUTS]
        self._cuts[node] = best
        self._flow[node] = flow[best[0]]

    def _share(self, node: int) -> float:
        return self._flow.get(node, 0.0) / max(1, self._readers[node])

    def _exchange(self, node: int) -> None:
        """Give a gate of the cover the cut with which it has the fewest tables."""
        cuts = self._cuts[node]
        self._read(cuts[0], -1)
        tables = []
        for cut in cuts:
            tables.append(self._read(cut, 1))
            self._read(cut, -1)
        best = cuts.pop(tables.index(min(tables)))
        cuts.insert(0, best)
        self._read(best, 1)

    def _read(self, cut: Cut, change: int) -> int:
        """Count a reader of a cut's nodes more or less; how many tables begin or end with it."""
        found = 0
        waiting = [cut]
        while waiting:
            found += 1
            for leaf in waiting.pop():
                before = self._readers[leaf]
                self._readers[leaf] = before + change
                if min(before, before + change) == 0 and self._is_gate(leaf):
                    waiting.append(self._cuts[leaf][0])
        return found

    def _choose(self) -> list[int]:
        """Gates that get a table when each has its best cut, readers first."""
        needed = {bit >> 1 for bit in self._wanted}
        chosen = []
        for node in reversed(self._gates):
            if node in needed:
                chosen.append(node)
                needed |= self._cuts[node][0]
        return chosen

    def _table(self, bit: Literal) -> LookupTable:
        node = bit >> 1
        cut = sorted(self._cuts[node][0]) if self._is_gate(node) else [node]
        values = dict(zip(cut, PATTERNS, strict=False))
        table = (self._value(node, values) ^ -(bit & 1)) & 0xFF
        return LookupTable(table, tuple(2 * leaf for leaf in cut), (bit,))

    def _value(self, node: int, values: dict[int, int]) -> int:
        """The column of a truth table, from those of a cut's nodes."""
        if node not in values:
            kind = self._nodes[node].kind
            x, y, *z = (
                self._value(bit >> 1, values) ^ -(bit & 1) for bit in self._nodes[node].operands
            )
            if kind == "mux":
                values[node] = y & ~x | z[0] & x
            else:
                values[node] = x & y if kind == "and" else x ^ y
        return values[node]
