"""The first steps of a decoder: scales and codes as exponents and significands."""

from collections.abc import Callable, Iterable, Mapping
from functools import partial
from typing import Any

from amaranth.hdl import Cat, Const, Module, Mux, Signal, Value, ValueLike, signed
from amaranth.lib import data, wiring
from amaranth.lib.wiring import In, Out

from axs6.golden.formats import (
    Exponent,
    Float,
    Integer,
    Scale,
    Shift,
    SignMagnitude,
    Specials,
    TwosComplement,
)
from axs6.hw.core.codes import (
    Listed,
    code_bits,
    is_nan,
    negative_zeros,
    number_bits,
    split,
    table_integer,
    with_selectors,
)
from axs6.hw.core.layouts import ZERO_POINT, elements_of, outer_names, scale_names, scaled_layout
from axs6.hw.core.pipeline import Step
from axs6.hw.core.rtlil import add_lanes
from axs6.hw.core.structures import ArrayLayout, StructLayout
from axs6.hw.core.trees import any_of, balanced, leading_zeros
from axs6.hw.decoder.plan import DecoderPlan, group_scale


def is_special(dtype: Float, field: Value, fraction: Value) -> Value:
    """Whether a magnitude is infinite or NaN; 0 never is, even where NaN has the code of -0."""
    if dtype.specials in (Specials.NONE, Specials.FNUZ):
        return Const(0, 1)
    if dtype.specials is Specials.INUZ:
        return Cat(fraction, field) >= dtype.infinity
    return field.all() if dtype.specials is Specials.IEEE else Cat(fraction, field).all()


def significand_and_exponent(
    m: Module, dtype: Float, field: Value, fraction: Value
) -> tuple[Value, Value]:
    """The significand of a magnitude, its leading one on top, and the exponent field that it needs.

    Below 1 the field is that of a subnormal number, 0 where the highest bit of the fraction is set.
    """
    if not dtype.subnormals:
        return Cat(fraction, Const(1, 1)), field
    normal = field.any()
    if not dtype.fraction_bits:
        return normal, Cat(field, Const(0, 1)).as_signed()
    zeros = Const(0, 1) if dtype.fraction_bits == 1 else leading_zeros(m, fraction)
    subnormal = Signal(dtype.fraction_bits + 1, name="subnormal")
    m.d.comb += subnormal.eq(Cat(Const(0, 1), fraction) << zeros)
    significand = Mux(normal, Cat(fraction, Const(1, 1)), subnormal)
    return significand, Mux(normal, field, -zeros)


class ReadScaleLane(wiring.Component):
    """The contribution of one scale: see `axs6.hw.decoder.plan.GroupScale`.

    A pattern of a real scale that is no positive number counts as NaN.

    Args:
        scale: the kind of scale.
        constant: added to the exponent.
    """

    verilog_name = "scale_lane"

    def __init__(self, scale: Scale, constant: int) -> None:
        self._scale, self._constant = scale, constant
        super().__init__({"code": In(scale.bits), "part": Out(group_scale(scale, constant).layout)})

    def elaborate(self, platform: Any) -> Module:
        """Build the part."""
        m = Module()
        scale, code, part = self._scale, self.code, self.part
        exponent: Value
        if isinstance(scale, Exponent):
            exponent = code
            if scale.nan:
                m.d.comb += part.nan.eq(code.all())
        elif isinstance(scale, Shift):
            exponent = -code
        elif isinstance(scale, Integer):
            factor, zeros = normalise(m, code)
            exponent = scale.bits - 1 - zeros
            m.d.comb += [part.factor.eq(factor), part.zero.eq(~code.any())]
        else:
            dtype = scale.dtype
            fraction, field = split(dtype, code)
            factor, exponent = significand_and_exponent(m, dtype, field, fraction)
            special = is_special(dtype, field, fraction)
            m.d.comb += [
                part.factor.eq(factor),
                part.zero.eq(~number_bits(scale, code).any() if dtype.subnormals else Const(0, 1)),
                part.nan.eq(code[-1] | special if dtype.signed and not scale.selector else special),
            ]
        m.d.comb += part.exponent.eq(exponent + self._constant)
        return m


