"""Shows by induction that a property of a machine holds in all cycles.

Invariants are about the outputs of a machine that empties: no new items go in, and the receiver is
always ready.
"""

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from itertools import product

from axs6.proof.aig import FALSE, TRUE, Graph
from axs6.proof.solver import SOLVER, never

INDUCTION = f"{SOLVER}, by induction"

Register = tuple[int, int, bool | None]
"""A literal, its next value, and its value after reset, which is None where that may be any."""

MOST_TRIED = 1 << 10
"""Empty states times values of inputs, up to which all are tried."""


@dataclass(frozen=True)
class Machine:
    """Registers and inputs.

    Args:
        graph: of the literals. registers: which may depend on each other. inputs: free in each
        cycle. ready: the input by which the receiver is ready. cycles: how many the machine needs
        to empty.
    """

    graph: Graph
    registers: Sequence[Register]
    inputs: Sequence[int]
    ready: int
    cycles: int

    def any_values(self) -> dict[int, int]:
        """Each register with any value."""
        return {bit: bit for bit, *_ in self.registers}

    def after_reset(self) -> dict[int, int]:
        """Each register with its value after reset."""
        known = {bit: TRUE if one else FALSE for bit, _, one in self.registers if one is not None}
        return self.any_values() | known

    def after(self, values: Mapping[int, int], inputs: Mapping[int, int]) -> dict[int, int]:
        """Values of registers after a cycle with some inputs."""
        found = self.graph.cofactor([x for _, x, _ in self.registers], {**values, **inputs})
        return dict(zip(values, found, strict=True))

    def unrolled(self, watched: Iterable[int], values: Mapping[int, int]) -> list[int]:
        """For each cycle the literal that is watched in it, with free inputs.

        Args:
            watched: the literals. values: of registers in the first cycle.
        """
        found, now = [], dict(values)
        for literal in watched:
            free = {x: self.graph.input(f"free {x} {len(self.graph)}") for x in self.inputs}
            found += self.graph.cofactor([literal], {**now, **free})
            now = self.after(now, free)
        return found

    def emptied(
        self, values: Mapping[int, int], watched: Sequence[int] = ()
    ) -> tuple[list[list[int]], dict[int, int]]:
        """Some literals in each cycle in which it empties, and the values of registers after it.

        Args:
            values: of registers in the first cycle. watched: the literals.
        """
        given = {**dict.fromkeys(self.inputs, FALSE), self.ready: TRUE}
        found, now = [], dict(values)
        for _ in range(self.cycles):
            found.append(self.graph.cofactor(watched, {**now, **given}))
            now = self.after(now, given)
        return found, now

    def holds(self, held: int, bad: Sequence[int], seconds: float) -> bool:
        """Whether an invariant is inductive, and excludes a violation.

        The invariant holds after a reset. If it holds with registers of any values, it holds in the
        next cycle. Where it holds, no violation begins.

        Args:
            held: the invariant. bad: literals that are 1 in consecutive cycles of a violation.
            seconds: limit of each question.
        """
        graph, start = self.graph, self.any_values()
        (first,) = graph.cofactor([held], self.after_reset())
        before, after = self.unrolled([held, held], start)
        violated = graph.all([held, *self.unrolled(bad, start)])
        asked = (first ^ 1, graph.both(before, after ^ 1), violated)
        return all(never(graph, each, seconds) for each in asked)


_State = frozenset[tuple[int, int]]
"""Registers with their values; others may have any."""


class EmptyStates:
    """The values that registers may have in an empty machine: after a reset, and after a cycle with
    any inputs, from these values again.

    Registers of arbitrary values may hold what never moves on. After they are emptied, they are not
    in one of these states.

    Args:
        machine: of few states; where there are many, any values count as one of them.
    """

    def __init__(self, machine: Machine) -> None:
        self._machine = machine
        self._states = self._found()

    def _found(self) -> set[_State]:
        machine, found = self._machine, set[_State]()
        left = [self._emptied(machine.after_reset())]
        while left:
            state = left.pop()
            if state in found:
                continue
            found.add(state)
            if len(found) << len(machine.inputs) > MOST_TRIED:
                return {frozenset()}
            values = {**machine.any_values(), **dict(state)}
            for each in product((FALSE, TRUE), repeat=len(machine.inputs)):
                inputs = dict(zip(machine.inputs, each, strict=True))
                left.append(self._emptied(machine.after(values, inputs)))
        return found

    def _emptied(self, values: Mapping[int, int]) -> _State:
        _, after = self._machine.emptied(values)
        return frozenset((bit, x) for bit, x in after.items() if x in (FALSE, TRUE))

    def has(self, values: Mapping[int, int]) -> int:
        """Whether registers have the values of one of these states."""
        graph = self._machine.graph
        return graph.any(
            graph.all(values[bit] ^ one ^ 1 for bit, one in state) for state in self._states
        )
