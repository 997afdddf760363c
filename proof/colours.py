"""The properties of a queue, as machines of control registers and one colour for each bank.

An item has a colour of one bit, which its bank's values take along. That few colours suffice for
items of any values is from P. Wolper, "Expressing interesting properties of programs in
propositional temporal logic", POPL 1986.
"""

import re
from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass
from enum import StrEnum
from typing import NamedTuple

from axs6.proof.abc import run_abc
from axs6.proof.aig import FALSE, TRUE, Graph, write_aiger
from axs6.proof.solver import SOLVER, never
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
    LATENCY = "with an item inside, valid comes within the latency"
    PROGRESS = "an item comes out while the receiver is ready"
    RATE = "while the receiver is ready, an item is taken in every cycle"


class Answer(NamedTuple):
    """Whether something holds in all cycles, None if the time is over; and what shows it."""

    holds: bool | None
    by: str


PDR, INDUCTION = "ABC pdr", f"{SOLVER}, by induction"


@dataclass(frozen=True)
class Load:
    """What a bank takes by the values of control nodes, the first one in the lowest bit.

    Args:
        controls: the nodes. rows: for each number the banks of which it takes a function, or None
        where it holds.
    """

    controls: tuple[int, ...]
    rows: tuple[frozenset[int] | None, ...]


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
    registers: Sequence[tuple[int, int, bool | None]]
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
        if _Machine(self, latency).holds_by_induction(name, seconds):
            return Answer(True, INDUCTION)
        machine = _Machine(self, latency)
        return machine.never(machine.violation(name), seconds)

    def avoids(self, literal: int, seconds: float) -> Answer:
        """Whether a literal is 0 in every cycle."""
        return _Machine(self, 1).never(literal, seconds)

    def keeps(self, given: int, found: int, seconds: float) -> Answer:
        """Whether a bit of each item as it goes in is another one as it comes out.

        Args:
            given, found: the two bits. seconds: limit of ABC.
        """
        machine = _Machine(self, 1)
        return machine.never(machine.changes(given, found), seconds)


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
        self._graph = control.graph
        self._registers = list(control.registers)
        self._inputs = list(control.handshakes.inputs)
        self._is = control.handshakes
        self._begun = self._remembered(TRUE)
        self._fresh = {bank: self._free() for bank in control.loads}
        self._colours: list[int] = []

    def violation(self, name: Property) -> int:
        """Whether a property is violated."""
        if name is Property.ONCE:
            return self._once(self._marked())
        if name in (Property.LATENCY, Property.PROGRESS):
            return self._lasts(*self._waits(name, self._inside(self._marked())))
        return {
            Property.ORDER: self._order,
            Property.WHOLE: self._whole,
            Property.HELD: self._held,
            Property.RATE: self._refuses,
        }[name]()

    def holds_by_induction(self, name: Property, seconds: float) -> bool:
        """Whether a property is shown from what a queue holds: the marked item is inside if, and
        only if, it would come out of the registers.

        If that is so in a cycle, with registers of any values, it is so in the next one. It is so
        after a reset. Of registers of which it is so, some cycles are asked, as many as the
        property speaks of. That a property does not hold cannot be shown this way.
        """
        if name not in (Property.ONCE, Property.LATENCY, Property.PROGRESS):
            return False
        mark, graph = self._marked(), self._graph
        inside = self._inside(mark)
        once, again = self._comes_out(mark.out)
        early = graph.both(mark.left, mark.sent ^ 1)
        held = graph.any([graph.unlike(inside, once), again, early]) ^ 1
        if name is Property.ONCE:
            bad, cycles = self._once(mark), 1
        else:
            bad, cycles = self._waits(name, inside)
        (first,) = self._unrolled([[held]], self._after_reset())
        before, after = self._unrolled([[held], [held]], self._any_values())
        violated = self._unrolled([[held, bad], *[[bad]] * (cycles - 1)], self._any_values())
        asked = (first ^ 1, graph.both(before, after ^ 1), graph.all(violated))
        return all(never(graph, each, seconds) for each in asked)

    def _comes_out(self, out: int) -> tuple[int, int]:
        """Whether the mark comes out if nothing goes in and the receiver is ready, of at most two
        items a rank; and whether it does so more than once."""
        given = {**dict.fromkeys(self._inputs, FALSE), self._is.ready: TRUE}
        shown = self._graph.both(self._is.shown, out)
        cycles = 2 * self._latency + 2
        once = again = FALSE
        for each in self._unrolled([[shown]] * cycles, self._any_values(), given):
            again = self._graph.any([again, self._graph.both(once, each)])
            once = self._graph.any([once, each])
        return once, again

    def _any_values(self) -> dict[int, int]:
        """Each register with any value, in cycles after the first one.

        The first one is like others, as colours may have any value at first.
        """
        return {bit: bit for bit, *_ in self._registers} | {self._begun: TRUE}

    def _after_reset(self) -> dict[int, int]:
        """The values of registers after a reset, with colours and all that is not reset as they
        are."""
        known = {bit: TRUE if one else FALSE for bit, _, one in self._registers if one is not None}
        return self._any_values() | known | {x: x for x in self._colours} | {self._begun: TRUE}

    def _unrolled(
        self,
        watched: Iterable[Sequence[int]],
        values: Mapping[int, int],
        given: Mapping[int, int] | None = None,
    ) -> list[int]:
        """Literals in each of some cycles.

        Args:
            watched: the literals of each cycle. values: of registers in the first one. given: what
            inputs are in all of them; without it they are free.
        """
        found = []
        for literals in watched:
            free = {
                bit: self._graph.input(f"free {bit} {len(self._graph)}") for bit in self._inputs
            }
            wanted = [*literals, *(after for _, after, _ in self._registers)]
            now = self._graph.cofactor(wanted, {**values, **(given or free)})
            found += now[: len(literals)]
            values = dict(zip(values, now[len(literals) :], strict=True))
        return found

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
            for case, row in enumerate(load.rows):
                here = graph.all(
                    2 * node + (case >> k & 1 ^ 1) for k, node in enumerate(load.controls)
                )
                value = held if row is None else join(now[bank] for bank in row)
                found = graph.any([found, graph.both(here, value)])
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

    def _order(self) -> int:
        """From some item on all are marked: after a mark at the output there are no others."""
        graph, free = self._graph, self._free()
        sent = self._ever(graph.both(self._is.push, free))
        out = self._colour(graph.any([free, sent]), graph.any)
        seen = self._ever(graph.both(self._is.shown, out))
        return graph.both(self._is.shown, graph.both(seen, out ^ 1))

    def _once(self, mark: _Mark) -> int:
        shown = self._graph.both(self._is.shown, mark.out)
        early = self._graph.both(mark.sent ^ 1, mark.enters ^ 1)
        return self._graph.both(shown, self._graph.any([mark.left, early]))

    def _whole(self) -> int:
        """Whether any part of an output is marked, and whether every part is, are the same."""
        graph, free = self._graph, self._free()
        some, every = self._colour(free, graph.any), self._colour(free, graph.all)
        return graph.both(self._is.shown, graph.unlike(some, every))

    def _held(self) -> int:
        graph, valid = self._graph, self._is.shown
        out = self._colour(self._free(), graph.any)
        waiting = self._remembered(graph.both(valid, self._is.ready ^ 1))
        kept = graph.both(valid, graph.unlike(out, self._remembered(out)) ^ 1)
        return graph.both(waiting, kept ^ 1)

    def changes(self, given: int, found: int) -> int:
        """Whether a bit of the item that is marked is one as it goes in, and as it comes out
        another."""
        graph = self._graph
        enters, sent, out, _ = self._marked()
        was = graph.input(f"state {len(graph)}")
        self._registers.append((was, graph.choose(sent, was, given), False))
        unlike = graph.unlike(graph.choose(sent, was, given), found)
        return graph.all([self._is.pop, out, graph.any([sent, enters]), unlike])

    def _waits(self, name: Property, inside: int) -> tuple[int, int]:
        """What is so of an item inside for a number of cycles, if LATENCY or PROGRESS is violated.

        Of at most two items a rank each comes out in a cycle in which the receiver is ready.
        """
        if name is Property.LATENCY:
            return self._graph.both(inside, self._is.shown ^ 1), self._latency
        return self._graph.both(inside, self._is.ready), 2 * self._latency + 2

    def _refuses(self) -> int:
        """The receiver has been ready for as long as it takes to empty the unit."""
        ready = self._lasts(self._is.ready, 2 * self._latency + 2)
        return self._graph.both(ready, self._is.takes ^ 1)

    def _lasts(self, state: int, cycles: int) -> int:
        """Whether something is so for a number of cycles."""
        ages = state
        for _ in range(cycles - 1):
            ages = self._graph.both(state, self._remembered(ages))
        return ages
