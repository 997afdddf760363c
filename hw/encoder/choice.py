"""An encoder that takes the best of several scales of a block, by the squared errors under them.

Under exponents, candidates are powers of two apart: each lane moves its significand once, and the
candidates read it at other places. Under real and integer scales each candidate has a reciprocal
and multipliers. Then every lane of a candidate gives the code and its part of the merit; the sums,
times the squared scales, are compared.
"""

from collections.abc import Sequence
from dataclasses import dataclass
from functools import partial
from typing import Any

from amaranth.hdl import Cat, Const, Module, Mux, Signal, Value, signed
from amaranth.lib import data

from axs6.golden.choice import lowest_code
from axs6.golden.formats import (
    FP32,
    BlockFormat,
    Element,
    Real,
    ScaleChoice,
    TwosComplement,
    block_format,
    name_of,
)
from axs6.golden.formats.floating import INPUT_DTYPES
from axs6.golden.rounding import Rounding
from axs6.hw.core.layouts import encoded_layout, fp32_layout, outer_names
from axs6.hw.core.parameters import float_dtype
from axs6.hw.core.pipeline import Pipeline, Step, in_lanes, past
from axs6.hw.core.rtlil import add_lanes
from axs6.hw.core.structures import ArrayLayout, StructLayout
from axs6.hw.core.trees import balanced
from axs6.hw.encoder.choice_lanes import RateLane, fixed_bits, fixed_layout, moved, term_bits
from axs6.hw.encoder.encoder import check_format
from axs6.hw.encoder.feedback import OfLanes
from axs6.hw.encoder.format_lanes import keep, passing_lane, sides
from axs6.hw.encoder.format_steps import ShareScales, UnpackSignificands, rest_layout, searched
from axs6.hw.encoder.largest import search_steps
from axs6.hw.encoder.scaled import Scaled
from axs6.hw.encoder.scaled_lanes import TimesReciprocalLane, product_lane
from axs6.hw.encoder.scaled_steps import (
    DivisionOperands,
    Stage,
    UnpackNumbers,
    beside,
    fp32_normal,
    half,
    normalise_reciprocal,
    passing,
    rounded_scale,
    scale_field,
    scale_normal,
    scale_steps,
)
from axs6.hw.encoder.scheme import Scheme
from axs6.hw.fp32.common import FRACTION, SIGNIFICAND
from axs6.hw.fp32.quotient import FP32_NORMAL, ONE, Quotient, quotient_steps

Fields = dict[str, Any]

SHIFTS = (1, 0, 2)
"""Places by which values go to the right under an exponent, the one before it and the one after."""


def unit_exponent(element: Element) -> int:
    """Exponent of an element's unit."""
    return element.emin - element.fraction_bits


@dataclass(frozen=True)
class MeasuredExponents(Scheme):
    """A scheme whose lanes keep what merits need, under the smallest candidate."""

    @property
    def kept_bits(self) -> int:
        """Bits of a value under the smallest of the candidates."""
        return fixed_bits(self.element) + max(SHIFTS)

    @property
    def right(self) -> int:
        """Places by which a value at the place of its block goes to the right."""
        at_top = self.top - unit_exponent(self.element) + max(SHIFTS) - SHIFTS[0]
        return self.element.integer_bits + max(SHIFTS) - at_top

    @property
    def distance_bits(self) -> int:
        """Bits of distances: up to what is 0 under all candidates, and one place more."""
        most = self.kept_bits + 2
        return self.place_bits if self.exceeds else min(self.place_bits, most.bit_length())


@dataclass(frozen=True)
class MeasuredReals(Scaled):
    """The numbers of an encoder under real scales whose lanes keep what merits need."""

    @property
    def kept_bits(self) -> int:
        """Bits of a value over its scale."""
        return fixed_bits(self.element)

    @property
    def right(self) -> int:
        """Places by which a value of the exponent `top` goes to the right."""
        return self.element.integer_bits - (self.top - unit_exponent(self.element))


Measured = MeasuredExponents | MeasuredReals


def count(fmt: BlockFormat) -> int:
    """Candidates of a format."""
    return 2 if fmt.choice is ScaleChoice.FOUR_OVER_SIX else len(SHIFTS)


def common(scheme: Measured) -> Fields:
    """Fields of the last steps: outer scales, codes of candidates, signs, and what is no number."""
    outer = dict.fromkeys(outer_names(scheme.fmt), FP32.width)
    scale = scheme.fmt.levels[0].scale
    lanes = ArrayLayout(StructLayout(sides(scheme)), scheme.lanes)
    codes = ArrayLayout(scale.bits, count(scheme.fmt))
    return {**outer, "scales": codes, "sides": lanes, "invalid": 1, "lost": 1}


