"""The last steps of an encoder of elements that a scale selects: both are tried, one is kept.

Both elements have one largest magnitude, so the scale and the values over it are the same in both.
Lanes say by how much the second element has less error, to nearest whatever the rounding is; the
sum over a block selects.
"""

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from functools import partial
from typing import Any

from amaranth.hdl import Cat, Module, Mux, Signal, Value
from amaranth.lib import data

from axs6.golden.formats import Selected
from axs6.golden.rounding import Rounding
from axs6.hw.core.layouts import encoded_layout, scale_names, words_layout
from axs6.hw.core.pipeline import Step
from axs6.hw.core.rtlil import add_lanes
from axs6.hw.core.structures import ArrayLayout, StructLayout
from axs6.hw.core.trees import balanced
from axs6.hw.encoder.choice_numbers import MeasuredReals
from axs6.hw.encoder.code_steps import scales_layout
from axs6.hw.encoder.format_lanes import (
    RoundMagnitudeLane,
    ShiftSignificandLane,
    aligned_lane,
    shifted_lane,
)
from axs6.hw.encoder.scaled import Scaled
from axs6.hw.encoder.scaled_lanes import PlaceProductLane
from axs6.hw.encoder.scaled_stages import Fields, Stage
from axs6.hw.encoder.scaled_steps import product_steps
from axs6.hw.encoder.selected_lanes import JudgeLane, MeasureValueLane, term_shape, value_layout
from axs6.hw.encoder.table_lanes import RoundTableLane

PARTS = ("first", "second")
"""Names of the fields with the lanes of both elements."""


@dataclass(frozen=True)
class Selection(MeasuredReals):
    """The numbers of the lanes that judge, to nearest.

    Args:
        parts: where rounding is another, the numbers of the encoders of each element alone.
    """

    parts: tuple[Scaled, ...]

    @property
    def selected(self) -> Selected:
        """The element."""
        assert isinstance(self.element, Selected)
        return self.element

    @property
    def judged(self) -> tuple[str, ...]:
        """The elements whose codes come from the lanes that judge."""
        return () if self.parts else PARTS

    @property
    def named_parts(self) -> dict[str, Scaled]:
        """The parts, if there are any, by the names of their fields."""
        return dict(zip(PARTS, self.parts, strict=True)) if self.parts else {}

    def fields(self, lane: Callable[[Scaled], Any]) -> Fields:
        """Fields between steps: scales, `invalid` and, in lanes of parts, what a function gives."""
        lanes = {k: ArrayLayout(lane(x), self.lanes) for k, x in self.named_parts.items()}
        return {**scales_layout(self).members, "invalid": 1, **lanes}


class PartStage(Stage):
    """A step of lanes that judge, and of lanes of each element where there are such."""

    _scheme: Selection

    def add_parts(
        self, m: Module, platform: Any, make: Callable[[Scaled], Any], ports: tuple[str, str]
    ) -> Sequence[str]:
        """Add a lane of each part for each value; return the fields that are driven."""
        parts = self._scheme.named_parts
        for name, part in parts.items():
            i = self.i[name] if name in self.i.shape().members else self.i.lanes
            m.submodules[name] = sub = Module()
            add_lanes(sub, platform, [partial(make, part)], connected(ports, i, self.o[name]))
        return tuple(parts)


def connected(ports: tuple[str, str], i: data.View, o: data.View) -> list[dict[str, Value]]:
    """What the two ports of lanes are connected to."""
    pairs = zip(i, o, strict=True)
    return [dict(zip(ports, (x.as_value(), y.as_value()), strict=True)) for x, y in pairs]


class MeasureValues(PartStage):
    """`MeasureValueLane` for each product, and `PlaceProductLane` for parts."""

    verilog_name = "measure"

    def __init__(self, scheme: Selection, i: data.StructLayout) -> None:
        values = ArrayLayout(value_layout(scheme.selected), scheme.lanes)
        o = {**scheme.fields(aligned_lane), "values": values}
        super().__init__(scheme, i.members, o, levels=70)

    def build(self, m: Module, platform: Any) -> Sequence[str]:
        """Instantiate the lanes."""
        lanes = connected(("product", "value"), self.i.lanes, self.o.values)
        add_lanes(m, platform, [partial(MeasureValueLane, self._scheme)], lanes)
        parts = self.add_parts(m, platform, PlaceProductLane, ("product", "aligned"))
        return ["values", *parts]


