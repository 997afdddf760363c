"""First steps of every encoder: fields of the values, and the shared exponent of their block."""

from collections.abc import Sequence
from functools import partial
from typing import Any, Protocol

from amaranth.hdl import Cat, Const, Module, Signal, Value
from amaranth.lib import data, wiring
from amaranth.lib.wiring import In, Out

from axs6.golden.formats import Float
from axs6.golden.formats.catalog import AXS6_SCALE
from axs6.hw.core.layouts import float_layout, lanes_layout, lanes_of, values_layout
from axs6.hw.core.pipeline import Step
from axs6.hw.core.rtlil import add_lanes
from axs6.hw.core.structures import ArrayLayout, StructLayout
from axs6.hw.core.trees import any_of, chosen
from axs6.hw.encoder.fields import (
    deciding_bits,
    exponent_offset,
    reaches_highest,
    reaches_zero,
)
from axs6.hw.encoder.largest import search_layout


class Kept(Protocol):
    """The part of its significand that a lane keeps during the search for the largest exponent
    field."""

    @property
    def layout(self) -> data.StructLayout:
        """Its fields."""

    def build(self, m: Module, significand: Value) -> Value:
        """Add what makes it of a significand, the hidden bit highest."""


def passing_layout(block: int, dtype: Float, kinds: Sequence[Kept]) -> data.StructLayout:
    """The fields that pass by the search for the largest exponent field.

    A lane's `sign` is that of its code. `normal` says that a value of the block is normal, and
    `fractions` are the deciding fraction bits of those that are not, or-ed.
    """
    lanes = [StructLayout({"kept": kind.layout, "sign": 1, "infinite": 1}) for kind in kinds]
    return StructLayout(
        {
            "lanes": lanes_layout(lanes, block),
            "normal": 1,
            "fractions": deciding_bits(dtype),
            "invalid": 1,
        }
    )


class UnpackFloatLane(wiring.Component):
    """Fields of one value, zeros and NaN without sign.

    Subnormals have exponent field 1 and infinities that of the largest finite value.
    """

    verilog_name = "unpack_lane"

    def __init__(self, dtype: Float, kind: Kept) -> None:
        self._dtype = dtype
        self._kind = kind
        super().__init__(
            {
                "value": In(dtype.width),
                "field": Out(dtype.exponent_bits),
                "kept": Out(kind.layout),
                "fractions": Out(deciding_bits(dtype)),
                "sign": Out(1),
                "normal": Out(1),
                "infinite": Out(1),
                "nan": Out(1),
            }
        )

    def elaborate(self, platform: Any) -> Module:
        """Build the tests for special values, and what is kept of the significand."""
        m = Module()
        x = data.View(float_layout(self._dtype), self.value)
        hidden, nonzero, special = x.exponent.any(), x.fraction.any(), x.exponent.all()
        deciding = x.fraction[-len(self.fractions) :]
        kept = self._kind.build(m, Cat(x.fraction, hidden))
        m.d.comb += [
            self.nan.eq(special & nonzero),
            self.infinite.eq(special & ~nonzero),
            self.normal.eq(hidden & ~self.nan),
            self.sign.eq(x.sign & (hidden | nonzero) & ~self.nan),
            self.field.eq(Cat((x.exponent[0] & ~special) | ~hidden, x.exponent[1:])),
            self.fractions.eq(deciding & ~hidden.replicate(len(deciding))),
            self.kept.eq(kept),
        ]
        return m


class UnpackFloats(Step):
    """`UnpackFloatLane` for each value."""

    verilog_name = "unpack"

    def __init__(self, block: int, dtype: Float, kinds: Sequence[Kept]) -> None:
        self._dtype = dtype
        self._kinds = kinds
        rest = passing_layout(block, dtype, kinds)
        o = search_layout(block, dtype.exponent_bits, dtype.exponent_bits, rest)
        super().__init__(values_layout(block, dtype), o, levels=17)

    def elaborate(self, platform: Any) -> Module:
        """Instantiate the lanes."""
        m = Module()
        rest = self.o.rest
        count = len(self.i.values)
        normal, nan = (Signal(ArrayLayout(1, count), name=n) for n in ("normal", "nan"))
        fractions = Signal(ArrayLayout(deciding_bits(self._dtype), count))
        passing = lanes_of(rest.lanes)
        lanes = (
            {
                "value": value,
                "field": self.o.lanes[index].field,
                "kept": passing[index].kept,
                "fractions": fractions[index],
                "sign": passing[index].sign,
                "normal": normal[index],
                "infinite": passing[index].infinite,
                "nan": nan[index],
            }
            for index, value in enumerate(self.i.values)
        )
        add_lanes(
            m, platform, [partial(UnpackFloatLane, self._dtype, k) for k in self._kinds], lanes
        )
        m.d.comb += [
            rest.normal.eq(any_of(normal)),
            rest.fractions.eq(any_of(fractions)),
            rest.invalid.eq(any_of([x.infinite | y for x, y in zip(passing, nan, strict=True)])),
            *(lane.equal.eq(~y) for lane, y in zip(self.o.lanes, nan, strict=True)),
        ]
        return m


class BlockExponent:
    """The shared exponent of a block, from what the search for the largest field gave.

    `value` is the exponent. `uses[k]` says that it lies k below that of the largest field, as in
    blocks of subnormals; none is set where `infinite` is, which says that a block has an infinity
    and that its exponent, 255, is out of the reach of finite values.
    """

    def __init__(self, m: Module, dtype: Float, i: Any) -> None:
        offset = exponent_offset(dtype)
        self.infinite = Signal(name="infinite")
        if not reaches_highest(dtype):
            m.d.comb += self.infinite.eq(any_of([x.infinite for x in lanes_of(i.rest.lanes)]))
        deeper = [i.rest.normal, *reversed(i.rest.fractions)]
        if reaches_zero(dtype):
            deeper.append(Const(1, 1))
        raised = [found & ~Cat(deeper[:depth]).any() for depth, found in enumerate(deeper)]
        exponents = [Const(1 + offset - depth, AXS6_SCALE.bits) for depth in range(len(deeper))]
        exponents[0] = (i.largest + offset)[: AXS6_SCALE.bits]
        self.uses = [use & ~self.infinite for use in raised]
        self.value = chosen(self.uses, exponents) | self.infinite.replicate(AXS6_SCALE.bits)
