"""Answers of the SAT solver, and its limit of time."""

import time
from itertools import combinations

from pysat.solvers import Solver

from axs6.proof.aig import FALSE, TRUE, Graph
from axs6.proof.solver import SOLVER, answer, never, solve


def pigeons(count: int) -> tuple[Graph, int]:
    """Whether `count` pigeons fit in one hole fewer, each alone: impossible, and hard to show."""
    holes = count - 1
    graph = Graph(f"p[{k}]" for k in range(count * holes))
    bits = list(graph.inputs.values())
    rows = [bits[k * holes : (k + 1) * holes] for k in range(count)]
    placed = graph.all(graph.any(row) for row in rows)
    apart = graph.all(
        graph.both(a, b) ^ 1
        for column in zip(*rows, strict=True)
        for a, b in combinations(column, 2)
    )
    return graph, graph.both(placed, apart)


def test_an_assignment_has_the_nodes_that_are_1() -> None:
    graph = Graph(("a", "b", "c"))
    a, b, c = graph.inputs.values()
    inner = graph.both(a, b ^ 1)
    assert solve(graph, [inner, c ^ 1], 10) == {0, a >> 1, inner >> 1}
    assert solve(graph, [inner ^ 1, a, c], 10) == {0, a >> 1, b >> 1, c >> 1}
    assert solve(graph, [inner, b], 10) == set()
    assert solve(graph, [FALSE], 10) == set()
    assert solve(graph, [TRUE, c], 10) == {0, c >> 1} | (solve(graph, [TRUE, c], 10) or set())


def test_what_is_never_1() -> None:
    graph = Graph(("a", "b"))
    a, b = graph.inputs.values()
    assert never(graph, FALSE, 10)
    assert not never(graph, TRUE, 10)
    assert not never(graph, graph.both(a, b), 10)
    differ = graph.both(graph.both(a, b), graph.unlike(a, b))
    assert differ != FALSE
    assert never(graph, differ, 10)
    assert never(*pigeons(5), 60)


def test_time_that_is_over_is_no_answer() -> None:
    graph, literal = pigeons(14)
    begin = time.monotonic()
    assert solve(graph, [literal], 0.2) is None
    assert not never(graph, literal, 0.2)
    assert time.monotonic() - begin < 20


def test_a_solver_is_asked_again() -> None:
    """Limits of other answers do not count: neither one that has not passed before the answer,
    nor one that has interrupted it.

    The solver looks whether it is interrupted where it restarts, often at the beginning alone.
    """
    graph, literal = pigeons(9)
    hard = graph.variable(literal)
    for seconds, before in ((0.05, [-hard]), (0, [hard])):
        with Solver(SOLVER, bootstrap_with=graph.clauses([literal])) as solver:
            found = answer(solver, before, seconds)
            assert (found is None) == (before == [hard])
            assert found is None or literal >> 1 not in found
            time.sleep(0.1)
            assert answer(solver, [hard], 60) == set()
            assert answer(solver, [-hard], 60)
