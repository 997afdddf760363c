"""And-inverter graphs: read and written as AIGER, with cofactors, values and clauses for a solver.

A literal is twice a node, plus 1 if it is inverted. Node 0 is the constant false, the next ones are
the inputs, then the registers, then conjunctions of two literals each.
"""

import copy
import itertools
from collections.abc import Callable, Container, Iterable, Iterator, Mapping, Sequence
from pathlib import Path

import numpy as np
from numpy.typing import NDArray

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

    def __len__(self) -> int:
        """Number of nodes."""
        return len(self._operands)

    def with_outputs(self, outputs: Mapping[str, int]) -> "Graph":
        """The same graph with other outputs; nodes that one gets, the other has too."""
        found = copy.copy(self)
        found.outputs = dict(outputs)
        return found

    def operands(self, node: int) -> tuple[int, int] | None:
        """The two literals of a conjunction; None for an input and the constant."""
        pair = self._operands[node]
        return None if pair == (0, 0) else pair

    def input(self, name: str) -> int:
        """A new free bit."""
        self.inputs[name] = 2 * len(self._operands)
        self._operands.append((0, 0))
        return self.inputs[name]

    def bus(self, name: str, first: int, width: int) -> list[int]:
        """Some bits of an output, or of an input, lowest first."""
        found = self.outputs if f"{name}[0]" in self.outputs else self.inputs
        return [found[f"{name}[{first + k}]"] for k in range(width)]

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

    def choose(self, bit: int, one: int, zero: int) -> int:
        """One literal where a bit is 1, another where it is 0."""
        return self.both(self.both(bit, one) ^ 1, self.both(bit ^ 1, zero) ^ 1) ^ 1

    def all(self, literals: Iterable[int]) -> int:
        """The conjunction of literals."""
        found = TRUE
        for each in literals:
            found = self.both(found, each)
        return found

    def look_up(self, bits: Sequence[int], table: Sequence[bool]) -> int:
        """The entry of a table of 2^n at the number of n bits, lowest first."""
        found = [TRUE if each else FALSE for each in table]
        for bit in bits:
            found = [self.choose(bit, x, y) for y, x in zip(found[::2], found[1::2], strict=True)]
        return found[0]

    def sum(self, a: Sequence[int], b: Sequence[int], width: int) -> list[int]:
        """Bits of the sum of two unsigned numbers, lowest first, modulo 2^width."""
        found, carry = [], FALSE
        for k in range(width):
            x, y = (each[k] if k < len(each) else FALSE for each in (a, b))
            half = self.unlike(x, y)
            found.append(self.unlike(half, carry))
            carry = self.any([self.both(x, y), self.both(half, carry)])
        return found

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

    def cone(self, literals: Iterable[int], stop: Container[int] = ()) -> list[int]:
        """Conjunctions that literals depend on, operands first, but not beyond the nodes `stop`."""
        seen: set[int] = set()
        left = [each >> 1 for each in literals]
        while left:
            node = left.pop()
            if node in seen or node in stop or self._operands[node] == (0, 0):
                continue
            seen.add(node)
            left += [each >> 1 for each in self._operands[node]]
        return sorted(seen)

    def leaves(self, literals: Iterable[int]) -> set[int]:
        """The inputs, as nodes, that literals depend on."""
        ends = {each >> 1 for each in literals}
        for node in self.cone(literals):
            ends.update(each >> 1 for each in self._operands[node])
        return {node for node in ends if node and self._operands[node] == (0, 0)}

    def supports(self, kinds: Mapping[int, int]) -> list[int]:
        """For each node the union of the kinds of the inputs that it depends on.

        Args:
            kinds: for nodes of inputs, a set of kinds as bits of a number.
        """
        found = [0] * len(self)
        for node, (a, b) in enumerate(self._operands):
            found[node] = kinds.get(node, 0) if (a, b) == (0, 0) else found[a >> 1] | found[b >> 1]
        return found

    def cuts(
        self, literals: Iterable[int], supports: Sequence[int], others: int
    ) -> Callable[[int], frozenset[int]]:
        """Gives for a node those through which it depends on inputs that are not of some kinds.

        Args:
            literals: whose cone has the node. supports: of all nodes. others: those kinds, as bits.
            A node that depends on none of them is the only one for itself.
        """
        found: dict[int, frozenset[int]] = {}

        def cut(node: int) -> frozenset[int]:
            if not supports[node] & others:
                return frozenset([node] if node else [])
            return found.get(node, frozenset())

        for node in self.cone(literals):
            if supports[node] & others and supports[node] & ~others:
                a, b = self._operands[node]
                found[node] = cut(a >> 1) | cut(b >> 1)
        return cut

    def values(
        self, literals: Sequence[int], given: Mapping[int, NDArray[np.uint64]]
    ) -> list[NDArray[np.uint64]]:
        """Literals with 64 cases in each word.

        Args:
            literals: any. given: for literals of nodes, not inverted, words of the same number.
            Inputs that are not given are 0.
        """
        zero = np.zeros(len(next(iter(given.values()))), np.uint64)
        found = {0: zero, **{each >> 1: words for each, words in given.items()}}

        def at(literal: int) -> NDArray[np.uint64]:
            words = found.get(literal >> 1, zero)
            return ~words if literal & 1 else words

        for node in self.cone(literals, found):
            a, b = self._operands[node]
            found[node] = at(a) & at(b)
        return [at(each) for each in literals]

    def cofactor(self, literals: Sequence[int], values: Mapping[int, int]) -> list[int]:
        """Literals, with literals in place of some nodes.

        Args:
            literals: any.
            values: for literals of nodes, not inverted, what stands in their place.
        """
        new = {each >> 1: value for each, value in values.items()}
        for node in self.cone(literals, new):
            a, b = self._operands[node]
            new[node] = self.both(_at(new, a), _at(new, b))
        return [_at(new, each) for each in literals]

    def copied(self, into: "Graph", inputs: Mapping[str, int]) -> dict[str, int]:
        """The outputs as literals of another graph.

        Args:
            into: that graph. inputs: its literals in place of the inputs, by name.
        """
        at = {0: 0} | {
            self.inputs[name] >> 1: x for name, x in inputs.items() if name in self.inputs
        }
        for node in self.cone(self.outputs.values()):
            a, b = (at[each >> 1] ^ (each & 1) for each in self._operands[node])
            at[node] = into.both(a, b)
        return {name: at[bit >> 1] ^ (bit & 1) for name, bit in self.outputs.items()}

    def clauses(self, literals: Sequence[int], levels: int | None = None) -> list[list[int]]:
        """Clauses, in the signs of DIMACS, that define the cone of literals; see `variable`.

        With a number of levels, only nodes that many before the literals are defined.
        """
        nodes = self.cone(literals) if levels is None else self._near(literals, levels)
        found = [[self.variable(TRUE)]]
        for node in nodes:
            y = self.variable(2 * node)
            a, b = (self.variable(each) for each in self._operands[node])
            found += [[-y, a], [-y, b], [y, -a, -b]]
        return found

    def _near(self, literals: Iterable[int], levels: int) -> list[int]:
        """The nodes of some levels before literals, without inputs."""
        found = set[int]()
        level = {each >> 1 for each in literals}
        for _ in range(levels):
            here = {node for node in level - found if self.operands(node)}
            found |= here
            level = {each >> 1 for node in here for each in self._operands[node]}
        return sorted(found)

    def variable(self, literal: int) -> int:
        """The variable of a literal in clauses, negative if it is inverted."""
        return -(1 + (literal >> 1)) if literal & 1 else 1 + (literal >> 1)


