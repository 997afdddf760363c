"""The last steps of a decoder: an element times its scales becomes a floating-point value."""

from collections.abc import Callable
from functools import partial
from typing import Any

from amaranth.hdl import Cat, Const, Module, Mux, Signal, Value
from amaranth.lib import data, wiring
from amaranth.lib.wiring import In, Out

from axs6.hw.core.layouts import values_layout
from axs6.hw.core.pipeline import Step
from axs6.hw.core.structures import ArrayLayout, StructLayout
from axs6.hw.core.trees import chosen, leading_zeros
from axs6.hw.decoder.plan import GUARD, DecoderPlan
from axs6.hw.decoder.product import DivideLane, TimesFactorLane
from axs6.hw.decoder.read import cores, read_steps
from axs6.hw.fp32.common import limited, shift_right_sticky


def measured_layout(plan: DecoderPlan, significand: int) -> data.StructLayout:
    """Fields of a significand, how far it goes to its place, and the exponent field.

    `high` says that the value is too large.
    """
    element = plan.fmt.element
    return StructLayout(
        {
            "significand": significand,
            "distance": distance_bits(plan),
            "field": plan.dtype.exponent_bits,
            "sign": 1,
            **({"nan": 1} if element.has_nan or plan.group.nan else {}),
            **({"infinite": 1} if element.has_infinity else {}),
            **({"high": 1} if plan.overflows else {}),
        }
    )


def distance_bits(plan: DecoderPlan) -> int:
    """Bits of the distance that a significand goes to its place."""
    zeros = 0 if plan.normalised else plan.magnitude - 1
    return (plan.right + zeros).bit_length()


def table_layout(plan: DecoderPlan) -> data.StructLayout:
    """Table of a group's exponent for its lanes.

    The field of a value is `low` and an element's exponent, from 0 up, with one of two numbers
    above their sum: `above[0]` or, after a carry, `above[1]`. `high` are those as the high bits of
    a field, 0 where they are negative. `up` is the distance of subnormal values where it is that of
    their group.
    """
    bits = plan.low_bits
    above = plan.above.shape
    return StructLayout(
        {
            "low": bits,
            "above": ArrayLayout(above, 2),
            "high": ArrayLayout(max(0, plan.dtype.exponent_bits - bits), 2),
            "negative": 2,
            "zero": 2,
            **({"over": 2, "top": 2} if plan.overflows else {}),
            **({} if plan.normalised else {"up": distance_bits(plan)}),
            **({"nan": 1} if plan.group.nan else {}),
            **({"nothing": 1} if plan.factors and plan.fmt.element.has_infinity else {}),
        }
    )


class TableLane(wiring.Component):
    """The table of a group; see `table_layout`."""

    def __init__(self, plan: DecoderPlan) -> None:
        self._plan = plan
        super().__init__({"group": In(plan.group.layout), "table": Out(table_layout(plan))})

    def elaborate(self, platform: Any) -> Module:
        """Build the increment, and the comparisons with the ends of the field."""
        m = Module()
        plan, group, table = self._plan, self.group, self.table
        bits, limit = plan.low_bits, plan.dtype.exponent_special
        base = Signal(plan.base.shape)
        m.d.comb += [base.eq(group.exponent + plan.added.low), table.low.eq(base[:bits])]
        for carry in range(2):
            above = Signal(plan.above.shape, name=f"above{carry}")
            m.d.comb += [
                above.eq((base >> bits) + carry),
                table.above[carry].eq(above),
                table.negative[carry].eq(above < 0),
                table.zero[carry].eq(above == 0),
                table.high[carry].eq(Mux(above < 0, 0, above)),
            ]
            if plan.overflows:
                m.d.comb += [
                    table.over[carry].eq(above > limit >> bits),
                    table.top[carry].eq(above == limit >> bits),
                ]
        if not plan.normalised:
            up = group.exponent + (plan.right - 1)
            m.d.comb += table.up.eq(Mux(up < 0, 0, up) if plan.limited else up)
        if plan.group.nan:
            m.d.comb += table.nan.eq(group.nan)
        if plan.factors and plan.fmt.element.has_infinity:
            m.d.comb += table.nothing.eq(group.zero)
        return m


