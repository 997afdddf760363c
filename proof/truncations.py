"""Where a unit drops the highest bits of a result, and whether these are ever needed.

A result loses nothing if the bits that are dropped are always 0, or always equal to the highest one
that is kept. Otherwise what is kept is made free wherever a bit is lost: if outputs stay the same,
nothing reads the result there. What remains loses bits: on purpose, if the source gives a reason.
"""

from collections.abc import Iterator, Mapping
from dataclasses import dataclass, replace
from enum import StrEnum
from typing import Any

import numpy as np

from axs6.hw.core.layouts import Field, port_fields
from axs6.hw.registry import find_with_streams
from axs6.hw.units.unit import Items
from axs6.proof.aig import FALSE
from axs6.proof.cut_graph import CutGraph, Rule
from axs6.proof.equivalence import compare
from axs6.proof.items import item_of, numbers_of
from axs6.proof.places import Copy, Place, opened
from axs6.proof.questions import Questions
from axs6.sim.batch.engine import ComponentModel, Source
from axs6.sim.batch.model import model_source
from axs6.sim.batch.read import read_netlist
from axs6.sim.tools import ToolError

WORDS = 64
"""Words of 64 random inputs, which are tried first."""

STEPS = (0, 2)
"""Numbers of operators that a question looks through, the smaller question first."""

SOON = 2.0
"""Seconds for the SAT solver alone; questions left are for ABC too, which compares inner nodes."""


class Loss(StrEnum):
    """What is known of the bits that a place drops."""

    NONE = "no bit lost"
    UNREAD = "not read where bits are lost"
    INTENDED = "intended"
    LOST = "loses bits"
    UNKNOWN = "unknown"


@dataclass(frozen=True)
class Truncation:
    """A place where bits are dropped, and what is known of them.

    Args:
        place: in the source. signal: name of the signal that takes the result of one of the
        copies. copies: how many the unit has. loss: verdict on all copies. reason: why nothing is
        lost, or why it is intended. item: an input for which bits are lost and outputs depend on
        the result, if the verdict is "loses bits". registers: names of the bits of registers
        that are 1 there. value: the result before it is cut there.
    """

    place: Place
    signal: str
    copies: int
    loss: Loss
    reason: str = ""
    item: Items | None = None
    registers: tuple[str, ...] = ()
    value: int | None = None

    def to_dict(self) -> dict[str, Any]:
        """Everything, for JSON and tables."""
        return {
            "source": self.place.source,
            "operator": self.place.kind,
            "signal": self.signal,
            "kept": self.place.kept,
            "width": self.place.width,
            "copies": self.copies,
            "verdict": str(self.loss),
            "reason": self.reason,
            "value": self.value,
            "item": None if self.item is None else numbers_of(self.item),
            "registers": list(self.registers),
        }