def _at(new: Mapping[int, int], literal: int) -> int:
    return new.get(literal >> 1, literal & ~1) ^ (literal & 1)


def write_aiger(
    path: Path,
    graph: Graph,
    inputs: Sequence[int],
    outputs: Sequence[int],
    registers: Sequence[tuple[int, int]] = (),
) -> None:
    """Write literals of a graph as a binary AIGER file.

    Args:
        path: of the file. graph: of the literals. inputs: literals of the free bits, in order, not
        inverted; all that outputs depend on must be there. outputs: literals. registers: literals
        of registers, and what each takes; all start with 0.
    """
    ends = [*inputs, *(each for each, _ in registers)]
    place = {0: 0, **{each >> 1: 2 * k for k, each in enumerate(ends, 1)}}
    wanted = [*(after for _, after in registers), *outputs]
    order = graph.cone(wanted, place)
    place |= {node: 2 * k for k, node in enumerate(order, 1 + len(ends))}

    def at(literal: int) -> int:
        return place[literal >> 1] ^ (literal & 1)

    total = len(ends) + len(order)
    head = f"aig {total} {len(inputs)} {len(registers)} {len(outputs)} {len(order)}"
    data = bytearray("\n".join([head, *(str(at(each)) for each in wanted), ""]).encode())
    for node in order:
        pair = graph.operands(node)
        assert pair is not None
        high, low = sorted(map(at, pair), reverse=True)
        data += _number(place[node] - high) + _number(high - low)
    path.write_bytes(data)