def measured(scheme: Measured) -> Fields:
    """Those, and the values under the candidates, or under the smallest one."""
    one = ArrayLayout(fixed_layout(scheme.kept_bits), scheme.lanes)
    values = one if isinstance(scheme, Scheme) else ArrayLayout(one, count(scheme.fmt))
    return {**common(scheme), "measured": values}


class MeasureShared(Step):
    """Values under the smallest candidate, and the codes of the candidates, of an exponent."""

    verilog_name = "measure"

    def __init__(self, scheme: MeasuredExponents, i: data.StructLayout) -> None:
        self._scheme = scheme
        super().__init__(i, StructLayout(measured(scheme)), levels=40)

    def elaborate(self, platform: Any) -> Module:
        """Build the shifters."""
        m = Module()
        scheme, o = self._scheme, self.o
        code = self.i.exponent
        change = self.i.change[0] if "change" in self.i.shape().members else Const(0, 1)
        before, after = code != 0, code < scheme.scale.largest_code
        m.d.comb += [
            Cat(o.scales).eq(Cat(code, (code - before)[: len(code)], (code + after)[: len(code)])),
            o.invalid.eq(self.i.invalid),
        ]
        for k, (lane, to) in enumerate(zip(self.i.lanes, o.measured, strict=True)):
            passed, names = lane.passed, sides(scheme)
            right = Signal(signed(len(lane.distance) + 3), name=f"right{k}")
            m.d.comb += right.eq(lane.distance + change + scheme.right)
            kept = passed.kept
            sticky: Value = passed.sticky if "sticky" in passing_lane(scheme) else Const(0, 1)
            if not scheme.propagates:  # an infinity stands for the largest FP32 value
                ones = (
                    Const(-1, len(kept))
                    if len(kept) <= SIGNIFICAND
                    else Const(((1 << SIGNIFICAND) - 1) << len(kept) - SIGNIFICAND, len(kept))
                )
                kept = Mux(passed.infinite, ones, kept)
                sticky = Mux(passed.infinite, len(kept) < SIGNIFICAND, sticky)
            sub = Module()
            moved(sub, kept, sticky, right, lane.close, to)
            m.submodules[f"lane{k}"] = sub
            m.d.comb += [o.sides[k][name].eq(passed[name]) for name in names]
        return m


class Rate(Step):
    """`RateLane` for each lane of each candidate."""

    def __init__(self, scheme: Measured) -> None:
        self._scheme = scheme
        element, n = scheme.element, count(scheme.fmt)
        o = {
            **common(scheme),
            "magnitudes": ArrayLayout(ArrayLayout(element.width - 1, scheme.lanes), n),
            "terms": ArrayLayout(ArrayLayout(term_bits(element), scheme.lanes), n),
        }
        super().__init__(StructLayout(measured(scheme)), StructLayout(o), levels=45)

    def elaborate(self, platform: Any) -> Module:
        """Instantiate the lanes."""
        m = Module()
        lanes = []
        for k in range(count(self._scheme.fmt)):
            for index in range(self._scheme.lanes):
                o = {"magnitude": self.o.magnitudes[k][index], "term": self.o.terms[k][index]}
                lanes.append({"value": self._value(m, k, index), **o})
        add_lanes(m, platform, [partial(RateLane, self._scheme.element)], lanes)
        m.d.comb += [self.o[name].eq(self.i[name]) for name in common(self._scheme)]
        return m

    def _value(self, m: Module, k: int, index: int) -> Value:
        """A value under a candidate."""
        if isinstance(self._scheme, Scaled):
            value: Value = self.i.measured[k][index].as_value()
            return value
        x, bits = self.i.measured[index], fixed_bits(self._scheme.element)
        shift = SHIFTS[k]
        sticky = x.sticky | x.fixed[:shift].any() if shift else x.sticky
        over = x.over | x.fixed[bits + shift :].any() if shift < max(SHIFTS) else x.over
        return Cat(x.fixed[shift : bits + shift], sticky, over)


class SumTerms(Step):
    """The merits in units of the scales."""

    verilog_name = "total"

    def __init__(self, scheme: Measured) -> None:
        self._scheme = scheme
        i = Rate(scheme).o.shape()
        bits = term_bits(scheme.element) + (scheme.lanes - 1).bit_length()
        totals = ArrayLayout(bits, count(scheme.fmt))
        o = {**{k: x for k, x in i.members.items() if k != "terms"}, "totals": totals}
        super().__init__(i, StructLayout(o), levels=8 * (scheme.lanes - 1).bit_length())

    def elaborate(self, platform: Any) -> Module:
        """Build the adders."""
        m = Module()
        names = [name for name in self.o.shape().members if name != "totals"]
        m.d.comb += [self.o[name].eq(self.i[name]) for name in names]
        for total, terms in zip(self.o.totals, self.i.terms, strict=True):
            m.d.comb += total.eq(balanced(list(terms), lambda a, b: a + b))
        return m


