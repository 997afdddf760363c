"""Decoder: a dense AXS-6 block becomes floating-point values."""

from typing import Any

from amaranth.hdl import Cat, Module, Mux, Signal, Value
from amaranth.lib import data, wiring
from amaranth.lib.wiring import In, Out

from axs6.golden.spec import (
    EXPONENT_BITS,
    EXPONENT_MAX,
    MAGNITUDE_BITS,
    MAGNITUDE_MAX,
    OUTPUT_FORMATS,
    FloatFormat,
    check_block_size,
)
from axs6.hw.layouts import block_layout, code_layout, values_layout
from axs6.hw.parameters import float_format
from axs6.hw.pipeline import Pipeline, Step
from axs6.hw.trees import leading_zeros


def _selected_layout(fmt: FloatFormat) -> data.StructLayout:
    return data.StructLayout(
        {"pattern": fmt.width - 1, "round_up": 1, "sign": 1, "one": 1, "zero": 1}
    )


def _places(magnitude: Value, first: int, count: int) -> Value:
    """Binary places `first` to `first + count - 1` of m / 31, as an integer.

    m / 31 is 0.mmm... with the five bits of m for ever; place 0 is worth one half.
    """
    last = first + count - 1
    return Cat(magnitude[-1 - place % MAGNITUDE_BITS] for place in range(last, first - 1, -1))


class SelectLane(wiring.Component):
    """The unrounded pattern of a value: exponent field and fraction, and the bit below them.

    A normal value takes the places of m / 31 from its first one; a subnormal one takes as many
    places as its exponent says. `one` marks m = 31, whose value is a power of two.
    """

    def __init__(self, fmt: FloatFormat) -> None:
        self._fmt = fmt
        super().__init__(
            {
                "exponent": In(EXPONENT_BITS),
                "code": In(code_layout),
                "selected": Out(_selected_layout(fmt)),
            }
        )

    def elaborate(self, platform: Any) -> Module:
        """Build the two selections, by leading zeros and by exponent."""
        m = Module()
        fraction_bits = self._fmt.fraction_bits
        magnitude = self.code.magnitude
        out = self.selected
        zeros = leading_zeros(m, magnitude)
        m.d.comb += [
            out.sign.eq(self.code.sign),
            out.one.eq(magnitude == MAGNITUDE_MAX),
            out.zero.eq(magnitude == 0),
        ]
        normal = Signal(fraction_bits)
        normal_next = Signal()
        with m.Switch(zeros):
            for count in range(MAGNITUDE_BITS):
                with m.Case(count):
                    m.d.comb += [
                        normal.eq(_places(magnitude, count + 1, fraction_bits)),
                        normal_next.eq(_places(magnitude, count + 1 + fraction_bits, 1)),
                    ]
        with m.If(self.exponent > zeros + 1):
            m.d.comb += [
                out.pattern.eq(Cat(normal, (self.exponent - 1 - zeros)[:EXPONENT_BITS])),
                out.round_up.eq(normal_next),
            ]
        with m.Else(), m.Switch(self.exponent):
            for exponent in range(MAGNITUDE_BITS + 1):
                with m.Case(exponent):
                    count = exponent + fraction_bits - 1
                    m.d.comb += [
                        out.pattern.eq(_places(magnitude, 0, count)),
                        out.round_up.eq(_places(magnitude, count, 1)),
                    ]
        return m


class RoundLane(wiring.Component):
    """The rounded value.

    Five places in a row of m / 31 are never all ones unless m = 31, so a carry ends within the
    lowest five bits.
    """

    def __init__(self, fmt: FloatFormat) -> None:
        self._fmt = fmt
        super().__init__(
            {
                "exponent": In(EXPONENT_BITS),
                "selected": In(_selected_layout(fmt)),
                "value": Out(fmt.width),
            }
        )

    def elaborate(self, platform: Any) -> Module:
        """Build the five-bit increment and the power of two."""
        m = Module()
        fmt, x = self._fmt, self.selected
        low = (x.pattern[:MAGNITUDE_BITS] + x.round_up)[:MAGNITUDE_BITS]
        rounded = Cat(low, x.pattern[MAGNITUDE_BITS:])
        power = Signal(fmt.width - 1)
        with m.If(self.exponent == EXPONENT_MAX):
            m.d.comb += power.eq(fmt.max_finite)
        with m.Elif(self.exponent == 0):
            m.d.comb += power.eq(1 << (fmt.fraction_bits - 1))
        with m.Else():
            m.d.comb += power.eq(self.exponent << fmt.fraction_bits)
        magnitude = Mux(x.zero, 0, Mux(x.one, power, rounded))
        m.d.comb += self.value.eq(Cat(magnitude[: fmt.width - 1], x.sign))
        return m


class Select(Step):
    """`SelectLane` for each lane."""

    def __init__(self, block: int, fmt: FloatFormat) -> None:
        self._fmt = fmt
        o = data.StructLayout(
            {
                "exponent": EXPONENT_BITS,
                "lanes": data.ArrayLayout(_selected_layout(fmt), block),
            }
        )
        super().__init__(block_layout(block), o, levels=12)

    def elaborate(self, platform: Any) -> Module:
        """Instantiate the lanes."""
        m = Module()
        m.d.comb += self.o.exponent.eq(self.i.exponent)
        for index, (code, selected) in enumerate(zip(self.i.codes, self.o.lanes, strict=True)):
            lane = m.submodules[f"lane{index}"] = SelectLane(self._fmt)
            m.d.comb += [
                lane.exponent.eq(self.i.exponent),
                lane.code.eq(code),
                selected.eq(lane.selected),
            ]
        return m


class Round(Step):
    """`RoundLane` for each lane."""

    def __init__(self, block: int, fmt: FloatFormat, i: data.StructLayout) -> None:
        self._fmt = fmt
        super().__init__(i, values_layout(block, fmt), levels=8)

    def elaborate(self, platform: Any) -> Module:
        """Instantiate the lanes."""
        m = Module()
        for index, selected in enumerate(self.i.lanes):
            lane = m.submodules[f"lane{index}"] = RoundLane(self._fmt)
            m.d.comb += [
                lane.exponent.eq(self.i.exponent),
                lane.selected.eq(selected),
                self.o.values[index].eq(lane.value),
            ]
        return m


class Decoder(Pipeline):
    """Decodes a dense block in each cycle, each value rounded once to nearest even.

    Subnormals are kept, code 0x20 is -0.0, and 2^128 (magnitude 31 with exponent 255) becomes
    the largest finite value.

    Args:
        block: values in a block: 8, 16 or 32.
        format: of the values: "fp32" or "bf16".
        stages: ranks of registers, 0 to 3.

    Latency is `stages` cycles, interval 1. Source: specification section 6, docs/format.md.
    """

    def __init__(self, block: int = 32, format: str = "fp32", stages: int = 0) -> None:
        block = check_block_size(block)
        fmt = float_format(format, OUTPUT_FORMATS)
        select = Select(block, fmt)
        super().__init__([select, Round(block, fmt, select.o.shape())], stages)