def _number(value: int) -> bytes:
    found = bytearray()
    while value > 0x7F:
        found.append(value & 0x7F | 0x80)
        value >>= 7
    return bytes([*found, value])


UNDRIVEN = "undriven "
"""Prefix of inputs that are no port: what nothing drives. Each has a name of its own."""

_number_of_undriven = itertools.count()


def read_aiger(path: Path, names: Path, outputs: Sequence[str]) -> Graph:
    """The graph in a binary AIGER file and the file of names beside it, as Yosys writes them.

    Registers are read as inputs with their names, and what they take next as outputs with `NEXT`
    before these.

    Args:
        path, names: the two files. outputs: names of all bits of outputs, in the order of the
        ports: Yosys gives none to those that are constant.

    Raises:
        ValueError: it is no such file, or the outputs are others.
    """
    heading, _, rest = path.read_bytes().partition(b"\n")
    kind, *numbers = heading.split()
    if kind != b"aig" or len(numbers) < 5:
        raise ValueError(f"{path.name} must be a binary AIGER file")
    _, inputs, registers, ends_count, count = map(int, numbers[:5])
    lines = []
    for _ in range(registers + ends_count):
        line, _, rest = rest.partition(b"\n")
        lines.append(int(line.split()[0]))
    named = _names(names, inputs, registers)
    ends_names = _output_names(outputs, named["output"], lines[registers:], path.name)
    register_names = [*named["latch"].values()]
    graph = Graph([*named["input"].values(), *register_names])
    literals = [2 * node for node in range(1 + inputs + registers)]
    numbers_left = _numbers(rest)
    for index in range(count):
        left = 2 * (1 + inputs + registers + index)
        first = left - next(numbers_left)
        second = first - next(numbers_left)
        operands = (literals[each >> 1] ^ (each & 1) for each in (first, second))
        literals.append(graph.both(*operands))
    ends = [*(NEXT + name for name in register_names), *ends_names]
    graph.outputs = {
        name: literals[each >> 1] ^ (each & 1) for name, each in zip(ends, lines, strict=True)
    }
    return graph


def _output_names(
    outputs: Sequence[str], known: Mapping[int, str], literals: Sequence[int], file: str
) -> list[str]:
    """The name of each output; those that are constant have none in the file of names.

    They are told apart by their order, or need not be if all are the same constant.
    """
    missing = [name for name in outputs if name not in set(known.values())]
    gaps = [k for k in range(len(literals)) if k not in known]
    in_order = len(outputs) == len(literals) and all(outputs[k] == x for k, x in known.items())
    alike = len({literals[k] for k in gaps}) < 2 and len(missing) == len(gaps)
    if not in_order and not (alike and set(known.values()) <= set(outputs)):
        raise ValueError(f"{file} must have the outputs {', '.join(outputs)} in this order")
    if in_order:
        return list(outputs)
    return [name for _, name in sorted({**known, **dict(zip(gaps, missing, strict=True))}.items())]


def _numbers(data: bytes) -> Iterator[int]:
    """The numbers in the part of conjunctions, 7 bits a byte, lowest first."""
    value = shift = 0
    for byte in data:
        value |= (byte & 0x7F) << shift
        shift += 7
        if byte < 0x80:
            yield value
            value = shift = 0


def _names(path: Path, inputs: int, registers: int) -> dict[str, dict[int, str]]:
    """Names of the bits of each kind by their number; every input and register has one."""
    found: dict[str, dict[int, str]] = {
        "input": {k: f"{UNDRIVEN}{next(_number_of_undriven)}" for k in range(inputs)},
        "latch": {k: f"register {k}" for k in range(registers)},
        "output": {},
    }
    for line in path.read_text().splitlines():
        kind, index, bit, name = line.split()[:4]
        kind = kind.removeprefix("inv")
        if kind in found:
            found[kind][int(index)] = f"{name}[{bit}]"
    return found
