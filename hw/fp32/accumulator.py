"""Accumulators: loops that add terms in order, several vectors in turn."""

from collections.abc import Sequence
from typing import Any

from amaranth.hdl import Module, Mux, Signal, Value
from amaranth.lib import data, stream, wiring
from amaranth.lib.wiring import In, Out, connect, flipped

from axs6.golden.arguments import check_integer
from axs6.hw.core.layouts import fp32_layout, last_layout
from axs6.hw.core.pipeline import Pipeline, Step
from axs6.hw.core.structures import StructLayout
from axs6.hw.fp32.add import addition_steps

MOST_INTERLEAVED = len(addition_steps()) + 1


class Hold(Step):
    """Gives what it takes: a place for registers."""

    def __init__(self, layout: data.StructLayout) -> None:
        super().__init__(layout, layout, levels=0)

    def elaborate(self, platform: Any) -> Module:
        """Connect the ports."""
        m = Module()
        m.d.comb += self.o.eq(self.i)
        return m


SKIPPED = StructLayout({"skipped": 1})
"""A field of steps that keep a total as it is only where they are told that it has no term."""


class Skips(wiring.Component):
    """The items of a loop, and empty turns if totals wait for missing items.

    A total whose turn has no item blocks the totals behind it, which may be finished. If one waits
    for as many cycles as there are turns, and a vector has ended since the last skip, each turn is
    skipped: its total circulates with a term of 0 and `skipped`, unchanged.

    Args:
        turns: vectors that take turns, 2 or more.
        item: layout of the items.

    Ports:
        i (in, stream of `item`): the items of the loop.
        o (out, stream of `item` and `skipped`): the same, and items that skip a turn.
        waits (in, 1 bit): whether a total waits and there is no item for it.

    Latency is 0 cycles; interval 1 while no turn is skipped.
    """

    def __init__(self, turns: int, item: data.StructLayout) -> None:
        self._turns = turns
        super().__init__(
            {
                "i": In(stream.Signature(item)),
                "o": Out(stream.Signature(StructLayout({**item.members, **SKIPPED.members}))),
                "waits": In(1),
            }
        )

    @property
    def flip_flops(self) -> int:
        """Registers that count, and two that say what is counted."""
        return (self._turns - 1).bit_length() + 2

    def elaborate(self, platform: Any) -> Module:
        """Build the counter of cycles, and then of turns."""
        m = Module()
        i, o = self.i, self.o
        count, skipping, ended = Signal(range(self._turns)), Signal(), Signal()
        over = count == self._turns - 1
        here = ~skipping
        m.d.comb += [
            o.valid.eq(i.valid | skipping),
            i.ready.eq(o.ready & here),
            o.payload.skipped.eq(skipping),
        ]
        # What is skipped has no term, ends nothing and brings no error; nobody looks at the rest.
        m.d.comb += o.payload.carry.eq(i.payload.carry)
        flags = [name for name in ("last", "error") if name in i.payload.carry.shape().members]
        for to, given in [
            (o.payload.data.as_value(), i.payload.data.as_value()),
            *((o.payload.carry[name], i.payload.carry[name]) for name in flags),
        ]:
            m.d.comb += to.eq(given & here.replicate(len(given)))
        with m.If(Mux(skipping, o.ready, self.waits & ended)):
            m.d.sync += count.eq(Mux(over, 0, count + 1))
            with m.If(over):
                m.d.sync += [skipping.eq(here), ended.eq(here)]
        with m.Elif(here):
            m.d.sync += count.eq(0)
        with m.If(i.valid & i.ready & i.payload.carry.last):
            m.d.sync += ended.eq(1)
        return m


