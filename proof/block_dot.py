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

from collections.abc import Callable, Container, Iterator, Mapping, Sequence
from fractions import Fraction
from functools import cached_property
from itertools import product

import numpy as np

from axs6.golden.check.exact import formats as exact
from axs6.golden.check.exact.blocks import scale_value
from axs6.golden.check.exact.floats import Special, Value
from axs6.golden.check.subjects import definition_of
from axs6.hw.core.layouts import Field
from axs6.hw.dot.shape import DotShape
from axs6.proof.aig import FALSE, TRUE, Graph
from axs6.proof.nested_sums import NestedSums, WideScaling
from axs6.proof.scales import (
    SIDES,
    check_shape,
    is_wide,
    largest_field,
    largest_integer,
    scale_field,
    scale_integer,
    scales_by_size,
    scales_of,
    selects,
    show_unit,
)
from axs6.proof.solver import never
from axs6.proof.steps import NotShownError, Proof, Steps, Subject, show_passed
from axs6.proof.sums import Lane, Scaling


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
        check_shape(shape)
        self._graph, self._shape, self._seconds = graph, shape, seconds
        self._definitions = [definition_of(fmt) for fmt in shape.formats]
        self._inputs = {field.name: field for field in inputs}
        self._outputs = {field.name: field for field in outputs}
        self._signs = {
            self._given(name, index)[-1]: FALSE
            for level, name, group in scales_of(self._shape)
            if isinstance(level, exact.Real) and level.signed and not level.selects
            for index in range(shape.block // group)
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

    @cached_property
    def _selectors(self) -> dict[tuple[int, int], int]:
        """The literal that selects the second element, by side and lane."""
        return {
            (SIDES.index(name[0]), lane): self._given(name, lane // group)[-1]
            for level, name, group in scales_of(self._shape)
            if selects(level)
            for lane in range(self._shape.block)
        }

    @cached_property
    def _sizes(self) -> list[int]:
        """Sizes of the groups whose scales multiply sums."""
        return sorted(scales_by_size(self._shape))

    # What the outputs have to be.

    @cached_property
    def _special(self) -> list[int]:
        """Bits of `special`."""
        graph = self._graph
        nan, plus, minus = [], [], []
        for level, bits in self._groups():
            nan += graph.cofactor([self._nan(level, bits)], self._signs)
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

    def _nan(self, level: exact.Level, bits: Sequence[int]) -> int:
        """Whether a scale is NaN."""
        if isinstance(level, exact.Real) and level.specials == "ieee":
            fraction, special = self._parts(level, bits)
            return self._graph.both(special, self._graph.any(fraction))
        table = [scale_value(code, level) is Special.NAN for code in range(1 << len(bits))]
        return self._graph.look_up(bits, table)

    @cached_property
    def _codes(self) -> int:
        """Whether scales by IEEE 754 are codes that scales have: no infinity, and one NaN."""
        graph, found = self._graph, list[int]()
        for level, bits in self._groups():
            if isinstance(level, exact.Real) and level.specials == "ieee":
                (*low, high), special = self._parts(level, bits)
                quiet = graph.both(high, graph.any(low) ^ 1)
                found.append(graph.both(special, quiet ^ 1) ^ 1)
        return graph.all(found)

    def _parts(self, level: exact.Real, bits: Sequence[int]) -> tuple[Sequence[int], int]:
        """The fraction of a real scale, and whether its exponent field has only ones."""
        end = level.fraction_bits + level.exponent_bits
        return bits[: level.fraction_bits], self._graph.all(bits[level.fraction_bits : end])

    def _kinds_of(self, side: int, lane: int) -> dict[Value, int]:
        """Whether a code is NaN, an infinity of any sign, zero of any sign, or has a minus sign."""
        definition = self._definitions[side]
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
        elements = [x for x in (definition.element, definition.second) if x]
        found = {}
        for kind, holds in kinds.items():
            each = [self._graph.look_up(bits, [holds(x) for x in e.values]) for e in elements]
            selector = self._selectors.get((side, lane), FALSE)
            found[kind] = self._graph.choose(selector, each[-1], each[0])
        return found

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
                    graph.look_up(fields, [bool(scale_field(x, level) >> k & 1) for x in codes])
                    for k in range(len(fields))
                ]
            elif not isinstance(level, exact.Exponent):
                continue
            total = graph.sum(total, bits, width)
        return total

    def _lane(self, lane: int, chosen: Mapping[int, int]) -> Lane:
        """What a lane adds to the sum, under values of the bits that select elements."""
        codes = [bit for side in SIDES for bit in self._given(f"{side}.codes", lane)]
        selectors = (self._selectors.get((side, lane), FALSE) for side in (0, 1))
        table = self._tables[tuple(bool(chosen.get(each)) for each in selectors)]
        return Lane(codes, table.products, table.numbers, self._scaling(lane, ()))

    @cached_property
    def _tables(self) -> dict[tuple[bool, ...], "_Products"]:
        """Products of all codes, by which operands have their second element."""
        both = product(*([False, True] if x.second else [False] for x in self._definitions))
        return {second: _Products(self._definitions, second) for second in both}

    def _scaling(self, lane: int, sizes: Container[int]) -> Scaling:
        """What the scales of groups of some sizes multiply a lane's product by."""
        scales, factors, valid = list[int](), np.ones(1, object), np.ones(1, np.bool_)
        for level, name, group in scales_of(self._shape):
            if not isinstance(level, exact.Exponent) and group in sizes:
                bits = self._given(name, lane // group)
                codes = range(1 << len(bits))
                worth = np.array([scale_integer(code, level) for code in codes], object)
                values = [scale_value(code, level) for code in codes]
                known = np.array([isinstance(x, Fraction) and x >= 0 for x in values])
                factors = np.outer(worth, factors).ravel()
                valid = np.outer(known, valid).ravel()
                scales += bits
        return Scaling(scales, factors, valid)

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
        return sum(largest_field(level) for level, _, _ in scales_of(self._shape))

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
        if not never(graph, graph.both(self._codes, graph.any(bits)), self._seconds):
            raise NotShownError(f"{name} is not shown to be what the definition says")

    def _show_sum(self) -> None:
        """The sum, under the condition that nothing is special; else 0."""
        bits = self._result("sum") + self._result("high")
        if "special" in self._outputs:
            bits = self._ungated(bits)
        literals = sorted(set(self._selectors.values()))
        for values in product((0, 1), repeat=len(literals)):
            chosen = dict(zip(literals, values, strict=True))
            lanes = [self._lane(lane, chosen) for lane in range(self._shape.block)]
            self._show_lanes(self._graph.cofactor(bits, chosen), lanes)

    def _show_lanes(self, bits: Sequence[int], lanes: Sequence[Lane]) -> None:
        """That a number is the sum of what lanes add to it."""
        bound = self._bound(lanes)
        if bound >= 1 << len(bits) - 1:
            raise NotShownError(f"sums of up to {bound} need more than {len(bits)} bits")
        NestedSums(self._graph, lanes, self._of_groups, self._seconds).show(bits)

    @cached_property
    def _of_groups(self) -> dict[int, list[Scaling | WideScaling]]:
        """What multiplies the sum of each group, by their sizes."""
        found = dict[int, list[Scaling | WideScaling]]()
        for size in self._sizes:
            wide = size == self._sizes[-1] and is_wide(self._shape)
            make = self._significands if wide else self._scaling
            found[size] = [make(k, [size]) for k in range(0, self._shape.block, size)]
        return found

    def _significands(self, lane: int, sizes: Container[int]) -> WideScaling:
        """The significands of real scales of groups of some sizes, which multiply a lane."""
        factors = []
        for level, name, group in scales_of(self._shape):
            if isinstance(level, exact.Real) and group in sizes:
                bits = self._given(name, lane // group)
                end = level.fraction_bits + level.exponent_bits
                normal = self._graph.any(bits[level.fraction_bits : end])
                hidden = TRUE if level.always_normal else normal
                factors.append([*bits[: level.fraction_bits], hidden])
        return WideScaling(factors)

    def _bound(self, lanes: Sequence[Lane]) -> int:
        """The largest magnitude of a sum."""
        most = 1
        for levels in scales_by_size(self._shape).values():
            for level in levels:
                most *= largest_integer(level)
        return most * sum(int(np.abs(lane.products).max()) for lane in lanes)

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


class _Products:
    """Products of all pairs of codes in units, and which are of two numbers.

    Args:
        definitions: of both operands. second: whether each has its second element.
    """

    def __init__(self, definitions: Sequence[exact.Definition], second: Sequence[bool]) -> None:
        numbers, finite = [], []
        for definition, other in zip(definitions, second, strict=True):
            unit, element = definition.unit, definition.element
            if other:
                assert definition.second is not None
                element = definition.second
            values = [Fraction(0) if x is Special.NEGATIVE_ZERO else x for x in element.values]
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
    shape = DotShape.of(of.settings["format"], of.settings["block"])
    return BlockDotProof(of.graph, shape, of.inputs, of.outputs, of.seconds)