class Pick(Step):
    """The candidate of the first of the largest merits, and its block.

    Where a value is no number and the block's scale or one above it is NaN, codes are 0.
    """

    def __init__(self, scheme: Measured) -> None:
        self._scheme = scheme
        o = encoded_layout(scheme.lanes, fmt=scheme.fmt)
        super().__init__(SumTerms(scheme).o.shape(), o, levels=60)

    def elaborate(self, platform: Any) -> Module:
        """Build the squares of scales, the comparisons and the selection."""
        m = Module()
        i, fmt, element = self.i, self._scheme.fmt, self._scheme.element
        merits = self._merits(m)
        best, most = Const(0, len(merits).bit_length()), merits[0]
        for k in range(1, len(merits)):
            better, chosen, larger = Signal(), Signal.like(best), Signal.like(most)
            m.d.comb += [
                better.eq(merits[k] > most),
                chosen.eq(Mux(better, k, best)),
                larger.eq(Mux(better, merits[k], most)),
            ]
            best, most = chosen, larger
        block, finest = self.o.block, fmt.levels[0].scale
        for index, code in enumerate(block.codes):
            magnitude = Signal(element.width - 1, name=f"magnitude{index}")
            magnitudes = [each[index] for each in i.magnitudes]
            m.d.comb += magnitude.eq(_selected(best, magnitudes))
            side = i.sides[index]
            if not self._scheme.propagates:
                magnitude = Mux(side.infinite, element.largest_code, magnitude)
            word = Cat(magnitude[: element.width - 1], side.sign)
            if isinstance(element, TwosComplement):
                word = (Cat(magnitude, Const(0, 1)) ^ side.sign.replicate(len(word))) + side.sign
            m.d.comb += code.eq(Mux(i.lost, 0, word))
        names = [name for name in block.shape().members if name != "codes"]
        levels = dict(zip(names, fmt.levels[::-1], strict=True))
        nan = [name for name, level in levels.items() if level.scale.nan_code is not None][-1:]
        for name, level in levels.items():
            value = _selected(best, list(i.scales)) if level.scale is finest else i[name]
            if name in nan:
                value = Mux(i.lost, level.scale.nan_code, value)
            m.d.comb += block[name].eq(value)
        m.d.comb += self.o.invalid.eq(i.invalid)
        return m

    def _merits(self, m: Module) -> list[Value]:
        """Merits in one unit."""
        i, scale = self.i, self._scheme.fmt.levels[0].scale
        bits = self._scheme.fmt.merit_bits
        merits = [Signal(bits, name=f"merit{k}") for k in range(len(i.totals))]
        if isinstance(self._scheme, Scheme):
            code = i.scales[0]
            valid = [Const(1, 1), *(each != code for each in list(i.scales)[1:])]
            for merit, total, shift, some in zip(merits, i.totals, SHIFTS, valid, strict=True):
                m.d.comb += merit.eq(Mux(some, total << 2 * shift, 0))
            return merits
        fraction = scale.dtype.fraction_bits if isinstance(scale, Real) else 0
        least = i.scales[0 if len(merits) == 2 else 1]
        for k, (merit, total, code) in enumerate(zip(merits, i.totals, i.scales, strict=True)):
            counted: Value = code
            if isinstance(scale, Real):
                above = code[fraction:] != least[fraction:]
                significand = Cat(code[:fraction], Const(1, 1))
                counted = Mux(above, significand << 1, significand)
            square = Signal(2 * len(counted), name=f"square{k}")
            m.d.comb += [square.eq(counted * counted), merit.eq(total * square)]
        return merits


def _selected(best: Value, values: Sequence[Value]) -> Value:
    found = values[0]
    for k, value in enumerate(values[1:], 1):
        found = Mux(best == k, value, found)
    return found


# Real and integer scales


def candidate_fields(scheme: MeasuredReals) -> Fields:
    """Values that pass by, and the codes of the candidates."""
    scale = scheme.fmt.levels[0].scale
    return {**passing(scheme), "scales": ArrayLayout(scale.bits, count(scheme.fmt))}


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
        lanes = ArrayLayout(quotient.operands, count(scheme.fmt))
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
        fields, n = candidate_fields(scheme), count(scheme.fmt)
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
        products = ArrayLayout(lanes, count(scheme.fmt))
        super().__init__(i, StructLayout({**common(scheme), "products": products}), levels=45)

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
        m.d.comb += [o[name].eq(i[name]) for name in common(scheme) if name != "sides"]
        return m


