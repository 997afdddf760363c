"""Mutants whose effect ends near their fault."""

import numpy as np
import pytest

from axs6.proof.aig import Graph
from axs6.proof.cases import counting
from axs6.proof.windows import Faults

INPUTS, SELECTOR = 8, 5


def _random_graph(seed: int) -> Graph:
    """Conjunctions of random nodes, many of them redundant, of which 31 can be inverted."""
    rng = np.random.default_rng(seed)
    graph = Graph([*(f"i[{k}]" for k in range(INPUTS)), *(f"mutant[{k}]" for k in range(SELECTOR))])
    literals = [graph.inputs[f"i[{k}]"] for k in range(INPUTS)]
    selector = [graph.inputs[f"mutant[{k}]"] for k in range(SELECTOR)]
    for index in range(150):
        recent = literals[-12:]
        one, other = (int(rng.choice(recent)) ^ int(rng.integers(2)) for _ in range(2))
        literal = graph.both(one, other) if rng.random() < 0.7 else graph.unlike(one, other)
        if index % 4 == 0 and (number := index // 4 + 1) < 1 << SELECTOR:
            chosen = graph.all(bit ^ 1 ^ (number >> k & 1) for k, bit in enumerate(selector))
            literal = graph.unlike(literal, chosen)
        literals.append(literal)
    graph.outputs = {f"o[{k}]": literal for k, literal in enumerate(literals[-6:])}
    return graph


def _tables(graph: Graph) -> list[bytes]:
    """What each mutant gives for all inputs."""
    given = counting([graph.inputs[f"i[{k}]"] for k in range(INPUTS)])
    ones = ~np.zeros_like(next(iter(given.values())))
    found = []
    for number in range(1 << SELECTOR):
        bits = {graph.inputs[f"mutant[{k}]"]: ones * (number >> k & 1) for k in range(SELECTOR)}
        found.append(np.stack(graph.values([*graph.outputs.values()], {**given, **bits})).tobytes())
    return found


@pytest.mark.parametrize("sizes", [[(2, 3)], [(4, 8), (100, 100)]])
def test_only_mutants_are_shown_that_equal_the_unit(sizes: list[tuple[int, int]]) -> None:
    """In a window of all levels, all of them are."""
    shown = equal = unlike = 0
    for seed in range(12):
        graph = _random_graph(seed)
        tables = _tables(graph)
        faults = Faults(graph, [graph.inputs[f"mutant[{k}]"] for k in range(SELECTOR)])
        for number in range(1, 1 << SELECTOR):
            is_equal = tables[number] == tables[0]
            is_shown = faults.end_nearby(number, sizes, 10)
            assert is_equal or not is_shown, (seed, number)
            shown, equal, unlike = shown + is_shown, equal + is_equal, unlike + (not is_equal)
    assert 20 < shown <= equal
    assert unlike > 50
    if sizes[-1] == (100, 100):
        assert shown == equal
