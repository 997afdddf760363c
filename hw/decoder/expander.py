"""Expander: a packed block becomes its codes, including codes that a sparse block does not
store."""

from collections.abc import Callable
from functools import partial
from typing import Any

from amaranth.hdl import Cat, Module, Mux, Signal, Value
from amaranth.lib import data

from axs6.golden.formats import AXS6, Mode
from axs6.golden.formats.catalog import AXS6_ELEMENT, AXS6_SCALE
from axs6.golden.modes import dropped_values, payload_bits
from axs6.hw.core.layouts import (
    block_layout,
    code_layout,
    error_layout,
    lanes_of,
    packed_layout,
    pair_layout,
)
from axs6.hw.core.pipeline import Pipeline, Step
from axs6.hw.core.rtlil import add_lanes
from axs6.hw.core.sparse import before_layout, compared, count_before
from axs6.hw.core.structures import ArrayLayout, StructLayout
from axs6.hw.core.trees import any_of, chosen


def header_layout(block: int, high_precision: bool) -> data.StructLayout:
    """A block whose header was read, and how many values before each are not stored."""
    codes = ArrayLayout(AXS6_ELEMENT.width, block)
    fields = {"exponent": AXS6_SCALE.bits, "payload": codes, "before": before_layout(block)}
    return StructLayout({**fields, "sparse": 1, **_flags(high_precision)})


def expanded_layout(block: int, high_precision: bool) -> data.StructLayout:
    """A block with a code for each value, or the payload of a high-precision one; and `error`."""
    return StructLayout({**block_layout(block).members, **_flags(high_precision)})


def _flags(high_precision: bool) -> dict[str, int]:
    return ({"high_precision": 1} if high_precision else {}) | dict(error_layout.members)


class ReadHeader(Step):
    """Which values are not stored, and whether header, mask and padding are as they must be.

    Args:
        block: values in a block.
        high_precision: whether blocks of that mode can be read.
    """

    def __init__(self, block: int, high_precision: bool) -> None:
        self._block = block
        self._high_precision = high_precision
        super().__init__(packed_layout(block), header_layout(block, high_precision), levels=35)

    def elaborate(self, platform: Any) -> Module:
        """Build the counts of zeros in the mask."""
        m = Module()
        i, o = self.i, self.o
        payload = i.payload.as_value()
        mask = payload[: self._block]
        padding = payload[payload_bits(AXS6.with_block(self._block), Mode.SPARSE) :]
        before, total = count_before(m, [~bit for bit in mask])
        sparse, high_precision = i.mode == Mode.SPARSE, i.mode == Mode.HIGH_PRECISION
        wrong = [
            i.reserved.any(),
            i.mode == Mode.RESERVED,
            sparse & padding.any(),
            sparse & (total != dropped_values(self._block)),
        ]
        if self._high_precision:
            m.d.comb += o.high_precision.eq(high_precision)
        else:
            wrong.append(high_precision)
        m.d.comb += [
            o.exponent.eq(i.exponent),
            o.payload.eq(payload),
            # Right counts are B/4 at most; others are an error.
            *(each.eq(count) for each, count in zip(lanes_of(o.before), before, strict=True)),
            o.sparse.eq(sparse),
            o.error.eq(any_of(wrong)),
        ]
        return m


class PlaceCodes(Step):
    """Each code in its lane, and whether the values that are not stored are the first zeros."""

    def __init__(self, block: int, high_precision: bool) -> None:
        self._block = block
        self._high_precision = high_precision
        i, o = (each(block, high_precision) for each in (header_layout, expanded_layout))
        super().__init__(i, o, levels=20)

    def elaborate(self, platform: Any) -> Module:
        """Build a selection among the nearest codes in each lane."""
        m = Module()
        i, o = self.i, self.o
        dropped = dropped_values(self._block)
        payload = i.payload.as_value()
        mask, stored = payload[: self._block], payload[self._block :]
        wrong: list[Value] = [i.error]
        for lane, before in enumerate(compared(i.before, self._block)):
            slots = range(max(0, lane - self._block + dropped + 1), len(before))
            uses = [mask[lane] & before[skipped] for skipped in slots]
            codes = [stored.word_select(lane - skipped, AXS6_ELEMENT.width) for skipped in slots]
            code = Signal(code_layout, name=f"code{lane}")
            m.d.comb += [
                code.eq(chosen(uses, codes)),
                o.codes[lane].eq(Mux(i.sparse, code, i.payload[lane])),
            ]
            early = Cat(use for use, skipped in zip(uses, slots, strict=True) if skipped < dropped)
            wrong.append(i.sparse & early.any() & ~code.magnitude.any())
        m.d.comb += [o.exponent.eq(i.exponent), o.error.eq(any_of(wrong))]
        if self._high_precision:
            m.d.comb += o.high_precision.eq(i.high_precision)
        return m


