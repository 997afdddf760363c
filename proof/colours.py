"""The properties of a queue, as machines of control registers and one colour for each bank.

An item has a colour of one bit, which its bank's values take along. That few colours suffice for
items of any values is from P. Wolper, "Expressing interesting properties of programs in
propositional temporal logic", POPL 1986.
"""

import re
from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass
from enum import StrEnum

from axs6.proof.abc import run_abc
from axs6.proof.aig import FALSE, TRUE, Graph, write_aiger
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

    def shows(self, name: Property, latency: int, seconds: float) -> bool | None:
        """Whether a property holds; None if the time is over.

        Args:
            name: of the property. latency: cycles from input to output without stalls. seconds:
            limit of ABC.

        Raises:
            SynthesisError: pyosys is missing.
        """
        machine = _Machine(self, latency)
        return machine.never(machine.violation(name), seconds)

    def avoids(self, literal: int, seconds: float) -> bool | None:
        """Whether a literal is 0 in every cycle; None if the time is over."""
        return _Machine(self, 1).never(literal, seconds)

    def keeps(self, given: int, found: int, seconds: float) -> bool | None:
        """Whether a bit of each item as it goes in is another one as it comes out.

        Args:
            given, found: the two bits. seconds: limit of ABC.
        """
        machine = _Machine(self, 1)
        return machine.never(machine.changes(given, found), seconds)


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

    def violation(self, name: Property) -> int:
        """Whether a property is violated."""
        return {
            Property.ORDER: self._order,
            Property.ONCE: self._once,
            Property.WHOLE: self._whole,
            Property.HELD: self._held,
            Property.LATENCY: self._late,
            Property.PROGRESS: self._stuck,
            Property.RATE: self._refuses,
        }[name]()

    def never(self, bad: int, seconds: float) -> bool | None:
        """Whether a literal is never 1."""
        if bad == FALSE:
            return True
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
            return True
        return False if said and re.search(r"was asserted in frame", said) else None

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

    def _marked(self) -> tuple[int, int, int, int]:
        """One item is marked: whether it goes in, whether it went in before, the output's mark, and
        whether it left."""
        graph, free = self._graph, self._free()
        enters = graph.both(self._is.push, free)
        sent = self._ever(enters)
        out = self._colour(graph.both(free, sent ^ 1), graph.any)
        return enters, sent, out, self._ever(graph.both(self._is.pop, out))

    def _order(self) -> int:
        """From some item on all are marked: after a mark at the output there are no others."""
        graph, free = self._graph, self._free()
        sent = self._ever(graph.both(self._is.push, free))
        out = self._colour(graph.any([free, sent]), graph.any)
        seen = self._ever(graph.both(self._is.shown, out))
        return graph.both(self._is.shown, graph.both(seen, out ^ 1))

    def _once(self) -> int:
        enters, sent, out, left = self._marked()
        shown = self._graph.both(self._is.shown, out)
        early = self._graph.both(sent ^ 1, enters ^ 1)
        return self._graph.both(shown, self._graph.any([left, early]))

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

    def _late(self) -> int:
        _, sent, _, left = self._marked()
        inside = self._graph.both(sent, left ^ 1)
        return self._lasts(self._graph.both(inside, self._is.shown ^ 1), self._latency - 1)

    def _stuck(self) -> int:
        """Each of at most two items a rank comes out in a cycle in which the receiver is ready."""
        _, sent, _, left = self._marked()
        inside = self._graph.both(sent, left ^ 1)
        return self._lasts(self._graph.both(inside, self._is.ready), 2 * self._latency + 1)

    def _refuses(self) -> int:
        """The receiver has been ready for as long as it takes to empty the unit."""
        ready = self._lasts(self._is.ready, 2 * self._latency + 1)
        return self._graph.both(ready, self._is.takes ^ 1)

    def _lasts(self, state: int, cycles: int) -> int:
        """Whether something is so for more than a number of cycles."""
        ages = state
        for _ in range(cycles):
            ages = self._graph.both(state, self._remembered(ages))
        return ages
