"""Encoder: a block of floating-point values becomes an AXS-6 block."""

from collections.abc import Sequence
from functools import partial
from typing import Any

from amaranth.hdl import Cat, Module
from amaranth.lib import data

from axs6.golden.formats import (
    AXS6,
    FP32,
    BlockFormat,
    Float,
    Integer,
    Mode,
    Real,
    ScaleChoice,
    Selected,
    Shift,
    SignMagnitude,
    block_format,
    name_of,
)
from axs6.golden.formats.catalog import AXS6_ELEMENT, AXS6_SCALE
from axs6.golden.formats.floating import INPUT_DTYPES
from axs6.golden.formats.modes import MODE_BLOCKS
from axs6.golden.rounding import RANDOM_BITS, Rounding, check_random_bits, check_rounding
from axs6.hw.core.layouts import lanes_layout, lanes_of, words_layout
from axs6.hw.core.parameters import BEHAVIOUR, BLOCKS, STRUCTURE, float_dtype
from axs6.hw.core.pipeline import NOTHING, Pipeline, Step, past, viewed
from axs6.hw.core.rtlil import add_lanes
from axs6.hw.core.structures import StructLayout
from axs6.hw.encoder.fields import deepest_subnormal, positions, unused_exponent_bits
from axs6.hw.encoder.format_steps import format_steps
from axs6.hw.encoder.front import BlockExponent, UnpackFloats, passing_layout
from axs6.hw.encoder.lane import Candidates, ChooseLane, RoundChoiceLane, choice_layout
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
from axs6.hw.encoder.scaled import Scaled
from axs6.hw.encoder.scaled_steps import scaled_steps
from axs6.hw.encoder.scheme import Scheme
from axs6.hw.encoder.selected_steps import selected_steps
from axs6.hw.encoder.words import encode_words


class SharedExponent(Step):
    """The block's exponent, and the lanes' distances from it, one bit for each."""

    def __init__(self, block: int, dtype: Float, kinds: Sequence[Candidates]) -> None:
        self._dtype = dtype
        rest = passing_layout(block, dtype, kinds)
        lanes = [
            StructLayout(
                {
                    "kept": kind.layout,
                    "sign": 1,
                    "infinite": 1,
                    "chosen": positions(dtype, kind.code),
                }
            )
            for kind in kinds
        ]
        o = StructLayout(
            {"exponent": AXS6_SCALE.bits, "lanes": lanes_layout(lanes, block), "invalid": 1}
        )
        i = distances_layout(block, dtype.exponent_bits, rest)
        super().__init__(i, o, levels=9, held=o.size - unused_exponent_bits(dtype))

    def elaborate(self, platform: Any) -> Module:
        """Build the exponent of a block of subnormals, and decode the distances."""
        m = Module()
        exponent = BlockExponent(m, self._dtype, self.i)
        deepest = deepest_subnormal(self._dtype)
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

    def __init__(self, dtype: Float, kinds: Sequence[Candidates], i: data.StructLayout) -> None:
        self._kinds = kinds
        block = len(i["lanes"].shape.members)
        lanes = [
            StructLayout({"choice": choice_layout(kind.code), "sign": 1, "infinite": 1})
            for kind in kinds
        ]
        o = StructLayout({**i.members, "lanes": lanes_layout(lanes, block)})
        super().__init__(i, o, levels=6, held=o.size - unused_exponent_bits(dtype))

    def elaborate(self, platform: Any) -> Module:
        """Instantiate the lanes."""
        m = Module()
        m.d.comb += [self.o.exponent.eq(self.i.exponent), self.o.invalid.eq(self.i.invalid)]
        pairs = list(zip(lanes_of(self.i.lanes), lanes_of(self.o.lanes), strict=True))
        for i, o in pairs:
            m.d.comb += [o.sign.eq(i.sign), o.infinite.eq(i.infinite)]
        lanes = ({"candidates": i.kept, "chosen": i.chosen, "choice": o.choice} for i, o in pairs)
        makes = [partial(ChooseLane, kind.dtype, kind.rounding, kind.code) for kind in self._kinds]
        add_lanes(m, platform, makes, lanes)
        return m


class RoundChoices(Step):
    """`RoundChoiceLane` for each lane."""

    verilog_name = "round"

    def __init__(
        self, dtype: Float, kinds: Sequence[Candidates], mode: Mode, i: data.StructLayout
    ) -> None:
        self._kinds = kinds
        self._mode = mode
        block = len(i["lanes"].shape.members)
        held = rounded_bits(block, mode, dtype)
        super().__init__(i, rounded_layout(block, mode), levels=6, held=held)

    def elaborate(self, platform: Any) -> Module:
        """Instantiate the lanes."""
        m = Module()
        lanes = (
            {"choice": lane.choice, "sign": lane.sign, "infinite": lane.infinite}
            for lane in lanes_of(self.i.lanes)
        )
        makes = [partial(RoundChoiceLane, kind.rounding, kind.code) for kind in self._kinds]
        add_rounding(m, platform, self, self._mode, makes, lanes)
        return m


