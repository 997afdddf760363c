"""Steps of an encoder of any format whose scales are an exponent and shifts, in words."""

from functools import partial
from typing import Any

from amaranth.hdl import Const, Module, Mux, Shape, Signal, Value
from amaranth.lib import data

from axs6.hw.core.layouts import scale_names, values_layout
from axs6.hw.core.pipeline import Step
from axs6.hw.core.rtlil import add_lanes
from axs6.hw.core.structures import ArrayLayout, StructLayout
from axs6.hw.core.trees import any_of, least_in_groups
from axs6.hw.encoder.code_steps import LaneSteps, RoundMagnitudes, ShiftSignificands, scales_layout
from axs6.hw.encoder.format_lanes import (
    AlignLane,
    UnpackSignificandLane,
    aligned_lane,
    passing_lane,
    raising_bits,
    sides,
)
from axs6.hw.encoder.largest import distances_layout, search_layout, search_steps
from axs6.hw.encoder.scheme import Scheme


def exponent_changes(scheme: Scheme) -> range:
    """Possible differences between the code of an exponent and its block's place."""
    most = int(raising_bits(scheme) > 0)
    if scheme.shifts:
        most = max(most, scheme.first - scheme.lowest)
    return range(min(0, scheme.last - scheme.highest), most + 1)


def change_shape(scheme: Scheme) -> Shape:
    """Shape of the sum of a difference and a lane's shifts."""
    changes = exponent_changes(scheme)
    return Shape.cast(range(changes.start - scheme.most_shift, changes.stop))


def rest_layout(scheme: Scheme) -> data.StructLayout:
    """Data that bypasses the search; `lost` marks a value that can only make the scale NaN."""
    raising = {"raises": raising_bits(scheme)} if raising_bits(scheme) else {}
    lane = StructLayout({"passed": StructLayout(passing_lane(scheme)), **raising})
    lost = {"lost": 1} if scheme.propagates else {}
    return StructLayout({"lanes": ArrayLayout(lane, scheme.fmt.block), "invalid": 1, **lost})


def searched(scheme: Scheme) -> int:
    """Places among which the largest is looked for."""
    return scheme.fmt.block + (scheme.least_place is not None)


class UnpackSignificands(Step):
    """`UnpackSignificandLane` for each value, and the least place that a block has."""

    verilog_name = "unpack"

    def __init__(self, scheme: Scheme) -> None:
        self._scheme = scheme
        width, lanes = scheme.place_bits, searched(scheme)
        o = search_layout(lanes, width, width, rest_layout(scheme))
        constant = (lanes - scheme.fmt.block) * (width + 1)
        levels = 8 + 5 * scheme.depth.bit_length()
        i = values_layout(scheme.fmt.block, scheme.dtype)
        super().__init__(i, o, levels=levels, held=o.size - constant)

    def elaborate(self, platform: Any) -> Module:
        """Instantiate the lanes."""
        m = Module()
        scheme, block = self._scheme, self._scheme.fmt.block
        rest = self.o.rest
        special, lost = (Signal(ArrayLayout(1, block), name=name) for name in ("special", "lost"))
        lanes = []
        for index, value in enumerate(self.i.values):
            lane, o = rest.lanes[index], self.o.lanes[index]
            raising = {"raises": lane.raises} if raising_bits(scheme) else {}
            lanes.append(
                {
                    "value": value,
                    "place": o.field,
                    "counts": o.equal,
                    "passed": lane.passed.as_value(),
                    "special": special[index],
                    "lost": lost[index],
                    **raising,
                }
            )
        add_lanes(m, platform, [partial(UnpackSignificandLane, scheme)], lanes)
        m.d.comb += rest.invalid.eq(any_of(special))
        if scheme.propagates:
            m.d.comb += rest.lost.eq(any_of(lost))
        if scheme.least_place is not None:
            least = self.o.lanes[block]
            m.d.comb += [least.field.eq(scheme.raw(scheme.least_place)), least.equal.eq(1)]
        return m


