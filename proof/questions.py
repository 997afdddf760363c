"""Many questions to one SAT solver about one graph that grows."""

from axs6.proof.aig import Graph
from axs6.proof.solver import SOLVER, answer


class Questions:
    """Asks whether literals of a graph can be 1. What the solver learns it keeps.

    Args:
        graph: of the literals; it may grow between questions.

    Raises:
        ImportError: python-sat is missing.
    """

    def __init__(self, graph: Graph) -> None:
        from pysat.solvers import Solver

        self._graph = graph
        self._solver = Solver(SOLVER, bootstrap_with=graph.clauses([]))
        self._known: set[int] = set()

    def ask(self, literal: int, seconds: float) -> set[int] | None:
        """The nodes that are 1 in an assignment with which a literal is 1.

        Returns:
            Empty if there is no assignment, None if the time is over. Node 0 is in every one.
        """
        graph = self._graph
        for node in graph.cone([literal], self._known):
            pair = graph.operands(node)
            assert pair is not None
            y, (a, b) = graph.variable(2 * node), map(graph.variable, pair)
            for clause in ([-y, a], [-y, b], [y, -a, -b]):
                self._solver.add_clause(clause)
            self._known.add(node)
        return answer(self._solver, [graph.variable(literal)], seconds)