class Loop(wiring.Component):
    """An accumulator around some steps, which give the next total of a total and a term.

    Item n belongs to vector n modulo `interleave`: that many vectors take turns, each of any
    length, and the next one in the same turn follows its `last`. The steps have `interleave` ranks
    of registers, which hold the totals: that of a vector comes out of them in the cycle in which
    its next term arrives, so a term enters in every cycle, and the terms of one vector are added
    in their order.

    A total that waits for a term of its turn blocks the totals behind it. If one of these is
    finished and no term comes, turns are skipped; see `Skips`.

    Args:
        steps: from a total and a term to a total. A term of 0 must leave a total as it is, or
            else they have a field `skipped`, with which it does.
        interleave: vectors that take turns, 1 to 14.
        term: layout of the terms.
        like: steps of another view; see `Pipeline`.
        carry: what terms have beside: `last`, and fields of which a total has those of the last
            term of its vector; of `error` it has whether any of its terms had it.

    Ports:
        i (in, stream of `data` and `carry`): `data` is a term, `carry` what it has beside.
        o (out, stream): an item is the total of a vector, with the fields of `carry` but `last`.

    Latency is `interleave` cycles from the last term of a vector to its total, interval 1.

    Raises:
        ValueError: `interleave` is not an integer from 1 to 14.
    """

    interval = 1

    def __init__(
        self,
        steps: Sequence[Step],
        interleave: int,
        term: data.StructLayout,
        like: Sequence[Step] | None = None,
        carry: data.StructLayout = last_layout,
    ) -> None:
        self._interleave = check_integer("interleave", interleave, 1, MOST_INTERLEAVED)
        most = len(steps if like is None else like) + 1
        # Ranks for which short steps have no place stand behind them.
        spare = [Hold(steps[-1].o.shape()) for _ in range(max(0, interleave - most))]
        steps, like = [*steps, *spare], None if like is None else [*like, *spare]
        # The loop adds logic of its own to `ready`, on its way to the pipeline before.
        self._adder = Pipeline(steps, interleave, carry=carry, registered=True, like=like)
        self._kept = {name: x for name, x in carry.members.items() if name != "last"}
        self.total: Any = steps[-1].o.shape()
        """Layout of a total, without what it has beside."""
        given: Any = self.total
        if self._kept:
            given = StructLayout({**given.members, **self._kept})
        items = StructLayout({"data": term, "carry": carry})
        self._skips = Skips(interleave, items) if interleave > 1 else None
        super().__init__({"i": In(stream.Signature(items)), "o": Out(stream.Signature(given))})

    @property
    def latency(self) -> int:
        """Cycles from taking the last term of a vector to offering its total."""
        return self._interleave

    @property
    def flip_flops(self) -> int:
        """Registers of the adder, one that says which turns begin a vector for each turn, and
        those that skip turns."""
        skips = self._skips.flip_flops if self._skips else 0
        return self._adder.flip_flops + self._interleave + skips

    def connect(self, m: Module, first: Value, term: data.View, total: data.View) -> None:
        """Give the steps a term and the total before it, unless it is the first of a vector."""
        operands = self._adder.i.payload.data
        m.d.comb += [
            operands.total.eq(Mux(first, 0, Value.cast(total))),
            operands.term.eq(term),
            self.give(total),
        ]

    def give(self, total: data.View) -> Any:
        """Assign a total to the output."""
        return Value.cast(self.o.payload)[: len(Value.cast(total))].eq(total)

    def elaborate(self, platform: Any) -> Module:
        """Close the loop around the adder."""
        m = Module()
        m.submodules.adder = adder = self._adder
        first = Signal(self._interleave, init=-1)
        done = adder.o.payload.carry.last
        returned = adder.o.valid & ~done
        items: Any = self.i
        enters, taken = first[0] | returned, adder.i.ready
        last = items.payload.carry.last
        if self._skips:
            m.submodules.skips = skips = self._skips
            connect(m, flipped(self.i), skips.i)
            m.d.comb += skips.waits.eq(returned & ~self.i.valid)
            items, skipped = skips.o, skips.o.payload.skipped
            # A turn that is skipped before a vector begins has no total to send around.
            enters, taken = Mux(first[0], ~skipped, returned), adder.i.ready | skipped
            last = Mux(skipped, first[0], items.payload.carry.last)
            if "skipped" in adder.i.payload.data.shape().members:
                m.d.comb += adder.i.payload.data.skipped.eq(skipped)
        m.d.comb += [
            adder.i.valid.eq(items.valid & enters),
            items.ready.eq(Mux(first[0], taken, returned)),
            self.o.valid.eq(adder.o.valid & done),
            adder.o.ready.eq(Mux(done, self.o.ready, items.valid & ~first[0])),
            adder.i.payload.carry.eq(items.payload.carry),
        ]
        self.connect(m, first[0], items.payload.data, adder.o.payload.data)
        carried = adder.o.payload.carry
        if "error" in self._kept:
            before = carried.error & ~first[0]
            m.d.comb += adder.i.payload.carry.error.eq(items.payload.carry.error | before)
        m.d.comb += [self.o.payload[name].eq(carried[name]) for name in self._kept]
        with m.If(items.valid & items.ready):
            m.d.sync += first.eq((first >> 1) | (last << self._interleave - 1))
        return m


class Fp32Accumulator(Loop):
    """Adds terms to an FP32 accumulator that starts each vector at +0.

    Args:
        interleave: vectors that take turns, 1 to 14; see `Loop`.
        adder: steps in place of those of `addition_steps`.
        carry: as of `Loop`.

    Ports:
        i (in, stream of `data` and `carry`): `data` has the term in FP32, `value`.
        o (out, stream): an item has the total in FP32, `value`.

    Latency is `interleave` cycles from the last term of a vector to its total, interval 1.

    Raises:
        ValueError: `interleave` is not an integer from 1 to 14.
    """

    verilog_name = "accumulator"

    def __init__(
        self,
        interleave: int,
        adder: Sequence[Step] | None = None,
        carry: data.StructLayout = last_layout,
    ) -> None:
        super().__init__(adder or addition_steps(), interleave, fp32_layout, carry=carry)

    def connect(self, m: Module, first: Value, term: data.View, total: data.View) -> None:
        """Give the adder a term, and the total or +0."""
        operands = self._adder.i.payload.data
        m.d.comb += [
            operands.a.eq(Mux(first, 0, total.value)),
            operands.b.eq(term.value),
            self.give(total),
        ]
