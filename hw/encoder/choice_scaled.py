"""The steps of an encoder that chooses a real or integer scale, up to the values in fixed point.

Each candidate has its own reciprocal and multipliers.
"""

from collections.abc import Sequence
from functools import partial
from typing import Any

from amaranth.hdl import Cat, Const, Module, Mux, Signal, Value, signed
from amaranth.lib import data

from axs6.golden.choice import lowest_code
from axs6.golden.formats import Real, ScaleChoice
from axs6.hw.core.layouts import fp32_layout, outer_names
from axs6.hw.core.pipeline import Step, in_lanes, past
from axs6.hw.core.rtlil import add_lanes
from axs6.hw.core.structures import ArrayLayout, StructLayout
from axs6.hw.encoder.choice_lanes import moved
from axs6.hw.encoder.choice_numbers import (
    Fields,
    MeasuredReals,
    candidates,
    common_fields,
    measured_fields,
)
from axs6.hw.encoder.feedback import OfLanes
from axs6.hw.encoder.format_lanes import keep, passing_lane, sides
from axs6.hw.encoder.reciprocal_steps import (
    DivisionOperands,
    fp32_normal,
    normalise_reciprocal,
    scale_normal,
)
from axs6.hw.encoder.scaled_lanes import TimesReciprocalLane, product_lane
from axs6.hw.encoder.scaled_stages import Stage, beside, passing, scale_field
from axs6.hw.encoder.scaled_steps import UnpackNumbers, half, rounded_scale, scale_steps
from axs6.hw.fp32.common import FRACTION, SIGNIFICAND
from axs6.hw.fp32.quotient import FP32_NORMAL, ONE, Quotient, quotient_steps


def candidate_fields(scheme: MeasuredReals) -> Fields:
    """Values that pass by, and the codes of the candidates."""
    scale = scheme.fmt.levels[0].scale
    return {**passing(scheme), "scales": ArrayLayout(scale.bits, candidates(scheme.fmt))}


class Neighbours(Stage):
    """The code of the rule's scale, and those before and after it."""

    def __init__(self, scheme: MeasuredReals) -> None:
        i = {**passing(scheme), **scale_field(scheme)}
        super().__init__(scheme, i, candidate_fields(scheme), levels=12)

    def build(self, m: Module, platform: Any) -> Sequence[str]:
        """Build the limits."""
        scale = self._scheme.scale
        assert scale is not None
        (name,) = scale_field(self._scheme)
        code, lowest = self.i[name], lowest_code(scale)
        before, after = code > lowest, code < scale.largest_code
        for o, value in zip(self.o.scales, (code, code - before, code + after), strict=True):
            m.d.comb += o.eq(value)
        return ["scales"]


class RoundFourOverSix(Stage):
    """The codes of the scales by which the largest magnitude becomes 6, and 4.

    The second comes from fp32(1.5 * quotient). What FP32 holds as subnormal is below all scales.
    """

    verilog_name = "roundscale"

    def __init__(self, scheme: MeasuredReals) -> None:
        i = {**fp32_layout.members, **passing(scheme)}
        super().__init__(scheme, i, candidate_fields(scheme), levels=50)

    def build(self, m: Module, platform: Any) -> Sequence[str]:
        """Build the product and both roundings."""
        scale = self._scheme.scale
        assert isinstance(scale, Real)
        value = self.i.value[:-1]
        field, significand = value[FRACTION:], Cat(value[:FRACTION], Const(1, 1))
        thrice, larger = Signal(SIGNIFICAND + 2), Signal(len(value))
        m.d.comb += thrice.eq(significand + (significand << 1))
        hidden = 1 << FRACTION
        one, two = ((thrice + half(thrice, dropped)) >> dropped for dropped in (1, 2))
        above = thrice[-1]
        pattern = (field << FRACTION) + Mux(above, two, one - hidden)
        m.d.comb += larger.eq(Mux(field.any() & ~field.all(), pattern, value))
        for o, each in zip(self.o.scales, (value, larger), strict=True):
            m.d.comb += o.eq(rounded_scale(m, scale.dtype, each))
        return ["scales"]


class CandidateOperands(Stage):
    """The operands of the divisions by the candidates."""

    verilog_name = "operands"

    def __init__(self, scheme: MeasuredReals, quotient: Quotient) -> None:
        self._divides = quotient.dividend is not ONE
        fields = candidate_fields(scheme)
        i = {**(fp32_layout.members if self._divides else {}), **fields}
        lanes = ArrayLayout(quotient.operands, candidates(scheme.fmt))
        super().__init__(scheme, i, {"lanes": lanes, **fields}, levels=25)

    def build(self, m: Module, platform: Any) -> Sequence[str]:
        """Build the normalisers."""
        dividend: tuple[Value, Value] = (Const(1, 1), Const(0, 1))
        if self._divides:
            dividend = fp32_normal(m, self.i.value)
        for o, code in zip(self.o.lanes, self.i.scales, strict=True):
            divisor = scale_normal(m, self._scheme.scale, code)
            for to, (significand, place) in ((o.dividend, dividend), (o.divisor, divisor)):
                m.d.comb += [to.significand.eq(significand), to.place.eq(place)]
        return ["lanes"]


