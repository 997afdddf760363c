"""Dot products whose accumulator aligns terms, held against the definitions for all vectors.

As in `axs6.proof.dot`, one item at a time is shown, and by induction every vector. The parts are
proved alone: terms from codes and scales, their alignment with or without the accumulator, their
sum, and its rounding. What is assumed there of a total is shown to be so after each step: it is
special, or a multiple of the last bit that any step keeps.

Source: docs/format.md, "Other accumulators".
"""

from collections.abc import Mapping, Sequence
from functools import cached_property
from typing import Any

from axs6.golden.check.exact.accumulator import Output
from axs6.golden.check.exact.floats import FP16, FP32, Special, float_value
from axs6.hw.core.layouts import Field
from axs6.hw.fp32.widen import NanPattern, Widen
from axs6.proof.aig import TRUE, Graph
from axs6.proof.cores import Core, Statement, split
from axs6.proof.division import division
from axs6.proof.dot import DotProof
from axs6.proof.fp32 import addition, multiplication
from axs6.proof.merged import Merged
from axs6.proof.relations import Numbered, Numbers, constant, relation
from axs6.proof.shown import part_steps
from axs6.proof.step_meaning import StepMeaning
from axs6.proof.steps import NotShownError, Proof, Steps, Subject
from axs6.proof.terms_align import alignment
from axs6.proof.terms_join import joined_sum
from axs6.proof.terms_multiply import terms
from axs6.proof.terms_round import rounded_sum

WIDENED = 18
"""Bits of a total, at most, of which all values are tried where its exponents are no others'."""

Fields = Mapping[str, Sequence[int]]
"""Literals by the names of fields."""

COVERED = {"blocks": "dense", "interleave": 1}
"""Parameters that a proof covers."""


class TermDotProof(DotProof):
    """Holds the graph of a dot product, which has the registers of its accumulator alone.

    Args:
        graph: of the design. settings: parameters of the unit. inputs, outputs: fields of the
        payloads. seconds: limit of each question.

    Raises:
        ValueError: parameters are not covered.
    """

    def __init__(
        self,
        graph: Graph,
        settings: Mapping[str, Any],
        inputs: Sequence[Field],
        outputs: Sequence[Field],
        seconds: float,
    ) -> None:
        for name, value in COVERED.items():
            if settings[name] != value:
                raise ValueError(f"a proof of a dot product needs {name} {value}")
        self._graph, self._seconds = graph, seconds
        self._inputs = {field.name: field for field in inputs}
        (self._result,) = outputs
        names = ("format", "block", "accumulator", "view")
        self._of = {name: settings[name] for name in names}
        self._meaning = meaning = StepMeaning(**self._of)
        defined = meaning.defined
        if defined.promote or defined.wide:
            raise ValueError(
                "a proof of a dot product needs an accumulator that is rounded in each step, and "
                f"not promoted, not {settings['accumulator']}"
            )
        if not defined.fused and defined.output != Output():
            raise ValueError(
                "a proof of a dot product needs totals that are added in FP32 to nearest, or "
                f"aligned with terms, not {settings['accumulator']}"
            )
        self._scaled = "outer" in self._inputs
        _ = self._parts  # refuses what is not covered

    @cached_property
    def _parts(self) -> Mapping[str, Mapping[str, Statement]]:
        """Statements about what an item goes through, and then a total, in this order."""
        found = {
            "terms": terms(self._seconds, **self._of),
            "alignment": alignment(self._seconds, **self._of),
            "rounding": rounded_sum(self._seconds, **self._of),
        }
        if self._meaning.defined.total_fraction is not None:
            found["second alignment"] = joined_sum(self._seconds, **self._of)
        if not self._meaning.defined.fused:
            found["addition"] = addition(self._seconds)
        if self._meaning.output != FP32:
            found["widening"] = widening(self._seconds, self._meaning)
        if self._meaning.divisor != 1:
            of = {name: self._of[name] for name in ("format", "block")}
            found["division"] = division(self._seconds, **of)
        if self._scaled:
            found["multiplication"] = multiplication(self._seconds)
        found["pattern of NaN"] = nan_pattern(self._seconds, self._meaning.defined.nan)
        return found

    def _part_steps(self) -> Steps:
        return part_steps(self._parts)

    def _cores_of(self, part: str) -> list[Core]:
        """What the statements of a part are about, in order."""
        return [*dict.fromkeys(each.core for each in self._parts.get(part, {}).values())]

    @property
    def _total_bits(self) -> int:
        """Bits of a total: of FP32 where terms are added to it."""
        dtype = self._meaning.output if self._meaning.defined.fused else FP32
        return 1 + dtype.exponent_bits + dtype.fraction_bits

    def _show_taken(self) -> None:
        graph, (first, _, _) = self._graph, self._state
        before = [graph.both(bit, first ^ 1) for bit in self._held("total")]
        pairs = [
            (self._held_next("total"), self._after(before)),
            (self._held_next("valid"), [TRUE]),
            (self._held_next("last"), self._item("last")),
            (self._held_next("first"), self._item("last")),
        ]
        if self._scaled:
            pairs.append((self._held_next("outer"), self._item("outer")))
        self._show(self._taken, pairs)

    @cached_property
    def _merged(self) -> Merged:
        return Merged(self._graph)

    def _through(self, core: Core, given: Fields) -> Fields:
        """What a part gives, in literals of the design wherever one is equal."""
        found = self._merged.put(core.through(self._graph, given))
        return split(found, core.outputs)

    def _after(self, before: Sequence[int]) -> list[int]:
        """The total after an item."""
        made = self._cores_of("terms")[-1]
        fields = self._through(made, {field.name: self._item(field.name) for field in made.inputs})
        if self._meaning.defined.total_fraction is not None:
            fields = self._joined(fields, before)
        else:
            distances, *aligning = self._cores_of("alignment")
            fields = self._through(distances, fields)
            if self._meaning.defined.fused:
                fields = with_total(before, fields)
            for core in aligning:
                fields = self._through(core, fields)
        for core in self._cores_of("rounding"):
            fields = self._through(core, fields)
        for core in self._cores_of("addition"):
            fields = self._through(core, {"a": before, "b": fields["value"]})
        return [*fields["value"]]

    def _joined(self, fields: Fields, before: Sequence[int]) -> Fields:
        """The sum of the terms of all groups, and of the total."""
        *first, groups, compares, shifts, adds = self._cores_of("second alignment")
        for core in first:
            fields = self._through(core, fields)
        found: dict[str, Sequence[int]] = {}
        for group in range(self._meaning.defined.groups):
            own = self._of_group(fields, group)
            for core in self._cores_of("alignment"):
                own = self._through(core, own)
            found |= {f"{group}.{name}": bits for name, bits in own.items()}
        fields = with_total(before, self._through(groups, found))
        for core in (compares, shifts, adds):
            fields = self._through(core, fields)
        return fields

    def _of_group(self, fields: Fields, group: int) -> Fields:
        """The fields of one group: every n-th term of n groups, and what all terms share."""
        distances = self._cores_of("alignment")[0]
        groups = self._meaning.defined.groups
        found = {}
        for field in distances.inputs:
            bits, width = fields[field.name], field.width
            if field.name in ("values", "codes"):
                each = range(group * width, len(bits), groups * width)
                found[field.name] = [bit for at in each for bit in bits[at : at + width]]
            else:
                found[field.name] = [*bits]
        return found

    def _show_result(self) -> None:
        graph, (_, _, result) = self._graph, self._state
        value = self._held("total")
        for part in ("widening", "division", "multiplication", "pattern of NaN"):
            for core in self._cores_of(part)[-1:]:
                known = {"value": value, "outer": self._held("outer")}
                value = core.through(
                    graph, {field.name: known[field.name] for field in core.inputs}
                )
        given = self._bits(graph.outputs, "o_payload", self._result)
        self._show(TRUE, [([graph.outputs["o_valid[0]"]], [result])])
        self._show(result, [(given, value)])


