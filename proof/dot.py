"""Dot products of vectors held against the definitions, for all vectors and all stalls.

One item at a time is shown: the total that registers hold next is the FP32 sum of the total before,
or +0 at the start of a vector, and of the item's block sum in FP32. By induction a vector's total
is that of all its items, added in order. The parts are proved alone: the sum of a block, its
conversion, the addition, and what follows on the total. That the netlist is made of them is seen in
its graph, whose registers are known by what they do.

Source: docs/format.md, "Vectors longer than a block".
"""

from collections.abc import Mapping, Sequence
from functools import cached_property
from itertools import product
from typing import Any

from axs6.golden.check.subjects import definition_of
from axs6.golden.formats import FP32
from axs6.hw.core.layouts import Field
from axs6.hw.core.parameters import DEFAULT_ACCUMULATOR
from axs6.hw.dot.block_dot import block_dot_steps
from axs6.hw.dot.shape import DotShape
from axs6.proof.aig import FALSE, NEXT, TRUE, Graph
from axs6.proof.block_dot import BlockDotProof
from axs6.proof.cores import Core, Statement, split
from axs6.proof.division import division
from axs6.proof.equivalence import compare
from axs6.proof.fp32 import addition, conversion, multiplication
from axs6.proof.scales import check_shape
from axs6.proof.shown import part_steps
from axs6.proof.steps import NotShownError, Proof, Steps, Subject

WAYS = ("&cec",)
"""How ABC compares with the parts: `&cec -x` is no quicker, or finds nothing."""

COVERED = {"blocks": "dense", "interleave": 1, "accumulator": DEFAULT_ACCUMULATOR}
"""Parameters that a proof covers."""


