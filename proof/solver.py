"""A SAT solver with a time limit."""

import threading
from collections.abc import Sequence
from typing import Any

from axs6.proof.aig import FALSE, Graph

SOLVER = "glucose4"


def solve(graph: Graph, literals: Sequence[int], seconds: float) -> set[int] | None:
    """The nodes that are 1 in an assignment with which all of some literals are 1.

    Args:
        graph: of the literals. literals: any. seconds: limit.

    Returns:
        Empty if there is no assignment, None if the time is over. Node 0 is in every assignment,
        though it is the constant false.

    Raises:
        ImportError: python-sat is missing.
    """
    from pysat.solvers import Solver

    clauses = [*graph.clauses(literals), *([graph.variable(each)] for each in literals)]
    with Solver(SOLVER, bootstrap_with=clauses) as solver:
        return answer(solver, [], seconds)


def answer(solver: Any, assumed: Sequence[int], seconds: float) -> set[int] | None:
    """What `solve` returns, from a solver of python-sat that has the clauses of a graph.

    Args:
        solver: which can be asked again. assumed: variables that are 1. seconds: limit.
    """
    timer = threading.Timer(seconds, solver.interrupt)
    timer.start()
    try:
        found = solver.solve_limited(assumed, expect_interrupt=True)
    finally:
        timer.cancel()
        solver.clear_interrupt()
    if found is None:
        return None
    return {0, *(each - 1 for each in solver.get_model() if each > 0)} if found else set()


def never(graph: Graph, literal: int, seconds: float) -> bool:
    """Whether a literal is shown to be 0 for all inputs; False also if the time is over."""
    return literal == FALSE or solve(graph, [literal], seconds) == set()