class MeasureProducts(Step):
    """Products rounded as in FP32, in fixed point."""

    verilog_name = "measure"

    def __init__(self, scheme: MeasuredReals, i: data.StructLayout) -> None:
        self._scheme = scheme
        super().__init__(i, StructLayout(measured(scheme)), levels=70)

    def elaborate(self, platform: Any) -> Module:
        """Build the roundings and the shifters."""
        m = Module()
        m.d.comb += [self.o[name].eq(self.i[name]) for name in common(self._scheme)]
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


def exponent_steps(scheme: MeasuredExponents) -> list[Step]:
    """Steps from the values to those in fixed point, under exponents."""
    search = search_steps(
        searched(scheme), scheme.place_bits, rest_layout(scheme), scheme.distance_bits
    )
    share = ShareScales(scheme)
    return [UnpackSignificands(scheme), *search, share, MeasureShared(scheme, share.o.shape())]


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
    divisions = in_lanes(lambda: quotient_steps(quotient), count(scheme.fmt))
    lanes = [OfLanes(step) for step in divisions]
    steps += [CandidateOperands(scheme, quotient), *past(lanes, StructLayout(fields))]
    normalise = NormaliseReciprocals(scheme)
    multiply = Multiply(scheme, normalise.o.shape())
    return [*steps, normalise, multiply, MeasureProducts(scheme, multiply.o.shape())]


class ChoiceEncoder(Pipeline):
    """Encodes a block of floating-point values under the best of several scales in each cycle.

    The block, special values included, is that of `axs6.golden.encode` for a format with a choice
    of its finest scales, rounded to nearest: `axs6.golden.choice` says which scales are candidates
    and how they are compared. Otherwise as `Encoder`.

    Args:
        block: values in a block, 8 to 128; None for the format's own.
        dtype: of the values: "fp32", "bf16" or "fp16".
        stages: ranks of registers, from 0.
        format: block format with a choice, such as "mxfp4_mse" or "nvfp4_four-over-six": one scale
            of blocks, an exponent, integer or real number, and elements without NaN.

    Ports:
        i (in, stream): an item is a block of values.
        i.values (in, `block` x the bits of `dtype`): the values as bit patterns, lane 0 first.
        i.outer (in, 32 bits): the scale of the tensor or channel in FP32, where the format has one.
        o (out, stream): an item is the block.
        o.block.exponent, o.block.scale, o.block.factor (out, the bits of the scale): the code of
            the block's scale.
        o.block.outer (out, 32 bits): the scale of the tensor or channel by which values were
            divided: `i.outer` held to normal numbers, NaN if it is no positive finite number.
        o.block.codes (out, `block` x the bits of an element): the codes, lane 0 first.
        o.invalid (out, 1 bit): whether a value was NaN or infinite.

    Latency is `stages` cycles, interval 1. Source: docs/formats.md, "Choice of the scale".

    Raises:
        ValueError: a parameter is not what it must be, or the format has no hardware.
    """

    def __init__(
        self,
        block: int | None = None,
        dtype: str = "fp32",
        stages: int = 0,
        format: str = "mxfp4_mse",
    ) -> None:
        fmt = block_format(format)
        fmt = fmt if block is None else fmt.with_block(block)
        _check(fmt)
        numbers = (fmt, float_dtype(dtype, INPUT_DTYPES), Rounding.NEAREST, 0)
        scheme: Measured
        if fmt.exponent is None:
            scheme = MeasuredReals(*numbers, fmt.block)
            steps = real_steps(scheme)
        else:
            scheme = MeasuredExponents(*numbers)
            steps = exponent_steps(scheme)
        super().__init__([*steps, Rate(scheme), SumTerms(scheme), Pick(scheme)], stages)


def _check(fmt: BlockFormat) -> None:
    """Raise ValueError unless there is hardware for a format with a choice."""
    name = name_of(fmt)
    if fmt.choice is ScaleChoice.MAX:
        raise ValueError(f"choice_encoder needs a format with a choice of scales, unlike {name}")
    check_format(fmt.with_choice(ScaleChoice.MAX), fmt.block, "choice_encoder")
    if fmt.element.has_nan or fmt.element.divisor > 1 or len(fmt.blocked) > 1:
        raise ValueError(f"choice_encoder has no hardware for the elements or scales of {name}")
