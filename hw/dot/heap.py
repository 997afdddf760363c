"""Plan of the sum of equal addends: one compressor tree for any kind of addend."""

from collections.abc import Iterator
from dataclasses import dataclass
from functools import cache

from amaranth.lib import data

from axs6.hw.core.compressor import ONE, Bit, Tree
from axs6.hw.core.structures import ArrayLayout, StructLayout
from axs6.hw.dot.lanes import Addend
from axs6.hw.dot.shape import DotShape, GroupScaling


class SumPlan:
    """Plan of the sum of addends.

    Input nodes are the bits of addend 0, its sign, if it has one, the bits of addend 1, and so on.
    An addend needs a number W subtracted when its sign is set. One tree counts the signs, and
    multiples of the count, that make up for W times it, enter the other tree. Sums are modulo
    2^width.

    Args:
        addends: their number.
        addend: what each of them is.
        width: bits of the sum.
        rows: numbers that are left, 1 or 2.
    """

    def __init__(self, addends: int, addend: Addend, width: int, rows: int = 2) -> None:
        self.width = width
        levels = [level for _, level in addend.bits]
        self.tree = tree = Tree([*levels, *[1] * bool(addend.sign)] * addends)
        self.level = max(levels)
        columns: list[list[Bit]] = [[] for _ in range(width)]
        size = len(levels) + bool(addend.sign)
        negative = self._count(tree.inputs[len(levels) :: size]) if addend.sign else []
        for first in range(0, addends * size, size):
            bits = tree.inputs[first : first + len(levels)]
            for (weight, _), bit in zip(addend.bits, bits, strict=True):
                if weight < width:
                    columns[weight].append(bit)
        constant = addends * addend.constant
        for shift, subtract in _signed_digits(-addend.sign, width):
            for column, bit in zip(columns[shift:], negative, strict=False):
                column.append(bit.complement() if subtract else bit)
            constant += (1 - (1 << len(negative)) << shift) * subtract
        for weight, column in enumerate(columns):
            column += [ONE] * (constant >> weight & 1)
        self.rows = tree.compress(columns, rows)
        self.deepest = max(bit.level for column in self.rows for bit in column)

    def _count(self, signs: list[Bit]) -> list[Bit]:
        """The number of signs that are set."""
        width = len(signs).bit_length()
        columns = [signs, *([] for _ in range(width - 1))]
        return [bit for (bit,) in self.tree.compress(columns, rows=1)]

    def alive(self, level: int) -> list[int]:
        """Nodes of the tree that the levels above one need, or that are left at its end."""
        return self.tree.alive(level, self.rows)


@cache
def sum_plan(addends: int, addend: Addend, width: int, rows: int = 2) -> SumPlan:
    """The plan of a sum; see `SumPlan`."""
    return SumPlan(addends, addend, width, rows)


@dataclass(frozen=True)
class Heap:
    """The sums of groups of one size, one plan for all of them.

    Args:
        shape: the block dot product.
        group: lanes of a group.
        plan: of one sum.
        later: scales that are still to be used.
    """

    shape: DotShape
    group: int
    plan: SumPlan
    later: tuple[GroupScaling, ...]

    @property
    def groups(self) -> int:
        """Number of sums."""
        return self.shape.block // self.group

    def layout(self, level: int) -> data.StructLayout:
        """The nodes of each sum that are alive at a level of the plan, and what goes along."""
        bits = ArrayLayout(len(self.plan.alive(level)), self.groups)
        return StructLayout({"bits": bits, **self.shape.beside(self.later)})


def _signed_digits(number: int, width: int) -> Iterator[tuple[int, bool]]:
    """Powers of two that add up to `number` modulo 2^width, as exponents and whether subtracted."""
    for shift in range(width):
        if number & 1:
            subtract = number & 3 == 3
            yield shift, subtract
            number += 1 if subtract else -1
        number >>= 1
