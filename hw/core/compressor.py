"""Compressor trees: the bits of many numbers become one or two numbers, by full and half adders.

A tree is planned before it is built. The plan knows when each bit arrives and gives every adder
the earliest bits of a column, the last of them as carry in: the three-greedy method of Stelling,
Martel, Oklobdzija and Ravi (IEEE Transactions on Computers 47, 1998). A plan can be cut at any
level, so that registers may stand within the tree.
"""

import heapq
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from typing import NamedTuple

from amaranth.hdl import Cat, Const, Module, Signal, Value


class Bit(NamedTuple):
    """One bit of a column.

    `level` counts the exclusive-or gates that it waits for, `node` is the input or adder output
    that it is, and `inverted` makes it the complement of that.
    """

    level: int
    node: int
    inverted: bool = False

    def complement(self) -> "Bit":
        """The bit inverted, where its user may take it so."""
        return self._replace(inverted=not self.inverted)


ONE = Bit(0, -1)
"""A bit that is always 1."""

Columns = Sequence[Iterable[Bit]]
"""Bits by weight: column i holds those worth 2^i."""


@dataclass(frozen=True)
class Adder:
    """A half adder (two operands) or a full adder (three); both outputs are at one level."""

    operands: tuple[Bit, ...]
    sum: Bit
    carry: Bit


class Tree:
    """A plan of adders.

    Args:
        levels: when each input arrives. Inputs are the first nodes.
    """

    def __init__(self, levels: Sequence[int]) -> None:
        self.inputs = [Bit(level, node) for node, level in enumerate(levels)]
        self.adders: list[Adder] = []

    def compress(self, columns: Columns, rows: int) -> list[list[Bit]]:
        """Add adders until no column has more than `rows` bits.

        A half adder stands only where two bits must become one. Carries out of the last column
        are lost, which makes the result a sum modulo a power of two.

        Args:
            columns: bits by weight.
            rows: most bits that may be left in a column, 1 or 2.

        Returns:
            The bits that are left, by weight.
        """
        heaps = [list(column) for column in columns]
        for heap, above in zip(heaps, [*heaps[1:], []], strict=True):
            heapq.heapify(heap)
            while len(heap) > rows:
                adder = self._adder([heapq.heappop(heap) for _ in range(min(3, len(heap)))])
                heapq.heappush(heap, adder.sum)
                above.append(adder.carry)
        return heaps

    def _adder(self, operands: Sequence[Bit]) -> Adder:
        *early, late = operands if len(operands) == 3 else (*operands, ONE)
        level = max(max(bit.level for bit in early) + len(operands) - 1, late.level + 1)
        node = len(self.inputs) + 2 * len(self.adders)
        adder = Adder(tuple(operands), Bit(level, node), Bit(level, node + 1))
        self.adders.append(adder)
        return adder

    def alive(self, level: int, results: Columns) -> list[int]:
        """Nodes that exist at a level and are needed above it, or are among the results."""
        later = (bit for adder in self.adders if adder.sum.level > level for bit in adder.operands)
        kept = (bit for column in results for bit in column)
        needed = {bit.node for bit in (*later, *kept) if bit.level <= level}
        return sorted(needed - {ONE.node})

    def build(self, m: Module, nodes: Mapping[int, Value], after: int, to: int) -> dict[int, Value]:
        """Build the adders above level `after`, up to level `to`.

        Args:
            m: module that they go into.
            nodes: values of the nodes that are alive at `after`.
            after, to: levels.

        Returns:
            The given nodes and those of the new adders.
        """
        values = dict(nodes)
        for adder in self.adders:
            if after < adder.sum.level <= to:
                operands = [value_of(bit, values) for bit in adder.operands]
                values[adder.sum.node], values[adder.carry.node] = add_bits(m, operands)
        return values


def value_of(bit: Bit, nodes: Mapping[int, Value]) -> Value:
    """The value of a bit, of one bit width."""
    value = Const(1, 1) if bit.node == ONE.node else nodes[bit.node]
    return ~value if bit.inverted else value


def two_rows(rows: Sequence[Sequence[Bit]], nodes: Mapping[int, Value]) -> tuple[Value, Value]:
    """The two numbers that a tree leaves, from the values of their nodes."""
    columns = [[value_of(bit, nodes) for bit in column] for column in rows]
    first, second = (
        Cat(column[row] if row < len(column) else Const(0, 1) for column in columns)
        for row in range(2)
    )
    return first, second


def add_bits(m: Module, operands: Sequence[Value]) -> tuple[Value, Value]:
    """Sum and carry of two or three bits.

    The carry is written with the exclusive or of the first two, which synthesis then shares.
    """
    a, b, *rest = operands
    half, total, carry = Signal(name="half"), Signal(name="sum"), Signal(name="carry")
    m.d.comb += half.eq(a ^ b)
    if rest:
        m.d.comb += [total.eq(half ^ rest[0]), carry.eq((a & b) | (half & rest[0]))]
    else:
        m.d.comb += [total.eq(half), carry.eq(a & b)]
    return total, carry