class TruncationSurvey:
    """Finds all places where a unit drops the highest bits of a result, and judges each.

    Args:
        unit: name of a unit with streams `i` and `o`, or a component with these.
        parameters: of the unit; the others keep their defaults, and `stages` is 0.
        seconds: limit of each question to a solver, and of Yosys.

    Raises:
        ValueError: an argument is refused.
        SynthesisError, ToolError: as `axs6.proof.places.opened`.
    """

    def __init__(self, unit: Any, parameters: Mapping[str, Any], seconds: float = 600) -> None:
        if isinstance(unit, str):
            entry = find_with_streams(unit)
            settings = entry.parameters(parameters)
            unit = entry.build(**settings | ({"stages": 0} if "stages" in settings else {}))
        self._seconds = seconds
        self._inputs, _ = port_fields(unit)
        self._opened = opened(unit, seconds)
        self._cut = CutGraph(self._opened)
        self._questions = Questions(self._cut.graph)

    @property
    def places(self) -> list[Place]:
        """The places."""
        return [*self._opened.places]

    def __iter__(self) -> Iterator[Truncation]:
        """The places and what is known of them."""
        return map(self._judged, self.places)

    def _judged(self, place: Place) -> Truncation:
        copies = self._opened.places[place]
        found = Truncation(place, copies[0].signal, len(copies), Loss.UNKNOWN)
        lost = {rule: self._cut.lost(place, rule) for rule in Rule}
        for rule in Rule:
            if self._ask(self._cut.graph.any(lost[rule].values())) == set():
                return replace(found, loss=Loss.NONE, reason=f"they are {rule}")
        read = []
        for rule in Rule:
            read.append(self._read(place, rule, lost[rule]))
            if read[-1] is False:
                return replace(found, loss=Loss.UNREAD, reason=f"they are {rule} where it is read")
        if place.reason:
            return replace(found, loss=Loss.INTENDED, reason=place.reason)
        if None in read:
            return found
        both = {x: self._cut.graph.both(lost[Rule.ZERO][x], lost[Rule.SIGN][x]) for x in copies}
        for way in (both, lost[Rule.ZERO]):
            if nodes := self._ask(self._cut.seen(way)):
                return self._shown(found, way, nodes)
        return found

    def _read(self, place: Place, rule: Rule, lost: Mapping[Copy, int]) -> bool | None:
        """Whether outputs depend on a result where it loses bits; None if it is not known."""
        for steps in STEPS:
            if self._ask(self._cut.seen_nearby(place, rule, steps), nearby=True) == set():
                return False
        nodes = self._ask(self._cut.seen(lost))
        return None if nodes is None else bool(nodes)

    def _ask(self, literal: int, *, nearby: bool = False) -> set[int] | None:
        """As `Questions.ask`, after some random inputs; ABC is asked too, unless `nearby`."""
        if literal == FALSE:
            return set()
        graph = self._cut.graph
        rng = np.random.default_rng(0)
        nodes = sorted(graph.leaves([literal]))
        given = {
            2 * node: rng.integers(0, 1 << 64, WORDS, np.uint64, endpoint=False) for node in nodes
        }
        (words,) = graph.values([literal], given or {0: np.zeros(WORDS, np.uint64)})
        if not words.any():
            soon = self._questions.ask(literal, min(SOON, self._seconds))
            return self._compared(literal) if soon is None and not nearby else soon
        word = int(np.argmax(words != 0))
        place = (int(words[word]) & -int(words[word])).bit_length() - 1
        return {0, *(node >> 1 for node, x in given.items() if int(x[word]) >> place & 1)}

    def _compared(self, literal: int) -> set[int] | None:
        never = self._cut.graph.with_outputs({"lost": FALSE})
        once = self._cut.graph.with_outputs({"lost": literal})
        said = compare(once, never, seconds=self._seconds)
        if said.equal is not False:
            return set() if said.equal else None
        return {0, *(self._cut.graph.inputs[name] >> 1 for name in said.inputs)}

    def _shown(self, found: Truncation, lost: Mapping[Copy, int], nodes: set[int]) -> Truncation:
        """A place with the input that shows its loss, evaluated in the graph."""
        graph = self._cut.graph
        ones = {name for name, bit in graph.inputs.items() if bit >> 1 in nodes}
        given = {
            bit: np.full(1, -(bit >> 1 in nodes), np.int64).view(np.uint64)
            for bit in graph.inputs.values()
        }
        words = graph.values([*lost.values()], given)
        copy = next((x for x, word in zip(lost, words, strict=True) if word[0]), None)
        if copy is None:
            raise ToolError(f"an input that was to lose bits at {found.place.source} does not")
        words = graph.values(self._cut.results[copy], given)
        value = sum(int(word[0] & np.uint64(1)) << k for k, word in enumerate(words))
        item = item_of(ones, self._inputs)
        registers = self._cut.registers
        vectors = any(field.name == "last" for field in self._inputs)
        if not registers and not vectors and self._replayed(copy, item) != value:
            raise ToolError(f"an input gives another result at {found.place.source} in simulation")
        return replace(
            found,
            signal=copy.signal,
            loss=Loss.LOST,
            item=item,
            registers=tuple(name for name in registers if name in ones),
            value=value,
        )

    def _replayed(self, copy: Copy, item: Items) -> int:
        """The result of an operator in the batch simulator."""
        result = [Field("result", 0, 1, False, (len(copy.bits),))]
        netlist = read_netlist(self._opened.with_result(copy))
        source = Source(model_source(netlist, self._inputs, result), self._inputs, result)
        (bits,) = ComponentModel(source, "a result").run(item).outputs["result"]
        return sum(int(bit) << place for place, bit in enumerate(bits))