class MeasureLane(wiring.Component):
    """The exponent field of a value, and how far its significand goes to its place.

    Where significands are normalised they come down from the top, as far as subnormal values need.
    Elsewhere they go up from a place below it: past the zeros on top, or no further than to the
    place of a subnormal value.
    """

    def __init__(self, plan: DecoderPlan, i: data.StructLayout) -> None:
        self._plan = plan
        self._significand = i["significand"].width
        o = measured_layout(plan, self._significand)
        super().__init__({"group": In(table_layout(plan)), "i": In(i), "o": Out(o)})

    def elaborate(self, platform: Any) -> Module:
        """Build the sum of exponents and the distance."""
        m = Module()
        plan, table, i, o = self._plan, self.group, self.i, self.o
        bits = plan.low_bits
        total, subnormal, some = Signal(bits + 1), Signal(), Signal()
        zeros: Value = Const(0, 1)
        if plan.normalised:
            added, present = i.x - plan.added.low, i.significand[-1]
        else:
            if plan.magnitude > 1:
                zeros = leading_zeros(m, i.significand)
            added, present = plan.magnitude - 1 - zeros, i.significand.any()
        m.d.comb += [total.eq(table.low + added[:bits]), some.eq(present)]
        low, carry = total[:bits], total[bits]

        def of(pair: Value) -> Value:
            return Mux(carry, pair[1], pair[0])

        negative = of(table.negative)
        if plan.field.low < 1:
            m.d.comb += subnormal.eq(negative | of(table.zero) & ~low.any())
        high = chosen([some & ~carry, some & carry], list(table.high))
        m.d.comb += [
            o.significand.eq(i.significand),
            o.distance.eq(self._distance(low, of(table.above), subnormal, zeros)),
            o.field.eq(Cat(low & (some & ~negative).replicate(bits), high)),
            o.sign.eq(i.sign),
        ]
        nan = [i.nan] if "nan" in i.shape().members else []
        nan += [table.nan] if plan.group.nan else []
        if plan.fmt.element.has_infinity:
            m.d.comb += o.infinite.eq(i.infinite)
            nan += [i.infinite & table.nothing] if plan.factors else []
        if nan:
            m.d.comb += o.nan.eq(Cat(nan).any())
        if plan.overflows:
            limit = plan.dtype.exponent_special & (1 << bits) - 1
            m.d.comb += o.high.eq(some & (of(table.over) | of(table.top) & (low >= limit)))
        return m

    def _distance(self, low: Value, above: Value, subnormal: Value, zeros: Value) -> Value:
        plan, bits = self._plan, distance_bits(self._plan)
        if not bits:
            return Const(0, 0)
        if not plan.normalised:
            return Mux(subnormal, self.group.up, (zeros + plan.right)[:bits])
        down = 1 - Cat(low, above).as_signed()
        if plan.limited:
            down = limited(down, bits)
        return down[:bits] & subnormal.replicate(bits)


def placed_bits(plan: DecoderPlan) -> int:
    """Bits of a significand in its place: those that are kept, and what decides the rounding."""
    return min(max(plan.wide, plan.precision), plan.precision + GUARD)


def placed_layout(plan: DecoderPlan, i: data.StructLayout) -> data.StructLayout:
    """Fields of a significand in its place."""
    rest = {name: shape for name, (shape) in i.members.items() if name != "distance"}
    return StructLayout({**rest, "significand": placed_bits(plan)})


def reduced(value: Value, bits: int) -> Value:
    """The top bits of a value, zeros below them if it has fewer; the lowest is or-ed with more."""
    if len(value) <= bits:
        return Cat(Const(0, bits - len(value)), value)
    dropped = len(value) - bits
    return Cat(value[: dropped + 1].any(), value[dropped + 1 :])


