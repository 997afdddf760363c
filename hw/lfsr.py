"""Random words: a maximal-length shift register for each lane."""

from typing import Any

from amaranth.hdl import Cat, Module, Mux, Signal
from amaranth.lib import stream, wiring
from amaranth.lib.wiring import In, Out, connect, flipped

from axs6.golden.formats import AXS6
from axs6.golden.lfsr import LFSR_BITS, RANDOM_SEED, lane_seeds, leap
from axs6.golden.rounding import RANDOM_BITS, check_random_bits
from axs6.hw.core.layouts import words_layout
from axs6.hw.core.pipeline import Pipeline, Step, Wrapper
from axs6.hw.core.rtlil import add_lanes
from axs6.hw.core.structures import ArrayLayout, StructLayout


class LeapLane(wiring.Component):
    """A register's state after `steps` steps."""

    def __init__(self, steps: int) -> None:
        self._columns = [int(column) for column in leap(steps)]
        super().__init__({"state": In(LFSR_BITS), "after": Out(LFSR_BITS)})

    def elaborate(self, platform: Any) -> Module:
        """Build a sum of bits for each bit."""
        m = Module()
        for bit in range(LFSR_BITS):
            terms = [self.state[k] for k, column in enumerate(self._columns) if column >> bit & 1]
            m.d.comb += self.after[bit].eq(Cat(terms).xor())
        return m


class TakeWords(Step):
    """The low bits of states."""

    def __init__(self, block: int, random_bits: int) -> None:
        states = ArrayLayout(LFSR_BITS, block)
        super().__init__(states, words_layout(block, random_bits), levels=0)

    def elaborate(self, platform: Any) -> Module:
        """Connect them."""
        m = Module()
        m.d.comb += [word.eq(state) for word, state in zip(self.o.random, self.i, strict=True)]
        return m


class Lfsr(Wrapper):
    """Gives a random word for each lane, the low bits of the lane's register, in each cycle.

    After each item every register moves on by as many steps as a word has bits. An item with
    `restart` begins again at the seeds, as reset does.

    Args:
        block: lanes: 8, 16 or 32.
        random_bits: bits of a word, 1 to 32.
        lfsr_seed: state of lane 0, 1 to 2^32 - 1; those of the others follow from it.
        stages: ranks of registers behind the words, from 0.

    Ports:
        i (in, stream): an item asks for a word for each lane.
        i.restart (in, 1 bit): whether the registers begin again at their seeds with this item.
        o (out, stream): an item is the words.
        o.random (out, `block` x `random_bits`): the words, that of lane 0 first.

    Latency is `stages` cycles, interval 1. The words are those of `axs6.golden.lfsr.Lfsr`.
    Source: specification section 7, docs/format.md.

    Raises:
        ValueError: a parameter is not what it must be.
    """

    def __init__(
        self,
        block: int = 32,
        random_bits: int = RANDOM_BITS,
        lfsr_seed: int = RANDOM_SEED,
        stages: int = 0,
    ) -> None:
        self._bits = check_random_bits(random_bits)
        self._seeds = [int(each) for each in lane_seeds(AXS6.with_block(block).block, lfsr_seed)]
        requests = StructLayout({"restart": 1})
        words = words_layout(block, random_bits)
        ports = {"i": In(stream.Signature(requests)), "o": Out(stream.Signature(words))}
        super().__init__(Pipeline([TakeWords(block, random_bits)], stages), ports)

    @property
    def flip_flops(self) -> int:
        """Bits of the shift registers and of the ranks behind them."""
        return LFSR_BITS * len(self._seeds) + super().flip_flops

    def elaborate(self, platform: Any) -> Module:
        """Build the registers and what moves them on."""
        m = Module()
        m.submodules.ranks = ranks = self.inner
        connect(m, ranks.o, flipped(self.o))
        lanes = []
        for lane, seed in enumerate(self._seeds):
            state = Signal(LFSR_BITS, name=f"state{lane}", init=seed)
            here, after = Signal(LFSR_BITS, name=f"here{lane}"), Signal(LFSR_BITS)
            m.d.comb += [
                here.eq(Mux(self.i.payload.restart, seed, state)),
                ranks.i.payload[lane].eq(here),
            ]
            with m.If(self.i.valid & self.i.ready):
                m.d.sync += state.eq(after)
            lanes.append({"state": here, "after": after})
        add_lanes(m, platform, [lambda: LeapLane(self._bits)], lanes)
        m.d.comb += [ranks.i.valid.eq(self.i.valid), self.i.ready.eq(ranks.i.ready)]
        return m
