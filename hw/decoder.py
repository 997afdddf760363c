"""Decoder: a dense AXS-6 block becomes floating-point values.

m / 31 is 0.mmm... with the five bits of m for ever; place p is worth 2^-(p + 1). A normal value
with z leading zeros has the fraction from place z + 1 on and the exponent field E - 1 - z. Where
that field would be below 1, the value is subnormal and its fraction starts at place E - 1. So the
fraction starts at the smaller of the two places, and is five bits, turned and repeated.
"""

from itertools import pairwise
from typing import Any

from amaranth.hdl import Cat, Const, Module, Mux, Signal
from amaranth.lib import data, wiring
from amaranth.lib.wiring import In, Out

from axs6.golden.spec import (
    EXPONENT_BITS,
    EXPONENT_MAX,
    MAGNITUDE_BITS,
    OUTPUT_FORMATS,
    FloatFormat,
    check_block_size,
)
from axs6.hw.layouts import block_layout, code_layout, values_layout
from axs6.hw.parameters import float_format
from axs6.hw.pipeline import Pipeline, Step
from axs6.hw.rtlil import add_lanes
from axs6.hw.trees import chosen

PLACES = MAGNITUDE_BITS + 1
"""A normal fraction starts at place 1 to 5. Place 0 stands for m = 31, a power of two."""

LOW_BITS = 3
"""Bits of an exponent field that differ between all places; the others differ by a borrow."""

ends_layout = data.StructLayout({"lowest": 1, "highest": 1})
"""Whether E is 0, and whether it is 255."""

scale_layout = data.StructLayout(
    {
        "low": data.ArrayLayout(LOW_BITS, PLACES),
        "borrow": PLACES - 1,
        "high": EXPONENT_BITS - LOW_BITS,
        "high_less_one": EXPONENT_BITS - LOW_BITS,
        "reaches": PLACES - 1,
        "ends": ends_layout,
    }
)
"""What the shared exponent E means for all lanes.

A fraction from place k on has the exponent field E - k where `reaches[k - 1]`, E > k: `low[k]` and
`high`, or `high_less_one` where `borrow[k - 1]`.
"""

turned_layout = data.StructLayout(
    {"places": MAGNITUDE_BITS, "field": EXPONENT_BITS, "sign": 1, "power": 1}
)
"""The first five places of the fraction, the first one lowest; the exponent field; the sign; and
whether m is 31."""


REPEATED = 5
"""Bits of the tables that repeat others: bit 0 of E - k has period 2 in k and bit 1 period 4, and
the borrow of E - 4 is the inverse of bit 2 of E."""


class Scale(Step):
    """The tables of `scale_layout` from the shared exponent."""

    def __init__(self, block: int) -> None:
        o = data.StructLayout(
            {"scale": scale_layout, "codes": data.ArrayLayout(code_layout, block)}
        )
        super().__init__(block_layout(block), o, levels=9, held=o.size - REPEATED)

    def elaborate(self, platform: Any) -> Module:
        """Build the subtracters and comparisons."""
        m = Module()
        E, scale = self.i.exponent, self.o.scale
        highest = E == EXPONENT_MAX
        m.d.comb += [
            scale.ends.lowest.eq(E == 0),
            scale.ends.highest.eq(highest),
            scale.reaches.eq(Cat(place < E for place in range(1, PLACES))),
            scale.high.eq(E[LOW_BITS:]),
            scale.high_less_one.eq(E[LOW_BITS:] - 1),
            scale.low[0].eq(E[:LOW_BITS] - highest),
            scale.borrow.eq(Cat(E[:LOW_BITS] < place for place in range(1, PLACES))),
        ]
        m.d.comb += [scale.low[k].eq(E[:LOW_BITS] - k) for k in range(1, PLACES)]
        m.d.comb += [o.eq(i) for i, o in zip(self.i.codes, self.o.codes, strict=True)]
        return m


