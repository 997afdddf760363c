"""Steps of an encoder of real and integer scales that divide by them: to one reciprocal of all."""

from collections.abc import Sequence
from typing import Any

from amaranth.hdl import Cat, Const, Module, Mux, Value
from amaranth.lib import data

from axs6.golden.formats import FP32, Integer, Real
from axs6.hw.core.codes import split
from axs6.hw.core.layouts import float_layout, fp32_layout, outer_names
from axs6.hw.core.pipeline import Step
from axs6.hw.core.trees import leading_zeros
from axs6.hw.encoder.scaled import Scaled
from axs6.hw.encoder.scaled_stages import Fields, Stage, beside, passing, scale_field
from axs6.hw.encoder.shifted_steps import look_up_reciprocal
from axs6.hw.fp32.common import FRACTION
from axs6.hw.fp32.normal import normalised
from axs6.hw.fp32.quotient import FP32_NORMAL, ONE, Quotient, quotient_steps


class DivisionOperands(Stage):
    """The operands of a division; an infinite number is divided by one that leaves it infinite.

    Args:
        scheme: the numbers of the encoder.
        quotient: the division.
        i: fields that come in; `value` is an FP32 pattern that is divided.
        divisor: name of the field that it is divided by.
        kept: fields that pass.
    """

    verilog_name = "operands"

    def __init__(
        self, scheme: Scaled, quotient: Quotient, i: Fields, divisor: str, kept: Fields
    ) -> None:
        self._divisor = divisor
        self._divides = quotient.dividend is not ONE
        super().__init__(scheme, i, {**quotient.operands.members, **kept}, levels=25)

    def build(self, m: Module, platform: Any) -> Sequence[str]:
        """Build the normalisers."""
        o = self.o
        if self._divides:
            significand, place = fp32_normal(m, self.i.value)
        else:
            significand, place = Const(1, 1), Const(0, 1)
        m.d.comb += [o.dividend.significand.eq(significand), o.dividend.place.eq(place)]
        code = self.i[self._divisor]
        if self._divisor in outer_names(self._scheme.fmt):
            significand, place = Cat(code[:FRACTION], Const(1, 1)), code[FRACTION:-1]
        else:
            significand, place = scale_normal(m, self._scheme.scale, code)
        if self._divides and self._scheme.overflows:
            place = Mux(self.i.value[FRACTION:-1].all(), 0, place)
        m.d.comb += [o.divisor.significand.eq(significand), o.divisor.place.eq(place)]
        return ["dividend", "divisor"]


def scale_normal(m: Module, scale: Real | Integer | None, code: Value) -> tuple[Value, Value]:
    """Significand and place of a block's scale."""
    if isinstance(scale, Integer):
        if scale.bits == 1:
            return code, Const(0, 1)
        zeros = leading_zeros(m, code)
        return (code << zeros)[: scale.bits], Const(scale.bits - 1) - zeros
    assert isinstance(scale, Real)
    fraction, field = split(scale.dtype, code)
    return Cat(fraction, Const(1, 1)), field


def fp32_normal(m: Module, pattern: Value) -> tuple[Value, Value]:
    """Significand and place of an FP32 pattern, the highest bit of the significand on top."""
    depth = (1 << FP32.fraction_bits.bit_length()) - 1
    return normalised(m, data.View(float_layout(FP32), pattern), depth)


class NormaliseReciprocal(Stage):
    """The reciprocal of all scales with its highest bit on top; an infinite one has the last place.

    That is above the places of all others by more than values can be below 1.
    """

    verilog_name = "normalise"

    def __init__(self, scheme: Scaled) -> None:
        fields = {**passing(scheme), **scale_field(scheme)}
        o = {"reciprocal": scheme.reciprocal.layout, **fields}
        super().__init__(scheme, {**fp32_layout.members, **fields}, o, levels=28)

    def build(self, m: Module, platform: Any) -> Sequence[str]:
        """Build the normaliser."""
        normalise_reciprocal(m, self.i.value, self.o.reciprocal)
        return ["reciprocal"]


def normalise_reciprocal(m: Module, value: Value, o: Any) -> None:
    """Drive the significand and place of a reciprocal."""
    significand, place = fp32_normal(m, value)
    infinite = value[FRACTION:-1].all()
    last = (1 << len(o.place)) - 1
    m.d.comb += [o.significand.eq(significand), o.place.eq(Mux(infinite, last, place))]


class ReciprocalInBf16(Stage):
    """The reciprocal of a scale in BF16."""

    verilog_name = "reciprocal"

    def __init__(self, scheme: Scaled) -> None:
        fields = {**passing(scheme), **scale_field(scheme)}
        super().__init__(
            scheme, fields, {"reciprocal": scheme.reciprocal.layout, **fields}, levels=10
        )

    def build(self, m: Module, platform: Any) -> Sequence[str]:
        """Build the table."""
        scheme, o = self._scheme, self.o.reciprocal
        (name,) = scale_field(scheme)
        assert isinstance(scheme.scale, Real)
        found = look_up_reciprocal(scheme.scale, scheme.reciprocal.bias, self.i[name])
        m.d.comb += [o.significand.eq(found[0]), o.place.eq(found[1])]
        return ["reciprocal"]


def reciprocal_steps(scheme: Scaled) -> list[Step]:
    """Steps from the fields of `passing` and the scale of the block to the same and the reciprocal
    of all scales."""
    if not scheme.divides:
        return [ReciprocalInBf16(scheme)]
    fields = {**passing(scheme), **scale_field(scheme)}
    divisors = [*((name, scheme.outer) for name in outer_names(scheme.fmt))]
    divisors += [(name, scheme.inner) for name in scale_field(scheme)]
    steps: list[Step] = []
    i = fields
    for name, divisor in divisors:
        quotient = Quotient(FP32_NORMAL if steps else ONE, divisor)
        steps.append(DivisionOperands(scheme, quotient, i, name, fields))
        steps += beside(quotient_steps(quotient), fields)
        i = {**fp32_layout.members, **fields}
    return [*steps, NormaliseReciprocal(scheme)]