def element_layout(plan: DecoderPlan) -> data.StructLayout:
    """Fields of an element; `x` is its exponent where its significand is normalised."""
    element = plan.fmt.element
    return StructLayout(
        {
            "significand": plan.magnitude,
            "sign": 1,
            **({"x": plan.x.shape} if plan.floating else {}),
            **({"nan": 1} if element.has_nan else {}),
            **({"infinite": 1} if element.has_infinity else {}),
        }
    )


def normalised_layout(plan: DecoderPlan) -> data.StructLayout:
    """Fields of an element whose significand has its leading one on top, if it is not 0."""
    return StructLayout({**element_layout(plan).members, "x": plan.x.shape})


class ReadElementLane(wiring.Component):
    """The value of a code, minus its zero point."""

    verilog_name = "element_lane"

    def __init__(self, plan: DecoderPlan) -> None:
        self._plan = plan
        width = code_bits(plan.fmt.element)
        zero = {} if plan.fmt.element.signed else {ZERO_POINT: In(width)}
        super().__init__({"code": In(width), **zero, "o": Out(element_layout(plan))})

    def elaborate(self, platform: Any) -> Module:
        """Build the magnitude or the significand, and the flags."""
        m = Module()
        plan, code, o = self._plan, self.code, self.o
        element = plan.fmt.element
        if isinstance(element, Float):
            fraction, field = split(element, code)
            significand, x = significand_and_exponent(m, element, field, fraction)
            special = is_special(element, field, fraction)
            infinite = special & ~fraction.any() if element.has_infinity else Const(0, 1)
            nan = special & ~infinite
            if not element.has_negative_zero:
                infinite, nan = special, is_nan(element, code)
            m.d.comb += [o.significand.eq(significand), o.x.eq(x), o.sign.eq(code[-1])]
            if element.has_nan:
                m.d.comb += o.nan.eq(nan)
            if element.has_infinity:
                m.d.comb += o.infinite.eq(infinite)
        elif isinstance(element, SignMagnitude):
            m.d.comb += [o.significand.eq(code[:-1]), o.sign.eq(code[-1])]
        else:
            number = Signal(signed(plan.magnitude + 1))
            given = code.as_signed() if isinstance(element, TwosComplement) else code
            negative: Value = number < 0
            if isinstance(element, Listed):
                given = table_integer(element, code)
                negative = any_of([negative, *(code == zero for zero in negative_zeros(element))])
            m.d.comb += [
                number.eq(given if element.signed else code - self.zero_point),
                o.sign.eq(negative),
                o.significand.eq(Mux(number < 0, -number, number)),
            ]
        return m


class Read(Step):
    """The parts of each level of scales and of each code.

    The parts of the levels are arrays `level0` (the finest), `level1` and so on; `groups` where
    there is but one.
    """

    def __init__(self, plan: DecoderPlan) -> None:
        self._plan = plan
        levels = zip(level_names(plan), plan.parts, plan.fmt.levels, strict=True)
        arrays = {
            name: ArrayLayout(part.layout, plan.groups(level)) for name, part, level in levels
        }
        lanes = ArrayLayout(element_layout(plan), plan.lanes)
        super().__init__(
            scaled_layout(plan.lanes, plan.fmt), StructLayout({**arrays, "lanes": lanes}), levels=12
        )

    def elaborate(self, platform: Any) -> Module:
        """Instantiate a core for each scale and each code."""
        m = Module()
        fmt, i = self._plan.fmt, self.i
        names = [*outer_names(fmt), *scale_names(fmt)][::-1]
        for number, (name, array) in enumerate(zip(names, level_names(self._plan), strict=True)):
            constant = self._plan.constant if number == len(names) - 1 else 0
            pairs = zip(elements_of(i[name]), self.o[array], strict=True)
            m.submodules[name] = cores(
                platform,
                partial(ReadScaleLane, fmt.levels[number].scale, constant),
                [{"code": code, "part": part} for code, part in pairs],
            )
        zero = {} if fmt.element.signed else {ZERO_POINT: i[ZERO_POINT]}
        scales = elements_of(i[scale_names(fmt)[-1]]) if fmt.blocked else []
        pairs = zip(with_selectors(fmt, i.codes, scales), self.o.lanes, strict=True)
        m.submodules.codes = cores(
            platform,
            partial(ReadElementLane, self._plan),
            [{"code": code, "o": o, **zero} for code, o in pairs],
        )
        return m


