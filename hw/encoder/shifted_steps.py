"""Steps of an encoder with shifts below a real scale, and of one whose scale is found in BF16.

A real scale in BF16 needs no division: the largest magnitude is multiplied by a constant, and the
reciprocal of a scale depends on its fraction alone, by a table.
"""

from functools import partial
from typing import Any

import numpy as np
from amaranth.hdl import Array, Cat, Const, Module, Mux, Signal, Value, signed
from amaranth.lib import data, wiring
from amaranth.lib.wiring import In, Out

from axs6.golden.formats import BF16, FP32, Real, Shift
from axs6.golden.scaling import as_bf16
from axs6.hw.core.codes import split
from axs6.hw.core.layouts import fp32_layout, scale_names
from axs6.hw.core.pipeline import Step
from axs6.hw.core.rtlil import add_lanes
from axs6.hw.core.structures import ArrayLayout, StructLayout
from axs6.hw.core.trees import least_in_groups
from axs6.hw.encoder.code_steps import LaneSteps, scales_layout
from axs6.hw.encoder.format_lanes import align, aligned_lane, passing_lane, sides
from axs6.hw.encoder.scaled import Scaled
from axs6.hw.encoder.scaled_lanes import product_lane, round_product
from axs6.hw.fp32.common import FRACTION, SIGNIFICAND
from axs6.hw.fp32.convert import rounding_steps
from axs6.hw.fp32.number import Number

BF16_BITS = BF16.fraction_bits + 1
"""Bits of a significand in BF16."""

DROPPED = FP32.fraction_bits - BF16.fraction_bits
"""Bits of an FP32 pattern that BF16 has not."""


class TimesInverse(Step):
    """The largest magnitude times the inverse of the largest element, rounded to BF16."""

    verilog_name = "inverse"

    def __init__(self, scheme: Scaled) -> None:
        inverse = as_bf16(np.array(1 / scheme.element.largest, np.float32))
        pattern = int(inverse.view(np.uint32))
        value, exponent = scheme.value, (pattern >> FRACTION) - FP32.bias
        self._factor = (pattern & (1 << FRACTION) - 1 | 1 << FRACTION) >> DROPPED
        below = value.bits - 1 + BF16_BITS - 1
        self.number = Number(
            value.bits + BF16_BITS,
            value.place_bits,
            exponent - value.bias - below,
            special=False,
            most_zeros=1,  # both significands have their highest bit, or the product is 0
        )
        i = StructLayout({"dividend": value.layout})
        super().__init__(i, self.number.given, levels=30)

    def elaborate(self, platform: Any) -> Module:
        """Build the product."""
        m = Module()
        m.d.comb += [
            self.o.magnitude.eq(self.i.dividend.significand * self._factor),
            self.o.exponent.eq(self.i.dividend.place),
        ]
        return m


def inverse_steps(scheme: Scaled) -> list[Step]:
    """Steps from the largest magnitude to `fp32_layout`: what `TimesInverse` gives, in FP32."""
    times = TimesInverse(scheme)
    steps = [times, *rounding_steps(times.number)]
    assert steps[-1].o.shape() == fp32_layout
    return steps


def in_bf16(m: Module, value: Value) -> Value:
    """An FP32 pattern without a sign, rounded to BF16, ties to even."""
    rounded = Signal(len(value), name="rounded")
    up = (1 << DROPPED - 1) - 1 + value[DROPPED]
    m.d.comb += rounded.eq(Cat(Const(0, DROPPED), ((value + up) >> DROPPED)[: len(value)]))
    return rounded


def look_up_reciprocal(scale: Real, bias: int, code: Value) -> tuple[Value, Value]:
    """Significand and place, with a bias, of the reciprocal in BF16 of a scale's code."""
    fraction, field = split(scale.dtype, code)
    steps = np.arange(1 << scale.dtype.fraction_bits, dtype=np.float32)
    patterns = as_bf16(np.float32(1) / (1 + steps / np.float32(len(steps)))).view(np.uint32)
    significands = (patterns & (1 << FRACTION) - 1 | 1 << FRACTION) >> DROPPED
    lower = (patterns >> FRACTION) < FP32.bias
    significand = Array(Const(int(x), BF16_BITS) for x in significands)[fraction]
    less = Array(Const(int(x), 1) for x in lower)[fraction]
    place = Const(bias + scale.dtype.bias) - field - less
    return Cat(Const(0, SIGNIFICAND - BF16_BITS), significand), place


def measured_lane(scheme: Scaled) -> StructLayout:
    """A product rounded as in FP32: its distance from the exponent of the largest element."""
    passed = StructLayout(passing_lane(scheme))
    return StructLayout({"total": signed(scheme.place_bits + 2), "some": 1, "passed": passed})


class MeasureDistanceLane(wiring.Component):
    """A product rounded to nearest even as in FP32, and its distance."""

    verilog_name = "measure_lane"

    def __init__(self, scheme: Scaled) -> None:
        self._scheme = scheme
        super().__init__(
            {"product": In(product_lane(scheme)), "measured": Out(measured_lane(scheme))}
        )

    def elaborate(self, platform: object) -> Module:
        """Build the rounding and the subtraction."""
        m = Module()
        passed, total = round_product(m, self._scheme, self.product)
        o = self.measured
        m.d.comb += [o.passed.eq(passed), o.total.eq(total), o.some.eq(self.product.some)]
        return m