class DotProof:
    """Holds the graph of a dot product, which has the registers of its accumulator alone.

    Args:
        graph: of the design. settings: parameters of the unit. shape: of a block dot product.
        inputs, outputs: fields of the payloads. seconds: limit of each question.

    Raises:
        ValueError: parameters are not covered, or as of `check_shape`.
    """

    def __init__(
        self,
        graph: Graph,
        settings: Mapping[str, Any],
        shape: DotShape,
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
        self._of = {"format": settings["format"], "block": settings["block"]}
        self._shape, self._view = shape, settings["view"]
        self._scaled = any(
            isinstance(level.group, str)
            for definition in map(definition_of, shape.formats)
            for level in definition.levels
        )
        check_shape(shape)

    @cached_property
    def _block(self) -> Core:
        return Core(block_dot_steps(self._shape, self._view), self._seconds)

    @cached_property
    def _parts(self) -> Mapping[str, Mapping[str, Statement]]:
        """Statements about what a block's sum goes through, and then a total, in this order."""
        found = {
            "conversion": conversion(self._seconds, **self._of),
            "addition": addition(self._seconds),
        }
        if self._shape.divisor > 1:
            found["division"] = division(self._seconds, **self._of)
        if self._scaled:
            found["multiplication"] = multiplication(self._seconds)
        return found

    @cached_property
    def _cores(self) -> list[Core]:
        """What these are about."""
        return [[*statements.values()][-1].core for statements in self._parts.values()]

    def _part_steps(self) -> Steps:
        block = self._block
        proof = BlockDotProof(block.graph, self._shape, block.inputs, block.outputs, self._seconds)
        own = {f"block: {text}": step for text, step in proof.steps().items()}
        return {**own, **part_steps(self._parts)}

    def steps(self) -> Steps:
        """What is to be shown, by name."""
        return {
            **self._part_steps(),
            "an item that is taken is added to the total": self._show_taken,
            "what waits stays as it is": self._show_kept,
            "the result is what follows on the total of the last item": self._show_result,
            "a result is lost by no item, and no item by a result": self._show_control,
        }

    @cached_property
    def _next(self) -> dict[str, int]:
        """What registers take, without reset."""
        graph = self._graph
        nexts = {
            x.removeprefix(NEXT): bit for x, bit in graph.outputs.items() if x.startswith(NEXT)
        }
        found = graph.cofactor([*nexts.values()], {self._reset: FALSE})
        return dict(zip(nexts, found, strict=True))

    @property
    def _reset(self) -> int:
        return self._graph.inputs["rst[0]"]

    @cached_property
    def _registers(self) -> dict[str, list[str]]:
        """Names of registers by what they are: `first`, `valid`, `last`, `total` and `outer`.

        Reset sets and clears the first two. Those of a result are total and outer scale, in the
        order of their numbers: if that is not so, what is shown of them fails.
        """
        graph = self._graph
        after = graph.cofactor([graph.outputs[NEXT + x] for x in self._next], {self._reset: TRUE})
        payload = graph.leaves(self._bits(graph.outputs, "o_payload", self._result))
        codes = {bit >> 1 for bit in self._item("a.codes")}
        found: dict[str, list[str]] = {x: [] for x in ("first", "valid", "last", "total", "outer")}
        for name, reset in sorted(zip(self._next, after, strict=True), key=lambda x: _number(x[0])):
            if graph.inputs[name] >> 1 in payload:
                is_total = codes & graph.leaves([self._next[name]])
                found["total" if is_total else "outer"].append(name)
            else:
                found[{TRUE: "first", FALSE: "valid"}.get(reset, "last")].append(name)
        if [*map(len, found.values())] != [1, 1, 1, self._total_bits, 32 * self._scaled]:
            raise NotShownError("registers are not those of an accumulator")
        return {**found, "total": placed(found["total"])}

    @property
    def _total_bits(self) -> int:
        """Bits of a total."""
        return FP32.width

    def _item(self, name: str) -> list[int]:
        return self._bits(self._graph.inputs, "i_payload", self._inputs[name])

    @staticmethod
    def _bits(of: Mapping[str, int], payload: str, field: Field) -> list[int]:
        width = field.width * field.count
        return [of[f"{payload}[{field.offset + k}]"] for k in range(width)]

    def _held(self, name: str) -> list[int]:
        return [self._graph.inputs[each] for each in self._registers[name]]

    def _held_next(self, name: str) -> list[int]:
        return [self._next[each] for each in self._registers[name]]

    @cached_property
    def _state(self) -> tuple[int, int, int]:
        """Whether the next item is the first of its vector, a total is held, and it is a result."""
        (first,), (valid,), (last,) = (self._held(name) for name in ("first", "valid", "last"))
        return first, valid, self._graph.both(valid, last)

    @cached_property
    def _taken(self) -> int:
        return self._graph.both(self._graph.inputs["i_valid[0]"], self._graph.outputs["i_ready[0]"])

    def _possible(self, first: int, valid: int, last: int) -> int:
        """Whether registers agree: a result is held or nothing, or within a vector a total."""
        graph = self._graph
        begins = graph.any([valid ^ 1, last])
        return graph.choose(first, begins, begins ^ 1)

    def _show(self, when: int, pairs: Sequence[tuple[Sequence[int], Sequence[int]]]) -> None:
        """Show that literals are equal where one is 1: for each state and handshake alone.

        States that no item leads to do not count: `_show_control` shows that none does.
        """
        graph = self._graph
        (first,), (valid,), (last,) = (self._held(name) for name in ("first", "valid", "last"))
        when = graph.both(when, self._possible(first, valid, last))
        found, wanted = ([bit for pair in pairs for bit in pair[side]] for side in range(2))
        control = [graph.inputs[name] for name in ("i_valid[0]", "o_ready[0]")]
        control += [bit for name in ("first", "valid", "last") for bit in self._held(name)]
        unlike: dict[tuple[int, int], None] = {}
        for case in product((FALSE, TRUE), repeat=len(control)):
            values = dict(zip(control, case, strict=True))
            here, *bits = graph.cofactor([when, *found, *wanted], values)
            if here != FALSE:
                both = zip(bits[: len(found)], bits[len(found) :], strict=True)
                unlike |= dict.fromkeys((x, y) for x, y in both if x != y)
        one, other = (
            graph.with_outputs({f"{k}": pair[side] for k, pair in enumerate(unlike)})
            for side in range(2)
        )
        said = compare(one, other, seconds=self._seconds, ways=WAYS)
        if not said.equal:
            raise NotShownError(f"it is not shown ({said.by})")

    def _show_taken(self) -> None:
        graph, (first, _, _) = self._graph, self._state
        fields = {field.name: self._item(field.name) for field in self._block.inputs}
        convert, add, *_ = self._cores
        term = self._block.through(graph, fields)
        term = convert.through(graph, split(term, self._block.outputs))
        before = [graph.both(bit, first ^ 1) for bit in self._held("total")]
        total = add.through(graph, {"a": before, "b": term})
        pairs = [
            (self._held_next("total"), total),
            (self._held_next("valid"), [TRUE]),
            (self._held_next("last"), self._item("last")),
            (self._held_next("first"), self._item("last")),
        ]
        if self._scaled:
            pairs.append((self._held_next("outer"), self._item("outer")))
        self._show(self._taken, pairs)

    def _show_kept(self) -> None:
        graph, (first, valid, result) = self._graph, self._state
        waits = self._taken ^ 1
        leaves = graph.both(result, graph.inputs["o_ready[0]"])
        held = graph.both(valid, leaves ^ 1)
        pairs = [(self._held_next("valid"), [held]), (self._held_next("first"), [first])]
        self._show(waits, pairs)
        kept = [(self._held_next(x), self._held(x)) for x in ("total", "last", "outer")]
        self._show(graph.both(waits, held), kept)

    def _show_result(self) -> None:
        graph, (_, _, result) = self._graph, self._state
        value = self._held("total")
        for core in self._cores[2:]:
            known = {"value": value, "outer": self._held("outer")}
            value = core.through(graph, {field.name: known[field.name] for field in core.inputs})
        given = self._bits(graph.outputs, "o_payload", self._result)
        self._show(TRUE, [([graph.outputs["o_valid[0]"]], [result])])
        self._show(result, [(given, value)])

    def _show_control(self) -> None:
        """Among it that only what is possible follows on that, and on a reset."""
        graph, (_, _, result) = self._graph, self._state
        ready = graph.inputs["o_ready[0]"]
        names = ("first", "valid", "last")
        after = self._possible(*(self._held_next(name)[0] for name in names))
        reset = [graph.outputs[NEXT + self._registers[name][0]] for name in names[:2]]
        reset = graph.cofactor(reset, {self._reset: TRUE})
        free = graph.any([ready, result ^ 1])
        self._show(TRUE, [([after], [TRUE])])
        self._show(TRUE, [(reset, [TRUE, FALSE])])
        self._show(graph.both(self._taken, result), [([ready], [TRUE])])
        offered = graph.both(graph.inputs["i_valid[0]"], free)
        self._show(offered, [([graph.outputs["i_ready[0]"]], [TRUE])])


def _number(name: str) -> tuple[str, int]:
    """The name of a word, and the number of a bit of it."""
    word, _, bit = name.rpartition("[")
    return word, int(bit[:-1])


def placed(names: Sequence[str]) -> list[str]:
    """Bits of a word in order. Some may have the names of another word that are the same bits:
    these fill the gaps, in their order; if that is not so, what is shown of them fails."""
    words = [_number(name)[0] for name in names]
    main = max(words, key=words.count)
    known = {_number(name)[1]: name for name in names if _number(name)[0] == main}
    others = iter([name for name in names if _number(name)[0] != main])
    return [known.get(place) or next(others, "") for place in range(len(names))]


def dot_proof(of: Subject) -> Proof:
    """The proof about a design that is to be a dot product; see `Specification`."""
    shape = DotShape.of(of.settings["format"], of.settings["block"])
    return DotProof(of.graph, of.settings, shape, of.inputs, of.outputs, of.seconds)
