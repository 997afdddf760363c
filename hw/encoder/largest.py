"""The largest exponent field of a block, and how far below it each lane is.

Fields are looked at from their highest bit: where a lane that may still be the largest has a one,
those with a zero drop out. Each lane keeps its distance from the largest so far as far as it
matters: none, one, or more.
"""

from collections.abc import Sequence
from typing import Any

from amaranth.hdl import Cat, Const, Module, Signal, Value
from amaranth.lib import data

from axs6.hw.core.pipeline import Step
from axs6.hw.core.structures import ArrayLayout, StructLayout
from axs6.hw.core.trees import any_of

DISTANCE_BITS = 3
"""Distances below 8 are told apart, the others are all the same: what encoders need that look at
no more of a value than the bits of its code."""

BITS_A_STEP = 2


def search_layout(block: int, width: int, left: int, rest: data.StructLayout) -> data.StructLayout:
    """State of the search with `left` bits of each field to go, and what passes by.

    At the start, `equal` says which lanes take part in it.
    """
    lane = {"field": left, "equal": 1} | ({} if left == width else {"behind": 1})
    lanes = ArrayLayout(StructLayout(lane), block)
    found = {} if left == width else {"found": width - left}
    return StructLayout({"lanes": lanes, **found, "rest": rest})


def distances_layout(
    block: int, width: int, rest: data.StructLayout, bits: int = DISTANCE_BITS
) -> data.StructLayout:
    """The largest field; each lane's distance from it, and whether that has at most `bits` bits.

    A lane that takes no part is never `close`.
    """
    lane = StructLayout({"distance": bits, "close": 1})
    return StructLayout({"largest": width, "lanes": ArrayLayout(lane, block), "rest": rest})


def search(m: Module, bits: Sequence[Value], equal: Sequence[Value]) -> tuple[Value, list[Value]]:
    """The largest of one bit among equal lanes, and the lanes that are still equal."""
    one = Signal(name="one")
    m.d.comb += one.eq(any_of([bit & e for bit, e in zip(bits, equal, strict=True)]))
    left = [Signal(name=f"equal{index}") for index in range(len(bits))]
    for still, bit, e in zip(left, bits, equal, strict=True):
        m.d.comb += still.eq(e & (bit | ~one))
    return one, left


class SearchHigh(Step):
    """Looks at the next bits of all fields.

    `equal` stays set in lanes that equal the largest field so far, `behind` in those that are one
    less.
    """

    def __init__(
        self, block: int, width: int, left: int, bits: int, rest: data.StructLayout
    ) -> None:
        self._bits = bits
        i, o = (search_layout(block, width, each, rest) for each in (left, left - bits))
        super().__init__(i, o, levels=9 * bits)

    def elaborate(self, platform: Any) -> Module:
        """Build the comparisons, bit by bit."""
        m = Module()
        lanes = self.i.lanes
        first = "found" not in dict(self.i.shape())
        equal = [lane.equal for lane in lanes]
        behind = [Const(0, 1) if first else lane.behind for lane in lanes]
        found: Value = Cat() if first else self.i.found
        for index in range(self._bits):
            bits = [lane.field[-1 - index] for lane in lanes]
            one, still = search(m, bits, equal)
            behind = [
                (e & one & ~bit) | (b & bit & ~one)
                for e, b, bit in zip(equal, behind, bits, strict=True)
            ]
            equal, found = still, Cat(one, found)
        for lane, o, e, b in zip(lanes, self.o.lanes, equal, behind, strict=True):
            m.d.comb += [o.field.eq(lane.field), o.equal.eq(e), o.behind.eq(b)]
        m.d.comb += [self.o.found.eq(found), self.o.rest.eq(self.i.rest)]
        return m


class SearchLow(Step):
    """Looks at the lowest bits, and subtracts them in each lane."""

    def __init__(self, block: int, width: int, rest: data.StructLayout, bits: int) -> None:
        self._all = bits == width
        super().__init__(
            search_layout(block, width, bits, rest),
            distances_layout(block, width, rest, bits),
            levels=8 * bits + 1,
        )

    def elaborate(self, platform: Any) -> Module:
        """Build the comparisons and the subtracters."""
        m = Module()
        lanes = self.i.lanes
        equal: list[Value] = [lane.equal for lane in lanes]
        found: Value = Cat()
        bits = len(lanes[0].field)
        for index in reversed(range(bits)):
            one, equal = search(m, [lane.field[index] for lane in lanes], equal)
            found = Cat(one, found)
        low = Signal(bits)
        m.d.comb += [
            low.eq(found),
            self.o.largest.eq(low if self._all else Cat(low, self.i.found)),
            self.o.rest.eq(self.i.rest),
        ]
        for index, (lane, o) in enumerate(zip(lanes, self.o.lanes, strict=True)):
            difference = Signal(bits + 1, name=f"difference{index}")
            behind = Const(0, 1) if self._all else lane.behind
            m.d.comb += [
                difference.eq(low - lane.field),
                o.distance.eq(difference),
                o.close.eq(lane.equal | (behind & difference[-1])),
            ]
        return m


def search_steps(
    block: int, width: int, rest: data.StructLayout, bits: int = DISTANCE_BITS
) -> list[Step]:
    """Steps from `search_layout` with all bits to go, to `distances_layout`.

    Args:
        block: lanes.
        width: of a field.
        rest: what passes by.
        bits: of a distance, at most `width`.
    """
    high = [
        SearchHigh(block, width, left, min(BITS_A_STEP, left - bits), rest)
        for left in range(width, bits, -BITS_A_STEP)
    ]
    return [*high, SearchLow(block, width, rest, bits)]
