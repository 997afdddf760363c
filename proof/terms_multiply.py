"""Terms of a step, their exponents, and what is no number, from codes and scales.

What codes and scales are worth comes from the exact model. A term of one lane is tried for all
codes of the lane and all scales that multiply it. One of several lanes is a sum of block dot
products, each of which is held to the definitions (`axs6.proof.block_dot`).

Source: docs/format.md, "Other accumulators".
"""

from collections.abc import Sequence
from fractions import Fraction
from functools import cached_property
from typing import Any

import numpy as np
from numpy.typing import NDArray

from axs6.golden.check.exact import formats as exact
from axs6.golden.check.exact.blocks import scale_value
from axs6.hw.core.parameters import STRUCTURE
from axs6.hw.dot.block_dot import block_dot_steps
from axs6.hw.dot.terms import MakeTerms
from axs6.proof.aig import FALSE, Graph
from axs6.proof.block_dot import BlockDotProof
from axs6.proof.cases import cases_of, counting
from axs6.proof.cores import Core, Statement, split
from axs6.proof.equivalence import compare
from axs6.proof.items import payload_of
from axs6.proof.relations import Numbers, relation
from axs6.proof.scales import check_shape, scale_field, scale_integer
from axs6.proof.step_meaning import (
    StepMeaning,
    numbers_of_element,
)
from axs6.proof.step_part import signed
from axs6.proof.steps import NotShownError
from axs6.proof.term_places import SIDES, TermPlaces, is_number, is_zero
from axs6.proof.term_special import SpecialProducts

TRIED = 24
"""Bits of codes and scales of a term, at most, of which all values are tried."""


def terms(
    seconds: float,
    format: str = "fp8_e4m3",
    block: int | None = None,
    accumulator: str = "hopper",
    view: str = STRUCTURE,
) -> dict[str, Statement]:
    """Statements about the terms of a step.

    Args:
        seconds: limit of each question. format, block, accumulator, view: as of a dot product.

    Raises:
        ValueError: as of `StepMeaning`, or a term has too many codes and scales to try all.
    """
    meaning = StepMeaning(format, block, accumulator, view)
    core = Core([MakeTerms(meaning.align.plan, view)], seconds)
    claims = TermProducts(meaning, core, seconds)
    claims.check_scales()
    products = SpecialProducts(meaning, core, seconds)
    found: dict[str, Statement] = {}
    if meaning.size == 1:
        claims.check_bits()
        found["each term is the product of a lane, under the sum of its exponent fields"] = (
            relation(core, claims.show_products, claims.are_terms)
        )
    else:
        claims.check_cores()
        found["block dot products, of which they are made, are what their formats define"] = (
            relation(claims.block_core, claims.show_block, lambda *_: True)
        )
        found["each term is the sum of the products of its lanes, under the same exponent"] = (
            relation(core, claims.show_sums, claims.are_terms)
        )
    found["exponent fields of scales are added"] = relation(
        core, claims.show_scales, claims.are_scales
    )
    found["NaN and infinities are those of the products by IEEE 754"] = relation(
        core, products.show_special, products.is_special
    )
    return found


