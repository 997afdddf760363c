"""And-inverter graphs: read from AIGER, with cofactors, and clauses for a SAT solver.

A literal is twice a node, plus 1 if it is inverted. Node 0 is the constant false, the next ones are
the inputs, then the registers, then conjunctions of two literals each.
"""

from collections.abc import Iterable, Iterator, Mapping, Sequence
from pathlib import Path

FALSE, TRUE = 0, 1

NEXT = "next "
"""Prefix of the outputs with the next values of registers."""


class Graph:
    """A graph that grows: equal conjunctions are one node, and constants disappear.

    Args:
        inputs: names of its free bits, as "name[bit]".
    """

    def __init__(self, inputs: Iterable[str]) -> None:
        self.inputs = {name: 2 * (1 + k) for k, name in enumerate(inputs)}
        self.outputs: dict[str, int] = {}
        self._operands: list[tuple[int, int]] = [(0, 0)] * (1 + len(self.inputs))
        self._found: dict[tuple[int, int], int] = {}

    def both(self, a: int, b: int) -> int:
        """The conjunction of two literals."""
        if a > b:
            a, b = b, a
        if a == FALSE or a == b ^ 1:
            return FALSE
        if a in (TRUE, b):
            return b
        if (a, b) not in self._found:
            self._found[a, b] = 2 * len(self._operands)
            self._operands.append((a, b))
        return self._found[a, b]

    def unlike(self, a: int, b: int) -> int:
        """The exclusive or of two literals."""
        return self.both(self.both(a, b ^ 1) ^ 1, self.both(a ^ 1, b) ^ 1) ^ 1

    def any(self, literals: Iterable[int]) -> int:
        """The disjunction of literals."""
        found = TRUE
        for each in literals:
            found = self.both(found, each ^ 1)
        return found ^ 1

    def at_most(self, bits: Sequence[int], number: int) -> int:
        """Whether the number of some bits, lowest first, is at most a constant."""
        found = TRUE
        for place, bit in enumerate(bits):
            found = (
                self.both(bit, found ^ 1) ^ 1 if number >> place & 1 else self.both(bit ^ 1, found)
            )
        return found

    def cone(self, literals: Iterable[int], stop: Mapping[int, int] | None = None) -> list[int]:
        """Conjunctions that literals depend on, operands first, but not beyond the nodes `stop`."""
        ends = stop or {}
        seen: set[int] = set()
        left = [each >> 1 for each in literals]
        while left:
            node = left.pop()
            if node in seen or node in ends or self._operands[node] == (0, 0):
                continue
            seen.add(node)
            left += [each >> 1 for each in self._operands[node]]
        return sorted(seen)

    def cofactor(self, literals: Sequence[int], values: Mapping[int, int]) -> list[int]:
        """Literals, with literals in place of some inputs.

        Args:
            literals: any.
            values: for literals of inputs, not inverted, what stands in their place.
        """
        new = {each >> 1: value for each, value in values.items()}
        for node in self.cone(literals, new):
            a, b = self._operands[node]
            new[node] = self.both(_at(new, a), _at(new, b))
        return [_at(new, each) for each in literals]

    def clauses(self, literals: Sequence[int]) -> list[list[int]]:
        """Clauses, in the signs of DIMACS, that define the cone of literals; see `variable`."""
        found = [[self.variable(TRUE)]]
        for node in self.cone(literals):
            y = self.variable(2 * node)
            a, b = (self.variable(each) for each in self._operands[node])
            found += [[-y, a], [-y, b], [y, -a, -b]]
        return found

    def variable(self, literal: int) -> int:
        """The variable of a literal in clauses, negative if it is inverted."""
        return -(1 + (literal >> 1)) if literal & 1 else 1 + (literal >> 1)


def _at(new: Mapping[int, int], literal: int) -> int:
    return new.get(literal >> 1, literal & ~1) ^ (literal & 1)


def read_aiger(path: Path, names: Path) -> Graph:
    """The graph in a binary AIGER file and the file of names beside it, as Yosys writes them.

    Registers are read as inputs with their names, and what they take next as outputs with `NEXT`
    before these.

    Raises:
        ValueError: it is no such file.
    """
    heading, _, rest = path.read_bytes().partition(b"\n")
    kind, *numbers = heading.split()
    if kind != b"aig" or len(numbers) < 5:
        raise ValueError(f"{path.name} must be a binary AIGER file")
    _, inputs, registers, outputs, count = map(int, numbers[:5])
    lines = []
    for _ in range(registers + outputs):
        line, _, rest = rest.partition(b"\n")
        lines.append(int(line.split()[0]))
    named = _names(names, inputs, registers, outputs)
    graph = Graph([*named["input"], *named["latch"]])
    literals = [2 * node for node in range(1 + inputs + registers)]
    numbers_left = _numbers(rest)
    for index in range(count):
        left = 2 * (1 + inputs + registers + index)
        first = left - next(numbers_left)
        second = first - next(numbers_left)
        operands = (literals[each >> 1] ^ (each & 1) for each in (first, second))
        literals.append(graph.both(*operands))
    ends = [*(NEXT + name for name in named["latch"]), *named["output"]]
    graph.outputs = {
        name: literals[each >> 1] ^ (each & 1) for name, each in zip(ends, lines, strict=True)
    }
    return graph


def _numbers(data: bytes) -> Iterator[int]:
    """The numbers in the part of conjunctions, 7 bits a byte, lowest first."""
    value = shift = 0
    for byte in data:
        value |= (byte & 0x7F) << shift
        shift += 7
        if byte < 0x80:
            yield value
            value = shift = 0


def _names(path: Path, inputs: int, registers: int, outputs: int) -> dict[str, list[str]]:
    """Names of the bits of each kind, in order."""
    found = {
        "input": [f"input {k}" for k in range(inputs)],
        "latch": [f"register {k}" for k in range(registers)],
        "output": [f"output {k}" for k in range(outputs)],
    }
    for line in path.read_text().splitlines():
        kind, index, bit, name = line.split()[:4]
        kind = kind.removeprefix("inv")
        if kind in found:
            found[kind][int(index)] = f"{name}[{bit}]"
    return found
