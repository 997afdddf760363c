"""Literals of a graph that are shown to be equal to known ones, one step of a design at a time.

What is built beside a netlist from the same steps has few nodes of its own, if every step starts
from literals of the netlist.
"""

from collections import defaultdict
from collections.abc import Sequence

import numpy as np
from numpy.typing import NDArray

from axs6.proof.aig import Graph
from axs6.proof.solver import never

WORDS = 32
"""Words of random cases by which literals are told apart."""

CANDIDATES = 3
"""Known nodes, at most, which a literal is compared with by the solver."""

SECONDS = 5.0
"""Limit of a question: another literal may be found sooner, and none has to be."""


class Merged:
    """Finds literals of the nodes that a graph has now.

    Args:
        graph: may grow.
    """

    def __init__(self, graph: Graph) -> None:
        self._graph = graph
        rng = np.random.default_rng(0)
        self._given = {bit: _cases(rng) for bit in graph.inputs.values()}
        nodes = graph.cone(graph.outputs.values())
        self._known = len(graph)
        self._at: dict[bytes, list[int]] = defaultdict(list)
        literals = [*graph.inputs.values(), *(2 * node for node in nodes)]
        for literal, words in zip(literals, graph.values(literals, self._given), strict=True):
            turned = int(words[0]) & 1
            self._at[_key(words, turned)].append(literal ^ turned)

    def put(self, literals: Sequence[int]) -> list[int]:
        """The same literals, or known ones that are shown to be equal to them."""
        values = self._graph.values(literals, self._given)
        found: dict[int, int] = {}
        for literal, words in zip(literals, values, strict=True):
            if literal >> 1 >= self._known and literal not in found:
                found[literal] = self._equal(literal, words)
        return [found.get(literal, literal) for literal in literals]

    def _equal(self, literal: int, words: NDArray[np.uint64]) -> int:
        turned, graph = int(words[0]) & 1, self._graph
        for known in self._at.get(_key(words, turned), [])[:CANDIDATES]:
            other = known ^ turned
            if never(graph, graph.unlike(literal, other), SECONDS):
                return other
        return literal


def _cases(rng: np.random.Generator) -> NDArray[np.uint64]:
    """Random words: with as many ones as zeros, with fewer, and with more."""
    words, more = (rng.integers(0, 1 << 64, WORDS, np.uint64, endpoint=False) for _ in range(2))
    third = WORDS // 3
    words[third : 2 * third] &= more[third : 2 * third]
    words[2 * third :] |= more[2 * third :]
    return words


def _key(words: NDArray[np.uint64], turned: int) -> bytes:
    return (~words if turned else words).tobytes()
