"""Mutants whose effect ends near their fault."""

import numpy as np
import pytest

from axs6.proof.aig import FALSE, Graph
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


@pytest.mark.parametrize("counted", [False, True])
def test_a_question_about_the_whole_unit_finds_each_difference(counted: bool) -> None:
    """Also where differences of some outputs count only if an input is 1."""
    found = 0
    for seed in range(6):
        graph = _random_graph(seed)
        selector = [graph.inputs[f"mutant[{k}]"] for k in range(SELECTOR)]
        counts = {f"o[{k}]": graph.inputs["i[0]"] for k in range(5)} if counted else {}
        seen = {x: graph.both(bit, counts.get(x, 1)) for x, bit in graph.outputs.items()}
        tables = _tables(graph.with_outputs(seen))
        faults = Faults(graph, selector, counts)
        for number in range(1, 1 << SELECTOR):
            ones = faults.unlike(number, 10)
            assert (ones == set()) == (tables[number] == tables[0]), (seed, number)
            if ones:
                bits = {bit: bit >> 1 in ones for bit in graph.inputs.values()}
                chosen = (
                    dict.fromkeys(selector, False),
                    dict(zip(selector, _bits(number), strict=True)),
                )
                right, wrong = (_seen(graph, seen, {**bits, **each}) for each in chosen)
                assert right != wrong
                found += 1
    assert found > 50


def _bits(number: int) -> list[bool]:
    return [bool(number >> k & 1) for k in range(SELECTOR)]


def _seen(graph: Graph, outputs: dict[str, int], bits: dict[int, bool]) -> list[int]:
    given = {bit: np.full(1, one, np.uint64) for bit, one in bits.items()}
    return [int(each[0] & np.uint64(1)) for each in graph.values([*outputs.values()], given)]


def _masked_product(mask: str) -> tuple[Graph, list[int]]:
    """The product of a number, which is 0 where a bit is 1, and another; it is 0 where `mask` is 1.

    In mutant 1 the number passes as it is.
    """
    width = 16
    names = [f"{name}[{k}]" for name in "xy" for k in range(width)]
    graph = Graph([*names, "special", "other", "mutant[0]"])
    x, y = (graph.bus(name, 0, width) for name in "xy")
    special, selector = graph.inputs["special"], graph.inputs["mutant[0]"]
    kept = graph.both(special, selector ^ 1) ^ 1
    total = [FALSE] * 2 * width
    for place, bit in enumerate(y):
        row = [FALSE] * place + [graph.both(graph.both(each, kept), bit) for each in x]
        total = graph.sum(total, row, 2 * width)
    masked = (graph.both(bit, graph.inputs[mask] ^ 1) for bit in total)
    graph.outputs = {f"o[{k}]": bit for k, bit in enumerate(masked)}
    return graph, [selector]


def test_what_blocks_all_paths_is_found_behind_a_product() -> None:
    """Two products need not be compared to see that neither counts."""
    assert Faults(*_masked_product("special")).unlike(1, 5) == set()
    graph, selector = _masked_product("other")
    ones = Faults(graph, selector).unlike(1, 60)
    assert ones
    assert graph.inputs["special"] >> 1 in ones
    assert graph.inputs["other"] >> 1 not in ones


def test_an_output_that_only_the_choice_of_a_mutant_changes_differs() -> None:
    graph = Graph(["i[0]", "mutant[0]", "mutant[1]"])
    selector = [graph.inputs[f"mutant[{k}]"] for k in range(2)]
    graph.outputs = {"o[0]": graph.inputs["i[0]"], "o[1]": graph.both(selector[0], selector[1] ^ 1)}
    faults = Faults(graph, selector)
    assert faults.unlike(1, 10)
    assert not faults.end_nearby(1, [(8, 12)], 10)
    assert faults.unlike(2, 10) == set()
