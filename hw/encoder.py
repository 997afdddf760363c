"""Encoder: a block of floating-point values becomes a dense AXS-6 block."""

from typing import Any

from amaranth.hdl import Cat, Const, Module, Signal
from amaranth.lib import data, wiring
from amaranth.lib.wiring import In, Out

from axs6.golden.spec import (
    DETERMINISTIC,
    EXPONENT_BITS,
    INPUT_FORMATS,
    FloatFormat,
    Rounding,
    check_block_size,
    check_rounding,
)
from axs6.hw.encoder_fields import (
    deciding_bits,
    deepest_subnormal,
    exponent_offset,
    positions,
    reaches_highest,
    reaches_zero,
    unused_exponent_bits,
)
from axs6.hw.encoder_lane import (
    ChooseLane,
    CompareLane,
    RoundLane,
    candidates_layout,
    choice_layout,
)
from axs6.hw.largest import distances_layout, search_layout, search_steps
from axs6.hw.layouts import encoded_layout, float_layout, values_layout
from axs6.hw.parameters import float_format
from axs6.hw.pipeline import Pipeline, Step
from axs6.hw.rtlil import add_lanes
from axs6.hw.trees import any_of, chosen


def passing_layout(block: int, fmt: FloatFormat) -> data.StructLayout:
    """What passes by the search for the largest exponent field.

    A lane's `sign` is that of its code. `normal` says that a value of the block is normal, and
    `fractions` are the deciding fraction bits of those that are not, or-ed.
    """
    lane = {"candidates": candidates_layout(fmt), "sign": 1, "infinite": 1}
    return data.StructLayout(
        {
            "lanes": data.ArrayLayout(data.StructLayout(lane), block),
            "normal": 1,
            "fractions": deciding_bits(fmt),
            "invalid": 1,
        }
    )


class UnpackLane(wiring.Component):
    """Fields of one value, zeros and NaN without sign.

    Subnormals have exponent field 1 and infinities that of the largest finite value.
    """

    def __init__(self, fmt: FloatFormat, rounding: Rounding) -> None:
        self._fmt = fmt
        self._rounding = rounding
        super().__init__(
            {
                "value": In(fmt.width),
                "field": Out(fmt.exponent_bits),
                "candidates": Out(candidates_layout(fmt)),
                "fractions": Out(deciding_bits(fmt)),
                "sign": Out(1),
                "normal": Out(1),
                "infinite": Out(1),
                "nan": Out(1),
            }
        )

    def elaborate(self, platform: Any) -> Module:
        """Build the tests for special values and the comparison within the significand."""
        m = Module()
        m.submodules.compare = compare = CompareLane(self._fmt, self._rounding)
        x = data.View(float_layout(self._fmt), self.value)
        hidden, nonzero, special = x.exponent.any(), x.fraction.any(), x.exponent.all()
        deciding = x.fraction[-len(self.fractions) :]
        m.d.comb += [
            self.nan.eq(special & nonzero),
            self.infinite.eq(special & ~nonzero),
            self.normal.eq(hidden & ~self.nan),
            self.sign.eq(x.sign & (hidden | nonzero) & ~self.nan),
            self.field.eq(Cat((x.exponent[0] & ~special) | ~hidden, x.exponent[1:])),
            self.fractions.eq(deciding & ~hidden.replicate(len(deciding))),
            compare.significand.eq(Cat(x.fraction, hidden)),
            self.candidates.eq(compare.o),
        ]
        return m


class Unpack(Step):
    """`UnpackLane` for each value."""

    def __init__(self, block: int, fmt: FloatFormat, rounding: Rounding) -> None:
        self._fmt = fmt
        self._rounding = rounding
        rest = passing_layout(block, fmt)
        o = search_layout(block, fmt.exponent_bits, fmt.exponent_bits, rest)
        super().__init__(values_layout(block, fmt), o, levels=17)

    def elaborate(self, platform: Any) -> Module:
        """Instantiate the lanes."""
        m = Module()
        rest = self.o.rest
        count = len(self.i.values)
        normal, nan = (Signal(data.ArrayLayout(1, count), name=n) for n in ("normal", "nan"))
        fractions = Signal(data.ArrayLayout(deciding_bits(self._fmt), count))
        lanes = (
            {
                "value": value,
                "field": self.o.lanes[index].field,
                "candidates": rest.lanes[index].candidates,
                "fractions": fractions[index],
                "sign": rest.lanes[index].sign,
                "normal": normal[index],
                "infinite": rest.lanes[index].infinite,
                "nan": nan[index],
            }
            for index, value in enumerate(self.i.values)
        )
        add_lanes(m, platform, lambda: UnpackLane(self._fmt, self._rounding), lanes)
        m.d.comb += [
            rest.normal.eq(any_of(normal)),
            rest.fractions.eq(any_of(fractions)),
            rest.invalid.eq(any_of([x.infinite | y for x, y in zip(rest.lanes, nan, strict=True)])),
            *(lane.equal.eq(~y) for lane, y in zip(self.o.lanes, nan, strict=True)),
        ]
        return m


