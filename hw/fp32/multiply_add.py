"""Fused multiply-add as combinational steps: a * b + c with one rounding to nearest even.

The product of the significands, of 2s bits for significands of s, stays in its place, with GUARD
bits below it. The addend comes in at the top, two places above the product, and moves down by the
distance of the exponents; of what falls off below, the lowest bit keeps the or. This needs no
number without leading zeros:

- An addend whose place is above the top stays at the top. The product is less than a quarter of
  its last bit then, and nobody needs to know by how much.
- Where bits of the addend fall off, one of the factors is a normal number. So the product, where it
  is not 0, has s bits or more, and the sum of both has at least s - 1 above the guard bits.

A product of 0 counts as far below the addend.
"""

from dataclasses import dataclass
from typing import Any

from amaranth.hdl import Cat, Const, Module, Mux, Signal, signed, unsigned
from amaranth.lib import data

from axs6.golden.formats import FP32, Float
from axs6.hw.core.layouts import float_layout
from axs6.hw.core.parameters import BEHAVIOUR
from axs6.hw.core.pipeline import Step
from axs6.hw.core.structures import ArrayLayout, StructLayout
from axs6.hw.fp32.common import (
    add_with_carry,
    field_of,
    limited,
    pass_on,
    shift_right_sticky,
    significand_of,
)
from axs6.hw.fp32.multiply import product_rows
from axs6.hw.fp32.normalise import SPECIAL, ScaledInteger, normalising_steps

GUARD = 3
"""Bits below the product: after the cancellation of one leading bit, the last one of the result,
the one that decides how it is rounded, and the or of all that follow."""

GAP = 2
"""Bits between the product and an addend at the top."""

_SIGNS = {"sign": 1, "addend_sign": 1, **SPECIAL}
"""Signs of the product and of the addend, and what the result is where it is no number."""


@dataclass(frozen=True)
class MultiplyAddPlan:
    """Widths and constants of a fused multiply-add.

    Args:
        dtype: of operands and result, with infinities.
    """

    dtype: Float = FP32

    @property
    def significand(self) -> int:
        """Bits of a significand, s."""
        return self.dtype.fraction_bits + 1

    @property
    def below(self) -> int:
        """Places below the last bit of an addend at the top."""
        return 2 * self.significand + GAP + GUARD

    @property
    def width(self) -> int:
        """Bits of the magnitude of a sum."""
        return self.below + self.significand

    @property
    def lift(self) -> int:
        """What is added to the exponent fields of the factors for the field of an addend at the
        top."""
        return self.dtype.emin - 1 - self.dtype.fraction_bits + self.below - GUARD

    @property
    def number(self) -> ScaledInteger:
        """The sum, which is rounded. Its `top` is the field of an addend at the top."""
        largest = self.dtype.exponent_special - 1
        exponent = self.dtype.emin - 1 - self.dtype.fraction_bits - self.below
        top = max(largest, 2 * largest + self.lift)
        return ScaledInteger(self.width, top, exponent, self.dtype, toward_zero=False)

    @property
    def i(self) -> data.StructLayout:
        """The operands."""
        return StructLayout(dict.fromkeys("abc", self.dtype.width))

    @property
    def multiplied(self) -> data.StructLayout:
        """The product as the sum of two rows, the sum of its fields, and the addend."""
        return StructLayout(
            {
                "rows": ArrayLayout(unsigned(2 * self.significand), 2),
                "exponent": self.dtype.exponent_bits + 1,
                "some": 1,
                "addend": self.significand,
                "field": self.dtype.exponent_bits,
                **_SIGNS,
            }
        )

    @property
    def compared(self) -> data.StructLayout:
        """The product, the addend, and how far that moves down from the top."""
        return StructLayout(
            {
                "product": 2 * self.significand,
                "addend": self.significand,
                "distance": self.width.bit_length(),
                "top": self.number.top_bits,
                **_SIGNS,
            }
        )

    @property
    def placed(self) -> data.StructLayout:
        """Product and addend on one exponent."""
        return StructLayout(
            {
                "product": 2 * self.significand,
                "addend": self.width,
                "top": self.number.top_bits,
                **_SIGNS,
            }
        )

    @property
    def added(self) -> data.StructLayout:
        """The difference or the sum of both; it is negative if the result has the addend's sign."""
        return StructLayout({"sum": signed(self.width + 1), "top": self.number.top_bits, **_SIGNS})


