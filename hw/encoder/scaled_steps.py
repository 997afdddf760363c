"""Steps of an encoder of any format whose scales are real numbers and integers, in words.

Between the first step and the product with all values, the values pass by the scales, which one
division after the other gives.
"""

from collections.abc import Sequence
from functools import partial
from typing import Any

from amaranth.hdl import Cat, Const, Module, Mux, Signal, Value, signed
from amaranth.lib import data

from axs6.golden.formats import FP32, Float, Integer, Real
from axs6.hw.core.layouts import float_layout, fp32_layout, outer_names
from axs6.hw.core.pipeline import Step
from axs6.hw.core.rtlil import add_lanes
from axs6.hw.core.structures import ArrayLayout
from axs6.hw.core.trees import largest_of
from axs6.hw.encoder.code_steps import LaneSteps, RoundMagnitudes, ShiftSignificands, scales_layout
from axs6.hw.encoder.format_lanes import aligned_lane
from axs6.hw.encoder.reciprocal_steps import DivisionOperands, reciprocal_steps
from axs6.hw.encoder.scaled import Scaled
from axs6.hw.encoder.scaled_lanes import (
    PlaceProductLane,
    TimesReciprocalLane,
    UnpackNumberLane,
    product_lane,
)
from axs6.hw.encoder.scaled_stages import (
    Stage,
    beside,
    found_fields,
    given_layout,
    passing,
    scale_field,
)
from axs6.hw.encoder.shifted_steps import in_bf16, inverse_steps, shifted_steps
from axs6.hw.fp32.common import FRACTION
from axs6.hw.fp32.quotient import digit_steps, odd_of, quotient_steps


class UnpackNumbers(Stage):
    """`UnpackNumberLane` for each value, and the outer scale held to normal numbers.

    One that is no positive finite number becomes NaN; it goes on as if it were 1.5 * 2^128.
    """

    verilog_name = "unpack"

    def __init__(self, scheme: Scaled) -> None:
        levels = 10 + 5 * scheme.depth.bit_length()
        super().__init__(scheme, given_layout(scheme).members, passing(scheme), levels)

    def build(self, m: Module, platform: Any) -> Sequence[str]:
        """Instantiate the lanes, and test the scale."""
        scheme = self._scheme
        special, lost = (Signal(scheme.lanes, name=name) for name in ("special", "lost"))
        lanes = [
            {"bits": bits, "value": o.as_value(), "special": special[k], "lost": lost[k]}
            for k, (bits, o) in enumerate(zip(self.i.values, self.o.values, strict=True))
        ]
        add_lanes(m, platform, [partial(UnpackNumberLane, scheme)], lanes)
        bad: Value = Const(0, 1)
        for name in outer_names(scheme.fmt):
            outer = data.View(float_layout(FP32), self.i[name])
            bad = outer.sign | outer.exponent.all() | ~self.i[name].any()
            held = Mux(outer.exponent.any(), self.i[name], FP32.smallest_normal)
            m.d.comb += self.o[name].eq(Mux(bad, FP32.quiet_nan, held))
        m.d.comb += [self.o.invalid.eq(special.any() | bad), self.o.lost.eq(lost.any() | bad)]
        return [*self.o.shape().members]


class LargestMagnitude(Stage):
    """The largest magnitude of a block."""

    verilog_name = "largest"

    def __init__(self, scheme: Scaled) -> None:
        fields = passing(scheme)
        o = {"dividend": scheme.value.layout, **found_fields(scheme)}
        value = scheme.value
        levels = (scheme.lanes - 1).bit_length() * (
            4 + 2 * (value.bits + value.place_bits).bit_length()
        )
        super().__init__(scheme, fields, o, levels)

    def build(self, m: Module, platform: Any) -> Sequence[str]:
        """Build the tree of maxima."""
        keys = [Cat(x.significand, x.place) for x in self.i.values]
        m.d.comb += self.o.dividend.as_value().eq(largest_of(m, keys))
        if "empty" not in self.o.shape().members:
            return ["dividend"]
        m.d.comb += self.o.empty.eq(~self.o.dividend.significand.any())
        return ["dividend", "empty"]


