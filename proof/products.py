"""Products of two words, from the adders of their graph."""

from collections import defaultdict
from collections.abc import Sequence

import numpy as np
from numpy.typing import NDArray

from axs6.golden.formats import FP32
from axs6.proof.adders import Adders, Form
from axs6.proof.aig import TRUE, Graph
from axs6.proof.cores import Core
from axs6.proof.solver import never
from axs6.proof.steps import NotShownError

CASES = 4
"""Words of random cases by which bits are told apart before a solver is asked."""


def show_fp32_product(core: Core, seconds: float) -> None:
    """Show that the field `magnitude` is the product of the significands of the inputs.

    Raises:
        NotShownError: it is not, or the adders are not found.
    """
    a, b = (_significand(core.graph, field.offset) for field in core.inputs)
    show_product(core.graph, core.result("magnitude"), a, b, seconds)


def show_product(
    graph: Graph,
    product: Sequence[int],
    a: Sequence[int],
    b: Sequence[int],
    seconds: float,
    care: int = TRUE,
) -> None:
    """Show that a word is the product of two others; all are literals, lowest bit first.

    Adders take its bits apart until the products of single bits are left.

    Args:
        graph: of the literals. product, a, b: the words. seconds: limit of each question to a
        solver. care: a literal; where it is 0, nothing is shown.

    Raises:
        NotShownError: it is not, or the adders are not found.
    """
    adders = Adders(graph)
    adders.search(product)
    found, wanted = Form(len(product), product), Form(len(product))
    found.expand(adders)
    for place, x in enumerate(a):
        for more, y in enumerate(b):
            wanted.add(graph.both(x, y), 1 << place + more)
    if found.constant != wanted.constant or not _same(graph, found, wanted, care, seconds):
        raise NotShownError("its adders do not end in the products of single bits")


def _random(graph: Graph) -> dict[int, NDArray[np.uint64]]:
    rng = np.random.default_rng(0)
    inputs = graph.inputs.values()
    return {bit: rng.integers(0, 1 << 64, CASES, np.uint64) for bit in inputs}


def sums_of(graph: Graph, alike: Sequence[Sequence[int]]) -> list[int]:
    """For each bit of a word one literal of some: the last one that is the sum of an adder, as
    carries into others may never be 1."""
    adders = Adders(graph)
    adders.search(bit for bits in alike for bit in bits)
    return [max(bits, key=lambda bit: (adders.parity(bit >> 1) is not None, bit)) for bits in alike]


def _significand(graph: Graph, offset: int) -> list[int]:
    field = graph.bus("i_payload", offset + FP32.fraction_bits, FP32.exponent_bits)
    return [*graph.bus("i_payload", offset, FP32.fraction_bits), graph.any(field)]


def _same(graph: Graph, found: Form, wanted: Form, care: int, seconds: float) -> bool:
    """Whether forms are one sum where a literal is 1: each node has an equal one in the other."""
    left: dict[tuple[int, bytes], list[int]] = defaultdict(list)
    nodes = [*found.of, *wanted.of]
    here, *words = graph.values([care, *(2 * node for node in nodes)], _random(graph))
    values = {node: (each & here).tobytes() for node, each in zip(nodes, words, strict=True)}
    for node, times in found.of.items():
        left[times, values[node]].append(node)
    for node, times in wanted.of.items():
        alike = left[times, values[node]]
        if not alike:
            return False
        unlike = graph.unlike(2 * alike.pop(), 2 * node)
        if not never(graph, graph.both(care, unlike), seconds):
            return False
    return len(found.of) == len(wanted.of)