class PlaceSignificandLane(wiring.Component):
    """A significand in its place."""

    verilog_name = "place_lane"

    def __init__(self, plan: DecoderPlan, i: data.StructLayout) -> None:
        self._plan = plan
        super().__init__({"i": In(i), "o": Out(placed_layout(plan, i))})

    def elaborate(self, platform: Any) -> Module:
        """Build the shift."""
        m = Module()
        plan, i, o = self._plan, self.i, self.o
        m.d.comb += [o[name].eq(i[name]) for name in o.shape().members if name != "significand"]
        bits, kept = distance_bits(plan), placed_bits(plan)
        if not plan.normalised:
            placed = Signal(plan.wide)
            # truncates: what goes up to the first one, which its fraction leaves out
            m.d.comb += placed.eq(self._repeated(i.significand) << i.distance)
            m.d.comb += o.significand.eq(reduced(placed, kept))
        elif plan.wide <= kept:
            top = Cat(Const(0, kept - plan.word), i.significand)
            # truncates: the top bit of a normal number, which its fraction leaves out
            m.d.comb += o.significand.eq(top >> i.distance)
        else:
            top = reduced(i.significand, kept)
            m.d.comb += o.significand.eq(
                shift_right_sticky(m, top, i.distance, reversed(range(bits)))
            )
        return m

    def _repeated(self, magnitude: Value) -> Value:
        """The magnitude; a few of its places, and whether more follow, where it repeats."""
        plan = self._plan
        if not plan.repeated:
            return magnitude
        times = (plan.significand - 1) // plan.magnitude
        return Cat(magnitude.any(), *[magnitude] * times)


class RoundSignificandLane(wiring.Component):
    """The value, rounded to nearest even; the largest finite one where it is too large."""

    verilog_name = "round_lane"

    def __init__(self, plan: DecoderPlan, i: data.StructLayout) -> None:
        self._plan = plan
        super().__init__({"i": In(i), "value": Out(plan.dtype.width)})

    def elaborate(self, platform: Any) -> Module:
        """Build the increment and the choice of special values."""
        m = Module()
        plan, dtype, i = self._plan, self._plan.dtype, self.i
        precision, significand = plan.precision, i.significand
        kept = significand[len(significand) - precision :]
        below = significand[: len(significand) - precision]
        pattern = Signal(dtype.width - 1)
        if not plan.rounds:
            m.d.comb += pattern.eq(Cat(kept[:-1], i.field))
        else:
            up = below[-1] & (kept[0] | below[:-1].any())
            if plan.rounds_normal:
                m.d.comb += pattern.eq(Cat(kept[:-1], i.field) + up)
            else:  # what is rounded has a field of 0
                rounded = Signal(precision)
                m.d.comb += rounded.eq(kept + up)
                carry = rounded[-1] & ~kept[-1]
                m.d.comb += pattern.eq(Cat(rounded[:-1], i.field[0] | carry, i.field[1:]))
        value: Value = Cat(pattern, i.sign)
        if plan.overflows:
            high = i.high
            if plan.rounds_normal:
                high = high | pattern[dtype.fraction_bits :].all()
            value = Mux(high, Cat(Const(dtype.max_finite, dtype.width - 1), i.sign), value)
        if "infinite" in i.shape().members:
            infinity = Cat(Const(dtype.infinity, dtype.width - 1), i.sign)
            value = Mux(i.infinite, infinity, value)
        if "nan" in i.shape().members:
            value = Mux(i.nan, dtype.quiet_nan, value)
        m.d.comb += self.value.eq(value)
        return m