class SharedExponent(Step):
    """The block's exponent, and the lanes' distances from it, one bit for each."""

    def __init__(self, block: int, fmt: FloatFormat) -> None:
        self._fmt = fmt
        rest = passing_layout(block, fmt)
        passing = dict(rest["lanes"].shape.elem_shape.members)
        lane = data.StructLayout({**passing, "chosen": positions(fmt)})
        o = data.StructLayout(
            {"exponent": EXPONENT_BITS, "lanes": data.ArrayLayout(lane, block), "invalid": 1}
        )
        i = distances_layout(block, fmt.exponent_bits, rest)
        super().__init__(i, o, levels=9, held=o.size - unused_exponent_bits(fmt))

    def elaborate(self, platform: Any) -> Module:
        """Build the exponent of a block of subnormals, and decode the distances."""
        m = Module()
        rest = self.i.rest
        offset, deepest = exponent_offset(self._fmt), deepest_subnormal(self._fmt)
        infinite = Signal()
        if not reaches_highest(self._fmt):
            m.d.comb += infinite.eq(any_of([lane.infinite for lane in rest.lanes]))
        deeper = [rest.normal, *reversed(rest.fractions)]
        if reaches_zero(self._fmt):
            deeper.append(Const(1, 1))
        raised = [found & ~Cat(deeper[:depth]).any() for depth, found in enumerate(deeper)]
        exponents = [Const(1 + offset - depth, EXPONENT_BITS) for depth in range(len(deeper))]
        exponents[0] = (self.i.largest + offset)[:EXPONENT_BITS]
        uses = [use & ~infinite for use in raised]
        m.d.comb += [
            self.o.exponent.eq(chosen(uses, exponents) | infinite.replicate(EXPONENT_BITS)),
            self.o.invalid.eq(rest.invalid),
        ]
        for lane, passing, o in zip(self.i.lanes, rest.lanes, self.o.lanes, strict=True):
            here = lane.close & (lane.distance == 0)
            near = [here & use for use in reversed(uses)]
            far = [
                lane.close & (lane.distance == distance) & ~infinite
                for distance in range(1, positions(self._fmt) - deepest)
            ]
            m.d.comb += [
                o.candidates.eq(passing.candidates),
                o.sign.eq(passing.sign),
                o.infinite.eq(passing.infinite),
                o.chosen.eq(Cat(near, far)),
            ]
        return m


class Choose(Step):
    """`ChooseLane` for each lane."""

    def __init__(
        self, block: int, fmt: FloatFormat, rounding: Rounding, i: data.StructLayout
    ) -> None:
        self._fmt = fmt
        self._rounding = rounding
        lane = data.StructLayout({"choice": choice_layout, "sign": 1, "infinite": 1})
        o = data.StructLayout({**i.members, "lanes": data.ArrayLayout(lane, block)})
        super().__init__(i, o, levels=6, held=o.size - unused_exponent_bits(fmt))

    def elaborate(self, platform: Any) -> Module:
        """Instantiate the lanes."""
        m = Module()
        m.d.comb += [self.o.exponent.eq(self.i.exponent), self.o.invalid.eq(self.i.invalid)]
        pairs = list(zip(self.i.lanes, self.o.lanes, strict=True))
        for i, o in pairs:
            m.d.comb += [o.sign.eq(i.sign), o.infinite.eq(i.infinite)]
        lanes = (
            {"candidates": i.candidates, "chosen": i.chosen, "choice": o.choice} for i, o in pairs
        )
        add_lanes(m, platform, lambda: ChooseLane(self._fmt, self._rounding), lanes)
        return m


class Round(Step):
    """`RoundLane` for each lane."""

    def __init__(
        self, block: int, fmt: FloatFormat, rounding: Rounding, i: data.StructLayout
    ) -> None:
        self._rounding = rounding
        o = encoded_layout(block)
        super().__init__(i, o, levels=6, held=o.size - unused_exponent_bits(fmt))

    def elaborate(self, platform: Any) -> Module:
        """Instantiate the lanes."""
        m = Module()
        m.d.comb += [
            self.o.block.exponent.eq(self.i.exponent),
            self.o.invalid.eq(self.i.invalid),
        ]
        lanes = (
            {"choice": i.choice, "sign": i.sign, "infinite": i.infinite, "code": code}
            for i, code in zip(self.i.lanes, self.o.block.codes, strict=True)
        )
        add_lanes(m, platform, lambda: RoundLane(self._rounding), lanes)
        return m


class Encoder(Pipeline):
    """Encodes a block of floating-point values in each cycle.

    NaN becomes +0 and takes no part in the maximum; an infinity becomes magnitude 31 and makes
    the exponent 255; either raises `invalid` with its block. -0.0 becomes code 0.

    Args:
        block: values in a block: 8, 16 or 32.
        format: of the values: "fp32", "bf16" or "fp16".
        rounding: "nearest" or "toward_zero".
        stages: ranks of registers, from 0.

    Latency is `stages` cycles, interval 1. Source: specification section 5, docs/format.md.
    """

    def __init__(
        self, block: int = 32, format: str = "fp32", rounding: str = "nearest", stages: int = 0
    ) -> None:
        block = check_block_size(block)
        fmt = float_format(format, INPUT_FORMATS)
        mode = check_rounding(rounding, DETERMINISTIC)
        search = search_steps(block, fmt.exponent_bits, passing_layout(block, fmt))
        shared = SharedExponent(block, fmt)
        choose = Choose(block, fmt, mode, shared.o.shape())
        steps = [Unpack(block, fmt, mode), *search, shared, choose]
        super().__init__([*steps, Round(block, fmt, mode, choose.o.shape())], stages)
