"""The properties of a queue, as machines of control registers and one colour for each bank.

An item has a colour of one bit, which its bank's values take along. That few colours suffice for
items of any values is from P. Wolper, "Expressing interesting properties of programs in
propositional temporal logic", POPL 1986.
"""

import re
from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass, replace
from enum import StrEnum
from functools import partial
from typing import NamedTuple

from axs6.proof.abc import run_abc
from axs6.proof.aig import FALSE, TRUE, Graph, write_aiger
from axs6.proof.induction import INDUCTION, EmptyStates, Machine, Register
from axs6.sim.process import temporary_folder

INPUT = -1
"""Stands for the input's payload among banks."""

NOTHING_KNOWN = -2
"""Stands among banks for what may have any colour, in each cycle another one."""


class Property(StrEnum):
    """What makes a unit a queue, in every cycle after a reset and for all stalls."""

    ORDER = "items come out in the order in which they went in"
    ONCE = "no item comes out twice, or before it went in"
    WHOLE = "each output is of one item"
    HELD = "valid and payload stay until ready"
    VALID = "with an item inside, valid comes, whether the receiver is ready or not"
    LATENCY = "without stalls, an item comes out within the latency"
    PROGRESS = "an item comes out while the receiver is ready"
    RATE = "while the receiver is ready, an item is taken in every cycle"


class Answer(NamedTuple):
    """Whether something holds in all cycles, None if the time is over; and what shows it."""

    holds: bool | None
    by: str


PDR = "ABC pdr"


@dataclass(frozen=True)
class Load:
    """What a bank takes by the values of control nodes, the first one in the lowest bit.

    Args:
        controls: the nodes. rows: for each number the banks of which it takes a function, or None
        where it holds.
    """

    controls: tuple[int, ...]
    rows: tuple[frozenset[int] | None, ...]


def in_row(graph: Graph, controls: Sequence[int], number: int) -> int:
    """Whether control nodes have the values of a row of a load."""
    return graph.all(2 * node ^ (number >> k & 1 ^ 1) for k, node in enumerate(controls))


@dataclass(frozen=True)
class Handshakes:
    """When items go in and come out, as literals.

    Args:
        inputs: what is free in each cycle. push: an item goes in. pop: one comes out. shown: one is
        offered. ready: the receiver would take it. takes: the unit would take an item.
    """

    inputs: Sequence[int]
    push: int
    pop: int
    shown: int
    ready: int
    takes: int


@dataclass(frozen=True)
class Control:
    """A pipelined unit without its payload.

    Args:
        graph: of the literals.
        registers: control registers, each a literal, its next value, and its value after reset,
        which is None where that may be any.
        handshakes: when items go in and come out.
        loads: what banks take.
        out: what parts of the output take.
    """

    graph: Graph
    registers: Sequence[Register]
    handshakes: Handshakes
    loads: Mapping[int, Load]
    out: Sequence[Load]

    def shows(self, name: Property, latency: int, seconds: float) -> Answer:
        """Whether a property holds.

        Args:
            name: of the property. latency: cycles from input to output without stalls. seconds:
            limit of each question.

        Raises:
            ImportError: python-sat is missing.
            SynthesisError: pyosys is missing.
        """
        machine = _Machine(self, latency)
        return machine.shows(machine.asked(name), seconds)

    def avoids(self, literal: int, seconds: float) -> Answer:
        """Whether a literal is 0 in every cycle."""
        return _Machine(self, 1).never(literal, seconds)

    def keeps(self, given: int, found: int, latency: int, seconds: float) -> Answer:
        """Whether a bit of each item as it goes in is another one as it comes out.

        Args:
            given, found: the two bits. latency, seconds: as of `shows`.
        """
        machine = _Machine(self, latency)
        return machine.shows(machine.changes(given, found), seconds)


class _Asked(NamedTuple):
    """A property of a machine, and an invariant from which it may follow.

    bad: literals that are 1 in consecutive cycles of a violation. watched: literals in each cycle
    in which the machine empties. right: the invariant, as a function of these, the first cycle's
    first.
    """

    bad: Sequence[int]
    watched: Sequence[int]
    right: Callable[[Sequence[Sequence[int]]], int]


class _Mark(NamedTuple):
    """One item is marked.

    enters: it goes in. sent: it went in before. out: the mark of the output. left: it came out
    before.
    """

    enters: int
    sent: int
    out: int
    left: int