def with_total(total: Sequence[int], term: Fields) -> Fields:
    """A total beside what a step adds to it."""
    return {"total": total, **{f"term.{name}": bits for name, bits in term.items()}}


def widening(seconds: float, meaning: StepMeaning) -> dict[str, Statement]:
    """The statement that a total in its format becomes the same number in FP32."""
    dtype = meaning.output
    core = Core([Widen(meaning.align.output)], seconds)
    words = Numbered(core)

    def show() -> None:
        e, f = dtype.exponent_bits, dtype.fraction_bits
        if e == FP32.exponent_bits:
            fits = f"(concat value {constant(0, FP32.fraction_bits - f)})"
            right = f"(= new_value {fits if f < FP32.fraction_bits else 'value'})"
            words.show(["value"], right, seconds=seconds)
        elif dtype == FP16:
            text = """
(define-fun x () Float16 ((_ to_fp 5 11) value))
(define-fun found () Float32 ((_ to_fp 8 24) new_value))"""
            words.show(["value"], "(= found ((_ to_fp 8 24) RNE x))", text, seconds=seconds)
        elif e + f + 1 > WIDENED:
            raise NotShownError(f"totals of {e + f + 1} bits are too many to try all")
        else:
            payload = relation(core, show, holds).wrong(range(1 << e + f + 1))
            if payload is not None:
                raise NotShownError("a total becomes another number", payload)

    def holds(given: Numbers, found: Numbers) -> bool:
        x, y = float_value(given["value"], dtype), float_value(found["value"], FP32)
        signs = (given["value"] >> dtype.exponent_bits + dtype.fraction_bits, found["value"] >> 31)
        return x == y and (x is Special.NAN or signs[0] == signs[1])

    return {"a total becomes the same number in FP32": relation(core, show, holds)}


def nan_pattern(seconds: float, nan: int) -> dict[str, Statement]:
    """The statement that each NaN becomes one pattern."""
    core = Core([NanPattern(nan)], seconds)
    words = Numbered(core)

    def show() -> None:
        right = (
            f"""(= new_value (ite (fp.isNaN ((_ to_fp 8 24) value)) {constant(nan, 32)} value))"""
        )
        words.show(["value"], right, seconds=seconds)

    def holds(given: Numbers, found: Numbers) -> bool:
        is_nan = float_value(given["value"], FP32) is Special.NAN
        return found["value"] == (nan if is_nan else given["value"])

    return {"every NaN becomes that of the accumulator": relation(core, show, holds)}


def term_dot_proof(of: Subject) -> Proof:
    """The proof about a design that is to be such a dot product; see `Specification`."""
    return TermDotProof(of.graph, of.settings, of.inputs, of.outputs, of.seconds)
