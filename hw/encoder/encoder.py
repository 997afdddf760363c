"""Encoder: a block of floating-point values becomes an AXS-6 block."""

from collections.abc import Sequence
from functools import partial
from typing import Any

from amaranth.hdl import Cat, Module
from amaranth.lib import data

from axs6.golden.formats import Float, Mode
from axs6.golden.spec import (
    EXPONENT_BITS,
    INPUT_DTYPES,
    RANDOM_BITS,
    Rounding,
    check_block,
    check_random_bits,
    check_rounding,
)
from axs6.hw.core.layouts import lanes_layout, lanes_of, words_layout
from axs6.hw.core.parameters import BEHAVIOUR, STRUCTURE, float_dtype
from axs6.hw.core.pipeline import Pipeline, Step, past, viewed
from axs6.hw.core.rtlil import add_lanes
from axs6.hw.core.structures import StructLayout
from axs6.hw.encoder.fields import deepest_subnormal, positions, unused_exponent_bits
from axs6.hw.encoder.front import Exponent, Unpack, passing_layout
from axs6.hw.encoder.lane import Candidates, ChooseLane, RoundLane, choice_layout
from axs6.hw.encoder.largest import distances_layout, search_steps
from axs6.hw.encoder.modes import (
    add_rounding,
    encoder_mode,
    lane_codes,
    packing_steps,
    rounded_bits,
    rounded_layout,
)
from axs6.hw.encoder.random import random_steps
from axs6.hw.encoder.words import encode_words


class SharedExponent(Step):
    """The block's exponent, and the lanes' distances from it, one bit for each."""

    def __init__(self, block: int, fmt: Float, kinds: Sequence[Candidates]) -> None:
        self._fmt = fmt
        rest = passing_layout(block, fmt, kinds)
        lanes = [
            StructLayout(
                {"kept": kind.layout, "sign": 1, "infinite": 1, "chosen": positions(fmt, kind.code)}
            )
            for kind in kinds
        ]
        o = StructLayout(
            {"exponent": EXPONENT_BITS, "lanes": lanes_layout(lanes, block), "invalid": 1}
        )
        i = distances_layout(block, fmt.exponent_bits, rest)
        super().__init__(i, o, levels=9, held=o.size - unused_exponent_bits(fmt))

    def elaborate(self, platform: Any) -> Module:
        """Build the exponent of a block of subnormals, and decode the distances."""
        m = Module()
        exponent = Exponent(m, self._fmt, self.i)
        deepest = deepest_subnormal(self._fmt)
        m.d.comb += [
            self.o.exponent.eq(exponent.value),
            self.o.invalid.eq(self.i.rest.invalid),
        ]
        passing, lanes = lanes_of(self.i.rest.lanes), lanes_of(self.o.lanes)
        for lane, passed, o in zip(self.i.lanes, passing, lanes, strict=True):
            here = lane.close & (lane.distance == 0)
            near = [here & use for use in reversed(exponent.uses)]
            far = [
                lane.close & (lane.distance == distance) & ~exponent.infinite
                for distance in range(1, len(o.chosen) - deepest)
            ]
            m.d.comb += [
                o.kept.eq(passed.kept),
                o.sign.eq(passed.sign),
                o.infinite.eq(passed.infinite),
                o.chosen.eq(Cat(near, far)),
            ]
        return m


class Choose(Step):
    """`ChooseLane` for each lane."""

    def __init__(self, fmt: Float, kinds: Sequence[Candidates], i: data.StructLayout) -> None:
        self._kinds = kinds
        block = len(i["lanes"].shape.members)
        lanes = [
            StructLayout({"choice": choice_layout(kind.code), "sign": 1, "infinite": 1})
            for kind in kinds
        ]
        o = StructLayout({**i.members, "lanes": lanes_layout(lanes, block)})
        super().__init__(i, o, levels=6, held=o.size - unused_exponent_bits(fmt))

    def elaborate(self, platform: Any) -> Module:
        """Instantiate the lanes."""
        m = Module()
        m.d.comb += [self.o.exponent.eq(self.i.exponent), self.o.invalid.eq(self.i.invalid)]
        pairs = list(zip(lanes_of(self.i.lanes), lanes_of(self.o.lanes), strict=True))
        for i, o in pairs:
            m.d.comb += [o.sign.eq(i.sign), o.infinite.eq(i.infinite)]
        lanes = ({"candidates": i.kept, "chosen": i.chosen, "choice": o.choice} for i, o in pairs)
        makes = [partial(ChooseLane, kind.fmt, kind.rounding, kind.code) for kind in self._kinds]
        add_lanes(m, platform, makes, lanes)
        return m


