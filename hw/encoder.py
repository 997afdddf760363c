"""Encoder: a block of floating-point values becomes a dense AXS-6 block."""

from typing import Any

from amaranth.hdl import Cat, Module, Mux, Signal, signed
from amaranth.lib import data, wiring
from amaranth.lib.wiring import In, Out

from axs6.golden.spec import (
    EXPONENT_BIAS,
    EXPONENT_BITS,
    EXPONENT_MAX,
    INPUT_FORMATS,
    MAGNITUDE_BITS,
    MAGNITUDE_MAX,
    FloatFormat,
    Rounding,
    check_block_size,
    check_rounding,
)
from axs6.hw.layouts import code_layout, encoded_layout, float_layout, values_layout
from axs6.hw.parameters import float_format
from axs6.hw.pipeline import Pipeline, Step
from axs6.hw.trees import any_of, leading_zeros, maximum


def exponent_offset(fmt: FloatFormat) -> int:
    """Shared exponent minus exponent field, for a block whose largest value is normal."""
    return EXPONENT_BIAS + 1 - fmt.bias


def deepest_subnormal(fmt: FloatFormat) -> int:
    """How far the shared exponent goes below that of field 1, for a block of subnormals.

    Down to the lowest significand bit for fp16; fp32 and bf16 reach exponent 0 after 2.
    """
    return min(fmt.fraction_bits, exponent_offset(fmt) + 1)


def window_bits(fmt: FloatFormat) -> int:
    """Bits of 31 * significand that any shift distance looks at."""
    return MAGNITUDE_BITS + 1 + deepest_subnormal(fmt)


def shift_bits(fmt: FloatFormat) -> int:
    """Width of a shift distance within the window."""
    return (window_bits(fmt) - 1).bit_length()


class Unpack(Step):
    """Fields of each value, NaN made +0, zeros made positive, subnormals given exponent 1."""

    def __init__(self, block: int, fmt: FloatFormat) -> None:
        self._fmt = fmt
        lane = data.StructLayout(
            {
                "significand": fmt.fraction_bits + 1,
                "exponent": fmt.exponent_bits,
                "sign": 1,
                "infinite": 1,
            }
        )
        lanes = data.StructLayout({"lanes": data.ArrayLayout(lane, block), "invalid": 1})
        super().__init__(values_layout(block, fmt), lanes, levels=5)

    def elaborate(self, platform: Any) -> Module:
        """Build one unpacker for each lane."""
        m = Module()
        special = []
        for value, lane in zip(self.i.values, self.o.lanes, strict=True):
            x = data.View(float_layout(self._fmt), value)
            is_special = x.exponent == self._fmt.exponent_special
            special.append(is_special)
            normal = x.exponent.any()
            nonzero = normal | x.fraction.any()
            with m.If(is_special):
                m.d.comb += [
                    lane.infinite.eq(~x.fraction.any()),
                    lane.sign.eq(x.sign & ~x.fraction.any()),
                    lane.exponent.eq(1),
                ]
            with m.Else():
                m.d.comb += [
                    lane.significand.eq(Cat(x.fraction, normal)),
                    lane.exponent.eq(Mux(normal, x.exponent, 1)),
                    lane.sign.eq(x.sign & nonzero),
                ]
        m.d.comb += self.o.invalid.eq(any_of(special))
        return m


class SharedExponent(Step):
    """The block's exponent, from the largest exponent field.

    Only a block without normal values looks further, at the leading zeros of the or of its
    significands.
    """

    def __init__(self, block: int, fmt: FloatFormat, lanes: data.StructLayout) -> None:
        self._fmt = fmt
        o = data.StructLayout({**lanes.members, "exponent": EXPONENT_BITS})
        super().__init__(lanes, o, levels=8 * (block - 1).bit_length() + 6)

    def elaborate(self, platform: Any) -> Module:
        """Build the tree of maxima and the correction for subnormals."""
        m = Module()
        lanes = self.i.lanes
        offset = exponent_offset(self._fmt)
        largest = maximum(m, [lane.exponent for lane in lanes])
        ones = any_of([lane.significand for lane in lanes])
        zeros = leading_zeros(m, ones)
        m.d.comb += [self.o.lanes.eq(lanes), self.o.invalid.eq(self.i.invalid)]
        with m.If(any_of([lane.infinite for lane in lanes])):
            m.d.comb += self.o.exponent.eq(EXPONENT_MAX)
        with m.Elif(largest != 1):
            m.d.comb += self.o.exponent.eq(largest + offset)
        with m.Elif(zeros <= deepest_subnormal(self._fmt)):
            m.d.comb += self.o.exponent.eq(1 + offset - zeros)
        return m