def deterministic_steps(
    block: int, dtype: Float, rounding: Rounding, mode: Mode, view: str = STRUCTURE
) -> list[Step]:
    """Steps from `values_layout` to `rounded_layout`."""
    if view == BEHAVIOUR:
        front, last = encode_words(block, dtype, rounding, mode)
        return [*front, last]
    kinds = [Candidates(dtype, rounding, code) for code in lane_codes(mode)]
    search = search_steps(block, dtype.exponent_bits, passing_layout(block, dtype, kinds))
    shared = SharedExponent(block, dtype, kinds)
    choose = Choose(dtype, kinds, shared.o.shape())
    round_ = RoundChoices(dtype, kinds, mode, choose.o.shape())
    return [UnpackFloats(block, dtype, kinds), *search, shared, choose, round_]


def stochastic_steps(
    block: int, dtype: Float, mode: Mode, random_bits: int, view: str
) -> tuple[list[Step], Step]:
    """Steps from `values_layout`, and the one that takes the random words to `rounded_layout`."""
    if view == BEHAVIOUR:
        return encode_words(block, dtype, Rounding.STOCHASTIC, mode, random_bits)
    return random_steps(block, dtype, mode, random_bits)


def compares_codes(fmt: BlockFormat) -> bool:
    """Whether lanes that compare a significand with itself, a code's bits further, give codes.

    They do where the largest element is the scale itself: its unit is divided by 2^n - 1. See
    `axs6.hw.encoder.lane`.
    """
    like = fmt.block in MODE_BLOCKS and AXS6.with_block(fmt.block).levels == fmt.levels
    return like and fmt.element == AXS6_ELEMENT


def encoder_format(
    fmt: BlockFormat, block: int | None, mode: Mode, unit: str
) -> tuple[BlockFormat, int]:
    """The format, with blocks of a size, that a unit gives in a mode, and the values of an item.

    Raises:
        ValueError: there is no hardware for it; the message says for what of it.
    """
    lanes = fmt.block if block is None else block
    if block is not None and fmt.blocked:
        fmt = fmt.with_block(block)
    if mode is not Mode.DENSE and not fmt.has_modes:
        raise ValueError(f"mode must be dense for {name_of(fmt)}, not {mode.label!r}")
    if not compares_codes(fmt):
        check_format(fmt, lanes, unit)
    return fmt, lanes


def encoder_steps(
    fmt: BlockFormat,
    lanes: int,
    dtype: Float,
    rounding: Rounding,
    random_bits: int,
    mode: Mode,
    view: str,
) -> tuple[list[Step], Step, list[Step]]:
    """Steps from the values, the one that takes the random words, if any, and those after it.

    Args:
        fmt: a block format that `encoder_format` returned.
        lanes: values of an item, which it returned too.
        dtype: of the values.
        rounding: how they are rounded.
        random_bits: bits of a random word, 0 unless rounding is stochastic.
        mode: of the blocks.
        view: one of `axs6.hw.core.parameters.VIEWS`.
    """
    if not compares_codes(fmt):
        if isinstance(fmt.element, Selected):
            front, last = selected_steps(Scaled(fmt, dtype, rounding, random_bits, lanes))
        elif fmt.exponent is None:
            front, last = scaled_steps(Scaled(fmt, dtype, rounding, random_bits, lanes))
        else:
            front, last = format_steps(Scheme(fmt, dtype, rounding, random_bits))
        return front, last, []
    packing = packing_steps(fmt.block, mode, dtype)
    if random_bits:
        front, last = stochastic_steps(fmt.block, dtype, mode, random_bits, view)
    else:
        *front, last = deterministic_steps(fmt.block, dtype, rounding, mode, view)
    return front, last, packing


