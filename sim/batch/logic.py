"""Logic of single bits as a graph in which equal expressions are one node."""

from dataclasses import dataclass

Literal = int
"""A bit: twice the number of its node, and 1 more where it is the node's complement."""

FALSE: Literal = 0
TRUE: Literal = 1


@dataclass(frozen=True)
class Node:
    """A gate: its kind and the bits it reads. A leaf reads none."""

    kind: str
    operands: tuple[Literal, ...] = ()


class Logic:
    """A graph of AND, XOR and multiplexers; node 0 is the constant 0.

    The methods return bits. They simplify constants, equal and complementary operands, and
    return the node that is there already for an expression that was asked for before.
    """

    def __init__(self) -> None:
        self.nodes = [Node("leaf")]
        self._known: dict[Node, Literal] = {}

    def leaf(self) -> Literal:
        """A new bit that comes from outside."""
        self.nodes.append(Node("leaf"))
        return 2 * len(self.nodes) - 2

    def both(self, a: Literal, b: Literal) -> Literal:
        """`a & b`."""
        a, b = sorted((a, b))
        if a == FALSE or a == b ^ 1:
            return FALSE
        return b if a in (TRUE, b) else self._node("and", a, b)

    def either(self, a: Literal, b: Literal) -> Literal:
        """`a | b`."""
        return self.both(a ^ 1, b ^ 1) ^ 1

    def differ(self, a: Literal, b: Literal) -> Literal:
        """`a ^ b`."""
        inverted = (a ^ b) & 1
        a, b = sorted((a & ~1, b & ~1))
        if a == b:
            return inverted
        return (b if a == FALSE else self._node("xor", a, b)) ^ inverted

    def choose(self, select: Literal, low: Literal, high: Literal) -> Literal:
        """`high` where `select` is 1, else `low`."""
        if select & 1:
            select, low, high = select ^ 1, high, low
        if select == FALSE or low == high:
            return low
        low = FALSE if low == select else TRUE if low == select ^ 1 else low
        high = TRUE if high == select else FALSE if high == select ^ 1 else high
        if low == high ^ 1:
            return self.differ(select, low)
        if low == FALSE:
            return self.both(select, high)
        if high == FALSE:
            return self.both(select ^ 1, low)
        if low == TRUE:
            return self.either(select ^ 1, high)
        if high == TRUE:
            return self.either(select, low)
        inverted = low & 1
        return self._node("mux", select, low ^ inverted, high ^ inverted) ^ inverted

    def sum(self, a: Literal, b: Literal, carry: Literal) -> tuple[Literal, Literal]:
        """A full adder: its sum and its carry."""
        half = self.differ(a, b)
        return self.differ(half, carry), self.choose(half, a, carry)

    def _node(self, kind: str, *operands: Literal) -> Literal:
        node = Node(kind, operands)
        if node not in self._known:
            self.nodes.append(node)
            self._known[node] = 2 * len(self.nodes) - 2
        return self._known[node]