class MultiplyForSum(Step):
    """The product of the factors as two rows, the sum of their fields, and what is special.

    Args:
        plan: widths. view: "structure", a compressor tree, or "behaviour", `*`.
    """

    verilog_name = "multiply"

    def __init__(self, plan: MultiplyAddPlan, view: str) -> None:
        self._plan, self._view = plan, view
        levels = 4 + 3 * plan.significand.bit_length()
        super().__init__(plan.i, plan.multiplied, levels=levels)

    def elaborate(self, platform: Any) -> Module:
        """Build the multiplier, the adder and the comparisons."""
        m = Module()
        o = self.o
        a, b, c = (data.View(float_layout(self._plan.dtype), self.i[name]) for name in "abc")
        x, y = significand_of(a), significand_of(b)
        rows = [x * y] if self._view == BEHAVIOUR else product_rows(m, x, y)
        m.d.comb += [row.eq(value) for row, value in zip(o.rows, rows, strict=False)]
        fields = [field_of(x) for x in (a, b, c)]
        m.d.comb += [
            o.exponent.eq(fields[0] + fields[1]),
            o.some.eq(x.any() & y.any()),
            o.addend.eq(significand_of(c)),
            o.field.eq(fields[2]),
            o.sign.eq(a.sign ^ b.sign),
            o.addend_sign.eq(c.sign),
        ]
        full = [each.exponent.all() for each in (a, b, c)]
        nan = [each & x.fraction.any() for each, x in zip(full, (a, b, c), strict=True)]
        invalid = (full[0] & ~y.any()) | (full[1] & ~x.any())
        infinite = full[0] | full[1]
        clash = infinite & full[2] & (o.sign ^ c.sign)
        m.d.comb += [
            o.nan.eq(nan[0] | nan[1] | nan[2] | invalid | clash),
            o.infinite.eq(infinite | full[2]),
            o.negative.eq(Mux(infinite, o.sign, c.sign)),
        ]
        return m


class CompareAddend(Step):
    """The product as one number, and the distance of the addend from the top."""

    def __init__(self, plan: MultiplyAddPlan) -> None:
        self._plan = plan
        super().__init__(plan.multiplied, plan.compared, levels=22)

    def elaborate(self, platform: Any) -> Module:
        """Build the adder, the subtraction and the choice of the larger field."""
        m = Module()
        plan, i, o = self._plan, self.i, self.o
        bits = plan.number.top_bits + 1
        field, distance = Signal(signed(bits)), Signal(signed(bits + 1))
        down = Signal()
        m.d.comb += [
            o.product.eq(i.rows[0] + i.rows[1]),
            field.eq(i.exponent + plan.lift),
            distance.eq(field - i.field),
            down.eq(i.some & (distance > 0)),
            o.distance.eq(
                limited(distance[:bits], len(o.distance)) & down.replicate(len(o.distance))
            ),
            o.top.eq(Mux(down, field, i.field)),
        ]
        pass_on(m, self, "addend", *_SIGNS)
        return m


class PlaceAddend(Step):
    """The addend moved down from the top."""

    def __init__(self, plan: MultiplyAddPlan) -> None:
        self._plan = plan
        levels = 2 + 3 * plan.width.bit_length()
        super().__init__(plan.compared, plan.placed, levels=levels)

    def elaborate(self, platform: Any) -> Module:
        """Build the shift."""
        m = Module()
        at_top = Cat(Const(0, self._plan.below), self.i.addend)
        bits = range(len(self.i.distance))
        m.d.comb += self.o.addend.eq(shift_right_sticky(m, at_top, self.i.distance, bits))
        pass_on(m, self, "product", "top", *_SIGNS)
        return m


class AddAddend(Step):
    """Adds the addend to the product, or subtracts it if their signs differ."""

    def __init__(self, plan: MultiplyAddPlan) -> None:
        super().__init__(plan.placed, plan.added, levels=22)

    def elaborate(self, platform: Any) -> Module:
        """Build the adder."""
        m = Module()
        i, width = self.i, len(self.o.sum)
        product = Cat(Const(0, GUARD), i.product)
        subtract = Signal()
        addend = Signal(width)
        m.d.comb += [
            subtract.eq(i.sign ^ i.addend_sign),
            addend.eq(i.addend ^ subtract.replicate(width)),
            self.o.sum.eq(add_with_carry(product, addend, subtract)[:width].as_signed()),
        ]
        pass_on(m, self, "top", *_SIGNS)
        return m


class TotalMagnitude(Step):
    """Sign and magnitude of the sum; that of equal numbers of unlike signs is +0."""

    verilog_name = "magnitude"

    def __init__(self, plan: MultiplyAddPlan) -> None:
        super().__init__(plan.added, plan.number.magnitude_layout, levels=14)

    def elaborate(self, platform: Any) -> Module:
        """Build the negation and the choice of the sign."""
        m = Module()
        i, total = self.i, self.i.sum
        negative = total[-1]
        m.d.comb += [
            self.o.magnitude.eq(Mux(negative, -total, total)),
            self.o.sign.eq(Mux(total.any(), i.sign ^ negative, i.sign & i.addend_sign)),
        ]
        pass_on(m, self, "top", *SPECIAL)
        return m


def multiply_add_steps(view: str, plan: MultiplyAddPlan | None = None) -> list[Step]:
    """The steps of a fused multiply-add, from the operands `a`, `b` and `c` to a * b + c, `value`.

    Subnormals are kept, and overflow gives an infinity. Zero times an infinity, and the sum of
    infinities of unlike signs, give the quiet NaN, as every NaN does. A sum of exactly 0 is -0 if
    product and addend are, and else +0; what is rounded to 0 keeps its sign. Each step is
    combinational. The latency is the number of pipeline registers between the steps.

    Args:
        view: "structure" or "behaviour"; see `MultiplyForSum`.
        plan: widths, those of FP32 by default.

    Source: IEEE 754-2019, 5.4.1, `fusedMultiplyAdd`; `axs6.golden.fp32.multiply_add`.
    """
    plan = plan or MultiplyAddPlan()
    return [
        MultiplyForSum(plan, view),
        CompareAddend(plan),
        PlaceAddend(plan),
        AddAddend(plan),
        TotalMagnitude(plan),
        *normalising_steps(plan.number)[1:],
    ]