class Encoder(Pipeline):
    """Encodes a block of floating-point values in each cycle.

    In formats with NaN, such as those of OCP, NaN and infinities keep their meaning: as elements,
    where there are such, else by making the block's exponent NaN and all its codes 0. In formats
    without, AXS-6 among them, NaN becomes +0 and takes no part in the maximum, and an infinity the
    largest element of a block with the exponent of the largest FP32 value. Either raises `invalid`
    with its block. -0.0 keeps its sign where the format says so. Dense blocks come out as scales
    and codes, those of other modes as their packed bytes, zeros behind sparse ones. Stochastic
    rounding takes a random word for each value, `random`, with the block; see `StochasticEncoder`
    for one that has words of its own.

    Args:
        block: values in a block: 8, 16 or 32 of AXS-6, 8 to 128 of other formats; None for the
            format's own.
        dtype: of the values: "fp32", "bf16" or "fp16".
        rounding: "nearest", "toward_zero" or "stochastic".
        mode: "dense"; and for formats with modes "sparse", for blocks that allow it, the others
            dense; or "high_precision".
        random_bits: bits of a random word, 1 to 32.
        stages: ranks of registers, from 0.
        view: "structure" or "behaviour"; see `axs6.hw.dot.block_dot.BlockDot`. They differ in
            AXS-6 alone.
        format: block format: a name or a string, with the rule of its exponent if it has one, such
            as "mxfp4-rceil".

    Ports:
        i (in, stream): an item is a block of values.
        i.values (in, `block` x the bits of `dtype`): the values as bit patterns, lane 0 first.
        i.outer (in, 32 bits): the scale of the tensor or channel in FP32, where the format has one.
        i.random (in, `block` x `random_bits`): a random word for each value; with stochastic
            rounding alone.
        o (out, stream): an item is the block.
        o.block.exponent, o.block.scale, o.block.shifts, o.block.factor (out, the bits of each
            scale): codes of the scales that the format has, coarse to fine; an array where groups
            are smaller than the block. See `axs6.hw.core.layouts.scale_names`.
        o.block.outer (out, 32 bits): the scale of the tensor or channel by which values were
            divided: `i.outer` held to normal numbers, NaN if it is no positive finite number.
        o.block.codes (out, `block` x the bits of an element): the codes, lane 0 first.
        o.block.mode, o.block.reserved (out, 2 and 6 bits): header of a packed block, in place of
            codes where `mode` is not dense.
        o.block.payload (out, bytes): the bytes after the header, zeros behind a sparse block.
        o.invalid (out, 1 bit): whether a value was NaN or infinite and the block cannot say so.

    Latency is `stages` cycles, interval 1. Source: specification sections 4, 5 and 7,
    docs/format.md and docs/formats.md.

    Raises:
        ValueError: a parameter is not what it must be, or the format has no hardware.
    """

    def __init__(
        self,
        block: int | None = None,
        dtype: str = "fp32",
        rounding: str = "nearest",
        mode: str = "dense",
        random_bits: int = RANDOM_BITS,
        stages: int = 0,
        view: str = STRUCTURE,
        format: str = "axs6",
    ) -> None:
        kind = encoder_mode(mode)
        fmt, lanes = encoder_format(block_format(format), block, kind, "encoder")
        values = float_dtype(dtype, INPUT_DTYPES)
        rounding_mode = check_rounding(rounding)
        random = check_random_bits(random_bits) if rounding_mode is Rounding.STOCHASTIC else 0

        def steps_of(view: str) -> list[Step]:
            front, last, packing = encoder_steps(
                fmt, lanes, values, rounding_mode, random, kind, view
            )
            words = words_layout(lanes, random) if random else NOTHING
            return [*past(front, words), last, *packing]

        steps, like = viewed(steps_of, view)
        super().__init__(steps, stages, like=like)


def check_format(fmt: BlockFormat, lanes: int, unit: str) -> None:
    """Raise ValueError, saying what has no hardware, for a format that encoders cannot give.

    Args:
        fmt: the block format.
        lanes: values of an item.
        unit: name of the unit.
    """
    missing = _missing(fmt)
    if missing is not None:
        raise ValueError(f"{unit} has no hardware for {missing}, which {name_of(fmt)} has")
    if lanes not in BLOCKS:
        known = ", ".join(map(str, BLOCKS))
        raise ValueError(f"block must be one of {known}, not {lanes}")
    element, codes = fmt.element, [level.scale.nan_code for level in fmt.levels]
    no_code = codes == [None] * len(codes)
    if element.has_nan and not element.has_infinity and no_code:
        raise ValueError(
            f"{unit} has no hardware for {name_of(fmt)}, in which infinities have no code"
        )
    if fmt.exponent is None and not fmt.has_nan:
        raise ValueError(f"{unit} has no hardware for {name_of(fmt)}, in which NaN has no code")


def encoded(fmt: BlockFormat) -> bool:
    """Whether there is hardware that encodes all parts of a format."""
    return _missing(fmt) is None


def _missing(fmt: BlockFormat) -> str | None:
    """The part of a format that has no hardware."""
    if fmt.rows > 1:
        return "scales of tiles (a code would wait for the last row)"
    if fmt.choice is not ScaleChoice.MAX:
        return f"the choice {fmt.choice}"
    if not fmt.element.signed:
        return "zero points"
    if fmt.has_modes:
        return "modes"
    scales = [level.scale for level in fmt.levels]
    if fmt.exponent is None:
        return _missing_of_real(fmt)
    if any(isinstance(scale, Real | Integer) for scale in scales):
        return "an exponent under real scales"
    if fmt.outer:
        return f"the exponent of a {fmt.outer[0].group}"
    return None


def _missing_of_real(fmt: BlockFormat) -> str | None:
    """The part without hardware of a format whose scales are real numbers and integers."""
    if len(fmt.outer) > 1:
        return "scales of both channels and a tensor"
    if any(level.scale != Real(FP32) for level in fmt.outer):
        return "an outer scale that is not float32"
    inner = [level.scale for level in fmt.blocked if not isinstance(level.scale, Shift)]
    if len(inner) > 1:
        return "two scales within a block, neither a power of two"
    elements = [part.element for part in fmt.parts]
    if any(isinstance(x, SignMagnitude) and not x.signed_zero for x in elements):
        return "elements that drop the sign of -0.0 under a real scale"
    return None