class TermProducts(TermPlaces):
    """Statements about terms and their exponents."""

    def check_bits(self) -> None:
        """Refuse terms of whose codes and scales not all values can be tried."""
        if any(x.second for x in self.meaning.sides):
            raise ValueError("a proof is of lanes with one element, and scales select one of two")
        bits = sum(self.words.inputs[x].width for x in self.lane_names(0))
        if bits > TRIED:
            raise ValueError(
                f"a proof tries all codes and scales of a term, of at most {TRIED} bits, and those "
                f"of {self.meaning.format} have {bits}"
            )

    def check_scales(self) -> None:
        """Refuse scales of whose exponent fields not all values can be tried."""
        widths = [
            self.words.inputs[name].width - (isinstance(level, exact.Real) and level.signed)
            for level, name in self._exponents(0)
        ]
        if sum(widths) > TRIED:
            raise ValueError(
                f"a proof tries all scales with exponents, of at most {TRIED} bits, and those of "
                f"{self.meaning.format} have {sum(widths)}"
            )

    def show_products(self) -> None:
        """Show the terms of all lanes."""
        graph, first = self.core.graph, self.bits(self.lane_names(0))
        for lane in range(self.count):
            own = self.bits(self.lane_names(lane))
            outputs = self._term_bits(lane)
            if others := graph.leaves(outputs) - {bit >> 1 for bit in own}:
                raise NotShownError(f"a term depends on {len(others)} bits of other lanes")
            alike = graph.cofactor(outputs, dict(zip(own, first, strict=True)))
            if lane and alike == self._term_bits(0):
                continue
            self._try(lane)

    def _term_bits(self, lane: int) -> list[int]:
        return self.found(f"values{lane}") + self.found(f"codes{lane}")

    def _try(self, lane: int) -> None:
        names = self.lane_names(lane)
        bits = self.bits(names)
        cases = counting(bits)
        value = self._tried(self.found(f"values{lane}"), cases, len(bits))
        value = self._numbers(value, self.words.outputs[f"values{lane}"].width)
        code = self._tried(self.found(f"codes{lane}"), cases, len(bits))
        wanted, fields, valid = self._expected(names, lane)
        wrong = valid & ((value != wanted) | (code != fields))
        if wrong.any():
            case = int(np.argmax(wrong))
            payload, place = 0, 0
            for each in names:
                width = len(self.bits([each]))
                payload |= (case >> place & (1 << width) - 1) << self.words.inputs[each].offset
                place += width
            raise NotShownError(f"the term of lane {lane} is wrong", payload)

    def _tried(self, bits: Sequence[int], cases: Any, count: int) -> NDArray[np.int64]:
        found = np.zeros(1 << count, np.int64)
        for place, word in enumerate(self.core.graph.values(bits, cases)):
            found |= cases_of(word, count).astype(np.int64) << place
        return found

    def _numbers(self, value: NDArray[np.int64], width: int) -> NDArray[np.int64]:
        """Terms from their bits."""
        if not self.meaning.toward_zero:
            return value - (value >> width - 1 << width)
        magnitude = value & (1 << width - 1) - 1
        return np.where(value >> width - 1, -magnitude, magnitude)

    def _expected(
        self, names: Sequence[str], lane: int
    ) -> tuple[NDArray[np.int64], NDArray[np.int64], NDArray[np.bool_]]:
        """Terms, their codes, and of which something is said, for all values of the numbers."""
        kinds: list[exact.Level | int] = [0, 1, *(level for level, _ in self.factors(lane))]
        shape = [1 << len(self.bits([name])) for name in names]
        value = np.ones(1, np.int64)
        fields, valid = np.zeros(1, np.int64), np.ones(1, np.bool_)
        for kind, size in zip(kinds, shape, strict=True):
            tables = [self._table(kind, code) for code in range(size)]
            each, field, good = (np.array(x) for x in zip(*tables, strict=True))
            value = np.outer(each.astype(np.int64), value).ravel()
            fields = np.add.outer(field.astype(np.int64), fields).ravel()
            valid = np.logical_and.outer(good.astype(np.bool_), valid).ravel()
        if self.meaning.toward_zero:
            fields = np.where(value != 0, fields + 1, 0)
        return value, fields, valid

    def _table(self, kind: exact.Level | int, code: int) -> tuple[int, int, bool]:
        """Integer, exponent field, and whether it is a number, of an element or a scale."""
        meaning = self.meaning
        if isinstance(kind, int):
            definition = meaning.sides[kind]
            element, apart = definition.element, meaning.apart and definition.floating
            field = element.fields[code] - min(element.fields) if apart else 0
            number = isinstance(element.values[code], Fraction) or is_zero(element.values[code])
            return self._integers[kind][code], field, number
        value = scale_value(code, kind)
        return scale_integer(code, kind), 0, isinstance(value, Fraction) and value >= 0

    @cached_property
    def _integers(self) -> list[list[int]]:
        return [numbers_of_element(x, self.meaning.apart) for x in self.meaning.sides]

    # Terms of several lanes.

    def check_cores(self) -> None:
        """Refuse terms that are no sums of block dot products."""
        shape = self.meaning.align.plan.core
        if shape is None:
            raise ValueError("a proof is of lanes with one element, and scales select one of two")
        if len({level.group for level, _ in self.factors(0)}) > 1:
            raise ValueError(
                "a proof is of terms whose scales multiply sums at one depth, and those of "
                f"{self.meaning.format} multiply them at several"
            )
        check_shape(shape)

    @cached_property
    def block_core(self) -> Core:
        """The block dot product of which terms are made."""
        shape = self.meaning.align.plan.core
        assert shape is not None
        return Core(block_dot_steps(shape), self.seconds)

    def show_block(self) -> None:
        """Show what it is."""
        shape, core = self.meaning.align.plan.core, self.block_core
        assert shape is not None
        proof = BlockDotProof(core.graph, shape, core.inputs, core.outputs, self.seconds)
        for step in proof.steps().values():
            step()

    def show_sums(self) -> None:
        """Show that terms are sums of block dot products, as signs and magnitudes."""
        graph = Graph(self.core.graph.inputs)
        for index in range(self.count):
            number = self._sum(graph, index)
            wanted = self._as_term(graph, number)
            some = graph.any(self._some(graph, index, number))
            name = f"codes{index}"
            outputs = {f"v{k}": bit for k, bit in enumerate(wanted)}
            given = {f"v{k}": bit for k, bit in enumerate(self.words.found(f"values{index}"))}
            if self.meaning.toward_zero:
                outputs["c"] = some
                (given["c"],) = self.words.found(name)
            elif name in self.words.outputs:
                raise NotShownError("terms under the exponents of scales have codes")
            own, other = self.core.graph.with_outputs(given), graph.with_outputs(outputs)
            found = compare(own, other, seconds=self.seconds)
            if not found.equal:
                wrong = None if found.equal is None else payload_of(found.inputs)
                raise NotShownError(f"it is not shown ({found.by})", wrong)

    def _sum(self, graph: Graph, index: int) -> list[int]:
        """Bits of the sum of the block dot products of a term."""
        meaning, shape = self.meaning, self.meaning.align.plan.core
        assert shape is not None
        width = meaning.align.plan.magnitude_bits + 1
        total = [FALSE] * width
        for first in range(index * meaning.size, (index + 1) * meaning.size, shape.block):
            given = {
                field.name: self._part(graph, field, first) for field in self.block_core.inputs
            }
            payload = self.block_core.through(graph, given)
            parts = split(payload, self.block_core.outputs)
            bits = [*parts["sum"], *parts.get("high", [])]
            wide = [*bits, *[bits[-1]] * (width - len(bits))][:width]
            total = graph.sum(total, wide, width)
        return total

    def _part(self, graph: Graph, field: Any, first: int) -> list[int]:
        """Bits of an input field of a block dot product that begins at a lane."""
        side, _, name = field.name.partition(".")
        if name == "codes":
            lanes = range(first, first + field.count)
            return self._in(graph, [f"{side}.codes{lane}" for lane in lanes])
        if name.startswith("exponent"):
            return [FALSE] * field.width * field.count
        shape = self.meaning.align.plan.core
        assert shape is not None
        names = [
            dict(self._by_field(lane))[field.name.rstrip("s")]
            for lane in range(first, first + shape.block, shape.block // field.count)
        ]
        return self._in(graph, names)

    def _by_field(self, lane: int) -> list[tuple[str, str]]:
        """Names of a lane's scales by those of fields, without numbers."""
        return [(x.rstrip("0123456789").rstrip("s"), x) for _, x in self.scales(lane)]

    def _in(self, graph: Graph, names: Sequence[str]) -> list[int]:
        fields = (self.words.inputs[name] for name in names)
        return [
            graph.inputs[f"i_payload[{field.offset + k}]"]
            for field in fields
            for k in range(field.width)
        ]

    def _as_term(self, graph: Graph, number: Sequence[int]) -> list[int]:
        """A number as a term is written."""
        if not self.meaning.toward_zero:
            return [*number]
        *bits, sign = number
        turned = [graph.unlike(bit, sign) for bit in bits]
        return [*graph.sum(turned, [sign], len(bits)), sign]

    def _some(self, graph: Graph, index: int, number: Sequence[int]) -> list[int]:
        """Literals of which one is 1 if a term counts."""
        if self.meaning.defined.joined == 1:
            return [*number]
        found = []
        for lane in range(index * self.meaning.size, (index + 1) * self.meaning.size):
            zeros = []
            for side, definition in enumerate(self.meaning.sides):
                bits = self._in(graph, [f"{SIDES[side]}.codes{lane}"])
                zeros.append(graph.look_up(bits, [is_zero(x) for x in definition.element.values]))
            for level, name in self.factors(lane):
                bits = self._in(graph, [name])
                table = [is_zero(scale_value(x, level)) for x in range(1 << len(bits))]
                zeros.append(graph.look_up(bits, table))
            found.append(graph.any(zeros) ^ 1)
        return found

    # Scales and what is special.

    def show_scales(self) -> None:
        """Show the sum of the exponent fields of each cluster of terms."""
        meaning, plan = self.meaning, self.meaning.align.plan
        span = meaning.lanes // plan.clusters
        for index in range(plan.clusters):
            first = self.cluster(index)
            names = self._exponents(first)
            if any(self._exponents(lane) != names for lane in range(first, first + span)):
                raise NotShownError("terms of a cluster have scales of their own")
            bits = self.bits([name for _, name in names])
            output = self.found(f"scales{index}")
            if others := self.core.graph.leaves(output) - {bit >> 1 for bit in bits}:
                raise NotShownError(f"an exponent depends on {len(others)} other bits")
            if not bits:
                continue
            fields, valid = np.zeros(1, np.int64), np.ones(1, np.bool_)
            for level, name in names:
                codes = range(1 << len(self.bits([name])))
                each = np.array([scale_field(code, level) for code in codes])
                good = np.array([is_number(scale_value(code, level)) for code in codes])
                fields = np.add.outer(each, fields).ravel()
                valid = np.logical_and.outer(good, valid).ravel()
            wrong = valid & (self._tried(output, counting(bits), len(bits)) != fields)
            if wrong.any():
                raise NotShownError("exponents of scales are not added")

    def _exponents(self, lane: int) -> list[tuple[exact.Level, str]]:
        return [x for x in self.scales(lane) if isinstance(x[0], exact.Exponent | exact.Real)]

    # The same for numbers.

    def are_terms(self, given: Numbers, found: Numbers) -> bool:
        """Whether terms are right."""
        meaning, gated = self.meaning, self.meaning.toward_zero
        for index in range(self.count):
            total, fields, some = 0, 0, False
            for lane in range(index * meaning.size, (index + 1) * meaning.size):
                kinds: list[exact.Level | int] = [0, 1, *(x for x, _ in self.factors(lane))]
                names = self.lane_names(lane)
                tables = [self._table(x, given[y]) for x, y in zip(kinds, names, strict=True)]
                if not all(good for _, _, good in tables):
                    return True
                product = int(np.prod([x for x, _, _ in tables], dtype=object))
                total, fields = total + product, sum(field for _, field, _ in tables)
                some = some or product != 0
            width = self.words.outputs[f"values{index}"].width
            bits = found[f"values{index}"]
            number = signed(bits, width)
            if gated:
                magnitude = bits & (1 << width - 1) - 1
                number = -magnitude if bits >> width - 1 else magnitude
            counts = some if meaning.defined.joined > 1 else total != 0
            code = (fields + 1) * counts if gated else fields
            if (number, found.get(f"codes{index}", 0)) != (total, code):
                return False
        return True

    def are_scales(self, given: Numbers, found: Numbers) -> bool:
        """Whether exponents of scales are right."""
        for index in range(self.meaning.align.plan.clusters):
            names = self._exponents(self.cluster(index))
            if all(is_number(scale_value(given[x], level)) for level, x in names):
                total = sum(scale_field(given[x], level) for level, x in names)
                if found.get(f"scales{index}", 0) != total:
                    return False
        return True
