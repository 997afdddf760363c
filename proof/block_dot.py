"""The block dot product held against the definitions of its formats, for all inputs.

What a code or a scale is worth comes from the exact model, `axs6.golden.check.exact`, which has the
public definitions as tables; nothing comes from the generator but the names and places of fields.
With x the integer of a code in the element's least unit, and f that of a lane's scales (a
significand, an integer, or 2 to the largest shift minus the shift), the unit has to give

- `special`: 1 if a scale is NaN or the sum is by IEEE 754, 2 and 3 if it is +Inf and -Inf, else 0;
- `sum`, with its high bits in `high`: the sum of x_a * x_b * f_a * f_b over all lanes; 0 where
  `special` is not 0;
- `exponent`: the sum of the exponents' codes and the exponent fields of real scales, from 0.

Source: docs/formats.md, "What a format is"; docs/hardware.md, "Dot products of other formats".
"""

from collections.abc import Callable, Iterator, Sequence
from fractions import Fraction
from functools import cached_property

import numpy as np

from axs6.golden.check.exact import formats as exact
from axs6.golden.check.exact.blocks import scale_value
from axs6.golden.check.exact.floats import Special, Value, power
from axs6.golden.check.subjects import definition_of
from axs6.golden.formats import Selected
from axs6.hw.core.layouts import Field, scale_names
from axs6.hw.dot.shape import DotShape
from axs6.hw.units.block_dot import shape_of
from axs6.proof.aig import FALSE, Graph
from axs6.proof.cases import WIDTH_MAX
from axs6.proof.solver import never
from axs6.proof.steps import NotShownError, Proof, Steps, Subject, show_passed
from axs6.proof.sums import Lane, SumOfProducts

SCALE_BITS = 20
"""Bits of a lane's scales, at most, of which all values are tried."""

SIDES = "ab"


def check_shape(shape: DotShape, inputs: Sequence[Field]) -> None:
    """Check that there is a proof of a block dot product.

    Args:
        shape: formats and block. inputs: fields of the payload.

    Raises:
        ValueError: the scales of a lane have too many bits to try all their values, or the sum is
            wider than 96 bits, or scales select elements.
    """
    for fmt in shape.formats:
        if isinstance(fmt.element, Selected):
            raise ValueError(
                f"a proof is of lanes with one element, and scales select one of two in {fmt}"
            )
    if shape.width > WIDTH_MAX:
        raise ValueError(
            f"a proof is of sums of at most {WIDTH_MAX} bits, and this has {shape.width}"
        )
    widths = {field.name: field.width for field in inputs}
    scales = scales_of(shape)
    bits = sum(widths[name] for level, name, _ in scales if not isinstance(level, exact.Exponent))
    if bits > SCALE_BITS:
        raise ValueError(
            f"a proof tries all scales of a lane, of at most {SCALE_BITS} bits, and those of "
            f"{' and '.join(map(str, shape.formats))} have {bits}"
        )


def scales_of(shape: DotShape) -> Iterator[tuple[exact.Level, str, int]]:
    """Scales of blocks: level, name of the field, and lanes of a group."""
    for side, fmt in zip(SIDES, shape.formats, strict=True):
        levels = [x for x in definition_of(fmt).levels[::-1] if isinstance(x.group, int)]
        for name, level in zip(scale_names(fmt), levels, strict=True):
            assert isinstance(level.group, int)
            yield level, f"{side}.{name}", min(level.group, shape.block)