class ShareScales(Step):
    """The scales of a block, and what each lane's is more than its block's place asks for.

    Where a value that is not finite has no other code, the exponent is NaN and all codes are 0.
    """

    verilog_name = "share"

    def __init__(self, scheme: Scheme) -> None:
        self._scheme = scheme
        bits = scheme.distance_bits
        passed = StructLayout(passing_lane(scheme))
        lane = StructLayout({"distance": bits, "close": 1, "passed": passed})
        finest = int(scheme.fmt.levels[0].group)
        change, block = change_shape(scheme), scheme.fmt.block
        changing = {"change": ArrayLayout(change, block // finest)} if change.width else {}
        lanes = {"lanes": ArrayLayout(lane, block), "invalid": 1}
        o = StructLayout({**scales_layout(scheme).members, **changing, **lanes})
        i = distances_layout(searched(scheme), scheme.place_bits, rest_layout(scheme), bits)
        super().__init__(i, o, levels=20 + 12 * len(scheme.shifts))

    def elaborate(self, platform: Any) -> Module:
        """Build the codes of the scales."""
        m = Module()
        scheme = self._scheme
        name, *shift_names = scale_names(scheme.fmt)
        change, code = self._exponent(m)
        lost = self.i.rest.lost if scheme.propagates else Const(0, 1)
        nan = scheme.scale.nan_code
        m.d.comb += [
            self.o[name].eq(code if nan is None else Mux(lost, nan, code)),
            self.o.invalid.eq(self.i.rest.invalid),
        ]
        changes = [change]
        for shift_name, shifts in zip(shift_names, self._shifts(m), strict=True):
            field = self.o[shift_name]
            groups = list(field) if len(shifts) > 1 else [field]
            m.d.comb += [group.eq(shift) for group, shift in zip(groups, shifts, strict=True)]
            each = len(shifts) // len(changes)
            changes = [changes[k // each] - shift for k, shift in enumerate(shifts)]
        if change_shape(scheme).width:
            m.d.comb += [o.eq(each) for o, each in zip(self.o.change, changes, strict=True)]
        for lane, rest, o in zip(self.i.lanes, self.i.rest.lanes, self.o.lanes, strict=False):
            m.d.comb += [
                o.distance.eq(lane.distance),
                o.close.eq(lane.close & ~lost),
                o.passed.eq(rest.passed),
                *(o.passed[name].eq(rest.passed[name] & ~lost) for name in sides(scheme)),
            ]
        return m

    def _exponent(self, m: Module) -> tuple[Value, Value]:
        """The increment by the rule and the clamps, and the exponent's code."""
        scheme, largest = self._scheme, self.i.largest
        least = min(0, scheme.lowest - scheme.first)
        place = Signal(Shape.cast(range(least, max(0, scheme.highest - scheme.first) + 1)))
        m.d.comb += place.eq(largest - scheme.raw(scheme.first))
        change: Value = Const(0, 1)
        if len(exponent_changes(scheme)) > 1:
            change = Signal(Shape.cast(exponent_changes(scheme)), name="more")
            m.d.comb += change.eq(self._raised(m))
        most = scheme.scale.largest_code
        if scheme.caps:
            with m.If(place >= most):
                m.d.comb += change.eq(most - place)
        if scheme.shifts and scheme.first > scheme.lowest:
            with m.If(place < 0):
                m.d.comb += change.eq(-place)
        code = Signal(scheme.scale.bits, name="code")
        m.d.comb += code.eq(place + change)
        if not scheme.counts_zeros:
            with m.If(~largest.any()):
                m.d.comb += code.eq(0)
        return change, code

    def _raised(self, m: Module) -> Value:
        """Whether a largest value adds 1."""
        scheme = self._scheme
        if not raising_bits(scheme):
            return Const(0, 1)
        lanes = zip(self.i.lanes, self.i.rest.lanes, strict=False)
        found = Signal(raising_bits(scheme), name="raised")
        m.d.comb += found.eq(
            any_of(
                [
                    rest.raises & (lane.close & (lane.distance == 0)).replicate(len(found))
                    for lane, rest in lanes
                ]
            )
        )
        if len(found) == 1:
            return found
        return Mux(self.i.largest == scheme.raw(scheme.first), found[1], found[0])

    def _shifts(self, m: Module) -> list[list[Value]]:
        """The shifts of each level, coarse to fine: distances of the places of groups."""
        levels = self._scheme.shifts
        lanes = list(self.i.lanes)[: self._scheme.fmt.block]
        if len(levels) == 1:
            limit = levels[0].scale.largest_code
        else:
            limit = (1 << len(lanes[0].distance)) - 1
        groups = [int(level.group) for level in levels]
        nearest = least_in_groups(m, [_held(lane, limit) for lane in lanes], groups)
        if len(levels) == 1:
            return nearest
        found: list[list[Value]] = []
        above: list[Value] = [Const(0, 1)]
        for depth, (level, group) in enumerate(zip(levels, groups, strict=True)):
            most, each = level.scale.largest_code, len(nearest[depth]) // len(above)
            shifts: list[Value] = []
            for k, near in enumerate(nearest[depth]):
                some = any_of([lane.close for lane in lanes[k * group : (k + 1) * group]])
                apart = near - above[k // each]
                shift = Signal(level.scale.bits, name=f"shift{depth}_{k}")
                m.d.comb += shift.eq(Mux(some & (apart < most), apart, most))
                shifts.append(shift)
            found.append(shifts)
            above = nearest[depth]
        return found


def _held(lane: Any, most: int) -> Value:
    """A lane's distance, at most `most`, which is also that of a lane that is not close."""
    bits, below = most.bit_length(), lane.close
    if most < (1 << len(lane.distance)) - 1:
        below &= lane.distance < most
    return Mux(below, lane.distance, most)[:bits]


class Align(LaneSteps[Scheme]):
    """`AlignLane` for each lane."""

    def __init__(self, scheme: Scheme, i: data.StructLayout) -> None:
        super().__init__(scheme, i, aligned_lane(scheme), levels=12)

    def elaborate(self, platform: Any) -> Module:
        """Instantiate the lanes."""
        m = Module()
        self.pass_scales(m)
        scheme = self._scheme
        shape = change_shape(scheme)
        each = int(scheme.fmt.levels[0].group)
        lanes = []
        for index, (i, o) in enumerate(zip(self.i.lanes, self.o.lanes, strict=True)):
            change = {"change": self.i.change[index // each]} if shape.width else {}
            lanes.append(
                {
                    "distance": i.distance,
                    "close": i.close,
                    **change,
                    "passed": i.passed.as_value(),
                    "aligned": o.as_value(),
                }
            )
        add_lanes(m, platform, [partial(AlignLane, scheme, shape)], lanes)
        return m


def format_steps(scheme: Scheme) -> tuple[list[Step], Step]:
    """Steps from `values_layout`, and the one that rounds, to `encoded_layout`.

    With stochastic rounding the last step takes the random words too.
    """
    lanes = searched(scheme)
    bits = scheme.distance_bits
    search = search_steps(lanes, scheme.place_bits, rest_layout(scheme), bits)
    if scheme.least_place is not None:  # one lane's place is known, and nobody asks its distance
        for step in search:
            lane = step.o.shape()["lanes"].shape.elem_shape
            step.held -= lane["field"].width if "field" in lane.members else lane.size
    share = ShareScales(scheme)
    align = Align(scheme, share.o.shape())
    shift = ShiftSignificands(scheme, align.o.shape())
    return [UnpackSignificands(scheme), *search, share, align, shift], RoundMagnitudes(
        scheme, shift.o.shape()
    )
