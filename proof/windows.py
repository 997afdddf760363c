"""Faults whose effect ends near them: a mutant is compared with its unit within a window.

Some levels behind the fault the two must be equal, and what the window reads may have any value. So
what is shown holds for all inputs, and it is found in milliseconds, however large the unit is.
Where a small window shows nothing, a larger one may, up to the whole unit.

If they differ at the end of a window, they differ at each node of a path from the fault to there.
The solver is told so: what blocks all paths then decides, and nothing else has to be compared.
"""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from functools import cached_property
from heapq import heappop, heappush

from axs6.proof.aig import FALSE, TRUE, Graph
from axs6.proof.solver import SOLVER, answer

Clauses = list[list[int]]


@dataclass(frozen=True)
class Window:
    """What a mutant has otherwise than the unit, up to some levels behind its fault.

    Args:
        changed: the nodes that differ, operands before what reads them, with their literals in the
        mutant.
        sources: those that read what chooses the mutant, and so may differ by themselves.
        ends: those that others read which are not in the window, or outputs, with a literal that is
        1 where a difference counts.
    """

    changed: Mapping[int, int]
    sources: frozenset[int]
    ends: Mapping[int, int]


class Faults:
    """The unit and its mutants as literals of one graph.

    Args:
        graph: of the unit with its mutants. selector: literals of the inputs that choose a mutant.
        counts: for outputs whose differences do not always count, literals of the unit that are 1
        where they do.
    """

    def __init__(
        self, graph: Graph, selector: Sequence[int], counts: Mapping[str, int] | None = None
    ) -> None:
        self._graph, self._selector = graph, selector
        self._nodes = range(len(graph))
        whole = [2 * node for node in self._nodes]
        self._right = graph.cofactor(whole, dict.fromkeys(selector, FALSE))
        self._outputs: dict[int, int] = {}
        for name, bit in graph.outputs.items():
            already, own = self._outputs.get(bit >> 1, FALSE), (counts or {}).get(name, TRUE)
            self._outputs[bit >> 1] = graph.any([already, own])

    @cached_property
    def _chosen(self) -> set[int]:
        """Nodes that depend on the selector alone."""
        found = {0, *(bit >> 1 for bit in self._selector)}
        for node in self._nodes:
            operands = self._graph.operands(node)
            if operands and found.issuperset(each >> 1 for each in operands):
                found.add(node)
        return found

    @cached_property
    def _readers(self) -> list[list[int]]:
        """For each node the conjunctions that read it."""
        found: list[list[int]] = [[] for _ in self._nodes]
        for node in self._nodes:
            for operand in self._graph.operands(node) or ():
                found[operand >> 1].append(node)
        return found

    def window(self, number: int, levels: int | None) -> Window:
        """The window of a mutant.

        Args:
            number: of the mutant. levels: behind its fault; None for all.
        """
        graph, right, behind = self._graph, self._right, dict[int, int]()
        most = len(self._nodes) if levels is None else levels
        found = {bit >> 1: TRUE for k, bit in enumerate(self._selector) if number >> k & 1}
        left = sorted({reader for node in found for reader in self._readers[node]})
        waiting, sources = set(left), set[int]()

        def at(literal: int) -> int:
            node = literal >> 1
            return found.get(node, right[node]) ^ (literal & 1)

        while left:
            node = heappop(left)
            operands = graph.operands(node)
            assert operands is not None
            literal = graph.both(*map(at, operands))
            if literal == right[node]:
                continue
            found[node] = literal
            if node not in self._chosen or node in self._outputs:
                behind[node] = 1 + max(behind.get(each >> 1, 0) for each in operands)
                if any(each >> 1 in found and each >> 1 in self._chosen for each in operands):
                    sources.add(node)
            if behind.get(node, 0) <= most:
                for reader in self._readers[node]:
                    if reader not in waiting:
                        waiting.add(reader)
                        heappush(left, reader)
        changed = {node: found[node] for node, level in behind.items() if level <= most}
        ends = {}
        for node in changed:
            if any(behind.get(each, 0) > most for each in self._readers[node]):
                ends[node] = TRUE
            elif node in self._outputs:
                ends[node] = self._outputs[node]
        return Window(changed, frozenset(sources), ends)

    def end_nearby(
        self, number: int, sizes: Sequence[tuple[int, int | None]], seconds: float
    ) -> bool:
        """Whether a mutant is shown to be the unit in a window.

        If nodes at the window's end that others read, or outputs, are equal, all behind them are.

        Args:
            number: of the mutant. sizes: of windows, in turn: levels behind the fault, and levels
            before those, None for all. seconds: limit of each question.
        """
        for behind, before in sizes:
            depth = None if before is None else before + behind
            if self._unlike(self.window(number, behind), depth, seconds) == set():
                return True
        return False

    def unlike(self, number: int, seconds: float) -> set[int] | None:
        """The nodes that are 1 in a case in which a mutant has another output than the unit.

        Empty if there is none, None if the time is over.
        """
        return self._unlike(self.window(number, None), None, seconds)

    def _unlike(self, window: Window, depth: int | None, seconds: float) -> set[int] | None:
        """The nodes that are 1 where ends of a window differ, with what is before up to a depth."""
        from pysat.solvers import Solver

        if not window.ends:
            return set()
        graph, literals = self._graph, [*window.ends.values()]
        for node in window.ends:
            literals += [self._right[node], window.changed[node]]
        clauses = graph.clauses(literals, depth) + self._path(window)
        with Solver(SOLVER, bootstrap_with=clauses) as solver:
            return answer(solver, [], seconds)

    def _path(self, window: Window) -> Clauses:
        """Clauses that say that there is a path of nodes that differ, from a source to an end."""
        graph, first = self._graph, len(self._graph) + 1
        on = {node: first + k for k, node in enumerate(window.changed)}
        before = {node: [x >> 1 for x in graph.operands(node) or () if x >> 1 in on] for node in on}
        after: dict[int, list[int]] = {node: [] for node in on}
        for node, nodes in before.items():
            for each in nodes:
                after[each].append(on[node])
        found = [[on[node] for node in window.ends]]
        for node, variable in on.items():
            one, other = graph.variable(self._right[node]), graph.variable(window.changed[node])
            found += [[-variable, one, other], [-variable, -one, -other]]
            if node not in window.sources:
                found.append([-variable, *(on[each] for each in before[node])])
            counts = window.ends.get(node, FALSE)
            if counts != TRUE:  # where a difference does not count, the path goes on
                found.append([-variable, graph.variable(counts), *after[node]])
        return found