class MeasureDistances(Step):
    """`MeasureDistanceLane` for each lane."""

    verilog_name = "measure"

    def __init__(self, scheme: Scaled, i: data.StructLayout) -> None:
        self._scheme = scheme
        lanes = ArrayLayout(measured_lane(scheme), scheme.lanes)
        super().__init__(i, StructLayout({**i.members, "lanes": lanes}), levels=35)

    def elaborate(self, platform: Any) -> Module:
        """Instantiate the lanes."""
        m = Module()
        names = [name for name in self.o.shape().members if name != "lanes"]
        m.d.comb += [self.o[name].eq(self.i[name]) for name in names]
        pairs = zip(self.i.lanes, self.o.lanes, strict=True)
        lanes = [{"product": i.as_value(), "measured": o.as_value()} for i, o in pairs]
        add_lanes(m, platform, [partial(MeasureDistanceLane, self._scheme)], lanes)
        return m


class ShareShifts(Step):
    """The shifts of a block, and by how much they raise its lanes; `lost` makes all lanes 0."""

    verilog_name = "share"

    def __init__(self, scheme: Scaled, i: data.StructLayout) -> None:
        self._scheme = scheme
        groups = scheme.lanes // int(scheme.fmt.levels[0].group)
        self._most = sum(x.scale.largest_code for x in scheme.shifts)
        rises = ArrayLayout(self._most.bit_length(), groups)
        lanes = {"lanes": i["lanes"].shape, "rises": rises, "invalid": 1}
        o = StructLayout({**scales_layout(scheme).members, **lanes})
        super().__init__(i, o, levels=20 + 24 * len(scheme.shifts))

    def elaborate(self, platform: Any) -> Module:
        """Build the trees of minima and the limits."""
        m = Module()
        scheme, i, o = self._scheme, self.i, self.o
        names = scale_names(scheme.fmt)
        found = zip(names, scheme.fmt.blocked[::-1], strict=True)
        fields = [(name, level) for name, level in found if isinstance(level.scale, Shift)]
        made = {"lanes", "rises", *(name for name, _ in fields)}
        m.d.comb += [o[name].eq(i[name]) for name in o.shape().members if name not in made]
        sizes = [int(level.group) for _, level in fields]
        nearest = least_in_groups(m, [self._distance(m, lane) for lane in i.lanes], sizes)
        rises: list[Value] = [Const(0, 1)]
        for (name, level), groups in zip(fields, nearest, strict=True):
            most = level.scale.largest_code
            above = [rises[k * len(rises) // len(groups)] for k in range(len(groups))]
            shifts = []
            for k, (rise, near) in enumerate(zip(above, groups, strict=True)):
                shift = Signal(level.scale.bits, name=f"{name}_{k}")
                below = near - rise
                m.d.comb += shift.eq(Mux(below < 0, 0, Mux(below < most, below, most)))
                shifts.append(shift)
            m.d.comb += [to.eq(shift) for to, shift in zip(o[name], shifts, strict=True)]
            rises = [rise + shift for rise, shift in zip(above, shifts, strict=True)]
        m.d.comb += [to.eq(rise) for to, rise in zip(o.rises, rises, strict=True)]
        for lane, to in zip(i.lanes, o.lanes, strict=True):
            m.d.comb += [
                to.total.eq(lane.total),
                to.some.eq(lane.some & ~i.lost),
                to.passed.eq(lane.passed),
                *(to.passed[name].eq(lane.passed[name] & ~i.lost) for name in sides(scheme)),
            ]
        return m

    def _distance(self, m: Module, lane: Any) -> Value:
        """A lane's distance, from 0 to the sum of the largest shifts, which is also that of 0."""
        far = lane.total + (self._scheme.element.emax - self._scheme.top)
        distance = Signal(range(self._most + 1), name="distance")
        m.d.comb += distance.eq(
            Mux(lane.some & (far < self._most), Mux(far < 0, 0, far), self._most)
        )
        return distance


class AlignProductLane(wiring.Component):
    """How far a significand goes to the right below its shifts."""

    verilog_name = "align_lane"

    def __init__(self, scheme: Scaled, bits: int) -> None:
        self._scheme = scheme
        super().__init__(
            {
                "measured": In(measured_lane(scheme)),
                "rise": In(bits),
                "aligned": Out(aligned_lane(scheme)),
            }
        )

    def elaborate(self, platform: object) -> Module:
        """Build the subtraction and the comparisons."""
        m = Module()
        x = self.measured
        align(m, self._scheme, x.total - self.rise, x.some, x.passed, self.aligned)
        return m


class AlignProducts(LaneSteps[Scaled]):
    """`AlignProductLane` for each lane."""

    verilog_name = "align"

    def __init__(self, scheme: Scaled, i: data.StructLayout) -> None:
        super().__init__(scheme, i, aligned_lane(scheme), levels=20)

    def elaborate(self, platform: Any) -> Module:
        """Instantiate the lanes."""
        m = Module()
        self.pass_scales(m)
        rises = list(self.i.rises)
        each = self._scheme.lanes // len(rises)
        lanes = [
            {"measured": i.as_value(), "rise": rises[k // each], "aligned": o.as_value()}
            for k, (i, o) in enumerate(zip(self.i.lanes, self.o.lanes, strict=True))
        ]
        make = partial(AlignProductLane, self._scheme, len(rises[0]))
        add_lanes(m, platform, [make], lanes)
        return m


def shifted_steps(scheme: Scaled, i: data.StructLayout) -> list[Step]:
    """Steps from products to aligned significands, with shifts between."""
    measure = MeasureDistances(scheme, i)
    share = ShareShifts(scheme, measure.o.shape())
    return [measure, share, AlignProducts(scheme, share.o.shape())]