class ScaleLane(wiring.Component):
    """31 * significand, the part of it that a code can need, and the lane's shift distance.

    With d the lane's exponent below the block's, the code is 31 * M / 2^(F + 1 + d). Distances of
    6 and more give 0; `vanishes` says so.
    """

    def __init__(self, fmt: FloatFormat) -> None:
        self._fmt = fmt
        super().__init__(
            {
                "significand": In(fmt.fraction_bits + 1),
                "exponent": In(fmt.exponent_bits),
                "shared": In(EXPONENT_BITS),
                "window": Out(window_bits(fmt)),
                "shift": Out(shift_bits(fmt)),
                "vanishes": Out(1),
            }
        )

    def elaborate(self, platform: Any) -> Module:
        """Build the constant multiplier and the subtracter."""
        m = Module()
        fmt = self._fmt
        product = Signal(fmt.fraction_bits + 1 + MAGNITUDE_BITS)
        distance = Signal(signed(EXPONENT_BITS + 2))
        base = exponent_offset(fmt) - deepest_subnormal(fmt)
        m.d.comb += [
            product.eq((self.significand << MAGNITUDE_BITS) - self.significand),
            distance.eq(self.shared - self.exponent - base),
            self.window.eq(product[-window_bits(fmt) :]),
            self.shift.eq(distance[: shift_bits(fmt)]),
            self.vanishes.eq(distance[shift_bits(fmt) :].any()),
        ]
        return m


class RoundLane(wiring.Component):
    """The lane's window shifted and rounded to a code.

    Nearest is half up: the only tie is at half the scale, where up is even (docs/format.md).
    """

    def __init__(self, fmt: FloatFormat, rounding: Rounding) -> None:
        self._fmt = fmt
        self._rounding = rounding
        super().__init__(
            {
                "window": In(window_bits(fmt)),
                "shift": In(shift_bits(fmt)),
                "vanishes": In(1),
                "sign": In(1),
                "infinite": In(1),
                "code": Out(code_layout),
            }
        )

    def elaborate(self, platform: Any) -> Module:
        """Build the shifter, whose result has one bit below the magnitude, and the increment."""
        m = Module()
        doubled = Signal(MAGNITUDE_BITS + 1)
        with m.If(~self.vanishes):
            m.d.comb += doubled.eq(self.window >> self.shift)
        up = int(self._rounding is Rounding.NEAREST)
        magnitude = Mux(self.infinite, MAGNITUDE_MAX, (doubled + up) >> 1)
        m.d.comb += [self.code.magnitude.eq(magnitude), self.code.sign.eq(self.sign)]
        return m


class Scale(Step):
    """`ScaleLane` for each lane."""

    def __init__(self, block: int, fmt: FloatFormat, i: data.StructLayout) -> None:
        self._fmt = fmt
        lane = data.StructLayout(
            {
                "window": window_bits(fmt),
                "shift": shift_bits(fmt),
                "vanishes": 1,
                "sign": 1,
                "infinite": 1,
            }
        )
        o = data.StructLayout({**i.members, "lanes": data.ArrayLayout(lane, block)})
        super().__init__(i, o, levels=14)

    def elaborate(self, platform: Any) -> Module:
        """Instantiate the lanes."""
        m = Module()
        m.d.comb += [self.o.exponent.eq(self.i.exponent), self.o.invalid.eq(self.i.invalid)]
        for index, (i, o) in enumerate(zip(self.i.lanes, self.o.lanes, strict=True)):
            lane = m.submodules[f"lane{index}"] = ScaleLane(self._fmt)
            m.d.comb += [
                lane.significand.eq(i.significand),
                lane.exponent.eq(i.exponent),
                lane.shared.eq(self.i.exponent),
                o.window.eq(lane.window),
                o.shift.eq(lane.shift),
                o.vanishes.eq(lane.vanishes),
                o.sign.eq(i.sign),
                o.infinite.eq(i.infinite),
            ]
        return m


class Round(Step):
    """`RoundLane` for each lane."""

    def __init__(
        self, block: int, fmt: FloatFormat, rounding: Rounding, i: data.StructLayout
    ) -> None:
        self._fmt = fmt
        self._rounding = rounding
        super().__init__(i, encoded_layout(block), levels=10)

    def elaborate(self, platform: Any) -> Module:
        """Instantiate the lanes."""
        m = Module()
        m.d.comb += [
            self.o.block.exponent.eq(self.i.exponent),
            self.o.invalid.eq(self.i.invalid),
        ]
        for index, (i, code) in enumerate(zip(self.i.lanes, self.o.block.codes, strict=True)):
            lane = m.submodules[f"lane{index}"] = RoundLane(self._fmt, self._rounding)
            m.d.comb += [
                lane.window.eq(i.window),
                lane.shift.eq(i.shift),
                lane.vanishes.eq(i.vanishes),
                lane.sign.eq(i.sign),
                lane.infinite.eq(i.infinite),
                code.eq(lane.code),
            ]
        return m


class Encoder(Pipeline):
    """Encodes a block of floating-point values in each cycle.

    NaN becomes +0 and takes no part in the maximum; an infinity becomes magnitude 31 and makes
    the exponent 255; either raises `invalid` with its block. -0.0 becomes code 0.

    Args:
        block: values in a block: 8, 16 or 32.
        format: of the values: "fp32", "bf16" or "fp16".
        rounding: "nearest" or "toward_zero".
        stages: ranks of registers, 0 to 5.

    Latency is `stages` cycles, interval 1. Source: specification section 5, docs/format.md.
    """

    def __init__(
        self, block: int = 32, format: str = "fp32", rounding: str = "nearest", stages: int = 0
    ) -> None:
        block = check_block_size(block)
        fmt = float_format(format, INPUT_FORMATS)
        mode = check_rounding(rounding)
        unpack = Unpack(block, fmt)
        shared = SharedExponent(block, fmt, unpack.o.shape())
        scale = Scale(block, fmt, shared.o.shape())
        super().__init__([unpack, shared, scale, Round(block, fmt, mode, scale.o.shape())], stages)
