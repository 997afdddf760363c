"""Lanes of encoders of elements that a scale selects: a value in both, and which has less error.

Between two neighbouring bounds of both elements each has one code. So comparisons with all bounds
give both codes, and the lane's part of the difference of the merits, as `axs6.golden.choice` has
them: with integers p and q of both codes, and w for a magnitude, in units of the selection, it is
(q - p) * (2 w - p - q).
"""

from collections.abc import Iterable, Sequence
from itertools import chain

from amaranth.hdl import Cat, Const, Module, Mux, Shape, Signal, Value, signed
from amaranth.lib import wiring
from amaranth.lib.wiring import In, Out

from axs6.golden.formats import Selected
from axs6.golden.formats.block_format import MERIT_FRACTION
from axs6.hw.core.structures import StructLayout
from axs6.hw.core.trees import chosen
from axs6.hw.encoder.choice_lanes import fixed_bits, fixed_layout, moved
from axs6.hw.encoder.choice_numbers import MeasuredReals
from axs6.hw.encoder.format_lanes import passing_lane
from axs6.hw.encoder.scaled_lanes import product_lane, round_product
from axs6.hw.encoder.selected_intervals import Pair, intervals


def holding(numbers: Iterable[int]) -> Shape:
    """The shape that holds some numbers."""
    found = [*numbers]
    return Shape.cast(range(min(found), max(found) + 1))


def term_shape(element: Selected) -> Shape:
    """The shape of a lane's part of the difference of merits."""
    _, plus, minus = intervals(element)
    return holding(x.change * distance for x in (*plus, *minus) for distance in x.distances)


def value_layout(element: Selected) -> StructLayout:
    """A value over its scale: its magnitude in fixed point, and its sign."""
    return StructLayout({**fixed_layout(fixed_bits(element)).members, "sign": 1})


class MeasureValueLane(wiring.Component):
    """A product rounded to nearest even as in FP32, in fixed point."""

    verilog_name = "measure_lane"

    def __init__(self, scheme: MeasuredReals) -> None:
        self._scheme = scheme
        assert isinstance(scheme.element, Selected)
        value = value_layout(scheme.element)
        super().__init__({"product": In(product_lane(scheme)), "value": Out(value)})

    def elaborate(self, platform: object) -> Module:
        """Build the rounding and the shifter."""
        m = Module()
        scheme = self._scheme
        passed, distance = round_product(m, scheme, self.product)
        sticky = passed.sticky if "sticky" in passing_lane(scheme) else Const(0, 1)
        right = Signal(signed(len(self.product.place) + 3))
        m.d.comb += [right.eq(distance + scheme.right), self.value.sign.eq(passed.sign)]
        moved(m, passed.kept, sticky, right, self.product.some, self.value)
        return m


class JudgeLane(wiring.Component):
    """A value's part of the difference of merits, and its codes in both elements, to nearest.

    Args:
        element: the selection.
        codes: names of the ports for the codes, none where they are not needed.
    """

    def __init__(self, element: Selected, codes: Sequence[str]) -> None:
        self._element = element
        self._codes = codes
        ports = {"value": In(value_layout(element)), "term": Out(term_shape(element))}
        super().__init__({**ports, **{name: Out(element.width) for name in codes}})

    def elaborate(self, platform: object) -> Module:
        """Build the comparisons, the selections and the product."""
        m = Module()
        x = self.value
        bounds, plus, minus = intervals(self._element)
        fixed = Signal(len(x.fixed))
        m.d.comb += fixed.eq(x.fixed | x.over.replicate(len(fixed)))
        half = MERIT_FRACTION - 1
        count = Cat(fixed[:half].any() | x.sticky, fixed[half:])
        reached = Signal(len(bounds))
        m.d.comb += reached.eq(Cat(count >= bound for bound in bounds))
        uses = Cat(Const(1, 1), reached) & ~Cat(reached, Const(0, 1))

        def found(pairs: Sequence[Pair]) -> Value:
            """The number of the value's interval and sign."""
            shape = holding(chain.from_iterable(pairs))
            mask = (1 << shape.width) - 1
            numbers = [
                Mux(x.sign, *(Const(v & mask, shape.width) for v in pair[::-1])) for pair in pairs
            ]
            value = chosen(list(uses), numbers)
            return value.as_signed() if shape.signed else value

        both = list(zip(plus, minus, strict=True))
        for k, name in enumerate(self._codes):
            code = getattr(self, name)
            m.d.comb += code.eq(found([(a.codes[k], b.codes[k]) for a, b in both]))
        change = found([(a.change, b.change) for a, b in both])
        middle = found([(a.middle, b.middle) for a, b in both])
        ends = [end for each in (*plus, *minus) for end in each.distances]
        distance = Signal(holding(ends))
        m.d.comb += [
            distance.eq((fixed << 1) - (middle << MERIT_FRACTION)),
            self.term.eq(change * distance),
        ]
        return m