class RoundScale(Stage):
    """The code of a block's real scale: held to the numbers of its dtype, and rounded.

    In FP32 that of a block of zeros is 1.
    """

    def __init__(self, scheme: Scaled) -> None:
        i = {**fp32_layout.members, **found_fields(scheme)}
        o = {**passing(scheme), **scale_field(scheme)}
        super().__init__(scheme, i, o, levels=30)

    def build(self, m: Module, platform: Any) -> Sequence[str]:
        """Build the comparisons and the rounding."""
        scale = self._scheme.scale
        assert isinstance(scale, Real)
        (name,) = scale_field(self._scheme)
        value = self.i.value[:-1]
        code = rounded_scale(m, scale.dtype, value if self._scheme.divides else in_bf16(m, value))
        if scale.dtype == FP32:
            code = Mux(self.i.empty, FP32.bias << FRACTION, code)
        m.d.comb += self.o[name].eq(code)
        return [name]


def rounded_scale(m: Module, dtype: Float, value: Value) -> Value:
    """The code of an FP32 pattern without a sign, held to the numbers of a dtype and rounded."""
    dropped = FRACTION - dtype.fraction_bits
    offset = (FP32.bias - dtype.bias) << FRACTION
    low = offset + (dtype.smallest_normal << dropped)
    high = offset + (dtype.largest_code << dropped)
    held = Signal(len(value), name="held")
    m.d.comb += held.eq(Mux(value < low, low, Mux(value > high, high, value)))
    return (held - offset + half(held, dropped)) >> dropped if dropped else held


def half(value: Value, dropped: int) -> Value:
    """Number to add so that dropping some bits rounds to nearest even."""
    return (1 << dropped - 1) - 1 + value[dropped]


class Multiplied(Stage):
    """The largest element times the outer scale, by which a magnitude is divided for an integer."""

    def __init__(self, scheme: Scaled) -> None:
        fields = passing(scheme)
        i = {"dividend": scheme.value.layout, **fields}
        super().__init__(scheme, i, {**scheme.count.operands.members, **fields}, levels=30)

    def build(self, m: Module, platform: Any) -> Sequence[str]:
        """Build the product."""
        (name,) = outer_names(self._scheme.fmt)
        outer, divisor = self.i[name], self.o.divisor
        product = Signal(len(divisor.significand))
        significand = Cat(outer[:FRACTION], Const(1, 1))
        m.d.comb += [
            product.eq(significand * odd_of(self._scheme.element.largest)),
            divisor.significand.eq(Mux(product[-1], product, product << 1)),
            divisor.place.eq(outer[FRACTION:-1] + product[-1]),
        ]
        return ["divisor"]


class Ceil(Stage):
    """The integer scale of a block: the quotient rounded up, and held to the codes that exist."""

    def __init__(self, scheme: Scaled) -> None:
        fields, count = passing(scheme), scheme.count
        i = {**count.state(count.digits).members, **fields}
        super().__init__(scheme, i, {**fields, **scale_field(scheme)}, levels=30)

    def build(self, m: Module, platform: Any) -> Sequence[str]:
        """Build the shift, the increment and the limits."""
        scale, count, i = self._scheme.scale, self._scheme.count, self.i
        assert isinstance(scale, Integer)
        (name,) = scale_field(self._scheme)
        bits, most = scale.bits, scale.largest_code
        exponent = Signal(signed(count.exponent_bits + 2))
        m.d.comb += exponent.eq(i.exponent + Const(count.base, signed(count.exponent_bits + 1)))
        wide = Signal(2 * bits + 1)
        places = (bits).bit_length()
        m.d.comb += wide.eq(i.quotient << exponent[:places])
        whole = Signal(bits + 2)
        m.d.comb += whole.eq(wide[bits:] + (wide[:bits].any() | i.rest.any()))
        code = self.o[name]
        with m.If((exponent < 0) | ~i.quotient.any()):
            m.d.comb += code.eq(1)
        with m.Elif((exponent > bits) | (whole > most)):
            m.d.comb += code.eq(most)
        with m.Else():
            m.d.comb += code.eq(whole)
        return [name]