class TurnLane(wiring.Component):
    """The exponent field of a value, and the five places that its fraction repeats."""

    def __init__(self) -> None:
        super().__init__(
            {"scale": In(scale_layout), "code": In(code_layout), "turned": Out(turned_layout)}
        )

    def elaborate(self, platform: Any) -> Module:
        """Build the search for the first place and the two selections that it makes."""
        m = Module()
        magnitude, scale, turned = self.code.magnitude, self.scale, self.turned
        power = magnitude.all()
        zeros = [~magnitude[-k:].any() if k else Const(1, 1) for k in range(PLACES)]
        reached = [zeros[place] & reaches for place, reaches in enumerate(scale.reaches)]
        normal = [here & magnitude[-place] for place, here in enumerate(reached, 1)]
        normal[0] = normal[0] & ~power
        uses = [power, *normal]
        borrow = Cat(Const(0, 1), scale.borrow)
        borrows, stays = (Cat(uses) & borrow).any(), (Cat(uses) & ~borrow).any()
        highs = [scale.high_less_one, scale.high]
        m.d.comb += [
            turned.sign.eq(self.code.sign),
            turned.power.eq(power),
            turned.field.eq(Cat(chosen(uses, scale.low), chosen([borrows, stays], highs))),
        ]
        limits = [~scale.ends.lowest, *reached, Const(0, 1)]
        starts = [here & ~further for here, further in pairwise(limits)]
        starts[0] = starts[0] | starts.pop()
        starts[-1] = starts[-1] | scale.ends.lowest
        turns = [magnitude.rotate_left(place)[::-1] for place in range(MAGNITUDE_BITS)]
        m.d.comb += turned.places.eq(chosen(starts, turns))
        return m


class RoundLane(wiring.Component):
    """The value, rounded to nearest even.

    Five places in a row of m / 31 are never all ones unless m = 31, so a carry ends within the
    lowest five bits; and the places go on for ever, so there is no tie.
    """

    def __init__(self, fmt: FloatFormat) -> None:
        self._fmt = fmt
        super().__init__(
            {"ends": In(ends_layout), "turned": In(turned_layout), "value": Out(fmt.width)}
        )

    def elaborate(self, platform: Any) -> Module:
        """Build the five-bit increment and the powers of two."""
        m = Module()
        turned, ends = self.turned, self.ends
        count = self._fmt.fraction_bits
        exact = turned.power & ~ends.highest
        places = Signal(MAGNITUDE_BITS)
        low = Signal(MAGNITUDE_BITS)
        fraction = [places[index % MAGNITUDE_BITS] for index in reversed(range(count))]
        up = places[count % MAGNITUDE_BITS] & ~turned.power
        top = Mux(ends.lowest, exact, fraction[-1])
        m.d.comb += [
            places.eq(turned.places & ~exact.replicate(MAGNITUDE_BITS)),
            low.eq(Cat(fraction[:MAGNITUDE_BITS]) + up),
            self.value.eq(Cat(low, fraction[MAGNITUDE_BITS:-1], top, turned.field, turned.sign)),
        ]
        return m


class Turn(Step):
    """`TurnLane` for each lane."""

    def __init__(self, i: data.StructLayout) -> None:
        block = i["codes"].shape.length
        lanes = data.ArrayLayout(turned_layout, block)
        super().__init__(i, data.StructLayout({"ends": ends_layout, "lanes": lanes}), levels=12)

    def elaborate(self, platform: Any) -> Module:
        """Instantiate the lanes."""
        m = Module()
        m.d.comb += self.o.ends.eq(self.i.scale.ends)
        lanes = (
            {"scale": self.i.scale, "code": code, "turned": turned}
            for code, turned in zip(self.i.codes, self.o.lanes, strict=True)
        )
        add_lanes(m, platform, TurnLane, lanes)
        return m


class Round(Step):
    """`RoundLane` for each lane."""

    def __init__(self, fmt: FloatFormat, i: data.StructLayout) -> None:
        self._fmt = fmt
        block = i["lanes"].shape.length
        repeated = fmt.fraction_bits - 1 - 2 * MAGNITUDE_BITS
        held = block * (fmt.width - max(0, repeated))
        super().__init__(i, values_layout(block, fmt), levels=10, held=held)

    def elaborate(self, platform: Any) -> Module:
        """Instantiate the lanes."""
        m = Module()
        lanes = (
            {"ends": self.i.ends, "turned": turned, "value": value}
            for turned, value in zip(self.i.lanes, self.o.values, strict=True)
        )
        add_lanes(m, platform, lambda: RoundLane(self._fmt), lanes)
        return m


class Decoder(Pipeline):
    """Decodes a dense block in each cycle, each value rounded once to nearest even.

    Subnormals are kept, code 0x20 is -0.0, and 2^128 (magnitude 31 with exponent 255) becomes
    the largest finite value.

    Args:
        block: values in a block: 8, 16 or 32.
        format: of the values: "fp32" or "bf16".
        stages: ranks of registers, 0 to 4.

    Latency is `stages` cycles, interval 1. Source: specification section 6, docs/format.md.
    """

    def __init__(self, block: int = 32, format: str = "fp32", stages: int = 0) -> None:
        block = check_block_size(block)
        fmt = float_format(format, OUTPUT_FORMATS)
        scale = Scale(block)
        turn = Turn(scale.o.shape())
        super().__init__([scale, turn, Round(fmt, turn.o.shape())], stages)