class Judge(PartStage):
    """`JudgeLane` for each value, and `ShiftSignificandLane` for parts."""

    def __init__(self, scheme: Selection, i: data.StructLayout) -> None:
        element = scheme.selected
        codes = dict.fromkeys(scheme.judged, ArrayLayout(element.width, scheme.lanes))
        terms = {"terms": ArrayLayout(term_shape(element), scheme.lanes)}
        o = {**scheme.fields(shifted_lane), **codes, **terms}
        super().__init__(scheme, i.members, o, levels=60)

    def build(self, m: Module, platform: Any) -> Sequence[str]:
        """Instantiate the lanes."""
        scheme = self._scheme
        lanes = [
            {
                "value": value.as_value(),
                "term": self.o.terms[index],
                **{name: self.o[name][index] for name in scheme.judged},
            }
            for index, value in enumerate(self.i.values)
        ]
        make = partial(JudgeLane, scheme.selected, scheme.judged)
        add_lanes(m, platform, [make], lanes)
        parts = self.add_parts(m, platform, ShiftSignificandLane, ("aligned", "shifted"))
        return ["terms", *scheme.judged, *parts]


class SumDifferences(Stage):
    """Whether the second element has less error."""

    verilog_name = "total"

    def __init__(self, scheme: Selection, i: data.StructLayout) -> None:
        o = {name: shape for name, shape in i.members.items() if name != "terms"}
        levels = 8 * (scheme.lanes - 1).bit_length()
        super().__init__(scheme, i.members, {**o, "selects": 1}, levels)

    def build(self, m: Module, platform: Any) -> Sequence[str]:
        """Build the adders."""
        total = balanced(list(self.i.terms), lambda a, b: a + b)
        m.d.comb += self.o.selects.eq(total > 0)
        return ["selects"]


class Keep(Step):
    """The block in the better element, which the highest bit of its scale says.

    Random words, if any, are a field of the input.
    """

    def __init__(self, scheme: Selection, i: data.StructLayout) -> None:
        self._scheme = scheme
        random = scheme.parts[0].random_bits if scheme.parts else 0
        self._words = words_layout(scheme.lanes, random).members if random else {}
        o = encoded_layout(scheme.lanes, fmt=scheme.fmt)
        super().__init__(StructLayout({**i.members, **self._words}), o, levels=22)

    def elaborate(self, platform: Any) -> Module:
        """Build the lanes of parts, if any, and the selection."""
        m = Module()
        scheme, i, o = self._scheme, self.i, self.o.block
        *_, finest = scale_names(scheme.fmt)
        for name in scales_layout(scheme).members:
            m.d.comb += o[name].eq(Cat(i[name][:-1], i.selects) if name == finest else i[name])
        both = [list(i[name]) for name in scheme.judged]
        both += [self._rounded(m, platform, *part) for part in scheme.named_parts.items()]
        m.d.comb += [
            self.o.invalid.eq(i.invalid),
            *(code.eq(Mux(i.selects, b, a)) for code, a, b in zip(o.codes, *both, strict=True)),
        ]
        return m

    def _rounded(self, m: Module, platform: Any, name: str, part: Scaled) -> list[Value]:
        """The codes of a part."""
        codes = Signal(ArrayLayout(part.element.width, part.lanes), name=f"{name}_codes")
        words = [{"random": word} for word in self.i.random] if self._words else [{}] * part.lanes
        lanes = [
            {"shifted": lane.as_value(), **word, "code": code}
            for lane, word, code in zip(self.i[name], words, codes, strict=True)
        ]
        make = RoundTableLane if part.element.listed else RoundMagnitudeLane
        m.submodules[name] = sub = Module()
        add_lanes(sub, platform, [partial(make, part)], lanes)
        return list(codes)


def selected_steps(scheme: Scaled) -> tuple[list[Step], Step]:
    """Steps from `axs6.hw.encoder.scaled_stages.given_layout`, and the one that keeps the better.

    With stochastic rounding the last step takes the random words too.
    """
    given = (scheme.rounding, scheme.random_bits, scheme.lanes)
    parts = [Scaled(fmt, scheme.dtype, *given) for fmt in scheme.fmt.parts]
    if scheme.rounding is Rounding.NEAREST:
        parts = []
    selection = Selection(scheme.fmt, scheme.dtype, Rounding.NEAREST, 0, scheme.lanes, tuple(parts))
    products = product_steps(scheme)
    measure = MeasureValues(selection, products[-1].o.shape())
    judge = Judge(selection, measure.o.shape())
    total = SumDifferences(selection, judge.o.shape())
    return [*products, measure, judge, total], Keep(selection, total.o.shape())