class ClearErrors(Step):
    """The same, with zeros in place of a block that cannot be read."""

    def __init__(self, block: int, high_precision: bool) -> None:
        layout = expanded_layout(block, high_precision)
        super().__init__(layout, layout, levels=2)

    def elaborate(self, platform: Any) -> Module:
        """Build the gates in front of all other bits."""
        m = Module()
        others = [name for name in self.i.shape().members if name != "error"]
        keep = ~self.i.error
        m.d.comb += self.o.error.eq(self.i.error)
        for name in others:
            value = Value.cast(self.i[name])
            m.d.comb += Value.cast(self.o[name]).eq(value & keep.replicate(len(value)))
        return m


EXPANDING = (ReadHeader, PlaceCodes, ClearErrors)
"""The steps, each made from block size and whether blocks may be high-precision."""


def expand_steps(block: int, high_precision: bool) -> list[Step]:
    """Steps from `packed_layout` to the fields of a `block_layout` and `error`.

    Args:
        block: values in a block.
        high_precision: whether blocks of that mode can be read; the output then says which are,
            and has their payload in place of dense codes.
    """
    return [step(block, high_precision) for step in EXPANDING]


class BothSides(Step):
    """Equal cores for both operands of a dot product."""

    def __init__(self, make: Callable[[], Step]) -> None:
        self._make = make
        core = make()
        i, o = (StructLayout(dict.fromkeys("ab", each.shape())) for each in (core.i, core.o))
        super().__init__(i, o, levels=core.levels, held=2 * core.held)

    def elaborate(self, platform: Any) -> Module:
        """Instantiate the cores."""
        m = Module()
        lanes = ({"i": self.i[side], "o": self.o[side]} for side in "ab")
        add_lanes(m, platform, [self._make], lanes)
        return m


class JoinErrors(Step):
    """Both operands, and whether one of them is an error."""

    def __init__(self, block: int) -> None:
        blocks = pair_layout(block).members
        side = expanded_layout(block, high_precision=False)
        o = StructLayout({**blocks, **error_layout.members})
        super().__init__(StructLayout(dict.fromkeys(blocks, side)), o, levels=1)

    def elaborate(self, platform: Any) -> Module:
        """Build the or."""
        m = Module()
        m.d.comb += self.o.error.eq(self.i.a.error | self.i.b.error)
        for side in "ab":
            i, o = self.i[side], self.o[side]
            m.d.comb += [o.exponent.eq(i.exponent), o.codes.eq(i.codes)]
        return m


def expand_pair_steps(block: int) -> list[Step]:
    """Steps from two packed blocks to the fields of a `pair_layout` and `error`."""
    return [*(BothSides(partial(step, block, False)) for step in EXPANDING), JoinErrors(block)]


class Expander(Pipeline):
    """Makes a dense block of a packed one, dense or sparse, in each cycle.

    A block that cannot be read raises `error` and has exponent and codes 0: a high-precision one,
    one of the reserved mode, one whose header or padding bits are not zero, and a sparse one that
    does not leave out exactly the first quarter of the values that have magnitude 0.

    Args:
        block: values in a block: 8, 16 or 32.
        stages: ranks of registers, from 0.

    Ports:
        i (in, stream): an item is a packed block.
        i.mode (in, 2 bits): the mode that its header names.
        i.exponent (in, 8 bits): the shared exponent.
        i.reserved (in, 6 bits): the rest of the header, which must be 0.
        i.payload (in, 3/4 `block` bytes): the codes of a dense block, or mask and codes of a sparse
            one with zeros behind.
        o (out, stream): an item is a dense block.
        o.exponent (out, 8 bits): the shared exponent.
        o.codes (out, `block` x 6 bits): the codes, lane 0 first.
        o.error (out, 1 bit): whether the block cannot be read.

    Latency is `stages` cycles, interval 1. Source: specification section 4, docs/format.md.

    Raises:
        ValueError: a parameter is not what it must be.
    """

    def __init__(self, block: int = 32, stages: int = 0) -> None:
        super().__init__(expand_steps(AXS6.with_block(block).block, high_precision=False), stages)