class TimesReciprocal(Stage):
    """`TimesReciprocalLane` for each value, and NaN among the scales where a value has no code.

    Where shifts are to be found, lanes of a `lost` block count for them, and become 0 later. Under
    an outer scale that is no number all are 0.
    """

    verilog_name = "multiply"

    def __init__(self, scheme: Scaled, i: data.StructLayout) -> None:
        lanes = ArrayLayout(product_lane(scheme), scheme.lanes)
        levels = dict(zip(scales_layout(scheme).members, scheme.fmt.levels[::-1], strict=True))
        scales = {
            name: shape
            for name, shape in scales_layout(scheme).members.items()
            if levels[name] not in scheme.shifts
        }
        later = {"lost": 1} if scheme.shifts else {}
        o = {**scales, "lanes": lanes, "invalid": 1, **later}
        super().__init__(scheme, i.members, o, levels=45)

    def build(self, m: Module, platform: Any) -> Sequence[str]:
        """Instantiate the lanes."""
        scheme, lost = self._scheme, self.i.lost
        reciprocal = self.i.reciprocal.as_value()
        now = lost
        if scheme.shifts:
            outer = [self.i[name][FRACTION:-1].all() for name in outer_names(scheme.fmt)]
            now = Cat(outer).any()
        lanes = [
            {"value": i.as_value(), "reciprocal": reciprocal, "lost": now, "product": o.as_value()}
            for i, o in zip(self.i.values, self.o.lanes, strict=True)
        ]
        add_lanes(m, platform, [partial(TimesReciprocalLane, scheme)], lanes)
        levels = dict(zip(scales_layout(scheme).members, scheme.fmt.levels[::-1], strict=True))
        names = [name for name, level in levels.items() if level.scale.nan_code is not None]
        for name in names[-1:]:  # the finest
            m.d.comb += self.o[name].eq(Mux(lost, levels[name].scale.nan_code, self.i[name]))
        return ["lanes", *names[-1:]]


class PlaceProducts(LaneSteps[Scaled]):
    """`PlaceProductLane` for each lane."""

    verilog_name = "place"

    def __init__(self, scheme: Scaled, i: data.StructLayout) -> None:
        super().__init__(scheme, i, aligned_lane(scheme), levels=35)

    def elaborate(self, platform: Any) -> Module:
        """Instantiate the lanes."""
        m = Module()
        self.pass_scales(m)
        pairs = zip(self.i.lanes, self.o.lanes, strict=True)
        lanes = [{"product": i.as_value(), "aligned": o.as_value()} for i, o in pairs]
        add_lanes(m, platform, [partial(PlaceProductLane, self._scheme)], lanes)
        return m


def scale_steps(scheme: Scaled) -> list[Step]:
    """Steps from the fields of `passing` to the same and the scale of the block."""
    fields = passing(scheme)
    (name,) = outer_names(scheme.fmt) or [""]
    if isinstance(scheme.scale, Integer):
        digits = beside(digit_steps(scheme.count), fields)
        return [LargestMagnitude(scheme), Multiplied(scheme), *digits, Ceil(scheme)]
    quotient = quotient_steps(scheme.of_largest) if scheme.divides else inverse_steps(scheme)
    steps = [LargestMagnitude(scheme), *beside(quotient, found_fields(scheme))]
    if scheme.given:
        i = {**fp32_layout.members, **fields}
        steps.append(DivisionOperands(scheme, scheme.by_outer, i, name, fields))
        steps += beside(quotient_steps(scheme.by_outer), fields)
    return [*steps, RoundScale(scheme)]


def product_steps(scheme: Scaled) -> list[Step]:
    """Steps from `given_layout` to the values over their scales."""
    scale = scale_steps(scheme) if scheme.scale else []
    front = [UnpackNumbers(scheme), *scale, *reciprocal_steps(scheme)]
    return [*front, TimesReciprocal(scheme, front[-1].o.shape())]


def scaled_steps(scheme: Scaled) -> tuple[list[Step], Step]:
    """Steps from `given_layout`, and the one that rounds, to `encoded_layout`.

    With stochastic rounding the last step takes the random words too.
    """
    front = product_steps(scheme)
    products = front[-1].o.shape()
    place: list[Step] = [PlaceProducts(scheme, products)]
    if scheme.shifts:
        place = shifted_steps(scheme, products)
    shift = ShiftSignificands(scheme, place[-1].o.shape())
    return [*front, *place, shift], RoundMagnitudes(scheme, shift.o.shape())