def level_names(plan: DecoderPlan) -> list[str]:
    """Names of the arrays of parts of the levels, fine to coarse."""
    count = len(plan.fmt.levels)
    return ["groups"] if count == 1 else [f"level{number}" for number in range(count)]


def cores(
    platform: Any,
    make: Callable[[], wiring.Component],
    connections: Iterable[Mapping[str, ValueLike]],
) -> Module:
    """A module of equal components; see `axs6.hw.core.rtlil.add_lanes`."""
    m = Module()
    add_lanes(m, platform, [make], connections)
    return m


def normalise(m: Module, magnitude: Value) -> tuple[Value, Value]:
    """A magnitude with its leading one on top, and the zeros that were above it."""
    if len(magnitude) == 1:
        return magnitude, Const(0, 1)
    zeros = leading_zeros(m, magnitude)
    return (magnitude << zeros)[: len(magnitude)], zeros


class NormaliseLane(wiring.Component):
    """An element of fixed point with its leading one on top."""

    def __init__(self, plan: DecoderPlan) -> None:
        super().__init__({"i": In(element_layout(plan)), "o": Out(normalised_layout(plan))})

    def elaborate(self, platform: Any) -> Module:
        """Build the shift."""
        m = Module()
        significand, zeros = normalise(m, self.i.significand)
        m.d.comb += [
            self.o.significand.eq(significand),
            self.o.x.eq(-zeros),
            self.o.sign.eq(self.i.sign),
        ]
        return m


class Combine(Step):
    """The product of all scales, for each group of the finest level.

    Elements of fixed point are normalised where a factor or a division comes to them.
    """

    def __init__(self, plan: DecoderPlan, i: data.StructLayout) -> None:
        self._plan = plan
        lane = normalised_layout(plan) if plan.normalised else element_layout(plan)
        o = StructLayout(
            {
                "groups": ArrayLayout(plan.group.layout, plan.finest),
                "lanes": ArrayLayout(lane, plan.lanes),
            }
        )
        super().__init__(i, o, levels=30 if len(plan.factors) > 1 else 12)

    def elaborate(self, platform: Any) -> Module:
        """Build the sums and products, and the shifts."""
        m = Module()
        plan = self._plan
        levels = [self.i[name] for name in level_names(plan)]
        for number, group in enumerate(self.o.groups):
            parts = [level[number * len(level) // plan.finest] for level in levels]
            factors = [part for part, known in zip(parts, plan.parts, strict=True) if known.factor]
            m.d.comb += group.exponent.eq(balanced([p.exponent for p in parts], lambda a, b: a + b))
            if plan.group.nan:
                flags = [p.nan for p, known in zip(parts, plan.parts, strict=True) if known.nan]
                m.d.comb += group.nan.eq(any_of(flags))
            if factors:
                product = balanced([p.factor for p in factors], lambda a, b: a * b)
                m.d.comb += [
                    group.factor.eq(product),
                    group.zero.eq(any_of([p.zero for p in factors])),
                ]
        if plan.normalised and not plan.floating:
            pairs = zip(self.i.lanes, self.o.lanes, strict=True)
            lanes = [{"i": i, "o": o} for i, o in pairs]
            m.submodules.lanes = cores(platform, partial(NormaliseLane, plan), lanes)
        else:
            m.d.comb += self.o.lanes.eq(self.i.lanes)
        return m


def read_steps(plan: DecoderPlan) -> list[Step]:
    """Steps from `scaled_layout` to `groups` and `lanes`."""
    read = Read(plan)
    needed = len(plan.fmt.levels) > 1 or (plan.normalised and not plan.floating)
    return [read, Combine(plan, read.o.shape())] if needed else [read]