class _Machine:
    """Control registers with colours and what a property has to remember."""

    def __init__(self, control: Control, latency: int) -> None:
        self._of, self._latency = control, latency
        self._cycles = 2 * latency + 2
        self._graph = control.graph
        self._registers = list(control.registers)
        self._inputs = list(control.handshakes.inputs)
        self._is = control.handshakes
        self._begun = self._remembered(TRUE)
        self._fresh = {bank: self._free() for bank in control.loads}
        self._colours: list[int] = []

    def asked(self, name: Property) -> _Asked:
        """What a property asks."""
        return {
            Property.ORDER: self._order,
            Property.ONCE: self._once,
            Property.WHOLE: self._whole,
            Property.HELD: self._held,
            Property.VALID: self._invalid,
            Property.LATENCY: self._late,
            Property.PROGRESS: self._stuck,
            Property.RATE: self._refuses,
        }[name]()

    def shows(self, asked: _Asked, seconds: float) -> Answer:
        """Whether something is not violated: by induction, or else by pdr, which may also show that
        it is."""
        if self._holds_by_induction(asked, seconds):
            return Answer(True, INDUCTION)
        violated, *later = asked.bad
        for each in later:
            violated = self._graph.both(each, self._remembered(violated))
        return self.never(violated, seconds)

    def _holds_by_induction(self, asked: _Asked, seconds: float) -> bool:
        """Whether it is shown from what the machine holds, as it would come out of the registers.

        The first cycle is one like others, as colours may have any value at first.
        """
        graph = self._graph
        registers = [
            (bit, after, None if bit in self._colours else bit == self._begun or one)
            for bit, after, one in self._registers
        ]
        machine = Machine(graph, registers, self._inputs, self._is.ready, self._cycles)
        control = replace(machine, registers=self._of.registers, inputs=self._is.inputs)
        seen, empty = machine.emptied(machine.any_values() | {self._begun: TRUE}, asked.watched)
        held = graph.both(EmptyStates(control).has(empty), asked.right(seen))
        return machine.holds(graph.both(held, self._begun), asked.bad, seconds)

    def never(self, bad: int, seconds: float) -> Answer:
        """Whether a literal is never 1."""
        if bad == FALSE:
            return Answer(True, PDR)
        # A register that starts as 1 is the complement of one that starts as 0.
        started = {bit: bit ^ 1 for bit, _, one in self._registers if one}
        started |= {
            bit: self._graph.choose(self._begun, bit, self._free())
            for bit, _, one in self._registers
            if one is None
        }
        *nexts, bad = self._graph.cofactor([*(x for _, x, _ in self._registers), bad], started)
        registers = [
            (bit, after ^ bool(one))
            for (bit, _, one), after in zip(self._registers, nexts, strict=True)
        ]
        with temporary_folder("axs6-proof-") as folder:
            write_aiger(folder / "queue.aig", self._graph, self._inputs, [bad], registers)
            commands = ["read queue.aig", "strash", f"pdr -T {max(1, int(seconds))}"]
            said = run_abc(folder, commands, seconds + 5)
        if said and "Property proved" in said:
            return Answer(True, PDR)
        return Answer(False if said and re.search(r"was asserted in frame", said) else None, PDR)

    def _free(self) -> int:
        """A bit that is arbitrary in each cycle."""
        bit = self._graph.input(f"free {len(self._graph)}")
        self._inputs.append(bit)
        return bit

    def _remembered(self, literal: int) -> int:
        """What a literal was in the cycle before; 0 in the first cycle."""
        bit = self._graph.input(f"state {len(self._graph)}")
        self._registers.append((bit, literal, False))
        return bit

    def _ever(self, literal: int) -> int:
        """Whether a literal was 1 in an earlier cycle."""
        bit = self._graph.input(f"state {len(self._graph)}")
        self._registers.append((bit, self._graph.any([bit, literal]), False))
        return bit

    def _colour(self, entering: int, join: Callable[[Iterable[int]], int]) -> int:
        """The colour of the output.

        Args:
            entering: the colour of an item at the input. join: what becomes of several colours.
        """
        graph = self._graph
        bits = {bank: graph.input(f"colour {len(graph)}") for bank in self._of.loads}
        self._colours += bits.values()
        now = {
            bank: graph.choose(self._begun, bit, self._fresh[bank]) for bank, bit in bits.items()
        }
        now |= {INPUT: entering, NOTHING_KNOWN: self._free()}

        def taken(load: Load, held: int) -> int:
            found = FALSE
            for number, row in enumerate(load.rows):
                value = held if row is None else join(now[bank] for bank in row)
                found = graph.any([found, graph.both(in_row(graph, load.controls, number), value)])
            return found

        for bank, load in self._of.loads.items():
            self._registers.append((bits[bank], taken(load, now[bank]), False))
        return join(taken(load, FALSE) for load in self._of.out)

    def _marked(self) -> _Mark:
        """One item is marked, any."""
        graph, free = self._graph, self._free()
        enters = graph.both(self._is.push, free)
        sent = self._ever(enters)
        out = self._colour(graph.both(free, sent ^ 1), graph.any)
        return _Mark(enters, sent, out, self._ever(graph.both(self._is.pop, out)))

    def _inside(self, mark: _Mark) -> int:
        return self._graph.both(mark.sent, mark.left ^ 1)

    def _of_mark(self, mark: _Mark, bad: Sequence[int], wrong: int = FALSE) -> _Asked:
        """Of an item that is marked: it is inside if, and only if, it would come out, once.

        Args:
            mark: of the item. bad: as of `_Asked`. wrong: what is not so as it comes out.
        """
        out = self._graph.both(self._is.shown, mark.out)
        watched = [out, self._graph.both(out, wrong)]
        return _Asked(bad, watched, partial(self._comes_out, mark))

    def _comes_out(self, mark: _Mark, seen: Sequence[Sequence[int]]) -> int:
        graph = self._graph
        once = again = FALSE
        for out, *_ in seen:
            again = graph.any([again, graph.both(once, out)])
            once = graph.any([once, out])
        early = graph.both(mark.left, mark.sent ^ 1)
        unlike = graph.unlike(self._inside(mark), once)
        return graph.any([unlike, again, early, *(wrong for _, wrong, *_ in seen)]) ^ 1

    def _order(self) -> _Asked:
        """From some item on all are marked: after a mark at the output there are no others."""
        graph, free = self._graph, self._free()
        sent = self._ever(graph.both(self._is.push, free))
        out = self._colour(graph.any([free, sent]), graph.any)
        marked, other = (graph.both(self._is.shown, x) for x in (out, out ^ 1))
        seen = self._ever(marked)

        def right(cycles: Sequence[Sequence[int]]) -> int:
            before, wrong = seen, graph.both(seen, sent ^ 1)
            for with_mark, without in cycles:
                wrong = graph.any(
                    [wrong, graph.both(before, without), graph.both(with_mark, sent ^ 1)]
                )
                before = graph.any([before, with_mark])
            return wrong ^ 1

        return _Asked([graph.both(seen, other)], [marked, other], right)

    def _once(self) -> _Asked:
        """A mark comes out again, or before it went in."""
        graph, mark = self._graph, self._marked()
        shown = graph.both(self._is.shown, mark.out)
        early = graph.both(mark.sent ^ 1, mark.enters ^ 1)
        return self._of_mark(mark, [graph.both(shown, graph.any([mark.left, early]))])

    def _whole(self) -> _Asked:
        """Whether any part of an output is marked, and whether every part is, are the same."""
        graph, free = self._graph, self._free()
        some, every = self._colour(free, graph.any), self._colour(free, graph.all)
        parts = graph.both(self._is.shown, graph.unlike(some, every))
        return _Asked([parts], [parts], lambda cycles: graph.any(x for (x,) in cycles) ^ 1)

    def _held(self) -> _Asked:
        graph, valid = self._graph, self._is.shown
        out = self._colour(self._free(), graph.any)
        kept = graph.both(valid, graph.unlike(out, self._remembered(out)) ^ 1)
        return _Asked([graph.both(valid, self._is.ready ^ 1), kept ^ 1], [], _nothing)

    def _invalid(self) -> _Asked:
        """An item is inside in as many cycles as the unit needs to empty, and none is offered."""
        mark = self._marked()
        waits = self._graph.both(self._inside(mark), self._is.shown ^ 1)
        return self._of_mark(mark, [waits] * self._cycles)

    def _late(self) -> _Asked:
        """An item goes in after the receiver has been ready for as long as it takes to empty the
        unit. While it is, the item does not come out within the latency.

        After a stall a result may come later, as what waits in front of the total is added first.
        """
        graph, mark, ready = self._graph, self._marked(), self._is.ready
        enters, stays = (graph.both(ready, x) for x in (mark.enters, self._inside(mark)))
        comes = graph.both(self._is.shown, mark.out)
        within = [enters, *[stays] * (self._latency - 1), graph.both(stays, comes ^ 1)]
        return self._of_mark(mark, [*[ready] * self._cycles, *within])

    def _stuck(self) -> _Asked:
        """An item stays inside. Of at most two items a rank each comes out in a cycle in which the
        receiver is ready."""
        mark = self._marked()
        waits = self._graph.both(self._inside(mark), self._is.ready)
        return self._of_mark(mark, [waits] * self._cycles)

    def _refuses(self) -> _Asked:
        """The receiver has been ready for as long as it takes to empty the unit."""
        ready = self._is.ready
        refuses = self._graph.both(ready, self._is.takes ^ 1)
        return _Asked([*[ready] * (self._cycles - 1), refuses], [], _nothing)

    def changes(self, given: int, found: int) -> _Asked:
        """Whether a bit of the item that is marked is one as it goes in, and as it comes out
        another."""
        graph, mark = self._graph, self._marked()
        was = graph.input(f"state {len(graph)}")
        now = graph.choose(mark.sent, was, given)
        self._registers.append((was, now, False))
        unlike = graph.unlike(now, found)
        inside = graph.any([mark.sent, mark.enters])
        return self._of_mark(mark, [graph.all([self._is.pop, mark.out, inside, unlike])], unlike)


def _nothing(seen: Sequence[Sequence[int]]) -> int:
    """Nothing is held."""
    return TRUE
