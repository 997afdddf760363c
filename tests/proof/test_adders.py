"""Adders found in graphs, and sums of bits that they take apart."""

import pytest

from axs6.proof.adders import Adders, Form
from axs6.proof.aig import FALSE, Graph

NAMES = [*(f"a[{k}]" for k in range(3)), *(f"b[{k}]" for k in range(3))]


def added(width: int) -> tuple[Graph, list[int]]:
    graph = Graph(NAMES)
    return graph, graph.sum(graph.bus("a", 0, 3), graph.bus("b", 0, 3), width)


def expanded(graph: Graph, bits: list[int]) -> Form:
    adders = Adders(graph)
    adders.search(bits)
    form = Form(len(bits), bits)
    form.expand(adders)
    return form


@pytest.mark.parametrize("width", [3, 4])
def test_a_sum_is_taken_apart_into_its_operands(width: int) -> None:
    """With all its carries, and modulo 2^3 without the last one."""
    graph, bits = added(width)
    form = expanded(graph, bits)
    wanted = {graph.inputs[f"{x}[{k}]"] >> 1: 1 << k for x in "ab" for k in range(3)}
    assert (form.constant, form.of) == (0, wanted)


def test_inverted_operands_count_as_one_minus_themselves() -> None:
    """a - b = a + ~b + 1."""
    graph = Graph(NAMES)
    b = [bit ^ 1 for bit in graph.bus("b", 0, 3)]
    form = expanded(graph, graph.sum(graph.bus("a", 0, 3), b, 3))
    assert form.constant == 7
    assert form.of[graph.inputs["b[1]"] >> 1] == 6


def test_a_sum_with_two_bits_swapped_is_not_taken_apart() -> None:
    graph, (first, second, *rest) = added(4)
    form = expanded(graph, [second, first, *rest])
    assert set(form.of) - set(graph.leaves(form.of)) - {x >> 1 for x in graph.inputs.values()}


def test_a_conjunction_alone_is_no_adder() -> None:
    graph = Graph(NAMES)
    bits = [graph.both(*graph.bus("a", 0, 2)), FALSE]
    assert expanded(graph, bits).of == {bits[0] >> 1: 1}