class BlockDotProof:
    """Holds the graph of a block dot product without registers against the definitions.

    Args:
        graph: of the design.
        shape: formats and block.
        inputs, outputs: fields of the payloads.
        seconds: limit of the solver for a question.

    Raises:
        ValueError: as of `check_shape`.
    """

    def __init__(
        self,
        graph: Graph,
        shape: DotShape,
        inputs: Sequence[Field],
        outputs: Sequence[Field],
        seconds: float,
    ) -> None:
        check_shape(shape, inputs)
        self._graph, self._shape, self._seconds = graph, shape, seconds
        self._definitions = [definition_of(fmt) for fmt in shape.formats]
        self._inputs = {field.name: field for field in inputs}
        self._outputs = {field.name: field for field in outputs}
        self._signs = {
            self._given(name)[-1]: FALSE
            for level, name, _ in scales_of(self._shape)
            if isinstance(level, exact.Real) and level.signed
        }

    # What the fields are worth.

    def _given(self, name: str, index: int = 0) -> list[int]:
        """Bits of a number of an input field."""
        field = self._inputs[name]
        return self._graph.bus("i_payload", field.offset + index * field.width, field.width)

    def _result(self, name: str) -> list[int]:
        """Bits of an output field, with real scales taken to be positive."""
        if name not in self._outputs:
            return []
        field = self._outputs[name]
        bits = self._graph.bus("o_payload", field.offset, field.width)
        return self._graph.cofactor(bits, self._signs)

    def _groups(self) -> Iterator[tuple[exact.Level, list[int]]]:
        """Levels with the bits of the code of each group."""
        for level, name, group in scales_of(self._shape):
            for index in range(self._shape.block // group):
                yield level, self._given(name, index)

    def _lane_scales(self, lane: int) -> list[int]:
        """Bits of the scales that multiply a lane's product."""
        return [
            bit
            for level, name, group in scales_of(self._shape)
            if not isinstance(level, exact.Exponent)
            for bit in self._given(name, lane // group)
        ]

    # What the outputs have to be.

    @cached_property
    def _special(self) -> list[int]:
        """Bits of `special`."""
        graph = self._graph
        nan, plus, minus = [], [], []
        for level, bits in self._groups():
            table = [scale_value(code, level) is Special.NAN for code in range(1 << len(bits))]
            nan += graph.cofactor([graph.look_up(bits, table)], self._signs)
        for lane in range(self._shape.block):
            a, b = (self._kinds_of(side, lane) for side in (0, 1))
            nan += [a[Special.NAN], b[Special.NAN]]
            nan += [graph.both(x[Special.INFINITY], y[Fraction(0)]) for x, y in ((a, b), (b, a))]
            infinite = graph.any([a[Special.INFINITY], b[Special.INFINITY]])
            sign = graph.unlike(a[Special.NEGATIVE_ZERO], b[Special.NEGATIVE_ZERO])
            plus.append(graph.both(infinite, sign ^ 1))
            minus.append(graph.both(infinite, sign))
        either = [graph.any(plus), graph.any(minus)]
        is_nan = graph.any([*nan, graph.both(*either)])
        infinite = graph.both(graph.any(either), is_nan ^ 1)
        return [graph.any([is_nan, graph.both(infinite, either[1])]), infinite]

    def _kinds_of(self, side: int, lane: int) -> dict[Value, int]:
        """Whether a code is NaN, an infinity of any sign, zero of any sign, or has a minus sign."""
        values = self._definitions[side].element.values
        bits = self._given(f"{SIDES[side]}.codes", lane)
        infinities = Special.INFINITY, Special.NEGATIVE_INFINITY
        zeros = Fraction(0), Special.NEGATIVE_ZERO
        kinds: dict[Value, Callable[[Value], bool]] = {
            Special.NAN: lambda value: value is Special.NAN,
            Special.INFINITY: lambda value: value in infinities,
            Fraction(0): lambda value: value in zeros,
            Special.NEGATIVE_ZERO: lambda value: (
                value is Special.NEGATIVE_INFINITY or (isinstance(value, Fraction) and value < 0)
            ),
        }
        return {
            kind: self._graph.look_up(bits, [holds(value) for value in values])
            for kind, holds in kinds.items()
        }

    @cached_property
    def _exponent(self) -> list[int]:
        """Bits of `exponent`, as many as it has."""
        graph, width = self._graph, self._outputs["exponent"].width
        total = [FALSE] * width
        for level, name, _ in scales_of(self._shape):
            bits = self._given(name)
            if isinstance(level, exact.Real):
                end = level.fraction_bits + level.exponent_bits
                fields = bits[level.fraction_bits : end]
                codes = range(0, 1 << end, 1 << level.fraction_bits)
                bits = [
                    graph.look_up(fields, [bool(_exponent(x, level) >> k & 1) for x in codes])
                    for k in range(len(fields))
                ]
            elif not isinstance(level, exact.Exponent):
                continue
            total = graph.sum(total, bits, width)
        return total

    def _lane(self, lane: int, table: "_Products") -> Lane:
        """What a lane adds to the sum."""
        codes = [bit for side in SIDES for bit in self._given(f"{side}.codes", lane)]
        scales = self._lane_scales(lane)
        factors, valid = np.ones(1 << len(scales), object), np.ones(1 << len(scales), np.bool_)
        codes_of = np.arange(1 << len(scales))
        place = 0
        for level, name, group in scales_of(self._shape):
            if not isinstance(level, exact.Exponent):
                bits = self._given(name, lane // group)
                worth = [_factor(code, level) for code in range(1 << len(bits))]
                which = codes_of >> place & ((1 << len(bits)) - 1)
                factors = factors * np.array([x or 0 for x in worth], object)[which]
                valid &= np.array([x is not None for x in worth])[which]
                place += len(bits)
        return Lane(codes, table.products, table.numbers, scales, factors, valid)

    # The steps.

    def steps(self) -> Steps:
        """What is to be shown, by name, in the order in which it must be."""
        steps = {
            "a unit of the sum is worth 2^offset / divisor": lambda: show_unit(self._shape),
            "ready and valid pass through": lambda: show_passed(self._graph),
        }
        if "exponent" in self._outputs or self._largest_exponent:
            steps["the exponent is the sum of the operands' exponents"] = self._show_exponent
        if "special" in self._outputs or self._special != [FALSE, FALSE]:
            steps["special says whether the sum is NaN or infinite"] = self._show_special
        return {**steps, "the sum is that of all products": self._show_sum}

    @cached_property
    def _largest_exponent(self) -> int:
        """The largest sum of exponents of scales that are numbers."""
        return sum(
            max(
                _exponent(code, level)
                for code in range(1 << level.bits)
                if isinstance(scale_value(code, level), Fraction)
            )
            for level, _, _ in scales_of(self._shape)
        )

    def _show_exponent(self) -> None:
        width = self._outputs["exponent"].width if "exponent" in self._outputs else 0
        if self._largest_exponent >> width:
            raise NotShownError(f"exponents of up to {self._largest_exponent} do not fit")
        self._show_equal("exponent", self._exponent)

    def _show_special(self) -> None:
        if "special" not in self._outputs:
            raise NotShownError("special is missing, and some sums are no numbers")
        self._show_equal("special", self._special)

    def _show_equal(self, name: str, wanted: Sequence[int]) -> None:
        graph = self._graph
        bits = [graph.unlike(x, y) for x, y in zip(self._result(name), wanted, strict=True)]
        if not never(graph, graph.any(bits), self._seconds):
            raise NotShownError(f"{name} is not shown to be what the definition says")

    def _show_sum(self) -> None:
        """The sum, under the condition that nothing is special; else 0."""
        bits = self._result("sum") + self._result("high")
        if "special" in self._outputs:
            bits = self._ungated(bits)
        table = _Products(self._definitions)
        lanes = [self._lane(lane, table) for lane in range(self._shape.block)]
        sizes = [
            group
            for level, _, group in scales_of(self._shape)
            if not isinstance(level, exact.Exponent)
        ]
        size = min(sizes, default=self._shape.block)
        groups = [((1 << size) - 1) << k for k in range(0, self._shape.block, size)]
        bound = sum(
            int(np.abs(lane.products).max()) * max(lane.factors[lane.valid]) for lane in lanes
        )
        if bound >= 1 << len(bits) - 1:
            raise NotShownError(f"sums of up to {bound} need more than {len(bits)} bits")
        SumOfProducts(self._graph, lanes, groups if len(groups) > 1 else ()).show(bits)

    def _ungated(self, bits: Sequence[int]) -> list[int]:
        """Bits of the sum without the conditions that all of them share.

        These are shown to say that nothing is special. Where they hold, the bits are those
        returned; where they do not, all of them are 0.
        """
        graph = self._graph
        conditions = [_conditions(graph, bit) for bit in bits if bit != FALSE]
        shared = set.intersection(*conditions) if conditions else set()
        clean = graph.any(self._result("special")) ^ 1
        if not never(graph, graph.unlike(graph.all(shared), clean), self._seconds):
            raise NotShownError("the sum is not shown to be 0 exactly where special is not 0")
        return graph.cofactor(bits, {each & ~1: each & 1 ^ 1 for each in shared})


def show_unit(shape: DotShape) -> None:
    """Show that a unit of the sum is worth what the manifest's offset and divisor say.

    Raises:
        NotShownError: by the definitions of the formats it is not.
    """
    worth = Fraction(1)
    for definition in map(definition_of, shape.formats):
        worth *= definition.element.unit
        for level in definition.levels:
            if isinstance(level.group, str):
                continue  # the scale of a channel or a tensor multiplies the total
            if isinstance(level, exact.Exponent):
                worth *= _number(scale_value(0, level))
            elif isinstance(level, exact.Shift):
                worth *= power(1 - (1 << level.bits))
            elif isinstance(level, exact.Real):
                worth *= _number(scale_value(1, level)) - _number(scale_value(0, level))
    if worth * shape.divisor != power(shape.offset + (shape.divisor - 1).bit_length()):
        raise NotShownError(f"a unit of the sum is worth {worth}")


def _number(value: Value) -> Fraction:
    assert isinstance(value, Fraction)
    return value


def _factor(code: int, level: exact.Level) -> int | None:
    """The integer by which a scale multiplies; None of a code that no scale has."""
    if isinstance(level, exact.Shift):
        return 1 << (1 << level.bits) - 1 - code
    if isinstance(level, exact.Real):
        value = scale_value(code, level)
        if not isinstance(value, Fraction) or value < 0:
            return None
        fraction = code & ((1 << level.fraction_bits) - 1)
        normal = code >> level.fraction_bits > 0 or level.always_normal
        return fraction + (normal << level.fraction_bits)
    return code


def _exponent(code: int, level: exact.Level) -> int:
    """What a scale adds to the exponent: its code, or the exponent field of a real one, from 0."""
    if isinstance(level, exact.Exponent):
        return code
    if isinstance(level, exact.Real):
        field = code >> level.fraction_bits & (1 << level.exponent_bits) - 1
        return field if level.always_normal else max(field, 1) - 1
    return 0


class _Products:
    """Products of all pairs of codes in units, and which are of two numbers."""

    def __init__(self, definitions: Sequence[exact.Definition]) -> None:
        numbers, finite = [], []
        for definition in definitions:
            unit = definition.element.unit
            values = [Fraction(0) if x is Special.NEGATIVE_ZERO else x
                      for x in definition.element.values]  # fmt: skip
            finite.append(np.array([isinstance(x, Fraction) for x in values]))
            units = [x / unit if isinstance(x, Fraction) else Fraction(0) for x in values]
            assert all(x.denominator == 1 for x in units)
            numbers.append(np.array([int(x) for x in units], object))
        self.products = (numbers[0][None, :] * numbers[1][:, None]).ravel()
        self.numbers = (finite[0][None, :] & finite[1][:, None]).ravel()


def _conditions(graph: Graph, literal: int) -> set[int]:
    """Literals of which a literal is the conjunction, at every depth."""
    found: set[int] = set()
    left = [literal]
    while left:
        each = left.pop()
        pair = None if each & 1 else graph.operands(each >> 1)
        found.add(each)
        if pair is not None:
            left += pair
    return found


def block_dot_proof(of: Subject) -> Proof:
    """The proof about a design that is to be a block dot product; see `Specification`."""
    return BlockDotProof(of.graph, shape_of(of.settings), of.inputs, of.outputs, of.seconds)
