"""Faults whose effect ends near them: a mutant is compared with its unit within a window.

Some levels behind the fault the two must be equal, and what the window reads may have any value. So
what is shown holds for all inputs, and it is found in milliseconds, however large the unit is.
Where a small window shows nothing, a larger one may.
"""

from collections.abc import Sequence
from functools import cached_property
from heapq import heappop, heappush

from axs6.proof.aig import FALSE, TRUE, Graph
from axs6.proof.solver import SOLVER, answer


class Faults:
    """The unit and its mutants as literals of one graph.

    Args:
        graph: of the unit with its mutants. selector: literals of the inputs that choose a mutant.
    """

    def __init__(self, graph: Graph, selector: Sequence[int]) -> None:
        self._graph, self._selector = graph, selector
        self._nodes = range(len(graph))
        self._ends = {bit >> 1 for bit in graph.outputs.values()}
        whole = [2 * node for node in self._nodes]
        self._right = graph.cofactor(whole, dict.fromkeys(selector, FALSE))

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

    def _changed(self, number: int, levels: int) -> tuple[dict[int, int], dict[int, int]]:
        """The nodes that a mutant has otherwise than the unit, up to some levels behind its fault.

        Returns:
            For each, operands first, what it is in the mutant, and its level.
        """
        graph, right, behind = self._graph, self._right, dict[int, int]()
        found = {bit >> 1: number >> k & 1 for k, bit in enumerate(self._selector)}
        left = sorted(
            {reader for node, one in found.items() if one for reader in self._readers[node]}
        )
        waiting = set(left)

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
            if node not in self._chosen:
                behind[node] = 1 + max(behind.get(each >> 1, 0) for each in operands)
            if behind.get(node, 0) <= levels:
                for reader in self._readers[node]:
                    if reader not in waiting:
                        waiting.add(reader)
                        heappush(left, reader)
        return {node: found[node] for node in behind}, behind

    def end_nearby(self, number: int, sizes: Sequence[tuple[int, int]], seconds: float) -> bool:
        """Whether a mutant is shown to be the unit in a window.

        If nodes at the window's end that others read, or outputs, are equal, all behind them are.

        Args:
            number: of the mutant. sizes: of windows, in turn: levels behind the fault, and levels
            before those. seconds: limit of each question.
        """
        for behind, before in sizes:
            changed, levels = self._changed(number, behind)
            within = (node for node in changed if levels[node] <= behind)
            pairs = [
                (self._right[node], changed[node])
                for node in within
                if node in self._ends or any(levels.get(x, 0) > behind for x in self._readers[node])
            ]
            if not pairs or _equal(self._graph, pairs, before + behind, seconds):
                return True
        return False


def _equal(graph: Graph, pairs: Sequence[tuple[int, int]], depth: int, seconds: float) -> bool:
    """Whether the two literals of each pair are shown to be equal from some levels before them."""
    from pysat.solvers import Solver

    clauses, first = _clauses(graph, [bit for pair in pairs for bit in pair], depth), len(graph)
    for unlike, pair in enumerate(pairs, first + 1):
        one, other = (graph.variable(bit) for bit in pair)
        clauses += [[-unlike, one, other], [-unlike, -one, -other]]
    clauses.append([first + 1 + k for k in range(len(pairs))])
    with Solver(SOLVER, bootstrap_with=clauses) as solver:
        return answer(solver, [], seconds) == set()


def _clauses(graph: Graph, literals: Sequence[int], depth: int) -> list[list[int]]:
    """Clauses of the nodes up to some levels before literals."""
    found = [[graph.variable(TRUE)]]
    level, seen = {each >> 1 for each in literals}, set[int]()
    for _ in range(depth):
        seen |= level
        following = set()
        for node in level:
            pair = graph.operands(node)
            if pair is None:
                continue
            y = graph.variable(2 * node)
            a, b = (graph.variable(each) for each in pair)
            found += [[-y, a], [-y, b], [y, -a, -b]]
            following |= {each >> 1 for each in pair}
        level = following - seen
    return found