class Round(Step):
    """`RoundLane` for each lane."""

    def __init__(
        self, fmt: Float, kinds: Sequence[Candidates], mode: Mode, i: data.StructLayout
    ) -> None:
        self._kinds = kinds
        self._mode = mode
        block = len(i["lanes"].shape.members)
        held = rounded_bits(block, mode, fmt)
        super().__init__(i, rounded_layout(block, mode), levels=6, held=held)

    def elaborate(self, platform: Any) -> Module:
        """Instantiate the lanes."""
        m = Module()
        lanes = (
            {"choice": lane.choice, "sign": lane.sign, "infinite": lane.infinite}
            for lane in lanes_of(self.i.lanes)
        )
        makes = [partial(RoundLane, kind.rounding, kind.code) for kind in self._kinds]
        add_rounding(m, platform, self, self._mode, makes, lanes)
        return m


def deterministic_steps(
    block: int, fmt: Float, rounding: Rounding, mode: Mode, view: str = STRUCTURE
) -> list[Step]:
    """Steps from `values_layout` to `rounded_layout`."""
    if view == BEHAVIOUR:
        front, last = encode_words(block, fmt, rounding, mode)
        return [*front, last]
    kinds = [Candidates(fmt, rounding, code) for code in lane_codes(mode)]
    search = search_steps(block, fmt.exponent_bits, passing_layout(block, fmt, kinds))
    shared = SharedExponent(block, fmt, kinds)
    choose = Choose(fmt, kinds, shared.o.shape())
    round_ = Round(fmt, kinds, mode, choose.o.shape())
    return [Unpack(block, fmt, kinds), *search, shared, choose, round_]


def stochastic_steps(
    block: int, fmt: Float, mode: Mode, random_bits: int, view: str
) -> tuple[list[Step], Step]:
    """Steps from `values_layout`, and the one that takes the random words to `rounded_layout`."""
    if view == BEHAVIOUR:
        return encode_words(block, fmt, Rounding.STOCHASTIC, mode, random_bits)
    return random_steps(block, fmt, mode, random_bits)


class Encoder(Pipeline):
    """Encodes a block of floating-point values in each cycle.

    NaN becomes +0 and takes no part in the maximum; an infinity becomes the largest magnitude and
    makes the exponent 255; either raises `invalid` with its block. -0.0 becomes code 0. Dense
    blocks come out as exponent and codes, those of other modes as their packed bytes, zeros behind
    sparse ones. Stochastic rounding takes a random word for each value, `random`, with the block;
    see `StochasticEncoder` for one that has words of its own.

    Args:
        block: values in a block: 8, 16 or 32.
        dtype: of the values: "fp32", "bf16" or "fp16".
        rounding: "nearest", "toward_zero" or "stochastic".
        mode: "dense"; "sparse", for blocks that allow it, the others dense; or "high_precision".
        random_bits: bits of a random word, 1 to 32.
        stages: ranks of registers, from 0.
        view: "structure" or "behaviour"; see `axs6.hw.dot.block_dot.BlockDot`.

    Latency is `stages` cycles, interval 1. Source: specification sections 4, 5 and 7,
    docs/format.md.

    Raises:
        ValueError: a parameter is not what it must be.
    """

    def __init__(
        self,
        block: int = 32,
        dtype: str = "fp32",
        rounding: str = "nearest",
        mode: str = "dense",
        random_bits: int = RANDOM_BITS,
        stages: int = 0,
        view: str = STRUCTURE,
    ) -> None:
        block = check_block(block)
        fmt = float_dtype(dtype, INPUT_DTYPES)
        how, kind = check_rounding(rounding), encoder_mode(mode)
        random = check_random_bits(random_bits) if how is Rounding.STOCHASTIC else 0

        def steps_of(view: str) -> list[Step]:
            if random:
                words = words_layout(block, random)
                front, last = stochastic_steps(block, fmt, kind, random, view)
                steps = [*past(front, words), last]
            else:
                steps = deterministic_steps(block, fmt, how, kind, view)
            return [*steps, *packing_steps(block, kind, fmt)]

        steps, like = viewed(steps_of, view)
        super().__init__(steps, stages, like=like)
