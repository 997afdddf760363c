"""Stored values of a sparse block: counts of the values that are not stored, in front of each."""

from collections.abc import Sequence

from amaranth.hdl import Const, Module, Signal, Value
from amaranth.lib import data

from axs6.golden.modes import dropped_values
from axs6.hw.core.layouts import lanes_of
from axs6.hw.core.structures import StructLayout
from axs6.hw.core.trees import running


def _most_before(block: int, lane: int) -> int:
    return min(lane, dropped_values(block))


def before_layout(block: int) -> data.StructLayout:
    """Number of values in front of each, but the first, that are not stored: at most B/4."""
    return StructLayout(
        {f"lane{lane}": _most_before(block, lane).bit_length() for lane in range(1, block)}
    )


def count_before(m: Module, bits: Sequence[Value]) -> tuple[list[Value], Value]:
    """How many bits are set in front of each but the first, and of all."""

    def add(a: Value, b: Value) -> Value:
        total = Signal(max(len(a), len(b)) + 1, name="total")
        m.d.comb += total.eq(a + b)
        return total

    *before, total = running(bits, add)
    return before, total


def compared(before: data.View, block: int) -> list[list[Value]]:
    """For each lane whether 0, 1, 2, ... values in front of it are not stored."""
    first: list[Value] = [Const(1, 1)]
    return [
        first,
        *(
            [count == number for number in range(_most_before(block, lane) + 1)]
            for lane, count in enumerate(lanes_of(before), 1)
        ),
    ]
