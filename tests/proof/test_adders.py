"""Adders found in graphs, and sums of bits that they take apart."""

import pytest

from axs6.proof.adders import Adders, Form
from axs6.proof.aig import FALSE, Graph
from axs6.proof.cases import cases_of, counting

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


def numbers_of(graph: Graph, literals: list[int]) -> list[list[int]]:
    """Values of literals in all 64 cases of six inputs."""
    given = counting([*graph.inputs.values()])
    return [cases_of(words, len(NAMES)).tolist() for words in graph.values(literals, given)]


def with_signs(signs: int) -> tuple[Graph, list[int]]:
    """A sum of three numbers of two bits, some bits inverted, modulo 2^4."""
    graph = Graph(NAMES)
    bits = [bit ^ (signs >> k & 1) for k, bit in enumerate(graph.inputs.values())]
    a, b, c = bits[:2], bits[2:4], bits[4:]
    return graph, graph.sum(graph.sum(a, b, 4), [*c, FALSE, FALSE], 4)


@pytest.mark.parametrize("signs", [0, 0b010101, 0b100110, 0b111111])
def test_every_adder_adds(signs: int) -> None:
    graph, bits = with_signs(signs)
    adders = Adders(graph)
    adders.search(bits)
    found = [each for node in range(len(graph)) for each in adders.of(node)]
    assert {len(each.operands) for each in found} == {2, 3}
    for adder in found:
        *operands, total, carry = numbers_of(graph, [*adder.operands, adder.sum, adder.carry])
        assert [sum(each) for each in zip(*operands, strict=True)] == [
            x + 2 * y for x, y in zip(total, carry, strict=True)
        ]
    for node in range(len(graph)):
        parity = adders.parity(node)
        if parity is not None:
            *operands, total = numbers_of(graph, [*parity.operands, parity.sum])
            assert parity.carry == FALSE
            assert [sum(each) % 2 for each in zip(*operands, strict=True)] == total


@pytest.mark.parametrize("width", [2, 3, 4])
@pytest.mark.parametrize("signs", [0, 0b010101, 0b100110, 0b111111])
def test_a_form_has_the_value_of_its_bits(signs: int, width: int) -> None:
    graph, bits = with_signs(signs)
    form = expanded(graph, bits[:width])
    copied = form.copy()
    copied.add(bits[0], 3)
    copied.add(bits[0] ^ 1, 3)
    assert (copied.constant, copied.of) == ((form.constant + 3) % (1 << width), form.of)
    assert set(form.of) <= {literal >> 1 for literal in graph.inputs.values()}
    whole = [
        sum(x << k for k, x in enumerate(each))
        for each in zip(*numbers_of(graph, bits[:width]), strict=True)
    ]
    nodes = numbers_of(graph, [2 * node for node in form.of])
    times = list(form.of.values())
    assert all(0 < each < 1 << width for each in times)
    for value, case in zip(whole, zip(*nodes, strict=True), strict=True):
        total = form.constant + sum(x * y for x, y in zip(times, case, strict=True))
        assert total % (1 << width) == value


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


def test_an_inverted_carry_is_that_of_inverted_operands() -> None:
    """~a + ~b = (a ^ b) + 2 ~(a | b), where the disjunction is a node itself."""
    graph = Graph(NAMES)
    a, b = graph.bus("a", 0, 2)
    neither = graph.both(a ^ 1, b ^ 1)
    either = graph.both(neither ^ 1, graph.both(b ^ 1, neither) ^ 1)
    assert not either & 1
    form = expanded(graph, [graph.unlike(a, b), either ^ 1])
    assert (form.constant, form.of) == (2, {a >> 1: 3, b >> 1: 3})


def test_the_highest_bit_of_a_sum_needs_no_carry() -> None:
    """A parity of three bits as a disjunction of four products, which have no carry of theirs."""
    graph = Graph(NAMES)
    bits = graph.bus("a", 0, 3)
    products = [
        graph.all(bit ^ 1 ^ (ones >> k & 1) for k, bit in enumerate(bits))
        for ones in (0b001, 0b010, 0b100, 0b111)
    ]
    form = expanded(graph, [FALSE, graph.any(products)])
    assert (form.constant, form.of) == (0, {bit >> 1: 2 for bit in bits})


def test_a_sum_with_two_bits_swapped_is_not_taken_apart() -> None:
    graph, (first, second, *rest) = added(4)
    form = expanded(graph, [second, first, *rest])
    assert set(form.of) - set(graph.leaves(form.of)) - {x >> 1 for x in graph.inputs.values()}


def test_a_conjunction_alone_is_no_adder() -> None:
    graph = Graph(NAMES)
    bits = [graph.both(*graph.bus("a", 0, 2)), FALSE]
    assert expanded(graph, bits).of == {bits[0] >> 1: 1}