class LaneStep(Step):
    """A core for each lane; `group` is a port of cores that need what their group has.

    Args:
        plan: the decoder's numbers.
        make: gives a core, from the layout of a lane.
        i: layout of the step's input, with `lanes` and `groups`.
        keeps: whether groups go on.
        levels: depth of the core.
    """

    def __init__(
        self,
        plan: DecoderPlan,
        make: Callable[[DecoderPlan, data.StructLayout], wiring.Component],
        i: data.StructLayout,
        *,
        keeps: bool = False,
        levels: int,
    ) -> None:
        self._plan = plan
        self._make = partial(make, plan, i["lanes"].shape.elem_shape)
        core: Any = self._make()
        self._grouped = "group" in core.signature.members
        self._port = "o" if "o" in core.signature.members else "value"
        if self._port == "value":
            o = values_layout(plan.lanes, plan.dtype)
        else:
            groups = {"groups": i["groups"].shape} if keeps else {}
            lanes = ArrayLayout(core.o.shape(), plan.lanes)
            o = StructLayout({**groups, "lanes": lanes})
        super().__init__(i, o, levels=levels)

    def elaborate(self, platform: Any) -> Module:
        """Instantiate the cores."""
        m = Module()
        given = self.o.values if self._port == "value" else self.o.lanes
        lanes = []
        for number, (i, o) in enumerate(zip(self.i.lanes, given, strict=True)):
            lane = {"i": i, self._port: o}
            if self._grouped:
                lane["group"] = self.i.groups[number * self._plan.finest // self._plan.lanes]
            lanes.append(lane)
        m.submodules.lanes = cores(platform, self._make, lanes)
        if "groups" in self.o.shape().members:
            m.d.comb += self.o.groups.eq(self.i.groups)
        return m


class TimesFactor(LaneStep):
    """`TimesFactorLane` for each lane."""

    verilog_name = "multiply"


class Divide(LaneStep):
    """`DivideLane` for each lane."""


class GroupTables(Step):
    """`TableLane` for each group."""

    verilog_name = "table"

    def __init__(self, plan: DecoderPlan, i: data.StructLayout) -> None:
        self._plan = plan
        o = StructLayout(
            {"groups": ArrayLayout(table_layout(plan), plan.finest), "lanes": i["lanes"].shape}
        )
        super().__init__(i, o, levels=8)

    def elaborate(self, platform: Any) -> Module:
        """Instantiate the cores."""
        m = Module()
        pairs = zip(self.i.groups, self.o.groups, strict=True)
        connections = [{"group": group, "table": table} for group, table in pairs]
        m.submodules.groups = cores(platform, partial(TableLane, self._plan), connections)
        m.d.comb += self.o.lanes.eq(self.i.lanes)
        return m


class Measure(LaneStep):
    """`MeasureLane` for each lane."""


class PlaceSignificands(LaneStep):
    """`PlaceSignificandLane` for each lane."""

    verilog_name = "place"


class RoundSignificands(LaneStep):
    """`RoundSignificandLane` for each lane."""

    verilog_name = "round"


def value_steps(plan: DecoderPlan) -> list[Step]:
    """Steps from `scaled_layout` to `values_layout`, for any format."""
    steps = read_steps(plan)
    if plan.factors:
        steps.append(TimesFactor(plan, TimesFactorLane, steps[-1].o.shape(), keeps=True, levels=24))
    if plan.divided:
        steps.append(Divide(plan, DivideLane, steps[-1].o.shape(), keeps=True, levels=60))
    steps.append(GroupTables(plan, steps[-1].o.shape()))
    steps.append(Measure(plan, MeasureLane, steps[-1].o.shape(), levels=12))
    steps.append(
        PlaceSignificands(
            plan, PlaceSignificandLane, steps[-1].o.shape(), levels=2 * distance_bits(plan) + 1
        )
    )
    rounding = (2 * plan.precision if plan.rounds_normal else 10) if plan.rounds else 3
    return [
        *steps,
        RoundSignificands(plan, RoundSignificandLane, steps[-1].o.shape(), levels=rounding),
    ]