class NormaliseReciprocals(Stage):
    """The reciprocals of all scales with their highest bits on top."""

    verilog_name = "normalise"

    def __init__(self, scheme: MeasuredReals) -> None:
        fields, n = candidate_fields(scheme), candidates(scheme.fmt)
        reciprocals = ArrayLayout(scheme.reciprocal.layout, n)
        i = {"lanes": ArrayLayout(fp32_layout, n), **fields}
        super().__init__(scheme, i, {"reciprocals": reciprocals, **fields}, levels=28)

    def build(self, m: Module, platform: Any) -> Sequence[str]:
        """Build the normalisers."""
        for lane, o in zip(self.i.lanes, self.o.reciprocals, strict=True):
            normalise_reciprocal(m, lane.value, o)
        return ["reciprocals"]


class Multiply(Step):
    """`TimesReciprocalLane` for each value and candidate."""

    def __init__(self, scheme: MeasuredReals, i: data.StructLayout) -> None:
        self._scheme = scheme
        lanes = ArrayLayout(product_lane(scheme), scheme.lanes)
        products = ArrayLayout(lanes, candidates(scheme.fmt))
        super().__init__(
            i, StructLayout({**common_fields(scheme), "products": products}), levels=45
        )

    def elaborate(self, platform: Any) -> Module:
        """Instantiate the lanes."""
        m = Module()
        i, o, scheme = self.i, self.o, self._scheme
        lanes = [
            {
                "value": value.as_value(),
                "reciprocal": reciprocal.as_value(),
                "lost": Const(0, 1),
                "product": product.as_value(),
            }
            for reciprocal, products in zip(i.reciprocals, o.products, strict=True)
            for value, product in zip(i.values, products, strict=True)
        ]
        add_lanes(m, platform, [partial(TimesReciprocalLane, scheme)], lanes)
        for side, value in zip(o.sides, i.values, strict=True):
            m.d.comb += [side[name].eq(value[name]) for name in sides(scheme)]
        m.d.comb += [o[name].eq(i[name]) for name in common_fields(scheme) if name != "sides"]
        return m


class MeasureProducts(Step):
    """Products rounded as in FP32, in fixed point."""

    verilog_name = "measure"

    def __init__(self, scheme: MeasuredReals, i: data.StructLayout) -> None:
        self._scheme = scheme
        super().__init__(i, StructLayout(measured_fields(scheme)), levels=70)

    def elaborate(self, platform: Any) -> Module:
        """Build the roundings and the shifters."""
        m = Module()
        m.d.comb += [self.o[name].eq(self.i[name]) for name in common_fields(self._scheme)]
        for k, products in enumerate(self.i.products):
            for index, product in enumerate(products):
                sub = Module()
                self._measure(sub, product, self.o.measured[k][index])
                m.submodules[f"lane{k}_{index}"] = sub
        return m

    def _measure(self, m: Module, x: Any, o: Any) -> None:
        scheme = self._scheme
        rounded = Signal(SIGNIFICAND + 1)
        m.d.comb += rounded.eq(x.significand + x.up)
        carry = rounded[-1]
        passed = Signal(StructLayout(passing_lane(scheme)))
        keep(m, scheme, Cat(rounded[: SIGNIFICAND - 1], rounded[-2] | carry), passed)
        right = Signal(signed(len(x.place) + 3))
        m.d.comb += right.eq(scheme.top_place + scheme.right - (x.place + carry))
        sticky = passed.sticky if "sticky" in passing_lane(scheme) else Const(0, 1)
        moved(m, passed.kept, sticky, right, x.some, o)


def real_steps(scheme: MeasuredReals) -> list[Step]:
    """The same, under real and integer scales."""
    steps: list[Step] = [UnpackNumbers(scheme), *scale_steps(scheme)]
    if scheme.fmt.choice is ScaleChoice.FOUR_OVER_SIX:
        steps[-1] = RoundFourOverSix(scheme)
    else:
        steps.append(Neighbours(scheme))
    fields = candidate_fields(scheme)
    if scheme.given:
        (name,) = outer_names(scheme.fmt)
        outer = Quotient(ONE, scheme.outer)
        steps.append(DivisionOperands(scheme, outer, fields, name, fields))
        steps += beside(quotient_steps(outer), fields)
    quotient = Quotient(FP32_NORMAL if scheme.given else ONE, scheme.inner)
    divisions = in_lanes(lambda: quotient_steps(quotient), candidates(scheme.fmt))
    lanes = [OfLanes(step) for step in divisions]
    steps += [CandidateOperands(scheme, quotient), *past(lanes, StructLayout(fields))]
    normalise = NormaliseReciprocals(scheme)
    multiply = Multiply(scheme, normalise.o.shape())
    return [*steps, normalise, multiply, MeasureProducts(scheme, multiply.o.shape())]
