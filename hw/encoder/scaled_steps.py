"""Steps of an encoder of any format whose scales are real numbers and integers, in words.

Between the first step and the product with all values, the values pass by the scales, which one
division after the other gives.
"""

from abc import ABC, abstractmethod
from collections.abc import Mapping, Sequence
from functools import partial
from typing import Any

from amaranth.hdl import Cat, Const, Module, Mux, Signal, Value, signed
from amaranth.lib import data

from axs6.golden.formats import FP32, Float, Integer, Real
from axs6.hw.core.codes import split
from axs6.hw.core.layouts import (
    float_layout,
    fp32_layout,
    outer_names,
    scale_names,
    values_layout,
)
from axs6.hw.core.pipeline import Step, past
from axs6.hw.core.rtlil import add_lanes
from axs6.hw.core.structures import ArrayLayout, StructLayout
from axs6.hw.core.trees import balanced, leading_zeros
from axs6.hw.encoder.code_steps import LaneSteps, RoundMagnitudes, ShiftSignificands, scales_layout
from axs6.hw.encoder.format_lanes import aligned_lane
from axs6.hw.encoder.scaled import Scaled
from axs6.hw.encoder.scaled_lanes import (
    PlaceProductLane,
    TimesReciprocalLane,
    UnpackNumberLane,
    product_lane,
    value_lane,
)
from axs6.hw.encoder.shifted_steps import (
    in_bf16,
    inverse_steps,
    look_up_reciprocal,
    shifted_steps,
)
from axs6.hw.fp32.common import FRACTION
from axs6.hw.fp32.normal import normalised
from axs6.hw.fp32.quotient import (
    FP32_NORMAL,
    ONE,
    Quotient,
    digit_steps,
    odd_of,
    quotient_steps,
)

Fields = dict[str, Any]


def given_layout(scheme: Scaled) -> data.StructLayout:
    """Input: the scale of the tensor or channel, if any, and the values."""
    outer = dict.fromkeys(outer_names(scheme.fmt), FP32.width)
    return StructLayout({**outer, **values_layout(scheme.lanes, scheme.dtype).members})


def passing(scheme: Scaled) -> Fields:
    """Data that bypasses the computation of the scales."""
    outer = dict.fromkeys(outer_names(scheme.fmt), FP32.width)
    lanes = ArrayLayout(value_lane(scheme), scheme.lanes)
    return {**outer, "values": lanes, "invalid": 1, "lost": 1}


def scale_field(scheme: Scaled) -> Fields:
    """The code of a block's scale, where there is one."""
    levels = zip(scale_names(scheme.fmt), scheme.fmt.blocked[::-1], strict=True)
    return {name: level.scale.bits for name, level in levels if level.scale == scheme.scale}


def found_fields(scheme: Scaled) -> Fields:
    """The fields that pass by the scale of a block; FP32 blocks of zeros have their own scale."""
    scale = scheme.scale
    has_own = isinstance(scale, Real) and scale.dtype == FP32
    return {**passing(scheme), **({"empty": 1} if has_own else {})}


class Stage(Step, ABC):
    """A step that makes some fields; all others of its output pass."""

    def __init__(self, scheme: Scaled, i: Mapping[str, Any], o: Fields, levels: int) -> None:
        self._scheme = scheme
        super().__init__(StructLayout(dict(i)), StructLayout(o), levels=levels)

    @abstractmethod
    def build(self, m: Module, platform: Any) -> Sequence[str]:
        """Drive some fields, and return their names."""

    def elaborate(self, platform: Any) -> Module:
        """Connect what passes."""
        m = Module()
        made = self.build(m, platform)
        names = [name for name in self.o.shape().members if name not in made]
        m.d.comb += [self.o[name].eq(self.i[name]) for name in names]
        return m


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
        largest = Signal(len(keys[0]))
        m.d.comb += [
            largest.eq(balanced(keys, lambda a, b: Mux(a > b, a, b))),
            self.o.dividend.as_value().eq(largest),
        ]
        if "empty" not in self.o.shape().members:
            return ["dividend"]
        m.d.comb += self.o.empty.eq(~self.o.dividend.significand.any())
        return ["dividend", "empty"]


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


def beside(steps: Sequence[Step], fields: Fields) -> list[Step]:
    """Steps that some fields pass by."""
    return past(steps, StructLayout(fields))


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


def _reciprocal_steps(scheme: Scaled) -> list[Step]:
    """Steps from those to the same and the reciprocal of all scales."""
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


def product_steps(scheme: Scaled) -> list[Step]:
    """Steps from `given_layout` to the values over their scales."""
    scale = scale_steps(scheme) if scheme.scale else []
    front = [UnpackNumbers(scheme), *scale, *_reciprocal_steps(scheme)]
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
