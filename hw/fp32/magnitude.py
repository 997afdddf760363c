"""From an integer to a magnitude without leading zeros, and its exponent."""

from typing import Any

from amaranth.hdl import Cat, Const, Module, Mux, Value
from amaranth.lib import data

from axs6.hw.core.pipeline import Step
from axs6.hw.core.structures import StructLayout
from axs6.hw.core.trees import leading_zeros, leading_zeros_of, zero_groups
from axs6.hw.fp32.common import BYTE, pass_on
from axs6.hw.fp32.number import REST, Number


class SplitMagnitude(Step):
    """Sign and magnitude of the sum, in the fields `sum` and, above it, `high`."""

    verilog_name = "magnitude"

    def __init__(self, number: Number, i: data.StructLayout) -> None:
        self._number = number
        super().__init__(i, number.given, levels=4 + 2 * (number.width - 1).bit_length())

    def elaborate(self, platform: Any) -> Module:
        """Build the negation."""
        m = Module()
        i = self.i
        total = Cat(i.sum, i.high).as_signed() if "high" in i.shape().members else i.sum
        negative = total < 0
        m.d.comb += [
            self.o.sign.eq(negative),
            self.o.magnitude.eq(Mux(negative, -total, total)),
        ]
        beside = [name for name in ("exponent", "special") if name in self.o.shape().members]
        pass_on(m, self, *beside)
        return m


class CountMagnitudeZeros(Step):
    """Leading zeros of the magnitude, and the exponent of its top bit's place."""

    verilog_name = "count"

    def __init__(self, number: Number) -> None:
        self._number = number
        super().__init__(number.given, number.counted, levels=2 + 2 * number.zeros)

    def elaborate(self, platform: Any) -> Module:
        """Build the tree and the subtraction."""
        m = Module()
        m.d.comb += [
            self.o.zeros.eq(leading_zeros(m, self.i.magnitude[-self._number.leading :])),
            self.o.top.eq(self._number.top_of(self.i)),
        ]
        self._number.pass_on(m, self, "magnitude")
        return m


class CountMagnitudeByteZeros(Step):
    """Leading zeros of each byte of the magnitude, and the exponent of its top bit's place.

    The zeros of the last byte count only where all others are 0. A bit of it is set then, and the
    number of its zeros is less than that of its bits.
    """

    verilog_name = "count_groups"

    def __init__(self, number: Number) -> None:
        self._number = number
        super().__init__(number.given, number.grouped, levels=8)

    def elaborate(self, platform: Any) -> Module:
        """Build the trees and the subtraction."""
        m = Module()
        o = self.o
        groups = zero_groups(m, self.i.magnitude, BYTE)
        zeros, some = zip(*groups[: len(o.zeros)], strict=True)
        m.d.comb += [
            Value.cast(o.zeros).eq(Cat(zeros)),
            o.some.eq(Cat(some)),
            o.last.eq(groups[len(o.zeros)][0]),
            o.top.eq(self._number.top_of(self.i)),
        ]
        self._number.pass_on(m, self, "magnitude")
        return m


class JoinByteZeros(Step):
    """Leading zeros of the magnitude."""

    verilog_name = "join_groups"

    def __init__(self, number: Number) -> None:
        self._number = number
        super().__init__(number.grouped, number.counted, levels=2 + 2 * (number.zeros - REST))

    def elaborate(self, platform: Any) -> Module:
        """Build the rest of the tree."""
        m = Module()
        i = self.i
        last = Cat(i.last, Const(0, REST - len(i.last)))
        groups = [*zip(i.zeros, i.some, strict=True), (last, Const(1, 1))]
        below = (1 << self._number.zeros - REST) - len(groups)
        groups += [(Const(0, REST), Const(0, 1))] * below
        m.d.comb += self.o.zeros.eq(leading_zeros_of(m, groups))
        self._number.pass_on(m, self, "magnitude", "top")
        return m


class NormaliseMagnitude(Step):
    """The magnitude at the top, its exponent field less one, and how far that is below 0.

    The distance below 0 has no lowest bit: that of the exponent field serves. With `rest` above 0,
    `NormaliseRest` moves the magnitude by that many low bits of the leading zeros, and this step
    by the others.
    """

    verilog_name = "place"

    def __init__(self, number: Number, i: data.Layout, rest: int = 0) -> None:
        self._number, self._rest = number, rest
        o = StructLayout({**({"zeros": rest} if rest else {}), **number.placed.members})
        super().__init__(i, o, levels=4 + 2 * (number.zeros - rest))

    def elaborate(self, platform: Any) -> Module:
        """Build the shift and the subtractions."""
        m = Module()
        i, o, rest = self.i, self.o, self._rest
        zeros = Cat(Const(0, rest), i.zeros[rest:]) if rest else i.zeros
        m.d.comb += [
            o.magnitude.eq(i.magnitude << zeros),
            o.base.eq(i.top - i.zeros),
            o.below.eq((i.zeros - i.top)[1 : self._number.field]),
        ]
        if rest:
            m.d.comb += o.zeros.eq(i.zeros[:rest])
        self._number.pass_on(m, self)
        return m


class NormaliseRest(Step):
    """The magnitude moved up by the rest of its leading zeros."""

    verilog_name = "place_rest"

    def __init__(self, number: Number, i: data.Layout) -> None:
        self._number = number
        super().__init__(i, number.placed, levels=7)

    def elaborate(self, platform: Any) -> Module:
        """Build the shift."""
        m = Module()
        m.d.comb += self.o.magnitude.eq(self.i.magnitude << self.i.zeros)
        self._number.pass_on(m, self, "base", "below")
        return m
